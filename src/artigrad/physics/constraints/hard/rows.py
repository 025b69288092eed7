"""Rows of the contact problem: the velocities they see, and  A = J Mt^-1 J^T + softness = Z^T Z + softness.

The softness of a contact is a share of the inverse masses that the model gives its two bodies (of a joint: its degree
of freedom), so that it does not depend on units. They are parameters and have cotangents. Rows without such a mass (a
wheel on an axle) have a share of the diagonal of A, and rows that can move nothing a small share of the largest diagonal
that is possible there; these two are not differentiated.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ....compiler import carry, climb, loop, maximum, sqrt, switch, target
from ...context import Step
from ...spatial import Mat3, Vec3, dot
from ...spatial.vectors import outer
from ..paths import along_paths
from .contact_problem import A_SIDE, B_SIDE, ContactProblem
from .kinds import KINDS, of_kind
from .target_velocity import rest_velocity, target_velocity

SHARE, IDLE = 1e-3, {"f64": 1e-6, "f32": 1e-2}


def rows(s: Step) -> None:
    """For every contact: Z of both sides, and b = J v + dt J qdd_free - beta."""
    problem = s.constraints
    for k in loop(s.model.nv):
        problem.root[k] = sqrt(s.dof[k].dinv)
    scale_free_motion(s)
    for c in loop(problem.count):
        row = problem.row[c]
        seen, free = of_kind("rows", s, c)
        beta = target_velocity(s, row.phi, row.e, seen.x)
        rest, _ = rest_velocity(s, row.phi)
        row.around, row.b = seen + (seen + free * s.dt), seen + free * s.dt - Vec3(beta, 0.0, 0.0)
        row.share, row.limited, row.rebound = 1.0, 0.0, beta - rest


def scale_free_motion(s: Step) -> None:
    """Compute ut = d^1/2 u, so that Z^T ut is the row velocity of the motion whose inward half is in s.dof.u."""
    for k in loop(s.model.nv):
        s.constraints.ut[k] = s.dof[k].u / s.constraints.root[k]


def delassus(s: Step) -> None:
    """A for all pairs of contacts of a group, and the inverse of its diagonal."""
    problem, nl = s.constraints, s.model.nl
    for c in loop(problem.count):
        for d in problem.members(problem.start[c], problem.place[c] + 1):
            total = carry(Mat3.zero())
            for a in (A_SIDE, B_SIDE):
                for b in (A_SIDE, B_SIDE):
                    i, j = problem.link(c, a), problem.link(d, b)
                    for k in loop(problem.common[i * nl + j]):
                        x = problem.Z.struct(problem.z(c, a, k), Vec3)
                        y = problem.Z.struct(problem.z(d, b, k), Vec3)
                        total.value = total.value + outer(x, y)
            problem.A.put(problem.block(c, d), total.value)
            problem.A.put(problem.block(d, c), total.value.T)
        at = problem.block(c, c)
        own = problem.A.struct(at, Mat3)
        full = own + Mat3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, own.yy * spare(problem, c))
        softness = softness_of(s, c, full)
        problem.row[c].soft = softness
        full = full + Mat3(softness, 0.0, 0.0, 0.0, softness, 0.0, 0.0, 0.0, softness)
        problem.A.put(at, full)
        problem.row[c].inv = problem.friction.steps(full)


def softness_of(s: Step, c: Any, A: Mat3) -> Any:
    """The softness of contact c, 1/kg. A: its block of the diagonal without it."""
    problem, most = s.constraints, carry(0.0)
    row, options = problem.row[c], problem.options
    for side, p in ((A_SIDE, row.p_a), (B_SIDE, row.p)):
        for n in climb(s.model.parent, problem.link(c, side)):
            va = s.model.link_v[n]
            for k in loop(va, va + s.model.link_nv[n]):
                most.value = most.value + problem.root[k] * problem.root[k] * dot(p, p)
    mass = maximum(of_kind("inverse_mass", s, c), least_mass(A, most.value))
    return options.softness * mass + options.absolute_softness


def least_mass(A: Mat3, most: Any) -> Any:
    """Lower bound of the inverse mass of a contact. A: its block of the diagonal; most: the largest possible one."""
    return maximum(SHARE * (A.xx + A.yy + A.zz), IDLE[target().dtype] * most)


def softness_bars(s: Step, c: Any, bar: Any) -> None:
    """Adjoint of the part of the softness that depends on parameters."""
    if s.bars.const is not None:
        of_kind("inverse_mass_bar", s, c, bar * s.constraints.options.softness)


def spare(problem: ContactProblem, c: Any) -> Any:
    """Share of the second diagonal entry of A that an unused third row has."""
    return switch(problem.kind[c], {k: partial(float, kind.spare) for k, kind in enumerate(KINDS)})


def spare_vjp(problem: ContactProblem, c: Any, A_bar: Mat3) -> Mat3:
    """Add the cotangent of that entry to what it was copied from."""
    return Mat3(0.0, 0.0, 0.0, 0.0, A_bar.zz * spare(problem, c), 0.0, 0.0, 0.0, 0.0)


def apply_impulses(s: Step, x: str, scale: float) -> None:
    """u += scale * d^-1 L J^T x, with x a field of the contact rows."""
    problem = s.constraints
    for c in loop(problem.count):
        value = getattr(problem.row[c], x) * scale
        for k, z in along_paths(s, c):
            s.dof[k].u += problem.root[k] * dot(z, value)
