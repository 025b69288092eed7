"""Common beginning of all handlers that XLA calls, in LLVM's language: it returns its version, reads its attributes, and finds
its operands and results as rows of robots."""

from __future__ import annotations

import ctypes
import secrets
from ctypes import c_int64
from typing import Any

import jax

from ..compiler import disk
from ..compiler.compile import Code
from .llvm_text import LlvmText, Value
from .xla_interface import (
    EXECUTE,
    INT64,
    INVALID_ARGUMENT,
    MAJOR,
    METADATA,
    MINOR,
    OFFSETS,
    UnknownInterfaceError,
    check_interface,
)

MOST = 20  # operands and results together
PROCESS = secrets.randbits(62)  # by which a handler checks that addresses are of this process


class Array(ctypes.Structure):
    """An operand or result: how many axes are its own; the kernel's arguments that it is (-1: none); the result that it is
    copied to the front of; whether all of it must be finite; whether its rows are two numbers with limits, and those. whole:
    it has no rows of robots, in the layout of the kernel; cleared: the kernel adds to it; checked: Python is
    called whenever it differs from the last call."""

    _fields_ = [
        *((name, c_int64) for name in ("own", "slot", "other_slot", "copy_to", "finite", "limited")),
        *((name, c_int64) for name in ("whole", "cleared", "checked")),
        ("limits", ctypes.c_double * 2),
    ]


def at(struct: type[ctypes.Structure], field: str) -> int:
    """Offset of a field."""
    return getattr(struct, field).offset


_OTHER = "this program was compiled in another process: artigrad's calls in it have to be traced again"
_KIND = "artigrad's handler was given an attribute that is no 64-bit integer"
_CROOKED = "XLA gave artigrad memory that does not begin at a multiple of 64 bytes"
LIBRARY = f"""declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
@process = internal global i64 0
@other_process = internal constant [{len(_OTHER) + 1} x i8] c"{_OTHER}\\00"
@other_kind = internal constant [{len(_KIND) + 1} x i8] c"{_KIND}\\00"
@not_aligned = internal constant [{len(_CROOKED) + 1} x i8] c"{_CROOKED}\\00"
define void @set_process(i64 %x) {{
  store i64 %x, ptr @process
  ret void
}}
"""


