"""Posing of a model in the browser: a slider for each joint, position and rotation of free bodies, and the keyframes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..simulate.simulator import Simulator
from .browser import Viewer
from .frames import Frames, framing, poses
from .panel import Control, Three
from .scenery import scene_of


class OfJoint(NamedTuple):
    """A control and the entries of q that it sets: q[at : at + n] = read(value), value = write(q[at:])."""

    at: int
    handle: Control
    read: Callable[[Any], Any]
    write: Callable[[np.ndarray], Any]


class Posing:
    """Controls beside a model, and their effects."""

    def __init__(self, viewer: Viewer, sim: Simulator):
        self.viewer, self.sim, self.model = viewer, sim, sim.model
        self.q = self.model.keyframe().q
        scene, motion = scene_of(self.model, self.model.params), self._motion()
        self.framing = framing(scene, motion)
        viewer.put(scene, motion, self.framing)
        start = self.model.default_keyframe
        self.keyframe = viewer.panel.choice("keyframe", self.model.keyframes, start)
        self.controls = [c for i, kind in enumerate(self.model.joint_type) for c in self._controls(i)]
        self.keyframe.on_update(self._reset)
        for control in self.controls:
            control.handle.on_update(partial(self._changed, control))
        self._draw()

    def _motion(self) -> Frames:
        position, rotation = poses(self.sim, self.q[None], np.zeros((1, self.model.nv)))
        return Frames(np.zeros(1), position, rotation, [])

    def _draw(self) -> None:
        self.viewer.move(self._motion())

    def _changed(self, control: OfJoint) -> None:
        new = np.atleast_1d(control.read(control.handle.value))
        self.q[control.at : control.at + len(new)] = new
        self._draw()

    def _reset(self) -> None:
        self.q = self.model.keyframe(self.keyframe.value).q
        for control in self.controls:
            control.handle.value = control.write(self.q[control.at :])
        self._draw()

    # -- controls of the joint of body i ---------------------------------------------------------------------------
    def _controls(self, i: int) -> list[OfJoint]:
        joint = self.model.joint_kind(i)
        if joint.axial:
            return self._axial(i)
        turn = [self._turn(i, self.model.joint_q[i] + joint.straight)] if joint.quaternion else []
        return [*([self._spot(i)] if joint.floating else []), *turn]

    def _axial(self, i: int) -> list[OfJoint]:
        """Add a slider within the joint's limits; without limits, over a full turn or the size of the robot."""
        at = self.model.joint_q[i]
        now, wide = float(self.q[at]), np.pi if self.model.joint_kind(i).angular else self.framing.radius
        low, high = self.model.params.limit[i]
        low = float(min(low if np.isfinite(low) else -wide, now))
        high = float(max(high if np.isfinite(high) else wide, now, low + 1e-6))
        slider = self.viewer.panel.slider(self.model.joints[i], low, high, now)
        return [OfJoint(at, slider, float, lambda q: float(np.clip(q[0], low, high)))]

    def _spot(self, i: int) -> OfJoint:
        """Add the controls of a free body's position."""
        at = self.model.joint_q[i]
        label, step = f"{self.model.joints[i]}: position / m", 0.02 * self.framing.radius
        return OfJoint(at, self.viewer.panel.vector(label, _first_three(self.q[at:]), step), np.array, _first_three)

    def _turn(self, i: int, at: int) -> OfJoint:
        """Rotation vector of a quaternion in q."""
        label = f"{self.model.joints[i]}: turn / rad"
        handle = self.viewer.panel.vector(label, turn_of(self.q[at : at + 4]), 0.05)
        return OfJoint(at, handle, quaternion_of_turn, lambda q: turn_of(q[:4]))


def _first_three(q: np.ndarray) -> Three:
    x, y, z = (float(x) for x in q[:3])
    return x, y, z


def turn_of(quaternion: np.ndarray) -> Three:
    """Rotation vector of a quaternion w x y z."""
    length = float(np.linalg.norm(quaternion[1:]))
    angle = 2 * np.arctan2(length, quaternion[0])
    x, y, z = quaternion[1:] * (angle / length if length > 1e-12 else 2.0)
    return float(x), float(y), float(z)


def quaternion_of_turn(turn: Any) -> np.ndarray:
    """Quaternion w x y z of a rotation vector."""
    angle = float(np.linalg.norm(turn))
    return np.array([np.cos(angle / 2), *(np.sinc(angle / 2 / np.pi) / 2 * np.asarray(turn))])
