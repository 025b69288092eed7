"""A model in the browser: a slider for each joint, place and turn of free bodies, and the keyframes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..simulate.simulator import Simulator
from .browser import Viewer
from .frames import Frames, framing, poses
from .overlays import Overlays
from .scenery import scene_of


class Control(NamedTuple):
    """One control and the numbers of q it stands for: q[at : at + n] = read(value), value = write(q[at:])."""

    at: int
    handle: Any
    read: Callable[[Any], Any]
    write: Callable[[np.ndarray], Any]


class Posing:
    """The controls beside a model, and what they do."""

    def __init__(self, viewer: Viewer, sim: Simulator):
        self.viewer, self.sim, self.model = viewer, sim, sim.model
        self.q = self.model.keyframe().q
        scene, motion = scene_of(self.model, self.model.params), self._motion()
        self.framing = framing(scene, motion)
        viewer.put(scene, motion, self.framing)
        gui = viewer.server.gui
        start = self.model.default_keyframe
        self.keyframe = gui.add_dropdown("keyframe", list(self.model.keyframes), initial_value=start)
        self.controls = [c for i, kind in enumerate(self.model.joint_type) for c in self._controls(i)]
        self.overlays = Overlays(viewer, self.model, self._show)
        self.keyframe.on_update(lambda _: self._reset())
        for control in self.controls:
            control.handle.on_update(lambda _, control=control: self._changed(control))
        self._draw()

    def _motion(self) -> Frames:
        position, rotation = poses(self.sim, self.q[None], np.zeros((1, self.model.nv)))
        return Frames(np.zeros(1), position, rotation, [])

    def _show(self) -> None:
        self.overlays.draw(self.model.params, self.framing.radius)
        self._draw()

    def _draw(self) -> None:
        self.viewer.move(self._motion())

    def _changed(self, control: Control) -> None:
        new = np.atleast_1d(control.read(control.handle.value))
        self.q[control.at : control.at + len(new)] = new
        self._draw()

    def _reset(self) -> None:
        self.q = self.model.keyframe(self.keyframe.value).q
        for control in self.controls:
            control.handle.value = control.write(self.q[control.at :])
        self._draw()

    # -- controls of the joint of body i ---------------------------------------------------------------------------
    def _controls(self, i: int) -> list[Control]:
        joint = self.model.joint_kind(i)
        if joint.axial:
            return self._axial(i)
        turn = [self._turn(i, self.model.joint_q[i] + joint.straight)] if joint.quaternion else []
        return [*([self._spot(i)] if joint.floating else []), *turn]

    def _axial(self, i: int) -> list[Control]:
        """A slider within the joint's limits; without limits over a turn, or the size of the robot."""
        at = self.model.joint_q[i]
        now, wide = float(self.q[at]), np.pi if self.model.joint_kind(i).angular else self.framing.radius
        low, high = self.model.params.limit[i]
        low = float(min(low if np.isfinite(low) else -wide, now))
        high = float(max(high if np.isfinite(high) else wide, now, low + 1e-6))
        slider = self.viewer.server.gui.add_slider(
            self.model.joints[i], min=low, max=high, step=(high - low) / 400, initial_value=now
        )
        return [Control(at, slider, float, lambda q: float(np.clip(q[0], low, high)))]

    def _spot(self, i: int) -> Control:
        """Where a free body is."""
        at = self.model.joint_q[i]
        spot = self.viewer.server.gui.add_vector3(
            f"{self.model.joints[i]}: position / m", tuple(self.q[at : at + 3]), step=0.02 * self.framing.radius
        )
        return Control(at, spot, np.array, lambda q: tuple(q[:3]))

    def _turn(self, i: int, at: int) -> Control:
        """Axis times angle."""
        label = f"{self.model.joints[i]}: turn / rad"
        handle = self.viewer.server.gui.add_vector3(label, turn_of(self.q[at : at + 4]), step=0.05)
        return Control(at, handle, quaternion_of_turn, lambda q: turn_of(q[:4]))


def turn_of(quaternion: np.ndarray) -> tuple[float, float, float]:
    """Axis times angle of a quaternion w x y z."""
    length = float(np.linalg.norm(quaternion[1:]))
    angle = 2 * np.arctan2(length, quaternion[0])
    x, y, z = quaternion[1:] * (angle / length if length > 1e-12 else 2.0)
    return float(x), float(y), float(z)


def quaternion_of_turn(turn: Any) -> np.ndarray:
    """Quaternion w x y z of axis times angle."""
    angle = float(np.linalg.norm(turn))
    return np.array([np.cos(angle / 2), *(np.sinc(angle / 2 / np.pi) / 2 * np.asarray(turn))])
