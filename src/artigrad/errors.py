"""Exceptions and warnings for users. Each message names the culprit and the remedy."""

from __future__ import annotations

import difflib
import importlib
import sys
import warnings
from collections.abc import Sequence

import numpy as np


class ModelError(ValueError):
    """Invalid robot description."""


class InputError(ValueError):
    """Array or argument that does not fit the model: shape, type, value."""


class ContactError(RuntimeError):
    """More simultaneous contacts than the capacity of a simulator."""


class DeviceError(RuntimeError):
    """Failure of the GPU or its driver: absent, out of memory, too old."""


def need(package: str, what: str, extra: str) -> None:
    """Raise ModuleNotFoundError with installation instructions if an optional package is not installed.

    Args:
        package: Name of the package.
        what: Beginning of the message, such as "viewing needs mujoco".
        extra: Extra of artigrad that installs it.
    """
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as e:
        if e.name != package:
            raise
        raise ModuleNotFoundError(
            f"{what}, which is not installed: pip install 'artigrad[{extra}]'", name=package
        ) from None


def is_whole(value: object, least: int) -> bool:
    """Return True for a Python or NumPy integer from `least` to 2^63 - 1; False for a bool or a float."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value < 2**63)


def near(name: object, names: Sequence[str], most: int = 20) -> str:
    """Return the end of a message about an unknown name: similar names, then all names, or the first `most` of them."""
    like = difflib.get_close_matches(str(name), names, n=3, cutoff=0.6)
    guess = f"did you mean {' or '.join(repr(x) for x in like)}? " if like else ""
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return f"{guess}it has: {', '.join(names[:most]) or 'none'}{more}"


def warn(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Issue a warning that points at the line of the user's code that called the library."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (__package__, "abc"):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)
