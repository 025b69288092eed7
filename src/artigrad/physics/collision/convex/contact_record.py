"""What a pair of solids leaves of each point at which it touches, and the adjoint that all such pairs share  (theory 6.8).

A shape is a core and a radius around it. At a point of contact, a and b are points of the two cores with b - a = g n. With v
the motion of the bodies at a and b (sizes included), theta their turns, C the Hessians of the support functions of the cores
(radii of curvature, zero at corners), and f directions along which a point may slip on a flat part of its core:

    slip       v_b - v_a - g dn = t_1 f_1 l_1 + t_2 f_2 l_2 + dg n,          t = 1 if the direction is one of A's, -1 if of B's
    normal     [C_A + C_B + g  E] [dn]   [P(v_b - v_a) + C_A (theta_A x n) + C_B (theta_B x n)]
               [E^T            0] [l ] = [e . (theta_owner x n) - n . de                       ]

Where a face or two edges turn the normal there are two flat directions e and nothing else counts; a witness (the nearest
points of the cores) slips along the same directions that hold its normal. The matrix is symmetric, so the adjoint solves with
it too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....compiler import Layout, Row, Table, maximum, select
from ...spatial import Mat3, Vec3, cross, dot
from ..gap import ZERO, Gap

# One row per point of a pair: the gap, and how it changes. `of` is 1 for a direction of A's, 0 for one of B's.
MEETING = Layout(
    phi=float,
    p=Vec3,
    n=Vec3,
    f1=Vec3,  # along which the point may slip
    f2=Vec3,
    f1_of=float,
    f2_of=float,
    e1=Vec3,  # to which the normal is held at right angles
    e2=Vec3,
    e1_of=float,
    e2_of=float,
)
# Of a corner of a hull on a plane there is the corner, in its own frame, and its number.
HULL_MEETING = Layout(**{name: kind for name, (_, kind) in MEETING.fields.items()}, corner=Vec3, number=float)
# The same for solids of any kind: what else holds the normal of a witness, and the corners of its features.
SOLID_MEETING = Layout(
    **{name: kind for name, (_, kind) in MEETING.fields.items()},
    g=float,  # gap of the cores
    a=Vec3,  # nearest points of the cores
    b=Vec3,
    CA=Mat3,  # curvatures
    CB=Mat3,
    k1=float,  # 1 where e1 and e2 count
    k2=float,
    a0=Vec3,  # corners of A's feature, in its own frame, and along how many directions it is flat
    a1=Vec3,
    a2=Vec3,
    a_flat=float,
    a_numbers=Vec3,  # of these corners among those of a hull
    b0=Vec3,
    b1=Vec3,
    b2=Vec3,
    b_flat=float,
    b_numbers=Vec3,
    w=Vec3,  # the normal of the nearest points, which n is not for a point of a patch
    patch=float,  # for a point of a patch: how many of both solids lie on the other with a face
    m=Vec3,  # the normal of the face that cuts it, which n is not if both do
    by_a=float,  # 1 where that face is A's
    a_line=float,  # 1 where it is on the line of a cylinder, which turns about its axis with w
    b_line=float,
    a_face=float,  # of a hull, the number of the face that it lies with, if it does
    b_face=float,
    s0=Vec3,  # the corners along which it slips: of A's, in its own frame
    s1=Vec3,
    s2=Vec3,
    s_flat=float,
    s_numbers=Vec3,
    t0=Vec3,  # of B's
    t1=Vec3,
    t2=Vec3,
    t_flat=float,
    t_numbers=Vec3,
    corner=Vec3,
    number=float,
)
ANY_SOLIDS = tuple(name for name in SOLID_MEETING.fields if name not in ("corner", "number"))
ON_PLANE = ("phi", "p", "n", "corner", "number")  # what is kept of a corner of a hull on a plane


class CornerBars(NamedTuple):
    """Cotangents of corners of features; where these are, in the frame of their solid; and their numbers. Of a hull that lies
    with a face also the number of that, and the cotangent of its normal, in that frame."""

    at: tuple[Vec3, ...]
    bar: tuple[Vec3, ...]
    number: tuple[Any, ...]
    face: Any = None
    normal_bar: Vec3 = ZERO


class Slots(NamedTuple):
    """Scratch of a pair whose points are found together: a row of each; what its patch was made of; where on a height field it
    is; corners, the area and its order of its patch, and the blocks of a ring of these."""

    rows: Table
    made: Table
    window: Table
    corners: Table
    polygon: Table
    order: Table
    blocks: Any


LEAST = 1e-6  # sine between two directions below which they are one


def found(row: Row) -> Gap:
    """The gap of a point that was met."""
    return Gap(row.phi, row.p, row.n, ZERO)


def slip(row: Row, m: Vec3, a_bar: Vec3, b_bar: Vec3) -> Vec3:
    """What two points above each other along m, as they slip, hand from A to B of their cotangents:  N^T y = (f_1 . x_1,
    f_2 . x_2, 0)  with  N = [t_1 f_1, t_2 f_2, m],  x = a_bar for a direction of A's, b_bar for one of B's. A is left with
    a_bar - y, B with b_bar + y, and m with -s y, s the gap along it."""
    t1, t2 = 2.0 * row.f1_of - 1.0, 2.0 * row.f2_of - 1.0
    z1, z2 = (
        dot(f, select(of > 0.5, a_bar, b_bar)) * t for f, of, t in ((row.f1, row.f1_of, t1), (row.f2, row.f2_of, t2))
    )
    det = dot(cross(row.f1, row.f2), m)
    apart = abs(det) > LEAST * LEAST * 1e-6
    y = (cross(row.f2, m) * z1 + cross(m, row.f1) * z2) * (1.0 / select(apart, det, 1.0))
    return select(apart, y, ZERO)


def held_vjp(row: Row, n_bar: Vec3) -> tuple[Vec3, Vec3]:
    """The cotangents of the turns times n of A and B, of a normal that two directions hold:  e . dn = e . (theta_owner x n)"""
    n, e1, e2 = row.n, row.e1, row.e2
    mu1, mu2 = along(n, e1, e2, n_bar)
    first, second = e1 * mu1, e2 * mu2
    return first * row.e1_of + second * row.e2_of, first * (1.0 - row.e1_of) + second * (1.0 - row.e2_of)


def along(n: Vec3, e1: Vec3, e2: Vec3, z: Vec3) -> tuple[Any, Any]:
    """Weights of e1 and e2 that make up z in the plane across n."""
    area = cross(e1, e2)
    det = dot(area, n)
    square = dot(e1, e1) * dot(e2, e2)
    apart = det * det > LEAST * LEAST * square
    inverse = 1.0 / select(apart, det, 1.0)
    lone = dot(e1, z) / maximum(dot(e1, e1), 1e-30)  # edges that are parallel: A's turns the normal alone
    return select(apart, dot(cross(z, e2), n) * inverse, lone), select(apart, dot(cross(e1, z), n) * inverse, 0.0)
