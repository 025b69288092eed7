"""Base class that refuses to set attributes without effect; for models, parameters and simulators."""

from __future__ import annotations

from inspect import getattr_static
from typing import Any, ClassVar

from ..errors import near


class Sealed:
    """Base of classes whose attributes cannot be set once `_seal` was called.

    Properties with a setter can be set. A subclass may set its attributes under names that the base does not use.
    """

    __slots__ = ()
    CALLED: ClassVar[str] = "an object"
    OPEN: ClassVar[tuple[str, ...]] = ()  # attributes that can be set at any time

    def _seal(self) -> None:
        self.__dict__["_sealed"] = True

    def _remedy(self, name: str) -> str:
        """Return how to obtain the intended effect of setting an attribute, or an empty string."""
        return ""

    def _refuse(self, name: str) -> None:
        """Raise for an attribute that cannot be set or deleted."""
        if remedy := self._remedy(self._current(name)):
            raise AttributeError(f"'{name}' of {self.CALLED} cannot be changed: {remedy}")
        deprecated = getattr(self, "_renamed", {})
        names = sorted(n for n in {*dir(self)} if not n.startswith("_") and n not in deprecated)
        raise AttributeError(
            f"{self.CALLED} has no attribute '{name}' that could be set; {near(name, names, len(names))}"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        found = getattr_static(type(self), self._current(name), None)
        if (
            (isinstance(found, property) and found.fset is not None)
            or "_sealed" not in self.__dict__
            or name in self.OPEN
            or self._has_own(name)
        ):
            object.__setattr__(self, name, value)
        else:
            self._refuse(name)

    def __delattr__(self, name: str) -> None:
        if "_sealed" in self.__dict__ and not self._has_own(name):
            self._refuse(name)
        object.__delattr__(self, name)

    def _current(self, name: str) -> str:
        """Return the new name of an attribute with a deprecated one."""
        return str(getattr(self, "_renamed", {}).get(name, name))

    def _has_own(self, name: str) -> bool:
        """Return True for a private name, or one of a user's subclass that the base does not have."""
        derived = not type(self).__module__.startswith(f"{__name__.partition('.')[0]}.")
        return name.startswith("_") or (derived and not self._remedy(self._current(name)))
