"""Reference target: the same source, executed directly by Python on NumPy arrays with lanes as an axis. `pdb` works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .values import ROUNDER

_FUNCTIONS = {"sqrt": np.sqrt, "fabs": np.abs}


class NumpyCell:
    """Variable of the NumPy target."""

    __slots__ = ("value",)

    def __init__(self, start: Any):
        self.value = start

    def store(self, value: Any) -> None:
        self.value = value

    def load(self) -> Any:
        return self.value


class NumpyTarget:
    """Direct execution of the operations of `control` and `values` by NumPy."""

    symbolic = False
    tangents = False
    cell = NumpyCell
    int_cell = NumpyCell

    def __init__(self, dtype: str, lanes: int):
        self.dtype, self.lanes = dtype, lanes

    @staticmethod
    def loop(first: int, end: int, inwards: bool) -> Iterator[int]:
        return iter(range(end - 1, first - 1, -1) if inwards else range(first, end))

    @staticmethod
    def climb(parent: Any, start: int) -> Iterator[int]:
        i = start
        while i > 0:
            yield i
            i = parent[i]

    @staticmethod
    def switch(index: int, cases: dict[int, Callable[[], Any]]) -> Any:
        return cases[index]()

    @staticmethod
    def select(mask: Any, a: Any, b: Any) -> Any:
        return np.where(mask, a, b)

    def quarter_turns(self, turns: Any, s: Any, c: Any) -> tuple[Any, Any]:
        n = np.mod(turns - ROUNDER[self.dtype], 4)
        odd, sine, cosine = np.mod(n, 2) == 1, (n > 1), (n == 1) | (n == 2)
        return np.where(sine, -1, 1) * np.where(odd, c, s), np.where(cosine, -1, 1) * np.where(odd, s, c)

    def power_of_two(self, turns: Any) -> Any:
        return np.ldexp(np.ones_like(turns), np.asarray(turns - ROUNDER[self.dtype]).astype(int))

    @staticmethod
    def split_exponent(x: Any) -> tuple[Any, Any]:
        m, n = np.frexp(x)
        small = m < np.sqrt(0.5)
        return np.where(small, 2 * m, m), np.where(small, n - 1, n).astype(np.asarray(x).dtype)

    @staticmethod
    def any_lane(mask: Any) -> int:
        return int(np.any(mask))

    @staticmethod
    def integers(x: Any) -> list[int]:
        return [int(one) for one in np.atleast_1d(x)]

    @staticmethod
    def to_real(x: int) -> float:
        return float(x)

    @staticmethod
    def unary(function: str, a: Any) -> Any:
        return _FUNCTIONS[function](a)
