"""In the browser, through viser: a page with the robot, and controls beside it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import InputError
from ..model.quaternions import of_matrix
from .extras import need
from .frames import Frames, Framing
from .look import ARROW, LIGHT, VIEW_ANGLE, arrows_of, camera_distance, force_scale, tile_length, towards_camera
from .scenery import Part, Scene

FIRST_PORT, PORTS = 8080, 100
RATE = 60.0  # updates a second
GLASS = 0.6  # how opaque bodies are that are seen through
POINT = (0.10, 0.55, 0.20)  # the colour of points that touch


class Viewer:
    """A page on this machine that shows one robot. `url` says where; `stop()` ends it."""

    def __init__(self, name: str, port: int | None):
        viser = need("viser")
        self.server = viser.ViserServer(host="127.0.0.1", port=_free_port(port), label=name, verbose=False)
        self.url = f"http://localhost:{self.server.get_port()}"
        scene = self.server.scene
        scene.set_up_direction("+z")
        # the light of films and pages; viser's own looks no better and takes long to start where there is no GPU
        scene.configure_environment_map(hdri=None)
        scene.configure_default_lights(enabled=False)
        scene.add_light_hemisphere("/sky", sky_color=(255, 255, 255), ground_color=(150, 155, 165), intensity=2.2)
        scene.add_light_directional("/lamp", intensity=2.4, cast_shadow=True, position=tuple(10 * LIGHT))
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(59, 127, 208))
        self._world = scene.add_frame("/world", show_axes=False)
        self._frames: dict[int, Any] = {}
        self._solid: list[tuple[Any, float]] = []  # handles of parts, and how opaque they are
        self._parts: list[tuple[int, Any]] = []  # the body of each
        self._arrows: Any = None
        self._points: Any = None
        self.show_points = False  # where bodies touch
        self.show_axes = False  # of bodies
        self.live: Any = None  # what moves the robot, where physics does
        self._ended = threading.Event()
        self._ticks: list[Callable[[float], None]] = []
        self._lock = threading.Lock()

    def put(self, scene: Scene, motion: Frames, frame: Framing, scale: float | None = None) -> None:
        """Show a motion in place of what was there; `pose` chooses the moment. scale: m/N, of the arrows of forces, by default
        such that most of the motion's fit."""
        with self._lock, self.server.atomic():
            for handle in self._frames.values():
                handle.remove()
            self._motion, self._framing = motion, frame
            self._scale = force_scale(motion, frame) if scale is None else scale
            self._add_parts(scene)
            self._add_floor()
            camera, focus = self.server.initial_camera, frame.focus[0]
            camera.fov, camera.look_at = float(VIEW_ANGLE), focus
            camera.position = focus + 1.4 * camera_distance(frame) * towards_camera()

    def _add_parts(self, scene: Scene) -> None:
        s = self.server.scene
        length = 0.25 * self._framing.radius
        axes = {"show_axes": False, "axes_length": length, "axes_radius": 0.04 * length}
        self._frames = {b: s.add_frame(f"/world/{b}", **axes) for b in range(-1, self._motion.position.shape[1] - 1)}
        self._parts = [(part.body, self.add_part(f"part{k}", part)) for k, part in enumerate(scene.parts)]
        self._solid = [(handle, part.rgba[3]) for (_, handle), part in zip(self._parts, scene.parts, strict=True)]

    def add_part(self, name: str, part: Part, *, wires: bool = False) -> Any:
        """Draw something more on a body, its edges alone with `wires`; what is returned has `remove()`."""
        *colour, opacity = part.rgba
        return self.server.scene.add_mesh_simple(
            f"/world/{part.body}/{name}",
            part.mesh.vertices,
            part.mesh.faces,
            color=_bytes(colour),
            opacity=opacity if opacity < 1 else None,
            wireframe=wires,
        )

    def see_through(self, wanted: bool) -> None:
        """Let bodies be a little transparent, where arrows of forces may be inside them."""
        for handle, opacity in self._solid:
            handle.opacity = min(opacity, GLASS) if wanted else opacity if opacity < 1 else None

    def on_drag(self, call: Callable[[int, Any], None]) -> None:
        """Have a function called with the body and viser's event while a body is dragged with the mouse."""
        for body, handle in self._parts:

            async def dragged(event: Any, body: int = body) -> None:
                call(body, event)

            handle.on_drag(dragged)

    def _add_floor(self) -> None:
        tile = tile_length(self._framing)
        self.server.scene.add_grid(
            "/world/floor",
            infinite_grid=True,
            cell_size=tile,
            section_size=5 * tile,
            cell_color=(205, 213, 224),
            section_color=(175, 187, 204),
            plane_color=(232, 236, 242),
            plane_opacity=1.0,
            shadow_opacity=0.35,
            fade_distance=30 * self._framing.radius,
            position=(0.0, 0.0, self._framing.floor),
        )

    def move(self, motion: Frames, *, forces: bool = True) -> None:
        """Show the first frame of another motion of the same scene."""
        with self._lock:
            self._motion = motion
        self.pose(0, forces=forces)

    def pose(self, k: int, *, forces: bool = True) -> None:
        """Show frame k. A robot that goes away stays in view: the world moves below it."""
        with self._lock, self.server.atomic():
            motion, focus = self._motion, self._framing.focus
            turn = of_matrix(motion.rotation[k])
            self._world.position = focus[0] - focus[k]
            for body, handle in self._frames.items():
                handle.position, handle.wxyz = motion.position[k, body + 1], turn[body + 1]
                handle.show_axes = self.show_axes and body >= 0
            if self._arrows is not None:
                self._arrows.remove()
                self._arrows = None
            arrows = (
                arrows_of(motion.forces[k], self._scale, self._framing.radius) if forces and motion.forces else None
            )
            self._pose_points(motion.forces[k].points if self.show_points and motion.forces else None)
            if arrows is not None and len(arrows.faces):
                self._arrows = self.server.scene.add_mesh_simple(
                    "/world/forces", arrows.vertices, arrows.faces, color=_bytes(ARROW)
                )

    def _pose_points(self, points: np.ndarray | None) -> None:
        if self._points is not None:
            self._points.remove()
            self._points = None
        if points is not None and len(points):
            size = 0.03 * self._framing.radius
            self._points = self.server.scene.add_point_cloud(
                "/world/touching", points, _bytes(POINT), point_size=size, point_shape="circle", precision="float32"
            )

    def every_tick(self, call: Callable[[float], None]) -> None:
        """Have a function called with the seconds since its last call, as long as the page is there."""
        self._ticks.append(call)

    def run(self, block: bool) -> Viewer:
        """Begin; with block, wait for Ctrl-C."""
        threading.Thread(target=self._loop, daemon=True, name="artigrad viewer").start()
        if block:
            print(f"open {self.url} in a browser; Ctrl-C ends it", flush=True)
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

    @contextmanager
    def stopped_on_error(self) -> Iterator[None]:
        """Close the page if what follows fails."""
        try:
            yield
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Close the page."""
        if not self._ended.is_set():
            self._ended.set()
            self.server.stop()


def _bytes(colour: Iterable[float]) -> tuple[int, ...]:
    return tuple(round(255 * float(x)) for x in colour)


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
