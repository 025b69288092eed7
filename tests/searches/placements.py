"""Pairs of solids at and near exact alignment: contacts compared with MuJoCo, with the least overlap and with neighbors."""

import functools
from itertools import combinations_with_replacement

import mujoco
import numpy as np

import artigrad as ag

from .outcome import Outcome

SUMMARY = (
    "Two solids of every kind, a floor among them, on and beside each other: faces, edges, centers and ends in line, turned by "
    "0 to 1e-3 rad, apart, touching, resting and deep. The least gap and its normal, compared with MuJoCo's, with the overlap "
    "along normals of faces and products of edges, and with the same placement moved by 1e-12. `--count` is of each pair."
)
COUNT, SAMPLE = 100_000, 200
BLOCK = 200  # states of one batch; a state has one placement of each pair
MARGIN = 0.005  # m; none where MuJoCo has the line of a capsule elsewhere with one
NEARBY = 1e-12  # change of positions (m) and quaternions for a neighboring placement
SHALLOW = 1e-5  # m, no gap of what just touches is less
SURE = 1e-8  # m, nearer to zero or to the margin rounding decides whether solids touch
LARGER = 1e-4  # m, by which an overlap is larger than another one, beside what a tilt of a face does
FLAT = 0.09  # rad: solids less than this from flat have the normal of a face, as in MuJoCo
DEEP = 1e-3  # m, beyond which a search may end at another minimum
TOUCHING = (2e-5, 1e-4, 5e-4)  # m, overlaps at which MuJoCo's face of solids that are apart is found
OTHERS = 8  # neighbors of each, since rounding decides between equal faces in MuJoCo too


def _box(x, y, z):
    return np.array([[a * x, b * y, c * z] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])


def _prism(sides, r, h):
    t = 2 * np.pi * np.arange(sides) / sides
    return np.array([[r * np.cos(a), r * np.sin(a), z] for a in t for z in (-h, h)])


