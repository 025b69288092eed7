"""Generation and checking of random cases for a time or a number of cases."""

import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np

from . import draw
from .checks import CHECKS, Skip
from .shrink import shrink

PER_THEME = 12  # cases that share their kernels


def run(seed, *, minutes=float("inf"), themes=None, per_theme=PER_THEME, checks=tuple(CHECKS), tell=print):
    """Check cases theme by theme; return counts of results, and all findings."""
    until, counts, findings, k = time.monotonic() + 60 * minutes, Counter(), [], 0
    while time.monotonic() < until and (themes is None or k < themes):
        theme = draw.theme(np.random.default_rng([seed, k]))
        for j in range(per_theme):
            if time.monotonic() > until:
                break
            case = draw.case(np.random.default_rng([seed, k, j]), theme)
            for name in checks:
                said, wrong = outcome(case, CHECKS[name])
                counts[name, "failed" if wrong else said] += 1
                if wrong:
                    small = shrink(case, lambda c, check=CHECKS[name]: outcome(c, check)[1])
                    findings.append(f"seed {seed}, theme {k}, case {j}, {name}: {wrong}\n{small.code()}")
                    tell(findings[-1] + "\n")
        k += 1
    return counts, findings


def run_processes(seed, processes, *, minutes, checks=tuple(CHECKS)):
    """Counts and findings of `run` in several processes, with the seeds from `seed` on."""
    if processes == 1:
        return run(seed, minutes=minutes, checks=checks)
    counts, findings = Counter(), []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for found in pool.map(partial(run, minutes=minutes, checks=checks), range(seed, seed + processes)):
            counts += found[0]
            findings += found[1]
    return counts, findings


def outcome(case, check):
    """Return (ok or the reason of a skip, failure or None)."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*touch where no joint can move them")
            return "ok", check(case)
    except Skip as why:
        return str(why), None
    except Exception as error:  # an error where there should be none is a finding too
        return "error", f"{type(error).__name__}: {error}"
