"""python -m tests.fuzz --minutes N [--seed S] [--only gradients mujoco ...] [--out docs/results/fuzz.md]"""

import argparse
import sys
from pathlib import Path

from .checks import CHECKS
from .report import report
from .run import run

parser = argparse.ArgumentParser(
    prog="python -m tests.fuzz", description="Random models against what must hold for all."
)
parser.add_argument("--minutes", type=float, default=1.0)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--only", nargs="+", choices=CHECKS, default=tuple(CHECKS), metavar="CHECK")
parser.add_argument("--out", type=Path, help="write what came out as a page of the documentation")
given = parser.parse_args()
counts, findings = run(given.seed, minutes=given.minutes, checks=given.only)
for (name, outcome), count in sorted(counts.items()):
    print(f"{count:6}  {name}: {outcome}")
if given.out is not None:
    given.out.write_text(report(counts, findings, given.minutes, given.seed), encoding="utf-8")
sys.exit(1 if findings else 0)
