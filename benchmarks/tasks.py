"""All tasks by gradients and by CMA-ES; writes docs/results/.

OPENBLAS_NUM_THREADS=1 python -m benchmarks.tasks

One thread for the linear algebra of CMA-ES, whose matrices are small: with more it is up to ten times slower on busy cores.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from artigrad.cli.run import Watch, summarize
from artigrad.tasks import TASKS
from artigrad.tasks.study import study

RESULTS = Path(__file__).parent.parent / "docs" / "results"  # where the pages show them
STARTS = {"golf": 6}  # as many as the published experiments have, or five
COLUMNS = (
    "task",
    "variables",
    "goal",
    "method: iterations, s",
    "CMA-ES: generations of motions, s",
    "fewer iterations",
    "fewer motions",
    "fewer seconds",
    "gradient against differences",
)
PAGE = """# Tasks

`OPENBLAS_NUM_THREADS=1 python -m benchmarks.tasks`: until every start is within the goal (m; for `cartpole` a loss).
Medians over the starts, which are simulated together; seconds until the last of them is there. A gradient takes one motion
and about twice its time more; a generation of CMA-ES takes a population of motions.

{table}

{cores} cores beside other work, {machine}.
"""


def row(said: dict[str, Any]) -> list[str]:
    """One line of the table: medians over the starts, seconds until the last start is there."""
    (name, mine), (_, other) = said["methods"].items()
    less, at_least = said["advantage"], "" if said["advantage"]["reached_by_the_other"] else "> "
    generations = [k or other["iterations"] for k in other["solved_at"]]
    return [
        f"`{said['task']}`",
        said["variables"],
        f"{said['goal']:g}",
        f"{name}: {np.median(mine['solved_at']):g}, {mine['seconds']:.2g}",
        f"{at_least}{np.median(generations):g} of {other['motions_per_iteration']}, {other['seconds']:.2g}",
        *(f"{at_least}{less[key]:g} x" for key in ("iterations", "motions", "seconds")),
        f"{said['gradient_against_differences']:.0e}",
    ]


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def remove_unused(folder: Path) -> None:
    """Remove files to resume a run from, and figures and pages that no page of the documentation links."""
    text = "".join(page.read_text() for page in (RESULTS.parent.parent / "README.md", *RESULTS.parent.rglob("*.md")))
    for file in folder.iterdir():
        if file.suffix != ".json" and f"results/{folder.name}/{file.name}" not in text:
            file.unlink()


def main() -> None:
    console, rows = Console(), []
    for name, make in TASKS.items():
        folder = RESULTS / name
        task = make()
        with Watch(console, task, task.iterations) as watch:
            done = study(task, folder, starts=STARTS.get(name, 5), watch=watch)
        summarize(console, done)
        remove_unused(folder)
        rows.append(row(json.loads((folder / "result.json").read_text())))
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    (RESULTS / "tasks.md").write_text(PAGE.format(table=table, cores=cores(), machine=platform.machine()))


if __name__ == "__main__":
    main()
