"""The rows of a contact between two shapes: a normal and two tangents at a point, on one moving link or on two.

Bounded as a cone: the normal pushes, the tangents are held by friction times the normal.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Reals, Table, carry, counter, loop, maximum, minimum, select, to_real, when_any
from ...collision.contact_geometry import FAR, ContactGeometry
from ...context import Step
from ...kinematics import origin
from ...spatial import Force, Mat3, Vec3, at_point, axis_frame, axis_frame_vjp, cross, cross_force, dot, point_velocity
from ..narrowphase import (
    LOST,
    ContactBars,
    FeatureMargin,
    add_contact_bars,
    collide_pair,
    collide_point,
    max_relative_speed,
    may_touch,
    point_geometry,
    relative_velocity,
    save_contact,
)
from ..paths import path_bars, put_path
from .contact_problem import A_SIDE, B_SIDE
from .target_velocity import bounces, rest_velocity

BEYOND = 0.5 * FAR  # the gap of a point that is not there


# -- gathering -----------------------------------------------------------------------------------------------------------
def reach(s: Step, speed: Any) -> Any:
    """Return the gap below which a point is a contact: what `speed` closes in a step, plus the search distance for the
    effect of forces."""
    return s.constraints.options.near + s.dt * maximum(speed, 0.0)


def within(near: Any, phi: Any) -> Any:
    """Return the gap, or one that never closes if the point is near only in another lane of the SIMD pack."""
    return select(near, phi, FAR)


def gather(s: Step, g: Any, count: counter, kind: int) -> None:
    """Collect the near points of group g. Pairs whose bounding spheres are apart are skipped."""
    problem = s.constraints
    if not problem.routines:
        return
    for k in loop(problem.first[g], problem.first[g + 1]):
        near_by = reach(s, max_relative_speed(s, k))
        for _ in when_any(may_touch(s, k, near_by)):
            collide_pair(s, k, near_by)
            features = FeatureMargin(s, k, near_by)
            for m in loop(problem.first_point[k], problem.first_point[k + 1]):
                collide_point(s, k, m, near_by)
                found, apart = point_geometry(s, k, m)
                i, j = s.model.shape_link[problem.a[k]], s.model.shape_link[problem.b[k]]
                opening = dot(found.n, relative_velocity(s, i, j, found.p, apart))
                near, n = (found.phi < BEYOND) & (found.phi < reach(s, -opening)), count.value
                for _ in when_any(near):
                    features.add(m, near)
                    room = to_real(problem.group[g] + problem.limit[g] - n) > 0.5
                    for _ in when_any(room):
                        _touch(s, k, n, found, apart)
                        problem.row[n].phi = within(near, found.phi)
                        save_contact(s, k, m, n)
                        problem.pair[n], problem.source[n], problem.kind[n] = k, m, kind
                        problem.in_group[n] = g
                        count.value = n + 1
                    lost = select(near, LOST, problem.status[2])
                    problem.status[2] = select(room, problem.status[2], lost)
            features.finish()


def _touch(s: Step, k: Any, n: Any, found: ContactGeometry, apart: Vec3) -> None:
    """Store a point of pair k as contact n, without its gap."""
    problem = s.constraints
    row, a, b, pair = problem.row[n], problem.a[k], problem.b[k], s.const.pair[k]
    row.p, row.p_a, row.R = found.p, found.p + apart, axis_frame(found.n)
    row.mu, row.e, row.bound = pair.friction, pair.restitution, 0.0
    problem.link_a[n], problem.link_b[n] = s.model.shape_link[a], s.model.shape_link[b]


# -- the rows --------------------------------------------------------------------------------------------------------------
def directions(R: Mat3) -> tuple[Vec3, Vec3, Vec3]:
    """Normal and two tangents of a contact's frame."""
    return R.column(2), R.column(0), R.column(1)


def world_force(R: Mat3, k: Vec3) -> Vec3:
    """k_n n + k_1 t1 + k_2 t2"""
    return R @ Vec3(k.y, k.z, k.x)


def along_rows(R: Mat3, f: Vec3) -> Vec3:
    """(f . n, f . t1, f . t2): the transpose of `world_force`"""
    x = R.T @ f
    return Vec3(x.z, x.x, x.y)


