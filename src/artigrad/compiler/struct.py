"""Structs: small typed groups of reals (a vector, a rotation, an inertia) that staged code passes by value.

Annotations of a subclass are its parts; each part is a real (`float`) or another struct:

    class Motion(Linear):
        w: Vec3
        v: Vec3

Structs exist while staging only and have no cost at run time.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

from .values import StagingError, change, dual, is_real, steady, target


class Struct:
    """Fixed group of named parts, equivalent to `size` reals in the order of the annotations."""

    parts: ClassVar[dict[str, type]] = {}
    size: ClassVar[int] = 0
    __slots__ = ()

    def __init_subclass__(cls) -> None:
        hints = {k: t for k, t in typing.get_type_hints(cls).items() if k not in ("parts", "size")}
        cls.parts = hints
        cls.size = sum(size_of(t) for t in hints.values())

    def __init__(self, *values: Any):
        if len(values) != len(self.parts):
            raise StagingError(f"{type(self).__name__} has parts {', '.join(self.parts)}; got {len(values)} values")
        for (name, kind), value in zip(self.parts.items(), values, strict=True):
            object.__setattr__(self, name, checked(value, kind, f"{type(self).__name__}.{name}"))

    def __setattr__(self, name: str, value: Any) -> None:
        raise StagingError(f"a {type(self).__name__} is a value: build a new one instead of assigning .{name}")

    def leaves(self) -> list[Any]:
        """Return all reals of the struct, in order."""
        out: list[Any] = []
        for name, kind in self.parts.items():
            value = getattr(self, name)
            if kind is float:
                out.append(value)
            else:
                out.extend(value.leaves())
        return out

    @classmethod
    def from_leaves(cls, leaves: Iterable[Any]) -> Self:
        it = iter(leaves)
        return cls._take(it)

    @classmethod
    def _take(cls, it: Iterator[Any]) -> Self:
        return cls(*(next(it) if kind is float else kind._take(it) for kind in cls.parts.values()))  # type: ignore[attr-defined]

    def map(self, f: Any, *others: Any) -> Self:
        """Apply `f` to each real of this struct, with the matching reals of `others`."""
        return self.from_leaves(f(*x) for x in zip(self.leaves(), *(o.leaves() for o in others), strict=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={getattr(self, k)!r}' for k in self.parts)})"


class Linear(Struct):
    """Struct that is a vector space: sums, differences, multiples."""

    __slots__ = ()

    def _same(self, other: Any, verb: str) -> None:
        if type(other) is not type(self):
            raise StagingError(f"cannot {verb} a {type(self).__name__} and a {type(other).__name__}")

    def __add__(self, other: Self) -> Self:
        self._same(other, "add")
        return self.map(lambda a, b: a + b, other)

    def __sub__(self, other: Self) -> Self:
        self._same(other, "subtract")
        return self.map(lambda a, b: a - b, other)

    def __neg__(self) -> Self:
        return self.map(lambda a: -a)

    def __mul__(self, scale: Any) -> Self:
        if not is_real(scale):
            raise StagingError(
                f"* scales a {type(self).__name__} by a real; for a product with {type(scale).__name__} "
                "write @, dot, cross or outer"
            )
        return self.map(lambda a: a * scale)

    __rmul__ = __mul__

    def __truediv__(self, scale: Any) -> Self:
        return self.map(lambda a: a / scale)

    @classmethod
    def zero(cls) -> Self:
        return cls.from_leaves([0.0] * cls.size)


def size_of(kind: type) -> int:
    """Return the number of reals of a type."""
    return 1 if kind is float else kind.size  # type: ignore[attr-defined]


def checked(value: Any, kind: type, where: str) -> Any:
    """Return `value` if it is of type `kind`; otherwise raise an error that names the location."""
    ok = is_real(value) if kind is float else type(value) is kind
    if not ok:
        wanted = "a real" if kind is float else f"a {kind.__name__}"
        raise StagingError(f"{where} holds {wanted}, not a {type(value).__name__}")
    return value


def flatten(value: Any) -> list[Any]:
    """Return the reals of a real, a struct or a (nested) tuple of them; with tangents, each followed by its tangent."""
    leaves = leaves_of(value)
    if not target().tangents:
        return leaves
    return [part for leaf in leaves for part in ((None, None) if leaf is None else (steady(leaf), change(leaf)))]


def leaves_of(value: Any) -> list[Any]:
    """Return the reals of a real, a struct or a (nested) tuple of them."""
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in leaves_of(item)]
    return value.leaves() if isinstance(value, Struct) else [value]


def unflatten(like: Any, leaves: Iterator[Any]) -> Any:
    """Return a value with the structure of `like` and the next leaves: the inverse of `flatten`."""
    return _filled(like, (dual(x, next(leaves)) for x in leaves) if target().tangents else leaves)


def _filled(like: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(like, tuple):
        return tuple(_filled(item, leaves) for item in like)
    return like._take(leaves) if isinstance(like, Struct) else next(leaves)
