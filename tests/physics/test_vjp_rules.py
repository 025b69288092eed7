"""Checks of every VJP rule: dot test, second-order Taylor remainder, linearity of the cotangents, inputs unchanged."""

import typing

import numpy as np
import pytest

import artigrad.physics.step  # noqa: F401  registers every pair of the physics
from artigrad.compiler import VJP_RULES
from artigrad.compiler.numpy_target import NumpyTarget
from artigrad.compiler.struct import flatten, unflatten
from artigrad.compiler.values import staging_on
from artigrad.physics.collision.contact_geometry import Pose
from artigrad.physics.constraints.hard.update import Update
from artigrad.physics.constraints.soft.impedance import SolImp, SolRef
from artigrad.physics.spatial import (
    Force,
    Mat3,
    Motion,
    Quat,
    Transform,
    Vec3,
    compose,
    quat_exp,
    quat_matrix,
    quat_normalize,
)
from artigrad.physics.tables import Muscle

LANES = 32
MOST_SEEDS = 40


class Watched(NumpyTarget):
    """Records the mask of every select; the code has no other branches, so the n-th one is always the same."""

    def __init__(self):
        super().__init__("f64", LANES)
        self.masks = []

    def select(self, mask, a, b):
        self.masks.append(np.broadcast_to(mask, LANES).copy())
        return np.where(mask, a, b)

    def watch(self, function, *arguments):
        """Return the result, and the choices: (selects, lanes)."""
        self.masks = []
        out = function(*arguments)
        return out, np.array(self.masks, bool).reshape(-1, LANES)


@pytest.fixture
def target():
    target = Watched()
    with staging_on(target):
        yield target


def sample(kind, rng):
    if issubclass(kind, Transform):
        return kind(quat_matrix(quat_normalize(sample(Quat, rng))), sample(Vec3, rng))
    leaves = [rng.normal(size=LANES) for _ in range(1 if kind is float else kind.size)]
    return leaves[0] if kind is float else kind.from_leaves(leaves)


# -- domains of functions -----------------------------------------------------------------------------
def unit(x):
    return x / np.sqrt(sum(c * c for c in x.leaves()))


def positive(x):
    return np.abs(x) + 0.2 if isinstance(x, np.ndarray) else x.map(lambda a: np.abs(a) + 0.2)


def shapes(inputs, rng):
    """Two shapes with positive sizes, some of them overlapping."""
    A, size_a, B, size_b, at = inputs
    near = B.r.map(lambda x: x * np.where(rng.random(LANES) < 0.3, 0.2, 1.5))
    return [A, positive(size_a), Pose(B.R, near), positive(size_b), at]


def update(inputs, rng):
    """A block of A is symmetric and positive; steps, and the limit, are above zero."""
    (x,) = inputs
    a = x.A.leaves()
    A = Mat3(*(abs(a[k]) + 1.0 if k % 4 == 0 else 0.2 * a[k] for k in range(9)))
    return [Update(A, x.w, x.lam, positive(x.inv), x.dn, np.abs(x.limit))]


def softness(inputs, rng):
    """References with both numbers of one sign; impedances slightly beyond their range."""
    ref, imp, least = inputs
    sign = np.where(rng.random(LANES) < 0.6, 1.0, -1.0)
    ref = SolRef(sign * (np.abs(ref.t) * 0.1 + 0.01), sign * (np.abs(ref.ratio) + 0.2))
    d0, d1, mid = (rng.uniform(-0.1, 1.1, size=LANES) for _ in range(3))
    power = 1.0 + imp.power * 0.5
    return [ref, SolImp(d0, np.maximum(d1, 0.05), imp.width, mid, power), 0.02 + 0.05 * np.abs(least)]


def references(inputs, rng):
    a, b, share = inputs
    return [
        softness([a, SolImp.zero(), 0.0], rng)[0],
        softness([b, SolImp.zero(), 0.0], rng)[0],
        np.abs(np.tanh(share)),
    ]


def muscle(inputs, rng):
    """Lengths and velocities within and beyond the range of a muscle; its parameters in order."""
    m, first, last, *motion = inputs
    low, high, force, shortest, longest, speed, passive, lengthening = (np.abs(x) for x in m.leaves())
    m = Muscle(
        0.7 * low, 0.7 * low + high + 0.2, force, -shortest, 1.5 + longest, speed + 0.2, passive, 1.2 + lengthening
    )
    return [m, first, first + np.abs(last) + 0.5, *(2.0 * x for x in motion)]


