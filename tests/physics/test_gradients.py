"""Gradients of steps and rollouts compared with central differences: every joint, actuator, integrator, and singular
points."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate.gradcheck import random_state

JOINTS = ["revolute", "prismatic", "spherical", "free"]
INTEGRATORS = ["euler", "explicit", "implicit", "implicitfast", "rk4"]


def one_joint_type(joint):
    """A small tree with joints of one type (free: three roots)."""
    return ag.robots.random_tree(5, 5, joints=(joint,))


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("joint", JOINTS)
def test_one_step_of_every_joint(joint, integrator):
    sim = ag.Simulator(one_joint_type(joint), dt=1e-2, integrator=integrator)
    ag.gradcheck(sim, steps=1, tolerance=1e-8, show=False)


@pytest.mark.parametrize("factor", ["articulated", "sparse"])
@pytest.mark.parametrize("seed", range(4))
def test_random_trees_with_all_actuators(seed, factor):
    sim = ag.Simulator(ag.robots.random_tree(seed, 14), dt=1e-2, factor=factor)
    ag.gradcheck(sim, steps=4, tolerance=1e-7, show=False)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_hundred_steps(integrator):
    sim = ag.Simulator(ag.robots.random_tree(2, 7), dt=2e-3, integrator=integrator)
    ag.gradcheck(sim, steps=100, samples=1, tolerance=1e-6, show=False)


def test_a_hundred_steps_of_the_quadruped():
    ag.gradcheck(ag.robots.quadruped(), steps=100, samples=1, tolerance=1e-6, show=False)


def actuated(kind, **limits):
    b = ag.ModelBuilder(kind)
    b.add_body(
        "rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01), damping=0.1
    )
    if kind == "motor":
        b.add_motor("a", "rod", gear=2.0, **limits)
    elif kind == "position":
        b.add_position_servo("a", "rod", gain=20.0, damping=2.0, gear=1.5, **limits)
    else:
        b.add_velocity_servo("a", "rod", gain=3.0, gear=1.5, **limits)
    return b.build()


@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        ("motor", {}),
        ("motor", {"max_force": 0.1}),  # at its force limit
        ("motor", {"control_range": (-0.05, 0.05)}),  # at its control limit
        ("position", {}),
        ("position", {"max_force": 1.0}),
        ("position", {"max_velocity": 0.2}),
        ("velocity", {}),
        ("velocity", {"max_velocity": 0.1}),
        ("velocity", {"max_force": 0.2}),
    ],
)
def test_actuators_free_and_at_their_limits(kind, limits):
    model = actuated(kind, **limits)
    rows = {
        r.what: r for r in ag.gradcheck(ag.Simulator(model, dt=1e-2), steps=2, samples=3, tolerance=1e-8, show=False)
    }
    if "max_force" in limits:
        assert rows["force_range"].largest > 1e-6  # the limit was reached, and its gradient was checked
    if "max_velocity" in limits:
        assert rows["max_velocity"].largest > 1e-6
    if "control_range" in limits:
        assert rows["control_range"].largest > 1e-6


def wrench_loss(sim, state, wrench, bars, params=None):
    traj = sim.rollout(state, steps=wrench.shape[0], wrench=wrench, params=params)
    return float(np.sum(traj.q * bars[0]) + np.sum(traj.v * bars[1])), traj


@pytest.mark.parametrize("seed", range(3))
def test_gradients_of_wrenches(seed):
    model = ag.robots.random_tree(seed, 6)
    sim, rng = ag.Simulator(model, dt=1e-2), np.random.default_rng(seed)
    state, wrench = random_state(model, rng), rng.normal(size=(3, model.nb, 6))
    bars = rng.normal(size=(4, model.nq)), rng.normal(size=(4, model.nv))
    grad = sim.vjp(wrench_loss(sim, state, wrench, bars)[1], q_bar=bars[0], v_bar=bars[1])

    def difference(change):
        h = 1e-5
        return (change(h) - change(-h)) / (2 * h)

    for _ in range(4):  # along random directions
        d = rng.normal(size=wrench.shape)
        fd = difference(lambda h, d=d: wrench_loss(sim, state, wrench + h * d, bars)[0])
        assert abs(fd - np.sum(grad.wrench * d)) < 1e-8 * max(1, abs(fd))
        d = rng.normal(size=model.nq)
        for i, t in enumerate(model.joint_type):  # stay near unit quaternions, for the door
            a = model.joint_q[i] + (3 if t == "free" else 0)
            if t in ("free", "spherical"):
                d[a : a + 4] -= state.q[a : a + 4] * (d[a : a + 4] @ state.q[a : a + 4])
        fd = difference(lambda h, d=d: wrench_loss(sim, ag.State(state.q + h * d, state.v), wrench, bars)[0])
        assert abs(fd - grad.q0 @ d) < 1e-7 * max(1, abs(fd))
        d = rng.normal(size=(model.nb, 3))
        params = [model.params.replace(com=model.params.com + s * 1e-5 * d) for s in (1, -1)]
        fd = np.subtract(*(wrench_loss(sim, state, wrench, bars, p)[0] for p in params)) / 2e-5
        assert abs(fd - np.sum(grad.params.com * d)) < 1e-7 * max(1, abs(fd))


def quaternion(angle, axis=(0.6, 0.0, 0.8)):
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * np.array(axis))])


@pytest.mark.parametrize(
    "angle", [0.0, np.pi, -np.pi, 2 * np.pi], ids=["zero", "half turn", "half turn back", "full turn"]
)
@pytest.mark.parametrize("spin", [0.0, 1e-9, 3.0])
def test_gradients_at_zero_and_half_turns(angle, spin):
    """Zero rotation, half turns and zero velocity are regular points: finite, and equal to finite differences."""
    model = ag.robots.random_tree(7, 5, joints=("free", "spherical", "revolute"))
    sim = ag.Simulator(model, dt=1e-2)
    q, v = np.zeros(model.nq), np.full(model.nv, spin)
    for i, t in enumerate(model.joint_type):
        a = model.joint_q[i] + (3 if t == "free" else 0)
        if t in ("free", "spherical"):
            q[a : a + 4] = quaternion(angle)
    one_q, one_v = np.arange(1.0, model.nq + 1), np.arange(1.0, model.nv + 1)

    def loss(q, v):
        final = sim.rollout(ag.State(q, v), steps=2).final
        return one_q @ final.q + one_v @ final.v

    grad = sim.vjp(sim.rollout(ag.State(q, v), steps=2), q_bar=one_q, v_bar=one_v)
    assert all(np.isfinite(g).all() for g in (grad.q0, grad.v0, grad.params.flat))
    tangent = ag.to_tangent(model, q, grad.q0)
    for k in range(model.nv):
        d = np.zeros(model.nv)
        d[k] = 1e-5
        fd = (loss(ag.integrate(model, q, d), v) - loss(ag.integrate(model, q, -d), v)) / 2e-5
        assert abs(fd - tangent[k]) < 1e-6 * max(1, abs(tangent[k]))
        fd = (loss(q, v + d) - loss(q, v - d)) / 2e-5
        assert abs(fd - grad.v0[k]) < 1e-6 * max(1, abs(grad.v0[k]))


def test_gradients_of_a_straight_arm():
    """All joints of a chain at zero, at rest, without gravity: M is regular and all gradients are right."""
    model = ag.robots.chain(6)
    still = model.params.replace(gravity=np.zeros(3))
    sim = ag.Simulator(model)
    traj = sim.rollout(ag.State(np.zeros(model.nq), np.zeros(model.nv)), steps=5, params=still)
    grad = sim.vjp(traj, q_bar=np.ones(model.nq), v_bar=np.ones(model.nv))
    assert np.isfinite(grad.params.flat).all()
    np.testing.assert_allclose(grad.v0, 1 + 5e-3 * np.ones(6), atol=1e-12)


def test_linearize_is_the_jacobian_on_the_tangent_space():
    model = ag.robots.random_tree(4, 6)
    sim, rng = ag.Simulator(model, dt=1e-2), np.random.default_rng(0)
    state, u = random_state(model, rng), rng.normal(size=model.nu) * 0.1
    A, B = sim.linearize(state, u)
    base = sim.step(state, u)
    nv, h = model.nv, 1e-6

    def outcome(dq, dv, du):
        """The next state relative to the base, in tangent coordinates."""
        q, v = sim.step(ag.State(ag.integrate(model, state.q, dq), state.v + dv), u + du)
        return np.concatenate([ag.to_tangent(model, base.q, 4 * (q - base.q)) / 4 * scale, v - base.v])

    # near the base, d = 2 G^T (q - base) for quaternions and q - base elsewhere
    scale = np.where(np.isin(np.arange(nv), _rotational(model)), 4.0, 1.0)
    for k in range(2 * nv + model.nu):
        d = np.zeros(2 * nv + model.nu)
        d[k] = h
        parts = d[:nv], d[nv : 2 * nv], d[2 * nv :]
        fd = (outcome(*parts) - outcome(*(-p for p in parts))) / (2 * h)
        column = A[:, k] if k < 2 * nv else B[:, k - 2 * nv]
        np.testing.assert_allclose(fd, column, atol=1e-6)


WAYS = {
    "contact": (ag.robots.laikago(), {}),
    "cone": (ag.robots.laikago(), {"cone": "elliptic"}),
    "sweeps": (ag.robots.laikago(), {"law": ag.HardOptions(solver="gauss_seidel", sweeps=4, gradient="reverse")}),
    "sparse": (ag.robots.quadruped(), {"factor": "sparse"}),
    "explicit": (ag.robots.quadruped(), {"integrator": "explicit"}),
    "rk4": (ag.robots.quadruped(), {"integrator": "rk4"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_linearize_equals_one_vjp_per_direction(way):
    """Directions share work; the bits are equal in a batch and alone."""
    model, options = WAYS[way]
    sim, rng = ag.Simulator(model, **options), np.random.default_rng(0)
    state = sim.reset(batch=3)
    state.v[:] = 0.3 * rng.normal(size=state.v.shape)
    u = (model.keyframe_control() if way in ("contact", "cone", "sweeps") else 0.0) + 0.1 * rng.normal(size=(3, 12))
    A, B = sim.linearize(state, u)
    n, nv = 2 * model.nv, model.nv
    one = ag.State(state.q[1], state.v[1])
    alone = sim.linearize(one, u[1])
    np.testing.assert_array_equal(alone[0], A[1])
    np.testing.assert_array_equal(alone[1], B[1])
    traj = sim.rollout(one, u[1:2])
    for k in (0, 4, nv - 1, nv, nv + 5, n - 1):
        e = np.eye(n)[k]
        grad = sim.vjp(traj, q_bar=ag.to_ambient(model, traj.final.q, e[:nv]), v_bar=e[nv:])
        row = np.concatenate([ag.to_tangent(model, one.q, grad.q0), grad.v0])
        np.testing.assert_allclose(row, A[1, k], rtol=1e-10, atol=1e-10 * np.abs(row).max())
        np.testing.assert_allclose(grad.u[0], B[1, k], rtol=1e-10, atol=1e-10 * np.abs(row).max())


def _rotational(model):
    out = []
    for i, t in enumerate(model.joint_type):
        if t in ("spherical", "free"):
            a = model.joint_v[i] + (3 if t == "free" else 0)
            out += [a, a + 1, a + 2]
    return out


def test_per_robot_parameters_give_per_robot_gradients():
    model = ag.robots.pendulum(2)
    sim, rng = ag.Simulator(model, dt=1e-2), np.random.default_rng(0)
    masses = rng.uniform(0.5, 2.0, size=(5, 2))
    state, u = random_state(model, rng, 5), rng.normal(size=(5, 7, 2))
    q_bar, v_bar = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    many = sim.vjp(sim.rollout(state, u, params=model.params.replace(mass=masses)), q_bar=q_bar, v_bar=v_bar)
    for b in range(5):
        one_params = model.params.replace(mass=masses[b])
        traj = sim.rollout(ag.State(state.q[b], state.v[b]), u[b], params=one_params)
        one = sim.vjp(traj, q_bar=q_bar[b], v_bar=v_bar[b])
        np.testing.assert_allclose(many.params.flat[b], one.params.flat, rtol=1e-12, atol=1e-14)
    shared = sim.vjp(sim.rollout(state, u), q_bar=q_bar, v_bar=v_bar)
    alone = sum(
        sim.vjp(sim.rollout(ag.State(state.q[b], state.v[b]), u[b]), q_bar=q_bar[b], v_bar=v_bar[b]).params.flat
        for b in range(5)
    )
    np.testing.assert_allclose(shared.params.flat, alone, rtol=1e-11, atol=1e-12)


def test_f32_gradients_are_near_f64():
    model = ag.robots.quadruped()
    rng = np.random.default_rng(0)
    state, u = random_state(model, rng, 3), 0.1 * rng.normal(size=(3, 20, 12))
    grads = []
    for dtype in ("f64", "f32"):
        sim = ag.Simulator(model, dtype=dtype)
        grads.append(sim.vjp(sim.rollout(state, u), q_bar=np.ones((3, 19)), v_bar=np.ones((3, 18))))
    for a, b in zip(grads[0][:3], grads[1][:3], strict=True):
        assert b.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-4 * np.abs(a).max())


def test_a_wrong_gradient_is_caught():
    """gradcheck raises if the gradient of the parameters is scaled."""

    class Wrong(ag.Simulator):
        def vjp(self, *args, **kwargs):
            g = super().vjp(*args, **kwargs)
            return g._replace(v0=g.v0 * 1.001)

    with pytest.raises(ArithmeticError, match="v0"):
        ag.gradcheck(Wrong(ag.robots.pendulum(1)), show=False)
