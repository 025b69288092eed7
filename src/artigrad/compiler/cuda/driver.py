"""The driver library `libcuda`, called directly: devices, memory, modules, launches. Error codes become messages.

All work uses the primary context of a device, as PyTorch and JAX do, so that their arrays can be read without a copy. This
module is independent of what kernels compute.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...errors import DeviceError
from .. import disk
from .ptx import ARCHITECTURES, ptx
from .stage import Staged

# results of the driver (CUresult)
OUT_OF_MEMORY, NOT_INITIALIZED, DEINITIALIZED = 2, 3, 4
NO_DEVICE, INVALID_DEVICE = 100, 101
_ADVICE = {
    OUT_OF_MEMORY: "the GPU is out of memory: use a smaller batch, dtype='f32', or checkpoints=EveryKth(k)",
    NOT_INITIALIZED: "CUDA does not survive a fork: start processes with the 'spawn' method",
    DEINITIALIZED: "the driver is shutting down with the process",
    34: "this libcuda is the toolkit's stub: take the toolkit's 'stubs' folder out of LD_LIBRARY_PATH",
    35: "the driver is too old for this GPU or library: update the NVIDIA driver",
    46: "the GPU is busy or unavailable: another process may hold it exclusively (see nvidia-smi)",
    NO_DEVICE: "no NVIDIA GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES, or use device='cpu'",
    INVALID_DEVICE: "there is no GPU with this number: count them with nvidia-smi, the first is 'cuda:0'",
    209: "the GPU cannot run this code: its compute capability is not supported",
    218: "the driver refused the code; please report this with the text above",
    221: "the driver's compiler (libnvidia-ptxjitcompiler) is missing: install the complete driver, or in a container give "
    "it the 'compute' capability",
    222: "the driver is too old to read this PTX: update the NVIDIA driver",
    700: "a kernel touched memory that is not its own, and this process can no longer use the GPU: restart it, and report "
    "what you ran",
    701: "a kernel asked for more registers than there are: use a smaller block",
    719: "a kernel failed, and this process can no longer use the GPU: restart it, and report what you ran",
    802: "the system is not ready to use CUDA: the fabric manager may not be running",
    803: "driver library and kernel module have different versions: reboot, or install one version",
    804: "this driver cannot run the newer CUDA library that was found: remove the compatibility package",
}

# CUdevice_attribute, CUfunction_attribute, CUjit_option, CUjitInputType, CUmemPool_attribute
_MULTIPROCESSORS, _MAJOR, _MINOR, _MEMORY_POOLS = 16, 75, 76, 115
_LOCAL_BYTES, _REGISTERS, _CARVEOUT = 3, 4, 9
_JIT_MAX_REGISTERS, _JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES = 0, 5, 6
_INPUT_PTX = 1
_RELEASE_THRESHOLD, _USED_NOW = 4, 7

_pointer = c_uint64  # CUdeviceptr
_SIGNATURES: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuDriverGetVersion": [c_void_p],
    "cuDeviceGetCount": [c_void_p],
    "cuDeviceGet": [c_void_p, c_int],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDeviceGetAttribute": [c_void_p, c_int, c_int],
    "cuDevicePrimaryCtxRetain": [c_void_p, c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [c_void_p],
    "cuCtxSynchronize": [],
    "cuGetErrorString": [c_int, c_void_p],
    "cuMemGetInfo_v2": [c_void_p, c_void_p],
    "cuMemAlloc_v2": [c_void_p, c_size_t],
    "cuMemFree_v2": [_pointer],
    "cuMemAllocAsync": [c_void_p, c_size_t, c_void_p],
    "cuMemFreeAsync": [_pointer, c_void_p],
    "cuDeviceGetDefaultMemPool": [c_void_p, c_int],
    "cuMemPoolSetAttribute": [c_void_p, c_int, c_void_p],
    "cuMemPoolGetAttribute": [c_void_p, c_int, c_void_p],
    "cuMemPoolTrimTo": [c_void_p, c_size_t],
    "cuMemcpyHtoDAsync_v2": [_pointer, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, _pointer, c_size_t, c_void_p],
    "cuMemcpyDtoDAsync_v2": [_pointer, _pointer, c_size_t, c_void_p],
    "cuMemcpy2DAsync_v2": [c_void_p, c_void_p],
    "cuMemHostAlloc": [c_void_p, c_size_t, c_uint],
    "cuMemsetD8Async": [_pointer, ctypes.c_ubyte, c_size_t, c_void_p],
    "cuStreamCreate": [c_void_p, c_uint],
    "cuStreamDestroy_v2": [c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuLaunchHostFunc": [c_void_p, c_void_p, c_void_p],
    "cuEventCreate": [c_void_p, c_uint],
    "cuEventDestroy_v2": [c_void_p],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventElapsedTime": [c_void_p, c_void_p, c_void_p],
    "cuLinkCreate_v2": [c_uint, c_void_p, c_void_p, c_void_p],
    "cuLinkAddData_v2": [c_void_p, c_int, c_void_p, c_size_t, c_char_p, c_uint, c_void_p, c_void_p],
    "cuLinkComplete": [c_void_p, c_void_p, c_void_p],
    "cuLinkDestroy": [c_void_p],
    "cuModuleLoadData": [c_void_p, c_void_p],
    "cuModuleGetFunction": [c_void_p, c_void_p, c_char_p],
    "cuFuncGetAttribute": [c_void_p, c_int, c_void_p],
    "cuFuncSetAttribute": [c_void_p, c_int, c_int],
    "cuLaunchKernel": [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p],
}


class Driver:
    """The functions of libcuda; a call that fails raises DeviceError."""

    def __init__(self, library: ctypes.CDLL):
        self._functions = {}
        missing = []
        for name, arguments in _SIGNATURES.items():
            try:
                function = getattr(library, name)
            except AttributeError:
                missing.append(name)
                continue
            function.argtypes, function.restype = arguments, c_int
            self._functions[name] = function
        if missing:
            raise DeviceError(
                f"the NVIDIA driver is too old: it has no {missing[0]}. Update it to version 470 (CUDA 11.4) or newer"
            )
        self("cuInit", 0)

    def __call__(self, name: str, *arguments: Any, doing: str = "") -> None:
        result = self._functions[name](*arguments)
        if result:
            raise DeviceError(self.sentence(result, name, doing))

    def address(self, name: str) -> int:
        """Return the address of a function, for native code that calls it."""
        return ctypes.cast(self._functions[name], c_void_p).value or 0

    def attempt(self, name: str, *arguments: Any) -> int:
        """Call a function that may fail and return its result code."""
        return int(self._functions[name](*arguments))

    def sentence(self, result: int, call: str, doing: str) -> str:
        """Return the message for a nonzero result code: cause and remedy."""
        text = c_char_p()
        known = self._functions["cuGetErrorString"](result, byref(text)) == 0 and text.value
        what = text.value.decode(errors="replace") if known and text.value else f"error {result}"
        during = f" while {doing}" if doing else ""
        advice = _ADVICE.get(result, "see the message of the driver")
        return f"CUDA: {what} ({call} returned {result}){during}. What to do: {advice}"


@cache
def driver() -> Driver:
    """Return the driver of this machine."""
    names = ["nvcuda.dll"] if sys.platform == "win32" else ["libcuda.so.1", "libcuda.so"]
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return Driver(library)
    raise DeviceError(
        f"no NVIDIA driver was found ({names[0]}): install it on a machine with an NVIDIA GPU (nvidia-smi shows whether it "
        "works; no CUDA toolkit is needed), or use device='cpu'"
    )


class Function(NamedTuple):
    """Kernel loaded on a device."""

    handle: int
    module: int
    registers: int
    spilled: int  # bytes of local memory per thread


class Device:
    """GPU and its primary context."""

    def __init__(self, number: int):
        self.number, self.call = number, driver()
        count = c_int()
        self.call("cuDeviceGetCount", byref(count), doing="counting GPUs")
        if count.value == 0:
            raise DeviceError(f"CUDA: {_ADVICE[NO_DEVICE]}")
        if not 0 <= number < count.value:
            raise DeviceError(f"there is no GPU 'cuda:{number}': this machine has {count.value}, the first is 'cuda:0'")
        handle = c_int()
        self.call("cuDeviceGet", byref(handle), number)
        self._handle = handle.value
        self.capability = (self._attribute(_MAJOR), self._attribute(_MINOR))
        self.multiprocessors = self._attribute(_MULTIPROCESSORS)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, self._handle)
        self.name = name.value.decode(errors="replace")
        if self.capability < min(ARCHITECTURES):
            least = ".".join(map(str, min(ARCHITECTURES)))
            raise DeviceError(
                f"{self.name} has compute capability {self.capability[0]}.{self.capability[1]}; {least} is needed"
            )
        version = c_int()
        self.call("cuDriverGetVersion", byref(version))
        self.driver_version = version.value
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), self._handle, doing=f"opening {self.name}")
        self._context = context
        self._pool = self._open_pool()
        self.total = self.memory()[1]
        self._loading = threading.Lock()

    def _attribute(self, which: int) -> int:
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), which, self._handle)
        return value.value

    @contextmanager
    def current(self) -> Iterator[None]:
        """Context manager that makes the context of this device current, and restores the previous one."""
        self.call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self.call.attempt("cuCtxPopCurrent_v2", byref(c_void_p()))

    # -- memory ----------------------------------------------------------------------------------------------------
    def _open_pool(self) -> c_void_p | None:
        """Return the memory pool, set to keep freed memory; None if the device has no pools."""
        if not self._attribute(_MEMORY_POOLS):
            return None
        pool, all_of_it = c_void_p(), c_uint64(2**64 - 1)
        self.call("cuDeviceGetDefaultMemPool", byref(pool), self._handle)
        self.call("cuMemPoolSetAttribute", pool, _RELEASE_THRESHOLD, byref(all_of_it))
        return pool

    def allocate(self, size: int, stream: int) -> int:
        """Return the address of `size` bytes of new memory for work on `stream`."""
        out, doing = c_uint64(), f"asking for {size / 1e6:.1f} MB on {self.name}"
        with self.current():
            if self._pool is None:
                self.call("cuMemAlloc_v2", byref(out), size, doing=doing)
            else:
                self.call("cuMemAllocAsync", byref(out), size, stream, doing=doing)
        return out.value

    def free(self, pointer: int, stream: int, wait: bool = False) -> None:
        """Free memory after the work issued so far on `stream`, or with `wait` on all streams.

        It never raises, because finalizers call it.
        """
        if self.call.attempt("cuCtxPushCurrent_v2", self._context):
            return
        if wait:
            self.call.attempt("cuCtxSynchronize")
        if self._pool is None:
            self.call.attempt("cuMemFree_v2", pointer)
        else:
            self.call.attempt("cuMemFreeAsync", pointer, stream)
        self.call.attempt("cuCtxPopCurrent_v2", byref(c_void_p()))

    def used(self) -> int:
        """Bytes allocated by `allocate`; -1 if they are not counted."""
        if self._pool is None:
            return -1
        out = c_uint64()
        with self.current():
            self.call("cuMemPoolGetAttribute", self._pool, _USED_NOW, byref(out))
        return out.value

    def trim(self) -> None:
        """Release unused memory of the pool to the system."""
        if self._pool is not None:
            with self.current():
                self.call("cuMemPoolTrimTo", self._pool, 0)

    def memory(self) -> tuple[int, int]:
        """Return (free, total) bytes of the device."""
        free, total = c_size_t(), c_size_t()
        with self.current():
            self.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def upload(self, pointer: int, host: np.ndarray, stream: int) -> None:
        """Copy a contiguous host array to the device; the host array may be freed at once."""
        if host.nbytes:
            with self.current():
                self.call("cuMemcpyHtoDAsync_v2", pointer, host.ctypes.data, host.nbytes, stream, doing="copying in")

    def download(self, host: np.ndarray, pointer: int, stream: int) -> None:
        """Copy device memory to a contiguous host array, after the work on `stream`."""
        if host.nbytes:
            with self.current():
                self.call("cuMemcpyDtoHAsync_v2", host.ctypes.data, pointer, host.nbytes, stream, doing="copying out")
                self.call("cuStreamSynchronize", stream, doing="waiting for the GPU")

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        if size:
            with self.current():
                self.call("cuMemcpyDtoDAsync_v2", to, source, size, stream)

    def clear(self, pointer: int, size: int, stream: int) -> None:
        """Set memory to zero bytes."""
        if size:
            with self.current():
                self.call("cuMemsetD8Async", pointer, 0, size, stream)

    def synchronize(self, stream: int = 0) -> None:
        with self.current():
            self.call("cuStreamSynchronize", stream, doing="waiting for the GPU")

    def pinned(self, size: int) -> int:
        """Return the address of page-locked host memory for asynchronous copies; it is never freed."""
        out, on_all_devices = c_void_p(), 1
        with self.current():
            self.call("cuMemHostAlloc", byref(out), size, on_all_devices, doing="asking for memory of the host")
        return int(out.value or 0)

    def address(self, name: str) -> int:
        """Return the address of a driver function, or of the context of this device."""
        return int(self._context.value or 0) if name == "context" else self.call.address(name)

    def sentence(self, result: int, doing: str) -> str:
        """Return the message for a result code that native code received from the driver."""
        return self.call.sentence(result, "a call", doing)

    # -- streams and time ------------------------------------------------------------------------------------------
    def new_stream(self) -> int:
        """Return a new stream that does not synchronize with the default one."""
        out, not_blocking = c_void_p(), 1
        with self.current():
            self.call("cuStreamCreate", byref(out), not_blocking)
        return int(out.value or 0)

    def close_stream(self, stream: int) -> None:
        with self.current():
            self.call("cuStreamDestroy_v2", stream)

    @contextmanager
    def timed(self, stream: int = 0) -> Iterator[list[float]]:
        """Context manager that measures the device time of the work issued inside, ms; appended to the list at its end."""
        events, took, out = (c_void_p(), c_void_p()), c_float(), list[float]()
        with self.current():
            for event in events:
                self.call("cuEventCreate", byref(event), 0)
            try:
                self.call("cuEventRecord", events[0], stream)
                yield out
                self.call("cuEventRecord", events[1], stream)
                self.call("cuEventSynchronize", events[1], doing="waiting for the GPU")
                self.call("cuEventElapsedTime", byref(took), *events)
                out.append(took.value)
            finally:
                for event in events:
                    self.call.attempt("cuEventDestroy_v2", event)

    # -- code ------------------------------------------------------------------------------------------------------
    def load(self, staged: Staged, registers: int = 0, effort: int = 2) -> Function:
        """Load a kernel onto the device; see `Cuda`. PTX and machine code are cached on disk."""
        folder = disk.folder()
        text = ptx(staged.ir, self.capability, effort, folder)
        about = "\0".join((text, self.name, str(self.capability), str(self.driver_version), str(registers)))
        key = hashlib.sha256(about.encode()).hexdigest()
        code = disk.read(folder, key)
        with self.current(), self._loading:
            if code is not None:
                found = self._open(code, staged.name, fails=False)
                if found is not None:
                    return found
            code = self._link(text, registers)
            disk.write(folder, key, code)
            found = self._open(code, staged.name)
            assert found is not None
            return found

    def _link(self, text: str, registers: int) -> bytes:
        """Return the machine code of PTX, compiled by the driver."""
        source = text.encode() + b"\0"
        log = ctypes.create_string_buffer(1 << 14)
        options = {_JIT_ERROR_LOG: ctypes.addressof(log), _JIT_ERROR_LOG_BYTES: len(log)}
        if registers:
            options[_JIT_MAX_REGISTERS] = registers
        names = (c_int * len(options))(*options)
        values = (c_void_p * len(options))(*options.values())
        state, code, size = c_void_p(), c_void_p(), c_size_t()
        doing = "compiling a kernel"
        self.call("cuLinkCreate_v2", len(options), names, values, byref(state), doing=doing)
        try:
            self.call(
                "cuLinkAddData_v2", state, _INPUT_PTX, source, len(source), b"artigrad", 0, None, None, doing=doing
            )
            self.call("cuLinkComplete", state, byref(code), byref(size), doing=doing)
            return ctypes.string_at(code.value or 0, size.value)
        except DeviceError as e:
            said = log.value.decode(errors="replace").strip()
            raise DeviceError(f"{e}\n{said}" if said else str(e)) from None
        finally:
            self.call.attempt("cuLinkDestroy", state)

    def _open(self, code: bytes, name: str, fails: bool = True) -> Function | None:
        """Load machine code; return None for cached code that this driver rejects."""
        module, handle = c_void_p(), c_void_p()
        if not fails and self.call.attempt("cuModuleLoadData", byref(module), code):
            return None
        if fails:
            self.call("cuModuleLoadData", byref(module), code, doing="loading a kernel")
        self.call("cuModuleGetFunction", byref(handle), module, name.encode(), doing="loading a kernel")
        found = []
        for which in (_REGISTERS, _LOCAL_BYTES):
            value = c_int()
            self.call("cuFuncGetAttribute", byref(value), which, handle)
            found.append(value.value)
        self.call.attempt("cuFuncSetAttribute", handle, _CARVEOUT, 0)  # no shared memory: all of it is cache
        return Function(int(handle.value or 0), int(module.value or 0), *found)

    def launch(self, function: Function, grid: int, block: int, words: np.ndarray, stream: int) -> None:
        """Run a kernel; `words` are its arguments, 64 bits each, copied before this returns."""
        start = words.ctypes.data
        places = (c_void_p * len(words))(*range(start, start + 8 * len(words), 8))
        with self.current():
            self.call(
                "cuLaunchKernel",
                function.handle, grid, 1, 1, block, 1, 1, 0, stream, places, None,
                doing="launching a kernel",
            )  # fmt: skip


@cache
def _open_device(number: int, process: int) -> Device:
    return Device(number)


def device(number: int) -> Device:
    """Return the GPU with this index, opened once per process."""
    return _open_device(number, os.getpid())