DOMAIN = {
    **dict.fromkeys(("muscle.active", "muscle.active_slope", "muscle.passive"), muscle),
    "impedance.soften": softness,
    "impedance.mix_ref": references,
    "impedance.mix_share": lambda inputs, rng: [
        np.abs(x) - np.where(rng.random(LANES) < 0.2, 9.0, 0.0) for x in inputs
    ],
    "rotations.axis_frame": lambda inputs, rng: [unit(x) for x in inputs],
    "rotations.contact_frame": lambda inputs, rng: [
        unit(inputs[0]),
        inputs[1] * np.where(rng.random(LANES) < 0.5, 0.1, 1.0),
    ],
    "cylinder.cylinder_ball": lambda inputs, rng: [positive(inputs[0]), *inputs[1:]],
    # an axis that passes through the box has a slope of zero there, and rounding chooses
    "box.box_segment": lambda inputs, rng: [positive(inputs[0]), inputs[1] * 2.5, *inputs[2:]],
    "box.box_ball": lambda inputs, rng: [positive(inputs[0]), *inputs[1:]],
    "scalars.bounded": lambda inputs, rng: [inputs[0], inputs[1], inputs[1] + np.abs(inputs[2])],
    "pyramid.tangents": update,
    "cone.tangents": update,
    "pyramid.steps": lambda inputs, rng: [update([Update(inputs[0], *[Vec3.zero()] * 3, 0.0, 1.0)], rng)[0].A],
    "cone.steps": lambda inputs, rng: [update([Update(inputs[0], *[Vec3.zero()] * 3, 0.0, 1.0)], rng)[0].A],
    **{
        f"{file}.{name}": shapes
        for file, names in {
            "plane": ("plane_sphere", "plane_capsule", "plane_box", "plane_ellipsoid", "plane_cylinder"),
            "sphere": ("sphere_sphere",),
            "capsule": ("capsule_sphere", "capsule_capsule"),
            "cylinder": ("cylinder_sphere",),
            "box": ("box_sphere", "box_capsule"),
        }.items()
        for name in names
    },
}
# files whose degenerate placements are held constant (centers that coincide, parallel axes) or only guarded (a slip of
# exactly zero, a muscle without any length): differences do not apply
HELD_CONSTANT = {"sphere", "capsule", "cylinder", "box", "plane", "cone", "impedance", "muscle"}


# -- tangents of what is not a vector space ------------------------------------------------------------------------------
def tangent_kind(kind):
    """Type of a tangent: a twist for a transform (stored as a Force's six numbers), otherwise the type itself."""
    return Force if issubclass(kind, Transform) else kind


def moved(x, d, h):
    if isinstance(x, Pose):  # a rigid motion of the world about its origin
        turn = quat_matrix(quat_exp(d.n * h))
        return Pose(turn @ x.R, turn @ x.r + d.f * h)
    if isinstance(x, Transform):  # a twist of the child
        return compose(x, Transform(quat_matrix(quat_exp(d.n * h)), d.f * h))
    return unflatten(x, iter([a + h * b for a, b in zip(flatten(x), flatten(d), strict=True)]))


def difference(a, b):
    """Return y1 - y0 in the coordinates paired with its cotangent."""
    if isinstance(a, Transform):
        R = b.R.T @ a.R
        th = [(R.zy - R.yz) / 2, (R.xz - R.zx) / 2, (R.yx - R.xy) / 2]
        return [*th, *(b.R.T @ (a.r - b.r)).leaves()]
    return [x - y for x, y in zip(flatten(a), flatten(b), strict=True)]


def pairing(bar, d):
    return sum(np.asarray(x) * np.asarray(y) for x, y in zip(flatten(bar), d, strict=True))


DUAL = {Motion: Force, Force: Motion, Transform: Force}


def bars_of(x):
    return tuple(x) if isinstance(x, tuple) else (x,)


