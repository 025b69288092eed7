"""Loops, branches and loop-carried variables of staged code. On the NumPy target they are ordinary Python control flow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .struct import Struct, flatten, unflatten
from .values import StagingError, Symbol, target


def loop(*bounds: Any, inwards: bool = False) -> Iterator[Any]:
    """Iterate by a loop of the compiled code: `for i in loop(n)` or `loop(first, end)`.

    `inwards=True` runs from the last index to the first. The body is staged once. A value that changes between iterations
    must be a `carry`; rebinding a name of the enclosing function inside the loop raises StagingError.
    """
    first, end = (0, bounds[0]) if len(bounds) == 1 else bounds
    return _watched(target().loop(first, end, inwards))


def climb(parent: Any, start: Any) -> Iterator[Any]:
    """Iterate over `start`, its parent, the parent of the parent, ... while the index is above 0 (the world)."""
    return _watched(target().climb(parent, start))


def switch(index: Any, cases: Mapping[int, Callable[[], Any]]) -> Any:
    """Branch on an integer of the model and return the result of `cases[index]()`.

    All cases return the same structure. With a single case no branch is compiled.
    """
    return target().switch(index, cases) if len(cases) > 1 else next(iter(cases.values()))()


class carry:
    """Variable that a loop modifies: `x = carry(x0)` before it, `x.value` to read and assign inside and after.

    Cases of a `switch` can assign to it as well.
    """

    __slots__ = ("_cells", "_like")

    def __init__(self, start: Any):
        self._like = start
        self._cells = [target().cell(leaf) for leaf in flatten(start)]

    @property
    def value(self) -> Any:
        return unflatten(self._like, iter([c.load() for c in self._cells]))

    @value.setter
    def value(self, new: Any) -> None:
        if isinstance(self._like, Struct) and type(new) is not type(self._like):
            raise StagingError(f"this carry holds a {type(self._like).__name__}, not a {type(new).__name__}")
        for cell, leaf in zip(self._cells, flatten(new), strict=True):
            cell.store(leaf)


class counter:
    """Integer variable that a loop modifies, with one value for all lanes of a SIMD vector."""

    __slots__ = ("_cell",)

    def __init__(self, start: Any):
        self._cell = target().int_cell(start)

    @property
    def value(self) -> Any:
        return self._cell.load()

    @value.setter
    def value(self, new: Any) -> None:
        self._cell.store(new)


def when_any(mask: Any) -> Iterator[Any]:
    """Execute a block only if a mask is true in some lane of the SIMD vector: `for _ in when_any(mask)`."""
    return loop(target().any_lane(mask))


def _watched(turns: Iterator[Any]) -> Iterator[Any]:
    """Run the loop and check that it rebinds no name of the enclosing function to a symbolic value."""
    if not target().symbolic:
        yield from turns
        return
    caller = sys._getframe(1)  # a generator runs from its caller's `for`
    before = {k: v for k, v in caller.f_locals.items() if k != "_" and _is_live(v)}
    for i in turns:
        yield i
        now = caller.f_locals
        for name, value in before.items():
            new = now.get(name)
            if new is not value and _is_live(new):
                raise StagingError(
                    f"'{name}' was bound before this loop and is bound anew inside it, so the next turn would still "
                    f"see the old value: write {name} = carry(...) before the loop and {name}.value = ... inside, "
                    "or use another name"
                )


def _is_live(value: Any) -> bool:
    """Return True for a symbolic value that may still be used; values of a closed scope may not."""
    if not isinstance(value, Struct | tuple | Symbol):
        return False
    symbols = [x for x in flatten(value) if isinstance(x, Symbol)]
    return bool(symbols) and all(x.scope.open for x in symbols)