def _ball(n):
    v = np.random.default_rng(0).normal(size=(n, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True) * [0.05, 0.06, 0.04]


# name: type, size or vertices, half lengths of the box around it
SOLIDS = {
    "sphere": ("sphere", (0.05,), (0.05, 0.05, 0.05)),
    "capsule": ("capsule", (0.03, 0.04), (0.03, 0.03, 0.07)),
    "ellipsoid": ("ellipsoid", (0.04, 0.05, 0.06), (0.04, 0.05, 0.06)),
    "cylinder": ("cylinder", (0.05, 0.04), (0.05, 0.05, 0.04)),
    "box": ("box", (0.05, 0.04, 0.03), (0.05, 0.04, 0.03)),
    "plate": ("box", (0.2, 0.2, 0.01), (0.2, 0.2, 0.01)),
    "die": ("mesh", _box(0.05, 0.04, 0.03), (0.05, 0.04, 0.03)),
    "prism": ("mesh", _prism(6, 0.05, 0.03), (0.05, 0.05 * np.sqrt(0.75), 0.03)),
    "ball": ("mesh", _ball(100), (0.05, 0.06, 0.04)),
}
NAMES = list(SOLIDS)
PAIRS = [*(("plane", b) for b in NAMES), *combinations_with_replacement(NAMES, 2)]


def _margin(pair):
    general = pair[1] == "cylinder" or SOLIDS[pair[1]][0] == "mesh"
    return 0.0 if pair[0] == "capsule" and general else MARGIN


@functools.cache
def _models():
    """Return MuJoCo's model and a simulator. For each pair two free bodies, or one above the floor, with no other contacts."""
    assets, bodies, pairs = "", "", ""
    for name, (kind, size, _) in SOLIDS.items():
        if kind == "mesh":
            text = " ".join(f"{x:.17g}" for x in np.ravel(size))
            assets += f'<mesh name="{name}" vertex="{text}" inertia="convex"/>'
    for k, pair in enumerate(PAIRS):
        for side, name in enumerate(pair):
            if name == "plane":
                continue
            kind, size, _ = SOLIDS[name]
            what = f'mesh="{name}"' if kind == "mesh" else f'size="{" ".join(map(str, size))}"'
            place = f'name="{k}.{side}" type="{kind}" {what}'
            bodies += f'<body name="{k}.{side}"><freejoint/><geom {place} contype="0" conaffinity="0"/></body>'
        first = "floor" if pair[0] == "plane" else f"{k}.0"
        pairs += f'<pair geom1="{first}" geom2="{k}.1" margin="{_margin(pair)}" condim="1"/>'
    floor = '<geom name="floor" type="plane" size="1 1 1" contype="0" conaffinity="0"/>'
    text = f"""<mujoco><option gravity="0 0 0"/><asset>{assets}</asset><worldbody>{floor}{bodies}</worldbody>
      <contact>{pairs}</contact></mujoco>"""
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.ccd_iterations, m.opt.ccd_tolerance = 500, 1e-12
    sim = ag.Simulator(ag.load(text), threads=2, max_contacts=4096)
    return m, sim


# -- placements --------------------------------------------------------------------------------------------------------------
def _matrices(q):
    """Rotations (n, 3, 3) of unit quaternions (n, 4)."""
    w, x, y, z = q.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def _product(a, b):
    """Return products of quaternions (n, 4)."""
    scalar = a[:, :1] * b[:, :1] - np.sum(a[:, 1:] * b[:, 1:], 1, keepdims=True)
    return np.hstack([scalar, a[:, :1] * b[:, 1:] + b[:, :1] * a[:, 1:] + np.cross(a[:, 1:], b[:, 1:])])


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _quarters(rng, n):
    """Return rotations by quarter turns, with the rounding of quaternions of half angles."""
    q = np.tile([1.0, 0, 0, 0], (n, 1))
    for _ in range(2):
        turn, axis = rng.integers(0, 4, n) * (np.pi / 4), np.eye(3)[rng.integers(0, 3, n)]
        q = _product(q, np.hstack([np.cos(turn)[:, None], np.sin(turn)[:, None] * axis]))
    return q


def _choice(rng, n, *values):
    return np.array(values)[rng.integers(0, len(values), n)]


TILTS = (0, 0, 0, 0, 1e-17, 1e-16, 3e-16, 1e-15, 1e-14, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def _placements(rng, pair, n):
    """Return positions (n, 7) of both, and tilts (n,)."""
    half_a = np.array([0.1, 0.1, 0.0] if pair[0] == "plane" else SOLIDS[pair[0]][2])
    half_b = np.array(SOLIDS[pair[1]][2])
    one = np.tile([1.0, 0, 0, 0], (n, 1))
    tilted = np.hstack([np.ones((n, 1)), rng.normal(size=(n, 3)) * np.where(rng.random((n, 3)) < 0.7, 1, 0)])
    tilt = _choice(rng, n, *TILTS)
    tilted[:, 1:] *= tilt[:, None]
    axis = np.full(n, 2) if pair[0] == "plane" else rng.integers(0, 3, n)
    yaw = np.where(rng.random(n) < 0.6, 0.0, np.where(rng.random(n) < 0.5, np.pi / 4, rng.uniform(0, 2 * np.pi, n)))
    turn = np.hstack([np.cos(yaw / 2)[:, None], np.sin(yaw / 2)[:, None] * np.eye(3)[axis]])
    quarter = _quarters(rng, n)
    between = _unit(_product(_product(tilted, turn), quarter))
    reach = np.einsum("nij,j->ni", np.abs(_matrices(quarter)), half_b)  # of B along A's axes, before the yaw
    gap = _choice(rng, n, -2e-5, -2e-5, -1e-3, 0.0, 1e-3, -0.5) * np.where(rng.random(n) < 0.7, 1, rng.random(n))
    gap = np.where(gap < -0.01, gap * np.minimum(half_a.max(), half_b.min()), gap)
    way, every = np.where(rng.random(n) < 0.5, -1.0, 1.0), np.arange(n)
    if pair[0] == "plane":
        way[:] = 1.0
    at = np.empty((n, 3))
    for k in range(3):
        spans = np.array(
            [0 * reach[:, k], half_a[k] - reach[:, k], half_a[k] + reach[:, k], half_a[k] + 0 * reach[:, k]]
        )
        which = rng.integers(0, 6, n)
        at[:, k] = np.where(which < 3, 0.0, spans[np.clip(which - 2, 0, 3), every]) * _choice(rng, n, -1, 1)
        random = rng.random(n) < 0.2
        at[random, k] = (rng.uniform(-1, 1, n) * (half_a[k] + reach[:, k]))[random]
    at[every, axis] = way * (half_a[axis] + reach[every, axis] + gap)
    placed = np.zeros((n, 3))
    orient = one.copy()
    if pair[0] != "plane":
        kind = rng.random(n)
        orient = np.where(
            (kind < 0.5)[:, None],
            one,
            np.where((kind < 0.7)[:, None], _quarters(rng, n), _unit(rng.normal(size=(n, 4)))),
        )
        placed = np.where((rng.random(n) < 0.5)[:, None], 0.0, rng.normal(size=(n, 3)))
    q_b = _unit(_product(orient, between))
    r_b = placed + np.einsum("nij,nj->ni", _matrices(orient), at)
    return np.hstack([placed, orient]), np.hstack([r_b, q_b]), tilt


# -- overlaps ----------------------------------------------------------------------------------------------------------------
class Placed:
    """Solid in n placements: extents along directions, and normals of possible least overlap."""

    def __init__(self, m, name, q):
        self.r, self.R, self.name = q[:, :3], _matrices(q[:, 3:]), name
        self.kind, self.size, self.half = SOLIDS[name] if name != "plane" else ("plane", (), ())
        if self.kind == "mesh":
            g = next(g for g in range(m.ngeom) if m.geom_dataid[g] == m.mesh(name).id)
            R, k = np.zeros(9), m.mesh(name).id
            mujoco.mju_quat2Mat(R, m.geom_quat[g])
            first, count = m.mesh_vertadr[k], m.mesh_vertnum[k]
            self.points = m.geom_pos[g] + m.mesh_vert[first : first + count].astype(float) @ R.reshape(3, 3).T

    def reach(self, n):
        """Return max of n . (p - r) over its points, n (N, 3) in world axes."""
        l = np.einsum("nij,ni->nj", self.R, n)
        across = np.hypot(l[:, 0], l[:, 1])
        s = self.size
        return {
            "plane": lambda: np.where(l[:, 2] > 1 - 1e-12, 0.0, 1e3),
            "sphere": lambda: s[0] * np.linalg.norm(l, axis=1),
            "capsule": lambda: s[0] * np.linalg.norm(l, axis=1) + s[1] * abs(l[:, 2]),
            "ellipsoid": lambda: np.linalg.norm(l * s, axis=1),
            "cylinder": lambda: s[0] * across + s[1] * abs(l[:, 2]),
            "box": lambda: np.abs(l) @ s,
            "mesh": lambda: (l @ self.points.T).max(1),
        }[self.kind]()

    def normals(self):
        """Return normals of faces and along axes, (k, n, 3), world axes; the second half is the negative of the first."""
        if self.kind in ("sphere", "plane"):
            return np.einsum("nij,kj->kni", self.R, [[0, 0, 1.0]][: self.kind == "plane"] or np.empty((0, 3)))
        turns = np.pi / 6 + np.pi / 3 * np.arange(3)
        own = [*([np.cos(t), np.sin(t), 0] for t in turns), [0, 0, 1.0]] if self.name == "prism" else np.eye(3)
        own = np.array(own)
        return np.einsum("nij,kj->kni", self.R, np.vstack([own, -own]))


class Pair:
    """Two solids in n placements: extents along directions, and normals of possible least overlap."""

    def __init__(self, m, names, a, b):
        self.a, self.b = (Placed(m, name, q) for name, q in zip(names, (a, b), strict=True))

    def overlap(self, n):
        """Return overlaps along unit normals from A to B (n, 3); a large number without a normal (NaN)."""
        there = np.isfinite(n).all(1)
        x = np.where(there[:, None], n, [0.0, 0.0, 1.0])
        found = self.a.reach(x) + self.b.reach(-x) - np.sum(x * (self.b.r - self.a.r), 1)
        return np.where(there, found, np.inf)

    def least(self, *others):
        """Return an upper bound of the least overlap, from faces, products of normals, line of centers and other normals."""
        a, b = self.a.normals(), -self.b.normals()
        center = self.b.r - self.a.r
        length = np.linalg.norm(center, axis=1, keepdims=True)
        candidates = [*a, *b, np.where(length > 1e-9, center / np.maximum(length, 1e-9), np.nan), *others]
        for x in a[: len(a) // 2]:
            for y in b[: len(b) // 2]:
                w = np.cross(x, y)
                sine = np.linalg.norm(w, axis=1, keepdims=True)
                w = np.where(sine > 1e-3, w / np.maximum(sine, 1e-3), np.nan)
                candidates += [w, -w]
        return np.min([self.overlap(n) for n in candidates], axis=0)


# -- contacts ----------------------------------------------------------------------------------------------------------------
class Found:
    """Contacts of states: for each state and pair their number, and distance and normal of the deepest one."""

    def __init__(self, states):
        shape = (states, len(PAIRS))
        self.count, self.gap = np.zeros(shape, int), np.full(shape, np.inf)
        self.normal = np.full((*shape, 3), np.nan)

    def add(self, state, pair, gap, normal):
        """Add contacts, (n,) and (n, 3): the deepest last."""
        order = np.argsort(-gap, kind="stable")
        np.add.at(self.count, (state, pair), 1)
        state, pair = np.broadcast_to(state, gap.shape)[order], pair[order]
        self.gap[state, pair], self.normal[state, pair] = gap[order], normal[order]


def _ours(sim, q):
    """Return contacts of `sim` at positions (n, nq)."""
    seen = sim.contacts(sim.rollout(ag.State(q, np.zeros((len(q), sim.model.nv))), steps=1))
    of = np.array([_pair_of(a if "." in a else b) for a, b in sim.contact_names])
    sign = np.array([-1.0 if a.endswith(".1") else 1.0 for a, _ in sim.contact_names])
    found = Found(len(q))
    state, k = np.nonzero(seen.gap[:, 0] < MARGIN)
    found.add(state, of[k], seen.gap[state, 0, k], sign[k, None] * seen.normal[state, 0, k])
    return found


def _theirs(m, q):
    """Return MuJoCo's contacts at positions (n, nq)."""
    d, found, names = mujoco.MjData(m), Found(len(q)), [m.geom(g).name for g in range(m.ngeom)]
    of = np.array([_pair_of(name) if "." in name else -1 for name in names])
    sign = np.array([-1.0 if name.endswith(".1") else 1.0 for name in names])
    for k in range(len(q)):
        d.qpos[:] = q[k]
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_collision(m, d)
        one, c = d.contact.geom[:, 0], d.contact
        pair = np.maximum(of[one], of[c.geom[:, 1]])
        found.add(k, pair, c.dist, sign[one, None] * c.frame[:, :3])
    return found


def _pair_of(name):
    return int(name.split(".")[0])


# -- the search --------------------------------------------------------------------------------------------------------------
def search(count, seed):
    """Draw and check `count` placements of each pair."""
    outcome, rng, (m, sim) = Outcome(), np.random.default_rng(seed), _models()
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        poses = [_placements(rng, pair, size) for pair in PAIRS]
        moved = [x for a, b, _ in poses for x in (a, b)]
        q = np.hstack([x for k, x in enumerate(moved) if PAIRS[k // 2][k % 2] != "plane"])
        near = (q + NEARBY * rng.normal(size=q.shape)).reshape(size, -1, 7)
        near[..., 3:] = _unit(near[..., 3:])
        found = (_ours(sim, q), _ours(sim, near.reshape(size, -1)), _theirs(m, q))
        for k, (a, b, tilt) in enumerate(poses):
            pair = Pair(m, PAIRS[k], a, b)
            whats = _verdicts(k, pair, tilt, *found)
            for i in np.flatnonzero(whats == FACE):
                if _once_touching(m, rng, k, pair, i, (a[i], b[i]), found[0], found[2]):
                    whats[i] = "apart: the face that MuJoCo has once they touch"
            outcome.counts.update(whats)
            for i in np.flatnonzero([what in FINDINGS for what in whats]):
                where = f"seed {seed}, block {first}, case {i}, {'+'.join(PAIRS[k])}"
                outcome.findings.append(f"{where}: {whats[i]}, a={a[i].tolist()}, b={b[i].tolist()}")
    return outcome


FACE = "a larger overlap than MuJoCo's"
FINDINGS = (
    "no contact",
    "a contact of what is apart",
    FACE,
    "another gap in the neighborhood",
)


def _verdicts(k, pair, tilt, ours, near, theirs):
    """Return the verdicts of each placement of pair k."""
    n, other = ours.normal[:, k], theirs.normal[:, k]
    least, margin = pair.least(n, near.normal[:, k], other), _margin(PAIRS[k])
    own, mujocos = pair.overlap(n), pair.overlap(other)
    gap, beside, dist = (x.gap[:, k] for x in (ours, near, theirs))
    other_gap, other_normal = (np.nan_to_num(x, nan=9.0, posinf=9.0) for x in (dist, other))
    touches, allowed = np.isfinite(gap), LARGER + FLAT * np.sin(np.minimum(tilt * 10, FLAT))
    jumps = abs(np.nan_to_num(gap - np.minimum(beside, 9.0))) > SHALLOW
    decided = [
        (~touches & ~np.isfinite(dist), "apart"),
        (
            ((abs(least) < SURE) & ~(gap < -SHALLOW)) | (abs(least + margin) < SURE),
            "touching or at the margin: rounding decides",
        ),
        (~touches & (least > 0), "no contact"),
        (~touches, "no contact of what is apart by less than the margin"),
        (least < -margin - SURE, "a contact of what is apart"),
        ((abs(gap - other_gap) < 1e-6) & (abs(n - other_normal).max(1) < 1e-4), "MuJoCo's gap and normal"),
        ((own > least + allowed) & (mujocos > least + allowed), "MuJoCo's overlap is not the least either"),
        (
            (own > least + allowed) & _lines(PAIRS[k]),
            "the line of a capsule or cylinder on another face, by MuJoCo's rule",
        ),
        ((own > least + allowed) & (least > DEEP), "deep: another minimum"),
        (own > least + allowed, FACE),
        (jumps & (least > DEEP), "deep: another minimum"),
        (jumps, "another gap in the neighborhood"),
        (mujocos > least + allowed, "MuJoCo's overlap is larger"),
    ]
    return np.select([x for x, _ in decided], [what for _, what in decided], "the least overlap, or one as large")


def _once_touching(m, rng, k, pair, i, poses, ours, theirs):
    """Return True if solids are apart at the gap found, along the normal of a face that MuJoCo has when they overlap.

    MuJoCo finds contacts of solids that are apart by overlaps of solids enlarged by the margin. Where their rounded edges
    overlap it has one point along the line between the nearest points, and the face only once the solids touch; a patch
    of ours is the same on both sides of touching.
    """
    normal = ours.normal[i, k]
    if ours.gap[i, k] < 0.0 or not np.isfinite(theirs.gap[i, k]):
        return False
    if abs(ours.gap[i, k] - theirs.gap[i, k]) > LARGER:
        return False
    moves = [0.0, *(depth + theirs.gap[i, k] for depth in TOUCHING)]
    b = np.repeat(poses[1][None], len(moves) * OTHERS, 0)
    b[:, :3] -= np.repeat(moves, OTHERS)[:, None] * theirs.normal[i, k]
    both = np.stack([np.repeat(poses[0][None], len(b), 0), b], 1)
    both += NEARBY * rng.normal(size=both.shape)
    both[..., 3:] = _unit(both[..., 3:])
    first = 7 * sum(name != "plane" for names in PAIRS[:k] for name in names)
    q = np.tile(m.qpos0, (len(b), 1))
    q[:, first : first + 14] = both.reshape(len(b), 14)
    found = _theirs(m, q).normal[:, k]
    return bool((np.abs(found - normal).max(1) < 1e-3).any())


def _lines(names):
    return bool({"capsule", "cylinder"} & set(names))
