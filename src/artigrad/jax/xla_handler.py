"""The one handler that XLA calls for every native call of artigrad, written in LLVM's language: no compiler is needed.

It is told what to do by a `CallBlock`: which kernel, which operands and results go to which of its arguments, what to copy
first, what to look at. Packs of robots are shared with the threads of XLA. If something it looked at is not as it should be
(an operand that is not finite, a contact that was not solved), it asks Python, which raises or warns as everywhere else.
"""

from __future__ import annotations

import ctypes
import secrets
from ctypes import c_int64
from functools import cache
from typing import Any

import jax

from ..staging import disk
from ..staging.compile import Code
from .llvm_text import LlvmText
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

TARGET = "artigrad_run"
MOST = 20  # operands and results together
BEFORE, AFTER = 0, 1  # when Python is asked
Ask = ctypes.CFUNCTYPE(
    c_int64, c_int64, c_int64, c_int64, ctypes.POINTER(c_int64)
)  # (when, batch, steps, data) -> text or 0


class Array(ctypes.Structure):
    """An operand or result: how many axes are its own; the kernel's arguments that it is (-1: none); the result that it is
    copied to the front of; whether all of it must be finite; whether its rows are two numbers with limits, and those. whole:
    it has no rows of robots, and the kernel knows how it is laid out; cleared: the kernel adds to it; looked_at: Python is
    asked about it whenever it is another than the last time."""

    _fields_ = [
        *((name, c_int64) for name in ("own", "slot", "other_slot", "copy_to", "finite", "limited")),
        *((name, c_int64) for name in ("whole", "cleared", "looked_at")),
        ("limits", ctypes.c_double * 2),
    ]


class Variant(ctypes.Structure):
    """A kernel for one robot or for packs: code, bytes of scratch, lanes, table of arguments."""

    _fields_ = [(name, c_int64) for name in ("entry", "scratch", "lanes", "table")]


class CallBlock(ctypes.Structure):
    """What a call does. steps_slot: the kernel's argument that the number of steps is. quaternions: where they start in the
    first operand, whose lengths must be one within the tolerance. seen: what the last operand that was looked at was like."""

    _fields_ = [
        *((name, c_int64) for name in ("operands", "results", "item", "words", "steps_slot", "threads", "ask")),
        *((name, c_int64) for name in ("quaternions", "quaternion_starts", "seen")),
        ("lengths", ctypes.c_double * 2),  # smallest and largest square of a quaternion's length
        ("variants", Variant * 2),
        ("arrays", Array * MOST),
    ]


# -- the job of a call, as threads share it ------------------------------------------------------------------------------
class Job(ctypes.Structure):
    """Counters; then the kernel's table of arguments. The last one to drop it frees it."""

    _fields_ = [(name, c_int64) for name in ("users", "next", "done", "packs", "entry", "scratch")]


TABLE = 64


def _at(struct: type[ctypes.Structure], field: str) -> int:
    return getattr(struct, field).offset


def _work() -> str:
    """Take packs until there are none. So it does not matter when, where or whether XLA runs a task: the caller takes them
    too, and waits only for those that others have begun."""
    t = LlvmText("internal void @work(ptr %job)")
    room = t.slot("ptr")
    t.store("null", room, kind="ptr")
    packs, size = t.load("%job", _at(Job, "packs")), t.load("%job", _at(Job, "scratch"))
    entry, table = t.load("%job", _at(Job, "entry"), "ptr"), t.at("%job", TABLE)
    t.line("br label %take")
    t.label("%take")
    pack = t.op(f"atomicrmw add ptr {t.at('%job', _at(Job, 'next'))}, i64 1 acq_rel")
    t.line(f"br i1 {t.compare('slt', pack, packs)}, label %run, label %over")
    t.label("%run")
    with t.when(t.compare("eq", t.load(room, kind="ptr"), "null", "ptr")):
        t.store(t.call("ptr", "@malloc", f"i64 {t.add(size, 64)}"), room, kind="ptr")
    start = t.op(f"ptrtoint ptr {t.load(room, kind='ptr')} to i64")
    aligned = t.op(f"inttoptr i64 {t.op(f'and i64 {t.add(start, 63)}, -64')} to ptr")
    t.call("void", entry, f"ptr {table}", f"ptr {aligned}", f"i64 {pack}", f"i64 {t.add(pack, 1)}")
    t.op(f"atomicrmw add ptr {t.at('%job', _at(Job, 'done'))}, i64 1 acq_rel")
    t.line("br label %take")
    t.label("%over")
    t.call("void", "@free", f"ptr {t.load(room, kind='ptr')}")
    t.line("ret void")
    return str(t)


