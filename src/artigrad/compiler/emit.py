"""Symbolic target: operators on values emit LLVM instructions, as textual IR.

One `Emitter` writes one function, with an element type (`f64` or `f32`) and a number of SIMD lanes. With several lanes
every `Real` is a SIMD vector, one robot per lane; the staged source is the same.

Rounding is specified: no fast-math flag is set, and a product that is added to a value is emitted as an explicit fused
multiply-add, independent of the optimizer. A robot therefore has the same bits in every lane and in the kernel for one
robot.
"""

from __future__ import annotations

import struct as bits
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .struct import flatten, unflatten
from .values import Int, Mask, Real, StagingError, Symbol

_ELEMENT = {"f64": "double", "f32": "float"}


class Scope:
    """Code region whose results can be used in the rest of it: the function, a loop body, a case of a switch."""

    __slots__ = ("known", "open")

    def __init__(self, known: dict[str, str]):
        self.open, self.known = True, known


class Cell:
    """Variable in stack memory; the optimizer promotes it to a register."""

    __slots__ = ("emitter", "ref")

    def __init__(self, emitter: Emitter, start: Any):
        self.emitter, self.ref = emitter, emitter.name()
        emitter.variables.append(f"  {self.ref} = alloca {emitter.type}")
        self.store(start)

    def store(self, value: Any) -> None:
        e = self.emitter
        e.line(f"store {e.type} {e.ref(value)}, ptr {self.ref}")

    def load(self) -> Real:
        e = self.emitter
        return Real(e.result(f"load {e.type}, ptr {self.ref}"), e.scope)


class IntCell:
    """Integer variable."""

    __slots__ = ("emitter", "ref")

    def __init__(self, emitter: Emitter, start: Any):
        self.emitter, self.ref = emitter, emitter.name()
        emitter.variables.append(f"  {self.ref} = alloca {emitter.int}")
        self.store(start)

    def store(self, value: Any) -> None:
        e = self.emitter
        e.line(f"store {e.int} {e.int_ref(value)}, ptr {self.ref}")

    def load(self) -> Int:
        e = self.emitter
        return Int(e.result(f"load {e.int}, ptr {self.ref}"), e.scope)


