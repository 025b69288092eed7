"""DLPack, the protocol for sharing memory between array libraries: export and import of `DLManagedTensor` capsules."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any, NamedTuple

import numpy as np

CUDA = 2  # kDLCUDA
_CODES = {0: "i", 1: "u", 2: "f"}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


# prototypes of our own: other libraries change the arguments of the functions that ctypes.pythonapi hands out
_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", _api))
_inside = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _api))
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))
_NAME = b"dltensor"
_lent: dict[int, Any] = {}  # what others hold, by the address of its description


def _delete(address: int) -> None:
    """Deleter that the consumer of a capsule calls."""
    _lent.pop(address, None)


def _drop(capsule: int) -> None:
    """Release a capsule that was not consumed."""
    if _is_valid(capsule, _NAME):
        _lent.pop(_pointer_of(capsule, _NAME), None)


_callback = ctypes.CFUNCTYPE(None, c_void_p)
_deleter, _destructor = _callback(_delete), _callback(_drop)


def lend(x: Any, device: tuple[int, int]) -> Any:
    """Return a capsule for an array with pointer, shape, strides (bytes) and dtype; it keeps the array alive."""
    numbers = c_int64 * max(x.ndim, 1)
    shape, strides = numbers(*x.shape), numbers(*(s // x.itemsize for s in x.strides))
    managed = _Managed()
    code = next(c for c, kind in _CODES.items() if kind == x.dtype.kind)
    managed.tensor = _Tensor(x.pointer, *device, x.ndim, code, 8 * x.itemsize, 1, shape, strides, 0)
    managed.deleter = ctypes.cast(_deleter, c_void_p)
    address = ctypes.addressof(managed)
    _lent[address] = (x, managed, shape, strides)
    return _new(address, _NAME, ctypes.cast(_destructor, c_void_p))


class Borrowed(NamedTuple):
    """Imported array of another library; `keep` keeps it alive."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype
    device: tuple[int, int]
    keep: Any


def borrow(x: Any, stream: int) -> Borrowed:
    """Return the memory of an array that supports DLPack. The capsule is not consumed; it and the array are kept alive."""
    capsule = x.__dlpack__(stream=stream or 1)  # 1 is the default stream
    address = _inside(capsule, _NAME)
    t = _Managed.from_address(address).tensor
    dtype = np.dtype(f"{_CODES.get(t.code, 'V')}{t.bits // 8}")
    shape = tuple(t.shape[k] for k in range(t.ndim))
    strides = tuple(t.strides[k] * dtype.itemsize for k in range(t.ndim)) if t.strides else None
    return Borrowed((t.data or 0) + t.byte_offset, shape, strides, dtype, (t.device_type, t.device_id), (capsule, x))
