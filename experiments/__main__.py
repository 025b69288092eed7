"""Run an experiment: `python -m experiments NAME`; without a name, list all.

    python -m experiments gait --device cuda --seconds 450

Progress is a line every ten seconds. A run that ended early continues with --resume; --copy collects the result files that are
small.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from artigrad import InputError

from . import EXPERIMENTS, RunOptions, experiment

SMALL = 3e6  # bytes


class Progress:
    """Print a line of progress at most every ten seconds."""

    def __init__(self, name: str):
        self.name, self.began, self.printed = name, time.monotonic(), 0.0

    def __call__(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if now - self.printed > 10:
            self.printed = now
            count = f"{done} of {total}" if total else str(done)
            print(f"{now - self.began:6.0f} s  {self.name} {count} {text}", flush=True)


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        "python -m experiments", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    out.add_argument("name", nargs="?", choices=list(EXPERIMENTS), metavar="NAME")
    out.add_argument("--device", default="cpu", help="cpu or cuda")
    out.add_argument("--seeds", type=int, default=5, help="number of seeds")
    out.add_argument("--first-seed", type=int, default=0)
    out.add_argument("--iterations", type=int, help="iterations of a training; default: the experiment's")
    out.add_argument("--seconds", type=float, default=float("inf"), help="time limit of trainings, s")
    out.add_argument("--resume", action="store_true", help="continue the run in the folder")
    out.add_argument("--folder", type=Path, help="folder of the results; default: results/NAME")
    out.add_argument("--copy", type=Path, help="folder for a copy of the small result files")
    return out


def main(arguments: list[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    if given.name is None:
        for name, (_, _, summary) in EXPERIMENTS.items():
            print(f"{name:10} {summary}")
        return
    folder = given.folder or Path("results") / given.name
    how = RunOptions(
        folder,
        seeds=given.seeds,
        iterations=given.iterations,
        seconds=given.seconds,
        resume=given.resume,
        device=given.device,
        watch=Progress(given.name),
        first_seed=given.first_seed,
    )
    try:
        numbers, files = experiment(given.name)(how)
    except InputError as problem:
        raise SystemExit(f"error: {problem}") from None
    for key, value in numbers.items():
        print(f"{key}: {str(value)[:400]}")
    print("results:", *files)
    for file in [*files, *folder.glob("*.npy"), *folder.glob("*.pt")]:
        if given.copy is not None and file.stat().st_size < SMALL:
            (given.copy / folder.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, given.copy / folder.name / file.name)


if __name__ == "__main__":
    main()
