"""Noslip sweeps: friction without compliance, after Newton's method, as MuJoCo's noslip iterations  (theory 9.14).

Under the soft law, contacts that should stick creep. Normal forces and all others stay; friction forces are recomputed
by projected Gauss-Seidel on the directions of friction only, without compliance:

    f_i <- the f that makes y_i = (J a - ref)_i zero, within its bounds;      a <- a + M^-1 J_i^T (f_i' - f_i)

The bound is dry friction itself; of a pyramid mu_k times the pressure of the two edges along direction k; of a cone an
ellipse. The sweeps are few and in MuJoCo's order. Those of one island (trees coupled by rows) end when a sweep improves
little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from ....compiler import (
    Reals,
    Row,
    carry,
    clamp,
    climb,
    copy,
    counter,
    loop,
    maximum,
    minimum,
    select,
    sqrt,
    switch,
    to_real,
    when_any,
)
from ....errors import InputError
from ....model.model import Model
from ....model.options import SoftOptions
from ... import joints
from ...context import Step
from ...dynamics import articulated
from ...spatial import Force, Motion, Vec3, at_point, power
from .cones import pressed_edges
from .ellipse import InEllipse, in_ellipse, inner
from .families import BIG, MULTI_DOF, POINT, SINGLE, WRENCH, Block, Family, Scalar, every_row
from .limit_forces import SINGLE_KINDS
from .slip_problem import CONE, FIRST, SCALAR, WIDE_CONE, WIDEST
from .soft_problem import DRY, FREE_DRY, MULTI_DOF_KINDS, TENDON_DRY

MANY_POINTS = 1e6  # more than all candidate points
WORSE = 1e-10  # increase of the cost of an update that is undone, MuJoCo's
LEAST = 1e-15  # lower bounds: inverse inertia of a row, 1/kg, and normal force, N


def check_noslip(model: Model, options: SoftOptions) -> None:
    """Raise an InputError if the sweeps do not serve a model."""
    if "sticky" in model.features and options.noslip:
        raise InputError(
            f"noslip has no contacts that pull by themselves, as those of '{model.name}': noslip=0, or no adhesion"
        )


def noslip(s: Step) -> None:
    """Correct problem.accel and the friction forces; problem.stuck keeps the accelerations of Newton's method."""
    problem, nv = s.constraints, s.model.nv
    copy(problem.accel, problem.stuck, nv)
    copy(problem.accel, problem.sliding, nv)
    gather_friction_rows(s)
    find_islands(s)
    for k in loop(s.options.soft.noslip):
        for _ in when_any(_any_going(s) > 0.5):
            _sweep(s, k)
    _write_back(s)
    copy(problem.sliding, problem.accel, nv)


def row_of(s: Step, table: Reals, r: Any) -> Reals:
    """Row r of J, M^-1 J^T or J_bar: nv entries."""
    return table.shifted(r * s.model.nv)


def dot_dofs(s: Step, a: Reals, b: Reals) -> Any:
    """Return a . b over all degrees of freedom."""
    total = carry(0.0)
    for k in loop(s.model.nv):
        total.value = total.value + a[k] * b[k]
    return total.value


def add_scaled(s: Step, x: Reals, scale: Any, y: Reals) -> None:
    """Add scale y to x."""
    for k in loop(s.model.nv):
        x[k] = x[k] + scale * y[k]


# -- the rows --------------------------------------------------------------------------------------------------------------
class FrictionDirection(NamedTuple):
    """Direction of friction: its axis in the world, whether it is a rotation, and its coefficient."""

    axis: Vec3
    turns: bool
    mu: Any

    def force(self, p: Vec3, sign: float) -> Force:
        """Unit force or torque along it, at a point."""
        axis = self.axis * sign
        return Force(axis, Vec3.zero()) if self.turns else at_point(p, axis, Vec3.zero())


def friction_directions(family: Block, row: Row) -> list[FrictionDirection]:
    """Directions of friction of a contact, in the order of its rows."""
    R = row.R
    found = [FrictionDirection(R.column(1), False, row.slide), FrictionDirection(R.column(2), False, row.slide2)]
    if family is WRENCH:
        turns = (row.torsion, row.roll, row.roll2)
        found += [FrictionDirection(row.E.column(k), True, mu) for k, mu in enumerate(turns)]
    return found


