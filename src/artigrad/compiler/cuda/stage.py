"""Staging for CUDA: one robot per thread, workspace in rows of 32 values, one per thread of a warp.

Thread `t` processes the robots t, t + threads, t + 2 threads, ..., so that workspace is allocated per running thread, not
per robot. Entry k of a scratch array of thread t is at  warp(t) * chunk + row(k) * 32 + lane(t): the threads of a warp
access consecutive words, and offsets between entries are compile-time constants.

Sizes that are given when a kernel is bound (links, contacts, scratch sizes) are compiled in, and branches on integer tables
(kinds of joints, of pairs) only have the cases of the model. Values that are given when a kernel is called are arguments.
Integers have 32 bits, except the offsets of a robot in the user's arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..emit import Emitter
from ..memory import Integers, IntegerScratch, Lanes, Reals, Robots, Shared
from ..values import Int, Symbol, staging_on

if TYPE_CHECKING:
    from ..kernel import Kernel

WARP = 32
GLOBAL = "ptr addrspace(1)"
_SPECIAL = "declare i32 @llvm.nvvm.read.ptx.sreg.{}.x()"


class ThreadEmitter(Emitter):
    """Emitter of the body of one thread."""

    def __init__(self, dtype: str):
        super().__init__(dtype, 1, fused=True)
        self.pointer = GLOBAL
        self.row, self.row_align = f"[{WARP} x {self.element}]", self.element_bytes
        self.int, self.int_row = "i32", f"[{WARP} x i32]"
        self.apart = True

    def robots(self) -> Iterator[Int]:
        """Iterate over the robots of this thread."""
        step = Int("%at.threads", self.scope)
        return self._while(
            Int("%at.thread", self.scope),
            lambda i: f"slt i32 {i.ref}, %at.batch",
            lambda i: self.int_op("add", i, step),
        )

    def far(self, pointer: str, entry: str, index: str, stride: str) -> str:
        """Return the address of entry index * stride, computed in 64 bits."""
        wide = self.pure(f"zext i32 {index} to i64")
        return self.pure(
            f"getelementptr {entry}, {self.pointer} {pointer}, i64 {self.pure(f'mul i64 {wide}, {stride}')}"
        )


@dataclass(frozen=True)
class Staged:
    """Code of a kernel and its calling convention.

    Attributes:
        parameters: (name, type) in order, one 64-bit word each.
        chunk: Workspace bytes shared by 32 threads.
    """

    name: str
    ir: str
    parameters: tuple[tuple[str, str], ...]
    chunk: int


def stage(kernel: Kernel, given: dict[str, int], among: dict[str, frozenset[int]]) -> Staged:
    """Return the code of a kernel for the sizes `given` and integer tables whose values are in `among`."""
    e = ThreadEmitter(kernel.target.dtype)
    offsets, chunk = _lay_out(kernel, given, e)
    parameters = [("at.batch", "i32"), ("at.work", e.pointer)]
    for key, kind in kernel.signature.items():
        if key in given:
            continue
        own = {"int": "i32", "real": e.element}.get(kind, e.pointer)
        parameters += [(key, own)] + ([(f"{key}.stride", "i64")] if kind in ("packed", "robots") else [])

    with staging_on(e):
        for robot in e.robots():
            kernel.body(**{key: _argument(e, key, kind, robot, given, among) for key, kind in kernel.signature.items()})
    scratch = [(key, e.pointer) for key in offsets]
    setup = []
    if offsets:
        setup = [
            "  %at.warp = lshr i32 %at.thread, 5",
            f"  %at.lane = and i32 %at.thread, {WARP - 1}",
            "  %at.warp.wide = zext i32 %at.warp to i64",
            f"  %at.place = mul i64 %at.warp.wide, {chunk}",
            f"  %at.chunk = getelementptr i8, {e.pointer} %at.work, i64 %at.place",
            f"  %at.reals = getelementptr {e.element}, {e.pointer} %at.chunk, i32 %at.lane",
            f"  %at.ints = getelementptr i32, {e.pointer} %at.chunk, i32 %at.lane",
        ]
        for key, offset in offsets.items():
            base = "%at.ints" if kernel.signature[key] == "int_work" else "%at.reals"
            setup.append(f"  %{key} = getelementptr i8, {e.pointer} {base}, i64 {offset}")
    name = f"artigrad_{kernel.name}"
    return Staged(name, wrap(e, name, parameters, setup, scratch), tuple(parameters), chunk)


def wrap(
    e: ThreadEmitter,
    name: str,
    parameters: list[tuple[str, str]],
    setup: list[str],
    scratch: list[tuple[str, str]],
) -> str:
    """Return the kernel function around the code of a thread: thread index, arguments, and pointers without aliases."""
    inner = [("at.thread", "i32"), ("at.threads", "i32"), *parameters, *scratch]
    own = ", ".join(f"{t} noalias %{n}" if t == e.pointer else f"{t} %{n}" for n, t in inner)
    passed = ", ".join(f"{t} %{n}" for n, t in inner)
    listed = ", ".join(f"{t} %{n}" for n, t in parameters)
    declared = e.declared | {_SPECIAL.format(name) for name in ("tid", "ntid", "ctaid", "nctaid")}
    return "\n".join(
        [
            *sorted(declared),
            f"define internal void @body({own}) alwaysinline {{",
            "entry:",
            *e.variables,
            *e.lines,
            "  ret void",
            "}",
            f"define ptx_kernel void @{name}({listed}) {{",
            *_WHICH_THREAD,
            *setup,
            f"  call void @body({passed})",
            "  ret void",
            "}",
            "!0 = !{}",
            "",
        ]
    )


_WHICH_THREAD = [
    "  %at.tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
    "  %at.ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()",
    "  %at.ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
    "  %at.nctaid = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()",
    "  %at.before = mul i32 %at.ctaid, %at.ntid",
    "  %at.thread = add i32 %at.before, %at.tid",
    "  %at.threads = mul i32 %at.ntid, %at.nctaid",
]


def _lay_out(kernel: Kernel, given: dict[str, int], e: ThreadEmitter) -> tuple[dict[str, int], int]:
    """Return the offset of each scratch array in the chunk of a warp, and the length of a chunk, bytes."""
    offsets, total = {}, 0
    for key, kind in kernel.signature.items():
        if kind in ("work", "int_work"):
            offsets[key] = total
            total += given[key] * WARP * (4 if kind == "int_work" else e.element_bytes)
    return offsets, total


def _argument(
    e: ThreadEmitter, key: str, kind: str, robot: Int, given: dict[str, int], among: dict[str, frozenset[int]]
) -> Any:
    if kind == "int":
        return given[key] if key in given else Int(f"%{key}", e.scope)
    if kind == "real":
        return e.splat(f"%{key}")
    if kind == "ints":
        return Integers(e, f"%{key}", among.get(key))
    if kind == "shared":
        return Reals(Shared(e, f"%{key}"))
    if kind == "work":
        return Reals(Lanes(e, f"%{key}"))
    if kind == "int_work":
        return IntegerScratch(e, f"%{key}")
    if kind == "robots":
        return Reals(Robots(e, [e.far(f"%{key}", e.element, _ref(robot), f"%{key}.stride")]))
    pack = e.pure(f"lshr i32 {_ref(robot)}, 5")
    lane = e.pure(f"and i32 {_ref(robot)}, {WARP - 1}")
    row = e.far(f"%{key}", e.row, pack, f"%{key}.stride")
    return Reals(Lanes(e, e.pure(f"getelementptr {e.element}, {e.pointer} {row}, i32 {lane}")))


def _ref(symbol: Symbol) -> str:
    return symbol.ref
