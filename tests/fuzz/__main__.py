"""python -m tests.fuzz --minutes N [--processes P] [--seed S] [--only gradients mujoco ...] [--out docs/results/fuzz.md]"""

import argparse
import sys
from pathlib import Path

from .checks import CHECKS
from .report import report
from .run import run_processes

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Random models against what must hold for all."
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="of each process")
    parser.add_argument("--processes", type=int, default=1, help="with seeds S, S + 1, ...")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=tuple(CHECKS), metavar="CHECK")
    parser.add_argument("--out", type=Path, help="write the result as a page of the documentation")
    given = parser.parse_args()
    counts, findings = run_processes(given.seed, given.processes, minutes=given.minutes, checks=tuple(given.only))
    for (name, outcome), count in sorted(counts.items()):
        print(f"{count:6}  {name}: {outcome}")
    if given.out is not None:
        page = report(counts, findings, given.minutes, given.seed, given.processes)
        given.out.write_text(page, encoding="utf-8")
    sys.exit(1 if findings else 0)
