"""Contacts of two shapes in many placements at once, by our routines and by MuJoCo."""

import mujoco
import numpy as np

from artigrad.compiler.memory import NumpyMemory, Reals
from artigrad.compiler.numpy_target import NumpyTarget
from artigrad.compiler.values import staging_on
from artigrad.formats.hull import hull_in
from artigrad.model.hulls import hull_of
from artigrad.model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, PLANE, POINTS, SPHERE
from artigrad.physics.collision.candidates import slots_in
from artigrad.physics.collision.contact_geometry import FAR, Pose
from artigrad.physics.collision.convex.contact_record import CONVEX_CONTACT, saved_geometry
from artigrad.physics.collision.convex.hull_tables import CLIMBED, SCANNED, PlacedHull, tables_of
from artigrad.physics.collision.convex.solids import Solid
from artigrad.physics.collision.routines import BY_SHAPES, CONVEX, ROUTINES, SLOTS
from artigrad.physics.spatial import Mat3, Vec3

RING_BLOCKS = 5  # room for faces of 39 corners
KIND = {
    "plane": PLANE,
    "sphere": SPHERE,
    "capsule": CAPSULE,
    "ellipsoid": ELLIPSOID,
    "cylinder": CYLINDER,
    "box": BOX,
    "mesh": POINTS,
}


def random_rotations(rng, n):
    q = rng.normal(size=(n, 4))
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def tilts(rng, n, angle):
    """Small rotations about random axes."""
    w = rng.normal(size=(n, 3))
    w *= angle / np.linalg.norm(w, axis=1, keepdims=True)
    zero = np.zeros(n)
    skew = np.array([[zero, -w[:, 2], w[:, 1]], [w[:, 2], zero, -w[:, 0]], [-w[:, 1], w[:, 0], zero]])
    K = np.moveaxis(skew, 2, 0)
    return np.eye(3) + np.sin(angle) / max(angle, 1e-30) * K + (1 - np.cos(angle)) / max(angle, 1e-30) ** 2 * (K @ K)


def matrices(R):
    return Mat3(*(R[:, i, j] for i in range(3) for j in range(3)))


def vectors(r):
    return Vec3(*(r[:, i] for i in range(3)))


def three(size):
    return Vec3(*(list(map(float, size)) + [0.0] * (3 - len(size))))


def placed_hull(given, vertices, saved_geometry=None):
    """Hull of points, which may have moved slightly since its construction."""
    saved_geometry = saved_geometry or hull_of(np.asarray(given, float))
    row, reals = tables_of(np.asarray(given, float), saved_geometry)

    def array(x):
        return Reals(NumpyMemory(np.ravel(np.asarray(x, float)), 0))

    corners = np.asarray(vertices, float)
    normals = [np.cross(corners[f[1]] - corners[f[0]], corners[f[2]] - corners[f[0]]) for f in saved_geometry.faces]
    return PlacedHull(
        table=array(reals),
        size=len(reals),
        **{k.removeprefix("hull_"): x for k, x in row.items()},
        ways=frozenset({CLIMBED if row["hull_large"] else SCANNED}),
        vertices=array(corners),
        count=len(corners),
        normals=array([n / np.linalg.norm(n) for n in normals]),
        face_count=len(saved_geometry.faces),
    )


def solid(shape, X, size=None, vertices=None):
    """A placed shape: (kind, size); of a mesh, (kind, vertices), or (kind, vertices, hull)."""
    kind, given, *hull = shape
    if kind == "mesh":
        low, high = np.min(given, axis=0), np.max(given, axis=0)
        hull = placed_hull(given, given if vertices is None else vertices, *hull)
        box = three((low + high) / 2), three((high - low) / 2), three(np.mean(given, axis=0))
        return Solid(POINTS, frozenset({POINTS}), three(()), X, *box, hull)
    size = three(given) if size is None else size
    core = {
        "sphere": lambda: three(()),
        "capsule": lambda: Vec3(0.0, 0.0, size.y),
        "cylinder": lambda: Vec3(size.x, size.x, size.y),
    }
    return Solid(
        KIND[kind], frozenset({KIND[kind]}), size, X, three(()), core.get(kind, lambda: size)(), three(()), None
    )


def collided(a, b, X_a, X_b, near, n):
    """Return the rows of a pair of solids, its routine, and the solids."""
    slots, routine, solids = collide_pair(a, b, X_a, X_b, near, n)
    return [slots.rows[k] for k in range(len(routine.features))], routine, solids


def collide_pair(a, b, X_a, X_b, near, n):
    """Return the slots of a pair of solids, its routine, and the solids."""
    routine = ROUTINES[BY_SHAPES[KIND[a[0]], KIND[b[0]]]]
    margin = NumpyMemory(np.full((SLOTS * CONVEX_CONTACT.size + 200 * 8 * RING_BLOCKS, n), np.nan), 0)
    slots = slots_in(margin, frozenset({CONVEX}), RING_BLOCKS)
    one, other = (x if isinstance(x, Solid) else solid(s, x) for s, x in ((a, X_a), (b, X_b)))
    turned = float(KIND[a[0]] > KIND[b[0]])
    one, other = one._replace(later=turned), other._replace(later=1.0 - turned)
    routine.collide(one, other, near, slots)
    return slots, routine, (one, other)