def rows(s: Step, c: Any) -> tuple[Vec3, Vec3]:
    """Return J v, and J times the free accelerations; store Z of both sides."""
    problem = s.constraints
    row = problem.row[c]
    d = directions(row.R)
    seen, free = Vec3.zero(), carry(Vec3.zero())
    for side, sign in ((A_SIDE, -1.0), (B_SIDE, 1.0)):
        i, p = problem.link(c, side), row.p if side == B_SIDE else row.p_a
        velocity = point_velocity(p, s.link[i].v) * sign
        seen = seen + Vec3(*(dot(x, velocity) for x in d))
        put_path(s, c, side, i, tuple(at_point(p, x * sign, Vec3.zero()) for x in d), free)
    return seen, free.value


def inverse_mass(s: Step, c: Any) -> Any:
    """Sum of the inverse masses (`body_invweight0`) of both bodies."""
    return 1.0 / s.const.pair[s.constraints.pair[c]].g_alone


def inverse_mass_bar(s: Step, c: Any, bar: Any) -> None:
    """The adjoint of `inverse_mass`."""
    k = s.constraints.pair[c]
    g = s.const.pair[k].g_alone
    assert s.bars.const is not None
    s.bars.const.pair[k].g_alone -= bar / (g * g)


def approach(s: Step, c: Any) -> Any:
    """The normal velocity of contact c at the start of the step."""
    problem = s.constraints
    row = problem.row[c]
    return dot(row.R.column(2), relative_velocity(s, problem.link_a[c], problem.link_b[c], row.p, row.p_a - row.p))


# -- the report ------------------------------------------------------------------------------------------------------------
def report(s: Step, c: Any, table: Table) -> None:
    """Force on B (mean over the step), point, and gap if it is within the reported range."""
    problem = s.constraints
    row, at = problem.row[c], table[problem.source[c]]
    tree = s.model.tree[problem.link_b[c]]
    at.force, at.along, at.normal = world_force(row.R, row.lam) * (1.0 / s.dt), row.lam * (1.0 / s.dt), row.R.column(2)
    at.tangent = row.R.column(0)
    at.point, at.gap = row.p + origin(s, tree), minimum(row.phi, problem.options.near)


def force_bar(s: Step, c: Any) -> Vec3:
    """The cotangent of the force of contact c on its body B; that of the impulse is R^T of it, over dt."""
    return s.constraints.force_bar.struct(s.constraints.source[c] * 3, Vec3)


# -- the adjoint -----------------------------------------------------------------------------------------------------------
def bars(s: Step, c: Any) -> None:
    """Remove the contact force from its links, and add the cotangents of gap, point, frame and velocities to poses, velocities
    and shapes  (theory 5.13-5.16).

    Three fields of link motions x are paired with forces k at the contact:  y with lam,  v+ with -nu  and, where the
    contact bounces,  v with -e nu  on the normal. s.link.y is -dt y in the letters of the theory, s.field.w that of v+.
    """
    problem = s.constraints
    row, i, j = problem.row[c], problem.link_a[c], problem.link_b[c]
    R, p, p_a, lam, nu = row.R, row.p, row.p_a, row.lam, row.nu * (1.0 / s.dt)

    # target velocity: position correction, or restitution
    rest, slope = rest_velocity(s, row.phi)
    g = approach(s, c)
    bounce = select(bounces(s, row.phi, row.e, g, rest), row.share, 0.0)
    work_bar = lam * (-0.5 / s.dt * row.eta)  # of the work of impulses
    phi_bar, e_bar = nu.x * slope * (1.0 - bounce), -(nu.x * g * bounce)

    frame_bar, p_b_bar, p_a_bar = Mat3.zero(), Vec3.zero(), Vec3.zero()
    zeta_a, zeta_b = Force.zero(), Force.zero()
    for field, of_x, k in (
        ("y", "F", lam * (-1.0 / s.dt)),
        ("w", "w_bar", work_bar - nu),
        ("v", "v_bar", work_bar - Vec3(row.e * nu.x * bounce, 0.0, 0.0)),
    ):
        table, force = s.field if field == "w" else s.link, world_force(R, k)
        A, B = table[i], table[j]
        of_a, of_b = getattr(A, field), getattr(B, field)
        on_b, on_a = at_point(p, force, Vec3.zero()), -at_point(p_a, force, Vec3.zero())
        # x_bar += J^T k: for y that is the contact force among the forces F of the world
        setattr(B, of_x, getattr(B, of_x) + on_b)
        setattr(A, of_x, getattr(A, of_x) + on_a)
        # the motion of a link turns with it
        zeta_b, zeta_a = zeta_b + cross_force(of_b, on_b), zeta_a + cross_force(of_a, on_a)
        relative = point_velocity(p, of_b) - point_velocity(p_a, of_a)
        frame_bar = frame_bar + Mat3.columns(relative * k.y, relative * k.z, relative * k.x)
        p_b_bar, p_a_bar = p_b_bar + cross(force, of_b.w), p_a_bar - cross(force, of_a.w)
    s.field[j].zeta += zeta_b
    s.field[i].zeta += zeta_a
    A, B = s.link[i], s.link[j]
    rho = along_rows(R, (point_velocity(p, B.y) - point_velocity(p_a, A.y)) * (-1.0 / s.dt))  # J y + lam_bar
    rho = rho - row.change * (row.eta / s.dt)
    if problem.force_bar is not None:
        f_bar = force_bar(s, c) * (1.0 / s.dt)
        rho = rho + along_rows(R, f_bar)
        frame_bar = frame_bar + Mat3.columns(f_bar * lam.y, f_bar * lam.z, f_bar * lam.x)
    mu_bar = lam.x * (row.slide_sign.y * rho.y + row.slide_sign.z * rho.z)
    shape_bars(s, c, frame_bar, (p_a_bar, p_b_bar), (phi_bar, mu_bar, e_bar))


