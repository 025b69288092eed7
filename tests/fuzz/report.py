"""Page with the findings of the fuzzer."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

import mujoco

import artigrad as ag
from artigrad.compiler.compile import host

from .checks import CHECKS

HEAD = """# What random models found

`python -m tests.fuzz --minutes N --out docs/results/fuzz.md` draws random models (all joints, shapes, constraint
rows, actuators and tendons), states (random, settled, with stacks in exact alignment) and options. It compares
gradients with central differences in every input, one step with MuJoCo's, energies before and after, results of a
robot alone, in a batch and with every checkpoint policy (bitwise), and compiled code with NumPy. A failure is reduced
to a few lines of code, which would follow the table. The column "not applicable" counts the models to which a check
does not apply, the last column the most frequent reason.
"""


def report(counts, findings, minutes, seed, processes=1):
    """Page of the counts and findings of `run_processes`."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    ).stdout.strip()
    lines = [HEAD, f"- date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"]
    share = f"{processes} processes of {minutes:g}, seeds {seed} to {seed + processes - 1}"
    lines += [f"- minutes: {f'{minutes:g}, seed {seed}' if processes == 1 else share}"]
    lines += [f"- cores: {os.cpu_count()}, {host.name}"]
    versions = f"python {platform.python_version()}, mujoco {mujoco.__version__}, artigrad {ag.__version__}"
    lines += [f"- {versions} ({commit or 'no commit'})"]
    lines += [f"- findings: **{len(findings) or 'none'}**", ""]
    lines += ["| check | holds | fails | not applicable | most frequent reason |", "| :-- | --: | --: | --: | :-- |"]
    for name in CHECKS:
        own = {outcome: n for (check, outcome), n in counts.items() if check == name}
        ok, failed = own.pop("ok", 0), own.pop("failed", 0)
        why = max(own, key=own.get, default="").replace("|", "/")
        lines.append(f"| {name} | {ok} | {failed} | {sum(own.values())} | {why} |")
    return "\n".join([*lines, *(f"\n```\n{finding}\n```" for finding in findings), ""])
