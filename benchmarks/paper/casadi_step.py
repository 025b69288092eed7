"""One step and its reverse derivative as functions of CasADi.

Interpreted, everything is one graph with the sweeps unrolled, the fastest form in CasADi. As generated C the sweeps are a
loop: unrolled, the derivative has 150,000 lines, for which gcc -O1 needs 9 GB and many minutes.
"""

from __future__ import annotations

from typing import Any

import casadi as ca

from .trace import Program

VERSION = ca.__version__


def _repeat(turns: int, body: Any, start: Any) -> Any:
    for _ in range(turns):
        start = body(*start)
    return start


WORDS = {
    "select": ca.if_else,
    "sqrt": ca.sqrt,
    "fabs": ca.fabs,
    "round_": lambda x: ca.floor(x + 0.5),
    "floor": ca.floor,
    "repeat": _repeat,
}


def _graph(program: Program, name: str) -> Any:
    """Return a program as a function of one vector."""
    inputs = ca.SX.sym("inputs", len(program.inputs))
    return ca.Function(name, [inputs], [ca.vertcat(*program.function(**WORDS)(ca.vertsplit(inputs)))])


def unrolled(program: Program, nx: int, nu: int) -> tuple[Any, Any]:
    """Return (x, u) -> y and (x, u, y_bar) -> (x_bar, u_bar), interpreted."""
    x, u, y_bar = (ca.SX.sym(name, n) for name, n in (("x", nx), ("u", nu), ("y_bar", nx)))
    y = ca.vertcat(*program.function(**WORDS)(ca.vertsplit(ca.vertcat(x, u))))
    forward = ca.Function("forward", [x, u], [y])
    return forward, ca.Function("backward", [x, u, y_bar], [ca.jtimes(y, ca.vertcat(x, u), y_bar, True)])


def _folded(program: Program, inputs: Any, depth: int = 0) -> Any:
    """Return the results of a program for a vector, with its kept loops as loops, one per robot."""
    parts = program.parts()
    if parts is None:
        return _graph(program, f"after{depth}")(inputs)
    before, loop, fixed, after = parts
    carried = len(loop.carried)
    turn = Program(loop.body, [c.inside for c in loop.carried] + fixed, [c.turned for c in loop.carried] + fixed)
    made = _graph(before, f"before{depth}")(inputs)
    swept = _graph(turn, f"turn{depth}").fold(loop.turns)(made[: carried + len(fixed)])
    rest = made[carried + len(fixed) :]
    return _folded(after, ca.vertcat(swept[:carried], rest, inputs), depth + 1)


def generated(program: Program, nx: int, nu: int) -> str:
    """Return both functions as C code: `turn_ahead` and `turn_back`."""
    x, u, y_bar = (ca.MX.sym(name, n) for name, n in (("x", nx), ("u", nu), ("y_bar", nx)))
    step = ca.Function("turn_ahead", [x, u], [_folded(program, ca.vertcat(x, u))])
    bars = step.reverse(1)(x, u, step(x, u), y_bar)
    generator = ca.CodeGenerator("step.c")
    generator.add(step)
    generator.add(ca.Function("turn_back", [x, u, y_bar], [ca.vertcat(*bars)]))
    return generator.dump()
