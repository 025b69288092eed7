"""Adjoints derived while staging, beside forward mode and finite differences."""

import numpy as np
import pytest

from artigrad.compiler import (
    ROBOTS,
    Dual,
    Kernel,
    StagingError,
    Target,
    arctan2,
    clamp,
    exp,
    expm1,
    half_angle,
    log,
    maximum,
    pullback,
    select,
    sincos,
    sqrt,
    steady,
    tanh,
)
from artigrad.compiler.numpy_target import NumpyTarget
from artigrad.compiler.values import staging_on
from artigrad.physics.spatial import Quat, Transform, Vec3, cross, dot, pose

LANES = 16
FUNCTIONS = {
    "arithmetic": lambda x, y: (x + 2.0) * y - x / (y - 3.0) + 1.0 / x - (2.0 - y) - -x * 0.5,
    "choices": lambda x, y: abs(x) * maximum(x, y) + clamp(y, -0.5, 0.5) * x + select(x < y, x * x, y),
    "roots": lambda x, y: sqrt(x * x + y * y) + sqrt(maximum(x, 0.0)),
    "sines": lambda x, y: sincos(x * y)[0] * sincos(y)[1],
    "exponentials": lambda x, y: exp(x) + expm1(y * x) + tanh(y),
    "logarithms": lambda x, y: log(2.0 + x * x) * y,
    "angles": lambda x, y: arctan2(exp(y), x * x),
    "rotations": lambda x, y: half_angle(x * x + y * y)[1] * y + half_angle(x * x)[2],
}


@pytest.fixture
def inputs():
    rng = np.random.default_rng(0)
    with staging_on(NumpyTarget("f64", LANES)):
        yield rng.normal(size=LANES), rng.normal(size=LANES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_cotangents_equal_forward_mode(name, inputs):
    f, (x, y) = FUNCTIONS[name], inputs
    value, back = pullback(f, x, y)
    np.testing.assert_array_equal(value, f(x, y))
    along_x, along_y = (f(Dual(x, dx), Dual(y, dy)).d for dx, dy in ((np.ones(LANES), 0.0), (0.0, np.ones(LANES))))
    x_bar, y_bar = back(np.full(LANES, 2.0))
    np.testing.assert_allclose(x_bar, 2.0 * along_x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(y_bar, 2.0 * along_y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_of_cotangents_equal_differences(name, inputs):
    f, (x, y), h = FUNCTIONS[name], inputs, 1e-5

    def slope(x, y):
        return pullback(f, x, y)[1](1.0)

    far = {k: slope(x + k * h, y - 0.5 * k * h) for k in (-2, -1, 1, 2)}
    for k, bar in enumerate(slope(Dual(x, np.ones(LANES)), Dual(y, np.full(LANES, -0.5)))):
        wide, narrow = (far[2][k] - far[-2][k]) / (4 * h), (far[1][k] - far[-1][k]) / (2 * h)
        np.testing.assert_allclose(bar.d, (4 * narrow - wide) / 3, rtol=1e-7, atol=1e-7)


def test_structs_tuples_and_constants_with_tangents(inputs):
    x, y = inputs
    c = Dual(y, np.ones(LANES))  # not an input: constant along the adjoint, with its tangent in it

    def f(a, b, k):
        assert k == "kept"
        return cross(a, b) * c, c - dot(a, b), c / a.x

    a, b = Vec3(x, y, x * y), Vec3(1.0, x, 0.0)
    (v, n, q), back = pullback(f, a, b, "kept")
    assert isinstance(v, Vec3) and n.x.shape == q.x.shape == (LANES,)
    a_bar, b_bar, none = back((Vec3(0.0, 0.0, 0.0), 1.0, 0.0))
    assert none is None
    for found, wanted in zip([*a_bar.leaves(), *b_bar.leaves()], [*(-b).leaves(), *(-a).leaves()], strict=True):
        np.testing.assert_allclose(np.broadcast_to(steady(found), LANES), np.broadcast_to(wanted, LANES), atol=1e-15)
    last = back((Vec3(0.0, 0.0, 0.0), 0.0, 1.0))[0].x
    np.testing.assert_allclose(last.x, -y / (x * x))
    np.testing.assert_allclose(last.d, -1.0 / (x * x))


def test_compiled_adjoint_equals_numpy(inputs):
    x, y = inputs

    def body(x, y):
        for k, bar in enumerate(pullback(FUNCTIONS["arithmetic"], x[0], x[1])[1](1.0)):
            y[k] = bar

    found = np.zeros((LANES, 2))
    kernel = Kernel("reverse_test", body, {"x": ROBOTS, "y": ROBOTS}, Target("f64", 1))
    kernel(LANES, 1, x=np.stack([x, y], 1), y=found)
    np.testing.assert_allclose(found.T, pullback(FUNCTIONS["arithmetic"], x, y)[1](1.0), rtol=1e-13)


def test_arguments_that_are_not_vectors_are_refused(inputs):
    X: Transform = pose(Vec3(0.0, 0.0, 0.0), Quat(1.0, 0.0, 0.0, 0.0))
    with pytest.raises(StagingError, match="Transform is no vector space"):
        pullback(lambda X: X.r.x, X)
