"""Runs experiments of `artigrad run` where there is no terminal, such as on a machine with a GPU that is lent by the minute:

    python -m benchmarks.experiments gait --device cuda --seconds 450 --folder /tmp/gait --out $OUT

Takes up again what is in the folder; files of results that are small are copied to --out.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from artigrad.tasks import EXPERIMENTS, RunOptions, experiment

SMALL = 3e6  # bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(EXPERIMENTS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began, said = time.monotonic(), [0.0]

    def watch(done: int, total: int, text: str) -> None:
        if time.monotonic() - said[0] > 10:
            said[0] = time.monotonic()
            print(f"{said[0] - began:6.0f} s  {given.name} {done} {text}", flush=True)

    how = RunOptions(
        given.folder, given.seeds, given.iterations, given.seconds, True, given.device, watch, given.first_seed
    )
    numbers, files = experiment(given.name)(how)
    for key, value in numbers.items():
        print(f"{key}: {str(value)[:400]}")
    for file in [*files, *given.folder.glob("*.npy"), *given.folder.glob("*.pt")]:
        if given.out is not None and file.stat().st_size < SMALL:
            place = given.out / given.folder.name
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place / file.name)


if __name__ == "__main__":
    main()
