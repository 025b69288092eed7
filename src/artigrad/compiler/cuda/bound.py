"""Kernel on a GPU with some arguments bound; the counterpart of `kernel.Bound`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from . import array, driver
from .stage import WARP, Staged, stage

if TYPE_CHECKING:
    from ..kernel import Kernel

FEW = 9  # values of a table that branches are made for: enough for all kinds of joints and of collision routines
SHARE = 4  # of the memory of a device, one part may be workspace
_loading = threading.Lock()
_loaded: dict[tuple[Any, ...], tuple[Staged, Any]] = {}


class CudaBound:
    """Kernel with bound arguments.

    Bound integers and scratch sizes are compiled in; bound host arrays are uploaded once.
    """

    def __init__(self, kernel: Kernel, arguments: dict[str, Any]):
        assert kernel.target.cuda is not None
        self.kernel, self.cuda = kernel, kernel.target.cuda
        self.device = driver.device(self.cuda.device)
        kinds = kernel.signature
        self.given = {k: int(v) for k, v in arguments.items() if kinds[k] in ("int", "work", "int_work")}
        tables = {k: frozenset(np.unique(v).tolist()) for k, v in arguments.items() if kinds[k] == "ints"}
        self.among = {k: values for k, values in tables.items() if len(values) <= FEW}
        self.staged, self.function = self._load()
        self.slots = {name: k for k, (name, _) in enumerate(self.staged.parameters)}
        self._words = np.zeros(len(self.slots), np.int64)
        self._kept: list[Any] = []  # arrays that the words point to
        others = {k: v for k, v in arguments.items() if k not in self.given}
        if others:
            with array.settled(self.device):
                for key, value in others.items():
                    self._put(self._words, key, value, self._kept)

    def _load(self) -> tuple[Staged, Any]:
        """Return the code for these sizes on this device, loaded once per process."""
        key = (self.kernel, self.device, frozenset(self.given.items()), frozenset(self.among.items()))
        with _loading:
            found = _loaded.get(key)
            if found is None:
                staged = stage(self.kernel, self.given, self.among)
                found = _loaded[key] = (staged, self.device.load(staged, self.cuda.registers, self.cuda.effort))
        return found

    def _put(self, words: np.ndarray, key: str, value: Any, keep: list[Any]) -> None:
        kind, slot = self.kernel.signature[key], self.slots[key]
        if kind == "int":
            words[slot] = value
        elif kind == "real":
            words[slot : slot + 1].view(self.kernel.target.numpy_dtype)[0] = value
        else:
            x = value if isinstance(value, array.DeviceArray) else array.array(self.device, value)
            keep.append(x)
            words[slot] = x.pointer
            if kind in ("packed", "robots"):
                words[slot + 1] = x.strides[0] // (x.itemsize * (WARP if kind == "packed" else 1))

    def threads(self, batch: int) -> tuple[int, int]:
        """Return (blocks, threads per block) of a launch.

        The number of threads is limited by the resident threads of the device and by the memory for their workspace. A
        small batch is distributed over as many multiprocessors as it has warps.
        """
        cuda, all_of_them = self.cuda, self.device.multiprocessors
        warps = min(-(-batch // WARP), max(1, self.device.total // SHARE // max(self.staged.chunk, 1)))
        block = min(cuda.block, -(-warps // all_of_them) * WARP)
        return min(-(-warps * WARP // block), all_of_them * max(1, cuda.threads // block)), block

    def workspace(self, batch: int) -> int:
        """Return the number of workspace bytes of a launch."""
        grid, block = self.threads(batch)
        return grid * block // WARP * self.staged.chunk

    def words(self, arguments: dict[str, Any]) -> tuple[np.ndarray, list[Any]]:
        """Return all arguments of a launch but batch and workspace, and the arrays that they point to."""
        words, keep = self._words.copy(), list[Any]()
        for key, value in arguments.items():
            self._put(words, key, value, keep)
        return words, keep

    def __call__(self, batch: int, threads: int, **rest: Any) -> None:
        """Launch the kernel for `batch` robots. Memory of the arrays is reused in stream order."""
        words, keep = self.words(rest)
        grid, block = self.threads(batch)
        words[0] = batch
        if self.staged.chunk:
            work = array.empty(self.device, (self.workspace(batch),), np.dtype(np.uint8))
            words[1] = work.pointer
            keep.append(work)
        self.device.launch(self.function, grid, block, words, array.stream())