def gather_friction_rows(s: Step) -> None:
    """Collect the friction rows with J, M^-1 J^T, bounds and forces, and the units of an update."""
    problem = s.constraints
    joints.store_columns(s)
    articulated.factor(s)
    for k in loop(s.model.nv):
        problem.slip_root[k] = sqrt(s.dof[k].dinv)
    _list_contacts(s)
    units, rows = counter(0), counter(FIRST)
    for family, _, n, row in dry_rows(s):
        _add_dry(s, family, n, row, (units, rows))
    for block_family, n in friction_contacts(s):
        _add_contact(s, block_family, n, (units, rows))
    problem.slip_count[0], problem.slip_count[1] = units.value, rows.value


def _list_contacts(s: Step) -> None:
    """List the contacts with friction in MuJoCo's order; contacts without refer to the first, empty rows."""
    problem, end = s.constraints, counter(0)
    for r in range(FIRST):
        none = problem.slip[r]
        none.f, none.mu, none.bound, none.f_bar, none.mu_bar, none.bound_bar, none.y_bar = (0.0 for _ in range(7))
    for w, family in _widths(s):
        for n, _ in family.blocks(s):

            def note(w: int = w, family: Block = family, n: Any = n) -> None:
                getattr(problem, f"{family.name}_slip")[n] = 0
                for _ in loop(problem.has_friction[getattr(problem, f"{family.name}_of")[n]]):
                    problem.found_row[end.value], problem.found_wide[end.value] = n, w
                    end.value = end.value + 1

            family.by_kind(s, n, note, lambda: None)
    problem.slip_count[2] = end.value
    for a in loop(end.value):
        place, own = counter(0), _rank(s, a)
        for b in loop(end.value):
            other = _rank(s, b)
            after = to_real(own[0] - other[0]) * MANY_POINTS + to_real(own[1] - other[1])
            for _ in when_any(after > 0.5):
                place.value = place.value + 1
        problem.friction_row[place.value], problem.friction_wide[place.value] = (
            problem.found_row[a],
            problem.found_wide[a],
        )


def _rank(s: Step, e: Any) -> tuple[Any, Any]:
    """Rank of a contact: that of its pair, and that of its point in the pair."""
    problem, out = s.constraints, (counter(0), counter(0))
    for _, family in _of_width(s, problem.found_wide[e]):
        n = problem.found_row[e]
        k, m = getattr(problem, f"{family.name}_of")[n], getattr(problem, f"{family.name}_at")[n]
        out[0].value, out[1].value = problem.rank[k], m - 2 * m * problem.backwards[k]
    return out[0].value, out[1].value


def dry_rows(s: Step) -> Iterator[tuple[Scalar, int, Any, Row]]:
    """Yield the rows of dry friction with their kind: of joints, then of free joints and tendons."""
    problem = s.constraints
    if problem.has("dry"):
        for n, row in SINGLE.blocks(s):
            for _ in _if(problem.single_kind[n], DRY, [k for k, name in SINGLE_KINDS.items() if problem.has(name)]):
                yield SINGLE, DRY, n, row
    for kind in (FREE_DRY, TENDON_DRY):
        if problem.has(MULTI_DOF_KINDS[kind]):
            for n, row in MULTI_DOF.blocks(s):
                present = [k for k, name in enumerate(MULTI_DOF_KINDS) if problem.has(name)]
                for _ in _if(problem.multi_dof_kind[n], kind, present):
                    yield MULTI_DOF, kind, n, row


def _if(index: Any, value: int, present: list[int]) -> Iterator[Any]:
    """Execute the block if index equals value: `for _ in _if(...)`."""
    if len(present) == 1:
        return iter((0,))

    def once(k: int) -> Callable[[], float]:
        return lambda: float(k == value)

    return when_any(switch(index, {k: once(k) for k in present}) > 0.5)


def friction_contacts(s: Step) -> Iterator[tuple[Block, Any]]:
    """Yield the contacts with friction in MuJoCo's order."""
    problem = s.constraints
    if not _widths(s):
        return
    for e in loop(problem.slip_count[2]):
        for _, family in _of_width(s, problem.friction_wide[e]):
            yield family, problem.friction_row[e]


def _widths(s: Step) -> list[tuple[int, Block]]:
    """Families of contacts that the model can have, with 1 for wrenches."""
    every: list[tuple[int, Block, str]] = [(0, POINT, "contact"), (1, WRENCH, "patch")]
    return [(w, family) for w, family, name in every if s.constraints.has(name)]


def _of_width(s: Step, wide: Any) -> Iterator[tuple[int, Block]]:
    """Yield the family of a contact, once."""
    widths = _widths(s)
    for w, family in widths:
        for _ in loop(wide if w else 1 - wide) if len(widths) > 1 else (0,):
            yield w, family


