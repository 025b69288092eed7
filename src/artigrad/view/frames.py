"""Frames of a trajectory: poses of all bodies, contact forces, and the framing of the camera."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from ..model.params import Params
from ..model.state import State

if TYPE_CHECKING:
    from ..simulate.results import Trajectory
    from ..simulate.simulator import Simulator
    from .scenery import Scene


SAMPLES = 16  # steps over which the contact forces of a frame are averaged


class Forces(NamedTuple):
    """Contact forces at one moment.

    Attributes:
        points: (n, 3), world frame, m.
        vectors: (n, 3), N, on the upper body.
    """

    points: np.ndarray
    vectors: np.ndarray


class Frames(NamedTuple):
    """Frames of a video. Row 0 of the poses is the world, row i + 1 body i.

    Attributes:
        times: (F,), s.
        position: (F, nb + 1, 3), m.
        rotation: (F, nb + 1, 3, 3).
        forces: One entry per frame, or none.
    """

    times: np.ndarray
    position: np.ndarray
    rotation: np.ndarray
    forces: list[Forces]


def frames_of(traj: Trajectory, robot: int = 0, fps: float | None = None) -> Frames:
    """Return the frames of one robot of a trajectory; with `fps` at that rate, otherwise one per state."""
    if traj.steps == 0:
        raise InputError(
            "this trajectory has no steps, so nothing moves: roll out some, or show the model with ag.view(model)"
        )
    sim, batch = traj.simulator, len(np.atleast_2d(traj.final.q))
    if not isinstance(robot, int | np.integer) or not 0 <= robot < batch:
        raise InputError(f"this trajectory has robots 0 to {batch - 1}; not robot {robot!r}")
    q, v = (x[robot] if traj.batched else x for x in (traj.q, traj.v))
    bad = np.flatnonzero(~(np.isfinite(q).all(1) & np.isfinite(v).all(1)))
    if len(bad):
        raise InputError(
            f"frame {bad[0]} of the trajectory (t = {bad[0] * sim.options.dt:.4g} s) is not finite and cannot be shown: "
            "the motion overflowed before it; shorten dt or the horizon"
        )
    frames = _frames(traj.steps, sim.options.dt, fps)
    params = params_of(traj, robot)
    position, rotation = poses(sim, q[frames], v[frames], params)
    return Frames(frames * sim.options.dt, position, rotation, contact_arrows(traj, robot, frames))


def _frames(steps: int, dt: float, fps: float | None) -> np.ndarray:
    """Return the indices of the states to show, evenly spaced from the first to the last."""
    count = steps if fps is None else max(1, min(steps, round(steps * dt * fps)))
    return np.linspace(0, steps, count + 1).round().astype(int)


def params_of(traj: Trajectory, robot: int) -> Params:
    """Return the parameters of one batch element."""
    own = traj.params
    return own if own.batch is None else Params(own.model, own.flat[robot])


def poses(sim: Simulator, q: np.ndarray, v: np.ndarray, params: Params | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and rotations of the world and all bodies, for states (F, nq), (F, nv)."""
    out = sim.outputs(State(q, v), params=params)
    count = len(q)
    position = np.concatenate([np.zeros((count, 1, 3)), out.body_position], axis=1)
    rotation = np.concatenate([np.broadcast_to(np.eye(3), (count, 1, 3, 3)), out.body_rotation], axis=1)
    return position, rotation


def contact_arrows(traj: Trajectory, robot: int, frames: np.ndarray) -> list[Forces]:
    """Return the contact forces on one batch element, each averaged over the time around its frame.

    Impacts last one step and would flicker.
    """
    sim = traj.simulator
    if not sim.contact_names:
        return []
    spread = np.gradient(frames.astype(float))  # steps from frame to frame
    count = int(np.clip(np.ceil(spread.max()), 1, SAMPLES))
    around = frames[:, None] + spread[:, None] * ((np.arange(count) + 0.5) / count - 0.5)
    step = np.clip(around.round().astype(int), 0, traj.steps - 1).ravel()

    def own(x: np.ndarray, axes: int) -> np.ndarray:
        """Return the rows of this robot at these steps, as a batch of one-step rollouts."""
        return (x[robot] if x.ndim > axes else x)[step]

    states = State(*(own(x, 2) for x in (traj.q, traj.v, traj.act)))
    wrench = None if traj.wrench is None else own(traj.wrench, 3)[:, None]
    found = sim.contacts(sim.rollout(states, own(traj.u, 2)[:, None], params=params_of(traj, robot), wrench=wrench))
    force, point = (x.reshape(len(frames), count, -1, 3).astype(float) for x in (found.force, found.point))
    size = np.linalg.norm(force, axis=3, keepdims=True)
    place = (size * point).sum(1) / np.maximum(size.sum(1), 1e-30)
    return [Forces(p[f.any(1)], f[f.any(1)]) for p, f in zip(place, force.mean(1), strict=True)]


class Framing(NamedTuple):
    """Framing of the camera.

    Attributes:
        focus: (F, 3), m, point at the center of the image in each frame.
        radius: m, radius of the region around it that is shown.
        floor: m, height of the floor; below everything if the model has none."""

    focus: np.ndarray
    radius: float
    floor: float


def framing(scene: Scene, motion: Frames) -> Framing:
    """Frame the whole trajectory if it stays near one position, otherwise follow it."""
    low, high = _bounds(scene, motion)
    middle, size = (low + high) / 2, np.linalg.norm(high - low, axis=1).max()
    travel = np.ptp(middle[:, :2], axis=0).max()
    floor = scene.floor if scene.floor is not None else float(low[:, 2].min()) - 0.02 * size
    if travel < 0.75 * size:
        all_low, all_high = low.min(0), high.max(0)
        focus = np.repeat((all_low + all_high)[None] / 2, len(middle), 0)
        return Framing(focus, float(np.linalg.norm(all_high - all_low)) / 2, floor)
    focus = _smooth(middle, motion.times)
    focus[:, 2] = middle[:, 2].mean()
    return Framing(focus, float(size) / 2, floor)


def _bounds(scene: Scene, motion: Frames) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper corners (F, 3) of all moving parts, from the outermost points of each."""
    steps = (-1.0, 0.0, 1.0)
    directions = np.array([(x, y, z) for x in steps for y in steps for z in steps if x or y or z])
    points = [motion.position[:, 1:]]
    for part in [p for p in scene.parts if p.body >= 0]:
        outer = part.mesh.vertices[(directions @ part.mesh.vertices.T).argmax(1)]
        R, p = motion.rotation[:, part.body + 1], motion.position[:, part.body + 1]
        points.append(np.einsum("fij,kj->fki", R, outer) + p[:, None])
    every = np.concatenate(points[1:] or points, axis=1)
    return every.min(1), every.max(1)


def _smooth(x: np.ndarray, times: np.ndarray, width: float = 0.5) -> np.ndarray:
    """Average over about `width` seconds; the trajectory is extrapolated before its start and after its end."""
    step = (times[-1] - times[0]) / (len(times) - 1)
    half = min(len(x) - 1, max(1, round(width / step)))
    weights = np.hanning(2 * half + 3)[1:-1]
    padded = np.concatenate([2 * x[:1] - x[half:0:-1], x, 2 * x[-1:] - x[-2 : -half - 2 : -1]])
    return np.stack([np.convolve(padded[:, k], weights / weights.sum(), "valid") for k in range(3)], axis=1)
