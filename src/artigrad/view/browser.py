"""In the browser, through viser: a page with the robot, and controls beside it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .extras import need
from .motion import Forces, Framing, Motion, contact_arrows, framing, motion_of, params_of, poses, quaternions
from .scene import Scene, scene_of
from .studio import ARROW, VIEW_ANGLE, arrows_of, camera_distance, force_scale, tile_length, towards_camera

if TYPE_CHECKING:
    from ..results import Trajectory
    from ..simulator import Simulator

FIRST_PORT, PORTS = 8080, 100
RATE = 60.0  # updates a second


class Viewer:
    """A page on this machine that shows one robot. `url` says where; `stop()` ends it."""

    def __init__(self, name: str, port: int | None):
        viser = need("viser")
        self.server = viser.ViserServer(host="127.0.0.1", port=_free_port(port), label=name, verbose=False)
        self.url = f"http://localhost:{self.server.get_port()}"
        self.server.scene.set_up_direction("+z")
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(59, 127, 208))
        self._frames: dict[int, Any] = {}
        self._arrows: Any = None
        self._ended = threading.Event()
        self._ticks: list[Callable[[float], None]] = []
        self._lock = threading.Lock()

    def put(self, scene: Scene, frame: Framing) -> None:
        """Draw a scene in place of what was there."""
        s = self.server.scene
        for handle in self._frames.values():
            handle.remove()
        self._frames = {b: s.add_frame(f"/robot/{b}", show_axes=False) for b in {p.body for p in scene.parts}}
        for k, part in enumerate(scene.parts):
            colour, opacity = tuple(round(255 * x) for x in part.rgba[:3]), part.rgba[3]
            s.add_mesh_simple(
                f"/robot/{part.body}/{k}",
                part.mesh.vertices,
                part.mesh.faces,
                color=colour,
                opacity=opacity if opacity < 1 else None,
            )
        tile = tile_length(frame)
        s.add_grid(
            "/floor",
            infinite_grid=True,
            cell_size=tile,
            section_size=5 * tile,
            cell_color=(205, 213, 224),
            section_color=(175, 187, 204),
            plane_color=(232, 236, 242),
            plane_opacity=1.0,
            shadow_opacity=0.35,
            fade_distance=30 * frame.radius,
            position=(0.0, 0.0, frame.floor),
        )
        camera = self.server.initial_camera
        camera.fov, camera.look_at = float(VIEW_ANGLE), frame.focus[0]
        camera.position = frame.focus[0] + 1.2 * camera_distance(frame) * towards_camera()

    def pose(self, position: np.ndarray, rotation: np.ndarray, forces: Forces | None, scale: float, radius: float) -> None:
        """Move all bodies: rows of the world, then of the bodies."""
        turn = quaternions(rotation)
        with self._lock, self.server.atomic():
            for body, handle in self._frames.items():
                handle.position, handle.wxyz = position[body + 1], turn[body + 1]
            if self._arrows is not None:
                self._arrows.remove()
                self._arrows = None
            if forces is not None and len(forces.points):
                mesh = arrows_of(forces, scale, radius)
                colour = tuple(round(255 * float(x)) for x in ARROW)
                self._arrows = self.server.scene.add_mesh_simple("/forces", mesh.vertices, mesh.faces, color=colour)

    def every_tick(self, call: Callable[[float], None]) -> None:
        """Have a function called with the seconds since its last call, as long as the page is there."""
        self._ticks.append(call)

    def run(self, block: bool) -> Viewer:
        """Begin; with block, wait for Ctrl-C."""
        from rich.console import Console

        threading.Thread(target=self._loop, daemon=True, name="artigrad viewer").start()
        Console().print(f"open [bold]{self.url}[/] in a browser" + ("; Ctrl-C ends it" if block else ""))
        if block:
            try:
                self._ended.wait()
            except KeyboardInterrupt:
                self.stop()
        return self

    def _loop(self) -> None:
        last = time.perf_counter()
        while not self._ended.wait(1 / RATE):
            now = time.perf_counter()
            for call in self._ticks:
                call(now - last)
            last = now

    def stop(self) -> None:
        """Close the page."""
        if not self._ended.is_set():
            self._ended.set()
            self.server.stop()


def _free_port(port: int | None) -> int:
    """The port asked for, if it is free; without one the first that is."""
    for candidate in range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else (port,):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
                return candidate
            except OSError:
                continue
            except (OverflowError, TypeError):
                raise InputError(f"a port is a whole number from 1 to 65535, not {port!r}") from None
    if port is None:
        raise InputError(f"ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are all in use; pass another port=")
    raise InputError(f"port {port} is in use or not allowed; pass another, or none to have a free one chosen")


# -- a trajectory ------------------------------------------------------------------------------------------------------
def playback_controls(viewer: Viewer, traj: Trajectory) -> None:
    """Play, time, speed, and the robot of a batch."""
    gui, model = viewer.server.gui, traj.simulator.model
    play = gui.add_checkbox("play", True)
    duration = traj.steps * traj.simulator.options.dt
    scrub = gui.add_slider("time / s", min=0.0, max=duration, step=duration / 1000, initial_value=0.0)
    speed = gui.add_slider("speed", min=0.05, max=3.0, step=0.05, initial_value=1.0)
    batch = len(np.atleast_2d(traj.final.q))
    shown: list[tuple[Motion, Framing, float]] = []

    def choose(robot: int) -> None:
        scene, motion = scene_of(model, params_of(traj, robot)), motion_of(traj, robot, RATE)
        frame = framing(scene, motion)
        viewer.put(scene, frame)
        shown[:] = [(motion, frame, force_scale(motion, frame))]
        draw()

    def draw() -> None:
        motion, frame, scale = shown[0]
        k = int(np.searchsorted(motion.times, scrub.value - 1e-9).clip(0, len(motion.times) - 1))
        forces = motion.forces[k] if motion.forces and arrows.value else None
        viewer.pose(motion.position[k], motion.rotation[k], forces, scale, frame.radius)

    def tick(seconds: float) -> None:
        if play.value:
            scrub.value = (scrub.value + speed.value * seconds) % duration

    if batch > 1:
        robot = gui.add_slider("robot", min=0, max=batch - 1, step=1, initial_value=0)
        robot.on_update(lambda _: choose(int(robot.value)))
    arrows = gui.add_checkbox("contact forces", True, visible=bool(motion_of(traj, 0, RATE).forces))
    choose(0)
    scrub.on_update(lambda _: draw())
    viewer.every_tick(tick)


# -- a model -----------------------------------------------------------------------------------------------------------
def pose_controls(viewer: Viewer, sim: Simulator) -> None:
    """A slider for each joint within its limits, place and turn of free bodies, and the keyframes."""
    model, gui = sim.model, viewer.server.gui
    state = {"q": model.keyframe().q}
    scene = scene_of(model, model.params)
    controls: list[tuple[Any, Callable[[np.ndarray], Any]]] = []

    def draw() -> None:
        q, v = state["q"][None], np.zeros((1, model.nv))
        position, rotation = poses(sim, q, v)
        forces = contact_arrows(sim, q, v, model.keyframe_control()[None])
        motion = Motion(np.zeros(1), position, rotation, forces)
        viewer.pose(position[0], rotation[0], forces[0] if forces else None, force_scale(motion, frame), frame.radius)

    def place(a: int, handle: Any, read: Callable[[Any], Any]) -> None:
        def changed(_: Any) -> None:
            new = np.atleast_1d(read(handle.value))
            state["q"][a : a + len(new)] = new
            draw()

        handle.on_update(changed)

    position, rotation = poses(sim, state["q"][None], np.zeros((1, model.nv)))
    frame = framing(scene, Motion(np.zeros(1), position, rotation, []))
    viewer.put(scene, frame)
    names = [k for k in model.keyframes]
    start = "home" if "home" in names else "zero"
    chosen = gui.add_dropdown("keyframe", names, initial_value=start)

    @chosen.on_update
    def _(_: Any) -> None:
        state["q"] = model.keyframe(chosen.value).q
        for handle, write in controls:
            handle.value = write(state["q"])
        draw()

    for i, joint in enumerate(model.joints):
        for offset, handle, read, write in _controls(gui, sim, i, joint, state["q"], frame):
            a = model.joint_q[i] + offset
            controls.append((handle, lambda q, a=a, write=write: write(q[a:])))
            place(a, handle, read)
    draw()


def _controls(gui: Any, sim: Simulator, i: int, name: str, q: np.ndarray, frame: Framing) -> list[Any]:
    """For one joint: offset in its part of q, the control, numbers of q from its value, its value from q."""
    kind, at = sim.model.joint_type[i], q[sim.model.joint_q[i] :]
    if kind in ("revolute", "prismatic"):
        low, high = _range(sim, i, kind, float(at[0]), frame)
        slider = gui.add_slider(name, min=low, max=high, step=(high - low) / 400, initial_value=float(at[0]))
        return [(0, slider, float, lambda q: float(q[0]))]
    offset = {"free": 3, "spherical": 0}.get(kind)
    if offset is None:
        return []
    out = []
    if kind == "free":
        step = 0.01 * frame.radius
        spot = gui.add_vector3(f"{name}: position / m", tuple(at[:3]), step=step)
        out.append((0, spot, np.array, lambda q: tuple(q[:3])))
    turn = gui.add_vector3(f"{name}: turn / rad", _turn(at[offset : offset + 4]), step=0.05)
    out.append((offset, turn, _quaternion, lambda q: _turn(q[:4])))
    return out


def _range(sim: Simulator, i: int, kind: str, now: float, frame: Framing) -> tuple[float, float]:
    """The joint's limits; without one, a turn or the size of the robot; always with room for where it is now."""
    free = np.pi if kind == "revolute" else frame.radius
    low, high = sim.model.params.limit[i]
    low, high = (low if np.isfinite(low) else -free), (high if np.isfinite(high) else free)
    return float(min(low, now)), float(max(high, now, low + 1e-6))


def _turn(quaternion: np.ndarray) -> tuple[float, float, float]:
    """Axis times angle."""
    w, u = quaternion[0], quaternion[1:]
    length = float(np.linalg.norm(u))
    angle = 2 * np.arctan2(length, w)
    x, y, z = u * (angle / length if length > 1e-12 else 2.0)
    return float(x), float(y), float(z)


def _quaternion(turn: Any) -> np.ndarray:
    angle = float(np.linalg.norm(turn))
    return np.array([np.cos(angle / 2), *(np.sinc(angle / 2 / np.pi) / 2 * np.asarray(turn))])
