"""Joint operations. Each function branches over the table of joint types; see `joint.Joint`.

Inward means from the tips of the tree to the roots, outward from the roots to the tips.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...compiler import Reals, loop, switch
from ..spatial import Articulated, Force, Motion, Transform, Vec3
from .joint import Extra, Joint, Pairs, Put
from .table import BY_MJCF, EITHER_AXIAL, JOINTS, KIND, MOVING, compiled

if TYPE_CHECKING:
    from ..context import Step

__all__ = ["BY_MJCF", "EITHER_AXIAL", "JOINTS", "KIND", "MOVING", "Joint"]


def _branch(s: Step, i: Any, call: Callable[[Joint], Any]) -> Any:
    """Call `call` with the joint type of link i and the offset of its velocities."""
    _ = s.model.link_v[i]
    return switch(s.model.kind[i], {k: partial(call, joint) for k, joint in compiled(s.has).items()})


def prepare(s: Step, i: Any) -> None:
    """Compute the terms that depend on joint coordinates alone, before the recursion along the tree."""
    _branch(s, i, lambda joint: joint.prepare(s, i))


def kinematics(s: Step, i: Any, X: Transform) -> tuple[Transform, Motion]:
    """Return the pose after the joint of link i, whose frame before it is X, and the velocity that the joint adds."""
    return _branch(s, i, lambda joint: joint.kinematics(s, i, X))


def apply(s: Step, i: Any, x: Reals) -> Motion:
    """Return S x, the motion of link i relative to its parent for joint velocities (or accelerations) x."""
    (motion,) = apply_rows(s, i, (x,))
    return motion


def apply_rows(s: Step, i: Any, rows: tuple[Reals, ...]) -> tuple[Motion, ...]:
    """Return S x of several x at once."""
    return _branch(s, i, lambda joint: joint.apply(s, i, rows))


def add_projection(s: Step, i: Any, f: Force, out: Reals) -> None:
    """out += S^T f: the joint force of a force on link i."""
    _branch(s, i, lambda joint: joint.add_projection(s, i, f, out))


def eliminate(s: Step, i: Any, IA: Articulated, extra: Extra) -> Articulated:
    """Return the articulated inertia that link i adds to its parent through their joint; store the factor in s.dof."""
    return _branch(s, i, lambda joint: joint.eliminate(s, i, IA, extra))


def solve_inward(s: Step, i: Any, F: Force, b: Reals) -> Force:
    """Return the force on the parent of link i for the force F on the link and joint forces b."""
    return _branch(s, i, lambda joint: joint.solve_inward(s, i, F, b))


def solve_outward(s: Step, i: Any, a: Motion, x: Reals) -> Motion:
    """Return the acceleration of link i whose parent has acceleration a; write joint accelerations to x."""
    (motion,) = _branch(s, i, lambda joint: joint.solve_outward(s, i, (a,), lambda k: s.dof[k].u, (x,)))
    return motion


def solve_outward_rows(s: Step, i: Any, a: tuple[Motion, ...], rows: tuple[Reals, ...]) -> tuple[Motion, ...]:
    """Run `solve_outward` on several vectors; each has the result of its inward pass in the place of its result."""
    return _branch(s, i, lambda joint: joint.solve_outward(s, i, a, None, rows))


def path_rows(s: Step, i: Any, rows: tuple[Force, ...], root: Reals, put: Put) -> tuple[Force, ...]:
    """Propagate forces on link i through its joint and return the forces on the parent.

    `put(k, entries)` receives the generalized force of each row on degree of freedom k, scaled by root, sqrt(1/d).
    """
    return _branch(s, i, lambda joint: joint.path_rows(s, i, rows, root, put))


def before(s: Step, i: Any, parent: Motion, own: Motion) -> Motion:
    """Return the motion of the axes of joint i, for a motion field that is `parent` before the joint and `own` after it."""
    return _branch(s, i, lambda joint: joint.before(s, i, parent, own))


def before_all(s: Step, i: Any, with_w: bool) -> tuple[Motion, Motion, Motion, Motion]:
    """Return `before` of velocity, acceleration and the fields y and w (zero without it) of link i, with one branch."""
    return _branch(s, i, lambda joint: joint.before_all(s, i, with_w))


def beyond(s: Step, i: Any, total: tuple[Motion, ...], own: tuple[Motion, ...]) -> tuple[Motion, ...]:
    """Return motions after joint i in the axes that it moves, for motions `total` that begin with those of the joint."""
    return _branch(s, i, lambda joint: joint.beyond(total, own))


def add_bars(s: Step, i: Any, forces: tuple[Force, Force, Force], o_bar: Vec3) -> None:
    """Add to the cotangents of the velocities and coordinates of joint i, given forces (relative, total, xi).

    o_bar: cotangent of the origin of its tree.
    """
    _branch(s, i, lambda joint: joint.add_bars(s, i, forces, o_bar))


def add_pose_bars(s: Step, i: Any, xi: Force, o_bar: Vec3) -> None:
    """Add to the cotangents of the coordinates of joint i alone."""
    _branch(s, i, lambda joint: joint.add_pose_bars(s, i, xi, o_bar))


def add_parameter_bars(s: Step, i: Any, xi: Force, pairs: Pairs) -> None:
    """Add to the cotangents of parameters on which the axes of joint i depend; see `Joint.add_parameter_bars`."""
    if s.bars.const is not None and any(joint.feature for joint in compiled(s.has).values()):
        _branch(s, i, lambda joint: joint.add_parameter_bars(s, i, xi, pairs))


def store_columns(s: Step) -> None:
    """Write all columns of S to s.dof.S, for code that works on single degrees of freedom."""
    for i in loop(1, s.model.nl):

        def store(joint: Joint, i: Any = i) -> None:
            for k, column in enumerate(joint.columns(s, i)):
                s.dof[s.model.link_v[i] + k].S = column

        _branch(s, i, store)
