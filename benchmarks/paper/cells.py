"""Cells of the first table: their list, their run in a separate process, and their results."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..probe import ROOT
from .tools import IMPLICIT, OURS, PLAIN, TOOLS, UNROLLED

STATE, GRADIENT = 1e-9, 1e-6  # how well tools must agree: absolute, and relative to the largest entry
LONG = 20.0  # CPU seconds of a process that is not run again in later rounds


class Scale(NamedTuple):
    """Size of the benchmark."""

    rounds: int
    one: tuple[int, ...]  # steps of one robot
    ten: tuple[int, ...]
    kept: int  # steps of the checkpoint ablation
    seconds: float  # of CPU, for repeats in a process
    limit: float  # CPU seconds of a process


FULL = Scale(2, (50, 100, 500, 1000, 5000), (1000, 3000, 5000), 5000, 1.0, 600.0)
QUICK = Scale(1, (50, 1000), (1000,), 1000, 1.0, 60.0)
EVERY = tuple(f"every {k}. state" for k in range(1, 6))
AUTODIFF = tuple(name for name in TOOLS if name not in (OURS, IMPLICIT, PLAIN, *EVERY))


@dataclass
class Cell:
    """One tool with a number of robots and steps. Times are CPU seconds of a whole rollout, one per repeat."""

    tool: str
    robots: int
    steps: int
    why: str = ""  # no figures
    version: str = ""
    ready_s: float = 0.0
    ready_MB: float = 0.0
    process_s: float = 0.0
    peaks: list[float] = field(default_factory=list)  # MB
    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)
    state_difference: float | None = None
    gradient_difference: float | None = None

    @property
    def key(self) -> tuple[str, int, int]:
        return self.tool, self.robots, self.steps

    def us(self, way: str) -> float:
        """Return the median time per step, us; NaN without times."""
        samples = getattr(self, way)
        return float(np.median(samples)) / self.steps * 1e6 if samples else float("nan")

    def spread(self, way: str) -> float:
        """Return half the interquartile range, relative to the median."""
        low, middle, high = np.percentile(getattr(self, way), (25, 50, 75))
        return float((high - low) / 2 / middle)

    @property
    def peak(self) -> float:
        return float(np.median(self.peaks)) if self.peaks else float("nan")

    @classmethod
    def of(cls, found: dict[str, Any]) -> Cell:
        """Return a cell of a saved result."""
        return cls(**{f.name: found[f.name] for f in fields(cls)})

    def json(self) -> dict[str, Any]:
        figures = {}
        if self.forward:
            figures["forward_us"], figures["forward_spread"] = self.us("forward"), self.spread("forward")
        if self.backward:
            figures["backward_us"], figures["backward_spread"] = self.us("backward"), self.spread("backward")
        if self.peaks:
            figures["peak_MB"] = self.peak
        return asdict(self) | figures


def all_cells(scale: Scale, tools: tuple[str, ...], whole: bool = True) -> list[Cell]:
    """Return all cells, those of artigrad first, which are the reference; without `whole`, of artigrad only the needed ones."""
    reference = (OURS, IMPLICIT) if whole else (OURS,)
    cells = [Cell(name, 1, n) for n in scale.one for name in ((OURS, IMPLICIT, PLAIN) if whole else (OURS,))]
    cells += [Cell(name, 10, n) for n in scale.ten for name in reference]
    cells += [Cell(name, robots, scale.kept) for robots in (1, 10) for name in EVERY if whole]
    cells += [Cell(name, 1, n) for name in tools for n in scale.one]
    return cells + [Cell(name, 10, n) for name in tools for n in scale.ten]


# -- running -----------------------------------------------------------------------------------------------------------
class Failed(Exception):
    """Error of a process that did not finish, with the reason."""


def run(command: list[str], limit: float, memory_GB: float, env: dict[str, str] | None = None) -> tuple[str, float]:
    """Return the output of a process and its CPU seconds.

    The process and its children are stopped beyond `limit` CPU seconds or `memory_GB`.
    """
    before = os.times()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=out, stderr=errors, text=True, env=env, start_new_session=True
        )
        try:
            while process.poll() is None:
                time.sleep(0.05)
                seconds, resident = _use(process.pid)
                if seconds > limit:
                    raise Failed(f"over {limit / 60:g} min")
                if resident > memory_GB * 1e9:
                    raise Failed(f"over {memory_GB:g} GB")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        after = os.times()
        out.seek(0)
        errors.seek(0)
        if process.returncode:
            lines = errors.read().strip().splitlines() or [f"ended with {process.returncode}"]
            named = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Missing)\b", line)]
            raise Failed((named or lines)[-1][:200])
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        return out.read(), spent


def _use(session: int) -> tuple[float, int]:
    """Return CPU seconds and resident bytes of all processes of a session: a tool, and compilers that it started."""
    ticks = pages = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):  # the process ended
            continue
        if int(fields[3]) == session:
            ticks += sum(int(x) for x in fields[11:15])  # own and of children that ended, user and system
            pages += int(fields[21])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")


def measure(cell: Cell, scale: Scale, memory_GB: float, results: Path) -> None:
    """Run a cell once more, and compare its results with those of artigrad."""
    file = results / f"{list(TOOLS).index(cell.tool)}-{cell.robots}-{cell.steps}.npz"
    cache = {"ARTIGRAD_CACHE": str(results / "cache")}  # empty at first: what compiles ours is counted too
    worker = [sys.executable, "-m", "benchmarks.paper.worker", cell.tool, str(cell.robots), str(cell.steps)]
    try:
        text, spent = run([*worker, str(scale.seconds), str(file)], scale.limit, memory_GB, os.environ | cache)
    except Failed as failed:
        cell.why = str(failed)
        return
    found = json.loads(text.splitlines()[-1])
    cell.version, cell.process_s = found["version"], spent
    cell.ready_s = max(cell.ready_s, found["ready"]["seconds"])  # later rounds find compiled code
    cell.ready_MB = max(cell.ready_MB, found["ready"]["MB"])
    cell.forward += [sample["forward"] for sample in found["samples"]]
    cell.backward += [sample["backward"] for sample in found["samples"] if "backward" in sample]
    cell.peaks += [found["peak_MB"]] if "peak_MB" in found else []
    if file.exists():
        compare(cell, file, results / f"0-{cell.robots}-{cell.steps}.npz")


def compare(cell: Cell, file: Path, ours: Path) -> None:
    """Compare state and gradient with those of artigrad: only tools that agree are timed.

    With exactly solved contact a step differs.
    """
    with np.load(file) as theirs, np.load(ours) as reference:
        scale = np.abs(reference["gradient"]).max()
        cell.state_difference = float(np.abs(theirs["x"] - reference["x"]).max())
        cell.gradient_difference = float(np.abs(theirs["gradient"] - reference["gradient"]).max() / scale)
    if cell.tool != IMPLICIT and not (cell.state_difference <= STATE and cell.gradient_difference <= GRADIENT):
        cell.why = f"disagrees: state by {cell.state_difference:.1e}, gradient by {cell.gradient_difference:.1e}"
        cell.forward, cell.backward, cell.peaks = [], [], []


def hopeless(cell: Cell, cells: list[Cell], limit: float) -> str:
    """Return the reason to skip a cell, or "": a smaller one failed, or compiled too long for more operations."""

    def within(other: Cell) -> bool:
        return other.tool == cell.tool and other.robots <= cell.robots and other.steps <= cell.steps

    for other in cells:
        if other is not cell and other.why and within(other):
            robots = "" if other.robots == cell.robots else " of one robot"
            return other.why if other.why.startswith("as") else f"as {other.steps} steps{robots}: {other.why}"
        more = cell.robots if cell.tool in UNROLLED and other.robots == 1 else 1
        if other.ready_s * more > limit and within(other):
            return f"over {limit / 60:g} min: {other.ready_s:.0f} s to be ready for one robot, {more} times the code"
    return ""
