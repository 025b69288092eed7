"""Videos and pages of trajectories, and refused input."""

import re
import subprocess
import sys

import numpy as np
import pytest

import artigrad as ag
from artigrad.model.visuals import Visual
from artigrad.view import video
from artigrad.view.frames import frames_of, framing, params_of
from artigrad.view.scenery import scene_of
from artigrad.view.studio import Studio

SMALL = (64, 48)


def test_gif_has_every_frame_and_the_time_of_the_motion(tmp_path, fall):
    from PIL import Image

    fall.save(tmp_path / "x.gif", size=SMALL, robot=2, speed=0.5)
    with Image.open(tmp_path / "x.gif") as image:
        assert image.size == SMALL and image.n_frames == 21  # 0.4 s, half as fast, 25 a second
        first = np.asarray(image.convert("RGB")).astype(int)
        assert image.info["duration"] == 40
        image.seek(20)
        assert np.abs(np.asarray(image.convert("RGB")) - first).max() > 50
    assert [f.name for f in tmp_path.iterdir()] == ["x.gif"]


def test_mp4_can_be_read(tmp_path, fall):
    fall.save(tmp_path / "x.MP4", size=SMALL, fps=20)
    told = subprocess.run([video.ffmpeg(), "-i", tmp_path / "x.MP4"], capture_output=True, text=True, timeout=20).stderr
    assert "h264" in told and "64x48" in told and "20 fps" in told


def test_without_ffmpeg(tmp_path, fall, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ag.InputError, match=r"mp4 needs ffmpeg.*pip install 'artigrad\[view\]'"):
        fall.save(tmp_path / "x.mp4", size=SMALL)
    assert not list(tmp_path.iterdir())


def test_without_the_extra(tmp_path, fall, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r"pip install 'artigrad\[view\]'"):
        fall.save(tmp_path / "x.gif", size=SMALL)


def test_page_holds_all_and_is_small(tmp_path):
    model = ag.robots.laikago()
    sim = ag.Simulator(model, dt=1e-3)
    sim.rollout(sim.reset(), np.tile(model.keyframe_control(), (1000, 1))).save(tmp_path / "x.html", fps=1000)
    text = (tmp_path / "x.html").read_text()
    assert '"frames":1001' in text
    assert len(text) < 1_000_000
    assert not re.findall(r"""(?:src|href)=["'](?!data:)|https?://|import\s*\(""", text)
    assert "{{" not in text


def test_invalid_input_is_refused(tmp_path, fall):
    with pytest.raises(ag.InputError, match=r"\.html, \.gif, \.mp4, \.npz, \.csv; not as 'x\.avi'"):
        fall.save(tmp_path / "x.avi")
    with pytest.raises(ag.InputError, match=r"no folder .*gone"):
        fall.save(tmp_path / "gone" / "x.gif")
    with pytest.raises(ag.InputError, match="robots 0 to 2; not robot 3"):
        fall.save(tmp_path / "x.gif", robot=3)
    for size in ((64, 47), (0, 0), "large", (64,)):
        with pytest.raises(ag.InputError, match="size is"):
            fall.save(tmp_path / "x.gif", size=size)
    for wrong in ({"fps": 0}, {"speed": -1.0}, {"fps": float("nan")}, {"speed": "fast"}):
        with pytest.raises(ag.InputError, match="positive number"):
            fall.save(tmp_path / "x.gif", **wrong)
    sim = fall.simulator
    with pytest.raises(ag.InputError, match="no steps"):
        sim.rollout(sim.reset(), steps=0).save(tmp_path / "x.gif")
    with pytest.raises(ag.InputError, match="checkpoints=EveryStep"):
        sim.rollout(sim.reset(), steps=10, checkpoints=ag.EveryKth(5)).save(tmp_path / "x.gif")
    assert not list(tmp_path.iterdir())


def test_a_state_that_is_not_finite_is_named(tmp_path):
    sim = ag.Simulator(ag.robots.pendulum(), dt=1e-2)
    traj = sim.rollout(sim.reset(), steps=20)
    traj.kept[0].q[0, 7] = np.nan
    for call in (lambda: traj.save(tmp_path / "x.html"), lambda: traj.show(block=False)):
        with pytest.raises(ag.InputError, match=r"frame 7 of the trajectory \(t = 0\.07 s\) is not finite"):
            call()


def test_a_port_in_use():
    viewer = ag.view(ag.robots.pendulum(), block=False)
    try:
        with pytest.raises(ag.InputError, match="in use"):
            ag.view(ag.robots.pendulum(), port=int(viewer.url.rsplit(":", 1)[1]), block=False)
    finally:
        viewer.stop()
    with pytest.raises(ag.InputError, match="whole number"):
        ag.view(ag.robots.pendulum(), port=99999, block=False)
    with pytest.raises(ag.InputError, match="takes a Model"):
        ag.view("pendulum")


def test_arrows_are_in_the_film(pushes):
    studio = Studio(pushes.scene, pushes.motion, pushes.framing, (160, 120))
    bare = Studio(pushes.scene, pushes.motion._replace(forces=[]), pushes.framing, (160, 120))
    red = [(p[..., 0].astype(int) - p[..., 1] > 90).sum() for p in (s.picture(3) for s in (studio, bare))]
    assert red[0] > red[1] + 20


