"""Staging target that prints C++: the same source, with the number type as a template parameter `T`.

Loops and branches are those of the source; robots are integer tables. `select`, `any`, `stop` and `quarter_turns` branch on
values, which `tape.hpp` defines for each number type: a tape is recorded again for every rollout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import artigrad as ag
from artigrad.compiler import INT, INT_WORK, INTS, REAL, ROBOTS, SHARED, WORK, Reals
from artigrad.compiler.emit import Scope
from artigrad.compiler.struct import flatten, unflatten
from artigrad.compiler.values import ROUNDER, Int, Mask, Real, Symbol, staging_on

from .source import staged_step

COMPARE = {"olt": "<", "ole": "<=", "ogt": ">", "oge": ">="}
INT_OPS = {"add": "+", "sub": "-", "mul": "*"}


class Printer:
    """Writer of the body of a C++ function, as `Emitter` for LLVM."""

    symbolic = True
    tangents = False
    dtype, lanes = "f64", 1

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope = Scope({})
        self._depth, self._count = 1, 0

    # -- text --------------------------------------------------------------------------------------------------------
    def name(self) -> str:
        self._count += 1
        return f"x{self._count}"

    def line(self, text: str) -> None:
        self.lines.append("  " * self._depth + text)

    def result(self, kind: str, expression: str) -> str:
        name = self.name()
        self.line(f"const {kind} {name}{{{expression}}};")
        return name

    def pure(self, kind: str, expression: str) -> str:
        """Return the result of an expression without side effects, written once per scope."""
        known = self.scope.known
        if expression not in known:
            known[expression] = self.result(kind, expression)
        return known[expression]

    def ref(self, x: Any) -> str:
        if isinstance(x, Symbol):
            return x.ref
        number = float(x)
        return repr(number) if abs(number) != float("inf") else "-INFINITY" if number < 0 else "INFINITY"

    def _real(self, expression: str) -> Real:
        return Real(self.pure("T", expression), self.scope)

    # -- numbers -----------------------------------------------------------------------------------------------------
    def add(self, a: Any, b: Any) -> Any:
        for x, y in ((a, b), (b, a)):
            if not isinstance(x, Real) and x == 0.0:
                return y
        total = f"{self.ref(a)} + {self.ref(b)}"
        rounds = not isinstance(b, Real) and b == ROUNDER["f64"]  # zero derivative of a step function
        return self._real(f"stop({total})" if rounds else total)

    def sub(self, a: Any, b: Any) -> Any:
        if not isinstance(b, Real) and b == 0.0:
            return a
        return self._real(f"{self.ref(a)} - {self.ref(b)}")

    def mul(self, a: Any, b: Any) -> Any:
        for x, y in ((a, b), (b, a)):
            if not isinstance(x, Real):
                if x == 0.0:
                    return 0.0
                if x == 1.0:
                    return y
                if x == -1.0:
                    return self.neg(y)
        return self._real(f"{self.ref(a)} * {self.ref(b)}")

    def div(self, a: Any, b: Any) -> Any:
        return self._real(f"{self.ref(a)} / {self.ref(b)}")

    def neg(self, a: Any) -> Any:
        return self._real(f"-{a.ref}") if isinstance(a, Real) else -a

    def unary(self, function: str, a: Any) -> Any:
        return self._real(f"{'sqrt' if function == 'sqrt' else 'abs'}(T({self.ref(a)}))")

    def compare(self, how: str, a: Any, b: Any) -> Mask:
        return Mask(self.pure("bool", f"value({self.ref(a)}) {COMPARE[how]} value({self.ref(b)})"), self.scope)

    def mask_op(self, op: str, a: Mask, b: Mask) -> Mask:
        return Mask(self.pure("bool", f"{a.ref} {'&&' if op == 'and' else '||'} {b.ref}"), self.scope)

    def select(self, mask: Any, a: Any, b: Any) -> Any:
        if isinstance(mask, bool):
            return a if mask else b
        return self._real(f"{mask.ref} ? T({self.ref(a)}) : T({self.ref(b)})")

    def quarter_turns(self, turns: Any, s: Any, c: Any) -> tuple[Any, Any]:
        n = self.pure("int", f"quarter({self.ref(turns)})")
        sine = self._real(f"turned({n}, {self.ref(s)}, {self.ref(c)})")
        return sine, self._real(f"turned({n} + 1, {self.ref(s)}, {self.ref(c)})")

    def any_lane(self, mask: Any) -> Any:
        return int(mask) if isinstance(mask, bool) else Int(mask.ref, self.scope)

    def to_real(self, x: Any) -> Any:
        return self._real(f"double({self.int_ref(x)})")

    # -- integers ----------------------------------------------------------------------------------------------------
    def int_ref(self, x: Any) -> str:
        return x.ref if isinstance(x, Int) else str(int(x))

    def int_op(self, op: str, a: Any, b: Any) -> Any:
        if isinstance(b, int) and b == (1 if op == "mul" else 0):
            return a
        return Int(self.pure("long", f"{self.int_ref(a)} {INT_OPS[op]} {self.int_ref(b)}"), self.scope)

    # -- control -----------------------------------------------------------------------------------------------------
    def _block(self, head: str, inside: Callable[[], Any]) -> Any:
        """Context of a block `head { ... }`, which is a scope."""
        self.line(head + " {")
        outer, self.scope = self.scope, Scope(dict(self.scope.known))
        self._depth += 1
        found = inside()
        self._depth -= 1
        self.scope.open, self.scope = False, outer
        self.line("}")
        return found

    def _turns(self, head: str, index: str) -> Iterator[Int]:
        self.line(head + " {")
        outer, self.scope = self.scope, Scope(dict(self.scope.known))
        self._depth += 1
        yield Int(index, self.scope)
        self._depth -= 1
        self.scope.open, self.scope = False, outer
        self.line("}")

    def loop(self, first: Any, end: Any, inwards: bool) -> Iterator[Int]:
        i, a, b = self.name(), self.int_ref(first), self.int_ref(end)
        way = f"{i} = {b} - 1; {i} >= {a}; --{i}" if inwards else f"{i} = {a}; {i} < {b}; ++{i}"
        return self._turns(f"for (long {way})", i)

    def climb(self, parent: Any, start: Any) -> Iterator[Int]:
        i = self.name()
        return self._turns(f"for (long {i} = {self.int_ref(start)}; {i} > 0; {i} = {parent.name}[{i}])", i)

    def switch(self, index: Any, cases: dict[int, Callable[[], Any]]) -> Any:
        if isinstance(index, int):
            return cases[index]()
        at = len(self.lines)  # results are declared before it, once their number is known
        names: list[str] = []
        like: Any = None
        self.line(f"switch ({self.int_ref(index)}) {{")
        for k, case in cases.items():

            def arm(case: Callable[[], Any] = case) -> Any:
                value = case()
                leaves = [leaf for leaf in flatten(value) if leaf is not None]
                names.extend(self.name() for _ in range(len(leaves) - len(names)))
                for name, leaf in zip(names, leaves, strict=True):
                    self.line(f"{name} = T({self.ref(leaf)});")
                self.line("break;")
                return value

            like = self._block(f"case {k}:", arm)
        self.line("}")
        if not names:
            return None
        self.lines.insert(at, "  " * self._depth + f"T {', '.join(names)};")
        return unflatten(like, iter([Real(name, self.scope) for name in names]))

    def cell(self, start: Any) -> Variable:
        return Variable(self, "T", start)

    def int_cell(self, start: Any) -> Variable:
        return Variable(self, "long", start)


class Variable:
    """Variable of C++."""

    def __init__(self, printer: Printer, kind: str, start: Any):
        self.printer, self.kind, self.name = printer, kind, printer.name()
        printer.line(f"{kind} {self.name} = {self._text(start)};")

    def _text(self, value: Any) -> str:
        return f"T({self.printer.ref(value)})" if self.kind == "T" else self.printer.int_ref(value)

    def store(self, value: Any) -> None:
        self.printer.line(f"{self.name} = {self._text(value)};")

    def load(self) -> Any:
        p, kind = self.printer, Real if self.kind == "T" else Int
        return kind(p.result(self.kind, self.name), p.scope)


class Numbers:
    """Array of T, or of constants."""

    def __init__(self, printer: Printer, name: str, kind: str):
        self.printer, self.name, self.kind = printer, name, kind

    def at(self, index: Any) -> Any:
        return index

    def load(self, place: Any, offset: int) -> Real:
        p = self.printer
        text = f"{self.name}[{p.int_ref(place + offset)}]"
        return Real(p.pure("double", text) if self.kind == "double" else p.result("T", text), p.scope)

    def store(self, place: Any, offset: int, value: Any) -> None:
        p = self.printer
        p.line(f"{self.name}[{p.int_ref(place + offset)}] = T({p.ref(value)});")


class IntegerArray:
    """Integer table of the model, or integer work array."""

    def __init__(self, printer: Printer, name: str, constant: bool):
        self.printer, self.name, self.constant = printer, name, constant

    def __getitem__(self, i: Any) -> Int:
        p = self.printer
        text = f"{self.name}[{p.int_ref(i)}]"
        return Int(p.pure("long", text) if self.constant else p.result("long", text), p.scope)

    def __setitem__(self, i: Any, value: Any) -> None:
        self.printer.line(f"{self.name}[{self.printer.int_ref(i)}] = {self.printer.int_ref(value)};")


def step_source(sim: ag.Simulator) -> str:
    """Return `template <class T> void step(T* q, T* v, const T* u)` for a simulator, with NQ, NV and NU."""
    p, m = Printer(), sim.model
    tables: list[str] = [f"constexpr long NQ = {m.nq}, NV = {m.nv}, NU = {m.nu};"]
    scratch: list[str] = []

    def array(kind: str, name: str, values: Any) -> None:
        texts = [p.ref(x) if kind == "double" else str(int(x)) for x in values]
        tables.append(f"const {kind} {name}[] = {{{', '.join(texts)}}};")

    def integer(name: str, value: Any) -> Int:
        tables.append(f"constexpr long {name} = {int(value)};")
        return Int(name, p.scope)

    def integers(name: str, value: Any) -> IntegerArray:
        array("long", name, value)
        return IntegerArray(p, name, True)

    def shared(name: str, value: Any) -> Reals:
        array("double", f"{name}_", value)  # "const" is a word of C++
        return Reals(Numbers(p, f"{name}_", "double"))

    def work(name: str, size: int) -> Reals:
        scratch.append(f"  static thread_local std::vector<T> {name}({size});")
        return Reals(Numbers(p, name, "T"))

    def int_work(name: str, size: int) -> IntegerArray:
        scratch.append(f"  static thread_local std::vector<long> {name}({size});")
        return IntegerArray(p, name, False)

    makers: dict[Any, Callable[[str, Any], Any]] = {
        INT: integer,
        REAL: lambda name, value: float(value),
        INTS: integers,
        SHARED: shared,
        WORK: work,
        INT_WORK: int_work,
        ROBOTS: lambda name, size: Reals(Numbers(p, name, "T")),
    }
    with staging_on(p):
        staged_step(sim, sim.options.hard.sweeps, makers)
    head = ["template <class T> void step(T* q, T* v, const T* u) {", *scratch]
    return "\n".join([*tables, "", *head, *p.lines, "}", ""])
