"""Constants of bodies, sites and shapes, in the frames of their links.

Bodies on fixed joints are merged into their link, whose frame is at the joint's anchor with the joint's axis along z.
`position` and `rotation` of a free joint do not affect the dynamics (they only define the default state) unless it has
a spring, so their gradient is zero here; `spring_constants` adds to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...compiler import carry, loop, maximum, minimum, sqrt, switch, to_real
from ...model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHT_FIELD, PLANE, POINTS, SPHERE
from ..collision.convex.solids import TINY
from ..constraints.soft.impedance import LEAST, Soft, SolImp, SolRef, soften, soften_vjp
from ..joints.joint import Joint
from ..joints.table import JOINTS, compiled
from ..spatial import (
    Force,
    Inertia,
    Mat3,
    Quat,
    Sym3,
    Transform,
    Vec3,
    axis_frame,
    axis_frame_vjp,
    compose_vjp,
    cross,
    dot,
    force_to_child,
    inertia_at_origin,
    inertia_at_origin_vjp,
    invert,
    invert_vjp,
    normalize,
    normalize_vjp,
    pose,
    pose_vjp,
    shift,
    shift_vjp,
    twist_to_matrix,
)
from .constants_context import NO_LIMIT, ConstantsContext, Fields, add_invweight_bar


# -- bodies ----------------------------------------------------------------------------------------------------------------
def bodies(m: ConstantsContext) -> None:
    """Compute frames, placements and joint constants of bodies, merged into links; masses."""
    out, fields = m.out, m.fields
    for i in loop(m.model.nl):
        row = out.link[i]
        row.I, row.placement = Inertia.zero(), Transform.identity()
        row.damping, row.armature, row.stiffness, row.reference, row.pitch = 0.0, 0.0, 0.0, 0.0, 0.0
        row.low, row.high, row.limit_margin, row.limit_g = -NO_LIMIT, NO_LIMIT, 0.0, 0.0
        row.limit = Soft.zero()
    for k in loop(m.model.nt + 1):
        out.tree[k].origin = Vec3.zero()
    m.bodies[0].B = Transform.identity()
    for i in loop(1, m.model.nb + 1):
        X = pose(fields.struct("position", i - 1, Vec3), fields.struct("rotation", i - 1, Quat))
        Y = m.bodies[m.structure.body_parent[i]].B @ X
        cases = {k: partial(_body_frame, m, i, joint, Y) for k, joint in compiled(m.has, JOINTS.values()).items()}
        switch(m.structure.body_joint[i], cases)
        B = m.bodies[i].B
        c = fields.struct("com", i - 1, Vec3)
        mass, Ic = fields.real("mass", i - 1), fields.struct("inertia", i - 1, Sym3)
        link = out.link[m.model.link_of_body[i]]
        link.I += shift(B, inertia_at_origin(mass, c, Ic))
        out.frame[i - 1].X = B
        out.body[i - 1].com = B.r + B.R @ c


def bodies_vjp(m: ConstantsContext) -> None:
    """Adjoint of `bodies`."""
    fields, bars = m.fields, m.bars
    for i in loop(1, m.model.nb + 1, inwards=True):
        row, link_bar = m.bodies[i], m.out_bar.link[m.model.link_of_body[i]]
        B = row.B
        c = fields.struct("com", i - 1, Vec3)
        mass, Ic = fields.real("mass", i - 1), fields.struct("inertia", i - 1, Sym3)
        com_bar = B.R.T @ m.out_bar.body[i - 1].com  # com = B.r + B.R c
        B_bar, I_bar = shift_vjp(B, inertia_at_origin(mass, c, Ic), link_bar.I)
        row.B_bar += m.out_bar.frame[i - 1].X + Force(cross(c, com_bar), com_bar) + B_bar
        mass_bar, c_bar, Ic_bar = inertia_at_origin_vjp(mass, c, Ic, I_bar)
        bars.put_real("mass", i - 1, mass_bar)
        bars.put("com", i - 1, c_bar + com_bar)
        bars.put("inertia", i - 1, Ic_bar)
        position, rotation = fields.struct("position", i - 1, Vec3), fields.struct("rotation", i - 1, Quat)
        X = pose(position, rotation)
        cases = {k: partial(_body_frame_vjp, m, i, joint, X) for k, joint in compiled(m.has, JOINTS.values()).items()}
        position_bar, rotation_bar = pose_vjp(position, rotation, switch(m.structure.body_joint[i], cases))
        bars.put("position", i - 1, position_bar)
        bars.put("rotation", i - 1, rotation_bar)


def _joint_frame(fields: Fields, i: Any, joint: Joint) -> Transform:
    """Link frame in the body frame: at the anchor; for an axial joint, with z along the axis."""
    R = axis_frame(normalize(fields.struct("axis", i, Vec3))) if joint.axial else Mat3.identity()
    return Transform(R, fields.struct("anchor", i, Vec3))


def _body_frame(m: ConstantsContext, i: Any, joint: Joint, Y: Transform) -> None:
    """Compute the frame of body i in its link, and placement and joint constants of a link that begins with it.

    Y: pose of the body in the link before it.
    """
    fields, row = m.fields, m.bodies[i]
    link, tree = m.out.link[m.model.link_of_body[i]], m.model.tree[m.model.link_of_body[i]]
    if not joint.nv:
        row.B = Y
        return
    link.damping, link.armature = fields.real("damping", i - 1), fields.real("armature", i - 1)
    if joint.floating:
        row.B = Transform.identity()
        return
    L = _joint_frame(fields, i - 1, joint)
    T = Y @ L

    def root() -> None:  # the tree's origin is at its root joint
        m.out.tree[tree].origin = T.r
        link.placement = Transform(T.R, Vec3.zero())

    def inner() -> None:
        link.placement = T

    switch(m.model.is_root[m.model.link_of_body[i]], {0: inner, 1: root})
    row.B = invert(L)
    if joint.axial:
        link.stiffness, link.reference = fields.real("stiffness", i - 1), fields.real("spring_reference", i - 1)
        link.pitch = fields.real("pitch", i - 1)
    if joint.limitable:
        link.low, link.high = (fields.real("limit", i - 1, 2, k) for k in range(2))
        link.limit_margin = fields.real("limit_margin", i - 1)
        ref, imp = (fields.struct(f"limit_{k}", i - 1, kind) for k, kind in (("solref", SolRef), ("solimp", SolImp)))
        link.limit = soften(ref, imp, m.numbers.least)
        link.limit_g = 1.0 / maximum(fields.real("dof_invweight0", m.structure.body_v[i]), LEAST)


def _body_frame_vjp(m: ConstantsContext, i: Any, joint: Joint, X: Transform) -> Force:
    """Return the cotangent of X, the pose of body i in its parent, and set the cotangents of its joint."""
    fields, bars, B_bar = m.fields, m.bars, m.bodies[i].B_bar
    link, parent = m.model.link_of_body[i], m.bodies[m.structure.body_parent[i]]
    own = m.out_bar.link[link]
    X_bar, anchor_bar, axis_bar = Force.zero(), Vec3.zero(), Vec3.zero()
    if not joint.nv:
        P_bar, X_bar = compose_vjp(parent.B, X, B_bar)
        parent.B_bar += P_bar
    elif not joint.floating:
        L = _joint_frame(fields, i - 1, joint)
        # the translation of a root's placement is the tree's origin, and its force is taken about that origin
        T_bar = force_to_child(m.out.link[link].placement, own.placement)
        Y = parent.B @ X
        Y_bar, L_bar = compose_vjp(Y, L, T_bar)
        P_bar, X_bar = compose_vjp(parent.B, X, Y_bar)
        parent.B_bar += P_bar
        L_all = L_bar + invert_vjp(L, B_bar)
        anchor_bar = L.R @ L_all.f
        if joint.axial:
            axis = fields.struct("axis", i - 1, Vec3)
            n_bar = axis_frame_vjp(normalize(axis), twist_to_matrix(L.R, L_all.n))
            axis_bar = normalize_vjp(axis, n_bar)
        if joint.limitable:
            bars.put_real("limit", i - 1, own.low, 2, 0)
            bars.put_real("limit", i - 1, own.high, 2, 1)
            bars.put_real("limit_margin", i - 1, own.limit_margin)
            ref, imp = (
                fields.struct(f"limit_{k}", i - 1, kind) for k, kind in (("solref", SolRef), ("solimp", SolImp))
            )
            ref_bar, imp_bar, _ = soften_vjp(ref, imp, m.numbers.least, own.limit)
            bars.put("limit_solref", i - 1, ref_bar)
            bars.put("limit_solimp", i - 1, imp_bar)
            add_invweight_bar(m, "dof_invweight0", m.structure.body_v[i], m.out.link[link].limit_g, own.limit_g)
    bars.put("anchor", i - 1, anchor_bar)
    bars.put("axis", i - 1, axis_bar)
    bars.put_real("damping", i - 1, own.damping if joint.nv else 0.0)
    bars.put_real("armature", i - 1, own.armature if joint.nv else 0.0)
    bars.put_real("stiffness", i - 1, own.stiffness if joint.axial else 0.0)
    bars.put_real("spring_reference", i - 1, own.reference if joint.axial else 0.0)
    bars.put_real("pitch", i - 1, own.pitch if joint.axial else 0.0)
    return X_bar


# -- sites -----------------------------------------------------------------------------------------------------------------
def sites(m: ConstantsContext) -> None:
    """Frames of sites."""
    for s in loop(m.model.ns):
        X = pose(m.fields.struct("site_position", s, Vec3), m.fields.struct("site_rotation", s, Quat))
        m.out.frame[m.model.nb + s].X = m.bodies[m.model.site_body[s]].B @ X


def sites_vjp(m: ConstantsContext) -> None:
    """Adjoint of `sites`."""
    for s in loop(m.model.ns):
        position, rotation = m.fields.struct("site_position", s, Vec3), m.fields.struct("site_rotation", s, Quat)
        body = m.bodies[m.model.site_body[s]]
        B_bar, X_bar = compose_vjp(body.B, pose(position, rotation), m.out_bar.frame[m.model.nb + s].X)
        body.B_bar += B_bar
        position_bar, rotation_bar = pose_vjp(position, rotation, X_bar)
        m.bars.put("site_position", s, position_bar)
        m.bars.put("site_rotation", s, rotation_bar)


# -- shapes ----------------------------------------------------------------------------------------------------------------
def shapes(m: ConstantsContext) -> None:
    """Poses, sizes, vertices, heights and bounds of shapes."""
    fields = m.fields
    for s in loop(m.model.nshape):
        row = m.out.shape[s]
        X = pose(fields.struct("shape_position", s, Vec3), fields.struct("shape_rotation", s, Quat))
        row.X = m.bodies[m.structure.shape_body[s]].B @ X
        row.size = fields.struct("shape_size", s, Vec3)
    for s in loop(m.model.nsurface) if m.has("surface") else ():
        x = [fields.real("surface_velocity", s, 6, k) for k in range(6)]
        m.out.surface[s].v, m.out.surface[s].w = Vec3(*x[:3]), Vec3(*x[3:])
    for k in loop(m.model.nvertex):
        m.out.vertex[k].p = fields.struct("vertex", k, Vec3)
    for k in loop(m.model.nheight):
        m.out.height[k].z = fields.real("height", k)
    for k in loop(m.model.nface):
        a, b, c = (m.out.vertex[m.structure.face_corner[3 * k + j]].p for j in range(3))
        n = cross(b - a, c - a)
        m.out.face[k].n = n / sqrt(maximum(dot(n, n), TINY))
    for s in loop(m.model.nshape):
        row = m.out.shape[s]
        row.radius = _radius(m, s)
        row.center, row.extent, row.inner = _box_around(m, s)


def shapes_vjp(m: ConstantsContext) -> None:
    """Adjoint of `shapes`."""
    fields, bars = m.fields, m.bars
    for s in loop(m.model.nshape):
        position, rotation = fields.struct("shape_position", s, Vec3), fields.struct("shape_rotation", s, Quat)
        body, bar = m.bodies[m.structure.shape_body[s]], m.out_bar.shape[s]
        B_bar, X_bar = compose_vjp(body.B, pose(position, rotation), bar.X)
        body.B_bar += B_bar
        position_bar, rotation_bar = pose_vjp(position, rotation, X_bar)
        bars.put("shape_position", s, position_bar)
        bars.put("shape_rotation", s, rotation_bar)
        bars.put("shape_size", s, bar.size)
    for s in loop(m.model.nsurface) if m.has("surface") else ():
        bar = m.out_bar.surface[s]
        for k, x in enumerate((*bar.v.leaves(), *bar.w.leaves())):
            bars.put_real("surface_velocity", s, x, 6, k)
    for k in loop(m.model.nvertex):
        bars.put("vertex", k, m.out_bar.vertex[k].p)
    for k in loop(m.model.nheight):
        bars.put_real("height", k, m.out_bar.height[k].z)


def _radius(m: ConstantsContext, s: Any) -> Any:
    """Radius of the bounding sphere of shape s about its frame (0 for a plane). Not differentiated: it only culls pairs."""
    size = m.out.shape[s].size

    def points() -> Any:
        far = carry(0.0)
        for k in loop(m.model.shape_vertex[s], m.model.shape_vertex[s + 1]):
            p = m.out.vertex[k].p
            far.value = maximum(far.value, dot(p, p))
        return sqrt(far.value)

    def field() -> Any:
        center, extent = _field_box(m, s)
        far = extent + center.map(abs)
        return sqrt(dot(far, far))

    by_kind: dict[int, Callable[[], Any]] = {
        PLANE: lambda: 0.0,
        HEIGHT_FIELD: field,
        SPHERE: lambda: size.x,
        CAPSULE: lambda: size.x + size.y,
        ELLIPSOID: lambda: maximum(maximum(size.x, size.y), size.z),
        BOX: lambda: sqrt(dot(size, size)),
        CYLINDER: lambda: sqrt(size.x * size.x + size.y * size.y),
        POINTS: points,
    }
    return switch(m.model.shape_kind[s], by_kind)


def _field_box(m: ConstantsContext, s: Any) -> tuple[Vec3, Vec3]:
    """Center and half extents of a height field's bounding box."""
    size, first = m.out.shape[s].size, m.model.shape_height[s]
    top = carry(-size.z)
    for k in loop(first, first + m.model.shape_rows[s] * m.model.shape_cols[s]):
        top.value = maximum(top.value, m.out.height[k].z)
    return Vec3(0.0, 0.0, (top.value - size.z) * 0.5), Vec3(size.x, size.y, (top.value + size.z) * 0.5)


