"""Trajectories as a GIF or an MP4, rendered without a display."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ..errors import InputError
from .extras import need
from .studio import Studio


def pictures(studio: Studio, label: str) -> Iterator[np.ndarray]:
    """Yield all frames in order, a few rendered ahead by other threads, with a progress bar on the terminal."""
    from rich.console import Console
    from rich.progress import track

    frames, ahead = range(len(studio.motion.times)), 2 * (os.cpu_count() or 1)
    with ThreadPoolExecutor() as pool:
        drawn = [pool.submit(studio.picture, k) for k in frames[:ahead]]
        for k in track(frames, description=label, transient=True, console=Console(stderr=True)):
            drawn += [pool.submit(studio.picture, n) for n in frames[k + ahead : k + ahead + 1]]
            yield drawn.pop(0).result()


def save_gif(path: Path, studio: Studio, fps: float, label: str) -> None:
    """Write a GIF. One palette for all frames, so that static regions neither flicker nor need space."""
    Image = need("PIL.Image")
    some = np.linspace(0, len(studio.motion.times) - 1, 4).astype(int)
    sample = Image.fromarray(np.concatenate([studio.picture(k) for k in some]))
    palette = sample.quantize(256, method=Image.Quantize.MEDIANCUT)
    images = [
        Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in pictures(studio, label)
    ]
    images[0].save(path, format="gif", save_all=True, append_images=images[1:], duration=1000 / fps, loop=0)


def save_mp4(path: Path, studio: Studio, fps: float, label: str) -> None:
    """Write an MP4 in H.264, with ffmpeg."""
    width, height = studio.size
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "-"]
    wanted = ["-an", "-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4"]
    command = [ffmpeg(), "-y", "-loglevel", "error", *given, *wanted, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
        assert tool.stdin is not None
        try:
            for frame in pictures(studio, label):
                tool.stdin.write(frame.tobytes())
        except BrokenPipeError:  # it failed; its message is below
            pass
        _, said = tool.communicate()
    if tool.returncode:
        raise OSError(f"ffmpeg could not write the video: {said.decode(errors='replace').strip()}")


def ffmpeg() -> str:
    """Return the path of the system's ffmpeg, or of the one in imageio-ffmpeg."""
    try:
        return shutil.which("ffmpeg") or str(need("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise InputError(
            "an mp4 needs ffmpeg: install it, or pip install 'artigrad[view]'; a .gif or .html does not"
        ) from error


WRITERS = {".gif": save_gif, ".mp4": save_mp4}
