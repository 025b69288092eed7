"""Second table: other engines on the same robot, each by a script in this folder, in a separate virtual environment.

The scripts do not import artigrad: they read a folder with the robot (robot.xml and masked.xml for MuJoCo and related
engines, robot.urdf) and the inputs, and print JSON (`common.py`). Environments are created once and kept in .paper/.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...report import Sheet
from .. import scene
from ..build import FOLDER
from ..cells import Failed, run
from .robot import write_robot

HERE = Path(__file__).parent
STEPS = 100  # of a rollout: time per step does not change with more, and what is compiled is the same
INSTALL, LIMIT = 900, 600.0  # seconds of wall clock and of CPU


class Engine(NamedTuple):
    """Script of this folder, and its pip requirements."""

    script: str
    packages: tuple[str, ...]


ENGINES: dict[str, Engine] = {
    "artigrad": Engine("with_artigrad.py", ()),
    "MuJoCo": Engine("with_mujoco.py", ("mujoco",)),
    "MJX": Engine("with_mjx.py", ("mujoco-mjx", "jax")),
    "Brax": Engine("with_brax.py", ("brax", "jax")),
    "Drake": Engine("with_drake.py", ("drake",)),
    "Newton": Engine("with_newton.py", ("newton", "mujoco")),
    "Nimble": Engine("with_nimble.py", ("nimblephysics", "torch==2.13.0", "numpy<2")),
    "Tiny Differentiable Simulator": Engine("with_tds.py", ("pytinydiffsim", "numpy")),
}


def environment(name: str, packages: tuple[str, ...]) -> Path:
    """Return the Python of the environment of an engine; this one if nothing is to be installed."""
    if not packages:
        return Path(sys.executable)
    folder = FOLDER / f"venv-{Path(ENGINES[name].script).stem.removeprefix('with_')}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, capture_output=True)
            install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
            done = subprocess.run(install, capture_output=True, text=True, timeout=INSTALL)
        except subprocess.TimeoutExpired:
            raise Failed(f"was not installed within {INSTALL / 60:g} min") from None
        if done.returncode:
            raise Failed(next(line for line in done.stderr.splitlines() if "ERROR" in line))
        ready.touch()
    return python


def measure_engine(name: str, memory_GB: float) -> dict[str, Any]:
    """Return the figures of one engine, or the reason why there are none."""
    robot = scene.model(1)
    try:
        python = environment(name, ENGINES[name].packages)
        with tempfile.TemporaryDirectory() as folder:
            write_robot(robot, scene.DT, Path(folder))
            np.savez(Path(folder) / "inputs.npz", **scene.inputs(robot, STEPS)._asdict())
            env = os.environ | dict.fromkeys(("ARTIGRAD_CACHE", "WARP_CACHE_PATH"), f"{folder}/cache")  # empty, for all
            text, _ = run([str(python), str(HERE / ENGINES[name].script), folder], LIMIT, memory_GB, env)
    except Failed as failed:
        return {"engine": name, "why": str(failed)}
    return {"engine": name, "why": "", **json.loads(text.splitlines()[-1])}


def engine_sheet(found: list[dict[str, Any]]) -> Sheet:
    """Return a table with a row per engine; "-" for missing figures."""

    def figure(e: dict[str, Any], key: str, digits: int, spread: str = "") -> str:
        if key not in e:
            return "-"
        return f"{e[key]:,.{digits}f}" + (f" ±{100 * e[spread]:.0f}%" if spread else "")

    lines = []
    for e in found:
        if e["why"]:
            lines.append([e["engine"], *[""] * 7, e["why"]])
            continue
        times = [figure(e, f"{way}_us", 1, f"{way}_spread") for way in ("forward", "gradient")]
        figures = [figure(e, key, digits) for key, digits in (("compile_s", 1), ("peak_MB", 2))]
        checks = [figure(e, key, digits) for key, digits in (("height", 3), ("gradient", 2))]
        lines.append([e["engine"], e["version"], *times, *figures, *checks, e["what"]])
    columns = ["", "version", "forward, us/step", "forward + gradient, us/step", "compile, s", "peak, MB"]
    columns += ["height, m", "norm of the gradient", "what"]
    return Sheet(f"Other engines on the same robot, {STEPS} steps", columns, lines)
