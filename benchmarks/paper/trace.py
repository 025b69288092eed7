"""A staging target that notes every operation of a step, and prints the notes as a Python function of any number type.

Everything that is known of the model is unrolled: one robot, all its loops over links, its contacts taken as near (they
are: a toe that is not simply gets no impulse). What depends on values becomes a choice between two values. A loop whose
length is `Rolled` is kept: the sweeps of the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import artigrad as ag
from artigrad.compiler import ROBOTS, SHARED, WORK, Reals
from artigrad.compiler.numpy_target import NumpyCell
from artigrad.compiler.values import ROUNDER, Mask, Real

from .source import plain_integers, staged_step

BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "lt": "<",
    "le": "<=",
    "and": "*",
    "or": "|",
}  # CasADi has no &
MASKS = ("lt", "le", "and", "or")
INFINITE = float("inf")
UNWRITTEN = float("nan")  # placeholder in scratch: read, but never selected


class Rolled(int):
    """Length of a loop that is kept as a loop."""


class Truth(Mask):
    """Mask that converts to a Python bool if its value is known while tracing."""

    __slots__ = ()

    def __and__(self, other: Any) -> Any:
        return super().__and__(other) if isinstance(other, Mask) else (self if other else False)

    def __or__(self, other: Any) -> Any:
        return super().__or__(other) if isinstance(other, Mask) else (True if other else self)

    __rand__, __ror__ = __and__, __or__


@dataclass
class Op:
    """Operation out = name(args): names of values, and numbers."""

    out: str
    name: str
    args: tuple[Any, ...]


@dataclass
class Carried:
    """Loop-carried value: its name inside, its start, its value at the end of an iteration, its name after the loop."""

    inside: str
    start: Any
    turned: Any
    after: str


@dataclass
class Loop:
    turns: int
    body: list[Any]
    carried: list[Carried]


@dataclass
class Frame:
    """Body of a kept loop while it is traced."""

    ops: list[Any]
    known: dict[Any, str]
    values: dict[Any, Any]
    inside: dict[Any, str] = field(default_factory=dict)


class TraceMemory:
    """Indexed values, defined by the tracer."""

    def __init__(self, tracer: Tracer, name: str, start: Any = ()):
        self.tracer, self.name = tracer, name
        tracer.values.update({(name, k): x for k, x in enumerate(start)})

    def at(self, index: Any) -> int:
        return int(index)

    def load(self, place: int, offset: int) -> Any:
        return self.tracer.load((self.name, place + offset))

    def store(self, place: int, offset: int, value: Any) -> None:
        self.tracer.values[self.name, place + offset] = value


class Tracer:
    """Target that implements the operations of `values` and `control` by recording them."""

    symbolic = False
    tangents = False
    dtype, lanes = "f64", 1
    int_cell = NumpyCell

    def __init__(self) -> None:
        self.ops: list[Any] = []
        self.known: dict[Any, str] = {}
        self.values: dict[Any, Any] = {}
        self._frame: Frame | None = None
        self._count = 0

    # -- notes -------------------------------------------------------------------------------------------------------
    def name(self) -> str:
        self._count += 1
        return f"a{self._count}"

    def note(self, name: str, *args: Any) -> str:
        key = (name, *(_ref(a) for a in args))
        if key not in self.known:
            self.known[key] = self.name()
            self.ops.append(Op(self.known[key], name, key[1:]))
        return self.known[key]

    def real(self, name: str, *args: Any) -> Real:
        return Real(self.note(name, *args), None)  # type: ignore[arg-type]

    def load(self, key: Any) -> Any:
        frame = self._frame
        if frame is None or key in self.values:
            return self.values.get(key, UNWRITTEN)
        if key not in frame.inside:
            frame.inside[key] = self.name()
        return Real(frame.inside[key], None)  # type: ignore[arg-type]

    def cell(self, start: Any) -> TraceCell:
        return TraceCell(self, start)

    # -- numbers -----------------------------------------------------------------------------------------------------
    def add(self, a: Any, b: Any) -> Any:
        for x, y in ((a, b), (b, a)):
            if not isinstance(x, Real) and x == 0.0:
                return y
        if not isinstance(b, Real) and b == ROUNDER["f64"]:
            return self.real("round", a)  # what the low bits would hold; `sub` takes the other half of the trick
        return self.real("add", a, b)

    def sub(self, a: Any, b: Any) -> Any:
        if not isinstance(b, Real) and b in (0.0, ROUNDER["f64"]):
            return a
        return self.neg(b) if not isinstance(a, Real) and a == 0.0 else self.real("sub", a, b)

    def mul(self, a: Any, b: Any) -> Any:
        for x, y in ((a, b), (b, a)):
            if not isinstance(x, Real):
                if x == 0.0:
                    return 0.0
                if x == 1.0:
                    return y
                if x == -1.0:
                    return self.neg(y)
        return self.real("mul", a, b)

    def div(self, a: Any, b: Any) -> Any:
        return self.real("div", a, b)

    def neg(self, a: Any) -> Any:
        return self.real("neg", a) if isinstance(a, Real) else -a

    def unary(self, function: str, a: Any) -> Any:
        return self.real(function, a) if isinstance(a, Real) else float({"sqrt": np.sqrt, "fabs": abs}[function](a))

    def compare(self, how: str, a: Any, b: Any) -> Any:
        left, right = (a, b) if how in ("olt", "ole") else (b, a)
        if INFINITE in (_ref(left), _minus(right)):  # no bound
            return False
        return Truth(self.note("lt" if how in ("olt", "ogt") else "le", left, right), None)  # type: ignore[arg-type]

    def mask_op(self, op: str, a: Mask, b: Mask) -> Truth:
        return Truth(self.note(op, a, b), None)  # type: ignore[arg-type]

    def select(self, mask: Any, a: Any, b: Any) -> Any:
        if not isinstance(mask, Mask):
            return a if mask else b
        return a if _ref(a) == _ref(b) else self.real("select", mask, a, b)

    def quarter_turns(self, turns: Any, s: Any, c: Any) -> tuple[Any, Any]:
        n = turns - 4.0 * self.real("floor", turns * 0.25)
        one, two, three = n > 0.5, n > 1.5, n > 2.5
        by = [(s, c), (c, -s), (-s, -c), (-c, s)]
        sine, cosine = (self._nested((one, two, three), [b[k] for b in by]) for k in range(2))
        return sine, cosine

    def _nested(self, above: tuple[Any, ...], choices: list[Any]) -> Any:
        found = choices[0]
        for mask, choice in zip(above, choices[1:], strict=True):
            found = self.select(mask, choice, found)
        return found

    # -- control -----------------------------------------------------------------------------------------------------
    @staticmethod
    def any_lane(mask: Any) -> int:
        return 1 if isinstance(mask, Mask) else int(mask)

    @staticmethod
    def to_real(x: int) -> float:
        return float(x)

    @staticmethod
    def switch(index: int, cases: dict[int, Callable[[], Any]]) -> Any:
        return cases[index]()

    @staticmethod
    def climb(parent: Any, start: int) -> Iterator[int]:
        while start > 0:
            yield start
            start = parent[start]

    def loop(self, first: int, end: int, inwards: bool) -> Iterator[int]:
        if isinstance(end, Rolled):
            return self._kept(end)
        return iter(range(end - 1, first - 1, -1) if inwards else range(first, end))

    def _kept(self, turns: Rolled) -> Iterator[int]:
        """Trace the body once, on values that represent any iteration. Its index must not be used."""
        before = self._frame = Frame(self.ops, self.known, self.values)
        self.ops, self.known, self.values = [], dict(before.known), {}
        yield 0
        self._frame = None
        body, written = self.ops, self.values
        self.ops, self.known, self.values = before.ops, before.known, before.values
        fixed = {
            name: _ref(before.values.get(key, UNWRITTEN)) for key, name in before.inside.items() if key not in written
        }
        for op in body:
            op.args = tuple(fixed.get(a, a) for a in op.args)
        carried = []
        for key, value in written.items():
            inside, after = before.inside.get(key) or self.name(), self.name()
            start = _ref(self.values.get(key, 0.0))
            carried.append(Carried(inside, start, fixed.get(_ref(value), _ref(value)), after))
            self.values[key] = Real(after, None)  # type: ignore[arg-type]
        self.ops.append(Loop(int(turns), body, carried))


class TraceCell:
    """Variable, stored with the rest of the memory so that kept loops record its changes."""

    def __init__(self, tracer: Tracer, start: Any):
        self.tracer, self.key = tracer, ("cell", tracer.name())
        tracer.values[self.key] = start

    def store(self, value: Any) -> None:
        self.tracer.values[self.key] = value

    def load(self) -> Any:
        return self.tracer.load(self.key)


def _ref(x: Any) -> Any:
    return x.ref if isinstance(x, Real | Mask) else float(x)


def _minus(x: Any) -> Any:
    return None if isinstance(x, Real) else -x


# -- programs ----------------------------------------------------------------------------------------------------------
class Program:
    """Recorded operations of one step: (q, v, u) -> (q, v), as names of values in ops."""

    def __init__(self, ops: list[Any], inputs: list[str], outputs: list[Any]):
        self.inputs, self.outputs = inputs, outputs
        self.ops = _needed(ops, {x for x in outputs if isinstance(x, str)})

    def count(self) -> int:
        """Return the number of operations of a step, with loops counted by their iterations."""
        return sum(op.turns * len(op.body) if isinstance(op, Loop) else 1 for op in self.ops)

    def text(self) -> str:
        """Return `def step(inputs)` on a list of q, v and u; it needs select, sqrt, fabs, round_, floor and repeat."""
        lines = [f"    {', '.join(self.inputs)}, = inputs", *(line for op in self.ops for line in _lines(op, "    "))]
        return "\n".join(["def step(inputs):", *lines, f"    return [{', '.join(map(_text, self.outputs))}]", ""])

    def parts(self) -> tuple[Program, Loop, list[str], Program] | None:
        """Return (before, loop, fixed, after): the step split at its first kept loop, if it has one.

        `before` returns the start values of the carried variables, then the `fixed` values that the loop only reads, then
        other values for `after`. `after` takes the carried variables, these other values, then the inputs of the step.
        """
        at = next((k for k, op in enumerate(self.ops) if isinstance(op, Loop)), None)
        if at is None:
            return None
        loop = self.ops[at]
        made = [x for op in self.ops[:at] for x in _makes(op)] + self.inputs
        body = {x for op in loop.body for x in _uses(op)} | {c.turned for c in loop.carried}
        later = {x for op in self.ops[at + 1 :] for x in _uses(op)} | set(self.outputs)
        fixed, rest = [x for x in made if x in body], [x for x in made if x in later and x not in self.inputs]
        before = Program(self.ops[:at], self.inputs, [c.start for c in loop.carried] + fixed + rest)
        after = Program(self.ops[at + 1 :], [c.after for c in loop.carried] + rest + self.inputs, self.outputs)
        return before, loop, fixed, after

    def function(self, **words: Callable[..., Any]) -> Callable[[Any], list[Any]]:
        """Return the step as a function on numbers for which `words` has the functions."""
        space: dict[str, Any] = dict(words)
        exec(compile(self.text(), "<step>", "exec"), space)
        return space["step"]


def _makes(op: Any) -> list[str]:
    if isinstance(op, Loop):
        return [c.after for c in op.carried]
    return [] if op.name in MASKS else [op.out]


def _uses(op: Any) -> list[Any]:
    if isinstance(op, Loop):
        return [x for o in op.body for x in _uses(o)] + [c.start for c in op.carried]
    return list(op.args)


def _needed(ops: list[Any], wanted: set[str]) -> list[Any]:
    """Return the operations on which the wanted values depend, in order. `wanted` is extended to all values in use."""
    kept = []
    for op in reversed(ops):
        if isinstance(op, Op):
            if op.out in wanted:
                kept.append(op)
                wanted.update(a for a in op.args if isinstance(a, str))
            continue
        size = -1
        while size != len(wanted):  # a value needed inside is needed from the previous iteration
            size = len(wanted)
            carried = [c for c in op.carried if c.after in wanted or c.inside in wanted]
            wanted.update(x for c in carried for x in (c.start, c.turned) if isinstance(x, str))
            body = _needed(op.body, wanted)
        if carried:
            kept.append(Loop(op.turns, body, carried))
    return kept[::-1]


def _text(x: Any) -> str:
    return x if isinstance(x, str) else repr(x)


def _lines(op: Any, indent: str) -> list[str]:
    if isinstance(op, Loop):
        inside, start, turned, after = (
            ", ".join(_text(getattr(c, part)) for c in op.carried) for part in ("inside", "start", "turned", "after")
        )
        name = f"turn_{op.carried[0].inside}"
        body = [line for o in op.body for line in _lines(o, indent + "    ")]
        head = [f"{indent}def {name}({inside}):", *body, f"{indent}    return {turned},"]
        return [*head, f"{indent}{after}, = repeat({op.turns}, {name}, ({start},))"]
    args = [_text(a) for a in op.args]
    if op.name in BINARY:
        return [f"{indent}{op.out} = {args[0]} {BINARY[op.name]} {args[1]}"]
    if op.name == "neg":
        return [f"{indent}{op.out} = -{args[0]}"]
    word = "round_" if op.name == "round" else op.name
    return [f"{indent}{op.out} = {word}({', '.join(args)})"]


def trace(sim: ag.Simulator) -> Program:
    """Return the recorded operations of one step of a simulator."""
    tracer = Tracer()
    names = {
        x: [f"{x}{k}" for k in range(n)] for x, n in (("q", sim.model.nq), ("v", sim.model.nv), ("u", sim.model.nu))
    }

    def state(name: str, size: int) -> Reals:
        return Reals(TraceMemory(tracer, name, [Real(x, None) for x in names[name]]))  # type: ignore[arg-type]

    makers = plain_integers() | {
        SHARED: lambda name, value: Reals(TraceMemory(tracer, name, map(float, value))),
        WORK: lambda name, size: Reals(TraceMemory(tracer, name)),
        ROBOTS: state,
    }
    from artigrad.compiler.values import staging_on

    with staging_on(tracer):
        staged_step(sim, Rolled(sim.options.hard.sweeps), makers)
    outputs = [_ref(tracer.values[x, k]) for x in ("q", "v") for k in range(len(names[x]))]
    return Program(tracer.ops, [x for part in names.values() for x in part], outputs)
