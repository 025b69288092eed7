"""Coordinates that keep parameters physical: their values, and their adjoints by differences."""

import numpy as np
import pytest

from artigrad.model import physical
from artigrad.model.physical import OF_FIELD, coordinates_of


@pytest.mark.parametrize("field", ["mass", "com", "restitution", "inertia"])
def test_adjoint_and_start(field):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 3, 3))
    I = np.trace(A @ A.swapaxes(1, 2), axis1=1, axis2=2)[:, None, None] * np.eye(3) - A @ A.swapaxes(1, 2)
    x0 = I[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]] if field == "inertia" else rng.uniform(0.1, 0.9, size=(4, 6))
    c = coordinates_of(field)
    np.testing.assert_allclose(c.value(x0, np.zeros_like(x0)), x0, atol=1e-12)
    theta, x_bar = rng.normal(size=x0.shape), rng.normal(size=x0.shape)
    bar, h = c.vjp(x0, theta, x_bar), 1e-5
    for k in range(theta.size):
        d = np.zeros(theta.size)
        d[k] = h
        d = d.reshape(theta.shape)
        slope = np.sum(x_bar * (c.value(x0, theta + d) - c.value(x0, theta - d))) / (2 * h)
        np.testing.assert_allclose(bar.ravel()[k], slope, rtol=1e-7, atol=1e-7)


def test_values_stay_physical():
    rng = np.random.default_rng(1)
    x = physical.inertia(np.tile([2.0, 3.0, 4.0, 0.1, 0.2, 0.3], (100, 1)), 2 * rng.normal(size=(100, 6)))
    for xx, yy, zz, xy, xz, yz in x:
        a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        assert a >= 0 and a + b >= c - 1e-9
    assert (physical.positive(0.5, rng.normal(size=9) * 5) > 0).all()
    assert physical.positive(0.0, 3.0) == 0.0
    y = physical.share(0.3, rng.normal(size=9) * 20)
    assert (y >= 0).all() and (y <= 1).all()
    assert "mass" in OF_FIELD and "gravity" not in OF_FIELD
