"""Arrays on a GPU: allocation, views, copies, and exchange with other libraries.

A simulator on CUDA uses and returns `DeviceArray`s. They support basic NumPy indexing and reshaping, are copied to the host
by `.numpy()`, and are shared with other libraries without a copy: `torch.from_dlpack(x)`, `jax.dlpack.from_dlpack(x)`,
`cupy.asarray(x)`.

Memory is allocated in the order of a stream. While a call works on PyTorch tensors, memory comes from PyTorch's allocator
and kernels are launched on PyTorch's current stream (`working`).
"""

from __future__ import annotations

import math
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from ...errors import InputError
from ..kernel import Cuda, Kernel, Target
from ..memory import Reals, copy
from . import dlpack
from .driver import Device

_LEGACY_STREAM = 1  # how __cuda_array_interface__ names the default stream


class _Now(threading.local):
    """State of the current call: its stream, and PyTorch if it was given tensors."""

    stream: int = 0
    torch: Any = None
    settled: bool = False


_now = _Now()


def stream() -> int:
    """Return the stream of the current call."""
    return _now.stream


@contextmanager
def working(device: Device, default_stream: int, arrays: tuple[Any, ...]) -> Iterator[None]:
    """Context in which work uses PyTorch's current stream and allocator, if any of the arrays is a PyTorch tensor."""
    before = _now.stream, _now.torch
    torch = sys.modules.get("torch") if any(is_torch(x) for x in arrays) else None
    _now.torch = torch
    _now.stream = default_stream if torch is None else int(torch.cuda.current_stream(device.number).cuda_stream)
    try:
        yield
    finally:
        _now.stream, _now.torch = before


@contextmanager
def settled(device: Device) -> Iterator[None]:
    """Context for arrays that later calls on any stream read.

    They are written on the default stream, complete when the block ends, and freed only when the device is idle.
    """
    before = _now.stream, _now.torch, _now.settled
    _now.stream, _now.torch, _now.settled = 0, None, True
    try:
        yield
        device.synchronize(0)
    finally:
        _now.stream, _now.torch, _now.settled = before


def is_torch(x: Any) -> bool:
    """True for a CUDA tensor of PyTorch, or an array in the memory of one."""
    x = x.owner if isinstance(x, DeviceArray) else x
    return type(x).__module__.partition(".")[0] == "torch" and bool(getattr(x, "is_cuda", False))


class _Lease:
    """Device memory, freed with its last reference."""

    __slots__ = ("__weakref__", "_back")

    def __init__(self, device: Device, pointer: int):
        self._back = weakref.finalize(self, device.free, pointer, _now.stream, _now.settled)
        self._back.atexit = False

    def share(self) -> None:
        """Record the use by another stream: the memory is then freed only when the device is idle."""
        found = self._back.detach()
        if found is not None:
            _, free, (pointer, made_on, _), _ = found
            self._back = weakref.finalize(self, free, pointer, made_on, True)
            self._back.atexit = False


class _Shadow:
    """Address, shape and strides of an array in NumPy's array interface."""

    def __init__(self, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype):
        about = {"data": (pointer, False), "shape": shape, "strides": strides, "typestr": dtype.str, "version": 3}
        self.__array_interface__ = about


