"""Visualization: in the browser, as a page that plays offline, as a video."""

from __future__ import annotations

import html
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..deprecation import module_getattr
from ..errors import InputError
from ..files import as_path, replacing, to_write
from ..model.model import Model
from ..simulate.simulator import Simulator
from .frames import frames_of, framing, params_of
from .scenery import scene_of

if TYPE_CHECKING:
    from ..simulate.results import Trajectory
    from .browser import Viewer

__getattr__ = module_getattr(__name__, {"play": "interact"})
FPS = {".html": 60.0, ".gif": 25.0, ".mp4": 30.0}  # default frame rate by file type


def view(model: Model, *, port: int | None = None, block: bool = True) -> Viewer:
    """Show a model in the browser, with a slider for every joint.

    Args:
        model: Robot.
        port: TCP port of the page on this machine. None: the first free one from 8080.
        block: Wait for Ctrl-C. False: return at once; `Viewer.stop()` closes the page.
    """
    from .browser import Viewer
    from .posing import Posing

    if not isinstance(model, Model):
        raise InputError(f"view takes a Model (ag.robots, ag.load, ModelBuilder), not {type(model).__name__}")
    viewer = Viewer(model.name, port)
    with viewer.stopped_on_error():
        Posing(viewer, Simulator(model))
    return viewer.run(block)


def interact(robot: Model | Simulator, *, port: int | None = None, block: bool = True) -> Viewer:
    """Simulate a robot live in the browser: play, pause, step, speed, sliders for its controls, reset to a keyframe; the mouse
    pulls bodies by a spring.

    Args:
        robot: Simulator, which sets contact law, dt and integrator, or a Model.
        port: See `view`.
        block: See `view`.
    """
    from .browser import Viewer
    from .live import Live

    if not isinstance(robot, Model | Simulator):
        raise InputError(f"interact takes a Simulator or a Model, not {type(robot).__name__}")
    sim = Simulator(robot) if isinstance(robot, Model) else robot
    if sim.device != "cpu":
        raise InputError("interact steps one robot on the CPU: make a Simulator(model)")
    viewer = Viewer(sim.model.name, port)
    with viewer.stopped_on_error():
        viewer.live = Live(viewer, sim)
    return viewer.run(block)


def show(traj: Trajectory, *, port: int | None = None, block: bool = True) -> Viewer:
    """Show a trajectory in the browser: play, pause, scrub, speed; a slider chooses the robot of a batch.

    Args:
        traj: Trajectory of one robot or of a batch.
        port: See `view`.
        block: See `view`.
    """
    from .browser import Viewer
    from .playback import Playback

    frames_of(traj)  # what cannot be shown is refused before a page opens
    viewer = Viewer(traj.simulator.model.name, port)
    with viewer.stopped_on_error():
        Playback(viewer, traj)
    return viewer.run(block)


def save(
    traj: Trajectory,
    path: str | os.PathLike[str],
    *,
    robot: int = 0,
    size: tuple[int, int] = (640, 480),
    fps: float | None = None,
    speed: float = 1.0,
) -> None:
    """Write a trajectory to a .html (a page that plays offline), .gif or .mp4 file.

    Args:
        traj: Trajectory of one robot or of a batch.
        path: File to write.
        robot: Index in the batch.
        size: (width, height) of a video, pixels, even numbers.
        fps: Frames per second. None: 60 for a page, 25 for .gif, 30 for .mp4.
        speed: Playback speed; 0.5 is half the speed of the robot.
    """
    path = as_path(path)
    ending = path.suffix.lower()
    if ending not in FPS:
        raise InputError(f"a trajectory is saved as {', '.join(FPS)}, .npz, .csv; not as '{path.name}'")
    to_write(path)
    fps = _positive("fps", FPS[ending] if fps is None else fps)
    speed = _positive("speed", speed)
    _check_size(size)
    model = traj.simulator.model
    motion = frames_of(traj, robot, fps / speed)
    scene = scene_of(model, params_of(traj, robot))
    frame = framing(scene, motion)
    with replacing(path) as unfinished:
        if ending == ".html":
            from .page import save_page

            save_page(unfinished, model.name, scene, motion, frame)
        else:
            from .studio import Studio
            from .video import WRITERS

            rate = speed * (len(motion.times) - 1) / motion.times[-1]  # less than fps where dt is long
            WRITERS[ending](unfinished, Studio(scene, motion, frame, size), rate, path.name)


def embedded(traj: Trajectory, height: int = 420) -> str:
    """Return an HTML frame with the page of a trajectory, for notebooks. height: pixels."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "motion.html"
        save(traj, page)
        text = page.read_text(encoding="utf-8")
    return f'<iframe srcdoc="{html.escape(text)}" style="width: 100%; height: {height}px; border: 0"></iframe>'


def _positive(name: str, value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
        raise InputError(f"{name} is a positive number, not {value!r}")
    return float(value)


def _check_size(size: Any) -> None:
    whole = isinstance(size, tuple | list) and len(size) == 2 and all(isinstance(n, int | np.integer) for n in size)
    if not whole or not all(16 <= n <= 4096 and n % 2 == 0 for n in size):
        raise InputError(f"size is (width, height) in pixels, even numbers from 16 to 4096, not {size!r}")
