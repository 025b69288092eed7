"""The handlers that XLA calls on a GPU, written in LLVM's language as that of the CPU is.

`artigrad_launch` puts a kernel on XLA's stream, after the copies it needs, and returns at once. `artigrad_check` sends a few
numbers to the host once that work is done, and calls Python if any of them is not zero. It waits only where the result may be
that the call failed.
"""

from __future__ import annotations

import ctypes
from ctypes import c_int64
from functools import cache

from .llvm_text import LlvmText, Value
from .xla_frame import LIBRARY, MOST, Array, Handler, at, register_handlers
from .xla_interface import OFFSETS

LAUNCH, CHECK = "artigrad_launch", "artigrad_check"
Refused = ctypes.CFUNCTYPE(c_int64, c_int64)  # result of the driver -> text
Checked = ctypes.CFUNCTYPE(c_int64)  # -> text or 0

# where fields of the driver's CUDA_MEMCPY2D lie, and its number for memory of a device
_COPY = {"srcMemoryType": 16, "srcDevice": 32, "srcPitch": 48, "dstMemoryType": 72, "dstDevice": 88, "dstPitch": 104}
_COPY |= {"WidthInBytes": 112, "Height": 120}
_COPY_BYTES, _DEVICE = 128, 2


DRIVER = (
    "context",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuMemcpy2DAsync_v2",
    "cuMemsetD8Async",
    "cuMemcpyDtoHAsync_v2",
    "cuLaunchKernel",
    "cuLaunchHostFunc",
    "cuStreamSynchronize",
)


class DriverCalls(ctypes.Structure):
    """Functions of the driver, and the context they work in."""

    _fields_ = [(name, c_int64) for name in DRIVER]


class LaunchBlock(ctypes.Structure):
    """Description of a launch. table: of the kernel's arguments, a word each; function: the driver's handle of it."""

    _fields_ = [
        ("driver", DriverCalls),
        *((name, c_int64) for name in ("operands", "results", "item", "words", "steps_slot")),
        *((name, c_int64) for name in ("table", "function", "refused")),
        ("arrays", Array * MOST),
    ]


class CheckBlock(ctypes.Structure):
    """Description of a check: a number of 32-bit values, the memory of the host that receives them, and whether to wait."""

    _fields_ = [
        ("driver", DriverCalls),
        *((name, c_int64) for name in ("count", "host", "waits", "checked", "refused")),
    ]


class _GpuHandler(Handler):
    """Calls functions of the driver on XLA's stream; the first that fails is reported."""

    def __init__(self, name: str, attributes: tuple[str, ...] = ()) -> None:
        super().__init__(name, attributes)
        self.stream, self.result = self._stream(), self.slot()
        self.store(0, self.result)
        self._driver("cuCtxPushCurrent_v2", f"ptr {self._of_driver('context')}")

    def _stream(self) -> str:
        error, room = self._request("Stream_Get", ctx=("ptr", self.ctx))
        with self.when(self.compare("ne", error, "null", "ptr"), leaves=True):
            self.line(f"ret ptr {error}")
        return f"ptr {self.load(room, OFFSETS['Stream_Get_Args']['stream'], 'ptr')}"

    def _of_driver(self, field: str) -> str:
        return self.load(self.block, at(self.block_type, "driver") + at(DriverCalls, field), "ptr")

    def _driver(self, name: str, *arguments: str) -> None:
        result = self.op(f"zext i32 {self.call('i32', self._of_driver(name), *arguments)} to i64")
        with self.when(self.compare("eq", self.load(self.result), 0)):
            self.store(result, self.result)

    def _end(self) -> None:
        self._driver("cuCtxPopCurrent_v2", f"ptr {self.slot('ptr')}")
        result = self.load(self.result)
        with self.when(self.compare("ne", result, 0), leaves=True):
            text = self.call("i64", self._of_block("refused", "ptr"), f"i64 {result}")
            self._fail(self.op(f"inttoptr i64 {text} to ptr"))