class DeviceArray:
    """Array on a GPU. `stream` is the stream on which its values are computed."""

    __slots__ = ("__weakref__", "device", "dtype", "owner", "pointer", "shape", "stream", "strides")

    def __init__(
        self,
        device: Device,
        pointer: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        owner: Any,
        strides: tuple[int, ...] | None = None,
        stream: int | None = None,
    ):
        self.device, self.pointer, self.dtype, self.owner = device, pointer, dtype, owner
        self.stream = _now.stream if stream is None else stream
        self.shape = tuple(int(n) for n in shape)
        self.strides = _contiguous(self.shape, dtype.itemsize) if strides is None else strides

    # -- shape -----------------------------------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def _shadow(self) -> np.ndarray:
        """Host array with this address and shape, from which NumPy computes views. It must not be read."""
        return np.asarray(_Shadow(self.pointer or 64, self.shape, self.strides, self.dtype))

    def _view(self, shadow: np.ndarray) -> DeviceArray:
        place = shadow.__array_interface__["data"][0] if shadow.size else self.pointer
        return DeviceArray(self.device, place, shadow.shape, self.dtype, self.owner, shadow.strides, self.stream)

    def __getitem__(self, key: Any) -> DeviceArray:
        """Return a view, indexed by integers, slices, None and ... as in NumPy; a single entry has shape ()."""
        for k in key if isinstance(key, tuple) else (key,):
            if not (k is None or k is Ellipsis or isinstance(k, int | np.integer | slice)):
                raise InputError("arrays on a GPU are indexed by integers and slices; use .numpy() or torch.as_tensor")
        keys = key if isinstance(key, tuple) else (key,)
        return self._view(self._shadow()[keys if Ellipsis in keys else (*keys, Ellipsis)])

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return the array in another shape, copied if the strides require it."""
        try:
            return self._view(self._shadow().reshape(*shape, copy=False))
        except ValueError:
            if self.contiguous:
                raise
            return self.copy().reshape(*shape)

    @property
    def contiguous(self) -> bool:
        return _is_c_contiguous(self.shape, self.strides, self.dtype.itemsize)

    # -- numbers ---------------------------------------------------------------------------------------------------
    def copy(self) -> DeviceArray:
        out = empty(self.device, self.shape, self.dtype)
        out[...] = self
        return out

    def __setitem__(self, key: Any, value: Any) -> None:
        """Copy an array of the same shape into a view."""
        to = self[key]
        source = value if isinstance(value, DeviceArray) else array(self.device, np.asarray(value, self.dtype))
        if source.shape != to.shape or source.dtype != to.dtype:
            raise InputError(f"cannot copy {source.shape} {source.dtype} to {to.shape} {to.dtype}")
        if to.size == 0:
            return
        if to.contiguous and source.contiguous:
            self.device.copy(to.pointer, source.pointer, to.nbytes, stream())
        elif _in_rows(to) and _in_rows(source):
            n = to.size // len(to)
            _copy_rows(self.device.number, "f64" if to.itemsize == 8 else "f32")(
                len(to), 1, source=source, destination=to, n=n
            )
        elif len(to.shape) > 2 and _in_rows(to[:, 0]) and _in_rows(source[:, 0]):
            for k in range(to.shape[1]):  # columns of rows, as one field of all frames: still without the host
                to[:, k] = source[:, k]
        else:
            to._put(source.numpy())

    def _put(self, host: np.ndarray) -> None:
        """Write host values to a strided view: the enclosing bytes are read, modified and written back."""
        span, view = self._span()
        self.device.download(span, self.pointer, stream())
        view[...] = host
        self.device.upload(self.pointer, span, stream())

    def _span(self) -> tuple[np.ndarray, np.ndarray]:
        """Return host memory for all bytes from the first entry to the last, and the view of this array in it."""
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        span = np.empty(last + self.itemsize, np.uint8)
        return span, np.ndarray(self.shape, self.dtype, span, 0, self.strides)

    def numpy(self) -> np.ndarray:
        """Return a copy on the host, after the work on its stream."""
        if self.size == 0:
            return np.empty(self.shape, self.dtype)
        span, view = self._span()
        self.device.download(span, self.pointer, self.stream)
        return np.ascontiguousarray(view).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on a GPU comes to the host as a copy")
        return np.asarray(self.numpy(), dtype)

    def __float__(self) -> float:
        return float(self.numpy())

    # -- other libraries -------------------------------------------------------------------------------------------
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None if self.contiguous else self.strides,
            "version": 3,
            "stream": self.stream or _LEGACY_STREAM,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.device.number

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        """Return a DLPack capsule for a consumer on `stream` (1 and None: the default stream, -1: no synchronization)."""
        if stream != -1 and (0 if stream in (None, 1) else stream) != self.stream:
            self.device.synchronize(self.stream)
        return dlpack.lend(self, self.__dlpack_device__())

    def given(self) -> Any:
        """Return the array for the user: a tensor if its memory is PyTorch's, else itself."""
        if not is_torch(self):
            return self
        strides = tuple(s // self.itemsize for s in self.strides)
        flat = self.owner.detach()
        offset = flat.storage_offset() + (self.pointer - flat.data_ptr()) // self.itemsize
        return flat.as_strided(self.shape, strides, offset)

    def __repr__(self) -> str:
        return f"DeviceArray({self.shape}, {self.dtype}, on 'cuda:{self.device.number}')"


def _contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _in_rows(x: DeviceArray) -> bool:
    """True if each x[i] is contiguous."""
    return x.ndim > 1 and _is_c_contiguous(x.shape[1:], x.strides[1:], x.itemsize)


def _is_c_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], step: int) -> bool:
    """True if the elements are contiguous in C order; strides of axes of length 1 do not matter."""
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 0:
            return True
        if n > 1 and stride != step:
            return 0 in shape
        step *= n
    return True


@cache
def _copy_rows(number: int, dtype: Any) -> Any:
    """Kernel that copies rows of n values from one array to another."""

    def body(source: Reals, destination: Reals, n: Any) -> None:
        copy(source, destination, n)

    target = Target(dtype, 32, cuda=Cuda(number))
    return Kernel("copy_rows", body, {"source": "robots", "destination": "robots", "n": "int"}, target).bind()


