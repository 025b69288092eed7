"""Reports: tables for the terminal and for Markdown, targets, files; and the tables of the engine benchmark."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import mujoco
import numpy as np
import pinocchio as pin
from rich.table import Table

import artigrad as ag
from artigrad.compiler import widest
from artigrad.compiler.compile import host

from .probe import ROOT
from .rows import CHAINS, FLOATS, FORWARD, GRADIENT, STEP, Row, Rows


class Sheet(NamedTuple):
    """Table for the terminal and for the report."""

    title: str
    columns: list[str]
    lines: list[list[str]]

    def rich(self) -> Table:
        table = Table(title=self.title, title_justify="left", title_style="bold")
        for k, name in enumerate(self.columns):
            table.add_column(name, justify="right" if k else "left")
        for line in self.lines:
            table.add_row(*line)
        return table

    def markdown(self) -> str:
        rule = [":--", *["--:"] * (len(self.columns) - 1)]
        lines = [f"| {' | '.join(line)} |" for line in (self.columns, rule, *self.lines)]
        return "\n".join([f"## {self.title}", "", *lines, ""])


def machine() -> dict[str, Any]:
    """Return machine and versions."""
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": f"{cpu[0].split(':')[1].strip() if cpu else platform.processor()} ({host.name})",
        "cores": len(os.sched_getaffinity(0)),
        "vector": f"{8 * host.vector_bytes} bit: {widest('f64')} f64 or {widest('f32')} f32",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "llvmlite": llvmlite.__version__,
        "mujoco": mujoco.__version__,
        "pinocchio": pin.__version__,
        "artigrad": f"{ag.__version__} ({_commit()})",
    }


def _commit() -> str:
    """Return the commit of the library, and whether the working tree differs."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src")
    return (git("rev-parse", "--short", "HEAD") or "no commit") + (" with changes" if changed else "")