class _LaunchHandler(_GpuHandler):
    block_type = LaunchBlock

    def __init__(self) -> None:
        super().__init__(LAUNCH, ("grid", "steps", "threads"))
        self._take_arrays()
        self._copy()
        self._launch()
        self._end()
        self.line("ret ptr null")

    def _copy(self) -> None:
        """Rows of operands to the front of rows of results; zeros to what is added to."""
        with self.loop(self.count) as k, self.when(self.compare("ne", self._of_array(k, "cleared"), 0)):
            size, data = self._bytes(k), self._entry(self.data, k)
            self._driver("cuMemsetD8Async", f"i64 {data}", "i8 0", f"i64 {size}", self.stream)
        room = self.slot(f"[{_COPY_BYTES} x i8]")
        with self.loop(self._of_block("operands")) as k:
            to = self._of_array(k, "copy_to")
            wanted = self.op(f"and i1 {self.compare('sge', to, 0)}, {self.compare('sgt', self._bytes(k), 0)}")
            with self.when(wanted):
                width, pitch = (self.mul(self._entry(self.strides, i), self.item) for i in (k, to))
                self.line(f"store [{_COPY_BYTES} x i8] zeroinitializer, ptr {room}")
                source, result = (self._entry(self.data, i) for i in (k, to))
                numbers: dict[str, Value] = {"srcDevice": source, "srcPitch": width, "dstDevice": result}
                numbers |= {"dstPitch": pitch, "WidthInBytes": width, "Height": self.batch}
                for field in ("srcMemoryType", "dstMemoryType"):
                    self.store(_DEVICE, room, _COPY[field], "i32")
                for field, value in numbers.items():
                    self.store(value, room, _COPY[field])
                self._driver("cuMemcpy2DAsync_v2", f"ptr {room}", self.stream)

    def _launch(self) -> None:
        """The kernel; the driver copies its arguments before it returns."""
        words = self._of_block("words")
        size = self.mul(words, 8)
        table = self.call("ptr", "@malloc", f"i64 {self.mul(size, 2)}")
        places = self.at(table, size)
        self.copy(table, self._of_block("table", "ptr"), size)
        self._write_arguments(table)
        with self.loop(words) as k:
            self.store(self.at(table, self.mul(k, 8)), places, self.mul(k, 8), "ptr")
        grid, threads = (f"i32 {self.op(f'trunc i64 {self.about[k]} to i32')}" for k in ("grid", "threads"))
        shape = (grid, "i32 1", "i32 1", threads, "i32 1", "i32 1", "i32 0")
        function = f"ptr {self._of_block('function', 'ptr')}"
        self._driver("cuLaunchKernel", function, *shape, self.stream, f"ptr {places}", "ptr null")
        self.call("void", "@free", f"ptr {table}")


class _CheckHandler(_GpuHandler):
    block_type = CheckBlock

    def __init__(self) -> None:
        super().__init__(CHECK)
        first = self.load(self.load("%frame", OFFSETS["CallFrame"]["args.args"], "ptr"), kind="ptr")
        data, size = self.load(first, OFFSETS["Buffer"]["data"]), self.mul(self._of_block("count"), 4)
        host = f"ptr {self._of_block('host', 'ptr')}"
        self._driver("cuMemcpyDtoHAsync_v2", host, f"i64 {data}", f"i64 {size}", self.stream)
        waits = self.compare("ne", self._of_block("waits"), 0)
        with self.when(waits):
            self._driver("cuStreamSynchronize", self.stream)
        with self.when(self.op(f"xor i1 {waits}, true")):
            self._driver("cuLaunchHostFunc", self.stream, "ptr @report", f"ptr {self.block}")
        self._end()
        with self.when(waits):
            text = self.call("i64", "@found", f"ptr {self.block}")
            with self.when(self.compare("ne", text, 0), leaves=True):
                self._fail(self.op(f"inttoptr i64 {text} to ptr"))
        self.line("ret ptr null")


def _found() -> str:
    """Call Python if a number is not zero, and return its result; else 0."""
    t = LlvmText("internal i64 @found(ptr %block)")
    count, host = t.load("%block", at(CheckBlock, "count")), t.load("%block", at(CheckBlock, "host"), "ptr")
    some = t.slot("i32")
    t.store(0, some, kind="i32")
    with t.loop(count) as k:
        number = t.load(host, t.mul(k, 4), "i32")
        t.store(t.op(f"or i32 {t.load(some, kind='i32')}, {number}"), some, kind="i32")
    with t.when(t.compare("eq", t.load(some, kind="i32"), 0, "i32"), leaves=True):
        t.line("ret i64 0")
    t.line(f"ret i64 {t.call('i64', t.load('%block', at(CheckBlock, 'checked'), 'ptr'))}")
    return str(t)


def _answer() -> str:
    """Function that a thread of the driver calls once the numbers have arrived."""
    t = LlvmText("internal void @report(ptr %block)")
    t.call("i64", "@found", "ptr %block")
    t.line("ret void")
    return str(t)


def handler_text() -> str:
    """All of it, as a module of LLVM."""
    return "\n".join([LIBRARY, _found(), _answer(), str(_LaunchHandler()), str(_CheckHandler())])


@cache
def register(platform: str = "CUDA") -> None:
    """Make the handlers known to XLA; raises UnknownInterfaceError where that cannot be."""
    register_handlers(handler_text(), (LAUNCH, CHECK), platform)
