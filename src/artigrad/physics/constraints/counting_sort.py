"""Counting sort of lists of integers."""

from __future__ import annotations

from typing import Any

from ...compiler import loop


def sort_by(key: Any, source: Any, out: Any, count: Any, first: Any, keys: Any) -> None:
    """Sort `count` integers e by key[e], which is below `keys`; equal ones stay in their order.

    first: room for keys + 2 integers. It then has where the integers of each key begin, and of the next one, where they end.
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