def _add_dry(s: Step, family: Scalar, n: Any, row: Row, counts: tuple[counter, counter]) -> None:
    """Add a row of dry friction."""
    problem, r = s.constraints, counts[1].value
    J = row_of(s, problem.slip_J, r)
    for k in loop(s.model.nv):
        J[k] = 0.0
    family.add_to(s, n, row, J, 1.0)
    dof = problem.single_dof[n] if family is SINGLE else problem.entry_dof[problem.entry[n]]
    articulated.clear_forces(s)
    articulated.solve(s, J, row_of(s, problem.slip_W, r))
    _put_row(s, r, (row.f, row.ref, row.high, 1.0))
    _add_unit(s, counts, SCALAR, problem.dof_tree[dof], 1)


def _add_contact(s: Step, family: Block, n: Any, counts: tuple[counter, counter]) -> None:
    """Add the friction rows of a contact."""
    problem, first = s.constraints, counts[1].value
    row, wide = getattr(problem, family.name)[n], family is WRENCH
    getattr(problem, f"{family.name}_slip")[n] = first
    directions = friction_directions(family, row)
    J, W = ([row_of(s, table, first + d) for d in range(len(directions))] for table in (problem.slip_J, problem.slip_W))
    for k in loop(s.model.nv):
        for x in (*J, *W):
            x[k] = 0.0

    def side(sign: float, link: Any, p: Vec3) -> None:
        _path(s, link, tuple(direction.force(p, sign) for direction in directions), J, W)

    def one() -> None:
        side(1.0, getattr(problem, f"{family.name}_link_b")[n], row.p)

    def both() -> None:
        one()
        side(-1.0, getattr(problem, f"{family.name}_link_a")[n], row.p_a)

    family.on_links(s, n, one, both)
    _outward(s, W)
    forces, refs = row.f.leaves(), row.ref.leaves()
    apart = s.options.cone == "pyramidal"
    friction = family.friction_row(row)
    presses = pressed_edges(row.y.leaves(), friction) if apart else [forces[0]] * len(directions)
    bounds = [mu * N for mu, N in zip(friction.mu, presses, strict=True)] if apart else presses
    for d, (bound, direction) in enumerate(zip(bounds, directions, strict=True)):
        _put_row(s, first + d, (forces[d + 1], refs[d + 1], bound, direction.mu))
    tree = s.model.tree[getattr(problem, f"{family.name}_link_b")[n]]
    if apart:
        for _ in directions:
            _add_unit(s, counts, SCALAR, tree, 1)
    else:
        _fill_block(s, first, len(directions))
        _add_unit(s, counts, WIDE_CONE if wide else CONE, tree, len(directions))


def _path(s: Step, link: Any, forces: tuple[Force, ...], J: list[Reals], W: list[Reals]) -> None:
    """Add unit forces on a link to the rows J, and run the inward pass of the solve along the path to its root."""
    root, passed = s.constraints.slip_root, carry(forces)

    def put(k: Any, entries: list[Any]) -> None:
        S = s.dof[k].S
        for x, w, f, entry in zip(J, W, forces, entries, strict=True):
            x[k] = x[k] + power(S, f)
            w[k] = w[k] + root[k] * entry

    for n in climb(s.model.parent, link):
        passed.value = joints.path_rows(s, n, passed.value, root, put)


def _outward(s: Step, W: list[Reals]) -> None:
    """Outward pass of the solve, for all rows of a contact at once."""
    moved = s.constraints.slip_moved

    def at(i: Any, d: int) -> Any:
        return (i * WIDEST + d) * Motion.size

    for d in range(len(W)):
        moved.put(at(0, d), Motion.zero())
    for i in loop(1, s.model.nl):
        above = tuple(moved.struct(at(s.model.parent[i], d), Motion) for d in range(len(W)))
        for d, motion in enumerate(joints.solve_outward_rows(s, i, above, tuple(W))):
            moved.put(at(i, d), motion)


def _put_row(s: Step, r: Any, of: tuple[Any, Any, Any, Any]) -> None:
    """Set force, reference, bound and coefficient of row r, whose J and M^-1 J^T are computed."""
    slip = s.constraints.slip[r]
    J, W = row_of(s, s.constraints.slip_J, r), row_of(s, s.constraints.slip_W, r)
    slip.f, slip.ref, slip.bound, slip.mu = of
    slip.inv = 1.0 / maximum(dot_dofs(s, J, W), LEAST)