def _drop() -> str:
    t = LlvmText("internal void @drop(ptr %job)")
    users = t.op("atomicrmw sub ptr %job, i64 1 acq_rel")
    with t.when(t.compare("eq", users, 1)):
        t.call("void", "@free", "ptr %job")
    t.line("ret void")
    return str(t)


def _task() -> str:
    t = LlvmText("internal void @task(ptr %job)")
    t.call("void", "@work", "ptr %job")
    t.call("void", "@drop", "ptr %job")
    t.line("ret void")
    return str(t)


# -- what is looked at ---------------------------------------------------------------------------------------------------
def _finite(kind: str, mask: int) -> str:
    """Whether none of n numbers has all bits of its exponent set. Eight at a time, then the rest."""
    t = LlvmText(f"internal i1 @finite_{kind}(ptr %data, i64 %n)")
    wide, width = f"<8 x {kind}>", 8 if kind == "i64" else 4
    masks = "<" + ", ".join([f"{kind} {mask}"] * 8) + ">"
    bad, one = t.slot("<8 x i1>"), t.slot("i1")
    t.store("zeroinitializer", bad, kind="<8 x i1>")
    t.store("false", one, kind="i1")
    whole = t.op("and i64 %n, -8")
    with t.loop(whole, step=8) as i:
        bits = t.op(f"load {wide}, ptr {t.at('%data', t.mul(i, width))}, align {width}")
        exponents = t.op(f"and {wide} {bits}, {masks}")
        found = t.op(f"icmp eq {wide} {exponents}, {masks}")
        t.store(t.op(f"or <8 x i1> {t.load(bad, kind='<8 x i1>')}, {found}"), bad, kind="<8 x i1>")
    with t.loop("%n", whole) as i:
        exponent = t.op(f"and {kind} {t.load('%data', t.mul(i, width), kind)}, {mask}")
        t.store(t.op(f"or i1 {t.load(one, kind='i1')}, {t.compare('eq', exponent, mask, kind)}"), one, kind="i1")
    many = t.op(f"bitcast <8 x i1> {t.load(bad, kind='<8 x i1>')} to i8")
    few = t.op(f"xor i1 {t.load(one, kind='i1')}, true")
    none = t.compare("eq", many, 0, "i8")
    t.line(f"ret i1 {t.op(f'and i1 {few}, {none}')}")
    return str(t)


def _number() -> str:
    """A number of either size as a double."""
    t = LlvmText("internal double @number(ptr %data, i64 %i, i64 %item)")
    with t.when(t.compare("eq", "%item", 8), leaves=True):
        t.line(f"ret double {t.load('%data', t.mul('%i', 8), 'double')}")
    single = t.load("%data", t.mul("%i", 4), "float")
    t.line(f"ret double {t.op(f'fpext float {single} to double')}")
    return str(t)


def _mark() -> str:
    """A number that tells what n words of 32 bits are like."""
    t = LlvmText("internal i64 @mark(ptr %data, i64 %n)")
    mark = t.slot()
    t.store(0x51ED270B9F0C1A37, mark)
    with t.loop("%n") as i:
        word = t.op(f"zext i32 {t.load('%data', t.mul(i, 4), 'i32')} to i64")
        mixed = t.mul(t.op(f"xor i64 {t.load(mark)}, {word}"), 0x2545F4914F6CDD1D)
        t.store(t.op(f"xor i64 {mixed}, {t.op(f'lshr i64 {mixed}, 29')}"), mark)
    t.line(f"ret i64 {t.load(mark)}")
    return str(t)


