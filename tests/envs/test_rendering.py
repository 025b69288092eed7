"""Rendering of environments: images, videos, a page in the browser."""

import sys
import types
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import artigrad as ag
from artigrad.envs import Env

HOPPER, CARTPOLE = "artigrad/Hopper-v0", "artigrad/CartpoleSwingUp-v0"


def test_images():
    env = gym.make(HOPPER, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.shape == (360, 480, 3) and first.dtype == np.uint8
    for _ in range(5):
        env.step(np.ones(3, np.float32))
    assert (np.abs(env.render().astype(int) - first).max(2) > 12).sum() > 50
    batch = env.unwrapped.batch
    assert env.metadata["render_fps"] == round(1 / (batch.sim.dt * batch.task.frame_skip))
    many = gym.make_vec(HOPPER, num_envs=2, render_mode="rgb_array")
    many.reset(seed=0)
    assert [picture.shape for picture in many.render()] == [(360, 480, 3)] * 2
    with pytest.raises(ag.InputError, match="render_mode is one of 'rgb_array', 'human' or None, not 'ascii'"):
        Env("Hopper", render_mode="ascii")


def test_record_video(tmp_path, monkeypatch):
    """Gymnasium's RecordVideo gets a frame per step; a fake module replaces moviepy."""
    films = []

    class Film:
        def __init__(self, frames, fps):
            films.append((len(frames), frames[0].shape, fps))

        def write_videofile(self, path, **_):
            Path(path).write_bytes(b"film")

    clips = types.ModuleType("moviepy.video.io.ImageSequenceClip")
    clips.ImageSequenceClip = Film
    names = ("moviepy", "moviepy.video", "moviepy.video.io")
    for name, module in ({name: types.ModuleType(name) for name in names} | {clips.__name__: clips}).items():
        monkeypatch.setitem(sys.modules, name, module)
    env = gym.make(CARTPOLE, render_mode="rgb_array", max_episode_steps=4)
    with gym.wrappers.RecordVideo(env, str(tmp_path / "films"), episode_trigger=lambda _: True) as recorded:
        recorded.reset(seed=0)
        while not recorded.step(np.zeros(1, np.float32))[3]:
            pass
    assert films == [(5, (360, 480, 3), env.metadata["render_fps"])] and list(tmp_path.glob("films/*.mp4"))


def test_human_mode_updates_a_page(capsys):
    env = gym.make(CARTPOLE, render_mode="human")
    env.reset(seed=0)
    assert "open http://localhost:" in capsys.readouterr().out
    viewer = env.unwrapped.rendering._snapshots._viewer
    before = next(viewer.messages())["pose"]
    for _ in range(3):
        env.step(np.ones(1, np.float32))
    assert next(viewer.messages())["pose"] != before
    env.close()
    assert viewer._ended.is_set()
