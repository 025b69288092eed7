"""Memory pool for trajectories. A buffer is reused when no array refers to it.

A new array of some megabytes costs a page fault per 4 KB: on a batch of quadrupeds that was a third of the time of a
rollout (`python -m benchmarks.engine`, row "fresh memory").
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from contextlib import suppress

import numpy as np

SMALLEST = 1 << 16  # below this the allocator is fast enough
LARGEST_KEPT = 1 << 26  # bytes that may lie idle


class _Borrowed(np.ndarray):
    """Base array of all views of a buffer; its deletion returns the buffer to the pool."""


class Buffers:
    """Pool of large arrays.

    The garbage collector may return a buffer on any thread at any time, so that buffers are appended to a deque, without a
    lock.
    """

    def __init__(self) -> None:
        self._back: deque[np.ndarray] = deque()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return an uninitialized array, as np.empty."""
        size = math.prod(shape) * dtype.itemsize
        if size < SMALLEST:
            return np.empty(shape, dtype)
        raw = self._take(size)
        lease = raw.view(_Borrowed)
        weakref.finalize(lease, self._back.append, raw).atexit = False
        return np.ndarray(shape, dtype, buffer=lease[:size])

    def _take(self, size: int) -> np.ndarray:
        """Return an idle buffer of about this size, or a new one; surplus idle buffers are freed."""
        idle: list[np.ndarray] = []
        with suppress(IndexError):
            while True:
                idle.append(self._back.popleft())
        found: np.ndarray | None = None
        kept = 0
        for raw in reversed(idle):  # the latest first
            if found is None and size <= raw.nbytes <= 2 * size:
                found = raw
            elif kept + raw.nbytes <= LARGEST_KEPT:
                kept += raw.nbytes
                self._back.append(raw)
        return np.empty(size, np.uint8) if found is None else found


buffers = Buffers()
