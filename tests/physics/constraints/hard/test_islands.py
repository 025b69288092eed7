"""Islands: contacts that are not tied to each other are solved apart, whatever could touch."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import hard


def balls(places, friction=0.5):
    """Balls of 10 cm at these places, on a floor."""
    b = ag.ModelBuilder("balls")
    b.add_plane(friction=friction)
    for k, place in enumerate(places):
        b.add_body(f"b{k}", joint="free", mass=1.0, inertia=(0.004,) * 3, position=place)
        b.add_sphere(f"b{k}", 0.1, friction=friction)
    return b.build()


def test_four_hundred_contacts_apart_hold_what_lies_on_them():
    b = ag.ModelBuilder("floor")
    b.add_plane()
    for k in range(100):
        b.add_body(f"b{k}", joint="free", mass=1.0, inertia=(0.007,) * 3, position=(k % 10, k // 10, 0.0999))
        b.add_box(f"b{k}", (0.1,) * 3)
    sim = hard(b.build(), dt=1e-3, max_contacts=500)
    traj = sim.rollout(sim.reset(), steps=20)
    assert traj.violation[0] == 0.0
    assert np.abs(traj.final.v).max() < 1e-8
    grad = sim.vjp(traj, v_bar=np.ones(600), with_params=False)
    assert np.isfinite(grad.v0).all() and grad.health.violation[0] == 0.0


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_islands_of_neighbors_in_a_pack_change_no_bit(cone):
    """Four balls in a row. Which of them touch differs from robot to robot, and so do the islands."""
    model = balls([(0.2 * k, 0, 0.0999) for k in range(4)])
    sim, rng = hard(model, dt=1e-3, cone=cone), np.random.default_rng(1)
    q = np.tile(sim.reset().q, (9, 1))
    for k in range(9):
        apart = np.cumsum([0.0, *(0.05 * (k >> bit & 1) - 1e-4 for bit in range(3))])
        q[k].reshape(4, 7)[:, 0] += apart
    state = ag.State(q, 0.1 * rng.normal(size=(9, model.nv)))
    together = sim.rollout(state, steps=20)
    bars = rng.normal(size=(9, model.nv))
    grad = sim.vjp(together, v_bar=bars)
    assert len({tuple(row.reshape(4, 7)[:, 0].round(2)) for row in q}) == 8
    for k in range(9):
        alone = sim.rollout(ag.State(q[k], state.v[k]), steps=20)
        np.testing.assert_array_equal(alone.v, together.v[k])
        one = sim.vjp(alone, v_bar=bars[k])
        np.testing.assert_array_equal(one.q0, grad.q0[k])
        assert one.health.switch_margin == grad.health.switch_margin[k]


@pytest.mark.parametrize("feet", [32, 40])
def test_a_plate_that_slides_on_many_feet(feet):
    """v+ = v - mu g dt along both axes of the pyramid, and no turning."""
    b = ag.ModelBuilder("plate")
    b.add_plane(friction=0.5)
    b.add_body("a", joint="free", mass=1.0, inertia=(0.0067,) * 3, position=(0, 0, 0.0999))
    for k in range(feet):
        angle = 2 * np.pi * k / feet
        place = (0.1 * np.cos(angle), 0.1 * np.sin(angle), -0.08)
        b.add_sphere("a", 0.02, position=place, friction=0.5)
    sim = hard(b.build(), dt=1e-3)
    state = sim.reset()
    state.v[:2] = 0.5, 0.2
    traj = sim.rollout(state, steps=1)
    assert traj.violation[0] == 0.0
    np.testing.assert_allclose(traj.final.v - state.v, [-0.5 * 9.81e-3, -0.5 * 9.81e-3, 0, 0, 0, 0], atol=1e-7)
