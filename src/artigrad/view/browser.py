"""In the browser, through viser: a page with the robot, and controls beside it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from .extras import need
from .look import ARROW, VIEW_ANGLE, arrows_of, camera_distance, tile_length, towards_camera
from .motion import Forces, Framing, quaternions
from .scene import Scene

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
        camera.position = frame.focus[0] + 1.4 * camera_distance(frame) * towards_camera()

    def pose(
        self, position: np.ndarray, rotation: np.ndarray, forces: Forces | None, scale: float, radius: float
    ) -> None:
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
