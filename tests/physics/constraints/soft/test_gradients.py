"""Gradients through the soft law compared with central differences: every type of row and each of its parameters."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import CONES, every_row, hand, loops, obstacles


def moving(text, steps=60, seed=1, speed=0.3):
    """A scene after some steps, in which most rows are active."""
    sim = ag.Simulator(ag.load(text), threads=1)
    rng = np.random.default_rng(seed)
    start = sim.reset()
    start.v[:] = speed * rng.normal(size=sim.model.nv)
    u = 0.1 * rng.normal(size=(steps, sim.model.nu))
    return sim, sim.rollout(start, u).final


@pytest.mark.parametrize(
    ("cone", "integrator"), [(CONES[0], "Euler"), (CONES[1], "implicitfast"), (CONES[0], "implicit"), (CONES[1], "RK4")]
)
def test_every_row_and_every_parameter(cone, integrator):
    sim, state = moving(every_row(cone, integrator))
    rows = {row.what: row for row in ag.gradcheck(sim, steps=1, samples=1, show=False, state=state)}
    # each of these has rows that depend on it
    felt = (
        "limit_solref",
        "dry_friction",
        "dry_solimp",
        "friction",
        "torsional_friction",
        "solref",
        "solimp",
        "pair_friction",
    )
    felt += (
        "equality_anchor",
        "equality_rotation",
        "equality_polynomial",
        "equality_solimp",
        "body_invweight0",
        "dof_invweight0",
        "margin",
    )
    assert all(rows[name].largest > 1e-9 for name in felt)


@pytest.mark.parametrize("scene", [hand, loops])
def test_hand_and_closed_loops(scene):
    sim, state = moving(scene("elliptic", "implicitfast"))
    ag.gradcheck(sim, steps=2, samples=1, show=False, state=state)


def standing(steps=300):
    sim = ag.Simulator(ag.robots.humanoid(), dt=2e-3, threads=1)
    u = np.tile(sim.model.keyframe_control(), (steps, 1))
    return sim, sim.rollout(sim.reset(), u).final, u


@pytest.mark.parametrize("cone", CONES)
def test_standing_with_dry_friction_in_every_joint(cone):
    _, state, _ = standing()
    sim = ag.Simulator(ag.robots.humanoid(), dt=2e-3, threads=1, cone=cone)
    ag.gradcheck(sim, steps=2, samples=1, show=False, state=state)


def test_a_hundred_steps():
    """Along random directions of state and controls, away from kinks."""
    sim, state, u = standing()
    u, rng, model = u[:100], np.random.default_rng(0), sim.model
    traj = sim.rollout(state, u)
    q_bar, v_bar = rng.normal(size=model.nq), rng.normal(size=model.nv)
    grad = sim.vjp(traj, q_bar=q_bar, v_bar=v_bar)
    assert grad.health.violation == 0
    v_dir, u_dir = rng.normal(size=model.nv), rng.normal(size=u.shape)

    def loss(h):
        final = sim.rollout(ag.State(state.q, state.v + h * v_dir), u + h * u_dir).final
        return q_bar @ final.q + v_bar @ final.v

    slope = grad.v0 @ v_dir + np.sum(grad.u * u_dir)
    h = 1e-7
    assert (loss(h) - loss(-h)) / (2 * h) == pytest.approx(slope, rel=1e-4)


def test_moving_shapes_on_fixed_balls():
    sim, state = moving(obstacles("elliptic"), steps=10, speed=0.1)
    ag.gradcheck(sim, steps=2, samples=1, show=False, state=state)


@pytest.mark.parametrize(
    ("scene", "cone", "steps"), [(every_row, CONES[0], 60), (every_row, CONES[1], 60), (obstacles, CONES[1], 10)]
)
def test_forces_are_outputs_with_gradients(scene, cone, steps):
    sim, state = moving(scene(cone), steps)
    rng, model = np.random.default_rng(0), sim.model
    u = 0.1 * rng.normal(size=(2, model.nu))
    traj = sim.rollout(state, u)
    weights = rng.normal(size=sim.contacts(traj).force.shape)
    grad = sim.vjp(traj, force_bar=weights)
    names = (
        "mass",
        "friction",
        "torsional_friction",
        "solref",
        "shape_size",
        "shape_position",
        "gravity",
        *(["equality_anchor"] if sim.model.equalities else []),
    )

    def loss(q, v, u, params):
        return np.sum(weights * sim.contacts(sim.rollout(ag.State(q, v), u, params=params)).force)

    q_dir = rng.normal(size=model.nv)
    v_dir, u_dir = rng.normal(size=model.nv), rng.normal(size=u.shape)
    p_dir = {name: rng.normal(size=sim.params[name].shape) * 1e-2 for name in names}

    def along(h):
        params = sim.params.replace(**{name: sim.params[name] + h * p_dir[name] for name in names}, unchecked=True)
        return loss(ag.integrate(model, state.q, h * q_dir), state.v + h * v_dir, u + h * u_dir, params)

    slope = ag.to_tangent(model, state.q, grad.q0) @ q_dir + grad.v0 @ v_dir + np.sum(grad.u * u_dir)
    slope += sum(np.sum(grad.params[name] * p_dir[name]) for name in names)
    h = 1e-7
    coarse, fine = ((along(k * h) - along(-k * h)) / (2 * k * h) for k in (2, 1))
    assert (4 * fine - coarse) / 3 == pytest.approx(slope, rel=2e-6)


def test_margin_is_the_distance_to_a_kink():
    """A ball about to slip has a small margin, one at rest a large one."""
    b = ag.ModelBuilder("ball")
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.004,) * 3, position=(0, 0, 0.0999))
    b.add_sphere("ball", 0.1, friction=1.0, condim=3)
    b.add_plane(friction=1.0)
    ball = ag.Simulator(b.build())
    rest = ball.rollout(ball.reset(), steps=200).final
    grad = ball.vjp(ball.rollout(rest, steps=1), v_bar=np.ones(6))
    assert grad.health.switch_margin[0] > 1e-4
