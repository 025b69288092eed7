"""The four families of constraint rows and the operations that Newton's method needs of each.

These are J x (`jacobian_product`), force and stiffness (`force_and_stiffness`), J^T f (`add_force`), and J^T K J
(`add_stiffness`), which is added to inertias of links or to the diagonal of joints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....compiler import Reals, Row, carry, clamp, loop, maximum, select, sqrt, switch, target
from ...context import Step
from ...spatial import Mat3, Motion, Sym3, Vec3, at_point, dot, point_velocity
from .cones import FrictionRow, Matrix
from .soft_problem import CONTACT, HELD, MULTI_DOF_KINDS, POINTS, SINGLES, WRENCHES
from .stiffness import Cross, Six, Stiff, cross_point, cross_wrench, in_world, of_point, of_wrench, stiff_in_world

BIG = 1e30  # bound of an unbounded force


class Motions(NamedTuple):
    """Joint-space vector x and the motions of links under it, in the named field of `s.link` or `s.field`."""

    field: str
    x: Reals

    def of(self, s: Step, i: Any) -> Motion:
        """Motion of link i."""
        return s.field[i].w if self.field == "w" else getattr(s.link[i], self.field)


def velocities(s: Step) -> Motions:
    """Velocities at the start of the step."""
    return Motions("v", s.v)


def length(y: Any) -> Any:
    """|y|, bounded away from zero."""
    square: Any = 0.0
    for x in y.leaves():
        square = square + x * x
    return sqrt(maximum(square, 1e-60 if target().dtype == "f64" else 1e-30))


class Family:
    """Family of constraint rows. `y` is a vector over the rows of one block, or a number."""

    name: str

    def blocks(self, s: Step) -> Iterator[tuple[Any, Row]]:
        """Yield the index and row of each block."""
        raise NotImplementedError

    def jacobian_product(self, s: Step, n: Any, row: Row, x: Motions) -> Any:
        """Return J x."""
        raise NotImplementedError

    def force_and_stiffness(self, s: Step, n: Any, row: Row, y: Any) -> tuple[Any, Any]:
        """Return (f, K) at y."""
        raise NotImplementedError

    def times(self, K: Any, y: Any) -> Any:
        """Return K y."""
        return K @ y

    def dot(self, a: Any, b: Any) -> Any:
        """Return the inner product of two vectors over rows."""
        raise NotImplementedError

    def add_stiffness(self, s: Step, n: Any, row: Row) -> None:
        """Add J^T K J to the inertias of links (s.link.IA), to couplings, or to the diagonal of joints."""
        raise NotImplementedError

    def add_force(self, s: Step, n: Any, row: Row, f: Any) -> None:
        """Add J^T f: subtract it from the required forces of links (s.link.F), or add it to joint forces."""
        raise NotImplementedError

    def linear_force(self, row: Row) -> Any:
        """Return f + K (y + ref), the force of the linearized law at zero acceleration."""
        return row.f + self.times(row.K, row.y + row.ref)

    def margin(self, s: Step, n: Any, row: Row) -> Any:
        """Distance of the row to another regime of its law, in accelerations."""
        raise NotImplementedError


class Block(Family):
    """Family of rows at a point of one moving link or between two.

    Attributes:
        index: Position in `count`.
        friction_names: Fields of the friction coefficients of its tangent directions.
    """

    index: int
    friction_names: tuple[str, ...]

    def friction_row(self, row: Row) -> FrictionRow:
        """Return the friction parameters of a contact row."""
        return FrictionRow(row.D, tuple(getattr(row, name) for name in self.friction_names), row.reg)

    def _of(self, s: Step, what: str) -> Any:
        return getattr(s.constraints, f"{self.name}_{what}")

    def blocks(self, s: Step) -> Iterator[tuple[Any, Row]]:
        table = getattr(s.constraints, self.name)
        for n in loop(s.constraints.count[self.index]):
            yield n, table[n]

    def by_kind(self, s: Step, n: Any, contact: Any, held: Any) -> Any:
        """Return contact() or held(), for a contact or an equality; only what the model has is staged."""
        features = {"point": ("contact", "connect"), "wrench": ("patch", "weld")}[self.name]
        cases = {
            k: f
            for k, f, name in zip((CONTACT, HELD), (contact, held), features, strict=True)
            if s.constraints.has(name)
        }
        return switch(self._of(s, "kind")[n], cases)

    def on_links(self, s: Step, n: Any, one: Any, both: Any) -> Any:
        """Return one() for a block on one moving link, both() for one between two."""
        return switch(self._of(s, "two")[n], {0: one, 1: both}) if s.constraints.has("couplings") else one()

    def add_stiffness(self, s: Step, n: Any, row: Row) -> None:
        K, link_b = self._world_stiffness(row), self._of(s, "link_b")[n]
        p = row.p
        s.link[link_b].IA += self._own(K, p)

        def both() -> None:
            p_a = row.p_a
            s.link[self._of(s, "link_a")[n]].IA += self._own(K, p_a)
            s.constraints.cross[self._of(s, "coupling")[n]].C -= self._cross(K, p_a, p)

        self.on_links(s, n, lambda: None, both)

    def add_force(self, s: Step, n: Any, row: Row, f: Any) -> None:
        force, torque = self._world_force(row, f)
        s.link[self._of(s, "link_b")[n]].F -= at_point(row.p, force, torque)

        def both() -> None:
            s.link[self._of(s, "link_a")[n]].F += at_point(row.p_a, force, torque)

        self.on_links(s, n, lambda: None, both)

    # -- differences of the two kinds of blocks
    # ------------------------------------------------------------------------------
    def _world_stiffness(self, row: Row) -> Any:
        raise NotImplementedError

    def _own(self, K: Any, p: Vec3) -> Any:
        raise NotImplementedError

    def _cross(self, K: Any, p: Vec3, q: Vec3) -> Cross:
        raise NotImplementedError

    def _world_force(self, row: Row, f: Any) -> tuple[Vec3, Vec3]:
        raise NotImplementedError


class PointFamily(Block):
    """Three rows at a point: contacts of condim 1 and 3, equalities `connect`."""

    name, index, friction_names = "point", POINTS, ("slide", "slide2")

    def jacobian_product(self, s: Step, n: Any, row: Row, x: Motions) -> Vec3:
        def one() -> Vec3:
            return point_velocity(row.p, x.of(s, s.constraints.point_link_b[n]))

        def both() -> Vec3:
            return one() - point_velocity(row.p_a, x.of(s, s.constraints.point_link_a[n]))

        return row.R.T @ self.on_links(s, n, one, both)

    def force_and_stiffness(self, s: Step, n: Any, row: Row, y: Vec3) -> tuple[Vec3, Sym3]:
        def contact() -> Sym3:
            return _sym3(s.constraints.cone.stiffness(y.leaves(), self.friction_row(row)))

        def held() -> Sym3:
            return Sym3(row.D, row.D, row.D, 0.0, 0.0, 0.0)

        K = self.by_kind(s, n, contact, held)
        return -(K @ y), K

    def linear_force(self, row: Row) -> Vec3:
        """Return K ref: the law is homogeneous, f + K y = 0."""
        return row.K @ row.ref

    def dot(self, a: Vec3, b: Vec3) -> Any:
        return dot(a, b)

    def margin(self, s: Step, n: Any, row: Row) -> Any:
        return self.by_kind(
            s, n, lambda: s.constraints.cone.margin(row.y.leaves(), self.friction_row(row)), lambda: BIG
        )

    def _world_stiffness(self, row: Row) -> Sym3:
        return in_world(row.R, row.K)

    def _own(self, K: Sym3, p: Vec3) -> Any:
        return of_point(K, p)

    def _cross(self, K: Sym3, p: Vec3, q: Vec3) -> Cross:
        return cross_point(K, p, q)

    def _world_force(self, row: Row, f: Vec3) -> tuple[Vec3, Vec3]:
        return row.R @ f, Vec3.zero()


class WrenchFamily(Block):
    """Six rows at a point, translation and rotation: contacts of condim 4 and 6, equalities `weld`."""

    name, index, friction_names = "wrench", WRENCHES, ("slide", "slide2", "torsion", "roll", "roll2")

    def jacobian_product(self, s: Step, n: Any, row: Row, x: Motions) -> Six:
        def one() -> Six:
            m = x.of(s, s.constraints.wrench_link_b[n])
            return Six(point_velocity(row.p, m), m.w)

        def both() -> Six:
            m = x.of(s, s.constraints.wrench_link_a[n])
            return one() - Six(point_velocity(row.p_a, m), m.w)

        moved = self.on_links(s, n, one, both)
        return Six(row.R.T @ moved.lin, row.E.T @ moved.ang)

    def force_and_stiffness(self, s: Step, n: Any, row: Row, y: Six) -> tuple[Six, Stiff]:
        def contact() -> Stiff:
            return _stiff(s.constraints.cone.stiffness(y.leaves(), self.friction_row(row)))

        def held() -> Stiff:
            D, T = row.D, row.D_turn
            return Stiff(Sym3(D, D, D, 0.0, 0.0, 0.0), Mat3.zero(), Sym3(T, T, T, 0.0, 0.0, 0.0))

        K = self.by_kind(s, n, contact, held)
        return -(K @ y), K

    def linear_force(self, row: Row) -> Six:
        return row.K @ row.ref

    def dot(self, a: Six, b: Six) -> Any:
        return dot(a.lin, b.lin) + dot(a.ang, b.ang)

    def margin(self, s: Step, n: Any, row: Row) -> Any:
        return self.by_kind(
            s, n, lambda: s.constraints.cone.margin(row.y.leaves(), self.friction_row(row)), lambda: BIG
        )

    def _world_stiffness(self, row: Row) -> Stiff:
        return stiff_in_world(row.R, row.E, row.K)

    def _own(self, K: Stiff, p: Vec3) -> Any:
        return of_wrench(K, p)

    def _cross(self, K: Stiff, p: Vec3, q: Vec3) -> Cross:
        return cross_wrench(K, p, q)

    def _world_force(self, row: Row, f: Six) -> tuple[Vec3, Vec3]:
        return row.R @ f.lin, row.E @ f.ang


class Scalar(Family):
    """Family of single rows with bounded force: f = clamp(-D y, low, high)."""

    def force_and_stiffness(self, s: Step, n: Any, row: Row, y: Any) -> tuple[Any, Any]:
        wanted, low, high = -(row.D * y), row.low, row.high
        return clamp(wanted, low, high), select(wanted > low, select(wanted < high, row.D, 0.0), 0.0)

    def times(self, K: Any, y: Any) -> Any:
        return K * y

    def dot(self, a: Any, b: Any) -> Any:
        return a * b

    def add_to(self, s: Step, n: Any, row: Row, b: Reals, f: Any) -> None:
        """Add J^T f to b."""
        raise NotImplementedError

    def add_force(self, s: Step, n: Any, row: Row, f: Any) -> None:
        self.add_to(s, n, row, s.constraints.joint_force, f)

    def margin(self, s: Step, n: Any, row: Row) -> Any:
        wanted, some = -(row.D * row.y), row.D > 0.0
        below, above = abs(wanted - row.low), abs(row.high - wanted)
        near = select(below < above, below, above)
        return select(some, near / select(some, row.D, 1.0), BIG)


class SingleFamily(Scalar):
    """Row on one degree of freedom: limits, dry friction, servo motors."""

    name = "single"

    def blocks(self, s: Step) -> Iterator[tuple[Any, Row]]:
        for n in loop(s.constraints.count[SINGLES]):
            yield n, s.constraints.single[n]

    def jacobian_product(self, s: Step, n: Any, row: Row, x: Motions) -> Any:
        return row.sign * x.x[s.constraints.single_dof[n]]

    def add_stiffness(self, s: Step, n: Any, row: Row) -> None:
        k, diagonal = s.constraints.single_dof[n], s.constraints.diagonal
        diagonal[k] = diagonal[k] + row.K

    def add_to(self, s: Step, n: Any, row: Row, b: Reals, f: Any) -> None:
        k = s.constraints.single_dof[n]
        b[k] = b[k] + row.sign * f


class MultiDofFamily(Scalar):
    """Row on several degrees of freedom: coupled joints, ball limits, tendons."""

    name = "multi_dof"

    def blocks(self, s: Step) -> Iterator[tuple[Any, Row]]:
        for n in loop(s.constraints.multi_dofs):
            yield n, s.constraints.multi_dof[n]

    def entries(self, s: Step, n: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the degree of freedom and coefficient of each entry."""
        problem = s.constraints
        for e in loop(problem.entry[n], problem.entry[n + 1]):
            yield problem.entry_dof[e], problem.coef[e]

    def jacobian_product(self, s: Step, n: Any, row: Row, x: Motions) -> Any:
        total = carry(0.0)
        for k, c in self.entries(s, n):
            total.value = total.value + c * x.x[k]
        return total.value

    def add_stiffness(self, s: Step, n: Any, row: Row) -> None:
        """Do nothing: `coupled` adds the stiffness, since it couples joints."""

    def add_to(self, s: Step, n: Any, row: Row, b: Reals, f: Any) -> None:
        for k, c in self.entries(s, n):
            b[k] = b[k] + c * f


POINT, WRENCH, SINGLE, MULTI_DOF = PointFamily(), WrenchFamily(), SingleFamily(), MultiDofFamily()
MEMBERS: dict[Family, tuple[str, ...]] = {
    POINT: ("contact", "connect"),
    WRENCH: ("patch", "weld"),
    SINGLE: ("limit", "dry", "motor"),
    MULTI_DOF: MULTI_DOF_KINDS,
}


def families(s: Step) -> list[Family]:
    """Return the families of rows that the model can have."""
    return [family for family, members in MEMBERS.items() if s.constraints.has(*members)]


def every_row(s: Step) -> Iterator[tuple[Family, Any, Row]]:
    """Yield all rows, family by family."""
    for family in families(s):
        for n, row in family.blocks(s):
            yield family, n, row


def _sym3(K: Matrix) -> Sym3:
    return Sym3(K[0][0], K[1][1], K[2][2], K[0][1], K[0][2], K[1][2])


def _stiff(K: Matrix) -> Stiff:
    return Stiff(
        _sym3(K),
        Mat3(*(K[i][3 + j] for i in range(3) for j in range(3))),
        _sym3([row[3:] for row in K[3:]]),
    )
