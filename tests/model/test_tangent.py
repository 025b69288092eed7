"""Differences of positions on the tangent space."""

import numpy as np

import artigrad as ag
from artigrad.model import tangent


def states(seed):
    model = ag.robots.ant()
    rng = np.random.default_rng(seed)
    q = tangent.integrate(model, model.keyframe().q, rng.standard_normal((5, model.nv)))
    return model, q, rng


def test_difference_undoes_move():
    model, q, rng = states(0)
    d = 0.7 * rng.standard_normal((5, model.nv))
    there = tangent.integrate(model, q, d)
    np.testing.assert_allclose(tangent.difference(model, q, there), d, atol=1e-11)
    there[:, 3:7] *= -1  # the same rotation
    np.testing.assert_allclose(tangent.difference(model, q, there), d, atol=1e-11)


def test_chord_and_its_adjoint():
    model, q, rng = states(1)
    to, d_bar = (
        tangent.integrate(model, q, 0.3 * rng.standard_normal(q[:, 1:].shape)),
        rng.standard_normal((5, model.nv)),
    )
    dq = rng.standard_normal(q.shape)
    moved = tangent.chord(model, q, to + 1e-6 * dq) - tangent.chord(model, q, to - 1e-6 * dq)
    along = np.sum(tangent.chord_vjp(model, q, to, d_bar) * dq)
    np.testing.assert_allclose(along, np.sum(d_bar * moved) / 2e-6, rtol=1e-7)


def test_the_jacobian_of_a_difference_equals_differences():
    """Small rotations, where a series is used, large ones, and quaternions of any norm."""
    model, q, rng = states(2)
    for size in (1e-9, 1e-3, 0.3, 1.5):
        to = tangent.integrate(model, q, size * rng.standard_normal((5, model.nv)))
        J = tangent.difference_jacobian(model, tangent.difference(model, q, to))
        to[:, 3:7] *= 3.0
        for k, unit in enumerate(np.eye(model.nv)):
            ends = (tangent.difference(model, q, tangent.integrate(model, to, h * unit)) for h in (1e-5, -1e-5))
            np.testing.assert_allclose(J[:, :, k], (next(ends) - next(ends)) / 2e-5, atol=1e-8)
