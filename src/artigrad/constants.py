"""Constants of the links from Params, and the way back. Runs once per call, not once per step.

Three things are settled here so that a step need not know them: bodies on fixed joints are merged into their link; the
link frame sits at the joint's anchor with the joint's axis along z; servos become one affine law. `position` and
`rotation` of a free joint have no effect on the dynamics (they only give the default state), so their gradient is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .model import BOX, CAPSULE, CYLINDER, PLANE, POINTS, POSITION, SPHERE, VELOCITY
from .spatial import (
    Force,
    Inertia,
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
    normalise,
    normalise_vjp,
    pose,
    pose_vjp,
    shift,
    shift_vjp,
    twist_to_matrix,
)
from .spatial.vectors import Mat3
from .staging import Layout, Reals, Table, carry, loop, maximum, select, sqrt, switch
from .tables import FIELD_INDEX, JOINT_INDEX, Constants, Topology

# scratch, one row per body with the world first: the body frame in its link, and its cotangent
BODY = Layout(B=Transform, B_bar=Force)
NO_LIMIT = 1e30


class Fields:
    """Typed access to the flat parameters by name."""

    def __init__(self, slots: Any, reals: Reals):
        self.slots, self.reals = slots, reals

    def at(self, name: str, index: Any, size: int) -> Any:
        return self.slots[FIELD_INDEX[name]] + index * size

    def real(self, name: str, index: Any, size: int = 1, k: int = 0) -> Any:
        return self.reals[self.at(name, index, size) + k]

    def struct(self, name: str, index: Any, kind: Any) -> Any:
        return self.reals.struct(self.at(name, index, kind.size), kind)

    def put(self, name: str, index: Any, value: Any) -> None:
        self.reals.put(self.at(name, index, value.size), value)

    def put_real(self, name: str, index: Any, value: Any, size: int = 1, k: int = 0) -> None:
        self.reals[self.at(name, index, size) + k] = value


def _joint_frame(fields: Fields, i: Any, joint: str) -> Transform:
    """The link frame in the body frame: at the anchor; for an axis, with z along it."""
    R = axis_frame(normalise(fields.struct("axis", i, Vec3))) if joint in ("revolute", "prismatic") else Mat3.identity()
    return Transform(R, fields.struct("anchor", i, Vec3))


def constants(topology: Topology, structure: Any, params: Reals, work: Reals, out: Constants) -> None:
    """out = constants(params)"""
    fields = Fields(structure.slots, params)
    rows = Table(work.memory, BODY, work.start)
    out.gravity = fields.struct("gravity", 0, Vec3)
    for i in loop(topology.nl):
        row = out.link[i]
        row.I, row.placement = Inertia.zero(), Transform.identity()
        row.damping, row.armature, row.stiffness, row.reference = 0.0, 0.0, 0.0, 0.0
        row.low, row.high, row.dry = -NO_LIMIT, NO_LIMIT, 0.0
    for k in loop(topology.nt + 1):
        out.tree[k].origin = Vec3.zero()
    rows[0].B = Transform.identity()

    for i in loop(1, topology.nb + 1):
        _place_body(topology, structure, fields, rows, i, out)
        B = rows[i].B
        c = fields.struct("com", i - 1, Vec3)
        mass, Ic = fields.real("mass", i - 1), fields.struct("inertia", i - 1, Sym3)
        link = out.link[topology.link_of_body[i]]
        link.I += shift(B, inertia_at_origin(mass, c, Ic))
        out.frame[i - 1].X = B
        out.body[i - 1].com = B.r + B.R @ c

    for s in loop(topology.ns):
        X = pose(fields.struct("site_position", s, Vec3), fields.struct("site_rotation", s, Quat))
        out.frame[topology.nb + s].X = rows[topology.site_body[s]].B @ X
    for j in loop(topology.nu):
        _actuator(structure, fields, j, out)
    for s in loop(topology.nshape):
        row = out.shape[s]
        X = pose(fields.struct("shape_position", s, Vec3), fields.struct("shape_rotation", s, Quat))
        row.X = rows[structure.shape_body[s]].B @ X
        row.size = fields.struct("shape_size", s, Vec3)
        row.friction, row.restitution = fields.real("friction", s), fields.real("restitution", s)
    for k in loop(topology.nvertex):
        out.vertex[k].p = fields.struct("vertex", k, Vec3)
    for s in loop(topology.nshape):
        out.shape[s].radius = _radius(structure, s, out)


def _radius(structure: Any, s: Any, out: Constants) -> Any:
    """Of the sphere about the frame of shape s that holds all of it (a plane has none). Not differentiated: it decides
    only which pairs are looked at."""
    size = out.shape[s].size

    def points() -> Any:
        far = carry(0.0)
        for k in loop(structure.shape_vertex[s], structure.shape_vertex[s + 1]):
            p = out.vertex[k].p
            far.value = maximum(far.value, dot(p, p))
        return sqrt(far.value)

    by_kind: dict[int, Callable[[], Any]] = {
        PLANE: lambda: 0.0,
        SPHERE: lambda: size.x,
        CAPSULE: lambda: size.x + size.y,
        BOX: lambda: sqrt(dot(size, size)),
        CYLINDER: lambda: sqrt(size.x * size.x + size.y * size.y),
        POINTS: points,
    }
    return switch(structure.shape_kind[s], by_kind)


def _place_body(topology: Topology, structure: Any, fields: Fields, rows: Table, i: Any, out: Constants) -> None:
    """Body i in its link, and the placement and joint constants of a link that begins here."""
    link = topology.link_of_body[i]
    P = rows[structure.body_parent[i]].B
    X = pose(fields.struct("position", i - 1, Vec3), fields.struct("rotation", i - 1, Quat))

    def common() -> None:
        out.link[link].damping = fields.real("damping", i - 1)
        out.link[link].armature = fields.real("armature", i - 1)

    def fixed() -> None:
        rows[i].B = P @ X

    def moving(joint: str) -> None:
        L = _joint_frame(fields, i - 1, joint)
        T = P @ X @ L
        common()

        def root() -> None:  # the tree's origin is where its root joint sits
            out.tree[topology.tree[link]].origin = T.r
            out.link[link].placement = Transform(T.R, Vec3.zero())

        def inner() -> None:
            out.link[link].placement = T

        switch(topology.is_root[link], {0: inner, 1: root})
        rows[i].B = invert(L)

    def axial(joint: str) -> None:
        moving(joint)
        out.link[link].stiffness = fields.real("stiffness", i - 1)
        out.link[link].reference = fields.real("spring_reference", i - 1)
        out.link[link].low, out.link[link].high = (fields.real("limit", i - 1, 2, k) for k in range(2))
        out.link[link].dry = fields.real("dry_friction", i - 1)

    def free() -> None:
        common()
        rows[i].B = Transform.identity()

    switch(
        structure.body_joint[i],
        {
            JOINT_INDEX["fixed"]: fixed,
            JOINT_INDEX["revolute"]: lambda: axial("revolute"),
            JOINT_INDEX["prismatic"]: lambda: axial("prismatic"),
            JOINT_INDEX["spherical"]: lambda: moving("spherical"),
            JOINT_INDEX["free"]: free,
        },
    )


def _actuator(structure: Any, fields: Fields, j: Any, out: Constants) -> None:
    """force = clamp(clamp(gain u + b0 + b1 length, +-drive) + b2 velocity, force range); drive = -b2 max_velocity"""
    row = out.actuator[j]
    gain = fields.real("gain", j)
    b0, b1, b2 = (fields.real("bias", j, 3, k) for k in range(3))
    on_length, on_velocity = switch(structure.act_kind[j], _SERVO)
    b1, b2 = b1 - gain * on_length, b2 - gain * on_velocity
    limited, top = _speed_limit(fields, j)
    row.gear, row.gain, row.b0, row.b1, row.b2 = fields.real("gear", j), gain, b0, b1, b2
    row.low, row.high = (fields.real("control_range", j, 2, k) for k in range(2))
    row.force_low, row.force_high = (fields.real("force_range", j, 2, k) for k in range(2))
    row.drive = select(limited, -(b2 * top), NO_LIMIT)


_SERVO = {0: lambda: (0.0, 0.0), POSITION: lambda: (1.0, 0.0), VELOCITY: lambda: (0.0, 1.0)}


def _speed_limit(fields: Fields, j: Any) -> tuple[Any, Any]:
    """Whether actuator j has a speed limit, and that limit (0 if it has none, so that nothing infinite is multiplied)."""
    top = fields.real("max_velocity", j)
    limited = top < NO_LIMIT
    return limited, select(limited, top, 0.0)


def constants_vjp(
    topology: Topology,
    structure: Any,
    params: Reals,
    work: Reals,
    out: Constants,
    out_bar: Constants,
    params_bar: Reals,
) -> None:
    """params_bar = the cotangent of params; the forward pass is run again for the frames of the bodies."""
    constants(topology, structure, params, work, out)
    fields, bars = Fields(structure.slots, params), Fields(structure.slots, params_bar)
    rows = Table(work.memory, BODY, work.start)
    bars.put("gravity", 0, out_bar.gravity)
    for i in loop(topology.nb + 1):
        rows[i].B_bar = Force.zero()

    for j in loop(topology.nu):
        _actuator_vjp(structure, fields, j, out_bar, bars)
    for s in loop(topology.nshape):
        position, rotation = fields.struct("shape_position", s, Vec3), fields.struct("shape_rotation", s, Quat)
        body, bar = rows[structure.shape_body[s]], out_bar.shape[s]
        B_bar, X_bar = compose_vjp(body.B, pose(position, rotation), bar.X)
        body.B_bar += B_bar
        position_bar, rotation_bar = pose_vjp(position, rotation, X_bar)
        bars.put("shape_position", s, position_bar)
        bars.put("shape_rotation", s, rotation_bar)
        bars.put("shape_size", s, bar.size)
        bars.put_real("friction", s, bar.friction)
        bars.put_real("restitution", s, bar.restitution)
    for k in loop(topology.nvertex):
        bars.put("vertex", k, out_bar.vertex[k].p)
    for s in loop(topology.ns):
        position, rotation = fields.struct("site_position", s, Vec3), fields.struct("site_rotation", s, Quat)
        body = rows[topology.site_body[s]]
        B_bar, X_bar = compose_vjp(body.B, pose(position, rotation), out_bar.frame[topology.nb + s].X)
        body.B_bar += B_bar
        position_bar, rotation_bar = pose_vjp(position, rotation, X_bar)
        bars.put("site_position", s, position_bar)
        bars.put("site_rotation", s, rotation_bar)

    for i in loop(1, topology.nb + 1, inwards=True):
        row, link_bar = rows[i], out_bar.link[topology.link_of_body[i]]
        B = row.B
        c = fields.struct("com", i - 1, Vec3)
        mass, Ic = fields.real("mass", i - 1), fields.struct("inertia", i - 1, Sym3)
        com_bar = B.R.T @ out_bar.body[i - 1].com  # com = B.r + B.R c
        B_bar, I_bar = shift_vjp(B, inertia_at_origin(mass, c, Ic), link_bar.I)
        row.B_bar += out_bar.frame[i - 1].X + Force(cross(c, com_bar), com_bar) + B_bar
        mass_bar, c_bar, Ic_bar = inertia_at_origin_vjp(mass, c, Ic, I_bar)
        bars.put_real("mass", i - 1, mass_bar)
        bars.put("com", i - 1, c_bar + com_bar)
        bars.put("inertia", i - 1, Ic_bar)
        _place_body_vjp(topology, structure, fields, rows, i, out, out_bar, bars)


def _place_body_vjp(
    topology: Topology,
    structure: Any,
    fields: Fields,
    rows: Table,
    i: Any,
    out: Constants,
    out_bar: Constants,
    bars: Fields,
) -> None:
    link = topology.link_of_body[i]
    parent, B_bar = rows[structure.body_parent[i]], rows[i].B_bar
    position, rotation = fields.struct("position", i - 1, Vec3), fields.struct("rotation", i - 1, Quat)
    X = pose(position, rotation)

    def put_joint(damping: Any, armature: Any, stiffness: Any, reference: Any, anchor: Vec3, axis: Vec3) -> None:
        bars.put_real("damping", i - 1, damping)
        bars.put_real("armature", i - 1, armature)
        bars.put_real("stiffness", i - 1, stiffness)
        bars.put_real("spring_reference", i - 1, reference)
        bars.put("anchor", i - 1, anchor)
        bars.put("axis", i - 1, axis)

    def put_placement(X_bar: Force) -> None:
        position_bar, rotation_bar = pose_vjp(position, rotation, X_bar)
        bars.put("position", i - 1, position_bar)
        bars.put("rotation", i - 1, rotation_bar)

    def fixed() -> None:
        P_bar, X_bar = compose_vjp(parent.B, X, B_bar)
        parent.B_bar += P_bar
        put_placement(X_bar)
        put_joint(0.0, 0.0, 0.0, 0.0, Vec3.zero(), Vec3.zero())

    def moving(joint: str) -> None:
        own = out_bar.link[link]
        L = _joint_frame(fields, i - 1, joint)
        # a root's placement has its translation in the tree's origin, and its force is taken about that origin
        T_bar = force_to_child(out.link[link].placement, own.placement)
        Y = parent.B @ X
        Y_bar, L_bar = compose_vjp(Y, L, T_bar)
        P_bar, X_bar = compose_vjp(parent.B, X, Y_bar)
        parent.B_bar += P_bar
        put_placement(X_bar)
        L_all = L_bar + invert_vjp(L, B_bar)
        anchor_bar = L.R @ L_all.f
        if joint == "spherical":
            put_joint(own.damping, own.armature, 0.0, 0.0, anchor_bar, Vec3.zero())
            return
        bars.put_real("limit", i - 1, own.low, 2, 0)
        bars.put_real("limit", i - 1, own.high, 2, 1)
        bars.put_real("dry_friction", i - 1, own.dry)
        axis = fields.struct("axis", i - 1, Vec3)
        n_bar = axis_frame_vjp(normalise(axis), twist_to_matrix(L.R, L_all.n))
        axis_bar = normalise_vjp(axis, n_bar)
        put_joint(own.damping, own.armature, own.stiffness, own.reference, anchor_bar, axis_bar)

    def free() -> None:
        own = out_bar.link[link]
        put_placement(Force.zero())
        put_joint(own.damping, own.armature, 0.0, 0.0, Vec3.zero(), Vec3.zero())

    switch(
        structure.body_joint[i],
        {
            JOINT_INDEX["fixed"]: fixed,
            JOINT_INDEX["revolute"]: lambda: moving("revolute"),
            JOINT_INDEX["prismatic"]: lambda: moving("prismatic"),
            JOINT_INDEX["spherical"]: lambda: moving("spherical"),
            JOINT_INDEX["free"]: free,
        },
    )


def _actuator_vjp(structure: Any, fields: Fields, j: Any, out_bar: Constants, bars: Fields) -> None:
    bar = out_bar.actuator[j]
    gain = fields.real("gain", j)
    on_length, on_velocity = switch(structure.act_kind[j], _SERVO)
    b2 = fields.real("bias", j, 3, 2) - gain * on_velocity
    limited, top = _speed_limit(fields, j)
    b1_bar = bar.b1
    b2_bar = bar.b2 - bar.drive * top
    bars.put_real("gear", j, bar.gear)
    bars.put_real("gain", j, bar.gain - b1_bar * on_length - b2_bar * on_velocity)
    for k, b_bar in enumerate((bar.b0, b1_bar, b2_bar)):
        bars.put_real("bias", j, b_bar, 3, k)
    bars.put_real("control_range", j, bar.low, 2, 0)
    bars.put_real("control_range", j, bar.high, 2, 1)
    bars.put_real("force_range", j, bar.force_low, 2, 0)
    bars.put_real("force_range", j, bar.force_high, 2, 1)
    bars.put_real("max_velocity", j, select(limited, -(bar.drive * b2), 0.0))
