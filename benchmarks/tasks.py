"""All tasks by gradients and by CMA-ES: `python -m benchmarks.tasks` writes results/tasks/ and results/tasks.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from artigrad.cli.run import Watch, summarise
from artigrad.tasks import TASKS
from artigrad.tasks.study import study

HERE = Path(__file__).parent / "results"
STARTS = {"golf": 6}  # as many as the published experiments have, or five
COLUMNS = (
    "task",
    "variables",
    "goal",
    "method: iterations, s",
    "CMA-ES: generations of motions, s",
    "less iterations",
    "less motions",
    "less seconds",
    "gradient against differences",
)


def row(said: dict[str, Any]) -> list[str]:
    """One line of the table: medians over the starts, seconds until the last start is there."""
    (name, mine), (_, other) = said["methods"].items()
    less, at_least = said["advantage"], "" if said["advantage"]["reached_by_the_other"] else "> "
    generations = [k or other["iterations"] for k in other["solved_at"]]
    return [
        f"`{said['task']}`",
        str(said["variables"]),
        f"{said['goal']:g}",
        f"{name}: {np.median(mine['solved_at']):g}, {mine['seconds']:.2g}",
        f"{at_least}{np.median(generations):g} of {other['motions_per_iteration']}, {other['seconds']:.2g}",
        *(f"{at_least}{less[key]:g} x" for key in ("iterations", "motions", "seconds")),
        f"{said['gradient_against_differences']:.0e}",
    ]


def main() -> None:
    console, rows = Console(), []
    for name, make in TASKS.items():
        folder = HERE / "tasks" / name
        task = make()
        with Watch(console, task, task.iterations) as watch:
            done = study(task, folder, starts=STARTS.get(name, 5), watch=watch)
        summarise(console, done)
        for saved in folder.glob("*.npz"):  # for going on, which nobody will here
            saved.unlink()
        rows.append(row(json.loads((folder / "result.json").read_text())))
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    (HERE / "tasks.md").write_text(
        f"# Tasks\n\n`python -m benchmarks.tasks`, {__doc__.split(':')[0].lower()}.\n\n{table}\n"
    )


if __name__ == "__main__":
    main()
