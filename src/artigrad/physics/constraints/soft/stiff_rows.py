"""Nearly rigid rows, whose inverse weight is about zero, and the removal of those that no joint can move.

The inverse weight that scales a row is that of the model at rest. It is about zero if a center of mass is on the axis
of its joint: then D = d/(1 - d)/weight reaches 1e15. If joints can move such a row, it is only very stiff. If none can,
its Jacobian is rounding error, its force 1e18 N, and their product a wrong acceleration. In exact arithmetic such a row
has no effect, so it gets D = 0.

Whether joints move a row is measured by a probe: joint velocities without special ratios. If the velocity of a row
under the probe is rounding error relative to those of its links, no joint moves it. The lever of the rounding error is
not that of the point itself, which may be on the axis, but that of the places it was computed from: the origins of the
links, and the shapes of a contact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....compiler import Row, carry, loop, maximum, select, target, to_real
from ... import joints
from ...context import Step
from ...spatial import Motion, dot
from .families import WRENCH, Block, Motions
from .soft_problem import HEAVY

ROUNDING = {"f64": 1.4e-14, "f32": 7.6e-6}  # rounding error of a difference of velocities, relative to them
GOLDEN = 0.6180339887498949


def start_probe(s: Step) -> None:
    """Write the motions of all links under the probe to s.link.y, and clear the flag of stiff rows."""
    problem, x = s.constraints, carry(1.0)
    problem.stiff[0] = 0.0
    for k in loop(s.model.nv):
        x.value = select(x.value > 2.0 - GOLDEN, x.value + GOLDEN - 1.0, x.value + GOLDEN)
        problem.trial[k] = x.value
    s.link[0].y = Motion.zero()
    for i in loop(1, s.model.nl):
        s.link[i].y = s.link[s.model.parent[i]].y + joints.apply(s, i, problem.trial)


def drop_immovable_contact(s: Step, family: Block, n: Any, row: Row, g: Any, size: Any) -> Any:
    """Set D = 0 if the contact is nearly rigid, of inverse weight 1/g, and no joint moves it.

    Args:
        s: Step.
        family, n, row: Block.
        g: Effective mass.
        size: Sum of the radii of the shapes, m.

    Returns:
        1 if it is nearly rigid and no joint moves its normal, else 0.
    """
    seen, shift, turn = _probed(s, family, n, row, size)
    mu = (1.0, *(getattr(row, name) for name in family.friction_names))
    allowed = shift + turn if family is WRENCH else shift
    heavy = (g > HEAVY) & (row.D > 0.0)
    idle = heavy & (_square([x * m for x, m in zip(seen, mu, strict=True)]) <= allowed)
    row.D = select(idle, 0.0, row.D)
    _note(s, heavy & (row.D > 0.0))
    return select(heavy & (seen[0] * seen[0] <= shift), 1.0, 0.0)


def drop_immovable_equality(s: Step, family: Block, n: Any, row: Row, g: tuple[Any, Any]) -> None:
    """Set D = 0 for the translations or rotations of a nearly rigid equality that no joint moves, each separately."""
    seen, shift, turn = _probed(s, family, n, row, 0.0)
    heavy = g[0] > HEAVY
    row.D = select(heavy & (_square(seen[:3]) <= shift), 0.0, row.D)
    _note(s, heavy & (row.D > 0.0))
    if family is WRENCH:
        heavy = g[1] > HEAVY
        row.D_turn = select(heavy & (_square(seen[3:]) <= turn), 0.0, row.D_turn)
        _note(s, heavy & (row.D_turn > 0.0))


def drop_immovable_multi_dof(s: Step, n: Any, row: Row, g: Any, length: Any) -> None:
    """Set D = 0 for a nearly rigid row on several degrees of freedom that no joint moves. length: of its tendon."""
    problem, moved = s.constraints, carry(0.0)
    for e in loop(problem.entry[n], problem.entry[n + 1]):
        moved.value = maximum(moved.value, abs(problem.coef[e]))
    heavy = (g > HEAVY) & (row.D > 0.0)
    row.D = select(heavy & (moved.value <= ROUNDING[target().dtype] * (1.0 + abs(length))), 0.0, row.D)
    _note(s, heavy & (row.D > 0.0))


def name_pair(s: Step, k: Any, pressed: Any) -> None:
    """Store the index of pair k, from 1, if it presses where no joint moves."""
    status = s.constraints.status
    status[2] = maximum(status[2], pressed * (to_real(k) + 1.0))


def _probed(s: Step, family: Block, n: Any, row: Row, size: Any) -> tuple[Sequence[Any], Any, Any]:
    """Return the velocities of a block's rows under the probe, and the squared rounding errors of translations and
    rotations. size: of what the point was computed from, m."""
    problem, least = s.constraints, ROUNDING[target().dtype]
    shift: Any = 0.0
    turn: Any = 0.0
    for side, p in (("a", row.p_a), ("b", row.p)):
        link = s.link[getattr(problem, f"{family.name}_link_{side}")[n]]
        y, far = link.y, p - link.X.r
        lever = size * size + dot(p, p) + dot(far, far)
        shift, turn = shift + dot(y.v, y.v) + dot(y.w, y.w) * lever, turn + dot(y.w, y.w)
    seen = family.jacobian_product(s, n, row, Motions("y", problem.trial)).leaves()
    return seen, least * least * shift, least * least * turn


def _square(x: Sequence[Any]) -> Any:
    """Sum of squares."""
    total: Any = 0.0
    for each in x:
        total = total + each * each
    return total


def _note(s: Step, stiff: Any) -> None:
    """Set the flag of stiff rows."""
    s.constraints.stiff[0] = maximum(s.constraints.stiff[0], select(stiff, 1.0, 0.0))
