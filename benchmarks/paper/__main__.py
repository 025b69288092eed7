"""Comparison with the paper: `python -m benchmarks.paper [--quick] [--tools NAME ...] [--engines NAME ...] [--out FOLDER]`.

First table: one physics source on the number types of several tools. Second table: other engines on the same robot, each in
a virtual environment in .paper/. Every cell is a separate process; rounds go over all cells. Cells that are not selected
are copied from the last result in the folder, if it has the same scale: `--tools` without a name only writes tables and
plots again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import report
from . import sheets
from .cells import AUTODIFF, FULL, LONG, QUICK, Cell, Scale, all_cells, hopeless, measure
from .engines import ENGINES, engine_sheet, measure_engine


def time_cells(cells: list[Cell], scale: Scale, memory_GB: float, progress: Progress) -> None:
    """Run all rounds over all cells.

    Cells that disagree or cannot run in the first round are not run again. Ctrl-C ends the rounds and keeps the results.
    """
    task = progress.add_task("cells", total=scale.rounds * len(cells))
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        for turn in range(scale.rounds):
            for cell in cells:
                progress.update(task, description=f"{cell.tool}, {cell.robots} x {cell.steps}")
                cell.why = cell.why or hopeless(cell, cells, scale.limit)
                if not cell.why and (turn == 0 or cell.process_s < LONG):
                    measure(cell, scale, memory_GB, Path(folder))
                progress.advance(task)
    for cell in cells:
        cell.why = cell.why or ("" if cell.forward else "not run")


def time_engines(names: list[str], memory_GB: float, progress: Progress) -> list[dict[str, Any]]:
    """Run one process for each engine."""
    task, found = progress.add_task("engines", total=len(names)), []
    for name in names:
        progress.update(task, description=name)
        found.append(measure_engine(name, memory_GB))
        progress.advance(task)
    return found


def last_result(file: Path, scale: Scale) -> tuple[list[Cell], list[dict[str, Any]], dict[str, str]]:
    """Return cells, engines and machine of a result of the same scale, if there is one."""
    found = json.loads(file.read_text()) if file.exists() else {}
    if found.get("scale") != json.loads(json.dumps(scale)):
        return [], [], {}
    return [Cell.of(cell) for cell in found["cells"]], found["engines"], found["machine"]


def save(
    folder: Path,
    scale: Scale,
    cells: list[Cell],
    engines: list[dict[str, Any]],
    about: dict[str, str],
    console: Console,
) -> None:
    """Print the tables; write paper.json, paper.md and the plots."""
    by_key = {cell.key: cell for cell in cells}
    reached = sheets.targets(by_key, scale)
    tables = [*sheets.cell_sheets(by_key, scale), engine_sheet(engines), report.target_sheet(reached)]
    for sheet in tables:
        console.print(sheet.rich(), "")
    found: dict[str, Any] = {"machine": about, "scale": scale, "targets": reached}
    found |= {"checkpoints": sheets.checkpoint_rows(by_key, scale.kept), "engines": engines}
    found["cells"] = [cell.json() for cell in cells]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "paper.json").write_text(json.dumps(found, indent=1) + "\n")
    facts = [f"- {key}: {value}" for key, value in about.items()]
    note = (
        f"Medians, ± half the distance of the quartiles, of repeats in {scale.rounds} rounds of fresh processes (one round "
        f"where a process takes more than {LONG:g} s). See `benchmarks/paper/`."
    )
    pictures = ["![Memory against steps](paper-memory.png)", "", "![Time against steps](paper-time.png)"]
    text = [
        "# The paper's comparison",
        "",
        note,
        "",
        *facts,
        "",
        *pictures,
        "",
        *(sheet.markdown() for sheet in tables),
    ]
    (folder / "paper.md").write_text("\n".join(text))
    sheets.plot(by_key, scale, folder)
    console.print(f"saved {folder / 'paper.json'}, paper.md and two plots")


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a few minutes, rough figures, fewer lengths")
    parser.add_argument("--tools", nargs="*", metavar="NAME", help=f"some of: {', '.join(AUTODIFF)}")
    parser.add_argument("--engines", nargs="*", metavar="NAME", help=f"some of: {', '.join(ENGINES)}")
    parser.add_argument("--memory", type=float, default=8.0, help="GB that a process may take")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of paper.json, .md, plots")
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else FULL
    some = arguments.tools is not None or arguments.engines is not None
    tools = tuple((arguments.tools or ()) if some else AUTODIFF)
    engine_names = list((arguments.engines or ()) if some else ENGINES)
    for unknown in ({*tools} - {*AUTODIFF}) | ({*engine_names} - {*ENGINES}):
        parser.error(f"there is no {unknown!r}")

    console = Console() if sys.stdout.isatty() else Console(width=140)
    before, engines_before, about = last_result(arguments.out / "paper.json", scale) if some else ([], [], {})
    cells = all_cells(scale, tools, whole=not before) if tools or not before else []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, refresh_per_second=1) as progress:
        time_cells(cells, scale, arguments.memory, progress)
        engines = time_engines(engine_names, arguments.memory, progress)
    new = {cell.key for cell in cells}
    cells += [cell for cell in before if cell.key not in new]
    engines += [e for e in engines_before if e["engine"] not in engine_names]
    order = {cell.key: k for k, cell in enumerate(all_cells(scale, AUTODIFF))}
    cells.sort(key=lambda cell: order.get(cell.key, len(order)))
    if not about:
        about = report.machine()
    elif new or engine_names:
        names, now = dict.fromkeys([*(tool for tool, *_ in new), *engine_names]), report.machine()
        about["measured again"] = f"{'; '.join(sorted(names))}: {now['date']}, artigrad {now['artigrad']}"
    save(arguments.out, scale, cells, engines, about, console)


if __name__ == "__main__":
    main()
