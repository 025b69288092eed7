"""Adjoints of outputs, accelerations, inverse dynamics and the mass matrix against central differences."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.model.params import EXTRAS
from artigrad.simulate.gradcheck import random_state

ABSENT = {
    "dry_friction",
    *(name for names in EXTRAS.values() for name in names),
}  # where zero there is nothing to change

MODELS = [ag.robots.quadruped(), ag.robots.random_tree(1, 9), ag.robots.random_tree(5, 10)]


def functions(sim, rng, state):
    """Return name: (function of state and params, its gradient at `state`)."""
    m = sim.model
    u, a, bar, M_bar = (rng.normal(size=s) for s in (m.nu, m.nv, m.nv, (m.nv, m.nv)))
    bars = ag.Outputs(*(rng.normal(size=np.shape(x)) for x in sim.outputs(state)))

    def outputs(s, p):
        return sum(np.sum(x * b) for x, b in zip(sim.outputs(s, params=p), bars, strict=True))

    return {
        "outputs": (outputs, sim.outputs_vjp(state, bars)),
        "acceleration": (
            lambda s, p: sim.forward_dynamics(s, u, params=p) @ bar,
            sim.forward_dynamics_vjp(state, u, bar),
        ),
        "inverse": (lambda s, p: sim.inverse_dynamics(s, a, params=p) @ bar, sim.inverse_dynamics_vjp(state, a, bar)),
        "mass_matrix": (lambda s, p: np.sum(sim.mass_matrix(s, params=p) * M_bar), sim.mass_matrix_vjp(state, M_bar)),
    }


def check(along, slope, h):
    coarse, fine = ((along(k * h) - along(-k * h)) / (2 * k * h) for k in (2, 1))
    fd = (4 * fine - coarse) / 3
    assert abs(fd - slope) < 1e-7 * max(1.0, abs(slope)), (fd, slope)


@pytest.mark.parametrize("name", ["outputs", "acceleration", "inverse", "mass_matrix"])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_query_gradients(model, name):
    sim, rng = ag.Simulator(model), np.random.default_rng(0)
    state, p = random_state(model, rng), model.params
    f, grad = functions(sim, rng, state)[name]
    tangent = ag.to_tangent(model, state.q, grad.q)
    for _ in range(5):
        d = rng.normal(size=model.nv)
        check(lambda h, d=d: f(ag.State(ag.integrate(model, state.q, h * d), state.v), p), tangent @ d, 1e-4)
        check(lambda h, d=d: f(ag.State(state.q, state.v + h * d), p), grad.v @ d, 1e-4)
    for field in p:
        x = p[field]
        if x.size == 0 or not np.isfinite(x).all() or (field in ABSENT and not x.any()):
            continue
        d = rng.normal(size=x.shape) * (np.abs(x) if field in ("inertia", "mass") else 1.0)
        h = 1e-6 if field == "armature" else 1e-4
        if field == "armature":
            d = np.abs(d)
        slope = np.sum(grad.params[field] * d)
        check(lambda h, d=d, k=field, x=x: f(state, p.replace(**{k: x + h * d}, unchecked=True)), slope, h)


def test_gradient_of_accelerations_to_inputs():
    model = MODELS[1]
    sim, rng = ag.Simulator(model), np.random.default_rng(1)
    state, u, a, bar = (
        random_state(model, rng),
        rng.normal(size=model.nu) * 0.1,
        rng.normal(size=model.nv),
        rng.normal(size=model.nv),
    )
    slope = sim.inverse_dynamics_vjp(state, a, bar).a
    np.testing.assert_allclose(slope, sim.mass_matrix(state) @ bar, atol=1e-12)  # dID/da = M
    u_bar = sim.forward_dynamics_vjp(state, u, bar).u
    for k in range(model.nu):
        d = np.eye(model.nu)[k]
        check(lambda h, d=d: sim.forward_dynamics(state, u + h * d) @ bar, u_bar[k], 1e-4)


def test_loss_on_sites_along_a_trajectory():
    """Outputs of all states of a rollout, their cotangents, and the adjoint of the rollout, chained."""
    model = ag.robots.pendulum(2)
    sim, rng = ag.Simulator(model, dt=1e-2), np.random.default_rng(0)
    u, target = rng.normal(size=(3, 20, 2)), np.array([0.3, 0.0, -1.2])
    start = random_state(model, rng, 3)

    def loss(u):
        traj = sim.rollout(start, u)
        error = sim.sites(ag.State(traj.q, traj.v)) - target
        return 0.5 * np.sum(error**2), traj, error

    _, traj, error = loss(u)
    bars = sim.outputs_vjp(ag.State(traj.q, traj.v), ag.Outputs(site_position=error))
    grad = sim.vjp(traj, q_bar=bars.q, v_bar=bars.v)
    d = rng.normal(size=u.shape)
    check(lambda h: loss(u + h * d)[0], np.sum(grad.u * d), 1e-4)


def test_per_robot_parameters_in_outputs_of_trajectories():
    model = ag.robots.pendulum(1)
    sim = ag.Simulator(model)
    lengths = np.array([[[0.0, 0.0, -1.0]], [[0.0, 0.0, -2.0]]])
    params = model.params.replace(site_position=lengths)
    q = np.zeros((2, 4, 1))
    sites = sim.sites(ag.State(q, q), params=params)
    np.testing.assert_allclose(sites[:, :, 0, 2], [[-1.0] * 4, [-2.0] * 4])
    bars = sim.outputs_vjp(ag.State(q, q), ag.Outputs(site_position=np.ones((2, 4, 1, 3))), params=params)
    np.testing.assert_allclose(bars.params.site_position[:, 0], 4 * np.ones((2, 3)))


def test_wrong_bars():
    sim = ag.Simulator(MODELS[0])
    state = sim.reset()
    with pytest.raises(ag.InputError, match=r"cotangent of com is \(3,\)"):
        sim.outputs_vjp(state, ag.Outputs(com=np.zeros(4)))
    with pytest.raises(ag.InputError, match=r"mass matrix\) is \(18, 18\)"):
        sim.mass_matrix_vjp(state, np.zeros((3, 3)))
    with pytest.raises(ag.InputError, match=r"a is \(18,\)"):
        sim.inverse_dynamics(state, np.zeros(3))
