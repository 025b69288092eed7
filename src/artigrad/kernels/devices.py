"""Devices of a simulator, on which its arrays are and its kernels run: the host, with NumPy arrays, or a GPU.

A device allocates arrays, uses those of users without a copy, returns results, and chooses the target of kernels. All other
code is the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, lru_cache
from math import isfinite
from typing import Any, Literal

import numpy as np

from ..compiler import INT, ROBOTS, ArgumentKind, Cuda, Kernel, Reals, Target, carry, loop, select
from ..compiler.kernel import empty as aligned
from ..compiler.kernel import zeros as aligned_zeros
from .buffers import buffers

Real = Literal["f64", "f32"]
REALS: dict[str, np.dtype] = {"f64": np.dtype(np.float64), "f32": np.dtype(np.float32)}
_WARP = 32


class Host:
    """CPU of this machine, with NumPy arrays of one dtype.

    Args:
        lanes: Robots per SIMD vector.
        native: True if kernels are compiled.
    """

    name = "cpu"

    def __init__(self, real: Real, lanes: int = 1, native: bool = True):
        self.dtype = REALS[real]
        self.targets = Target(real, 1, native), Target(real, lanes if native else 1, native)

    def target(self, batch: int) -> Target:
        """Target of kernels for a batch of this size."""
        return self.targets[batch > 1]

    def variant(self, batch: int) -> Any:
        """Key of the target for a batch of this size."""
        return batch > 1

    def together(self, batch: int) -> int:
        """Return the number of robots that share a contact buffer."""
        return self.target(batch).lanes

    # -- arrays ------------------------------------------------------------------------------------------------------
    def empty(self, shape: tuple[int, ...]) -> Any:
        return buffers.empty(shape, self.dtype)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return np.zeros(shape, self.dtype)

    def packed(self, shape: tuple[int, ...]) -> Any:
        """Return uninitialized memory for an array in internal layout."""
        return aligned(shape, self.dtype)

    def packed_zeros(self, shape: tuple[int, ...]) -> Any:
        return aligned_zeros(shape, self.dtype)

    def rows(self, values: Any, batch: int) -> Any:
        """Return values repeated for every robot, (batch, n)."""
        return np.tile(np.array(values, self.dtype), (batch, 1))

    def broadcast(self, x: Any, batch: int) -> Any:
        """Return x repeated for every robot, without a copy."""
        return np.broadcast_to(x, (batch, *x.shape))

    def total(self, x: Any) -> Any:
        """Return the sum over the batch."""
        return x[0] if len(x) == 1 else x.sum(0)

    def total_packed(self, x: Any, batch: int) -> np.ndarray:
        """Return the sum over robots of a packed array (packs, n, lanes), in double precision."""
        rows = x.transpose(0, 2, 1).reshape(-1, x.shape[1])[:batch]
        return rows.sum(0, dtype=np.float64)

    def array(self, host: np.ndarray) -> Any:
        """Return a host array on this device, in its dtype."""
        return np.ascontiguousarray(host, self.dtype)

    def host(self, x: Any) -> np.ndarray:
        """Return an array of this device as a NumPy array."""
        return np.asarray(x)

    # -- users' arrays -------------------------------------------------------------------------------------------------
    def working(self, arrays: Any) -> Any:
        """Context in which the arrays of a call are used."""
        return nullcontext()

    def settled(self) -> Any:
        """Context in which arrays are computed that later calls read."""
        return nullcontext()

    def holds(self, value: Any) -> bool:
        """True if an array is on a device other than the host."""
        return False

    def foreign(self, name: str, value: Any) -> Any:
        """Return an array that is already on this device (see `holds`), checked."""
        raise NotImplementedError

    def given(self, x: Any) -> Any:
        """Return a result in the array type of the user."""
        return x

    def shown(self, x: Any) -> Any:
        """Return a read-only view."""
        view = x.view()
        view.flags.writeable = False
        return view

    def fingerprint(self, arrays: list[Any]) -> tuple[float, ...]:
        """Return a fingerprint that detects later changes of these arrays without a copy of long controls."""
        return tuple(f for x in arrays for f in (by_place(x), square(x)))

    def finite(self, pieces: list[Any], batch: int) -> Any:
        """Return whether all entries of each robot are finite, (batch,)."""
        return np.ones(batch, bool) if all(map(all_finite, pieces)) else finite_rows(pieces, batch)


class Gpu:
    """Device for a GPU, with one robot per thread. Arrays on the GPU (PyTorch tensors, DeviceArrays, arrays with
    `__cuda_array_interface__` or DLPack) are used without a copy; host arrays are copied. Results are PyTorch tensors if any
    argument was one, else DeviceArrays. With tensors all work goes to PyTorch's current stream, else to `stream`. Only copies
    to the host wait for the device. Sums have a fixed order."""

    def __init__(self, real: Real, number: int):
        self.dtype, self.real, self.stream = REALS[real], real, 0
        self.launch = Cuda(number)
        self._bound: dict[Any, Any] = {}
        self._open()

    def _open(self) -> None:
        from ..compiler.cuda import array, driver, total  # search for the driver only when it is needed

        self.gpu, self._arrays, self._sums = driver.device(self.launch.device), array, total

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("gpu", "_arrays", "_sums")} | {
            "stream": 0,
            "_bound": {},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    @property
    def name(self) -> str:
        return f"cuda:{self.launch.device}"

    def target(self, batch: int) -> Target:
        return Target(self.real, _WARP, cuda=self.launch)

    def variant(self, batch: int) -> Any:
        return self.launch

    def together(self, batch: int) -> int:
        return 1

    def synchronize(self) -> None:
        """Wait for all work on `stream`."""
        self.gpu.synchronize(self.stream)

    # -- arrays ------------------------------------------------------------------------------------------------------
    def empty(self, shape: tuple[int, ...]) -> Any:
        return self._arrays.empty(self.gpu, shape, self.dtype)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self._arrays.zeros(self.gpu, shape, self.dtype)

    packed, packed_zeros = empty, zeros

    def rows(self, values: Any, batch: int) -> Any:
        return self.broadcast(self.array(np.array(values)), batch).copy()

    def broadcast(self, x: Any, batch: int) -> Any:
        return self._arrays.broadcast(x, batch)

    def total(self, x: Any) -> Any:
        return x[0] if len(x) == 1 else self._sums.total(x, self.dtype)

    def total_packed(self, x: Any, batch: int) -> np.ndarray:
        """Return the sum over robots of a packed array; lanes after the end of the batch must be zero."""
        n, lanes = x.shape[1:]
        return self._sums.total(x, np.dtype(np.float64)).numpy().reshape(n, lanes).sum(1)

    def array(self, host: np.ndarray) -> Any:
        return self._arrays.array(self.gpu, np.ascontiguousarray(host, self.dtype))

    def host(self, x: Any) -> np.ndarray:
        return x.numpy()

    # -- users' arrays -------------------------------------------------------------------------------------------------
    @contextmanager
    def working(self, arrays: Any) -> Iterator[None]:
        """Context of a call: waits for arrays that were written on other streams."""
        with self.gpu.current(), self._arrays.working(self.gpu, self.stream, tuple(arrays)):
            for x in arrays:
                if isinstance(x, self._arrays.DeviceArray):
                    self._arrays.wait_for(self.gpu, x)
            yield

    def settled(self) -> Any:
        return self._arrays.settled(self.gpu)

    def holds(self, value: Any) -> bool:
        return self._arrays.on_gpu(value)

    def foreign(self, name: str, value: Any) -> Any:
        return self._arrays.foreign(self.gpu, name, value, self.dtype)

    def given(self, x: Any) -> Any:
        """Return a result in the array type of the user, also inside tuples and dictionaries."""
        if isinstance(x, self._arrays.DeviceArray):
            return x.given()
        if isinstance(x, tuple):
            given = tuple(map(self.given, x))
            fields = getattr(x, "_fields", None)
            return given if fields is None else x._replace(**dict(zip(fields, given, strict=False)))  # type: ignore[attr-defined]
        if isinstance(x, dict):
            return {name: self.given(value) for name, value in x.items()}
        return x

    def shown(self, x: Any) -> Any:
        return x.given()

    def fingerprint(self, arrays: list[Any]) -> tuple[float, ...]:
        """Return the version counters of PyTorch tensors; changes of other arrays are not detected."""
        return tuple(_version(x.owner) for x in arrays)

    def finite(self, pieces: list[Any], batch: int) -> Any:
        """Return a boolean tensor, or 1.0 and 0.0 without PyTorch; the host does not wait for the result."""
        params = [x for x in pieces if isinstance(x, np.ndarray)]  # on the host already
        here = [x for x in pieces if not isinstance(x, np.ndarray) and len(x) == batch and x.size]
        found = self.empty((batch, 1))
        arrays = {f"x{k}": x for k, x in enumerate(here)} | {f"n{k}": x.size // batch for k, x in enumerate(here)}
        kernel = _finite_kernel(self.target(batch), len(here))
        if kernel not in self._bound:
            self._bound[kernel] = kernel.bind()
        self._bound[kernel](batch, 1, finite=found, **arrays)
        if not all(map(all_finite, params)):
            good = finite_rows([found.numpy() > 0.5, *params], batch)
            found = self.array(good.astype(self.dtype)[:, None])
        found = found[:, 0]
        return found.given() > 0.5 if self._arrays.is_torch(found) else found


Device = Host | Gpu


def _version(owner: Any) -> float:
    try:
        return float(owner._version)
    except (AttributeError, RuntimeError):  # not PyTorch's, or of its inference mode
        return 0.0


@cache
def _finite_kernel(target: Target, count: int) -> Kernel:
    """Kernel that computes 1 for robots with finite values only, else 0."""

    def body(finite: Reals, **rest: Any) -> None:
        total = carry(0.0)
        for j in range(count):
            x = rest[f"x{j}"]
            for k in loop(rest[f"n{j}"]):
                number = x[k]
                total.value = total.value + (number - number)  # NaN for what is not finite
        finite[0] = select(total.value >= 0.0, 1.0, 0.0)

    signature: dict[str, ArgumentKind] = {"finite": ROBOTS}
    signature |= {f"x{k}": ROBOTS for k in range(count)} | {f"n{k}": INT for k in range(count)}
    return Kernel("finite", body, signature, target)


# -- numbers of the host -----------------------------------------------------------------------------------------------------
FEW = 10_000  # entries for which BLAS is the fastest, and wakes no threads


def all_finite(x: np.ndarray) -> bool:
    """Return True if no entry is NaN or infinite, by a sum of squares without a temporary array, unless it overflows."""
    return isfinite(square(x)) or bool(np.isfinite(x).all())


def finite_rows(pieces: list[Any], batch: int) -> np.ndarray:
    """Return whether the rows of each robot are finite (or true); false for all if only a shared array is not."""
    good = np.ones(batch, bool)
    for x in pieces:
        if x.ndim > 1:
            good &= (x if x.dtype == bool else np.isfinite(x)).reshape(batch, -1).all(1)
    shared = all(np.isfinite(x).all() for x in pieces if x.ndim == 1)
    return good if shared or not good.all() else np.zeros(batch, bool)


def square(x: np.ndarray) -> float:
    """Return the sum of squares, without a warning if it overflows."""
    return float(np.vdot(x, x) if x.size < FEW else np.einsum("i,i->", x.ravel(), x.ravel()))


def by_place(x: np.ndarray) -> float:
    """Return the sum of all entries weighted by a value that depends on the index."""
    if x.size < FEW:
        return float(np.vdot(x, _ramp(x.size)))
    rows = x.reshape(len(x), -1)
    return float(np.einsum("ij,j->i", rows, _ramp(rows.shape[1])) @ _ramp(len(rows)))


@lru_cache(16)
def _ramp(n: int) -> np.ndarray:
    return np.sqrt(np.arange(1.0, n + 1.0))