class Emitter:
    """Writer of the body of one function. The operators of `values` and `control` call its methods."""

    symbolic = True
    tangents = False  # True if values are duals

    def __init__(self, dtype: str, lanes: int, fused: bool = True):
        self.dtype, self.lanes, self.fused = dtype, lanes, fused
        self.element = _ELEMENT[dtype]
        self.type = self.element if lanes == 1 else f"<{lanes} x {self.element}>"
        self.mask_type = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.suffix = ("" if lanes == 1 else f"v{lanes}") + dtype
        self.element_bytes = 8 if dtype == "f64" else 4
        # where and how the library lays out its own arrays: an entry is one pack
        self.pointer, self.row, self.row_align = "ptr", self.type, self.element_bytes * lanes
        self.int, self.int_row = "i64", "i64"
        self.apart = lanes > 1  # whether robots that run together lie apart in the user's arrays
        self.lines: list[str] = []
        self.variables: list[str] = []
        self.declared: set[str] = set()
        self.block = "entry"
        self.scope = Scope({})
        self._count = 0

    @contextmanager
    def side_by_side(self, n: int) -> Iterator[None]:
        """Context in which a value of a one-lane kernel is a vector of n consecutive entries, also in loads and stores."""
        if self.lanes != 1 or self.apart:
            raise StagingError("entries of one robot go side by side only where it is alone")
        before = self.lanes, self.type, self.mask_type, self.suffix
        self.lanes, self.type, self.mask_type = n, f"<{n} x {self.element}>", f"<{n} x i1>"
        self.suffix = f"v{n}{self.dtype}"
        try:
            yield
        finally:
            self.lanes, self.type, self.mask_type, self.suffix = before

    # -- text ----------------------------------------------------------------------------------------------------
    def name(self, prefix: str = "%v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def result(self, expression: str) -> str:
        ref = self.name()
        self.lines.append(f"  {ref} = {expression}")
        return ref

    def pure(self, expression: str) -> str:
        """Return the result of an expression without side effects, emitted once per scope."""
        ref = self.scope.known.get(expression)
        if ref is None:
            ref = self.scope.known[expression] = self.result(expression)
        return ref

    def ref(self, x: Any) -> str:
        """Return a symbolic real or a Python number as an operand."""
        if isinstance(x, Symbol):
            return self.live(x)
        number = float(x)
        if self.dtype == "f32":
            number = bits.unpack("f", bits.pack("f", number))[0]
        text = f"0x{bits.unpack('Q', bits.pack('d', number))[0]:016X}"
        return text if self.lanes == 1 else f"splat ({self.element} {text})"

    def live(self, x: Symbol) -> str:
        if not x.scope.open:
            raise StagingError(
                "a value that was computed inside a loop or a case is used after it ended: write x = carry(start) "
                "before the loop, x.value = ... inside and x.value after, or return it from the case of the switch"
            )
        return x.ref

    def int_ref(self, x: Any) -> str:
        return self.live(x) if isinstance(x, Int) else str(int(x))

    def call(self, function: str, *args: str) -> str:
        signature = ", ".join([self.type] * len(args))
        self.declared.add(f"declare {self.type} @llvm.{function}.{self.suffix}({signature})")
        operands = ", ".join(f"{self.type} {a}" for a in args)
        return self.pure(f"call {self.type} @llvm.{function}.{self.suffix}({operands})")

    # -- reals ---------------------------------------------------------------------------------------------------
    def _binary(self, op: str, a: Any, b: Any) -> Real:
        return Real(self.pure(f"{op} {self.type} {self.ref(a)}, {self.ref(b)}"), self.scope)

    def _fma(self, a: Any, b: Any, c: Any) -> Real:
        return Real(self.call("fma" if self.fused else "fmuladd", self.ref(a), self.ref(b), self.ref(c)), self.scope)

    def add(self, a: Any, b: Any) -> Any:
        if _is_number(a, 0.0):
            return b
        if _is_number(b, 0.0):
            return a
        if isinstance(a, Real) and a.factors:
            return self._fma(*a.factors, b)
        if isinstance(b, Real) and b.factors:
            return self._fma(*b.factors, a)
        return self._binary("fadd", a, b)

    def sub(self, a: Any, b: Any) -> Any:
        if _is_number(b, 0.0):
            return a
        if _is_number(a, 0.0):
            return self.neg(b)
        if isinstance(a, Real) and a.factors:
            return self._fma(*a.factors, self.neg(b))
        if isinstance(b, Real) and b.factors:
            return self._fma(self.neg(b.factors[0]), b.factors[1], a)
        return self._binary("fsub", a, b)

    def mul(self, a: Any, b: Any) -> Any:
        for x, y in ((a, b), (b, a)):
            if not isinstance(x, Real):
                if x == 0.0:
                    return 0.0
                if x == 1.0:
                    return y
                if x == -1.0:
                    return self.neg(y)
        product = self._binary("fmul", a, b)
        product.factors = (a, b)
        return product

    def div(self, a: Any, b: Any) -> Real:
        return self._binary("fdiv", a, b)

    def neg(self, a: Any) -> Any:
        if not isinstance(a, Real):
            return -a
        return Real(self.pure(f"fneg {self.type} {self.ref(a)}"), self.scope)

    def unary(self, function: str, a: Any) -> Real:
        return Real(self.call(function, self.ref(a)), self.scope)

    def compare(self, how: str, a: Any, b: Any) -> Mask:
        return Mask(self.pure(f"fcmp {how} {self.type} {self.ref(a)}, {self.ref(b)}"), self.scope)

    def mask_op(self, op: str, a: Mask, b: Any) -> Any:
        if isinstance(b, bool):  # both sides were Python numbers
            return a if b == (op == "and") else b
        return Mask(self.pure(f"{op} {self.mask_type} {self.live(a)}, {self.live(b)}"), self.scope)

    def select(self, mask: Any, a: Any, b: Any) -> Any:
        if isinstance(mask, bool):  # both sides were Python numbers
            return a if mask else b
        if not isinstance(mask, Mask):
            raise StagingError("select chooses by a comparison of reals; branch on integers with switch")
        picked = f"select {self.mask_type} {self.live(mask)}, {self.type} {self.ref(a)}, {self.type} {self.ref(b)}"
        return Real(self.pure(picked), self.scope)

    def quarter_turns(self, turns: Any, s: Any, c: Any) -> tuple[Any, Any]:
        """Return (sin, cos) of an angle plus n quarter turns from (s, c) of the angle; n is in the low bits of `turns`."""
        width, word, number = self._words()

        def signed(x: Any, n: str) -> Real:
            second = self.pure(f"and {word} {n}, {number(2)}")
            sign = self.pure(f"shl {word} {second}, {number(width - 2)}")
            flipped = self.pure(f"xor {word} {self.pure(f'bitcast {self.type} {self.ref(x)} to {word}')}, {sign}")
            return Real(self.pure(f"bitcast {word} {flipped} to {self.type}"), self.scope)

        n = self.pure(f"bitcast {self.type} {self.ref(turns)} to {word}")
        after = self.pure(f"add {word} {n}, {number(1)}")
        odd = Mask(self.pure(f"icmp ne {word} {self.pure(f'and {word} {n}, {number(1)}')}, {number(0)}"), self.scope)
        return signed(self.select(odd, c, s), n), signed(self.select(odd, s, c), after)

    def _words(self) -> tuple[int, str, Callable[[int], str]]:
        """Return the number of bits of an element, the integer vector type of that width, and a formatter of constants."""
        width = 8 * self.element_bytes
        word = f"i{width}" if self.lanes == 1 else f"<{self.lanes} x i{width}>"
        return width, word, lambda n: str(n) if self.lanes == 1 else f"splat (i{width} {n})"

    def power_of_two(self, turns: Any) -> Any:
        """Return 2^n, with the integer n in the low bits of `turns`."""
        width, word, number = self._words()
        mantissa, one = (52, 1023 << 52) if width == 64 else (23, 127 << 23)
        n = self.pure(f"bitcast {self.type} {self.ref(turns)} to {word}")
        bits_ = self.pure(f"add {word} {self.pure(f'shl {word} {n}, {number(mantissa)}')}, {number(one)}")
        return Real(self.pure(f"bitcast {word} {bits_} to {self.type}"), self.scope)

    def split_exponent(self, x: Any) -> tuple[Any, Any]:
        """Return (m, n) with x = m 2^n and sqrt(1/2) <= m <= sqrt(2), for x > 0."""
        width, word, number = self._words()
        mantissa, low = (52, 0x3FE6A09E667F3BCD) if width == 64 else (23, 0x3F3504F3)
        x_bits = self.pure(f"bitcast {self.type} {self.ref(x)} to {word}")
        above = self.pure(f"sub {word} {x_bits}, {number(low)}")
        n = self.pure(f"ashr {word} {above}, {number(mantissa)}")
        m = self.pure(f"sub {word} {x_bits}, {self.pure(f'shl {word} {n}, {number(mantissa)}')}")
        return (
            Real(self.pure(f"bitcast {word} {m} to {self.type}"), self.scope),
            Real(self.pure(f"sitofp {word} {n} to {self.type}"), self.scope),
        )

    def splat(self, scalar: str) -> Real:
        """Broadcast a scalar to all lanes."""
        if self.lanes > 1:
            first = self.pure(f"insertelement {self.type} poison, {self.element} {scalar}, i32 0")
            zeros = f"<{self.lanes} x i32> zeroinitializer"
            scalar = self.pure(f"shufflevector {self.type} {first}, {self.type} poison, {zeros}")
        return Real(scalar, self.scope)

    def pack(self, words: list[str]) -> Real:
        """Return a vector with the value of each lane."""
        if self.lanes == 1:
            return Real(words[0], self.scope)
        pack = "poison"
        for lane, word in enumerate(words):
            pack = self.result(f"insertelement {self.type} {pack}, {self.element} {word}, i32 {lane}")
        return Real(pack, self.scope)

    def unpack(self, x: Any) -> list[str]:
        """Return the value of each lane."""
        ref = self.ref(x)
        if self.lanes == 1:
            return [ref]
        return [self.result(f"extractelement {self.type} {ref}, i32 {lane}") for lane in range(self.lanes)]

    def integers(self, x: Any) -> list[Int]:
        """Return the integer part of a nonnegative real in each lane."""
        if self.lanes == 1:
            return [Int(self.pure(f"fptosi {self.type} {self.ref(x)} to {self.int}"), self.scope)]
        wide = f"<{self.lanes} x i32>"
        whole = self.pure(f"fptosi {self.type} {self.ref(x)} to {wide}")
        words = [self.pure(f"extractelement {wide} {whole}, i32 {lane}") for lane in range(self.lanes)]
        return [Int(self.pure(f"zext i32 {word} to {self.int}"), self.scope) for word in words]

    def any_lane(self, mask: Any) -> Any:
        """Return 1 if a mask is true in any lane, else 0."""
        if isinstance(mask, bool):  # both sides were Python numbers
            return int(mask)
        bit = self.live(mask)
        if self.lanes > 1:
            word = f"i{self.lanes}"
            bit = self.pure(f"icmp ne {word} {self.pure(f'bitcast {self.mask_type} {bit} to {word}')}, 0")
        return Int(self.pure(f"zext i1 {bit} to {self.int}"), self.scope)

    def to_real(self, x: Any) -> Real:
        """Convert an integer of the model to a real."""
        return self.splat(self.pure(f"sitofp {self.int} {self.int_ref(x)} to {self.element}"))

    def splat_int(self, x: Any) -> str:
        """Broadcast a 64-bit integer to all lanes."""
        wide = f"<{self.lanes} x i64>"
        first = self.pure(f"insertelement {wide} poison, i64 {self.int_ref(x)}, i32 0")
        return self.pure(f"shufflevector {wide} {first}, {wide} poison, <{self.lanes} x i32> zeroinitializer")

    # -- integers ------------------------------------------------------------------------------------------------
    def int_op(self, op: str, a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return {"add": a + b, "sub": a - b, "mul": a * b}[op]
        if (op in ("add", "sub") and b == 0 and isinstance(b, int)) or (op == "mul" and b == 1 and isinstance(b, int)):
            return a
        return Int(self.pure(f"{op} nsw {self.int} {self.int_ref(a)}, {self.int_ref(b)}"), self.scope)

    # -- control -------------------------------------------------------------------------------------------------
    def _enter(self) -> Scope:
        outer, self.scope = self.scope, Scope(dict(self.scope.known))
        return outer

    def _leave(self, outer: Scope) -> None:
        self.scope.open = False
        self.scope = outer

    def _while(self, start: Any, condition: Callable[[Int], str], advance: Callable[[Int], Int]) -> Iterator[Int]:
        head, body, done = self.name("head"), self.name("body"), self.name("done")
        before, index = self.block, self.name()
        self.line(f"br label %{head}")
        self.label(head)
        phi_at = len(self.lines)
        self.lines.append("")
        outer = self._enter()
        i = Int(index, self.scope)
        go = self.result(f"icmp {condition(i)}")
        self.line(f"br i1 {go}, label %{body}, label %{done}")
        self.label(body)
        yield i
        following = advance(i)
        self.line(f"br label %{head}")
        self.lines[phi_at] = (
            f"  {index} = phi {self.int} [ {self.int_ref(start)}, %{before} ], "
            f"[ {self.int_ref(following)}, %{self.block} ]"
        )
        self._leave(outer)
        self.label(done)

    def loop(self, first: Any, end: Any, inwards: bool) -> Iterator[Any]:
        if isinstance(first, int) and isinstance(end, int) and end - first <= 1:
            return iter(range(first, end))  # no turn, or one
        if inwards:
            last = self.int_op("sub", end, 1)
            low = self.int_ref(first)
            return self._while(last, lambda i: f"sge {self.int} {i.ref}, {low}", lambda i: i - 1)
        high = self.int_ref(end)
        return self._while(first, lambda i: f"slt {self.int} {i.ref}, {high}", lambda i: i + 1)

    def climb(self, parent: Any, start: Any) -> Iterator[Int]:
        return self._while(start, lambda i: f"sgt {self.int} {i.ref}, 0", lambda i: parent[i])

    def switch(self, index: Any, cases: dict[int, Callable[[], Any]]) -> Any:
        if isinstance(index, int):
            return cases[index]()
        if index.among is not None:
            cases = {k: case for k, case in cases.items() if k in index.among}
            if len(cases) == 1:
                return next(iter(cases.values()))()
        here, merge, dead = self.name("switch"), self.name("merge"), self.name("dead")
        labels = {k: self.name("case") for k in cases}
        table = " ".join(f"{self.int} {k}, label %{label}" for k, label in labels.items())
        self.line(f"br label %{here}")
        self.label(here)
        self.line(f"switch {self.int} {self.int_ref(index)}, label %{dead} [ {table} ]")
        self.label(dead)
        self.line("unreachable")
        like: Any = None
        arms: list[tuple[str, list[str]]] = []
        for k, case in cases.items():
            self.label(labels[k])
            outer = self._enter()
            value = case()
            refs = [self.ref(leaf) for leaf in flatten(value) if leaf is not None]
            if arms and len(refs) != len(arms[0][1]):
                raise StagingError("the cases of a switch return different structures; return the same one from each")
            like = value
            arms.append((self.block, refs))
            self.line(f"br label %{merge}")
            self._leave(outer)
        self.label(merge)
        merged = []
        for choices in zip(*(refs for _, refs in arms), strict=True):
            sources = ", ".join(f"[ {r}, %{block} ]" for r, (block, _) in zip(choices, arms, strict=True))
            merged.append(Real(self.result(f"phi {self.type} {sources}"), self.scope))
        return unflatten(like, iter(merged)) if merged else None

    def cell(self, start: Any) -> Cell:
        return Cell(self, start)

    def int_cell(self, start: Any) -> IntCell:
        return IntCell(self, start)


def _is_number(x: Any, value: float) -> bool:
    return not isinstance(x, Real) and x == value
