"""Results of random searches as a page of the documentation, one section per search."""

import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

import mujoco

import artigrad as ag
from artigrad.compiler.compile import host

HEAD = """# Random searches

Each section is the result of `python -m tests.searches NAME`: random cases around a class of faults that was found once,
compared with MuJoCo or with finite differences. A small sample with a fixed seed runs in the test suite. `--write` replaces the
section on this page.
"""


def section(name, summary, outcome, seed):
    """Return the Markdown section of one search."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    ).stdout.strip()
    versions = f"python {platform.python_version()}, mujoco {mujoco.__version__}, artigrad {ag.__version__}"
    lines = [f"## {name}", "", summary, ""]
    lines += [f"- date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC, seed {seed}"]
    lines += [f"- {os.cpu_count()} cores, {host.name}, {versions} ({commit or 'no commit'})"]
    lines += [f"- findings: **{len(outcome.findings) or 'none'}**", "", "| outcome | cases |", "| :-- | --: |"]
    lines += [f"| {what.replace('|', '/')} | {count} |" for what, count in outcome.counts.most_common()]
    lines += [f"\n```\n{finding}\n```" for finding in outcome.findings[:20]]
    return "\n".join([*lines, ""])


def write(page, name, text):
    """Replace one section of the page, or add it."""
    old = page.read_text(encoding="utf-8") if page.exists() else HEAD
    sections = re.split(r"\n(?=## )", old.rstrip("\n"))
    head, rest = sections[0], {s.split("\n", 1)[0][3:]: s for s in sections[1:]}
    rest[name] = text.rstrip("\n")
    page.write_text(
        "\n\n".join([head.rstrip("\n"), *(rest[k].rstrip("\n") for k in sorted(rest))]) + "\n", encoding="utf-8"
    )
