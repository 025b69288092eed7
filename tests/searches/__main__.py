"""Command line of the searches: `python -m tests.searches [NAME ...] [--count N] [--seed S] [--processes P] [--write]`."""

import argparse
import importlib
import pkgutil
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from . import __path__
from .outcome import Outcome, run
from .report import section, write

PAGE = Path(__file__).parents[2] / "docs" / "results" / "searches.md"
NAMES = sorted(
    m.name
    for m in pkgutil.iter_modules(__path__)
    if m.name not in ("__main__", "outcome", "report", "random_models", "slopes", "test_searches")
)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.searches", description="Random searches around known classes of faults."
    )
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--count", type=int, help="cases; default: those of a full search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="shares that run in parallel, with different seeds")
    parser.add_argument("--write", action="store_true", help=f"write the result to {PAGE.name}")
    given = parser.parse_args()
    failed = False
    for name in given.names or NAMES:
        module = importlib.import_module(f"{__package__}.{name}")
        count, shares = given.count or module.COUNT, given.processes
        outcome = Outcome()
        with ProcessPoolExecutor(shares, mp_context=get_context("spawn")) as pool:
            sizes = [count // shares + (k < count % shares) for k in range(shares)]
            for share in pool.map(run, [name] * shares, sizes, range(given.seed, given.seed + shares)):
                outcome.add(share)
        text = section(name, module.SUMMARY, outcome, given.seed)
        print(text, flush=True)
        if given.write:
            write(PAGE, name, text)
        failed = failed or bool(outcome.findings)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
