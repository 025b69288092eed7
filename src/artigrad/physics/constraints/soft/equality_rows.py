"""Equalities of two bodies, `connect` (a point, three rows) and `weld` (a frame, six rows), and their adjoint.

    e = p_b - p_a,   and of a weld  scale x  with (w, x) the quaternion from the axes of A to those of B
    y = e'' + b e' + k d(|e|) e       e'' with its velocity terms: unlike other rows these include J' v

Of the two bodies B moves; A is the other body, or the world. Equations: theory 9.7, 9.12, 9.13.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ....compiler import Layout, Row, Table, counter, loop, switch
from ...context import Step
from ...kinematics import origin
from ...spatial import (
    Force,
    Mat3,
    Quat,
    Transform,
    Vec3,
    at_point,
    cross,
    cross_force,
    dot,
    force_to_child,
    quat_of_matrix,
)
from .families import POINT, WRENCH, Block, families, length, velocities
from .impedance import Soft, impedance, impedance_vjp
from .soft_problem import COUPLINGS, HELD, POINTS, WRENCHES
from .stiff_rows import drop_immovable_equality
from .stiffness import Six

# force and torque of an equality on B at point b; A has the opposite at a; world axes
HELD_REPORT = Layout(force=Vec3, torque=Vec3, a=Vec3, b=Vec3)


def add_equality_rows(s: Step, counts: tuple[counter, ...]) -> None:
    """Add the rows of all `connect` and `weld` equalities."""
    problem = s.constraints
    if not problem.has("connect", "weld"):
        return
    kinds: dict[int, tuple[Block, counter]] = {}
    if problem.has("connect"):
        kinds[0] = POINT, counts[POINTS]
    if problem.has("weld"):
        kinds[1] = WRENCH, counts[WRENCHES]
    for e in loop(s.model.nequality):
        # couplings of joints and tendons are rows on several dofs
        cases: dict[int, Callable[[], None]] = {2: lambda: None}
        if problem.has("tendon_couple"):
            cases[3] = lambda: None
        cases |= {
            k: partial(_add_equality, s, family, count, e, counts[COUPLINGS]) for k, (family, count) in kinds.items()
        }
        switch(problem.held[e], cases)


def _add_equality(s: Step, family: Block, count: counter, e: Any, couplings: counter) -> None:
    """Add the rows of equality e."""
    problem, n, own = s.constraints, count.value, s.const.equality[e]
    row = getattr(problem, family.name)[n]
    i, j, two = problem.eq_a[e], problem.eq_b[e], problem.eq_two[e]
    values = {"link_a": i, "link_b": j, "of": e, "at": 0, "kind": HELD, "two": two, "coupling": couplings.value + 1}
    for what, value in values.items():
        getattr(problem, f"{family.name}_{what}")[n] = value
    for _ in loop(two):
        problem.coupling_a[couplings.value + 1], problem.coupling_b[couplings.value + 1] = i, j
        couplings.value = couplings.value + 1
        problem.coupled[0] = 1.0
    A, B = _frames(s, e)
    row.p, row.p_a, row.R, row.r = B.r, A.r, Mat3.identity(), 0.0
    shift, soft = _shift(s, e, A, B), own.soft
    rate = _point_rate(B.r, s.link[j]) - _point_rate(A.r, s.link[i])
    if family is POINT:
        d = impedance(soft, length(shift), problem.square).d
        row.ref = family.jacobian_product(s, n, row, velocities(s)) * -soft.b - shift * (soft.k * d) - rate
    else:
        turn = Turn.between(A.R, B.R, own.torque_scale)
        row.E = turn.rows()
        error = Six(shift, turn.error)
        d = impedance(soft, length(error), problem.square).d
        row.D_turn = d / (1.0 - d) * own.g_turn
        bend = Six(rate, turn.rate(s.link[i], s.link[j]))
        row.ref = family.jacobian_product(s, n, row, velocities(s)) * -soft.b - error * (soft.k * d) - bend
    row.D = d / (1.0 - d) * own.g
    if problem.has("stiff"):
        drop_immovable_equality(s, family, n, row, (own.g, own.g_turn))
    count.value = n + 1


def _frames(s: Step, e: Any) -> tuple[Transform, Transform]:
    """Frames of A and B that equality e aligns, about the origins of their trees."""
    problem, own = s.constraints, s.const.equality[e]
    return s.link[problem.eq_a[e]].X @ own.A, s.link[problem.eq_b[e]].X @ own.B


def _shift(s: Step, e: Any, A: Transform, B: Transform) -> Vec3:
    """Return p_b - p_a in the world."""
    problem, m = s.constraints, s.model
    return B.r + origin(s, m.tree[problem.eq_b[e]]) - A.r - origin(s, m.tree[problem.eq_a[e]])


def _point_rate(p: Vec3, link: Row) -> Vec3:
    """Acceleration of a point of a link: a + w' x p + w x (v + w x p). Gravity, included in all links, cancels."""
    a, v = link.a, link.v
    return a.v + cross(a.w, p) + cross(v.w, v.v + cross(v.w, p))


