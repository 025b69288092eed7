"""Memory for trajectories, handed out again once nobody looks at it.

A fresh array of some megabytes costs a page fault per 4 KB: on a batch of quadrupeds that was a third of the time of a
rollout (`python -m benchmarks.engine`, row "fresh memory"). A lease goes back when the last array on it is gone.
"""

from __future__ import annotations

import threading
import weakref

import numpy as np

SMALLEST = 1 << 16  # below this the allocator is fast enough
LARGEST_KEPT = 1 << 26  # bytes that may lie idle


class _Lease(np.ndarray):
    """The array all views of one buffer lead back to; when it dies the buffer is free."""


class Buffers:
    """Recycles large arrays."""

    def __init__(self) -> None:
        self._idle: list[np.ndarray] = []
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """As np.empty."""
        size = int(np.prod(shape)) * dtype.itemsize
        if size < SMALLEST:
            return np.empty(shape, dtype)
        raw = self._take(size)
        lease = raw.view(_Lease)
        weakref.finalize(lease, self._give_back, raw).atexit = False
        return np.ndarray(shape, dtype, buffer=lease[:size])

    def _take(self, size: int) -> np.ndarray:
        with self._lock:
            for k, raw in enumerate(self._idle):
                if size <= raw.nbytes <= 2 * size:
                    return self._idle.pop(k)
        return np.empty(size, np.uint8)

    def _give_back(self, raw: np.ndarray) -> None:
        with self._lock:
            self._idle.append(raw)
            while sum(r.nbytes for r in self._idle) > LARGEST_KEPT:
                self._idle.pop(0)


buffers = Buffers()
