"""Jacobian rows along paths of the tree: from the links of a row to their roots, scaled by the factor of the mass matrix.

With Mt^-1 = L^T d^-1 L from the articulated-body factor, Z = d^-1/2 L J^T has entries only along the path from a contact to
its root. J itself is never formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...compiler import Reals, carry, climb, loop
from .. import joints
from ..context import Step
from ..kinematics import add_placement_bar
from ..spatial import Force, Motion, Vec3, cross_force
from .hard.contact_problem import A_SIDE, B_SIDE


def put_path(s: Step, c: Any, side: int, i: Any, forces: tuple[Force, ...], free: carry) -> None:
    """Propagate three forces on link i to its root, and write the entries of Z.

    Adds the product of Z with the free motion to `free`.
    """
    f, root = carry(forces), s.constraints.root

    def put(k: Any, entries: list[Any]) -> None:
        put_entries(s, c, side, k, entries, free)

    for n in climb(s.model.parent, i):
        f.value = joints.path_rows(s, n, f.value, root, put)


def put_entries(s: Step, c: Any, side: int, k: Any, entries: list[Any], free: carry) -> None:
    """Write the entries of degree of freedom k for the three rows of contact c to Z; add their part to `free`."""
    problem = s.constraints
    problem.Z.put(problem.z(c, side, s.model.dof_depth[k]), Vec3(*entries))
    free.value = free.value + Vec3(*entries) * problem.ut[k]


def along_paths(s: Step, c: Any) -> Iterator[tuple[Any, Vec3]]:
    """Yield each degree of freedom on the paths of contact c with its entries of Z."""
    problem, m = s.constraints, s.model
    for side in (A_SIDE, B_SIDE):
        for n in climb(m.parent, problem.link(c, side)):
            va = m.link_v[n]
            for k in loop(va, va + m.link_nv[n]):
                yield k, problem.Z.struct(problem.z(c, side, m.dof_depth[k]), Vec3)


def jacobian_product(s: Step, c: Any) -> Vec3:
    """Return J x of the rows of contact c, for the x whose scaled tip-to-root sweep is in problem.ut."""
    total = carry(Vec3.zero())
    for k, z in along_paths(s, c):
        total.value = total.value + z * s.constraints.ut[k]
    return total.value


def path_bars(
    s: Step, i: Any, forces: tuple[Force, ...], weights: tuple[Any, ...], X: tuple[Reals, ...]
) -> tuple[Motion, ...]:
    """Return the motions V of link i under joint velocities x of each row; add cotangents of poses on the path.

    Each joint n on the path rotates the links behind it: xi_n = sum of (V - V before n) x* f;  and  v_bar += S^T of the
    weighted forces.
    """
    total, weighted = carry(tuple(Motion.zero() for _ in X)), Force.zero()
    for f, weight in zip(forces, weights, strict=True):
        weighted = weighted + f * weight
    for n in climb(s.model.parent, i):
        own = joints.apply_rows(s, n, X)
        total.value = tuple(a + b for a, b in zip(total.value, own, strict=True))
        xi = Force.zero()
        for V, f in zip(joints.beyond(s, n, total.value, own), forces, strict=True):
            xi = xi + cross_force(V, f)
        joints.add_pose_bars(s, n, xi, Vec3.zero())
        joints.add_parameter_bars(s, n, xi, tuple((Motion.zero(), x, f) for x, f in zip(own, forces, strict=True)))
        joints.add_projection(s, n, weighted, s.bars.v)
        add_placement_bar(s, n, xi, Vec3.zero())
    return total.value
