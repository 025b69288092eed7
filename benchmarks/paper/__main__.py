"""The paper's comparison: `python -m benchmarks.paper [--quick] [--tools NAME ...] [--no-engines] [--out FOLDER]`.

First table: one physics source on the number types of several tools. Second table: other engines on the same robot, each in
a virtual environment that is made in .paper/. Every cell is a process of its own; rounds go over all cells.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import report
from . import sheets
from .cells import AUTODIFF, FULL, LONG, QUICK, Cell, Scale, all_cells, hopeless, measure
from .engines import ENGINES, engine_sheet, measure_engine


def time_cells(cells: list[Cell], scale: Scale, memory_GB: float, progress: Progress) -> None:
    """All rounds over all cells. The first round checks: what disagrees or cannot be run has no second."""
    task = progress.add_task("cells", total=scale.rounds * len(cells))
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(scale.rounds):
            for cell in cells:
                progress.update(task, description=f"{cell.tool}, {cell.robots} x {cell.steps}")
                cell.why = cell.why or hopeless(cell, cells)
                if not cell.why and (turn == 0 or cell.process_s < LONG):
                    measure(cell, scale, memory_GB, Path(folder))
                progress.advance(task)


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a few minutes, rough figures, fewer lengths")
    parser.add_argument("--tools", nargs="*", choices=AUTODIFF, default=AUTODIFF, help="tools beside ours; all by default")
    parser.add_argument("--engines", nargs="*", choices=list(ENGINES), default=list(ENGINES), help="of the second table")
    parser.add_argument("--memory", type=float, default=12.0, help="GB that a process may take")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of paper.json, .md and plots")
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else FULL
    console = Console() if sys.stdout.isatty() else Console(width=140)
    cells = all_cells(scale, tuple(arguments.tools))
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, refresh_per_second=1) as progress:
        time_cells(cells, scale, arguments.memory, progress)
        task = progress.add_task("engines", total=len(arguments.engines))
        engines = []
        for name in arguments.engines:
            progress.update(task, description=name)
            engines.append(measure_engine(name, scale, arguments.memory))
            progress.advance(task)

    by_key = {cell.key: cell for cell in cells}
    reached = sheets.targets(by_key, scale)
    tables = []
    for robots, steps, who in ((1, scale.one, "One Laikago"), (10, scale.ten, "Ten Laikagos in one scene")):
        tables += [
            sheets.table(f"{who}: peak memory of a gradient beyond the process, MB", by_key, robots, steps, "peak"),
            sheets.table(f"{who}: forward, us of CPU per step", by_key, robots, steps, "forward"),
            sheets.table(f"{who}: backward, us of CPU per step", by_key, robots, steps, "backward"),
        ]
    tables += [sheets.tool_sheet(by_key), sheets.checkpoint_sheet(by_key, scale.kept)]
    tables += [sheets.why_sheet(by_key), engine_sheet(engines), report.target_sheet(reached)]
    for sheet in tables:
        console.print(sheet.rich(), "")
    about = report.machine()
    found = {"machine": about, "rounds": scale.rounds, "targets": reached, "engines": engines}
    found["checkpoints"] = sheets.checkpoint_rows(by_key, scale.kept)
    found["cells"] = [cell.json() for cell in cells]
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "paper.json").write_text(json.dumps(found, indent=1) + "\n")
    facts = [f"- {key}: {value}" for key, value in about.items()]
    note = f"Medians, ± half the distance of the quartiles; {scale.rounds} rounds of fresh processes. See `benchmarks/paper/`."
    pictures = ["![Memory against steps](paper-memory.png)", "", "![Time against steps](paper-time.png)"]
    text = ["# The paper's comparison", "", note, "", *facts, "", *pictures, "", *(sheet.markdown() for sheet in tables)]
    (arguments.out / "paper.md").write_text("\n".join(text))
    sheets.plot(by_key, scale, arguments.out)
    console.print(f"saved {arguments.out / 'paper.json'}, paper.md and two plots")


if __name__ == "__main__":
    main()
