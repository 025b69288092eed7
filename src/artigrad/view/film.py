"""A motion as a GIF or an MP4, drawn without a display."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ..errors import InputError
from .extras import need
from .motion import Framing, Motion
from .scene import Scene
from .studio import Studio


def pictures(scene: Scene, motion: Motion, framing: Framing, size: tuple[int, int], label: str) -> Iterator[np.ndarray]:
    """All frames (height, width, 3) in bytes, in order, with a bar of progress on the terminal."""
    from rich.console import Console
    from rich.progress import track

    studio, count = Studio(scene, motion, framing, size), len(motion.times)
    ahead = 4 * (os.cpu_count() or 1)
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(studio.picture, k) for k in range(min(ahead, count))]
        for k in track(range(count), description=label, transient=True, console=Console(stderr=True)):
            picture = waiting.pop(0).result()
            if k + ahead < count:
                waiting.append(pool.submit(studio.picture, k + ahead))
            yield picture


def save_gif(path: Path, frames: Iterable[np.ndarray], fps: float) -> None:
    """One palette for all frames, from the first, so that what stands still does not flicker and costs nothing."""
    Image = need("PIL.Image")
    images, palette = [], None
    for frame in frames:
        image = Image.fromarray(frame)
        palette = palette or image.quantize(256, method=Image.Quantize.MEDIANCUT)
        images.append(image.quantize(palette=palette, dither=Image.Dither.NONE))
    images[0].save(
        path, format="gif", save_all=True, append_images=images[1:], duration=1000 / fps, loop=0, optimize=False
    )


def save_mp4(path: Path, frames: Iterable[np.ndarray], fps: float) -> None:
    """H.264, through ffmpeg."""
    tool = _ffmpeg()
    pipe: subprocess.Popen[bytes] | None = None
    for frame in frames:
        if pipe is None:
            pipe = _start(tool, path, frame, fps)
        try:
            pipe.stdin.write(frame.tobytes())  # type: ignore[union-attr]
        except BrokenPipeError:
            break
    assert pipe is not None
    _, said = pipe.communicate()
    if pipe.returncode:
        raise OSError(f"ffmpeg could not write {path}: {said.decode(errors='replace').strip()}")


def _start(tool: str, path: Path, frame: np.ndarray, fps: float) -> subprocess.Popen[bytes]:
    height, width = frame.shape[:2]
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-"]
    wanted = ["-an", "-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4"]
    command = [tool, "-y", "-loglevel", "error", *given, *wanted, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def _ffmpeg() -> str:
    """The one of the system, or the one that imageio-ffmpeg brings."""
    found = shutil.which("ffmpeg")
    if found:
        return found
    try:
        return str(need("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise InputError(
            "an mp4 needs ffmpeg: install it, or pip install 'artigrad[view]'; a .gif or .html does not"
        ) from error
