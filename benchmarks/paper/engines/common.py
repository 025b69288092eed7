"""Inputs and timing common to the scripts of this folder. Needs NumPy only."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core: idle threads that spin (XLA's) would count as work
FOLDER = Path(sys.argv[1])
GIVEN = dict(np.load(FOLDER / "inputs.npz"))
Q, V, U, Q_BAR, V_BAR = (GIVEN[key] for key in ("q", "v", "u", "q_bar", "v_bar"))
DT, STEPS, REPEATS = 1e-3, len(U), 7


def resident(which: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(which + ":"))


def peak(call: Callable[[], Any]) -> float:
    """Return the peak memory of a call beyond that of the process, MB."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    base = resident("VmRSS")
    call()
    return (resident("VmHWM") - base) / 1e6


def spread(samples: list[float]) -> float:
    low, middle, high = np.percentile(samples, (25, 50, 75))
    return float((high - low) / 2 / middle)


def report(
    version: str,
    forward: Callable[[], Any],
    gradient: Callable[[], Any] | None,
    what: str,
    compile_s: float = 0.0,
    kept_MB: float = 0.0,
) -> None:
    """Time both functions, interleaved, and print the results.

    Args:
        forward: Returns the height of the trunk at the end.
        gradient: Returns the gradient of that height with respect to the controls; None if not available.
        kept_MB: Memory allocated in advance for the gradient, not part of the measured peak.
    """
    found: dict[str, Any] = {"version": version, "height": float(forward()), "compile_s": compile_s, "what": what}
    calls = {"forward": forward}
    if gradient:
        calls["gradient"] = gradient
        found["gradient"] = float(np.linalg.norm(np.asarray(gradient(), float)))
        if not np.isfinite(found["gradient"]):
            raise ValueError("the gradient is not finite")
        found["peak_MB"] = kept_MB + peak(gradient)
    samples: dict[str, list[float]] = {name: [] for name in calls}
    end = time.process_time() + 60.0
    while len(samples["forward"]) < REPEATS and (not samples["forward"] or time.process_time() < end):
        for name, call in calls.items():
            start = time.process_time()
            call()
            samples[name].append((time.process_time() - start) / STEPS * 1e6)
    for name, values in samples.items():
        found |= {f"{name}_us": float(np.median(values)), f"{name}_spread": spread(values)}
    print(json.dumps(found, allow_nan=False))