# -- making arrays -----------------------------------------------------------------------------------------------------
def empty(device: Device, shape: tuple[int, ...], dtype: np.dtype) -> DeviceArray:
    """Return an uninitialized array, as np.empty."""
    count = max(math.prod(shape), 1)
    if _now.torch is not None:
        torch = _now.torch
        kind = {("f", 8): torch.float64, ("f", 4): torch.float32, ("i", 4): torch.int32}.get(
            (dtype.kind, dtype.itemsize)
        )
        tensor = torch.empty(count, dtype=kind or torch.uint8, device=f"cuda:{device.number}")
        return DeviceArray(device, tensor.data_ptr(), shape, dtype, tensor)
    pointer = device.allocate(count * dtype.itemsize, _now.stream)
    return DeviceArray(device, pointer, shape, dtype, _Lease(device, pointer))


def zeros(device: Device, shape: tuple[int, ...], dtype: np.dtype) -> DeviceArray:
    """Return an array of zeros, as np.zeros."""
    out = empty(device, shape, dtype)
    device.clear(out.pointer, out.nbytes, stream())
    return out


def array(device: Device, host: np.ndarray) -> DeviceArray:
    """Return a copy of a host array."""
    out = empty(device, host.shape, host.dtype)
    device.upload(out.pointer, np.ascontiguousarray(host), stream())
    return out


def broadcast(x: DeviceArray, batch: int) -> DeviceArray:
    """Return `batch` copies of an array as a view, with stride 0."""
    return DeviceArray(x.device, x.pointer, (batch, *x.shape), x.dtype, x.owner, (0, *x.strides), x.stream)


def on_gpu(x: Any) -> bool:
    """True for an array on a GPU, of any library."""
    if isinstance(x, DeviceArray) or is_torch(x) or hasattr(x, "__cuda_array_interface__"):
        return True
    return hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] == dlpack.CUDA


def wait_for(device: Device, x: DeviceArray) -> None:
    """Make the current stream wait for the stream on which an array was computed."""
    if x.stream != stream() and not is_torch(x):  # PyTorch leaves the order of its streams to the user
        device.synchronize(x.stream)
        if isinstance(x.owner, _Lease):
            x.owner.share()


def foreign(device: Device, name: str, x: Any, dtype: np.dtype) -> DeviceArray | None:
    """Return an array of another library on this GPU as a DeviceArray, without a copy; None for host arrays."""
    if not on_gpu(x):
        return None
    if isinstance(x, DeviceArray):
        found = x
        wait_for(device, x)
    elif is_torch(x):
        found = _of_torch(device, name, x)
    elif hasattr(x, "__cuda_array_interface__"):
        found = _of_interface(device, x)
    else:
        found = _of_dlpack(device, name, x)
    if found.device is not device:
        raise InputError(f"{name} is on 'cuda:{found.device.number}'; this simulator works on 'cuda:{device.number}'")
    if found.dtype != dtype:
        raise InputError(f"{name} is {found.dtype}; this simulator works in {dtype}: convert it, or pass dtype=")
    if found.ndim == 0:
        raise InputError(f"{name} must be an array, not a single number")
    return found if found.contiguous else found.copy()


def _of_torch(device: Device, name: str, x: Any) -> DeviceArray:
    if (x.device.index or 0) != device.number:
        raise InputError(f"{name} is on '{x.device}'; this simulator works on 'cuda:{device.number}'")
    try:
        dtype = np.dtype(str(x.dtype).removeprefix("torch."))
    except TypeError:
        raise InputError(f"{name} is {x.dtype}; use torch.float32 or torch.float64") from None
    x = x.detach().contiguous()
    return DeviceArray(device, x.data_ptr(), tuple(x.shape), dtype, x)


def _of_interface(device: Device, x: Any) -> DeviceArray:
    about = x.__cuda_array_interface__
    made_on = about.get("stream")
    if made_on not in (None, stream()) and not (made_on == _LEGACY_STREAM and stream() == 0):
        device.synchronize(0 if made_on == _LEGACY_STREAM else made_on)
    strides = about.get("strides")
    return DeviceArray(device, about["data"][0], tuple(about["shape"]), np.dtype(about["typestr"]), x, strides)


def _of_dlpack(device: Device, name: str, x: Any) -> DeviceArray:
    lent = dlpack.borrow(x, stream())
    if lent.device[1] != device.number:
        raise InputError(f"{name} is on 'cuda:{lent.device[1]}'; this simulator works on 'cuda:{device.number}'")
    return DeviceArray(device, lent.pointer, lent.shape, lent.dtype, lent.keep, lent.strides)