ROBOTS = {
    "pendulum": ag.robots.pendulum,
    "cartpole": ag.robots.cartpole,
    "chain": lambda: ag.robots.chain(5, free=True),
    "arm": lambda: ag.robots.arm_dh([(0.3, 0, 1.57), (0, 0.4, 0), (0, 0, 1.57)]),
    "quadruped": ag.robots.quadruped,
    "laikago": ag.robots.laikago,
    "ant": ag.robots.ant,
    "hopper": ag.robots.hopper,
    "ball": ag.robots.ball,
    "random": lambda: ag.robots.random_tree(3, 8),
    "two": lambda: ag.scene([ag.robots.laikago(), ag.robots.ant()]),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_is_in_the_middle_of_its_picture(name):
    model = ROBOTS[name]()
    sim = ag.Simulator(model, dt=1e-3)
    motion = frames_of(sim.rollout(sim.reset(), steps=30), 0, 100)
    scene = scene_of(model, model.params)
    bodies = {part.body for part in scene.parts}
    assert bodies >= {i for i in range(model.nb) if model.params.mass[i] > 0}
    frame = framing(scene, motion)
    full = Studio(scene, motion, frame, (160, 120)).picture(1).astype(int)
    empty = Studio(scene, motion._replace(position=motion.position + 1e4), frame, (160, 120)).picture(1)
    drawn = np.argwhere(np.abs(full - empty).max(2) > 12)
    assert len(drawn) > 100
    low, high = drawn.min(0), drawn.max(0)
    assert (low >= 0).all() and 0.3 < (low + high)[0] / 2 / 120 < 0.75 and 0.25 < (low + high)[1] / 2 / 160 < 0.75


def test_visuals_come_before_shapes_and_the_floor_is_one_of_them():
    model = ag.robots.laikago()
    vertices, faces = np.eye(4, 3), np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    visuals = (
        Visual(-1, "plane", (0.0, 0.0), position=(0.0, 0.0, -0.5)),
        Visual(0, "ellipsoid", (0.3, 0.1, 0.1), rgba=(1.0, 0.0, 0.0, 0.5)),
        Visual(1, "mesh", mesh=(vertices, faces)),
        Visual(2, "box", (0.1, 0.1, 0.1), rgba=(1.0, 1.0, 1.0, 0.0)),
    )
    model = model.replace(visuals=visuals)
    scene = scene_of(model, model.params)
    assert scene.floor == -0.5
    assert [p.body for p in scene.parts] == [0, 1]  # what cannot be seen is not drawn
    assert scene.parts[0].rgba == (1.0, 0.0, 0.0, 0.5)


def test_the_floor_that_robots_touch_is_drawn_where_it_is():
    text = (
        """<mujoco><worldbody><body pos="0 0 2"><freejoint/><geom size="0.1" mass="1"/></body></worldbody></mujoco>"""
    )
    model = ag.scene([ag.load(text)])
    assert model.visuals and scene_of(model, model.params).floor == 0.0


def test_camera_follows_a_moving_robot():
    model = ag.robots.ball(floor=True)
    sim = ag.Simulator(model, dt=1e-2)
    state = sim.reset()
    scene = scene_of(model, model.params)
    still = framing(scene, frames_of(sim.rollout(state, steps=50)))
    assert np.ptp(still.focus, axis=0).max() == 0
    state.v[0] = 5.0
    moving = frames_of(sim.rollout(state, steps=50))
    frame = framing(scene, moving)
    assert np.abs(frame.focus - moving.position[:, 1])[:, :2].max() < 0.1 and np.ptp(frame.focus[:, 2]) == 0
    assert frame.radius == pytest.approx(still.radius, rel=0.05)


def test_each_robot_of_a_batch_is_drawn_with_its_own_parameters_in_f32():
    model = ag.robots.ball(floor=True)
    sim = ag.Simulator(model, dt=1e-2, dtype="f32")
    sizes = np.repeat(model.params.shape_size[None], 2, 0)
    sizes[1] *= 2
    traj = sim.rollout(sim.reset(batch=2), steps=5, params=model.params.replace(shape_size=sizes))
    height = [scene_of(model, params_of(traj, k)).parts[0].mesh.vertices[:, 2].max() for k in (0, 1)]
    assert height == pytest.approx([0.1, 0.2])
    assert frames_of(traj, 1).position.shape == (6, 2, 3)


def test_arrows_carry_the_weight_and_the_push():
    model = ag.robots.laikago()
    sim = ag.Simulator(model, dt=2e-3)
    wrench = np.zeros((1000, model.nb, 6))
    wrench[:, 0, 2] = -50.0
    u = np.tile(model.keyframe_control(), (1000, 1))
    motion = frames_of(sim.rollout(sim.reset(batch=2), u, wrench=wrench), 1, 50)
    weight = 9.81 * model.params.mass.sum() + 50.0
    last = motion.forces[-1]
    assert last.vectors.sum(0) == pytest.approx([0.0, 0.0, weight], abs=0.02 * weight)
    assert len(motion.forces) == len(motion.times) and np.abs(last.points[:, 2]).max() < 0.01


def test_no_body_hides_an_arrow(pushes):
    """A force inside the trunk is visible."""
    from artigrad.view.frames import Forces

    model = ag.robots.laikago()
    trunk = pushes.motion.position[:, model.body("trunk") + 1]
    lengths = []
    for aside in (0.0, 0.6):
        forces = [Forces(p[None] + [[aside, 0.0, -0.04]], np.array([[0.0, 0.0, 1.0]])) for p in trunk]
        studio = Studio(pushes.scene, pushes.motion._replace(forces=forces), pushes.framing, (320, 240))
        studio.force_scale = 0.08  # m/N: no longer than the trunk is high
        picture = studio.picture(0).astype(int)
        lengths.append(int(((picture[..., 0] > 120) & (picture[..., 0] - picture[..., 1] > 60)).sum()))
    assert lengths[0] > 0.7 * lengths[1] > 10
