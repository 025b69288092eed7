"""One measurement in a separate process: `python -m benchmarks.paper.worker TOOL ROBOTS STEPS SECONDS RESULT.npz`.

Prints JSON with preparation times (import, trace, compile), peak memory of one gradient beyond the prepared process, and
CPU seconds of forward and backward, repeated within the time limit. The last state and the gradient are written to a file.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import build, scene
from .tools import TOOLS, Tool

REPEATS = 100


def status(which: str) -> int:
    """Return bytes of this process in memory: VmRSS now, VmHWM maximum since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{which}:"))


def cpu() -> float:
    """Return CPU seconds of this process and of compilers that it ran."""
    return sum(os.times()[:4])


def forget_peak() -> None:
    """Release free memory, and reset the peak."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def gradient(tool: Tool) -> tuple[np.ndarray, Any, dict[str, float]]:
    """Return last state, cotangents, and the CPU seconds of forward and backward."""
    times = [time.process_time()]
    x = tool.forward()
    times.append(time.process_time())
    bars = tool.backward()
    times.append(time.process_time())
    forward, backward = np.diff(times)
    return x, bars, {"forward": forward, "backward": backward - (forward if tool.again else 0.0)}


def forward_only(tool: Tool) -> dict[str, float]:
    start = time.process_time()
    tool.forward()
    return {"forward": time.process_time() - start}


def repeated(once: Callable[[], dict[str, float]], samples: list[dict[str, float]], seconds: float) -> list[Any]:
    """Return the samples, and more within the time limit."""
    samples, end = samples or [once()], time.process_time() + seconds
    while len(samples) < REPEATS and time.process_time() + sum(samples[-1].values()) < end:
        samples.append(once())
    return samples


def measure(name: str, robots: int, steps: int, seconds: float, result: Path) -> dict[str, Any]:
    """Measure one cell of the table."""
    robot = scene.model(robots)
    given = scene.inputs(robot, steps)
    tool = TOOLS[name](robot, given)
    ready = {"seconds": cpu() + sum(build.kept_seconds), "MB": status("VmHWM") / 1e6}
    found: dict[str, Any] = {"version": tool.version, "ready": ready}
    if tool.forward_only:
        return found | {"samples": repeated(partial(forward_only, tool), [], seconds)}
    forget_peak()
    base = status("VmRSS")
    x, bars, sample = gradient(tool)
    peak, samples = (status("VmHWM") - base) / 1e6, [sample]
    x_bar, u_bar = bars
    nq = robot.nq
    q_bar = scene.tangential(robot, given.q, x_bar[:nq])
    np.savez(result, x=x, gradient=np.concatenate([q_bar, x_bar[nq:], u_bar.ravel()]))
    del x, bars, x_bar, u_bar, q_bar
    return found | {"peak_MB": peak, "samples": repeated(lambda: gradient(tool)[2], samples, seconds)}


if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core: waiting threads of XLA would count as CPU time
    tool_name, robot_count, step_count, budget, file = sys.argv[1:]
    print(json.dumps(measure(tool_name, int(robot_count), int(step_count), float(budget), Path(file))))
