"""Kernel: a staged body compiled to one native function over a batch of robots.

    kernel = Kernel("rollout", body, {"steps": INT, "q": ROBOTS, "links": WORK, ...}, Target("f64", lanes=8))
    kernel(batch, threads, steps=100, q=array, links=size)

The body is called once, while staging, with one keyword argument per entry. It processes one pack: the robots in the lanes
of a SIMD vector, or a single robot. It has no batch index: the kernel loops over packs, and threads share the packs. Lanes
after the end of the batch repeat the last robot and write the same bits to the same address.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from . import disk
from .compile import Code, host
from .emit import Emitter
from .memory import Integers, IntegerScratch, Lanes, NumpyMemory, Reals, Robots, Shared
from .numpy_target import NumpyTarget
from .values import Int, staging_on

ArgumentKind = Literal["int", "real", "ints", "shared", "packed", "robots", "work", "int_work"]

INT: ArgumentKind = "int"  # an integer, the same for all robots
REAL: ArgumentKind = "real"  # a number, the same for all robots
INTS: ArgumentKind = "ints"  # an array of integers of the model
SHARED: ArgumentKind = "shared"  # values shared by all robots
PACKED: ArgumentKind = "packed"  # values per robot in internal layout: array (packs, n, lanes)
ROBOTS: ArgumentKind = "robots"  # values per robot in the layout of the user: array (batch, n)
WORK: ArgumentKind = "work"  # scratch of the given length, gone after the call
INT_WORK: ArgumentKind = "int_work"  # the same for integers

_TAKES_STRIDE = (PACKED, ROBOTS)
_SCRATCH = (WORK, INT_WORK)
_compiling = threading.Lock()


@dataclass(frozen=True)
class Cuda:
    """GPU device and launch settings of kernels.

    Attributes:
        device: Index of the device.
        block: Threads per block, a multiple of 32.
        threads: Resident threads per multiprocessor.
        registers: Maximum number of registers per thread; 0 leaves the choice to the assembler.
        effort: Optimization level of LLVM's code generator. 0 recomputes more values in place of keeping them, which takes
            fewer registers and more instructions.

    Fewer resident threads need less workspace, which then stays in the caches; more of them hide more latency.
    `docs/design/cuda.md` describes how to find the best settings.
    """

    device: int = 0
    block: int = 64
    threads: int = 256
    registers: int = 0
    effort: int = 2


@dataclass(frozen=True)
class Target:
    """Representation of values.

    Attributes:
        dtype: "f64" or "f32".
        lanes: Robots per SIMD vector. With `cuda` the 32 threads of a warp.
        native: False runs the source on NumPy.
        cuda: Launch settings of a GPU, or None.
    """

    dtype: Literal["f64", "f32"] = "f64"
    lanes: int = 1
    native: bool = True
    cuda: Cuda | None = None

    @property
    def numpy_dtype(self) -> np.dtype:
        return np.dtype(np.float64 if self.dtype == "f64" else np.float32)


def widest(dtype: Literal["f64", "f32"]) -> int:
    """Return the number of values in a vector register of this machine."""
    return host.vector_bytes // (8 if dtype == "f64" else 4)


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an uninitialized array aligned to 64 bytes."""
    n = int(np.prod(shape)) * dtype.itemsize
    raw = np.empty(n + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + n].view(dtype).reshape(shape)


def zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    out = empty(shape, dtype)
    out[...] = 0
    return out