class Handler(LlvmText):
    """XLA_FFI_Error* handler(XLA_FFI_CallFrame*). block: the struct that describes a call, whose address is an attribute.
    attributes: the others that are numbers, in the order of all names."""

    block_type: type[ctypes.Structure]

    def __init__(self, name: str, attributes: tuple[str, ...]) -> None:
        super().__init__(f"ptr @{name}(ptr %frame)")
        frame = OFFSETS["CallFrame"]
        self.api, self.ctx = (self.load("%frame", frame[k], "ptr") for k in ("api", "ctx"))
        self._answer_version()
        stage = self.load("%frame", frame["stage"], "i32")
        with self.when(self.compare("ne", stage, EXECUTE, "i32"), leaves=True):
            self.line("ret ptr null")
        names = sorted(("block", "process", *attributes))  # as XLA hands them over
        self.about = {name: self._attribute(k) for k, name in enumerate(names)}
        with self.when(self.compare("ne", self.about["process"], self.load("@process")), leaves=True):
            self._fail("@other_process")
        self.block = self.op(f"inttoptr i64 {self.about['block']} to ptr")

    def _answer_version(self) -> None:
        """XLA asks for the version of the interface when a handler is registered."""
        extension = self.load("%frame", OFFSETS["CallFrame"]["extension_start"], "ptr")
        with self.when(self.compare("ne", extension, "null", "ptr")):
            about = OFFSETS["Metadata_Extension"]
            kind = self.load(extension, about["extension_base.type"], "i32")
            with self.when(self.compare("eq", kind, METADATA, "i32"), leaves=True):
                metadata, fields = self.load(extension, about["metadata"], "ptr"), OFFSETS["Metadata"]
                self.store(MAJOR, metadata, fields["api_version.major_version"], "i32")
                self.store(MINOR, metadata, fields["api_version.minor_version"], "i32")
                self.store(0, metadata, fields["traits"], "i32")
                self.line("ret ptr null")

    def _attribute(self, k: int) -> str:
        scalars = self.load("%frame", OFFSETS["CallFrame"]["attrs.attrs"], "ptr")
        scalar = self.load(scalars, 8 * k, "ptr")
        kind = self.load(scalar, OFFSETS["Scalar"]["dtype"], "i32")
        with self.when(self.compare("ne", kind, INT64, "i32"), leaves=True):
            self._fail("@other_kind")
        return self.load(self.load(scalar, OFFSETS["Scalar"]["value"], "ptr"))

    def _of_block(self, field: str, kind: str = "i64") -> str:
        return self.load(self.block, at(self.block_type, field), kind)

    # -- operands and results ------------------------------------------------------------------------------------------
    def _of_array(self, k: str, field: str, kind: str = "i64", more: int = 0) -> str:
        start = at(self.block_type, "arrays") + at(Array, field) + more
        return self.load(self.block, self.add(self.mul(k, ctypes.sizeof(Array)), start), kind)

    def _entry(self, array: str, k: str) -> str:
        return self.load(array, self.mul(k, 8))

    def _pointer(self, k: str) -> str:
        return self.op(f"inttoptr i64 {self._entry(self.data, k)} to ptr")

    def _take_arrays(self) -> None:
        """Data and numbers per robot of all operands and results; robots are what the first operand has rows of."""
        self.item = self._of_block("item")
        self.data, self.strides = self.slot(f"[{MOST} x i64]"), self.slot(f"[{MOST} x i64]")
        operands = self._of_block("operands")
        self.count, robots = self.add(operands, self._of_block("results")), self.slot()
        buffer = OFFSETS["Buffer"]
        lists = [self.load("%frame", OFFSETS["CallFrame"][k], "ptr") for k in ("args.args", "rets.rets")]
        with self.loop(self.count) as k:
            first = self.compare("slt", k, operands)
            source = self.op(f"select i1 {first}, ptr {lists[0]}, ptr {lists[1]}")
            found = self.load(source, self.mul(self.select(first, k, self.sub(k, operands)), 8), "ptr")
            rank, dims = self.load(found, buffer["rank"]), self.load(found, buffer["dims"], "ptr")
            lead = self.sub(rank, self._of_array(k, "own"))
            rows, stride = self._product(dims, 0, lead), self._product(dims, lead, rank)
            self.store(self.load(found, buffer["data"]), self.data, self.mul(k, 8))
            self.store(stride, self.strides, self.mul(k, 8))
            with self.when(self.compare("eq", k, 0)):
                self.store(rows, robots)
            crooked = self.op(f"and i64 {self._entry(self.data, k)}, 63")
            crooked = self.mul(self._of_array(k, "whole"), crooked)  # vectors are read from it as they are written
            with self.when(self.compare("ne", crooked, 0), leaves=True):
                self._fail("@not_aligned")
        self.batch = self.load(robots)

    def _product(self, dims: str, start: Any, end: str) -> str:
        total = self.slot()
        self.store(1, total)
        with self.loop(end, start) as k:
            self.store(self.mul(self.load(total), self.load(dims, self.mul(k, 8))), total)
        return self.load(total)

    def _bytes(self, k: str) -> str:
        """Number of bytes of an array."""
        rows = self.select(self.compare("ne", self._of_array(k, "whole"), 0), 1, self.batch)
        return self.mul(self.mul(rows, self._entry(self.strides, k)), self.item)

    def _write_arguments(self, table: str) -> None:
        """Number of robots, of steps, and where arrays lie, to a kernel's table of arguments."""
        self.store(self.batch, table)
        self.store(self.about["steps"], table, self.mul(self._of_block("steps_slot"), 8))
        with self.loop(self.count) as k:
            for field in ("slot", "other_slot"):
                slot = self._of_array(k, field)
                with self.when(self.compare("sge", slot, 0)):
                    place = self.mul(slot, 8)
                    self.store(self._entry(self.data, k), table, place)
                    with self.when(self.compare("eq", self._of_array(k, "whole"), 0)):
                        self.store(self._entry(self.strides, k), table, self.add(place, 8))

    # -- XLA's functions -----------------------------------------------------------------------------------------------
    def _function(self, name: str) -> str:
        return self.load(self.api, OFFSETS["Api"][f"XLA_FFI_{name}"], "ptr")

    def _request(self, name: str, **given: tuple[str, Value]) -> tuple[str, str]:
        """Call a function of XLA with its struct of arguments, as (type, value); its error, and the struct."""
        fields = OFFSETS[f"{name}_Args"]
        size = 8 * (max(fields.values()) // 8 + 1)
        room = self.slot(f"[{size} x i8]")
        self.store(size, room, fields["struct_size"])
        self.store("null", room, fields["extension_start"], "ptr")
        for field, (kind, value) in given.items():
            self.store(value, room, fields[field], kind)
        return self.call("ptr", self._function(name), f"ptr {room}"), room

    def _fail(self, text: str) -> None:
        """Return an error with this text."""
        error, _ = self._request("Error_Create", message=("ptr", text), errc=("i32", INVALID_ARGUMENT))
        self.line(f"ret ptr {error}")


_alive: list[Any] = []  # XLA takes no handler back


def register_handlers(text: str, targets: tuple[str, ...], platform: str) -> None:
    """Make handlers in a module of LLVM known to XLA; raises UnknownInterfaceError where that cannot be."""
    check_interface()
    code = Code(text, 2, disk.folder())
    ctypes.CFUNCTYPE(None, c_int64)(code.address("set_process"))(PROCESS)
    _alive.append(code)
    for target in targets:
        capsule = jax.ffi.pycapsule(ctypes.c_void_p(code.address(target)))
        try:
            jax.ffi.register_ffi_target(target, capsule, platform=platform)
        except Exception as e:
            raise UnknownInterfaceError(str(e)) from e
