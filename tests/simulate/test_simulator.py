"""Wrong arrays and arguments raise an error with the problem and the remedy."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

MODEL = ag.robots.quadruped()
SIM = ag.Simulator(MODEL)
HOME = SIM.reset()


def bad(match, call):
    with pytest.raises(ag.InputError, match=match):
        call()


def test_shapes():
    bad(r"q \(19,\) and v \(18,\)", lambda: SIM.step(ag.State(HOME.q[:-1], HOME.v)))
    bad("two arrays", lambda: SIM.step(HOME.q))
    bad(r"controls of 'quadruped' are \(T, 12\)", lambda: SIM.rollout(HOME, np.zeros((5, 11))))
    bad(r"or \(3, T, 12\)", lambda: SIM.rollout(SIM.reset(batch=3), np.zeros((4, 5, 12))))
    bad("not both", lambda: SIM.rollout(HOME, np.zeros((5, 12)), steps=5))
    bad("steps=T", lambda: SIM.rollout(HOME))
    bad(r"wrenches are \(5, 13, 6\)", lambda: SIM.rollout(HOME, steps=5, wrench=np.zeros((5, 12, 6))))
    traj = SIM.rollout(HOME, steps=4)
    bad(r"q_bar is \(5, 19\) for all states or \(19,\)", lambda: SIM.vjp(traj, q_bar=np.zeros(18)))
    bad(r"linearize takes u \(12,\) or \(2, 12\)", lambda: SIM.linearize(SIM.reset(batch=2), np.zeros((3, 12))))
    bad("at least one", lambda: SIM.reset(batch=0))
    bad("empty", lambda: SIM.step(ag.State(np.zeros((0, 19)), np.zeros((0, 18)))))


def test_values():
    q = HOME.q.copy()
    q[4] = np.nan
    bad(r"q\[4\] is nan", lambda: SIM.step(ag.State(q, HOME.v)))
    q = HOME.q.copy()
    q[3:7] *= 2
    bad(r"q\[3:7\] is a quaternion .* length 1, not 2", lambda: SIM.step(ag.State(q, HOME.v)))
    both = SIM.reset(batch=2)
    both.q[1, 3] = 3.0
    bad("robot 1", lambda: SIM.step(both))
    bad("array of numbers", lambda: SIM.step(ag.State("here", HOME.v)))
    bad(r"u\[2, 3\] is inf", lambda: SIM.rollout(HOME, np.where(np.arange(60).reshape(5, 12) == 27, np.inf, 0.0)))


def test_params():
    other = ag.robots.ball().params
    bad("belong to 'ball'", lambda: SIM.step(HOME, params=other))
    bad("params is a Params", lambda: SIM.step(HOME, params={"mass": 1}))
    many = MODEL.params.replace(mass=np.ones((3, 13)))
    bad("3 sets, but the batch has 2", lambda: SIM.step(SIM.reset(batch=2), params=many))
    bad("unknown parameter 'weight'", lambda: MODEL.params.replace(weight=1.0))
    bad(r"params.mass has shape \(13,\)", lambda: MODEL.params.replace(mass=np.ones(4)))
    bad("different batch sizes", lambda: many.replace(damping=np.ones((4, 13))))
    with pytest.raises(AttributeError, match="params have no"):
        _ = MODEL.params.weight
    with pytest.raises(ValueError, match="read-only"):
        MODEL.params.mass[0] = 1.0
    assert many.batch == 3
    assert MODEL.params.replace(mass=2 * MODEL.params.mass).mass[0] == 2 * MODEL.params.mass[0]


def test_options():
    bad("positive number of seconds", lambda: ag.Simulator(MODEL, dt=0.0))
    bad("integrator is one of", lambda: ag.Simulator(MODEL, integrator="leapfrog"))
    bad("factor is one of", lambda: ag.Simulator(MODEL, factor="qr"))
    bad("dtype is", lambda: ag.Simulator(MODEL, dtype="f16"))
    bad("lanes is one of 1, 2", lambda: ag.Simulator(MODEL, lanes=3))
    bad("backend is", lambda: ag.Simulator(MODEL, backend="cobol"))
    bad("takes a Model", lambda: ag.Simulator("quadruped"))
    bad("no keyframe 'jump'; it has: zero, reference, home", lambda: SIM.reset("jump"))
    bad("no joint 'knee'; it has: trunk", lambda: MODEL.joint("knee"))


def test_a_trajectory_of_another_model():
    other = ag.Simulator(ag.robots.ball())
    bad("another model", lambda: SIM.vjp(other.rollout(other.reset(), steps=1)))


def test_overflow_is_not_silent():
    """A trajectory that diverges warns."""
    sim = ag.Simulator(ag.robots.pendulum(2), dt=1.0)
    with pytest.warns(RuntimeWarning, match="the motion of robot 0 is not finite"):
        traj = sim.rollout(ag.State(np.zeros((2, 2)), np.array([[1e200, 3e200], [0.0, 0.0]])), steps=30)
    with pytest.warns(RuntimeWarning, match=r"1 of 2 robots is not finite \(robot 0\)"):
        grad = sim.vjp(traj, q_bar=np.ones((2, 2)), v_bar=np.ones((2, 2)), with_params=False)
    assert np.isfinite(grad.q0[1]).all()


def test_step_rollout_and_batch_are_one_thing():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(6, 12))
    traj, state = SIM.rollout(HOME, u), HOME
    for t in range(6):
        np.testing.assert_array_equal(traj.q[t], state.q)
        state = SIM.step(state, u[t])
    np.testing.assert_array_equal(traj.final.q, state.q)
    batch = SIM.rollout(SIM.reset(batch=3), u)  # shared controls
    np.testing.assert_array_equal(batch.q[2], traj.q)
    shared = SIM.vjp(batch, q_bar=np.ones((3, 19)))
    alone = SIM.vjp(traj, q_bar=np.ones(19))
    assert shared.u.shape == alone.u.shape
    np.testing.assert_allclose(shared.u, 3 * alone.u, rtol=1e-12)


def test_trajectory_memory_is_not_reused_while_seen():
    sim = ag.Simulator(MODEL)
    first = sim.rollout(sim.reset(batch=64), steps=40)
    view, copy = first.q[3], first.q[3].copy()
    del first
    for _ in range(3):
        sim.rollout(sim.reset(batch=64), np.ones((64, 40, 12)))
    np.testing.assert_array_equal(view, copy)


def test_zero_steps_and_no_actuators():
    ball = ag.Simulator(ag.robots.ball())
    traj = ball.rollout(ball.reset(), steps=0)
    np.testing.assert_array_equal(traj.final.q, ball.reset().q)
    grad = ball.vjp(traj, q_bar=np.arange(7.0), v_bar=np.arange(6.0))
    np.testing.assert_array_equal(grad.q0, np.arange(7.0))
    assert grad.u.shape == (0, 0)


def test_mj_inverse_by_the_mass_matrix_and_accelerations():
    """The formula of `docs/migrating.md`."""
    text = """<mujoco><option density="1.2" viscosity=".1"><flag constraint="disable"/></option><worldbody><body><freejoint/>
    <geom type="box" size=".1 .2 .3"/><body pos=".3 0 0" gravcomp=".4"><joint axis="0 1 0" stiffness="3" damping=".4"/>
    <geom size=".1"/><body pos=".2 0 0"><joint type="ball" damping=".2"/><geom type="capsule" size=".05 .1"/></body></body>
    </body></worldbody></mujoco>"""
    m, rng = mujoco.MjModel.from_xml_string(text), np.random.default_rng(0)
    d = mujoco.MjData(m)
    mujoco.mj_integratePos(m, d.qpos, rng.normal(size=m.nv), 1.0)
    d.qvel[:], d.qacc[:] = rng.normal(size=(2, m.nv))
    sim, state, a = ag.Simulator(ag.load(text), threads=1), ag.State(d.qpos.copy(), d.qvel.copy()), d.qacc.copy()
    mujoco.mj_inverse(m, d)
    found = sim.mass_matrix(state) @ (a - sim.forward_dynamics(state))
    np.testing.assert_allclose(found, d.qfrc_inverse, atol=1e-10)


@pytest.mark.parametrize("law", ["soft", "hard"])
def test_contacts_of_a_state_are_those_of_a_rollout_of_one_step(law):
    sim, rng = ag.Simulator(ag.robots.ball(floor=True), threads=1, law=law), np.random.default_rng(0)
    start = sim.reset(batch=2)
    state = start._replace(q=start.q - 1e-3 * (np.arange(7) == 2))
    u, wrench = np.zeros((2, 0)), 0.1 * rng.normal(size=(2, 1, 6))
    wanted = sim.contacts(sim.rollout(state, u[:, None], wrench=wrench[:, None]))
    assert (wanted.force[..., 2] > 0).all()
    for one, every in zip(sim.contacts(state, u, wrench=wrench), wanted, strict=True):
        np.testing.assert_array_equal(one, every[:, 0])
    alone = sim.contacts(state.map(lambda x: x[1]), wrench=wrench[1])
    np.testing.assert_array_equal(alone.force, wanted.force[1, 0])
    with pytest.raises(ag.InputError, match="under its own u, params and wrench"):
        sim.contacts(sim.rollout(state, steps=1), u)