def _fill_block(s: Step, first: Any, n: int) -> None:
    """Compute the block of A = J M^-1 J^T of a cone."""
    problem = s.constraints
    for i in range(n):
        for j in range(n):
            J, W = row_of(s, problem.slip_J, first + i), row_of(s, problem.slip_W, first + j)
            problem.slip_A[(first + i) * WIDEST + j] = dot_dofs(s, J, W)


def _add_unit(s: Step, counts: tuple[counter, counter], kind: int, tree: Any, rows: int) -> None:
    """Add a unit of `rows` rows."""
    problem, (units, filled) = s.constraints, counts
    u = units.value
    problem.unit_kind[u], problem.unit_row[u], problem.unit_tree[u] = kind, filled.value, tree
    units.value = u + 1
    filled.value = filled.value + rows


# -- islands ---------------------------------------------------------------------------------------------------------------
def find_islands(s: Step) -> None:
    """Compute problem.island, one number for all trees coupled by rows, and the gain of the first sweep from compliance."""
    problem, trees = s.constraints, s.model.nt + 1
    for t in loop(trees):
        problem.island[t], problem.going[t], problem.gain[t], problem.ran[t] = to_real(t), 1.0, 0.0, 0.0
    for family, n, row in every_row(s):
        if isinstance(family, Block):
            _block_island(s, family, n, row)
        else:
            _scalar_island(s, family, n, row)


def _merge_islands(s: Step, a: Any, b: Any, active: Any) -> None:
    """Merge the islands of two trees."""
    island = s.constraints.island
    low, high = minimum(island[a], island[b]), maximum(island[a], island[b])
    for t in loop(s.model.nt + 1):
        island[t] = select(active, select(abs(island[t] - high) < 0.5, low, island[t]), island[t])


def _block_island(s: Step, family: Block, n: Any, row: Row) -> None:
    """Merge the trees of a block and add its compliance to the gain."""
    problem, tree = s.constraints, s.model.tree[getattr(s.constraints, f"{family.name}_link_b")[n]]

    def both() -> None:
        _merge_islands(s, tree, s.model.tree[getattr(problem, f"{family.name}_link_a")[n]], row.D > 0.0)

    family.on_links(s, n, lambda: None, both)
    held: Callable[[], Any] = lambda: -family.dot(row.f, row.y)  # noqa: E731
    soft = family.by_kind(s, n, lambda: _contact_softness(s, family, row), held)
    problem.gain[tree] = problem.gain[tree] + 0.5 * soft


def _contact_softness(s: Step, family: Block, row: Row) -> Any:
    """Return the sum of f^2 R over the rows: of edges -f . y; of a cone friction rows have stiffness (mu_k/mu)^2 D."""
    if s.options.cone == "pyramidal":
        return -family.dot(row.f, row.y)
    f, friction = row.f.leaves(), family.friction_row(row)
    total = f[0] * f[0]
    for x, mu in zip(f[1:], friction.mu, strict=True):
        ratio = friction.reg / maximum(mu, LEAST)
        total = total + select(mu > 0.0, x * x * ratio * ratio, 0.0)
    return select(friction.D > 0.0, total / maximum(friction.D, 1e-30), 0.0)


def _scalar_island(s: Step, family: Family, n: Any, row: Row) -> None:
    """Merge the trees of a single row and add its compliance to the gain."""
    problem = s.constraints
    if family is SINGLE:
        tree = problem.dof_tree[problem.single_dof[n]]
    else:
        first, end = problem.entry[n], problem.entry[n + 1]
        tree = problem.dof_tree[problem.entry_dof[first]]
        for e in loop(first + 1, end):
            _merge_islands(s, tree, problem.dof_tree[problem.entry_dof[e]], row.D > 0.0)
    D, f = row.D, row.f
    soft = select(D > 0.0, f * f / maximum(D, 1.0 / BIG), 0.0)
    problem.gain[tree] = problem.gain[tree] + 0.5 * soft


def _any_going(s: Step) -> Any:
    """Return 1 if any island has not converged."""
    most = carry(0.0)
    for t in loop(s.model.nt + 1):
        most.value = maximum(most.value, s.constraints.going[t])
    return most.value


