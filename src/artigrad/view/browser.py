"""Local web server of the viewer, and its messages: the page receives server-sent events from `/events` and posts the
actions of its user to `/act`. It uses Python's standard library only, and the same player as saved pages.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from ..errors import InputError
from .frames import Frames, Framing
from .page import Drawing, drawing, moment, page
from .panel import Panel
from .scenery import Scene
from .style import force_scale

FIRST_PORT, PORTS = 8080, 100
RATE = 60.0  # updates per second
LONGEST_POST = 1 << 16  # bytes
KEEPALIVE = 5.0  # s after which an empty message is sent, so that connections to closed pages are found and ended
PATIENCE = 10.0  # s that one read or write may take; the connection of a client that is slower is closed
LOCAL = ("localhost", "127.0.0.1", "::1")
ONLY_LOCAL = "this page is served to localhost only"


class Viewer:
    """A page on this machine that shows one robot.

    Attributes:
        url: Address of the page.

    `stop()` closes the page.
    """

    def __init__(self, name: str, port: int | None):
        self.name = name
        self._changed = threading.Condition()
        self._count, self._message, self._values = (
            0,
            dict[str, str](),
            0,
        )  # number of changes; latest frame; changes of values
        self._ended = threading.Event()
        self._ticks: list[Callable[[float], None]] = []
        self._drag: Callable[[Any], None] | None = None
        self.panel = Panel(self._values_changed)
        self.robots: Callable[[int], Drawing] | None = None  # trajectory of one batch element, if any
        self.live: Any = None  # live simulation, if any
        self._server = _Server(("127.0.0.1", _free_port(port)), _Request)
        self._server.viewer = self
        self.url = f"http://localhost:{self._server.server_address[1]}"

    # -- drawing ------------------------------------------------------------------------------------------------------------
    def put(self, scene: Scene, motion: Frames, frame: Framing, scale: float | None = None) -> None:
        """Show the first frame of a trajectory; `move` shows others of the same scene. scale: length of force arrows,
        m/N."""
        self._scale = force_scale(motion, frame) if scale is None else scale
        self._framing, self._middle = frame, _middle(motion)
        self.show(drawing(scene, motion, frame, self._scale))
        self._shown.header["live"] = True

    def show(self, shown: Drawing, count: int = 1) -> None:
        """Show a trajectory that the page plays by itself: batch element 0 of `count`."""
        self._shown = shown
        self._shown.header["robots"] = count

    def move(self, motion: Frames) -> None:
        """Show the first frame of another trajectory. The camera follows a robot that moves out of the image."""
        way = _middle(motion) - self._middle
        far = float(np.linalg.norm(way))
        focus = self._framing.focus[0] + way * max(0.0, 1.0 - self._framing.radius / max(far, 1e-9))
        with self._changed:
            self._message = moment(motion, focus, self._scale)
            self._count += 1
            self._changed.notify_all()

    def _values_changed(self) -> None:
        with self._changed:
            self._values += 1
            self._count += 1
            self._changed.notify_all()

    # -- messages -------------------------------------------------------------------------------------------------------------
    def html(self) -> str:
        """Return the initial page."""
        header = {**self._shown.header, "panel": self.panel.described(), "served": True}
        return page(self.name, Drawing(header, self._shown.data))

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages to a page: the latest frame and the values of the panel, after each change."""
        count = values = -1
        while not self._ended.is_set():
            with self._changed:
                self._changed.wait_for(lambda sent=count: self._count != sent or self._ended.is_set(), KEEPALIVE)  # type: ignore[misc]
                message: dict[str, Any] = dict(self._message) if self._count != count else {}
                new, count = self._values != values, self._count
                values = self._values
            yield message | ({"values": self.panel.values()} if new else {})

    def receive(self, message: Any) -> None:
        """Handle a message from the page: the index of a control and its value, or a body dragged by the mouse."""
        if not isinstance(message, dict):
            return
        number = message.get("control")
        if isinstance(number, int) and 0 <= number < len(self.panel.controls):
            self.panel.controls[number].receive(message.get("value"))
        elif "drag" in message and self._drag is not None:
            self._drag(message["drag"])

    def on_drag(self, call: Callable[[Any], None]) -> None:
        """Register a function that is called while a body is dragged with the mouse: with the body, the point where it was
        grabbed and the target of the mouse, both in world coordinates; without a body when it is released."""
        self._drag = call

    def every_tick(self, call: Callable[[float], None]) -> None:
        """Register a function that is called with the seconds since its last call until the page is closed."""
        self._ticks.append(call)

    # -- lifetime -------------------------------------------------------------------------------------------------------------
    def run(self, block: bool) -> Viewer:
        """Start serving; with `block`, wait for Ctrl-C."""
        for work in (self._server.serve_forever, self._loop):
            threading.Thread(target=work, daemon=True, name="artigrad viewer").start()
        self._server.serving = True
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
        """Context that closes the page if its body raises."""
        try:
            yield
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Close the page."""
        if not self._ended.is_set():
            self._ended.set()
            with self._changed:
                self._changed.notify_all()
            if self._server.serving:
                self._server.shutdown()
            self._server.server_close()


def _middle(motion: Frames) -> np.ndarray:
    """Return the mean position of the bodies, projected onto the floor."""
    x, y, _ = motion.position[0, 1:].sum(0) / max(motion.position.shape[1] - 1, 1)
    return np.array([x, y, 0.0])


class _Server(ThreadingHTTPServer):
    """HTTP server with one thread per request."""

    daemon_threads = True
    viewer: Viewer
    serving = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors of the viewer, but not of connections that clients end."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Request(BaseHTTPRequestHandler):
    """Handler of the requests of a page."""

    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def do_GET(self) -> None:
        if not self._is_local():
            return self._answer("text/plain; charset=utf-8", ONLY_LOCAL, 403)
        viewer, path = self.server.viewer, urlsplit(self.path).path
        if path == "/":
            self._answer("text/html; charset=utf-8", viewer.html())
        elif path == "/events":
            self._send_events(viewer)
        elif path.startswith("/robot/") and path[7:].isdecimal() and len(path) < 20 and viewer.robots is not None:
            try:
                self._answer("application/json", viewer.robots(int(path[7:])).json())
            except InputError as problem:
                self._answer("text/plain; charset=utf-8", str(problem), 404)
        else:
            self._answer("text/plain; charset=utf-8", "no such page", 404)

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > LONGEST_POST:
            self.close_connection = True
            return self._answer("text/plain; charset=utf-8", "too long", 413)
        data, origin = self.rfile.read(int(size)), self.headers.get("Origin")
        if not self._is_local():
            return self._answer("text/plain; charset=utf-8", ONLY_LOCAL, 403)
        if urlsplit(self.path).path != "/act" or (origin and urlsplit(origin).netloc != self.headers.get("Host")):
            return self._answer("text/plain; charset=utf-8", "not from this page", 403)
        try:
            messages = json.loads(data)
        except (ValueError, RecursionError):
            messages = []
        for message in messages if isinstance(messages, list) else []:
            self.server.viewer.receive(message)
        self._answer("text/plain; charset=utf-8", "")

    def _is_local(self) -> bool:
        """Return whether the request names this machine. Another name that resolves to this machine belongs to a page of
        somebody else (DNS rebinding)."""
        try:
            return urlsplit(f"//{self.headers.get('Host', '')}").hostname in LOCAL
        except ValueError:
            return False

    def _answer(self, kind: str, text: str, status: int = 200) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def _send_events(self, viewer: Viewer) -> None:
        """Send events until the viewer or the page is closed."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        with suppress(OSError):
            for message in viewer.messages():
                self.wfile.write(f"data: {json.dumps(message, separators=(',', ':'))}\n\n".encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def _free_port(port: int | None) -> int:
    """Return the given port if it is free, or the first free one if none is given."""
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
