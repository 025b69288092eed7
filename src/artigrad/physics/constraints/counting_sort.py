"""Counting sort of integer lists inside kernels."""

from __future__ import annotations

from typing import Any

from ...compiler import loop


def sort_by(key: Any, source: Any, out: Any, count: Any, first: Any, keys: Any) -> None:
    """Sort integers by key, stably.

    Args:
        key: Key of each integer, below `keys`.
        source: Integers to sort.
        out: Sorted integers.
        count: Number of integers.
        first: Work array of keys + 2 integers. On return first[k] is the start of key k in `out`, first[k + 1] its end.
        keys: Number of keys.
    """
    for k in loop(keys + 2):
        first[k] = 0
    for n in loop(count):
        k = key[source[n]] + 2
        first[k] = first[k] + 1
    for k in loop(keys):
        first[k + 2] = first[k + 2] + first[k + 1]
    for n in loop(count):
        e = source[n]
        k = key[e] + 1
        place = first[k]
        out[place] = e
        first[k] = place + 1