class Kernel:
    """Function compiled at first use. Calls release the interpreter lock."""

    def __init__(
        self,
        name: str,
        body: Callable[..., None],
        signature: dict[str, ArgumentKind],
        target: Target,
        *,
        effort: int = 3,
    ):
        self.effort = effort  # of the code generator, 0 to 3: less for what runs once
        self.name, self.body, self.signature, self.target = name, body, signature, target
        self._entry: Any = None
        self._code: Code | None = None
        self._slots: dict[str, int] = {}
        words = 1  # word 0 is the batch size
        for key, kind in signature.items():
            self._slots[key] = words
            words += 2 if kind in _TAKES_STRIDE else 1
        self.table = ctypes.c_int64 * words  # of arguments, as native code reads it

    def packs(self, batch: int) -> int:
        """Return the number of packs of a batch."""
        return 1 if not self.target.native else -(-batch // self.target.lanes)

    def packed_shape(self, batch: int, n: int) -> tuple[int, int, int]:
        """Return the shape of a PACKED array with `n` values per robot."""
        return (1, n, batch) if not self.target.native else (self.packs(batch), n, self.target.lanes)

    def __call__(self, batch: int, threads: int, **arguments: Any) -> None:
        """Run the kernel on a batch; `threads` share the packs."""
        fixed = {k: v for k, v in arguments.items() if self.signature[k] in _SCRATCH} if self.target.cuda else {}
        self.bind(**fixed)(batch, threads, **{k: v for k, v in arguments.items() if k not in fixed})

    def bind(self, **arguments: Any) -> Any:
        """Return this kernel with some arguments bound: a `Bound`, or a `CudaBound`."""
        if self.target.cuda is not None:
            from .cuda.bound import CudaBound  # searches for the driver only when it is needed

            return CudaBound(self, arguments)
        return Bound(self, arguments)

    def run(self, words: Any, scratch: int, first: int, end: int, keep: Any = None) -> None:
        """Run the native code over the packs first .. end. keep: objects that `words` point to, kept alive during the call."""
        if self._entry is None:
            self._compile_once()
        self._entry(words, _scratch(scratch), first, end)

    @property
    def address(self) -> int:
        """Address of the native code (table, scratch, first pack, end), valid during the lifetime of this kernel."""
        self._compile_once()
        return ctypes.cast(self._entry, ctypes.c_void_p).value or 0

    def slot(self, key: str) -> int:
        """Return the index of the word of an argument in a `table`."""
        return self._slots[key]

    def _compile_once(self) -> None:
        with _compiling:
            if self._entry is None:
                self._compile()

    def interpret(self, batch: int, arguments: dict[str, Any]) -> None:
        """Run the body on NumPy arrays, all robots at once."""
        with staging_on(NumpyTarget(self.target.dtype, batch)):
            self.body(
                **{key: self._numpy_argument(batch, kind, arguments[key]) for key, kind in self.signature.items()}
            )

    def put(self, words: Any, key: str, value: Any) -> None:
        """Write one argument to a `table`."""
        kind, slot = self.signature[key], self._slots[key]
        if kind == INT:
            words[slot] = value
        elif kind == REAL:
            ctypes.c_double.from_buffer(words, 8 * slot).value = value
        else:
            words[slot] = _address(value)
            if kind in _TAKES_STRIDE:
                words[slot + 1] = value.strides[0] // (value.itemsize * (self.target.lanes if kind == PACKED else 1))

    def put_work(self, words: Any, sizes: dict[str, int]) -> int:
        """Lay out the scratch arrays one after the other; return their size in bytes."""
        lanes, item, total = self.target.lanes, self.target.numpy_dtype.itemsize, 0
        for key, size in sizes.items():
            words[self._slots[key]] = total
            entries = -(-size // lanes) * lanes  # `copy` writes whole blocks
            wide = 8 if self.signature[key] == INT_WORK else lanes * item
            total += -(-entries * wide // 64) * 64
        return total

    # -- staging -------------------------------------------------------------------------------------------------
    def _compile(self) -> None:
        self._code = Code(self.stage(), self.effort, disk.folder())
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self._entry = prototype(self._code.address(f"artigrad_{self.name}"))

    def stage(self) -> str:
        """Return the LLVM IR: an entry that unpacks the argument table, and the body with pointers without aliases."""
        e = Emitter(self.target.dtype, self.target.lanes, host.fused)
        parameters = ["i64 %at.batch", "i64 %at.first", "i64 %at.end"]
        passed = ["i64 %at.batch", "i64 %at.first", "i64 %at.end"]
        entry = ["  %at.batch = load i64, ptr %at.table"]

        def word(slot: int, name: str, kind: str) -> None:
            entry.append(f"  %{name}.at = getelementptr i64, ptr %at.table, i64 {slot}")
            entry.append(f"  %{name} = load {kind}, ptr %{name}.at")

        for key, kind in self.signature.items():
            slot = self._slots[key]
            if kind in _SCRATCH:
                word(slot, f"{key}.offset", "i64")
                entry.append(f"  %{key} = getelementptr i8, ptr %at.work, i64 %{key}.offset")
            else:
                word(slot, key, {INT: "i64", REAL: "double"}.get(kind, "ptr"))
            own = {INT: "i64", REAL: "double"}.get(kind, "ptr noalias")
            parameters.append(f"{own} %{key}")
            passed.append(f"{own.replace(' noalias', '')} %{key}")
            if kind in _TAKES_STRIDE:
                word(slot + 1, f"{key}.stride", "i64")
                parameters.append(f"i64 %{key}.stride")
                passed.append(f"i64 %{key}.stride")
        with staging_on(e):
            for pack in e.loop(Int("%at.first", e.scope), Int("%at.end", e.scope), False):
                self.body(**self._symbolic_arguments(e, pack))
        return "\n".join(
            [
                *sorted(e.declared),
                f"define internal void @body({', '.join(parameters)}) {{",
                "entry:",
                *e.variables,
                *e.lines,
                "  ret void",
                "}",
                f"define void @artigrad_{self.name}(ptr %at.table, ptr %at.work, i64 %at.first, i64 %at.end) {{",
                *entry,
                f"  call void @body({', '.join(passed)})",
                "  ret void",
                "}",
                "!0 = !{}",
                "",
            ]
        )

    def _symbolic_arguments(self, e: Emitter, pack: Int) -> dict[str, Any]:
        def make(key: str, kind: ArgumentKind) -> Any:
            if kind == INT:
                return Int(f"%{key}", e.scope)
            if kind == REAL:
                number = f"%{key}" if e.dtype == "f64" else e.pure(f"fptrunc double %{key} to float")
                return e.splat(number)
            if kind == INTS:
                return Integers(e, f"%{key}")
            if kind == SHARED:
                return Reals(Shared(e, f"%{key}"))
            if kind == WORK:
                return Reals(Lanes(e, f"%{key}"))
            if kind == INT_WORK:
                return IntegerScratch(e, f"%{key}")
            stride = Int(f"%{key}.stride", e.scope)
            if kind == PACKED:
                return Reals(Lanes(e, f"%{key}"), pack * stride)
            return Reals(Robots(e, [self._lane_pointer(e, key, robot, stride) for robot in robots]))

        robots = self._lane_robots(e, pack)
        return {key: make(key, kind) for key, kind in self.signature.items()}

    @staticmethod
    def _lane_robots(e: Emitter, pack: Int) -> list[Int]:
        """Return the robot of each lane; lanes after the end of the batch repeat the last robot."""
        e.declared.add("declare i64 @llvm.smin.i64(i64, i64)")
        last = e.pure("sub i64 %at.batch, 1")
        first = pack * e.lanes
        refs = (e.int_ref(first + lane) for lane in range(e.lanes))
        return [Int(e.pure(f"call i64 @llvm.smin.i64(i64 {r}, i64 {last})"), e.scope) for r in refs]

    @staticmethod
    def _lane_pointer(e: Emitter, key: str, robot: Int, stride: Int) -> str:
        return e.pure(f"getelementptr {e.element}, ptr %{key}, i64 {e.int_ref(robot * stride)}")

    # -- the NumPy target ------------------------------------------------------------------------------------------
    def _numpy_argument(self, batch: int, kind: ArgumentKind, value: Any) -> Any:
        if kind == INT:
            return value
        if kind == REAL:
            return self.target.numpy_dtype.type(value)
        if kind == INTS:
            return [int(x) for x in value]
        if kind == SHARED:
            return Reals(NumpyMemory(value, 0))
        if kind == PACKED:
            return Reals(NumpyMemory(value[0], 0))
        if kind == ROBOTS:
            return Reals(NumpyMemory(value.reshape(batch, -1), 1))
        if kind == INT_WORK:
            return [0] * value
        return Reals(NumpyMemory(np.full((value, batch), np.nan, self.target.numpy_dtype), 0))


class Bound:
    """Kernel with some arguments bound. A call passes the others and runs it."""

    def __init__(self, kernel: Kernel, arguments: dict[str, Any]):
        self.kernel, self.arguments = kernel, arguments
        self.words, self.scratch = kernel.table(), 0
        self._give(self.words, arguments)

    def _give(self, words: Any, arguments: dict[str, Any]) -> int:
        kernel = self.kernel
        if not kernel.target.native:
            return 0
        work = {}
        for key, value in arguments.items():
            if kernel.signature[key] in _SCRATCH:
                work[key] = value
            else:
                kernel.put(words, key, value)
        if work:
            self.scratch = kernel.put_work(words, work)
        return self.scratch

    def __call__(self, batch: int, threads: int, **rest: Any) -> None:
        kernel = self.kernel
        if not kernel.target.native:
            kernel.interpret(batch, self.arguments | rest)
            return
        words = kernel.table.from_buffer_copy(self.words)
        words[0] = batch
        scratch = self._give(words, rest)
        packs = kernel.packs(batch)
        if threads <= 1 or packs < 2:
            kernel.run(words, scratch, 0, packs)
            return
        edges = np.linspace(0, packs, min(threads, packs) + 1).astype(int).tolist()
        jobs: list[Future] = []
        try:
            for a, b in pairwise(edges[1:]):
                jobs.append(_submit(kernel.run, words, scratch, a, b, rest))
            kernel.run(words, scratch, 0, edges[1])
        finally:
            _finish(jobs)  # they write to arrays that must not go away under them, whatever happened here
        for job in jobs:
            job.result()


def _address(array: Any) -> int:
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # a quarter of the time of what follows
    except (TypeError, ValueError):  # cannot be written to, is not contiguous, or is empty
        return array.__array_interface__["data"][0]


class _Scratch(threading.local):
    memory = empty((0,), np.dtype(np.uint8))
    address = 0


_own = _Scratch()


def _scratch(size: int) -> int:
    """Return the address of scratch memory of this thread, reused by its next call."""
    if _own.memory.nbytes < size:
        _own.memory = empty((max(size, 1 << 16),), np.dtype(np.uint8))
        _own.address = _address(_own.memory)
    return _own.address


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 1) - 1), thread_name_prefix="artigrad")


def _submit(function: Callable[..., None], *arguments: Any) -> Future:
    """Submit a job to the thread pool; run it directly while the interpreter shuts down."""
    try:
        return _pool().submit(function, *arguments)
    except RuntimeError:
        done: Future = Future()
        function(*arguments)
        done.set_result(None)
        return done


def _finish(jobs: list[Future]) -> None:
    """Wait for all jobs; a KeyboardInterrupt in between is raised afterwards."""
    interrupt: BaseException | None = None
    while not all(job.done() for job in jobs):
        try:
            wait(jobs)
        except BaseException as e:
            interrupt = e
    if interrupt is not None:
        raise interrupt


def _after_fork() -> None:
    """Reset the thread pool in a child process, which has no threads of its parent."""
    global _compiling
    _pool.cache_clear()
    _compiling = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
