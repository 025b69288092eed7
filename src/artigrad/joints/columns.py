"""What every joint does that is given by the columns of S: apply S and its transpose, and be eliminated from the tree.

They are in world axes. A joint with several columns is eliminated one at a time:
that is the same as its block at once, without inverting a matrix  (theory 3.4, 3.5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..spatial import Articulated, Force, Motion, articulated_outer, power
from ..staging import Reals, Table

Columns = list[Motion]


def apply(columns: Columns, x: Reals, va: Any) -> Motion:
    """S x"""
    total = columns[0] * x[va]
    for k, S in enumerate(columns[1:], start=1):
        total = total + S * x[va + k]
    return total


def add_projection(columns: Columns, f: Force, va: Any, out: Reals) -> None:
    """out += S^T f"""
    for k, S in enumerate(columns):
        out[va + k] = out[va + k] + power(S, f)


def eliminate(columns: Columns, IA: Articulated, extra: Any, va: Any, dof: Table) -> Articulated:
    """U = IA S,  1/d = 1/(S . U + extra);  what is left of IA for the parent: IA - U U^T/d"""
    for k in reversed(range(len(columns))):
        S, row = columns[k], dof[va + k]
        U = IA @ S
        dinv = 1.0 / (power(S, U) + extra)
        row.U, row.dinv = U, dinv
        IA = IA - articulated_outer(U, dinv)
    return IA


def pull(columns: Columns, F: Force, b: Reals, va: Any, dof: Table) -> Force:
    """u = (b - S . F)/d;  the force on the parent: F + U u"""
    for k in reversed(range(len(columns))):
        row = dof[va + k]
        u = (b[va + k] - power(columns[k], F)) * row.dinv
        row.u = u
        F = F + row.U * u
    return F


def push(columns: Columns, a: Motion, va: Any, dof: Table, u: Callable[[Any], Any], x: Reals) -> Motion:
    """x = u - U . a/d;  the acceleration beyond the joint: a + S x"""
    for k, S in enumerate(columns):
        row = dof[va + k]
        xk = u(va + k) - power(a, row.U) * row.dinv
        x[va + k] = xk
        a = a + S * xk
    return a


def path_rows(columns: Columns, rows: tuple[Force, ...], va: Any, ws: Any, put: Any) -> tuple[Force, ...]:
    """One step of L along a path: forces on the link become entries z = S . f of the rows, and forces on the parent."""
    for k in reversed(range(len(columns))):
        dof, root = ws.dof[va + k], ws.root[va + k]
        z = [power(columns[k], f) for f in rows]
        put(va + k, [x * root for x in z])
        rows = tuple(f - dof.U * (x * dof.dinv) for f, x in zip(rows, z, strict=True))
    return rows
