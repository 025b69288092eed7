"""Box with sphere or capsule, in the axes of the box  (theory 6.5).

Outside, the closest point of the box; inside, the nearest face. The normal is not differentiable on the planes where the
nearest face changes and along edges and corners. A capsule touches with two balls on its axis: the one nearest to the box,
and one further along the same face. Both are at MuJoCo's positions, also where MuJoCo has both at one position.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

from ....compiler import clamp, maximum, minimum, select, sqrt, target, vjp_of
from ...spatial import Force, Vec3, cross, dot, norm
from ..contact_geometry import (
    ASIDE,
    FAR,
    ZERO,
    ContactGeometry,
    PairBars,
    Pose,
    axis_to_pose_bar,
    least_of,
    point_to_pose_bar,
)


def _sign(x: Any) -> Any:
    """Return -1 if x is negative, else 1."""
    return select(x < 0.0, -1.0, 1.0)


def _setting(h: Vec3, c: Vec3) -> tuple[Vec3, Vec3, Any, Vec3, Any]:
    """Return the closest point k, clamped axes, whether outside, the normal, and the signed distance of the center."""
    k = c.map(lambda x, b: clamp(x, -b, b), h)
    clamped = c.map(lambda x, b: select(abs(x) > b, 1.0, 0.0), h)
    d = c - k
    L2 = dot(d, d)
    outside = L2 > 0.0
    L = sqrt(select(outside, L2, 1.0))
    depth = h.map(lambda b, x: b - abs(x), c)  # depth below each face, if inside
    x_first = select(depth.x < depth.y, select(depth.x < depth.z, 1.0, 0.0), 0.0)
    y_first = (1.0 - x_first) * select(depth.y < depth.z, 1.0, 0.0)
    face = Vec3(x_first * _sign(c.x), y_first * _sign(c.y), (1.0 - x_first - y_first) * _sign(c.z))
    least = x_first * depth.x + y_first * depth.y + (1.0 - x_first - y_first) * depth.z
    return k, clamped, outside, select(outside, d / L, face), select(outside, L, -least)


def box_ball(h: Vec3, c: Vec3, r: float) -> ContactGeometry:
    """Contact geometry of a box with half sizes h at the origin and a ball at c."""
    k, _, outside, n, distance = _setting(h, c)
    phi = distance - r
    p = select(outside, (k + c - n * r) * 0.5, c - n * (r + 0.5 * phi))
    return ContactGeometry(phi, p, n, ZERO)


@vjp_of(box_ball)
def box_ball_vjp(h: Vec3, c: Vec3, r: float, y_bar: ContactGeometry) -> tuple[Vec3, Vec3, float]:
    """Adjoint of `box_ball`."""
    _, clamped, outside, n, distance = _setting(h, c)
    along = dot(n, y_bar.p)
    # outside: only clamped axes rotate the normal
    g = y_bar.n - y_bar.p * (0.5 * r)
    L = select(outside, distance, 1.0)
    d_bar = (n * y_bar.phi + (g - n * dot(n, g)) / L).map(lambda x, m: x * m, clamped)
    c_out = y_bar.p.map(lambda x, m, d: x - 0.5 * x * m + d, clamped, d_bar)
    h_out = y_bar.p.map(lambda x, m, d, s: _sign(s) * (0.5 * x * m - d), clamped, d_bar, c)
    # inside: only the axis of the face
    k = y_bar.phi - 0.5 * along
    c_in = y_bar.p + n * k
    h_in = n.map(lambda x: -(abs(x) * k))
    r_bar = select(outside, -(y_bar.phi + 0.5 * along), -(along + k))
    return select(outside, h_out, h_in), select(outside, c_out, c_in), r_bar


def box_ball_margin(h: Vec3, c: Vec3) -> Any:
    """Distance of a ball at c to another face, edge or corner of the box becoming the nearest. Over a face it is smooth."""
    _, clamped, outside, _, _ = _setting(h, c)
    over_face = clamped.x + clamped.y + clamped.z < 1.5
    x, y, z = h.map(lambda b, x: b - abs(x), c).leaves()
    off = [select((on > 0.5) & over_face, FAR, abs(d)) for d, on in zip((x, y, z), clamped.leaves(), strict=True)]
    second = maximum(minimum(x, y), minimum(maximum(x, y), z))
    return select(outside, least_of(*off), second - least_of(x, y, z))


class BesideBall(NamedTuple):
    """Contact of a solid at the origin with a ball (center, radius), and the same for placed shapes.

    Attributes:
        ball: Contact geometry in the axes of the solid.
        ball_vjp: Its adjoint.
    """

    ball: Callable[[Vec3, Vec3, Any], ContactGeometry]
    ball_vjp: Callable[[Vec3, Vec3, Any, ContactGeometry], tuple[Vec3, Vec3, Any]]

    def sphere(self, A: Pose, size_a: Vec3, B: Pose, size_b: Vec3) -> ContactGeometry:
        """Contact geometry of a placed solid A and a sphere B."""
        found = self.ball(size_a, A.R.T @ (B.r - A.r), size_b.x)
        return ContactGeometry(found.phi, A.r + A.R @ found.p, A.R @ found.n, ZERO)

    def sphere_vjp(self, A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, y_bar: ContactGeometry) -> PairBars:
        """Adjoint of `sphere`."""
        R = A.R
        c = R.T @ (B.r - A.r)
        contact = self.ball(size_a, c, size_b.x)
        local = ContactGeometry(y_bar.phi, R.T @ y_bar.p, R.T @ y_bar.n, ZERO)
        h_bar, c_bar, r_bar = self.ball_vjp(size_a, c, size_b.x, local)
        center_bar = R @ c_bar
        turn = R @ (cross(contact.p, local.p) + cross(contact.n, local.n) + cross(c_bar, c))
        A_bar = point_to_pose_bar(A.r, y_bar.p - center_bar) + Force(turn, Vec3.zero())
        return PairBars(A_bar, h_bar, point_to_pose_bar(B.r, center_bar), Vec3(r_bar, 0.0, 0.0), ZERO)


BOX = BesideBall(box_ball, box_ball_vjp)


def box_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry of a box and a sphere."""
    return BOX.sphere(A, size_a, B, size_b)


