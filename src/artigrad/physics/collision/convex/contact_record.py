"""Record of a jointly computed contact point, and the part of the adjoint that all such pairs share  (theory 6.8).

A shape is a core and a radius around it. At a contact point, a and b are points of the two cores with b - a = g n. v is the
velocity of the bodies at a and b (changes of size included), theta their rotation, C the Hessian of the support function of
the core (radii of curvature, zero at vertices), and f a direction along which a point may slide on a flat part of its core:

    slip       v_b - v_a - g dn = t_1 f_1 l_1 + t_2 f_2 l_2 + dg n,          t = 1 if the direction is one of A's, -1 if of
    B's
    normal     [C_A + C_B + g  E] [dn]   [P(v_b - v_a) + C_A (theta_A x n) + C_B (theta_B x n)]
               [E^T            0] [l ] = [e . (theta_owner x n) - n . de                       ]

If a face or two edges determine the normal, there are two flat directions e and no other term matters. A witness (the
nearest points of the cores) slides along the same directions that constrain its normal. The matrix is symmetric, so the
adjoint solves with it too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....compiler import Layout, Row, Table, maximum, select
from ...spatial import Mat3, Vec3, cross, dot
from ..contact_geometry import ZERO, ContactGeometry

# One row per point of a pair: its geometry and how it changes. `of` is 1 for a direction of A's, 0 for one of B's.
CONTACT = Layout(
    phi=float,
    p=Vec3,
    n=Vec3,
    f1=Vec3,  # sliding directions
    f2=Vec3,
    f1_of=float,
    f2_of=float,
    e1=Vec3,  # directions to which the normal is perpendicular
    e2=Vec3,
    e1_of=float,
    e2_of=float,
)
# The same with the vertex of a hull that touches a plane: position in its frame, and index.
HULL_CONTACT = Layout(**{name: kind for name, (_, kind) in CONTACT.fields.items()}, corner=Vec3, number=float)
# The same for solids of any type: constraints of the normal of a witness, and vertices of its features.
CONVEX_CONTACT = Layout(
    **{name: kind for name, (_, kind) in CONTACT.fields.items()},
    g=float,  # distance of the cores
    a=Vec3,  # nearest points of the cores
    b=Vec3,
    CA=Mat3,  # curvatures
    CB=Mat3,
    k1=float,  # 1 if e1, e2 are active
    k2=float,
    a0=Vec3,  # vertices of A's feature, in its frame, and its number of flat directions
    a1=Vec3,
    a2=Vec3,
    a_flat=float,
    a_numbers=Vec3,  # indices of these vertices
    b0=Vec3,
    b1=Vec3,
    b2=Vec3,
    b_flat=float,
    b_numbers=Vec3,
    w=Vec3,  # normal of the nearest points; n differs from it for a point of a patch
    patch=float,  # point of a patch: number of solids that touch with a face
    m=Vec3,  # normal of the clipping face; n differs from it if both touch with a face
    by_a=float,  # 1 if that face is A's
    a_line=float,  # 1 on the side line of a cylinder, which rotates about the axis with w
    b_line=float,
    a_face=float,  # index of a hull's touching face
    b_face=float,
    s0=Vec3,  # vertices of A's sliding directions, in its frame
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
ANY_SOLIDS = tuple(name for name in CONVEX_CONTACT.fields if name not in ("corner", "number"))
ON_PLANE = ("phi", "p", "n", "corner", "number")  # fields kept for a vertex of a hull on a plane


class CornerBars(NamedTuple):
    """Cotangents of vertices.

    Attributes:
        at: Vertices, in the frame of their solid.
        bar: Their cotangents.
        number: Their indices.
        face: Index of a hull's touching face.
        normal_bar: Cotangent of its normal, in the frame of the solid.
    """

    at: tuple[Vec3, ...]
    bar: tuple[Vec3, ...]
    number: tuple[Any, ...]
    face: Any = None
    normal_bar: Vec3 = ZERO


class Slots(NamedTuple):
    """Scratch of a pair whose points are computed jointly.

    Attributes:
        rows: One row per point.
        patch_record: Data of the contact patch for `feature_margin.py`.
        window: Window of cells on a height field.
        corners: Both polygons.
        clipped: Their intersection.
        order: Vertices of the intersection that count.
        blocks: Blocks of a polygon.
    """

    rows: Table
    patch_record: Table
    window: Table
    corners: Table
    clipped: Table
    order: Table
    blocks: Any


LEAST = 1e-6  # sine below which two directions are parallel


def saved_geometry(row: Row) -> ContactGeometry:
    """Return the contact geometry of a record."""
    return ContactGeometry(row.phi, row.p, row.n, ZERO)


def slip(row: Row, m: Vec3, a_bar: Vec3, b_bar: Vec3) -> Vec3:
    """Cotangent y that two points above each other along m transfer from A to B as they slide.

        N^T y = (f_1 . x_1, f_2 . x_2, 0)   with   N = [t_1 f_1, t_2 f_2, m],   x = a_bar for a direction of A's, b_bar for
        one of B's

    A keeps a_bar - y, B keeps b_bar + y, and m receives -s y, s the distance along it.
    """
    t1, t2 = 2.0 * row.f1_of - 1.0, 2.0 * row.f2_of - 1.0
    z1, z2 = (
        dot(f, select(of > 0.5, a_bar, b_bar)) * t for f, of, t in ((row.f1, row.f1_of, t1), (row.f2, row.f2_of, t2))
    )
    det = dot(cross(row.f1, row.f2), m)
    apart = abs(det) > LEAST * LEAST * 1e-6
    y = (cross(row.f2, m) * z1 + cross(m, row.f1) * z2) * (1.0 / select(apart, det, 1.0))
    return select(apart, y, ZERO)


def fixed_normal_vjp(row: Row, n_bar: Vec3) -> tuple[Vec3, Vec3]:
    """Cotangents (torque x n) on A and B of a normal fixed by two directions:  e . dn = e . (theta_owner x n)"""
    n, e1, e2 = row.n, row.e1, row.e2
    mu1, mu2 = along(n, e1, e2, n_bar)
    first, second = e1 * mu1, e2 * mu2
    return first * row.e1_of + second * row.e2_of, first * (1.0 - row.e1_of) + second * (1.0 - row.e2_of)


def along(n: Vec3, e1: Vec3, e2: Vec3, z: Vec3) -> tuple[Any, Any]:
    """Return the weights of e1 and e2 that sum to z in the plane across n."""
    area = cross(e1, e2)
    det = dot(area, n)
    square = dot(e1, e1) * dot(e2, e2)
    apart = det * det > LEAST * LEAST * square
    inverse = 1.0 / select(apart, det, 1.0)
    lone = dot(e1, z) / maximum(dot(e1, e1), 1e-30)  # parallel edges: A's alone rotates the normal
    return select(apart, dot(cross(z, e2), n) * inverse, lone), select(apart, dot(cross(e1, z), n) * inverse, 0.0)
