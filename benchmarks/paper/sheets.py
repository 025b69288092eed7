"""Tables, targets and plots of the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..report import Sheet, at_least, at_most
from .cells import AUTODIFF, EVERY, Cell, Scale
from .tools import IMPLICIT, OURS

Cells = dict[tuple[str, int, int], Cell]
STORED_BYTES = 8 * 37  # of a state of one Laikago


def _entry(cell: Cell | None, text: str) -> str:
    if cell is None:
        return ""
    return text if not cell.why else "-"


def cell_sheets(cells: Cells, scale: Scale) -> list[Sheet]:
    """Return all tables of cells, in reading order."""
    found = []
    for robots, steps, who in ((1, scale.one, "One Laikago"), (10, scale.ten, "Ten Laikagos in one scene")):
        found += [
            table(f"{who}: peak memory of a gradient beyond the process, MB", cells, robots, steps, "peak"),
            table(f"{who}: forward, us of CPU per step", cells, robots, steps, "forward"),
            table(f"{who}: backward, us of CPU per step", cells, robots, steps, "backward"),
        ]
    return [*found, tool_sheet(cells), checkpoint_sheet(cells, scale.kept), why_sheet(cells)]


def table(title: str, cells: Cells, robots: int, steps: tuple[int, ...], what: str) -> Sheet:
    """Return the table of one figure of every tool against the number of steps."""
    texts = {
        "peak": lambda c: f"{c.peak:.3g}" if c.peak < 1 else f"{c.peak:,.1f}",
        "forward": lambda c: _time(c, "forward"),
        "backward": lambda c: _time(c, "backward"),
    }
    lines = []
    for tool in dict.fromkeys(tool for tool, n, _ in cells if n == robots and tool not in EVERY):
        row = [cells.get((tool, robots, n)) for n in steps]
        shown = [
            _entry(c, "" if c is None or c.why or (what != "forward" and not c.backward) else texts[what](c))
            for c in row
        ]
        if any(shown):
            lines.append([tool, *shown])
    return Sheet(title, ["", *(f"{n} steps" for n in steps)], lines)


def _time(cell: Cell, way: str) -> str:
    us = cell.us(way)
    return (f"{us:.2f}" if us < 10 else f"{us:,.0f}") + f" ±{100 * cell.spread(way):.0f}%"


def tool_sheet(cells: Cells) -> Sheet:
    """Return the table of versions, preparation times, agreement and failures."""
    lines = []
    for tool in dict.fromkeys(tool for tool, _, _ in cells if tool not in EVERY):
        own = [c for c in cells.values() if c.tool == tool and c.robots == 1]
        done = [c for c in own if not c.why]
        worst = [max((getattr(c, d) for c in done if getattr(c, d) is not None), default=np.nan) for d in DIFFERENCES]
        ready = [f"{max(c.ready_s for c in done):.1f}", f"{max(c.ready_MB for c in done):,.0f}"] if done else ["", ""]
        figures = ["" if np.isnan(x) else f"{x:.0e}" for x in worst]
        lines.append([tool, next((c.version for c in done), ""), *ready, *figures])
    return Sheet(
        "One robot: getting ready (start, import, trace, compile; the most of all lengths) and the process then; the largest "
        "difference from ours",
        ["", "version", "CPU s", "MB", "state", "gradient, relative"],
        lines,
    )


DIFFERENCES = ("state_difference", "gradient_difference")


def why_sheet(cells: Cells) -> Sheet:
    """Return the table of missing figures with the reasons."""
    lines = [[c.tool, str(c.robots), str(c.steps), c.why] for c in cells.values() if c.why]
    return Sheet("Without figures", ["", "robots", "steps", "why"], lines)


def checkpoint_sheet(cells: Cells, steps: int) -> Sheet:
    """Return the table of keeping every k-th state, beside the paper's formulas."""
    lines = []
    for row in checkpoint_rows(cells, steps):
        ratios = [f"{row[f'{what}_ratio']:.2f} x" for what in ("memory", "time", "own_time")]
        figures = [f"{row['peak_MB']:.2f}", ratios[0], f"{row['backward_us']:.2f}", *ratios[1:]]
        lines.append([str(row["robots"]), str(row["k"]), *figures])
    columns = ["robots", "k", "peak, MB", "of n/k states + controls' gradient", "backward, us/step"]
    columns += ["of the paper's: backward + (k-1)/2 forward", "of ours: backward + (k-1)/k forward"]
    return Sheet(f"A state kept every k steps of {steps}", columns, lines)


