"""Checks of users' arguments, derived from the annotations of the functions that take them.

`checked` is for functions that are called rarely: builders, files, control, training. Arguments of steps are checked in
`simulate/checks.py`, where an array costs less than a microsecond.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from .errors import InputError, ModelError, is_whole

Function = TypeVar("Function", bound=Callable[..., Any])


def is_number(value: object) -> bool:
    """Return True for a real number of Python or NumPy, infinity included; False for True and NaN."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool) and value == value


def is_truth(value: object) -> bool:
    """Return True for True or False, or for 1 or 0 in place of them."""
    return isinstance(value, bool | np.bool_) or (isinstance(value, int) and value in (0, 1))


KINDS: dict[str, tuple[str, Callable[[object], bool]]] = {  # annotation: its name in messages, and its check
    "str": ("a str", lambda x: isinstance(x, str)),
    "bool": ("True or False", is_truth),
    "int": ("a whole number", lambda x: is_whole(x, -(2**63))),
    "float": ("a number", is_number),
    "None": ("None", lambda x: x is None),
    "Callable": ("a function", callable),
    "Mapping": ("a mapping by name", lambda x: isinstance(x, Mapping)),
    "dict": ("a dict", lambda x: isinstance(x, dict)),
    "tuple": ("a tuple", lambda x: isinstance(x, list | tuple)),
}
CLASSES = (
    "Model",
    "Params",
    "Options",
    "Simulator",
    "Trajectory",
    "RayScene",
    "Camera",
    "Outputs",
    "EnvTask",
    "GradientOptions",
)


def _is_one_of(choices: tuple[str, ...], value: object) -> bool:
    return isinstance(value, str) and value in choices


def _is_a(name: str, value: object) -> bool:
    return type(value).__name__ == name or any(c.__name__ == name for c in type(value).__mro__)


def truth(name: str, value: object) -> bool:
    """Return the value as a bool, or raise an error that names the argument."""
    if not is_truth(value):
        raise InputError(f"{name} is True or False, not {shown(value)}")
    return bool(value)


def numbers(name: str, value: object, *, finite: bool = True) -> np.ndarray:
    """Return an array of float64 of any shape, or raise an error that names the argument."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "fiuO" or np.ma.isMaskedArray(value):
            raise TypeError
        out = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is a number or an array of numbers, not {shown(value)}") from None
    if np.isnan(out).any() or (finite and not np.isfinite(out).all()):
        raise InputError(f"{name} has entries that are not finite")
    return out


def _check_of(annotation: str) -> tuple[str, Callable[[object], bool]] | None:
    """Return the description and the check of an annotation; None if it is not checked."""
    words, checks = list[str](), list[Callable[[object], bool]]()
    for part in re.split(r" \| (?![^\[]*\])", annotation.strip()):
        head = part.partition("[")[0]
        if part == "tuple[int, ...]":
            words.append("a tuple of whole numbers, at least 1")
            checks.append(lambda x: isinstance(x, list | tuple) and all(is_whole(n, 1) for n in x))
        elif head == "Literal":
            choices = tuple(x.strip().strip("'\"") for x in part[len("Literal[") : -1].split(","))
            words.append("one of " + ", ".join(map(repr, choices)))
            checks.append(functools.partial(_is_one_of, choices))
        elif head in KINDS:
            words.append(KINDS[head][0])
            checks.append(KINDS[head][1])
        elif part in CLASSES:
            words.append(f"{'an' if part[0] in 'AEIOU' else 'a'} {part}")
            checks.append(functools.partial(_is_a, part))
        else:
            return None
    return " or ".join(words), lambda x: any(check(x) for check in checks)


def checked(function: Function) -> Function:
    """Decorate a function to refuse arguments of other types than annotated, with an InputError that names the argument.

    Annotations are read as text, so that they may name types imported for type checking only. Annotations other than
    `KINDS` and `CLASSES` (arrays, Any) are not checked.
    """
    return _checked(function, InputError, ())


def checked_model(function: Function) -> Function:
    """Decorate a function that constructs models, as `checked`, with ModelError for wrong arguments.

    Numbers are left to the function, whose errors name the part of the model.
    """
    return _checked(function, ModelError, ("float", "int"))


def _checked(function: Function, error: type[Exception], left: tuple[str, ...]) -> Function:
    found: dict[str, tuple[str, Callable[[object], bool]]] = {}
    signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        annotation = parameter.annotation
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or not isinstance(annotation, str):
            continue
        if annotation.split(" | ")[0] not in left and (check := _check_of(annotation)) is not None:
            found[name] = check
    order = [p.name for p in signature.parameters.values() if p.kind == p.POSITIONAL_OR_KEYWORD]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in (*zip(order, args, strict=False), *kwargs.items()):
            if name in found and not found[name][1](value):
                raise error(f"{name} is {found[name][0]}, not {shown(value)}")
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def check_fields(record: Any) -> None:
    """Refuse fields of a dataclass of other types than annotated, with an InputError that names the field."""
    for field in dataclasses.fields(record):
        check, value = _check_of(str(field.type)), getattr(record, field.name)
        if check is not None and not check[1](value):
            raise InputError(f"{field.name} of {type(record).__name__} is {check[0]}, not {shown(value)}")


def shown(value: object) -> str:
    """Return a value as shown in messages: short ones in full, others by their type."""
    plain = isinstance(value, int | float | str | bytes | np.number | list | tuple | dict) or value is None
    text = repr(value) if plain else ""
    return text if text and len(text) <= 40 else type(value).__name__
