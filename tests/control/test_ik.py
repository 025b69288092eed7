"""Inverse kinematics: targets met from many starts, within limits, by both methods."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.control import Goal, ik
from artigrad.control.ik import _rotation_vector


def arm(limit=(-2.5, 2.5)):
    """Six joints, an elbow site and a tool."""
    b = ag.ModelBuilder("arm")
    parent = "world"
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1))):
        place = (0, 0, 0.3) if k else (0, 0, 0.1)
        parent = b.add_body(
            f"l{k}", parent, joint="revolute", axis=axis, position=place, mass=1, inertia=(0.1,) * 3, limit=limit
        )
    b.add_site("elbow", "l3")
    b.add_site("tool", parent, position=(0, 0, 0.2))
    return ag.Simulator(b.build(), threads=1)


SIM = arm()


def somewhere(seed=0):
    q = np.random.default_rng(seed).uniform(-1.5, 1.5, 6)
    return q, SIM.outputs(ag.State(q, np.zeros(6)))


@pytest.mark.parametrize("method", ["dls", "lbfgs"])
def test_position_from_many_starts(method):
    _, out = somewhere()
    starts = np.random.default_rng(1).uniform(-2, 2, (5, 6))
    found = ik(SIM, Goal("tool", out.site_position[1]), starts, method=method, iterations=200, tolerance=1e-6)
    assert found.solved.sum() >= 3 and (np.abs(found.q) <= 2.5).all()
    at = SIM.outputs(ag.State(found.best, np.zeros(6))).site_position[1]
    np.testing.assert_allclose(at, out.site_position[1], atol=2e-6)


def test_position_rotation_and_a_second_target():
    _, out = somewhere(3)
    goals = [
        Goal("tool", out.site_position[1], out.site_rotation[1]),
        Goal("elbow", out.site_position[0], weight=2.0),
    ]
    found = ik(SIM, goals, np.random.default_rng(2).uniform(-1.5, 1.5, (16, 6)))
    assert found.solved.any()
    here = SIM.outputs(ag.State(found.best, np.zeros(6)))
    np.testing.assert_allclose(here.site_rotation[1], out.site_rotation[1], atol=1e-6)
    np.testing.assert_allclose(here.site_position, out.site_position, atol=1e-6)


def test_limits_hold_for_targets_out_of_reach():
    tight = arm(limit=(-0.3, 0.3))
    starts = np.random.default_rng(0).uniform(-1, 1, (4, 6))
    found = ik(tight, Goal("tool", (0.0, 0.0, -1.0)), starts)
    assert not found.solved.any() and (np.abs(found.q) <= 0.3).all()
    loose = ik(tight, Goal("tool", (0.3, 0.2, 0.5)), starts, limits=False)
    assert loose.solved.any() and np.abs(loose.q).max() > 0.3


def test_single_start_and_batched_targets():
    _, out = somewhere(5)
    one = ik(SIM, Goal("tool", out.site_position[1]), np.full(6, 0.3))
    assert one.solved and one.q.shape == (6,) and isinstance(one.error, float)
    places = np.stack([somewhere(k)[1].site_position[1] for k in range(3)])
    own = ik(SIM, Goal("tool", places), np.full((3, 6), 0.3))
    at = SIM.outputs(ag.State(own.q, np.zeros((3, 6)))).site_position[:, 1]
    np.testing.assert_allclose(at[own.solved], places[own.solved], atol=1e-7)


def test_floating_base_with_rotation_goal():
    sim = ag.Simulator(ag.robots.quadruped(), threads=1)
    c = np.cos(0.3)
    wanted = np.array([[c, -np.sin(0.3), 0], [np.sin(0.3), c, 0], [0, 0, 1]])
    body = sim.model.bodies[0]
    found = ik(sim, Goal(body, (0.1, 0.2, 0.4), wanted))
    out = sim.outputs(ag.State(found.q, np.zeros(sim.model.nv)))
    assert found.solved
    np.testing.assert_allclose(out.body_rotation[0], wanted, atol=1e-7)
    with pytest.raises(ag.InputError, match="ball and free"):
        ik(sim, Goal(body, (0, 0, 1)), method="lbfgs")


def test_rotation_vectors_up_to_half_a_turn():
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(200, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    angles = np.concatenate(
        [rng.uniform(0, np.pi, 150), np.pi - 10.0 ** -rng.uniform(1, 9, 30), 10.0 ** -rng.uniform(1, 9, 20)]
    )
    K = np.zeros((200, 3, 3))
    for (i, j), (k, s) in {(0, 1): (2, -1), (0, 2): (1, 1), (1, 2): (0, -1)}.items():
        K[:, i, j], K[:, j, i] = s * axes[:, k], -s * axes[:, k]
    t = angles[:, None, None]
    R = np.eye(3) + np.sin(t) * K + (1 - np.cos(t)) * K @ K
    np.testing.assert_allclose(_rotation_vector(R), angles[:, None] * axes, atol=1e-6)


def test_wrong_arguments_are_reported():
    with pytest.raises(ag.InputError, match="position or a rotation"):
        ik(SIM, Goal("tool"))
    with pytest.raises(ag.InputError, match="no body 'hand'"):
        ik(SIM, Goal("hand", (0, 0, 0)))
    with pytest.raises(ag.InputError, match="method"):
        ik(SIM, Goal("tool", (0, 0, 0)), method="hope")
    with pytest.raises(ag.InputError, match="start"):
        ik(SIM, Goal("tool", (0, 0, 0)), np.zeros(5))