def checkpoint_rows(cells: Cells, steps: int) -> list[dict[str, Any]]:
    """Return measured values over the paper's formulas.

    Memory: n/k m + one step (and the gradient of the controls, which is an output). Backward: (k+1)/2 t_forward +
    t_backward, where t_backward already contains one forward pass. artigrad runs a stretch again once, not once for each of
    its steps.
    """
    rows = []
    for robots in (1, 10):
        whole = cells.get((OURS, robots, steps))
        if whole is None or whole.why:
            continue
        controls = 8 * 12 * robots * steps / 1e6
        forward, backward = whole.us("forward"), whole.us("backward")
        for k, name in enumerate(EVERY, 1):
            cell = cells.get((name, robots, steps))
            if cell is None or cell.why:
                continue
            memory, us = STORED_BYTES * robots * steps / k / 1e6 + controls, cell.us("backward")
            ratios = {
                "memory_ratio": cell.peak / memory,
                "time_ratio": us / (backward + (k - 1) / 2 * forward),
                "own_time_ratio": us / (backward + (k - 1) / k * forward),
            }
            rows.append({"robots": robots, "k": k, "peak_MB": cell.peak, "backward_us": us, **ratios})
    return rows


def targets(cells: Cells, scale: Scale) -> list[dict[str, Any]]:
    """Return each target with the measured value."""
    return [*_tools_over_ours(cells, scale), *_long_and_many(cells, scale), *_checkpoints(cells, scale)]


def _tools_over_ours(cells: Cells, scale: Scale) -> list[dict[str, Any]]:
    """Return the time of each tool over that of artigrad at its best length, and memory at the longest."""
    longest, found = scale.one[-1], []
    ours = cells[OURS, 1, longest]
    for tool in AUTODIFF:
        own = [c for n in scale.one if (c := cells.get((tool, 1, n))) and c.backward]
        for name, ways in (("forward", ("forward",)), ("forward and backward", ("forward", "backward"))):
            if own:
                ratio = min(sum(map(c.us, ways)) for c in own) / sum(map(ours.us, ways))
                found.append(at_least(f"{name}, {tool} over ours", ratio, 10.0))
    for tool in AUTODIFF:
        cell = cells.get((tool, 1, longest))
        if cell is not None and cell.peaks:
            found.append(at_least(f"memory at {longest} steps, {tool} over ours", cell.peak / ours.peak, 100.0))
    return found


def _long_and_many(cells: Cells, scale: Scale) -> list[dict[str, Any]]:
    """Return targets of artigrad against the length of a rollout and the number of robots."""
    longest, found = scale.one[-1], []
    found.append(at_most(f"peak memory of ours, {longest} steps", cells[OURS, 1, longest].peak, 2.5, "MB"))
    for tool in (OURS, IMPLICIT):
        for way in ("forward", "backward"):
            us = [cells[tool, 1, n].us(way) for n in scale.one]
            found.append(at_most(f"{tool}: {way} per step, slowest over fastest length", max(us) / min(us), 1.1))
        for n in scale.ten:
            one, ten = cells.get((tool, 1, n)), cells.get((tool, 10, n))
            if one and ten and not ten.why:
                ratios = {way: ten.us(way) / one.us(way) for way in ("forward", "backward")}
                for what, ratio in (ratios | {"memory": ten.peak / one.peak}).items():
                    found.append(at_most(f"{tool}: ten robots over one, {what}, {n} steps", ratio, 11.0))
    return found


def _checkpoints(cells: Cells, scale: Scale) -> list[dict[str, Any]]:
    """Return targets: not above the paper's formulas by more than a fifth."""
    names = {"memory": "memory_ratio", "time": "time_ratio"}
    return [
        at_most(f"every {row['k']}. state, {row['robots']} robots: {what} over the paper's formula", row[key], 1.2)
        for row in checkpoint_rows(cells, scale.kept)
        for what, key in names.items()
    ]


# -- plots ---------------------------------------------------------------------------------------------------------------
def plot(cells: Cells, scale: Scale, folder: Path) -> None:
    """Plot memory and time against steps, both on logarithmic scales."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    views = {
        "memory": ("peak memory of a gradient, MB", lambda c: c.peak),
        "time": ("forward and backward, s of CPU", lambda c: (c.us("forward") + c.us("backward")) * c.steps / 1e6),
    }
    for name, (label, figure) in views.items():
        fig, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
        for tool in (OURS, IMPLICIT, *AUTODIFF):
            own = [c for n in scale.one if (c := cells.get((tool, 1, n))) and not c.why]
            if own:
                style = {"linewidth": 2.5} if tool in (OURS, IMPLICIT) else {"linewidth": 1.2, "linestyle": "--"}
                axes.plot(
                    [c.steps for c in own], [figure(c) for c in own], marker="o", markersize=4, label=tool, **style
                )
        axes.set(xscale="log", yscale="log", xlabel="steps of one Laikago", ylabel=label)
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        fig.savefig(folder / f"paper-{name}.png", dpi=130)
        plt.close(fig)