def check(name, target, seed):
    """Run all checks at one draw; return the choices of the selects of forward and adjoint."""
    forward, vjp = VJP_RULES[name]
    hints = typing.get_type_hints(forward)
    out_kind = hints.pop("return")
    rng = np.random.default_rng(seed)
    inputs = [sample(kind, rng) for kind in hints.values()]
    inputs = DOMAIN.get(name, lambda inputs, rng: inputs)(inputs, rng)
    copies = [np.array(np.broadcast_arrays(*flatten(x), np.zeros(LANES))[:-1]) for x in inputs]
    ds = [sample(tangent_kind(kind), rng) for kind in hints.values()]
    y_bar = sample(DUAL.get(out_kind, out_kind), rng)
    bars, chosen_back = target.watch(vjp, *inputs, y_bar)
    bars = bars_of(bars)
    assert len(bars) == len(inputs)
    for x, before in zip(inputs, copies, strict=True):
        now = np.array(np.broadcast_arrays(*flatten(x), np.zeros(LANES))[:-1])
        np.testing.assert_array_equal(now, before)  # inputs untouched
    assert all(np.isfinite(leaf).all() for bar in bars for leaf in flatten(bar))

    slope = sum(pairing(bar, flatten(d)) for bar, d in zip(bars, ds, strict=True))
    middle, chosen = target.watch(forward, *inputs)

    def rise(h):
        """Return the pairing along the displacement, and the lanes that took the same branches."""
        end, there = target.watch(forward, *(moved(x, d, h) for x, d in zip(inputs, ds, strict=True)))
        return pairing(y_bar, difference(end, middle)), (there == chosen).all(0)

    ends = {h: rise(h) for h in (2e-5, 1e-5, -1e-5, -2e-5)}
    wide, narrow = ((ends[h][0] - ends[-h][0]) / (2 * h) for h in (2e-5, 1e-5))
    smooth, scale = np.logical_and.reduce([same for _, same in ends.values()]), 1 + np.abs(slope)
    off = np.broadcast_to(((4 * narrow - wide) / 3 - slope) / scale, LANES)
    np.testing.assert_allclose(off[smooth], 0.0, atol=1e-8)  # dot test
    assert smooth.mean() > 0.5

    far = {h: rise(h) for h in (1e-2, 5e-3)}
    smooth = np.logical_and.reduce([same for _, same in far.values()])
    wide, narrow = (np.abs(np.broadcast_to(y - h * slope, LANES))[smooth] for h, (y, _) in far.items())
    # Taylor: second order; not yet at these steps for the few draws that lie beside a singularity
    assert smooth.sum() == 0 or np.mean((wide < 1e-12) | (narrow < 0.35 * wide)) > 0.7

    doubled = bars_of(vjp(*inputs, unflatten(y_bar, iter([2.0 * a for a in flatten(y_bar)]))))
    for a, b in zip(bars, doubled, strict=True):  # bars accumulate because they are linear
        for x, y in zip(flatten(a), flatten(b), strict=True):
            np.testing.assert_allclose(y, 2.0 * np.asarray(x), rtol=1e-12, atol=1e-12)
    return [*chosen, *chosen_back]


@pytest.mark.parametrize("name", sorted(VJP_RULES))
def test_adjoint_of_a_pair(name, target):
    seen = None
    for seed in range(MOST_SEEDS):
        masks = check(name, target, seed)
        now = np.array([(m.any(), not m.all()) for m in masks], bool).reshape(-1, 2)
        seen = now if seen is None else seen | now
        if seed >= 2 and seen.all():
            return
    assert name.split(".")[0] in HELD_CONSTANT, f"selects {np.flatnonzero(~seen.all(1))} of {name} go one way only"


def test_every_adjoint_of_the_leaves_is_registered():
    """Every f_vjp beside f that is a function of values only is registered."""
    import inspect
    import sys

    registered = {rule.vjp for rule in VJP_RULES.values()}
    for name, module in sorted(sys.modules.items()):
        if not name.startswith(
            ("artigrad.physics.spatial", "artigrad.physics.collision", "artigrad.physics.constraints.hard")
        ):
            continue
        for key, thing in vars(module).items():
            if key.endswith("_vjp") and inspect.isfunction(thing) and thing.__module__ == name:
                arguments = [p.annotation for p in inspect.signature(thing).parameters.values()]
                staged = any(
                    a in ("Step", "ContactProblem", "Any", "Callable", "PairRoutine", "Solid", "Row")
                    for a in map(str, arguments)
                )
                assert thing in registered or staged or key.startswith("_"), f"{name}.{key}"


def test_register_is_complete():
    """The registry has all operators of the physics."""
    wanted = """vectors.dot vectors.cross vectors.outer vectors.norm vectors.normalize vectors.mat_apply
    vectors.mat_product vectors.sym_apply vectors.rotate rotations.quat_product rotations.quat_normalize
    rotations.quat_matrix rotations.quat_exp motion.power motion.cross_motion motion.cross_force motion.at_point
    transform.to_child transform.to_parent transform.force_to_parent transform.force_to_child transform.compose
    transform.invert inertia.momentum inertia.shift inertia.inertia_at_origin inertia.articulated_apply
    inertia.articulated_outer"""
    assert set(wanted.split()) <= set(VJP_RULES)