@vjp_of(box_sphere)
def box_sphere_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `box_sphere`."""
    return BOX.sphere_vjp(A, size_a, B, size_b, y_bar)


def box_sphere_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> Any:
    """Feature margin of a box and a sphere."""
    return box_ball_margin(size_a, A.R.T @ (B.r - A.r))


# -- capsule ---------------------------------------------------------------------------------------------------------------
NONE = 1e-12  # m, length treated as zero
TIE = 1e-15  # m^2, decrease of a squared distance below which the earlier candidate is kept
EDGES = tuple((j, sides) for j in range(3) for sides in ((-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)))


class _Nearest(NamedTuple):
    """Point c + t e of a capsule's axis nearest to the box, as MuJoCo selects it: an end over a face, or the nearest to
    an
    edge.

    Attributes:
        t: Parameter.
        across: 1 for each axis of the box along which the point and the box are apart: one beside a face, two beside an
            edge, three beside a corner.
        side: Sign of the side of the box along these axes.
    """

    t: Any
    across: Vec3
    side: Vec3


class _Second(NamedTuple):
    """Second contact point of the capsule.

    Attributes:
        t: Parameter.
        there: 1 if the point exists.
        slab: Axis of the box if the point is over the rim of a face.
        shift: Axis if the point is a whole width of the box away from the first. Neither slab nor shift: an end of the
            capsule.
        on: Direction along the capsule's axis from the first to the second point.
    """

    t: Any
    there: Any
    slab: Vec3
    shift: Vec3
    on: Any


def _ended(t: Any) -> tuple[Any, Any]:
    """Clamp to [-1, 1]; the second result is 1 if clamped."""
    return clamp(t, -1.0, 1.0), select(abs(t) > 1.0, 1.0, 0.0)


def _put(j: int, along: Any, others: tuple[Any, Any]) -> Vec3:
    """Return a vector with `along` at index j and `others` at the other indices."""
    rest = iter(others)
    return Vec3(*(along if k == j else next(rest) for k in range(3)))


def _nearest(h: Vec3, c: Vec3, e: Vec3) -> _Nearest:
    """Return the nearest point of the axis c + t e to the box."""
    best, found = 1.0 / NONE, _Nearest(0.0, ZERO, ZERO)

    def offer(square: Any, new: _Nearest) -> None:
        nonlocal best, found
        less = square < best - TIE
        best = select(less, square, best)
        found = _Nearest(*(select(less, x, y) for x, y in zip(new, found, strict=True)))

    for end in (-1.0, 1.0):
        x = c + e * end
        out, d = x.map(lambda a, b: select(abs(a) > b, 1.0, 0.0), h), _beyond(h, x)
        offer(select(out.x + out.y + out.z < 1.5, dot(d, d), 1.0 / NONE), _Nearest(end + 0.0 * best, out, x.map(_sign)))
    length = dot(e, e)
    for j, sides in EDGES:
        k = _put(j, 0.0, sides).map(lambda a, b: a * b, h)
        d, width, slope = k - c, h.leaves()[j], e.leaves()[j]
        u, v, mixed = -(width * d.leaves()[j]), dot(e, d), -(width * slope)
        det = width * width * length - mixed * mixed
        crossing = det > TIE
        s, corner = _ended((length * u - mixed * v) / select(crossing, det, 1.0))
        free = (width * width * v - mixed * u) / select(crossing, det, 1.0)
        t, held = _ended(select(corner > 0.5, (v - mixed * s) / length, free))
        end_at, other = _ended(
            (u - mixed * t) / (width * width)
        )  # free parameter on the edge, next to an end of the axis
        end, other = select(other > 0.5, _sign(end_at), _sign(s)), maximum(corner, other)
        apart = d - e * t + _put(j, width * select(held > 0.5, end_at, s), (0.0, 0.0))
        square = select(crossing, dot(apart, apart), 1.0 / NONE)
        offer(square, _Nearest(t, _put(j, select(held > 0.5, other, corner), (1.0, 1.0)), _put(j, end, sides)))
    return found


def _second(h: Vec3, c: Vec3, e: Vec3, first: _Nearest) -> _Second:
    """Return the second contact point as MuJoCo does: along the face to which the axis is least steep."""
    t, (across, side) = first.t, first[1:]
    safe = e.map(lambda x: select(abs(x) > NONE, abs(x), NONE))
    towards = e.map(_sign)
    slopes = e.map(lambda a, b: abs(a) * b, across)
    x_most = select((slopes.x >= slopes.y) & (slopes.x >= slopes.z), 1.0, 0.0)
    y_most = (1.0 - x_most) * select(slopes.y >= slopes.z, 1.0, 0.0)
    most = Vec3(x_most, y_most, 1.0 - x_most - y_most)
    differ = side.map(lambda a, b: select(a * b < 0.0, 1.0, 0.0), towards)
    lead = most.x * differ.x + most.y * differ.y + most.z * differ.z
    differ = differ.map(
        lambda a, b: select(abs(b) > NONE, a, 1.0 - lead), e
    )  # parallel to a face: the axis continues over it
    widths = h.map(lambda a, b: 2.0 * a / b, safe)
    dims = across.x + across.y + across.z
    # corner: along the edge or over the face in the direction of the axis
    count = differ.x + differ.y + differ.z
    one = select(count < 1.5, 1.0, 0.0)
    ax = differ.map(lambda a: a * one + (1.0 - a) * (1.0 - one))
    steep = e.map(lambda a, b: a * a * b, ax)
    lengthwise = steep.x + steep.y + steep.z > 0.5 * dot(e, e)
    corner_on = (2.0 * one - 1.0) * select(lengthwise, 1.0, -1.0)
    corner_axes = select(lengthwise, ax, ax.map(lambda a: 1.0 - a))
    corner_there = select((count > 0.5) & (count < 2.5), 1.0, 0.0)
    # edge: over the face that the axis is nearer to, unless it leads away from the box
    free = across.map(lambda a: 1.0 - a)
    leads = differ.map(lambda a, b: a * b, across)
    edge_there = select(abs(leads.x + leads.y + leads.z - 1.0) < 0.5, 1.0, 0.0)
    edge_on = 2.0 * lead - 1.0
    # face: to the point where the axis leaves it
    face_there, face_on = select(dims > 0.5, 1.0, 0.0), -t
    corner, edge = dims > 2.5, (dims > 1.5) & (dims < 2.5)
    on = select(corner, corner_on, select(edge, edge_on, face_on))
    shifts = select(corner, corner_axes, select(edge, most, ZERO))
    slabs = select(corner, ZERO, free)
    x = c + e * t
    step, slab, shift = 1.0 - on * t, ZERO, ZERO
    aside = ASIDE[target().dtype] / norm(
        e
    )  # tie of an end over the rim: it is beyond the rim and the first point within, as if displaced along the axis
    for k in range(3):
        one_hot = Vec3(*(float(i == k) for i in range(3)))
        wide = select(shifts.leaves()[k] > 0.5, widths.leaves()[k], 1.0 / NONE)
        less = wide < step
        step, shift, slab = select(less, wide, step), select(less, one_hot, shift), select(less, ZERO, slab)
        way = on * towards.leaves()[k]
        for face in (way, -way):
            out = (h.leaves()[k] * face - x.leaves()[k]) * way / safe.leaves()[k]
            less = (slabs.leaves()[k] > 0.5) & (out > 0.0) & (out - aside < step)
            step, slab, shift = select(less, out, step), select(less, one_hot, slab), select(less, ZERO, shift)
    there = select(corner, corner_there, select(edge, edge_there, face_there))
    return _Second(t + on * step, there, slab, shift, on)


def _beyond(h: Vec3, x: Vec3) -> Vec3:
    """Vector from the closest point of the box to x."""
    return x.map(lambda a, b: a - clamp(a, -b, b), h)


def _over_rim(h: Vec3, x: Vec3, slab: Vec3) -> Vec3:
    """Return x with its coordinate along the slab clamped exactly to the box."""
    return x.map(lambda a, b, on: select(on > 0.5, clamp(a, -b, b), a), h, slab)


def box_segment(h: Vec3, c: Vec3, e: Vec3, r: float, which: float) -> ContactGeometry:
    """Contact geometry of a box and the first (which = 0) or second (1) ball of a capsule c + t e, -1 <= t <= 1."""
    first = _nearest(h, c, e)
    second = _second(h, c, e, first)
    use = which > 0.5
    contact = box_ball(h, select(use, _over_rim(h, c + e * second.t, second.slab), c + e * first.t), r)
    there = select(use, second.there, 1.0) > 0.5
    return ContactGeometry(select(there, contact.phi, FAR), contact.p, contact.n, ZERO)


@vjp_of(box_segment)
def box_segment_vjp(
    h: Vec3, c: Vec3, e: Vec3, r: float, which: float, y_bar: ContactGeometry
) -> tuple[Vec3, Vec3, Vec3, float, float]:
    """Adjoint of `box_segment`.

    The first point is an end, or satisfies e . (x - k) = 0 over the axes across, k on the edge or at the corner. The second
    is an end, or its coordinate along `slab` equals a half size, or it is the first plus a whole width of the box
    (`shift`).
    """
    first = _nearest(h, c, e)
    second = _second(h, c, e, first)
    use = which > 0.5
    t, there = select(use, second.t, first.t), select(use, second.there, 1.0) > 0.5
    seen = ContactGeometry(select(there, y_bar.phi, 0.0), y_bar.p, y_bar.n, ZERO)
    slab, shift = select(use, second.slab, ZERO), select(use, second.shift, ZERO)
    h_bar, x_bar, r_bar = box_ball_vjp(h, _over_rim(h, c + e * t, slab), r, seen)
    c_bar, e_bar, t_bar = x_bar, x_bar * t, dot(e, x_bar)
    safe = e.map(lambda a: select(abs(a) > NONE, a, NONE))
    # second point
    pull = slab.map(lambda a, b: -(a * t_bar / b), safe)  # slab: dt = (side dh - dc - t de) / e
    c_bar, e_bar = c_bar + pull, e_bar + pull * t
    h_bar = h_bar - pull.map(lambda a, b: a * _sign(b), c + e * t)
    widen = shift.map(lambda a, b: 2.0 * a * second.on * t_bar / abs(b), safe)  # shift: dt = dt_1 + d(2 on h / |e|)
    h_bar, e_bar = h_bar + widen, e_bar - widen.map(lambda a, b, w: a * w / b, safe, h)
    # first point
    shifted = shift.x + shift.y + shift.z
    first_bar = select(abs(first.t) < 1.0, t_bar * select(use, shifted, 1.0), 0.0)
    steep = e.map(lambda a, m: a * m, first.across)
    bend = dot(steep, e)
    w = select(bend > NONE * NONE, -first_bar / select(bend > NONE * NONE, bend, 1.0), 0.0)
    x = c + e * first.t
    apart = x.map(lambda a, b, s, m: (a - s * b) * m, h, first.side, first.across)
    c_bar, e_bar = c_bar + steep * w, e_bar + steep * (w * first.t) + apart * w
    return h_bar - steep.map(lambda a, s: a * s * w, first.side), c_bar, e_bar, r_bar, 0.0


def box_capsule(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry of a box and a capsule. feature.x = 0: the ball nearest to the box; 1: the second ball, if there is
    one."""
    R = A.R
    contact = box_segment(size_a, R.T @ (B.r - A.r), R.T @ (B.R.column(2) * size_b.y), size_b.x, feature.x)
    return ContactGeometry(contact.phi, A.r + R @ contact.p, R @ contact.n, ZERO)


