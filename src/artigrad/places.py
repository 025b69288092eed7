"""Where the arrays of a simulator live: in memory of the host, as NumPy arrays, or on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .buffers import buffers
from .staging.kernel import empty as aligned
from .staging.kernel import zeros as aligned_zeros

if TYPE_CHECKING:
    from .staging.cuda.driver import Device


class Host:
    """NumPy arrays of one dtype."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def empty(self, shape: tuple[int, ...]) -> Any:
        return buffers.empty(shape, self.dtype)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return np.zeros(shape, self.dtype)

    def packed(self, shape: tuple[int, ...]) -> Any:
        """Memory for an array that the library lays out itself, uninitialised."""
        return aligned(shape, self.dtype)

    def packed_zeros(self, shape: tuple[int, ...]) -> Any:
        return aligned_zeros(shape, self.dtype)

    def rows(self, values: tuple[float, ...], batch: int) -> Any:
        """The same few numbers for every robot, (batch, n)."""
        return np.tile(np.array(values, self.dtype), (batch, 1))

    def broadcast(self, x: Any, batch: int) -> Any:
        """The same for every robot, without a copy."""
        return np.broadcast_to(x, (batch, *x.shape))

    def total(self, x: Any) -> Any:
        """The sum over the batch, which for one robot is that robot's own."""
        return x[0] if len(x) == 1 else x.sum(0)

    def total_packed(self, x: Any, batch: int) -> np.ndarray:
        """The sum over robots of a packed array (packs, n, lanes), in double precision."""
        rows = x.transpose(0, 2, 1).reshape(-1, x.shape[1])[:batch]
        return rows.sum(0, dtype=np.float64)

    def array(self, host: np.ndarray) -> Any:
        """An array of the host, here, in the dtype of this place."""
        return np.ascontiguousarray(host, self.dtype)

    def host(self, x: Any) -> np.ndarray:
        """An array of this place as a NumPy array."""
        return np.asarray(x)

    def shown(self, x: Any) -> Any:
        """A view that the user may look at but not write to."""
        view = x.view()
        view.flags.writeable = False
        return view


class Gpu:
    """The same on a GPU. Sums are made in a fixed order; nothing here waits for the device, except what goes to the host."""

    def __init__(self, device: Device, dtype: np.dtype):
        from .staging.cuda import array, total

        self.device, self.dtype, self._arrays, self._sums = device, dtype, array, total

    def empty(self, shape: tuple[int, ...]) -> Any:
        return self._arrays.empty(self.device, shape, self.dtype)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self._arrays.zeros(self.device, shape, self.dtype)

    packed, packed_zeros = empty, zeros

    def rows(self, values: tuple[float, ...], batch: int) -> Any:
        return self.broadcast(self.array(np.array(values)), batch).copy()

    def broadcast(self, x: Any, batch: int) -> Any:
        return self._arrays.broadcast(x, batch)

    def total(self, x: Any) -> Any:
        return x[0] if len(x) == 1 else self._sums.total(x, self.dtype)

    def total_packed(self, x: Any, batch: int) -> np.ndarray:
        """Lanes past the end of the batch were never written and must be zero."""
        n, lanes = x.shape[1:]
        return self._sums.total(x, np.dtype(np.float64)).numpy().reshape(n, lanes).sum(1)

    def array(self, host: np.ndarray) -> Any:
        return self._arrays.array(self.device, np.ascontiguousarray(host, self.dtype))

    def host(self, x: Any) -> np.ndarray:
        return x.numpy()

    def shown(self, x: Any) -> Any:
        return x.given()


Place = Host | Gpu