class Turn:
    """Rotation of B relative to A as a quaternion q = (w, x):  with O = R_a^T (w_b - w_a),  x' = (w O + O x x)/2"""

    def __init__(self, R_a: Mat3, q: Quat, scale: Any):
        self.R_a, self.q, self.scale = R_a, q, scale

    @staticmethod
    def between(R_a: Mat3, R_b: Mat3, scale: Any) -> Turn:
        return Turn(R_a, quat_of_matrix(R_a.T @ R_b), scale)

    @property
    def error(self) -> Vec3:
        return self.q.u * self.scale

    def of(self, z: Vec3) -> Vec3:
        """Return T z = scale (w O + O x x)/2,  O = R_a^T z."""
        O = self.R_a.T @ z
        return (O * self.q.w + cross(O, self.q.u)) * (0.5 * self.scale)

    def rows(self) -> Mat3:
        """Return T^T, the world directions of the rows as columns."""
        x, w = self.q.u, self.q.w
        M = Mat3(w, x.z, -x.y, -x.z, w, x.x, x.y, -x.x, w)  # w O + O x x
        return (M @ self.R_a.T).T * (0.5 * self.scale)

    def rate(self, a: Row, b: Row) -> Vec3:
        """Return x'' without its part linear in O':  T (w_b' - w_a' + w_b x w_a) - scale |w_b - w_a|^2 x/4"""
        w_a, w_b = a.v.w, b.v.w
        apart = w_b - w_a
        return self.of(b.a.w - a.a.w + cross(w_b, w_a)) - self.q.u * (0.25 * self.scale * dot(apart, apart))


class TurnBars:
    """Accumulated cotangents of a Turn: of x, w, scale, and of a rotation of A in the world."""

    def __init__(self) -> None:
        self.x, self.w, self.scale, self.on_a = Vec3.zero(), 0.0, 0.0, Vec3.zero()

    def pair(self, turn: Turn, z: Vec3, g: Vec3) -> Vec3:
        """Add the cotangents of g . T z; return that of z."""
        O, half = turn.R_a.T @ z, 0.5 * turn.scale
        x, w = turn.q.u, turn.q.w
        z_bar = turn.R_a @ ((g * w + cross(x, g)) * half)
        self.w = self.w + half * dot(g, O)
        self.x = self.x + cross(g, O) * half
        self.scale = self.scale + 0.5 * (w * dot(g, O) + dot(g, cross(O, x)))
        self.on_a = self.on_a - cross(z, z_bar)
        return z_bar

    def torque(self, turn: Turn) -> Vec3:
        """Cotangent of a rotation of B in the world; A has the opposite, plus on_a.  dq = (0, O)/2 (x) q"""
        x, w = turn.q.u, turn.q.w
        return turn.R_a @ ((self.x * w + cross(x, self.x) - x * self.w) * 0.5)


