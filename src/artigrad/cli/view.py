"""`artigrad view`: a robot in the browser."""

from __future__ import annotations

import inspect

import artigrad

from .. import robots
from ..errors import InputError
from ..model import Model


def model_of(name: str) -> Model:
    """A bundled robot by its name, or the robot of a file."""
    bundled = {n: make for n in robots.__all__ if _alone(make := getattr(robots, n))}
    if name in bundled:
        return bundled[name]()
    load = getattr(artigrad, "load", None)
    if load is None:
        raise InputError(f"'{name}' is none of the bundled robots: {', '.join(bundled)}")
    return load(name)


def _alone(make: object) -> bool:
    """Whether a function can be called without arguments."""
    return callable(make) and all(p.default is not p.empty for p in inspect.signature(make).parameters.values())