# -- the handler ---------------------------------------------------------------------------------------------------------
class _Handler(LlvmText):
    """XLA_FFI_Error* handler(XLA_FFI_CallFrame*)"""

    def __init__(self) -> None:
        super().__init__(f"ptr @{TARGET}(ptr %frame)")
        frame = OFFSETS["CallFrame"]
        self.api, self.ctx = (self.load("%frame", frame[k], "ptr") for k in ("api", "ctx"))
        self._answer_version()
        stage = self.load("%frame", frame["stage"], "i32")
        with self.when(self.compare("ne", stage, EXECUTE, "i32"), leaves=True):
            self.line("ret ptr null")
        block, process, self.steps = (self._attribute(k) for k in range(3))  # in the order of their names
        with self.when(self.compare("ne", process, self.load("@process")), leaves=True):
            self._fail("@other_process")
        self.block = self.op(f"inttoptr i64 {block} to ptr")
        self.item, self.asked = self._of_block("item"), self.slot("i1")
        self.data, self.strides = self.slot(f"[{MOST} x i64]"), self.slot(f"[{MOST} x i64]")
        self.count = self.add(self._of_block("operands"), self._of_block("results"))
        self._take_arrays()
        self.batch = self.load(self.slots_batch)
        self._look(BEFORE)
        self._copy()
        self._run()
        self._look(AFTER)
        self.line("ret ptr null")

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
        return self.load(self.block, _at(CallBlock, field), kind)

    def _of_array(self, k: str, field: str, kind: str = "i64", more: int = 0) -> str:
        place = self.add(self.mul(k, ctypes.sizeof(Array)), _at(CallBlock, "arrays") + _at(Array, field) + more)
        return self.load(self.block, place, kind)

    def _entry(self, array: str, k: str) -> str:
        return self.load(array, self.mul(k, 8))

    def _take_arrays(self) -> None:
        """Data and numbers per robot of all operands and results; robots are what the first operand has rows of."""
        frame, buffer = OFFSETS["CallFrame"], OFFSETS["Buffer"]
        operands = self._of_block("operands")
        lists = [self.load("%frame", frame[k], "ptr") for k in ("args.args", "rets.rets")]
        self.slots_batch = self.slot()
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
                self.store(rows, self.slots_batch)
            crooked = self.op(f"and i64 {self._entry(self.data, k)}, 63")
            crooked = self.mul(self._of_array(k, "whole"), crooked)  # vectors are read from it as they are written
            with self.when(self.compare("ne", crooked, 0), leaves=True):
                self._fail("@not_aligned")

    def _product(self, dims: str, start: Any, end: str) -> str:
        total = self.slot()
        self.store(1, total)
        with self.loop(end, start) as k:
            self.store(self.mul(self.load(total), self.load(dims, self.mul(k, 8))), total)
        return self.load(total)

    # -- looking -------------------------------------------------------------------------------------------------------
    def _look(self, when: int) -> None:
        """Ask Python if an operand, afterwards a result, is not as it should be."""
        operands = self._of_block("operands")
        start, end = (0, operands) if when == BEFORE else (operands, self.count)
        self.store("false", self.asked, kind="i1")
        with self.loop(end, start) as k:
            with self.when(self.compare("ne", self._of_array(k, "finite"), 0)):
                self._ask_unless(self._all_finite(k))
            with self.when(self.compare("ne", self._of_array(k, "limited"), 0)), self.loop(self.batch) as row:
                for column in range(2):
                    number = self._number(k, self.add(self.mul(row, self._entry(self.strides, k)), column))
                    limit = self._of_array(k, "limits", "double", 8 * column)
                    self._ask_unless(self.op(f"fcmp ole double {number}, {limit}"))
        if when == BEFORE:
            self._look_at_quaternions()
            self._look_at_what_is_new()
        with self.when(self.load(self.asked, kind="i1")):
            ask = self.op(f"inttoptr i64 {self._of_block('ask')} to ptr")
            given = (f"i64 {when}", f"i64 {self.batch}", f"i64 {self.steps}", f"ptr {self.data}")
            text = self.call("i64", ask, *given)
            with self.when(self.compare("ne", text, 0), leaves=True):
                self._fail(self.op(f"inttoptr i64 {text} to ptr"))
        if when == BEFORE:  # Python had nothing to say
            self.store(self.load(self.seen), self.block, _at(CallBlock, "seen"))

    def _look_at_what_is_new(self) -> None:
        self.seen = self.slot()
        self.store(self._of_block("seen"), self.seen)
        with (
            self.loop(self._of_block("operands")) as k,
            self.when(self.compare("ne", self._of_array(k, "looked_at"), 0)),
        ):
            size = self.mul(self.mul(self.batch, self._entry(self.strides, k)), self.item)
            data = self.op(f"inttoptr i64 {self._entry(self.data, k)} to ptr")
            words = self.op(f"lshr i64 {size}, 2")
            self.store(self.call("i64", "@mark", f"ptr {data}", f"i64 {words}"), self.seen)
            self._ask_unless(self.compare("eq", self.load(self.seen), self._of_block("seen")))

    def _look_at_quaternions(self) -> None:
        starts = self._of_block("quaternion_starts", "ptr")
        low, high = (self.load(self.block, _at(CallBlock, "lengths") + 8 * k, "double") for k in range(2))
        with self.loop(self._of_block("quaternions")) as j, self.loop(self.batch) as row:
            first = self.add(self.mul(row, self._entry(self.strides, "0")), self.load(starts, self.mul(j, 8)))
            square = "0.0"
            for i in range(4):
                x = self._number("0", self.add(first, i))
                square = self.op(f"fadd double {square}, {self.op(f'fmul double {x}, {x}')}")
            self._ask_unless(self.op(f"fcmp oge double {square}, {low}"))
            self._ask_unless(self.op(f"fcmp ole double {square}, {high}"))

    def _all_finite(self, k: str) -> str:
        n = self.mul(self.batch, self._entry(self.strides, k))
        data, found = self.op(f"inttoptr i64 {self._entry(self.data, k)} to ptr"), self.slot("i1")
        doubles = self.compare("eq", self.item, 8)
        with self.when(doubles):
            self.store(self.call("i1", "@finite_i64", f"ptr {data}", f"i64 {n}"), found, kind="i1")
        with self.when(self.op(f"xor i1 {doubles}, true")):
            self.store(self.call("i1", "@finite_i32", f"ptr {data}", f"i64 {n}"), found, kind="i1")
        return self.load(found, kind="i1")

    def _number(self, k: str, i: str) -> str:
        data = self.op(f"inttoptr i64 {self._entry(self.data, k)} to ptr")
        return self.call("double", "@number", f"ptr {data}", f"i64 {i}", f"i64 {self.item}")

    def _ask_unless(self, good: str) -> None:
        bad = self.op(f"xor i1 {good}, true")
        self.store(self.op(f"or i1 {self.load(self.asked, kind='i1')}, {bad}"), self.asked, kind="i1")

    # -- running -------------------------------------------------------------------------------------------------------
    def _copy(self) -> None:
        """Rows of operands to the front of rows of results; zeros to what is added to."""
        with self.loop(self.count) as k, self.when(self.compare("ne", self._of_array(k, "cleared"), 0)):
            rows = self.select(self.compare("ne", self._of_array(k, "whole"), 0), 1, self.batch)
            size = self.mul(self.mul(rows, self._entry(self.strides, k)), self.item)
            data = self.op(f"inttoptr i64 {self._entry(self.data, k)} to ptr")
            self.call("void", "@llvm.memset.p0.i64", f"ptr {data}", "i8 0", f"i64 {size}", "i1 false")
        with self.loop(self._of_block("operands")) as k:
            to = self._of_array(k, "copy_to")
            with self.when(self.compare("sge", to, 0)):
                size, step = (self.mul(self._entry(self.strides, i), self.item) for i in (k, to))
                source, result = (self.op(f"inttoptr i64 {self._entry(self.data, i)} to ptr") for i in (k, to))
                with self.loop(self.batch) as row:
                    self.copy(self.at(result, self.mul(row, step)), self.at(source, self.mul(row, size)), size)

    def _run(self) -> None:
        """The kernel over all packs, on this thread and on those of XLA."""
        size = ctypes.sizeof(Variant)
        which = self.select(self.compare("eq", self.batch, 1), 0, size)
        variant = self.at(self.block, self.add(which, _at(CallBlock, "variants")))
        lanes, template = self.load(variant, _at(Variant, "lanes")), self.load(variant, _at(Variant, "table"), "ptr")
        packs = self.op(f"sdiv i64 {self.sub(self.add(self.batch, lanes), 1)}, {lanes}")
        words = self.mul(self._of_block("words"), 8)
        job = self.call("ptr", "@malloc", f"i64 {self.add(words, TABLE)}")
        table = self.at(job, TABLE)
        self.copy(table, template, words)
        self.store(self.batch, table)
        self.store(self.steps, table, self.mul(self._of_block("steps_slot"), 8))
        with self.loop(self.count) as k:
            for field in ("slot", "other_slot"):
                slot = self._of_array(k, field)
                with self.when(self.compare("sge", slot, 0)):
                    place = self.mul(slot, 8)
                    self.store(self._entry(self.data, k), table, place)
                    with self.when(self.compare("eq", self._of_array(k, "whole"), 0)):
                        self.store(self._entry(self.strides, k), table, self.add(place, 8))
        others = self.sub(self.minimum(self._of_block("threads"), packs), 1)
        others = self.select(self.compare("slt", others, 0), 0, others)
        for field, value in (("users", self.add(others, 1)), ("next", "0"), ("done", "0"), ("packs", packs)):
            self.store(value, job, _at(Job, field))
        for field in ("entry", "scratch"):
            self.store(self.load(variant, _at(Variant, field)), job, _at(Job, field))
        with self.loop(others):
            self._schedule(job)
        self.call("void", "@work", f"ptr {job}")
        again, over = self.name("again"), self.name("over")
        self.line(f"br label {again}")
        self.label(again)
        done = self.op(f"load atomic i64, ptr {self.at(job, _at(Job, 'done'))} acquire, align 8")
        self.call("i32", "@sched_yield")
        self.line(f"br i1 {self.compare('slt', done, packs)}, label {again}, label {over}")
        self.label(over)
        self.call("void", "@drop", f"ptr {job}")

    def _schedule(self, job: str) -> None:
        """Ask XLA for a thread; where it has none, this one does it all."""
        fields, room = OFFSETS["ThreadPool_Schedule_Args"], self.slot("[40 x i8]")
        self.store(40, room, fields["struct_size"])
        self.store("null", room, fields["extension_start"], "ptr")
        for name, value in (("ctx", self.ctx), ("task", "@task"), ("data", job)):
            self.store(value, room, fields[name], "ptr")
        error = self.call("ptr", self._function("ThreadPool_Schedule"), f"ptr {room}")
        with self.when(self.compare("ne", error, "null", "ptr")):
            gone, about = self.slot("[24 x i8]"), OFFSETS["Error_Destroy_Args"]
            self.store(24, gone, about["struct_size"])
            self.store("null", gone, about["extension_start"], "ptr")
            self.store(error, gone, about["error"], "ptr")
            self.call("void", self._function("Error_Destroy"), f"ptr {gone}")
            self.call("void", "@drop", f"ptr {job}")

    def _function(self, name: str) -> str:
        return self.load(self.api, OFFSETS["Api"][f"XLA_FFI_{name}"], "ptr")

    def _fail(self, text: str) -> None:
        """Return an error with this text."""
        room, fields = self.slot("[32 x i8]"), OFFSETS["Error_Create_Args"]
        self.store(fields["errc"] + 4, room, fields["struct_size"])
        self.store("null", room, fields["extension_start"], "ptr")
        self.store(text, room, fields["message"], "ptr")
        self.store(INVALID_ARGUMENT, room, fields["errc"], "i32")
        self.line(f"ret ptr {self.call('ptr', self._function('Error_Create'), f'ptr {room}')}")