def row_sheet(title: str, rows: list[Row], step: Row) -> Sheet:
    columns = ["", "robots", "steps", "type", "threads", "median, us", "min, us", "of mj_step"]

    def line(r: Row) -> list[str]:
        run = [r.name, str(r.robots), str(r.units // r.robots), r.dtype, str(r.threads)]
        return [*run, _figure(r.median), _figure(r.least), f"{r.median / step.median:.3f} x"]

    return Sheet(title, columns, [line(r) for r in rows])


def factor_sheet(rows: Rows) -> Sheet:
    lines = []
    for robots in (1, 64):
        articulated, sparse = (rows[name, robots, "f64", 1].median for name in (FORWARD, f"{FORWARD}, sparse"))
        name = "one robot" if robots == 1 else f"{robots} robots"
        lines.append([name, _figure(articulated), _figure(sparse), f"{sparse / articulated:.2f} x"])
    title = "Factor of the mass matrix: forward, us per robot and step"
    return Sheet(title, ["", "articulated", "sparse", "ratio"], lines)


def chain_sheet(rows: Rows) -> Sheet:
    names = (FORWARD, GRADIENT, f"{FORWARD}, sparse")
    lines = [[str(n), *(_figure(rows[f"chain of {n}: {x}", 1, "f64", 1].median) for x in names)] for n in CHAINS]
    return Sheet("Chains: us per link and step, one robot", ["links", *names], lines)


def start_sheet(start: dict[str, float], times: int) -> Sheet:
    texts = {
        "cold": "process start to first gradient, empty cache",
        "warm": "process start to first gradient, filled cache",
        "import": "import artigrad",
        "python": "start of Python itself",
    }
    title = f"First gradient (medians of {times})"
    return Sheet(title, ["", "s"], [[text, f"{start[k]:.2f}"] for k, text in texts.items()])


def memory_sheet(memory: dict[str, Any]) -> Sheet:
    long, rollout = memory["long"], memory["rollout_us"]
    what = f"gradient over {memory['long_steps']:,} steps, Binomial({memory['long_memory']})"
    lines = [
        ["stored per step and robot", f"{memory['bytes_per_step']} bytes"],
        ["rollout of 64 x 200, memory recycled", f"{rollout['recycled']:.3f} us"],
        ["rollout of 64 x 200, fresh memory", f"{rollout['fresh']:.3f} us"],
        [f"{what}: time", f"{long['seconds']:.1f} s"],
        [f"{what}: peak beyond process, controls and their gradient", f"{long['beyond_MB']:.1f} MB"],
        ["the controls of that gradient", f"{long['controls_MB']:.1f} MB"],
    ]
    return Sheet("Memory (separate processes)", ["", "figure"], lines)


def at_most(what: str, reached: float, limit: float, unit: str = "x") -> dict[str, Any]:
    """Return an upper bound target with the measured value."""
    return {"what": what, "reached": reached, "sign": "<=", "limit": limit, "unit": unit, "met": reached <= limit}


def at_least(what: str, reached: float, limit: float, unit: str = "x") -> dict[str, Any]:
    """Return a lower bound target with the measured value."""
    return {"what": what, "reached": reached, "sign": ">=", "limit": limit, "unit": unit, "met": reached >= limit}


def targets(rows: Rows, start: dict[str, float], memory: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each target with the measured value."""

    def us(name: str, robots: int = 1, dtype: str = "f64", threads: int = 1) -> float:
        return rows[name, robots, dtype, threads].median

    out = [
        at_most("one robot, forward, of mj_step", us(FORWARD) / us(STEP), 0.35),
        at_most("one robot, forward + gradient, of mj_step", us(GRADIENT) / us(STEP), 0.8),
    ]
    for name in (FORWARD, GRADIENT):
        out.append(at_least(f"one core, 64 robots f64 over one f64: {name}", us(name) / us(name, 64), 4.5))
    for name in (FORWARD, GRADIENT):
        for other in ("f64", "f32"):
            gain = us(name, 1, other) / us(name, 64, "f32")
            out.append(at_least(f"one core, 64 robots f32 over one {other}: {name}", gain, 8.0))
    for dtype in FLOATS:
        for name in (FORWARD, GRADIENT):
            gain = us(name, 4096, dtype) / us(name, 4096, dtype, 2)
            out.append(at_least(f"two threads over one, 4096 robots {dtype}: {name}", gain, 1.7))
    limit = float(memory["long_memory"].removesuffix("MB"))
    long = f"memory of a gradient over {memory['long_steps']:,} steps"
    return [
        *out,
        at_most(long, memory["long"]["beyond_MB"], limit, "MB"),
        at_most("first gradient, empty cache", start["cold"], 1.5, "s"),
        at_most("first gradient, filled cache", start["warm"], 0.5, "s"),
        at_most("import", start["import"], 0.3, "s"),
    ]


def target_sheet(found: list[dict[str, Any]]) -> Sheet:
    def line(t: dict[str, Any]) -> list[str]:
        digits = 0 if t["unit"] == "bytes" else 2
        wanted, reached = f"{t['sign']} {t['limit']:g} {t['unit']}", f"{t['reached']:.{digits}f} {t['unit']}"
        return [t["what"], wanted, reached, "yes" if t["met"] else "no"]

    return Sheet("Targets", ["", "target", "reached", "met"], [line(t) for t in found])


def _figure(us: float) -> str:
    return f"{us:.4f}" if us < 1 else f"{us:.3f}" if us < 10 else f"{us:.1f}"


def save(folder: Path, name: str, title: str, found: dict[str, Any], rows: list[Row], sheets: list[Sheet]) -> None:
    """Write {name}.json, with all figures, and {name}.md, with the tables."""
    keys = ("name", "robots", "dtype", "threads", "units", "repeats")
    figures = [{k: getattr(r, k) for k in keys} | {"median_us": r.median, "min_us": r.least} for r in rows]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(found | {"rows": figures}, indent=1) + "\n")
    timed = f"Medians of {found['rounds']} rounds, each of which times every row once; see" if rows else "Made by"
    note = f"{timed} `benchmarks/{name}.py`."
    facts = [f"- {key}: {value}" for key, value in found["machine"].items()]
    text = "\n".join([f"# {title}", "", note, "", *facts, "", *(sheet.markdown() for sheet in sheets)])
    (folder / f"{name}.md").write_text(text)
