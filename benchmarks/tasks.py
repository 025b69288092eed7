"""All tasks by gradients and by CMA-ES; writes docs/results/.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.tasks

One thread for the linear algebra of CMA-ES, whose matrices are small: with several it is up to ten times slower on busy
cores.
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
    "CMA-ES: generations of simulations, s",
    "factor in iterations",
    "factor in simulations",
    "factor in seconds",
    "relative error of the gradient",
)
PAGE = """# Results of the optimization tasks

Made by `OPENBLAS_NUM_THREADS=1 python -m benchmarks.tasks`. Each method runs until all initial guesses are within the
goal (m; for `cartpole` a loss). Iterations are medians over the initial guesses, which are simulated as a batch;
seconds are those of the whole batch. A gradient takes one simulation and about twice its time for the backward pass;
a generation of CMA-ES simulates a population.

{table}

{cores} cores with other load, {machine}.
"""


def row(said: dict[str, Any]) -> list[str]:
    """Return a row of the table: medians over initial guesses, seconds until the last is done."""
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
    """Return the number of cores available to this process."""
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
