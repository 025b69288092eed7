"""One test for every registered pair: dot test, second-order Taylor remainder, linearity of the bars, inputs untouched."""

import typing

import numpy as np
import pytest

from artigrad.spatial import Force, Motion, Quat, Transform, Vec3, compose, quat_exp, quat_matrix, quat_normalise
from artigrad.staging import PAIRS
from artigrad.staging.numpy_target import NumpyTarget
from artigrad.staging.struct import flatten, unflatten
from artigrad.staging.values import staging_on

LANES = 7


@pytest.fixture(autouse=True)
def _numpy_target():
    with staging_on(NumpyTarget("f64", LANES)):
        yield


def sample(kind, rng):
    if kind is Transform:
        return Transform(quat_matrix(quat_normalise(sample(Quat, rng))), sample(Vec3, rng))
    leaves = [rng.normal(size=LANES) for _ in range(1 if kind is float else kind.size)]
    return leaves[0] if kind is float else kind.from_leaves(leaves)


def tangent_kind(kind):
    """A transform moves by a twist (stored as a Force's six numbers); everything else by adding its own kind."""
    return Force if kind is Transform else kind


DUAL = {Motion: Force, Force: Motion, Transform: Force}


def moved(x, d, h):
    if isinstance(x, Transform):
        rotation = quat_matrix(quat_exp(d.n * h))
        return compose(x, Transform(rotation, d.f * h))
    return unflatten(x, iter([a + h * b for a, b in zip(flatten(x), flatten(d), strict=True)]))


def difference(a, b):
    """y1 - y0 in the coordinates that its cotangent pairs with."""
    if isinstance(a, Transform):
        R = b.R.T @ a.R
        th = [(R.zy - R.yz) / 2, (R.xz - R.zx) / 2, (R.yx - R.xy) / 2]
        return [*th, *(b.R.T @ (a.r - b.r)).leaves()]
    return [x - y for x, y in zip(flatten(a), flatten(b), strict=True)]


def pairing(bar, d):
    return sum(np.asarray(x) * np.asarray(y) for x, y in zip(flatten(bar), d, strict=True))


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_pair(name):
    forward, vjp = PAIRS[name]
    hints = typing.get_type_hints(forward)
    out_kind = hints.pop("return")
    rng = np.random.default_rng(0)
    inputs = [sample(kind, rng) for kind in hints.values()]
    if name == "rotations.axis_frame":
        inputs = [x / np.sqrt(sum(c * c for c in x.leaves())) for x in inputs]
    if name == "box.box_ball":
        inputs[0] = inputs[0].map(lambda x: np.abs(x) + 0.2)
    copies = [np.array(flatten(x)) for x in inputs]
    ds = [sample(tangent_kind(kind), rng) for kind in hints.values()]
    y_bar = sample(DUAL.get(out_kind, out_kind), rng)
    bars = vjp(*inputs, y_bar)
    bars = bars if isinstance(bars, tuple) else (bars,)
    assert len(bars) == len(inputs)
    for x, before in zip(inputs, copies, strict=True):
        np.testing.assert_array_equal(np.array(flatten(x)), before)  # inputs untouched

    slope = sum(pairing(bar, flatten(d)) for bar, d in zip(bars, ds, strict=True))

    def rise(h):
        ends = [forward(*(moved(x, d, s) for x, d in zip(inputs, ds, strict=True))) for s in (h, 0.0)]
        return pairing(y_bar, difference(*ends))

    central = (rise(1e-5) - rise(-1e-5)) / 2e-5
    scale = 1 + abs(slope)
    np.testing.assert_allclose(central / scale, slope / scale, atol=1e-8)  # dot test

    remainder = [np.abs(rise(h) - h * slope).max() for h in (1e-2, 5e-3)]
    assert remainder[0] < 1e-12 or remainder[1] < 0.3 * remainder[0]  # Taylor: second order

    doubled = vjp(*inputs, unflatten(y_bar, iter([2.0 * a for a in flatten(y_bar)])))
    doubled = doubled if isinstance(doubled, tuple) else (doubled,)
    for a, b in zip(bars, doubled, strict=True):  # bars accumulate because they are linear
        np.testing.assert_allclose(
            2 * np.array(np.broadcast_arrays(*flatten(a))),
            np.array(np.broadcast_arrays(*flatten(b))),
            rtol=1e-12,
            atol=1e-12,
        )


def test_register_is_complete():
    """The operators the physics is built from are all there."""
    wanted = """vectors.dot vectors.cross vectors.outer vectors.norm vectors.normalise vectors.mat_apply
    vectors.mat_product vectors.sym_apply vectors.rotate rotations.quat_product rotations.quat_normalise
    rotations.quat_matrix rotations.quat_exp motion.power motion.cross_motion motion.cross_force motion.at_point
    transform.to_child transform.to_parent transform.force_to_parent transform.force_to_child transform.compose
    transform.invert inertia.momentum inertia.shift inertia.inertia_at_origin inertia.articulated_apply
    inertia.articulated_outer"""
    assert set(wanted.split()) <= set(PAIRS)