# -- the sweeps ------------------------------------------------------------------------------------------------------------
def _sweep(s: Step, k: Any) -> None:
    """Update every unit once; then stop the islands that improved little."""
    problem, trees = s.constraints, s.model.nt + 1
    tape = problem.slip_tape.shifted(k * problem.slips)
    for u in loop(problem.slip_count[0]):
        tree = problem.unit_tree[u]
        going = problem.going[tree] > 0.5
        gained = by_unit(s, u, partial(_update, s, going, tape))
        problem.gain[tree] = problem.gain[tree] + gained
    for t in loop(trees):
        problem.ran[t] = problem.ran[t] + problem.going[t]
        total = carry(0.0)
        for o in loop(trees):
            same = abs(problem.island[o] - problem.island[t]) < 0.5
            total.value = total.value + select(same, problem.gain[o], 0.0)
        problem.gained[t] = total.value
    for t in loop(trees):
        problem.going[t] = select(problem.gained[t] < problem.limit_gain[0], 0.0, problem.going[t])
        problem.gain[t] = 0.0


def by_unit(s: Step, u: Any, what: Callable[[Any, int], Any]) -> Any:
    """Return what(first row, number of rows) of unit u; number is 0 for a single row."""
    problem = s.constraints
    first = problem.unit_row[u]
    kinds = {SCALAR: 0}
    if s.options.cone == "elliptic":
        kinds |= {CONE: 2} if problem.has("contact") else {}
        kinds |= {WIDE_CONE: WIDEST} if problem.has("patch") else {}
    cases = {kind: (lambda n=n: what(first, n)) for kind, n in kinds.items()}
    return switch(problem.unit_kind[u], cases)


def _update(s: Step, going: Any, tape: Reals, first: Any, n: int) -> Any:
    """Update one unit, with rows from `first` on, and return its gain."""
    problem, count = s.constraints, max(n, 1)
    rows = [problem.slip[first + d] for d in range(count)]
    old = [row.f for row in rows]
    for d, f in enumerate(old):
        tape[first + d] = f
    y = residuals(s, first, count)
    new = solve_cone(s, first, n, old, y).f if n else [solve_row(rows[0], old[0], y[0])]
    change = [select(going, a - b, 0.0) for a, b in zip(new, old, strict=True)]
    A = block(s, first, n) if n else [[1.0 / rows[0].inv]]
    gained = cost_reduction(A, change, y)
    if n:
        worse = is_worse(gained)
        gained, change = select(worse, 0.0, gained), [select(worse, 0.0, x) for x in change]
    for d, (row, f, x) in enumerate(zip(rows, old, change, strict=True)):
        row.f = f + x
        add_scaled(s, problem.sliding, x, row_of(s, problem.slip_W, first + d))
    return gained


def cost_reduction(A: list[list[Any]], change: list[Any], y: list[Any]) -> Any:
    """Return by how much a change of forces reduces the cost: -y . x - x . A x/2."""
    gained: Any = 0.0
    for x, own, row in zip(change, y, A, strict=True):
        gained = gained - x * (own + 0.5 * inner(row, change))
    return gained


def is_worse(gained: Any) -> Any:
    """Return whether an update raises the cost, as one to zero may where A is singular. It is then undone, as in MuJoCo."""
    return gained < -WORSE


def residuals(s: Step, first: Any, count: int) -> list[Any]:
    """Return y = J a - ref at the current accelerations."""
    problem = s.constraints
    rows = [row_of(s, problem.slip_J, first + d) for d in range(count)]
    return [dot_dofs(s, J, problem.sliding) - problem.slip[first + d].ref for d, J in enumerate(rows)]


def solve_row(row: Row, f: Any, y: Any) -> Any:
    """Return the updated force of a single row."""
    return clamp(f - y * row.inv, -row.bound, row.bound)


def block(s: Step, first: Any, n: int) -> list[list[Any]]:
    """Return the block of A for the rows of a cone."""
    A = s.constraints.slip_A
    return [[A[(first + i) * WIDEST + j] for j in range(n)] for i in range(n)]


def solve_cone(s: Step, first: Any, n: int, f: list[Any], y: list[Any]) -> InEllipse:
    """Return the updated friction forces of a cone, within the ellipse |f_k| <= mu_k times the normal force."""
    A, rows = block(s, first, n), [s.constraints.slip[first + d] for d in range(n)]
    b = [y[i] - inner(A[i], f) for i in range(n)]
    return in_ellipse(A, b, [row.mu for row in rows], rows[0].bound)


def _write_back(s: Step) -> None:
    """Copy the forces to the constraint rows."""
    problem, r = s.constraints, counter(FIRST)
    for _, _, _, row in dry_rows(s):
        row.f = problem.slip[r.value].f
        r.value = r.value + 1
    for family, n in friction_contacts(s):
        row, first = getattr(problem, family.name)[n], getattr(problem, f"{family.name}_slip")[n]
        f = row.f.leaves()
        row.f = type(row.f).from_leaves([f[0], *(problem.slip[first + d].f for d in range(len(f) - 1))])
