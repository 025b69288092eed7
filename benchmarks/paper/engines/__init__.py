"""The second table: other engines on the same robot, each with its script in this folder and a virtual environment of its own.

A script prints JSON: version, us per step of forward and gradient (CPU), peak_MB, compile_s, and what the gradient is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from ...report import Sheet
from ..build import FOLDER
from ..cells import Failed, Scale, run

HERE = Path(__file__).parent
INSTALL = 600  # seconds


class Engine(NamedTuple):
    """What pip installs for a script of this folder."""

    script: str
    packages: tuple[str, ...]


ENGINES: dict[str, Engine] = {}


def measure_engine(name: str, scale: Scale, memory_GB: float) -> dict[str, Any]:
    """Figures of one engine, or why there are none."""
    return {"engine": name, "why": "not written"}


def engine_sheet(found: list[dict[str, Any]]) -> Sheet:
    return Sheet("Other engines on the same robot", [""], [])


__all__ = ["ENGINES", "Failed", "engine_sheet", "json", "measure_engine", "os", "run", "subprocess", "sys"]
