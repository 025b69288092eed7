"""Errors a user may see. Each message names the culprit and says what to do."""

from __future__ import annotations

import difflib
import importlib
import sys
import warnings
from collections.abc import Sequence

import numpy as np


class ModelError(ValueError):
    """A robot description that no physics can be made of."""


class InputError(ValueError):
    """An array or argument of a call that does not fit the model: shape, type, value."""


class ContactError(RuntimeError):
    """More contacts at once than a simulator has room for."""


class DeviceError(RuntimeError):
    """Something about the GPU or its driver: none there, out of memory, too old."""


def need(package: str, what: str, extra: str) -> None:
    """Raise one sentence where a package that only some of the library needs is not installed."""
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as e:
        if e.name != package:
            raise
        raise ModuleNotFoundError(
            f"{what}, which is not installed: pip install 'artigrad[{extra}]'", name=package
        ) from None


def is_whole(value: object, least: int) -> bool:
    """Whether this is a whole number of Python's or NumPy's, at least so large, within 64 bits; True and 2.0 are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value < 2**63)


def near(name: object, names: Sequence[str], most: int = 20) -> str:
    """The end of a sentence about a wrong name: those that are like it, and all there are, or the first of many."""
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