class Contact:
    """Distances, points and normals (from a to b) of one placement's contacts within the margin."""

    def __init__(self, gaps, points, normals):
        self.gaps, self.points, self.normals = (np.asarray(x, float) for x in (gaps, points, normals))

    def __len__(self):
        return len(self.gaps)


def ours(a, b, poses, margin):
    """Return a Contact for each placement. a, b: (kind, size); poses: (Ra, ra, Rb, rb), each (n, ...)."""
    Ra, ra, Rb, rb = poses
    n = len(ra)
    routine = ROUTINES[BY_SHAPES[KIND[a[0]], KIND[b[0]]]]
    A, B = Pose(matrices(Ra), vectors(ra)), Pose(matrices(Rb), vectors(rb))
    with staging_on(NumpyTarget("f64", n)), np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if routine.collide is None:
            gaps = [routine.forward(A, three(a[1]), B, three(b[1]), Vec3(*at)) for at in routine.features]
        else:
            gaps = [saved_geometry(row) for row in collided(a, b, A, B, margin, n)[0]]
    phi = np.array([np.broadcast_to(g.phi, n) for g in gaps])
    p = np.array([[np.broadcast_to(x, n) for x in g.p.leaves()] for g in gaps])
    normal = np.array([[np.broadcast_to(x, n) for x in g.n.leaves()] for g in gaps])
    assert np.isfinite(phi).all()
    near = phi <= margin
    assert np.isfinite(p.transpose(0, 2, 1)[near]).all() and np.isfinite(normal.transpose(0, 2, 1)[near]).all()
    assert (phi[~near] <= FAR).all()
    return [Contact(phi[near[:, k], k], p[near[:, k], :, k], normal[near[:, k], :, k]) for k in range(n)]


class Theirs:
    """MuJoCo's contacts of two movable shapes."""

    def __init__(self, a, b, margin, flags=""):
        assets, bodies = "", ""
        for name, (kind, size, *_) in (("a", a), ("b", b)):
            if kind == "mesh":
                text = " ".join(f"{x:.17g}" for x in np.ravel(size))
                assets += f'<mesh name="{name}" vertex="{text}" inertia="convex"/>'
                geom = f'type="mesh" mesh="{name}"'
            else:
                sizes = size if kind != "plane" else (0, 0, 1)
                geom = f'type="{kind}" size="{" ".join(f"{x:.17g}" for x in sizes)}"'
            bodies += f'<body name="{name}" mocap="true"><geom name="{name}" {geom}/></body>'
        self.m = mujoco.MjModel.from_xml_string(f"""<mujoco><option><flag {flags}/></option><asset>{assets}</asset>
          <worldbody>{bodies}<body><freejoint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body></worldbody>
          <contact><pair geom1="a" geom2="b" margin="{margin}"/></contact></mujoco>""")
        self.d = mujoco.MjData(self.m)

    def placed(self, a, b, poses):
        """Both shapes and their poses as MuJoCo has them: a mesh is its hull, with its own frame in that of its body."""
        shapes, out, R = [], [], np.zeros(9)
        for g, shape in enumerate((a, b)):
            at, turn = poses[2 * g + 1], poses[2 * g]
            mujoco.mju_quat2Mat(R, self.m.geom_quat[g])
            out += [turn @ R.reshape(3, 3), at + turn @ self.m.geom_pos[g]]
            k = int(self.m.geom_dataid[g])
            shapes.append(shape if k < 0 else ("mesh", *hull_in(self.m, k)))
        return *shapes, tuple(out)

    def contacts(self, Ra, ra, Rb, rb):
        m, d, q = self.m, self.d, np.zeros(4)
        for k, (R, r) in enumerate(((Ra, ra), (Rb, rb))):
            mujoco.mju_mat2Quat(q, np.ascontiguousarray(R).ravel())
            d.mocap_pos[k], d.mocap_quat[k] = r, q
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_collision(m, d)
        sign = [1.0 if c.geom1 == 0 else -1.0 for c in d.contact]
        near = [k for k, c in enumerate(d.contact)]
        return Contact(
            [d.contact[k].dist for k in near],
            [d.contact[k].pos for k in near],
            [sign[k] * d.contact[k].frame[:3] for k in near],
        )


def same(one, other, tolerance):
    """Return True if two contacts have the same points in any order."""
    if len(one) != len(other):
        return False
    left = list(range(len(other)))
    for k in range(len(one)):
        off = [
            max(
                abs(one.gaps[k] - other.gaps[j]),
                np.abs(one.points[k] - other.points[j]).max(),
                np.abs(one.normals[k] - other.normals[j]).max(),
            )
            for j in left
        ]
        if not off or min(off) > tolerance:
            return False
        left.pop(int(np.argmin(off)))
    return True


def placements(rng, n, reach, tilt=None):
    """Random poses of A, and of B within `reach` of it, randomly rotated, or tilted by an angle relative to A."""
    Ra, ra = random_rotations(rng, n), rng.normal(size=(n, 3))
    direction = rng.normal(size=(n, 3))
    direction *= (reach * rng.random((n, 1)) ** 0.5) / np.linalg.norm(direction, axis=1, keepdims=True)
    turn = random_rotations(rng, n) if tilt is None else tilts(rng, n, tilt)
    return Ra, ra, np.einsum("nij,njk->nik", Ra, turn), ra + direction
