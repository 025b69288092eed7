"""Servo motors: rows that track a velocity with a bounded force."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler import widest

ROD = {"mass": 1.0, "com": (0, 0, -0.25), "inertia": (0.02, 0.02, 0.001)}


def pendulum(gain=30.0, max_force=10.0, max_velocity=2.0, **more):
    b = ag.ModelBuilder("pendulum")
    b.add_body("rod", joint="revolute", axis=(0, 1, 0), **ROD)
    b.add_servo_motor("motor", "rod", gain=gain, max_force=max_force, max_velocity=max_velocity, **more)
    return ag.Simulator(b.build(), dt=0.01, threads=1)


def arm():
    """Joints with motors of all kinds: position, position with negative gear, velocity; one with limits and friction."""
    b = ag.ModelBuilder("arm")
    b.add_body("a", joint="revolute", axis=(0, 1, 0), damping=0.1, **ROD)
    b.add_body("b", "a", joint="revolute", axis=(0, 1, 0), position=(0, 0, -0.5), **ROD)
    b.add_body("c", "b", joint="revolute", axis=(1, 0, 0), position=(0, 0, -0.5), **ROD)
    slide = {"limit": (-0.3, 0.3), "dry_friction": 0.2}
    b.add_body("d", "c", joint="prismatic", position=(0, 0, -0.5), mass=0.5, inertia=(0.01,) * 3, **slide)
    b.add_servo_motor("a", "a", gain=30, max_force=4000, max_velocity=1.5, control_range=(-1, 1))
    b.add_servo_motor("b", "b", gain=20, max_force=4000, max_velocity=3, gear=-2.0, control_range=(0.35, 2))
    b.add_servo_motor("c", "c", gain=15, max_force=0.3, max_velocity=3)
    b.add_servo_motor("d", "d", target="velocity", gain=1.3, max_force=60, max_velocity=1.0)
    return b.build()


# one motor at its limit of velocity, one beyond its control range, one out of force, one that holds
POSED, CONTROL = ag.State([0.3, -0.2, 0.8, 0.1], [0.1, 0.4, -0.3, 0.2]), [0.9, -2.0, -1.0, 0.3]


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
def test_gradients_in_every_regime(integrator):
    sim = ag.Simulator(arm(), dt=0.01, threads=1, integrator=integrator)
    rng, model = np.random.default_rng(0), sim.model
    q_bar, v_bar, names = rng.normal(size=4), rng.normal(size=4), ("gain", "force_range", "max_velocity", "gear")
    names += ("control_range", "dof_invweight0", "mass", "damping")
    traj = sim.rollout(POSED, np.array([CONTROL] * 3))
    grad = sim.vjp(traj, q_bar=q_bar, v_bar=v_bar)

    def loss(x):
        q, v, u = POSED.q + x[:4], POSED.v + x[4:8], np.array([CONTROL] * 3) + x[8:20].reshape(3, 4)
        params, at = {}, 20
        for name in names:
            own = model.params[name]
            params[name] = own + x[at : at + own.size].reshape(own.shape)
            at += own.size
        final = sim.rollout(ag.State(q, v), u, params=model.params.replace(**params, unchecked=True)).final
        return q_bar @ final.q + v_bar @ final.v

    found = np.concatenate([grad.q0, grad.v0, grad.u.ravel(), *(grad.params[name].ravel() for name in names)])
    found[~np.isfinite(found)] = 0.0
    steps = 1e-6 * np.eye(len(found))
    wanted = np.array([(loss(d) - loss(-d)) / 2e-6 for d in steps])
    np.testing.assert_allclose(found, wanted, atol=2e-8 * np.abs(wanted).max())
    felt = {name: np.abs(grad.params[name]).max() for name in names[:6]}
    assert min(felt.values()) > 1e-6, felt


def test_position_target_is_reached():
    sim = pendulum()
    traj = sim.rollout(sim.reset(), np.full((200, 1), 0.7))
    assert traj.q[-1, 0] == pytest.approx(0.7, abs=1e-3)
    assert traj.v.max() == pytest.approx(2.0, rel=0.02)  # at its limit on the way
    assert (np.diff(traj.q[:, 0]) > -1e-6).all()  # and without turning back


@pytest.mark.parametrize("gain", [1.0, 1e3, 1e9])
@pytest.mark.parametrize("max_force", [0.5, np.inf])
def test_every_gain_is_stable(gain, max_force):
    sim = pendulum(gain=gain, max_force=max_force, max_velocity=np.inf)
    traj = sim.rollout(ag.State([2.0], [-5.0]), np.full((400, 1), -1.0))
    assert np.abs(traj.v).max() < 305  # at most from one target to the other in one step
    grad = sim.vjp(traj, q_bar=np.ones(1), v_bar=np.ones(1))
    assert np.isfinite(grad.u).all()
    if gain > 100 and np.isinf(max_force):
        np.testing.assert_allclose(traj.q[5:], -1.0, atol=1e-3)


def test_motor_yields_beyond_its_force_range():
    """A motor of 1 N m holds the rod where its weight needs no more."""
    sim = pendulum(max_force=1.0)
    final = sim.rollout(ag.State([0.0], [0.0]), np.full((4000, 1), 1.5)).final
    assert 9.81 * 0.25 * np.sin(final.q[0]) == pytest.approx(1.0, abs=0.2)
    free = ag.Simulator(ag.robots.pendulum(1)).model  # and one without force is no motor
    assert free.servos == ()


def test_velocity_target_is_held():
    sim = pendulum(target="velocity", gain=1.0)
    traj = sim.rollout(sim.reset(), np.full((50, 1), 0.5))
    np.testing.assert_allclose(traj.v[3:, 0], 0.5, atol=2e-3)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_bits_do_not_depend_on_other_lanes(dtype):
    batch, rng = widest(dtype) + 1, np.random.default_rng(1)
    q, v, u = (rng.normal(size=(batch, *shape)) for shape in ((4,), (4,), (5, 4)))
    sim = ag.Simulator(arm(), dtype=dtype, threads=1)

    def run(pick):
        traj = sim.rollout(ag.State(q[pick], v[pick]), u[pick])
        grad = sim.vjp(traj, q_bar=np.cos(traj.q), v_bar=np.sin(traj.v))
        return traj.q, traj.v, grad.q0, grad.v0, grad.u

    for whole, alone in zip(run(slice(None)), run([2]), strict=True):
        np.testing.assert_array_equal(whole[[2]], alone)


def test_numpy_agrees_with_native():
    sims = [ag.Simulator(arm(), backend=backend) for backend in ("numpy", "native")]
    found = []
    for sim in sims:
        traj = sim.rollout(POSED, np.array([CONTROL] * 2))
        grad = sim.vjp(traj, q_bar=np.ones(4), v_bar=np.ones(4))
        found.append([traj.q, traj.v, grad.q0, grad.v0, grad.u, grad.params.gain, grad.params.force_range])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_invalid_motors_are_refused(tmp_path):
    model = arm()
    with pytest.raises(ag.ModelError, match=r"servo motor.*'a', 'b', 'c', 'd'"):
        ag.save(model, tmp_path / "arm.xml")
    with pytest.raises(ag.InputError, match=r"'a' is a servo motor, which has no bias"):
        ag.Simulator(model).rollout(POSED, steps=1, params=model.params.replace(bias=np.ones((4, 3))))
    b = ag.ModelBuilder("ball")
    b.add_body("ball", joint="spherical", mass=1.0, inertia=(0.1,) * 3)
    with pytest.raises(ag.ModelError, match="it drives a revolute or prismatic or screw joint"):
        b.add_actuator("motor", "ball", kind="servo", gear=(1, 0, 0))
    b = ag.ModelBuilder("arm")
    b.add_body("rod", joint="revolute", **ROD)
    with pytest.raises(ag.ModelError, match="its gain is above zero"):
        b.add_servo_motor("motor", "rod", gain=0.0)
    b.add_servo_motor("motor", "rod", gain=1.0)
    b.add_sensor("force", "actuatorfrc", "motor")
    with pytest.raises(ag.ModelError, match="no sensor reads yet"):
        b.build()


def test_motors_in_a_scene():
    two = ag.scene([arm(), arm()])
    assert two.servos == tuple(range(8))
    own, both = ag.Simulator(arm(), dt=0.01), ag.Simulator(two, dt=0.01, law="soft")
    alone = own.rollout(POSED, np.array([CONTROL] * 5)).final
    pair = both.rollout(ag.State(np.tile(POSED.q, 2), np.tile(POSED.v, 2)), np.array([CONTROL * 2] * 5)).final
    np.testing.assert_allclose(pair.q, np.tile(alone.q, 2), rtol=1e-9)