# -- forces as an output
# -------------------------------------------------------------------------------------------------
def report_held(s: Step, table: Table) -> None:
    """Write a row of HELD_REPORT per equality, after the accelerations are computed; zeros for couplings of joints and
    tendons."""
    for e in loop(s.model.nequality):
        row = table[e]
        row.force, row.torque, row.a, row.b = (Vec3.zero() for _ in range(4))
    if not s.constraints.has("connect", "weld"):
        return
    for family in (f for f in families(s) if isinstance(f, Block)):
        for n, own in family.blocks(s):
            write = lambda family=family, n=n, own=own: _report(s, family, n, own, table)  # noqa: E731
            family.by_kind(s, n, lambda: None, write)


def _report(s: Step, family: Block, n: Any, row: Row, table: Table) -> None:
    problem = s.constraints
    e = getattr(problem, f"{family.name}_of")[n]
    out, wide = table[e], family is WRENCH
    out.force, out.torque = (row.f.lin, row.E @ row.f.ang) if wide else (row.f, Vec3.zero())
    out.a = row.p_a + origin(s, s.model.tree[problem.eq_a[e]])
    out.b = row.p + origin(s, s.model.tree[problem.eq_b[e]])


def held_cotangent(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Cotangent of the constraint force of a connect or weld from that of its output row (HELD_REPORT); zero if the loss
    has none."""
    if s.constraints.held_bar is None:
        return row.f * 0.0
    output_bar = s.constraints.held_bar[getattr(s.constraints, f"{family.name}_of")[n]]
    return Six(output_bar.force, row.E.T @ output_bar.torque) if family is WRENCH else output_bar.force


# -- the adjoint -----------------------------------------------------------------------------------------------------------
def held_bars(s: Step, family: Block, n: Any, row: Row) -> None:
    """Add the cotangents of an equality's poses, velocities and parameters.

    Inputs are J nu (row.z), kappa (row.d) and the forces (row.f). Fields of link motions are paired with forces at the
    points: nu with f, accelerations with -kappa, velocities with -b kappa.
    """
    problem = s.constraints
    e = getattr(problem, f"{family.name}_of")[n]
    own, i, j = s.const.equality[e], problem.eq_a[e], problem.eq_b[e]
    soft, wide = own.soft, family is WRENCH
    A, B = _frames(s, e)
    shift = _shift(s, e, A, B)
    turn, bars = (Turn.between(A.R, B.R, own.torque_scale), TurnBars()) if wide else (None, None)
    error: Any = Six(shift, turn.error) if turn is not None else shift
    size = length(error)
    curve = impedance(soft, size, problem.square)
    d, kappa, multiplier = curve.d, row.d, row.z
    pressed = family.dot(multiplier, row.f)
    d_bar = pressed / (d * (1.0 - d)) - soft.k * family.dot(kappa, error)
    error_bar = error * (curve.slope * d_bar / size) - kappa * (soft.k * d)

    lin: Any = lambda y: y.lin if wide else y  # noqa: E731
    pairs = (("y", "F", -row.f), ("a", "a_bar", -kappa), ("v", "v_bar", kappa * -soft.b))
    g = -lin(kappa)
    on: dict[str, tuple[Vec3, Force]] = {}
    for sign, k, p in ((1.0, j, B.r), (-1.0, i, A.r)):
        link, p_bar, zeta = s.link[k], lin(error_bar) * sign, Force.zero()
        for field, of_x, force in pairs:
            x = getattr(link, field)
            push = lin(force) * sign
            wrench = at_point(p, push, row.E @ force.ang * sign if wide else Vec3.zero())
            setattr(link, of_x, getattr(link, of_x) + wrench)
            zeta, p_bar = zeta + cross_force(x, wrench), p_bar + cross(push, x.w)
        # w x (v + w x p), the velocity term of the acceleration
        v = link.v
        u, u_bar = v.v + cross(v.w, p), cross(g * sign, v.w)
        more = at_point(p, u_bar, cross(u, g * sign))
        link.v_bar += more
        zeta, p_bar = zeta + cross_force(v, more), p_bar + cross(u_bar, v.w)
        on["b" if sign > 0 else "a"] = p_bar, zeta
    output_bar = None if problem.held_bar is None else problem.held_bar[e]
    torque = {"a": Vec3.zero(), "b": Vec3.zero()}
    if turn is not None and bars is not None:
        if output_bar is not None:
            bars.pair(turn, output_bar.torque, row.f.ang)  # of T^T f
        torque = _turn_bars(s, (i, j), turn, bars, (row.f.ang, kappa.ang, error_bar.ang, soft))
    o_bar = lin(error_bar)
    s.tree[s.model.tree[j]].o_bar += o_bar
    s.tree[s.model.tree[i]].o_bar -= o_bar
    for side, k, X in (("b", j, B), ("a", i, A)):
        p_bar, zeta = on[side]
        if output_bar is not None:
            p_bar = p_bar + getattr(output_bar, side)
            s.tree[s.model.tree[k]].o_bar += getattr(output_bar, side)
        moved = Force(cross(X.r, p_bar) + torque[side], p_bar)
        s.field[k].zeta += zeta + moved
        if s.bars.const is not None:
            bar = s.bars.const.equality[e]
            setattr(bar, side.upper(), getattr(bar, side.upper()) + force_to_child(X, moved))
    if s.bars.const is not None:
        bar, rate = s.bars.const.equality[e], family.jacobian_product(s, n, row, velocities(s))
        bar.soft += impedance_vjp(soft, size, problem.square, d_bar) + Soft(
            -(d * family.dot(kappa, error)), -family.dot(kappa, rate), 0.0, 0.0, 0.0, 0.0, 0.0
        )
        if bars is not None:
            bar.g += dot(multiplier.lin, row.f.lin) / own.g
            bar.g_turn += dot(multiplier.ang, row.f.ang) / own.g_turn
            bar.torque_scale += bars.scale
        else:
            bar.g += pressed / own.g


def _turn_bars(s: Step, links: tuple[Any, Any], turn: Turn, bars: TurnBars, of: tuple[Any, ...]) -> dict[str, Vec3]:
    """Cotangents of the axes of both sides from the rotation rows of a weld: from T, the quadratic terms and the error."""
    f, kappa, error_bar, soft = of
    a, b = (s.link[k] for k in links)
    w_a, w_b = a.v.w, b.v.w
    apart, x, scale = w_b - w_a, turn.q.u, turn.scale
    bars.pair(turn, b.y.w - a.y.w, -f)  # y is minus nu
    bars.pair(turn, b.a.w - a.a.w, -kappa)
    bars.pair(turn, apart, kappa * -soft.b)
    z_bar = bars.pair(turn, cross(w_b, w_a), -kappa)
    # -kappa . (-scale |apart|^2 x/4)
    square, along = 0.25 * dot(apart, apart), dot(kappa, x)
    bars.x = bars.x + kappa * (scale * square) + error_bar * scale
    bars.scale = bars.scale + square * along + dot(error_bar, x)
    spin = apart * (0.5 * scale * along)
    for link, bar in ((b, cross(w_a, z_bar) + spin), (a, cross(z_bar, w_b) - spin)):
        link.v_bar += Force(bar, Vec3.zero())
    on_b = bars.torque(turn)
    for k, link, bar in ((links[1], b, cross(w_a, z_bar) + spin), (links[0], a, cross(z_bar, w_b) - spin)):
        s.field[k].zeta += cross_force(link.v, Force(bar, Vec3.zero()))
    return {"b": on_b, "a": bars.on_a - on_b}
