"""Conservation laws and analytic motions: energy, momentum, pendulum, servo, spring, stiff damping."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate.gradcheck import random_state


def passive(model, **changes):
    """No damping, no actuators."""
    p = model.params
    return p.replace(damping=0 * p.damping, gain=0 * p.gain, bias=0 * p.bias, armature=0 * p.armature, **changes)


def energy_error(model, integrator, dt, time=0.5):
    sim = ag.Simulator(model, dt=dt, integrator=integrator)
    params = passive(model)
    state = random_state(model, np.random.default_rng(0))
    traj = sim.rollout(state, steps=round(time / dt), params=params)
    out = sim.outputs(ag.State(traj.q, traj.v), params=params)
    total = out.kinetic_energy + out.potential_energy
    return abs(total[-1] - total[0])


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("explicit", 1), ("rk4", 4)])
@pytest.mark.parametrize("model", [ag.robots.random_tree(2, 5), ag.robots.pendulum(3)], ids=lambda m: m.name)
def test_energy_error_has_the_order_of_the_integrator(model, integrator, order):
    dt = 4e-3 if order == 1 else 8e-3
    errors = [energy_error(model, integrator, dt / k) for k in (1, 2, 4)]
    measured = np.log2(errors[0] / errors[1]), np.log2(errors[1] / errors[2])
    assert all(m > order - 0.35 for m in measured), measured


def test_linear_momentum_of_a_spinning_body_is_exact():
    model = ag.robots.ball()
    p = model.params.replace(inertia=[[0.01, 0.02, 0.025, 0.001, 0.002, 0.003]], com=[[0.02, 0.01, -0.03]])
    floating = p.replace(gravity=np.zeros(3))
    sim = ag.Simulator(model, dt=1e-2)
    state = ag.State(sim.reset().q, np.array([0.3, -0.2, 0.5, 5.0, -3.0, 2.0]))
    traj = sim.rollout(state, steps=1000, params=floating)
    com = sim.outputs(ag.State(traj.q, traj.v), params=floating).com
    velocity = np.diff(com, axis=0) / 1e-2
    centered = ag.Simulator(model, dt=1e-2)  # with its origin in the center of mass, the momentum is m v itself
    straight = centered.rollout(state, steps=1000, params=floating.replace(com=np.zeros((1, 3))))
    assert np.abs(straight.v[:, :3] - straight.v[0, :3]).max() < 1e-14
    assert np.abs(velocity - velocity.mean(0)).max() < 0.05  # off-center: to the order of the integrator


@pytest.mark.parametrize("seed", [1, 4])
def test_momentum_of_a_floating_tree(seed):
    """Without gravity, with legs moving against the trunk: the total momentum is conserved to the order of the step."""
    model = ag.robots.quadruped()
    floating = model.params.replace(gravity=np.zeros(3))
    state = random_state(model, np.random.default_rng(seed))
    drift = []
    for dt in (2e-3, 1e-3):
        sim, n = ag.Simulator(model, dt=dt), round(0.2 / dt)
        traj = sim.rollout(state, np.repeat(np.sin(np.arange(12.0))[None], n, 0), params=floating)
        drift.append(np.abs(com_velocity(sim, traj.q[-1], traj.v[-1]) - com_velocity(sim, *state)).max())
    assert drift[1] < 0.6 * drift[0]


def com_velocity(sim, q, v, h=1e-5):
    """Velocity of the center of mass, by finite differences of positions."""
    ends = [sim.outputs(ag.State(ag.integrate(sim.model, q, s * h * v), v)).com for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * h)


def test_period_of_a_pendulum():
    model = ag.robots.pendulum(1, length=1.0, mass=1.0)
    sim = ag.Simulator(model, dt=1e-4, integrator="rk4")
    traj = sim.rollout(ag.State([0.01], [0.0]), steps=25_000)
    down = np.flatnonzero((traj.q[:-1, 0] > 0) & (traj.q[1:, 0] <= 0))
    inertia = model.params.inertia[0, 1] + 0.25
    period = 2 * np.pi * np.sqrt(inertia / (9.81 * 0.5))
    assert abs((down[1] - down[0]) * 1e-4 - period) < 2e-4


def test_free_fall_and_a_servo():
    ball = ag.Simulator(ag.robots.ball(), dt=1e-3, integrator="rk4")
    state = ball.rollout(ball.reset(), steps=1000).final
    assert abs(state.q[2] - (0.1 - 0.5 * 9.81)) < 1e-10
    b = ag.ModelBuilder("servo", gravity=(0, 0, 0))
    b.add_body("wheel", joint="revolute", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_position_servo("s", "wheel", gain=40.0, damping=4.0, max_velocity=0.5)
    sim = ag.Simulator(b.build(), dt=1e-3)
    traj = sim.rollout(sim.reset(), np.full((4000, 1), 1.0))
    assert traj.v.max() < 0.5 + 1e-3  # driven no faster than its maximal velocity
    assert abs(traj.q[-1, 0] - 1.0) < 1e-3


def test_stiff_damping_is_stable():
    b = ag.ModelBuilder("stiff")
    b.add_body(
        "wheel", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1), damping=1e6
    )
    sim = ag.Simulator(b.build(), dt=1e-2)
    traj = sim.rollout(ag.State([0.0], [100.0]), steps=50)
    assert np.abs(traj.v[1:]).max() < 1e-1
    grad = sim.vjp(traj, q_bar=np.ones(1), v_bar=np.ones(1))
    assert np.isfinite(grad.params.flat).all()


def test_motion_is_invariant_under_rigid_transformations():
    """Moving and rotating a floating robot together with gravity changes nothing."""
    model = ag.robots.quadruped()
    sim, rng = ag.Simulator(model), np.random.default_rng(0)
    state, u = random_state(model, rng), rng.normal(size=(30, 12))
    turn = rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    w, x, y, z = turn
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )

    def product(a, b):
        return np.concatenate([[a[0] * b[0] - a[1:] @ b[1:]], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])

    q, v = state.q.copy(), state.v.copy()
    q[:3], q[3:7], v[:3] = R @ q[:3] + [100.0, -50.0, 3.0], product(turn, q[3:7]), R @ v[:3]
    turned = model.params.replace(gravity=R @ model.params.gravity)
    a, b = sim.rollout(state, u).final, sim.rollout(ag.State(q, v), u, params=turned).final
    np.testing.assert_allclose(a.q[7:], b.q[7:], atol=1e-12)
    np.testing.assert_allclose(a.v[3:], b.v[3:], atol=1e-11)
    np.testing.assert_allclose(R @ a.v[:3], b.v[:3], atol=1e-11)
