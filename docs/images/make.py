"""Makes the pictures of the viewer: `python docs/images/make.py`."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from PIL import Image

import artigrad as ag
from artigrad.view.frames import frames_of, framing
from artigrad.view.scenery import scene_of
from artigrad.view.studio import Studio

HERE = Path(__file__).parent
PERIOD = 0.386  # s, of a trot that a random search over these numbers found, for speed without pitching
SWING, LIFT, LEAN, BEND, PHASE, REAR, SPREAD = 0.17, -1.02, 0.33, -0.19, -0.35, 0.21, -0.16


def trot(model: ag.Model, times: np.ndarray) -> np.ndarray:
    """Target angles of the twelve servos: diagonal legs swing together."""
    u = np.tile(model.keyframe_control(), (len(times), 1))
    begun = np.clip(times / 0.5, 0.0, 1.0)
    for leg, offset in enumerate((0.0, np.pi, np.pi, 0.0)):
        phase = 2 * np.pi * times / PERIOD + offset
        hip, upper, lower = u[:, 3 * leg : 3 * leg + 3].T
        hip += SPREAD
        upper += LEAN + begun * SWING * np.cos(phase) + (REAR if leg > 1 else 0.0)
        lower += BEND + begun * LIFT * np.maximum(np.sin(phase + PHASE), 0.0)
    return u


def trotting() -> ag.Trajectory:
    """Five strides, after three seconds of getting there."""
    model = ag.robots.laikago()
    sim = ag.Simulator(model, dt=1e-3)
    u = trot(model, np.arange(3000 + round(5000 * PERIOD)) * 1e-3)
    return sim.rollout(sim.rollout(sim.reset(), u[:3000]).final, u[3000:])


def still(model: ag.Model, q: list[float] | None = None) -> np.ndarray:
    """One picture of a robot."""
    sim = ag.Simulator(model, dt=1e-3)
    state = sim.reset()
    if q is not None:
        state = ag.State(np.array(q), state.v)
    motion, scene = frames_of(sim.rollout(state, steps=1))._replace(forces=[]), scene_of(model, model.params)
    return Studio(scene, motion, framing(scene, motion), (280, 210)).picture(0)


def main() -> None:
    traj = trotting()
    began, worked = time.perf_counter(), time.process_time()
    traj.save(HERE / "trot.gif", size=(440, 300))
    took, worked = time.perf_counter() - began, time.process_time() - worked
    print(f"trot.gif, 49 frames of 440 x 300: {took:.1f} s, {worked:.1f} s of processor time")
    arm = ag.robots.arm_dh([(0.3, 0, 1.57), (0, 0.4, 0), (0, 0.35, 0), (0.1, 0, 1.57), (0.1, 0, 0)])
    robots = [
        still(ag.robots.laikago()),
        still(ag.robots.ant()),
        still(ag.robots.hopper(), [0, 0, 0.1, -0.4, -0.6, 0.3]),
        still(arm, [0.4, 0.9, -1.3, 0.3, 0.5]),
        still(ag.robots.pendulum(3), [0.9, -0.5, -0.6]),
        still(ag.robots.cartpole(2), [0.0, 0.3, -0.5]),
    ]
    rows = [np.concatenate(robots[k : k + 3], axis=1) for k in (0, 3)]
    Image.fromarray(np.concatenate(rows)).save(HERE / "robots.png", optimize=True)


if __name__ == "__main__":
    main()