def _box_around(m: ConstantsContext, s: Any) -> tuple[Vec3, Vec3, Vec3]:
    """Center and half extents of the bounding box of a shape's core, and a point of the core, all in its frame.

    See `collision/convex/solids.py`. Not differentiated: they only set where a search starts and when it ends.
    """
    size, nothing = m.out.shape[s].size, Vec3.zero()

    def points() -> tuple[Vec3, Vec3, Vec3]:
        begin, end = m.model.shape_vertex[s], m.model.shape_vertex[s + 1]
        first = m.out.vertex[begin].p
        low, high, total = carry(first), carry(first), carry(Vec3.zero())
        for k in loop(begin, end):
            p = m.out.vertex[k].p
            low.value, high.value, total.value = low.value.map(minimum, p), high.value.map(maximum, p), total.value + p
        middle = total.value / maximum(to_real(end - begin), 1.0)
        return (low.value + high.value) * 0.5, (high.value - low.value) * 0.5, middle

    by_kind: dict[int, Callable[[], Any]] = {
        PLANE: lambda: (nothing, nothing, nothing),
        HEIGHT_FIELD: lambda: (*_field_box(m, s), nothing),
        SPHERE: lambda: (nothing, nothing, nothing),
        CAPSULE: lambda: (nothing, Vec3(0.0, 0.0, size.y), nothing),
        ELLIPSOID: lambda: (nothing, size, nothing),
        CYLINDER: lambda: (nothing, Vec3(size.x, size.x, size.y), nothing),
        BOX: lambda: (nothing, size, nothing),
        POINTS: points,
    }
    return switch(m.model.shape_kind[s], by_kind)
