"""Live simulation in the browser: play, pause, step, controls, keyframes, and bodies pulled with the mouse."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..simulate.simulator import Simulator
from .browser import Viewer
from .frames import Forces, Frames, framing, poses
from .panel import Control, as_vec3
from .scenery import scene_of

LONGEST = 0.05  # s of motion simulated per update: a slow machine runs below real time and stays responsive
PULL = 2 * np.pi * 2.0  # rad/s, natural frequency of the whole robot on the spring of the mouse
DAMPING_RATIO = 0.7
NOT_FINITE = "The state is not finite: reset it."


class Grip:
    """Body held by the mouse: its index, the point on it (body frame), and the target of the mouse (world frame)."""

    def __init__(self, body: int, place: np.ndarray, target: np.ndarray):
        self.body, self.place, self.target = body, place, target


class Live:
    """One simulated robot and its control panel."""

    def __init__(self, viewer: Viewer, sim: Simulator):
        self.viewer, self.sim, self.model = viewer, sim, sim.model
        self.lock = threading.Lock()
        self.state, self.u = sim.reset(), self.model.keyframe_control()
        self.grip: Grip | None = None
        self.behind = 0.0  # s, time still to be simulated
        self.was_playing = True  # when it was stopped by an error
        self.mass = float(self.model.params.mass.sum()) or 1.0
        scene, motion = scene_of(self.model, self.model.params), self._motion()
        self.framing = framing(scene, motion)
        weight = self.mass * max(float(np.linalg.norm(self.model.params.gravity)), 1e-3)
        viewer.put(scene, motion, self.framing, scale=0.6 * self.framing.radius / weight)
        self._add_controls()
        viewer.on_drag(self._dragged)
        viewer.every_tick(self._tick)
        self._draw()

    def _add_controls(self) -> None:
        panel = self.viewer.panel
        self.play = panel.checkbox("play", True)
        self.step = panel.button("step")
        self.speed = panel.slider("speed", 0.05, 2.0, 1.0)
        self.keyframe = panel.choice("keyframe", self.model.keyframes, self.model.default_keyframe)
        self.reset_button = panel.button("reset")
        self.note = panel.note()
        if self.model.nu:
            panel.heading("controls")
        self.sliders = [self._slider(k, name) for k, name in enumerate(self.model.actuators)]
        self.step.on_update(lambda: self.advance(self.sim.dt, pause=True))
        for control in (self.reset_button, self.keyframe):
            control.on_update(self.reset)

    def _slider(self, k: int, name: str) -> Control:
        """Add a slider over the range of the control; without one, over the values of the keyframes plus 1."""
        low, high = self.model.params.control_range[k]
        usual = 1.0 + max(abs(float(u[k])) for *_, u, _, _ in self.model.keyframes.values())
        low, high = (float(x) if np.isfinite(x) else side * usual for x, side in ((low, -1), (high, 1)))
        high = max(high, low + 1e-6)
        now = float(np.clip(self.u[k], low, high))
        slider = self.viewer.panel.slider(name, low, high, now)

        def changed() -> None:
            self.u[k] = slider.value

        slider.on_update(changed)
        return slider

    # -- motion ------------------------------------------------------------------------------------------------------------
    def reset(self) -> None:
        """Reset state and controls to the selected keyframe."""
        with self._errors_shown():
            with self.lock:
                self.state, self.behind, self.grip = self.sim.reset(self.keyframe.value), 0.0, None
                self.u = self.model.keyframe_control(self.keyframe.value)
                if self.note.visible:
                    self.note.visible, self.play.value = False, self.was_playing
            for slider, value in zip(self.sliders, self.u.tolist(), strict=True):
                slider.value = float(np.clip(value, slider.about["min"], slider.about["max"]))
            self._draw()

    def advance(self, seconds: float, *, pause: bool = False) -> None:
        """Simulate for some seconds, in whole steps; the remainder is carried over to the next call."""
        if pause:
            self.play.value = False
        with self._errors_shown():
            with self.lock:
                self.behind = min(self.behind + seconds, LONGEST)
                steps = int(self.behind / self.sim.dt + 1e-9)
                if steps and np.isfinite(self.state.q).all():
                    self.behind -= steps * self.sim.dt
                    grip = self.grip
                    wrench = None if grip is None else np.broadcast_to(self._pull(grip), (steps, self.model.nb, 6))
                    self.state = self.sim.rollout(self.state, np.tile(self.u, (steps, 1)), wrench=wrench).final
                    if not np.isfinite(np.concatenate(self.state)).all():
                        self._pause(NOT_FINITE)
            self._draw()

    @contextmanager
    def _errors_shown(self) -> Iterator[None]:
        """Context that shows an error on the page. It would end a thread of the viewer, and the viewer with it."""
        try:
            yield
        except Exception as error:
            self._pause(f"The simulation stopped: {error or type(error).__name__}. Reset it to continue.")

    def _pause(self, reason: str) -> None:
        """Stop the motion and show why; a reset continues."""
        if not self.note.visible:
            self.was_playing = self.play.value
        self.play.value, self.note.value, self.note.visible = False, reason, True

    def _tick(self, seconds: float) -> None:
        if self.play.value:
            self.advance(self.speed.value * seconds)

    # -- the mouse ---------------------------------------------------------------------------------------------------------
    def _dragged(self, event: Any) -> None:
        with self._errors_shown():
            self._drag(event if isinstance(event, dict) else {})

    def _drag(self, event: dict[str, Any]) -> None:
        """Hold a point of a body, move the point to which it is pulled, or let go."""
        body, place, target = event.get("body"), as_vec3(event.get("place")), as_vec3(event.get("target"))
        grip = self.grip
        if not isinstance(body, int) or not 0 <= body < self.model.nb or place is None or target is None:
            self.grip = None
        elif grip is None or grip.body != body:
            out = self.sim.outputs(self.state)
            self.grip = Grip(body, out.body_rotation[body].T @ (place - out.body_position[body]), np.array(target))
        else:
            grip.target = np.array(target)

    def _pull(self, grip: Grip) -> np.ndarray:
        """Return the wrenches, (nb, 6), of a spring and a damper between the mouse and the point that it holds: force, and
        torque about the center of mass."""
        out, i = self.sim.outputs(self.state), grip.body
        R, com = out.body_rotation[i], self.model.params.com[i]
        arm = R @ grip.place
        velocity = out.body_velocity[i] + np.cross(out.body_angular_velocity[i], arm)
        stiffness, damping = self.mass * PULL**2, 2 * DAMPING_RATIO * self.mass * PULL
        force = stiffness * (grip.target - out.body_position[i] - arm) - damping * velocity
        wrench = np.zeros((self.model.nb, 6))
        wrench[i] = np.concatenate([force, np.cross(arm - R @ com, force)])
        return wrench

    # -- drawing -----------------------------------------------------------------------------------------------------------
    def _motion(self) -> Frames:
        position, rotation = poses(self.sim, self.state.q[None], self.state.v[None])
        return Frames(np.zeros(1), position, rotation, [self._forces()] if self.sim.contact_names else [])

    def _forces(self) -> Forces:
        found = self.sim.contacts(self.sim.rollout(self.state, self.u[None]))
        touching = found.force[0].any(1)
        return Forces(found.point[0][touching].astype(float), found.force[0][touching].astype(float))

    def _draw(self) -> None:
        if np.isfinite(np.concatenate(self.state)).all():
            self.viewer.move(self._motion())
