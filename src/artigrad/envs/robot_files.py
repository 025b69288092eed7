"""Robot files of other packages (Gymnasium, dm_control), found without importing the packages."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..errors import InputError
from ..formats.load import load
from ..model.model import Model

FOLDERS = {"gymnasium": "envs/mujoco/assets", "dm_control": "suite"}
EXTRAS = {"gymnasium": "artigrad[gym]", "dm_control": "artigrad[robots]"}


@cache
def robot_of(package: str, file: str) -> Model:
    """Return the robot of a file of Gymnasium's MuJoCo environments or of dm_control's suite."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"{file} comes with {package}, which is not installed: pip install '{EXTRAS[package]}', or pass model="
        )
    return load(Path(next(iter(spec.submodule_search_locations))) / FOLDERS[package] / file)
