"""Deprecated names of the public API. They work for one version and warn with the new name.

`module_getattr` covers names of a module, `renamed` fields, methods and constructor arguments of a class, `renamed_arguments`
arguments of a function, `keyword_arguments` those that were positional, `moved_arguments` arguments that became fields of a
record. A DeprecationWarning points at the caller's line. The changelog lists all renamed names.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import CodeType
from typing import Any, TypeVar

from .errors import InputError, warn

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def deprecated(old: str, new: str) -> None:
    """Warn of a deprecated spelling."""
    warn(f"{old} is deprecated and will be removed in the next version: use {new}", DeprecationWarning)


def module_getattr(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that resolves deprecated names.

    Args:
      module: `__name__` of the module.
      names: New names by old ones: "Name" in the same module, or ".module:Name" relative to it.
    """

    def getattr_(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        where, _, new = names[name].rpartition(":")
        found = getattr(importlib.import_module(where or module, module), new)
        deprecated(f"{module}.{name}", f"{found.__module__ if where else module}.{new}")
        return found

    return getattr_


def translate(given: dict[str, Any], names: Mapping[str, str], owner: str) -> dict[str, Any]:
    """Return keyword arguments under their new names, with a warning for each deprecated one."""
    for old in [name for name in given if name in names]:
        if names[old] in given:
            raise InputError(f"{owner}: '{old}' is the deprecated name of '{names[old]}': pass '{names[old]}' only")
        deprecated(f"{owner}({old}=...)", f"{names[old]}=")
    return {names.get(name, name): value for name, value in given.items()}


def renamed_arguments(**names: str) -> Callable[[F], F]:
    """Decorate a function whose keyword arguments were renamed: `renamed_arguments(old="new")`."""

    def decorate(f: F) -> F:
        owner = f.__qualname__.removesuffix(".__init__").removesuffix(".__new__")

        @functools.wraps(f)
        def call(*args: Any, **given: Any) -> Any:
            return f(*args, **(translate(given, names, owner) if given.keys() & names.keys() else given))

        return call  # type: ignore[return-value]

    return decorate


def moved_arguments(**records: Any) -> Callable[[F], F]:
    """Decorate a function whose keyword arguments are now fields of a record: `moved_arguments(options=Options)`."""
    ((argument, record),) = records.items()
    names = {field.name for field in fields(record)}

    def decorate(f: F) -> F:
        owner = f.__qualname__.removesuffix(".__init__")

        @functools.wraps(f)
        def call(*args: Any, **given: Any) -> Any:
            moved = {name: given.pop(name) for name in given.keys() & names}
            if moved:
                if given.get(argument) is not None:
                    raise InputError(f"{owner}: pass {', '.join(sorted(moved))} as fields of {argument}")
                used = ", ".join(f"{name}=..." for name in sorted(moved))
                deprecated(f"{owner}({used})", f"{argument}={record.__name__}({used})")
                given[argument] = record(**moved)
            return f(*args, **given)

        return call  # type: ignore[return-value]

    return decorate


def keyword_arguments(*names: str) -> Callable[[F], F]:
    """Decorate a function whose last positional arguments became keyword-only, in this order."""

    def decorate(f: F) -> F:
        owner, arguments = f.__qualname__, inspect.signature(f).parameters.values()
        positional = sum(a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) for a in arguments)

        @functools.wraps(f)
        def call(*args: Any, **given: Any) -> Any:
            if len(args) > positional:
                moved = dict(zip(names, args[positional:], strict=False))
                if len(args) > positional + len(names) or moved.keys() & given.keys():
                    return f(*args, **given)  # raises
                used = ", ".join(f"{name}=..." for name in moved)
                deprecated(f"{owner}(...) with {', '.join(moved)} by position", used)
                args, given = args[:positional], moved | given
            return f(*args, **given)

        return call  # type: ignore[return-value]

    return decorate


def _overridden(instance: Any, name: str, caller: CodeType) -> Any:
    """Return an attribute of an instance, or of the next class if the caller is an override of it that calls `super()`."""
    classes = iter([] if isinstance(instance, type) else type(instance).__mro__)
    for cls in classes:
        if getattr(vars(cls).get(name), "__code__", None) is caller:
            found = next(vars(c)[name] for c in classes if name in vars(c))
            return found.__get__(instance, type(instance))
    return getattr(instance, name)


class _Alias(property):
    """Attribute that reads and writes another one."""

    def __init__(self, cls: type, old: str, new: str):
        def get(instance: Any) -> Any:
            deprecated(f"{cls.__name__}.{old}", new)
            return _overridden(instance, new, sys._getframe(2).f_code)  # behind __get__

        def set_(instance: Any, value: Any) -> None:
            deprecated(f"{cls.__name__}.{old}", new)
            setattr(instance, new, value)

        super().__init__(get, set_)
        self.new = new

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None and hasattr(owner, self.new):  # a class attribute
            return self.fget(owner)  # type: ignore[misc]
        return super().__get__(instance, owner)


def renamed(**names: str) -> Callable[[C], C]:
    """Decorate a class whose attributes were renamed: `renamed(old="new")`. Includes fields of dataclasses and named tuples
    as arguments of their constructors, and methods that subclasses override (by `rename_overrides`)."""

    def decorate(cls: C) -> C:
        all_names = {**getattr(cls, "_renamed", {}), **names}
        cls._renamed = all_names  # type: ignore[attr-defined]
        for old, new in names.items():
            setattr(cls, old, _Alias(cls, old, new))
        if is_dataclass(cls):
            setattr(cls, "__init__", renamed_arguments(**all_names)(cls.__init__))  # noqa: B010 - mypy forbids an assignment
        elif issubclass(cls, tuple):
            for method in ("__new__", "_replace"):
                setattr(cls, method, renamed_arguments(**all_names)(getattr(cls, method)))
        return cls

    return decorate


def rename_overrides(cls: type) -> None:
    """Rename attributes that a subclass defines under deprecated names; for `__init_subclass__` of a renamed class."""
    for old, new in getattr(cls, "_renamed", {}).items():
        if old in vars(cls):
            deprecated(f"{cls.__name__}.{old}", new)
            setattr(cls, new, vars(cls)[old])
            delattr(cls, old)
