"""The handler that XLA calls for every native call of artigrad on the CPU, written in LLVM's language: no compiler is needed.

A `CallBlock` describes the call: the kernel, the arguments that its operands and results are, copies and checks. Packs of
robots are shared among the threads of XLA. If a check fails (an operand that is not finite, a contact that was not
solved), it calls Python, which raises or warns as in all other calls.
"""

from __future__ import annotations

import ctypes
from ctypes import c_int64
from functools import cache

from .llvm_text import LlvmText
from .xla_frame import LIBRARY, MOST, Array, Handler, at, register_handlers

TARGET = "artigrad_run"
BEFORE, AFTER = 0, 1  # when Python is called
Ask = ctypes.CFUNCTYPE(
    c_int64, c_int64, c_int64, c_int64, ctypes.POINTER(c_int64)
)  # (when, batch, steps, data) -> text or 0


class Variant(ctypes.Structure):
    """A kernel for one robot or for packs: code, bytes of scratch, lanes, table of arguments."""

    _fields_ = [(name, c_int64) for name in ("entry", "scratch", "lanes", "table")]


class CallBlock(ctypes.Structure):
    """Description of a call. steps_slot: argument of the kernel for the number of steps. quaternions: their offsets in the
    first operand, whose lengths must be one within the tolerance. seen: hash of the last operand that was checked."""

    _fields_ = [
        *(
            (name, c_int64)
            for name in ("serial", "operands", "results", "item", "words", "steps_slot", "threads", "ask")
        ),
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


def _work() -> str:
    """Take packs until there are none. So it does not matter when, where or whether XLA runs a task: the caller takes them
    too, and waits only for those that others have begun."""
    t = LlvmText("internal void @work(ptr %job)")
    room = t.slot("ptr")
    t.store("null", room, kind="ptr")
    packs, size = t.load("%job", at(Job, "packs")), t.load("%job", at(Job, "scratch"))
    entry, table = t.load("%job", at(Job, "entry"), "ptr"), t.at("%job", TABLE)
    t.line("br label %take")
    t.label("%take")
    pack = t.op(f"atomicrmw add ptr {t.at('%job', at(Job, 'next'))}, i64 1 acq_rel")
    t.line(f"br i1 {t.compare('slt', pack, packs)}, label %run, label %over")
    t.label("%run")
    with t.when(t.compare("eq", t.load(room, kind="ptr"), "null", "ptr")):
        t.store(t.call("ptr", "@malloc", f"i64 {t.add(size, 64)}"), room, kind="ptr")
    start = t.op(f"ptrtoint ptr {t.load(room, kind='ptr')} to i64")
    aligned = t.op(f"inttoptr i64 {t.op(f'and i64 {t.add(start, 63)}, -64')} to ptr")
    t.call("void", entry, f"ptr {table}", f"ptr {aligned}", f"i64 {pack}", f"i64 {t.add(pack, 1)}")
    t.op(f"atomicrmw add ptr {t.at('%job', at(Job, 'done'))}, i64 1 acq_rel")
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


# -- checks -------------------------------------------------------------------------------------------------------------
def _finite(kind: str, mask: int) -> str:
    """Return true if none of n numbers has all bits of its exponent set. Eight at a time, then the rest."""
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
    """Hash of n words of 32 bits."""
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
class _HostHandler(Handler):
    """Runs a kernel on the threads of XLA."""

    block_type = CallBlock

    def __init__(self) -> None:
        super().__init__(TARGET, ("serial", "steps"))
        with self.when(self.compare("ne", self.about["serial"], self._of_block("serial")), leaves=True):
            self._fail("@no_simulator")
        self.asked = self.slot("i1")
        self._take_arrays()
        self._check(BEFORE)
        self._copy()
        self._run()
        self._check(AFTER)
        self.line("ret ptr null")

    # -- checks --------------------------------------------------------------------------------------------------------
    def _check(self, when: int) -> None:
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
            self._check_quaternions()
            self._check_changed()
        with self.when(self.load(self.asked, kind="i1")):
            ask = self.op(f"inttoptr i64 {self._of_block('ask')} to ptr")
            given = (f"i64 {when}", f"i64 {self.batch}", f"i64 {self.about['steps']}", f"ptr {self.data}")
            text = self.call("i64", ask, *given)
            with self.when(self.compare("ne", text, 0), leaves=True):
                self._fail(self.op(f"inttoptr i64 {text} to ptr"))
        if when == BEFORE:  # Python raised no error
            self.store(self.load(self.seen), self.block, at(CallBlock, "seen"))

    def _check_changed(self) -> None:
        self.seen = self.slot()
        self.store(self._of_block("seen"), self.seen)
        with (
            self.loop(self._of_block("operands")) as k,
            self.when(self.compare("ne", self._of_array(k, "checked"), 0)),
        ):
            size = self.mul(self.mul(self.batch, self._entry(self.strides, k)), self.item)
            data = self._pointer(k)
            words = self.op(f"lshr i64 {size}, 2")
            self.store(self.call("i64", "@mark", f"ptr {data}", f"i64 {words}"), self.seen)
            self._ask_unless(self.compare("eq", self.load(self.seen), self._of_block("seen")))

    def _check_quaternions(self) -> None:
        starts = self._of_block("quaternion_starts", "ptr")
        low, high = (self.load(self.block, at(CallBlock, "lengths") + 8 * k, "double") for k in range(2))
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
        data, found = self._pointer(k), self.slot("i1")
        doubles = self.compare("eq", self.item, 8)
        with self.when(doubles):
            self.store(self.call("i1", "@finite_i64", f"ptr {data}", f"i64 {n}"), found, kind="i1")
        with self.when(self.op(f"xor i1 {doubles}, true")):
            self.store(self.call("i1", "@finite_i32", f"ptr {data}", f"i64 {n}"), found, kind="i1")
        return self.load(found, kind="i1")

    def _number(self, k: str, i: str) -> str:
        data = self._pointer(k)
        return self.call("double", "@number", f"ptr {data}", f"i64 {i}", f"i64 {self.item}")

    def _ask_unless(self, good: str) -> None:
        bad = self.op(f"xor i1 {good}, true")
        self.store(self.op(f"or i1 {self.load(self.asked, kind='i1')}, {bad}"), self.asked, kind="i1")

    # -- running -------------------------------------------------------------------------------------------------------
    def _copy(self) -> None:
        """Rows of operands to the front of rows of results; zeros to what is added to."""
        with self.loop(self.count) as k, self.when(self.compare("ne", self._of_array(k, "cleared"), 0)):
            given = f"ptr {self._pointer(k)}", "i8 0", f"i64 {self._bytes(k)}", "i1 false"
            self.call("void", "@llvm.memset.p0.i64", *given)
        with self.loop(self._of_block("operands")) as k:
            to = self._of_array(k, "copy_to")
            with self.when(self.compare("sge", to, 0)):
                size, step = (self.mul(self._entry(self.strides, i), self.item) for i in (k, to))
                source, result = (self._pointer(i) for i in (k, to))
                with self.loop(self.batch) as row:
                    self.copy(self.at(result, self.mul(row, step)), self.at(source, self.mul(row, size)), size)

    def _run(self) -> None:
        """The kernel over all packs, on this thread and on those of XLA."""
        size = ctypes.sizeof(Variant)
        which = self.select(self.compare("eq", self.batch, 1), 0, size)
        variant = self.at(self.block, self.add(which, at(CallBlock, "variants")))
        lanes, template = self.load(variant, at(Variant, "lanes")), self.load(variant, at(Variant, "table"), "ptr")
        packs = self.op(f"sdiv i64 {self.sub(self.add(self.batch, lanes), 1)}, {lanes}")
        words = self.mul(self._of_block("words"), 8)
        job = self.call("ptr", "@malloc", f"i64 {self.add(words, TABLE)}")
        table = self.at(job, TABLE)
        self.copy(table, template, words)
        self._write_arguments(table)
        others = self.sub(self.minimum(self._of_block("threads"), packs), 1)
        others = self.select(self.compare("slt", others, 0), 0, others)
        for field, value in (("users", self.add(others, 1)), ("next", "0"), ("done", "0"), ("packs", packs)):
            self.store(value, job, at(Job, field))
        for field in ("entry", "scratch"):
            self.store(self.load(variant, at(Variant, field)), job, at(Job, field))
        with self.loop(others):
            self._schedule(job)
        self.call("void", "@work", f"ptr {job}")
        again, over = self.name("again"), self.name("over")
        self.line(f"br label {again}")
        self.label(again)
        done = self.op(f"load atomic i64, ptr {self.at(job, at(Job, 'done'))} acquire, align 8")
        self.call("i32", "@sched_yield")
        self.line(f"br i1 {self.compare('slt', done, packs)}, label {again}, label {over}")
        self.label(over)
        self.call("void", "@drop", f"ptr {job}")

    def _schedule(self, job: str) -> None:
        """Ask XLA for a thread; where it has none, this one does it all."""
        given = {"ctx": ("ptr", self.ctx), "task": ("ptr", "@task"), "data": ("ptr", job)}
        error, _ = self._request("ThreadPool_Schedule", **given)
        with self.when(self.compare("ne", error, "null", "ptr")):
            self._request("Error_Destroy", error=("ptr", error))
            self.call("void", "@drop", f"ptr {job}")


NO_SIMULATOR = "the simulator of this program was deleted: keep it for as long as programs that were compiled with it"
_LIBRARY = f"""declare i32 @sched_yield()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@no_simulator = internal constant [{len(NO_SIMULATOR) + 1} x i8] c"{NO_SIMULATOR}\\00"
"""


def handler_text() -> str:
    """All of it, as a module of LLVM."""
    checks = [_finite("i64", 0x7FF << 52), _finite("i32", 0xFF << 23), _number(), _mark()]
    return "\n".join([LIBRARY, _LIBRARY, *checks, _work(), _drop(), _task(), str(_HostHandler())])


@cache
def register() -> None:
    """Make the handler known to XLA; raises UnknownInterfaceError where that cannot be."""
    register_handlers(handler_text(), (TARGET,), "cpu")