@vjp_of(box_capsule)
def box_capsule_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `box_capsule`."""
    R, z = A.R, B.R.column(2)
    c, e = R.T @ (B.r - A.r), R.T @ (z * size_b.y)
    contact = box_segment(size_a, c, e, size_b.x, feature.x)
    local = ContactGeometry(y_bar.phi, R.T @ y_bar.p, R.T @ y_bar.n, ZERO)
    h_bar, c_bar, e_bar, r_bar, _ = box_segment_vjp(size_a, c, e, size_b.x, feature.x, local)
    center_bar, axis_bar = R @ c_bar, R @ e_bar
    turn = R @ (cross(contact.p, local.p) + cross(contact.n, local.n) + cross(c_bar, c) + cross(e_bar, e))
    A_bar = point_to_pose_bar(A.r, y_bar.p - center_bar) + Force(turn, Vec3.zero())
    B_bar = point_to_pose_bar(B.r, center_bar) + axis_to_pose_bar(z, axis_bar * size_b.y)
    return PairBars(A_bar, h_bar, B_bar, Vec3(r_bar, dot(z, axis_bar), 0.0), ZERO)


def box_capsule_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> Any:
    """Feature margin of both points.

    Distance to another feature of the box becoming the nearest, to a point reaching or leaving an end of the axis, and to
    another rule for the second point.
    """
    h, e, c = size_a, A.R.T @ (B.R.column(2) * size_b.y), A.R.T @ (B.r - A.r)
    first = _nearest(h, c, e)
    second, length = _second(h, c, e, first), norm(e)
    x, y, across = c + e * first.t, c + e * second.t, first.across
    dims, hangs = across.x + across.y + across.z, least_of(*(-(second.slab + second.shift)).leaves()) < -0.5
    held = abs(dot(e, _beyond(h, x))) / length  # constraint force that keeps the first point at its end
    held = select(
        (dims > 1.5) | hangs, held, FAR
    )  # over a face with the second point at the other end, the two swap without effect
    ends = select(abs(first.t) < 1.0, (1.0 - abs(first.t)) * length, held)
    # a point over a rim stays there; see `box_capsule_symmetric_margin` for two of them
    rim = _spanned(first, second)
    level = across.map(lambda a, along: a * (1.0 - along) * (rim.x + rim.y + rim.z), rim)
    x, y = (p.map(lambda a, on: select(on > 0.5, 0.0, a), on) for p, on in ((x, rim), (y, second.slab + rim)))
    beside = select(hangs, abs(1.0 - abs(second.t)) * length, FAR)
    there = select(second.there > 0.5, minimum(box_ball_margin(h, y), beside), FAR)
    slopes = e.map(lambda a, on: select(on > 0.5, abs(a), FAR), across.map(lambda a, rim: a * (1.0 - rim), level))
    by_slope = least_of(
        *slopes.leaves(), *(select(minimum(a, b) < FAR, abs(a - b), FAR) for a, b in combinations(slopes.leaves(), 2))
    )
    square = e.map(lambda a: abs(a * a - 0.5 * length * length) / length)
    by_slope = minimum(by_slope, select(dims > 2.5, least_of(*square.leaves()), FAR))
    return least_of(box_ball_margin(h, x), ends, there, select(dims > 1.5, by_slope, FAR))


def _spanned(first: _Nearest, second: _Second) -> Vec3:
    """Return 1 for the axis of the box along which the capsule spans the whole width from rim to rim."""
    dims = first.across.x + first.across.y + first.across.z
    return second.shift * select((dims > 1.5) & (dims < 2.5), 1.0, 0.0)


def box_capsule_symmetric_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3) -> Any:
    """Distance to a level capsule over both rims of a face.

    There the first point changes to the other rim and the second swaps with it, and the one outside the face rotates its
    normal with the tilt. Two points with equal forces have the same effect on both sides.
    """
    h, e, c = size_a, A.R.T @ (B.R.column(2) * size_b.y), A.R.T @ (B.r - A.r)
    first = _nearest(h, c, e)
    rim = _spanned(first, _second(h, c, e, first))
    off = (c + e * first.t).map(lambda a, b, on: select(on > 0.5, abs(b - abs(a)), FAR), h, rim)
    return least_of(*off.leaves())