def jacobian_bars(s: Step, c: Any) -> None:
    """Add J_bar, and the cotangents of targets and bounds of contact c, to poses, velocities and parameters, for the adjoint of
    the sweeps  (theory 5.22)."""
    problem = s.constraints
    row = problem.row[c]
    g = approach(s, c)
    rest, slope = rest_velocity(s, row.phi)
    bounce = select(bounces(s, row.phi, row.e, g, rest), 1.0, 0.0)
    b_bar, lam, d = row.b_bar, row.swept, directions(row.R)
    targets, pushes = b_bar.leaves(), lam.leaves()
    extras = (row.e * b_bar.x * bounce, 0.0, 0.0)  # beta = -e J v
    weights = tuple(target + extra for target, extra in zip(targets, extras, strict=True))

    X, (first, end) = rows_of(s, problem.X, c), problem.dofs(problem.in_group[c])
    for k in loop(first, end):  # all that J_bar is made of
        ahead, dual = s.v[k] + s.dt * problem.free[k], problem.dual[k] / s.dt
        for x, target, push, extra in zip(X, targets, pushes, extras, strict=True):
            x[k] = x[k] + target * ahead + push * dual + extra * s.v[k]
    frame_bars, point_bars = [Vec3.zero()] * 3, []
    for sign, i, p in ((-1.0, problem.link_a[c], row.p_a), (1.0, problem.link_b[c], row.p)):
        forces = tuple(at_point(p, axis * sign, Vec3.zero()) for axis in d)
        seen = path_bars(s, i, forces, weights, X)
        frame_bars = [bar + (V.v + cross(V.w, p)) * sign for bar, V in zip(frame_bars, seen, strict=True)]
        p_bar = Vec3.zero()
        for axis, V in zip(d, seen, strict=True):
            p_bar = p_bar + cross(axis, V.w) * sign
        point_bars.append(p_bar)
    frame_bar = Mat3.columns(frame_bars[1], frame_bars[2], frame_bars[0])
    if problem.force_bar is not None:
        f_bar = force_bar(s, c) * (1.0 / s.dt)
        frame_bar = frame_bar + Mat3.columns(f_bar * lam.y, f_bar * lam.z, f_bar * lam.x)
    numbers = (-(b_bar.x * slope * (1.0 - bounce)), row.mu_bar, b_bar.x * g * bounce)
    shape_bars(s, c, frame_bar, (point_bars[0], point_bars[1]), numbers)


def rows_of(s: Step, table: Reals, c: Any) -> tuple[Reals, Reals, Reals]:
    """The three rows of contact c in Y or X, nv numbers each."""
    first, second, third = (table.shifted((c * 3 + r) * s.model.nv) for r in range(3))
    return first, second, third


def shape_bars(s: Step, c: Any, frame_bar: Mat3, point_bars: tuple[Vec3, Vec3], numbers: tuple[Any, Any, Any]) -> None:
    """Add the cotangents of a contact's frame, of its point on both sides, and of (gap, friction, restitution) to the poses of
    its links (zeta, o_bar) and to the parameters of its shapes."""
    k, row = s.constraints.pair[c], s.constraints.row[c]
    phi_bar, mu_bar, e_bar = numbers
    n_bar = axis_frame_vjp(row.R.column(2), frame_bar)
    add_contact_bars(s, (k, s.constraints.source[c], c), ContactBars(phi_bar, *point_bars, n_bar, Vec3.zero()))
    if s.bars.const is not None:
        bar = s.bars.const.pair[k]
        bar.friction += mu_bar
        bar.restitution += e_bar