_OTHER = "this program was compiled in another process: artigrad's calls in it have to be traced again"
_KIND = "artigrad's handler was given an attribute that is no 64-bit integer"
_CROOKED = "XLA gave artigrad memory that does not begin at a multiple of 64 bytes"
_LIBRARY = f"""declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @sched_yield()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@process = internal global i64 0
@other_process = internal constant [{len(_OTHER) + 1} x i8] c"{_OTHER}\\00"
@other_kind = internal constant [{len(_KIND) + 1} x i8] c"{_KIND}\\00"
@not_aligned = internal constant [{len(_CROOKED) + 1} x i8] c"{_CROOKED}\\00"
define void @set_process(i64 %x) {{
  store i64 %x, ptr @process
  ret void
}}
"""
PROCESS = secrets.randbits(62)  # by which the handler knows that addresses it is given are of this process


def handler_text() -> str:
    """All of it, as a module of LLVM."""
    looking = [_finite("i64", 0x7FF << 52), _finite("i32", 0xFF << 23), _number(), _mark()]
    return "\n".join([_LIBRARY, *looking, _work(), _drop(), _task(), str(_Handler())])


_alive: list[Any] = []  # XLA takes no handler back


@cache
def register() -> None:
    """Make the handler known to XLA; raises UnknownInterfaceError where that cannot be."""
    check_interface()
    code = Code(handler_text(), 2, disk.folder())
    ctypes.CFUNCTYPE(None, c_int64)(code.address("set_process"))(PROCESS)
    _alive.append(code)
    capsule = jax.ffi.pycapsule(ctypes.c_void_p(code.address(TARGET)))
    try:
        jax.ffi.register_ffi_target(TARGET, capsule, platform="cpu")
    except Exception as e:
        raise UnknownInterfaceError(str(e)) from e
