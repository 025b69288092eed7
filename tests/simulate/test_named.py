"""Access to results by name, compared with the arrays."""

import pickle

import numpy as np
import pytest

import artigrad as ag


def robot():
    b = ag.ModelBuilder("arm")
    b.add_body("base", joint="free", mass=3.0, inertia=(0.1, 0.1, 0.1))
    b.add_body(
        "upper", "base", joint="spherical", joint_name="shoulder", mass=1.0, com=(0, 0, -0.2), inertia=(0.01,) * 3
    )
    b.add_body(
        "lower",
        "upper",
        joint="revolute",
        joint_name="elbow",
        axis=(0, 1, 0),
        position=(0, 0, -0.4),
        mass=0.5,
        com=(0, 0, -0.1),
    )
    b.add_site("hand", "lower", position=(0, 0, -0.3))
    b.add_motor("drive", "elbow")
    b.add_sensor("imu", "accelerometer", "hand")
    b.add_sensor("angle", "jointpos", "elbow")
    return b.build()


MODEL = robot()
SIM = ag.Simulator(MODEL, dt=1e-3)


def rollout(batch=None, **given):
    u = np.random.default_rng(0).normal(size=(batch, 6, 1) if batch else (6, 1))
    return SIM.rollout(SIM.reset(batch=batch), u, **given)


@pytest.mark.parametrize("batch", [None, 3])
def test_a_rollout_by_name_is_its_arrays(batch):
    traj = rollout(batch)
    out = SIM.outputs(ag.State(traj.q, traj.v))
    assert np.array_equal(traj.body("lower").rotation, out.body_rotation[..., 2, :, :])
    assert np.array_equal(traj.site("hand").velocity, out.site_velocity[..., 0, :])
    assert np.array_equal(out.site("hand").position, out.site_position[..., 0, :])
    assert np.array_equal(traj.joint("elbow").q, traj.q[..., 11])
    assert np.array_equal(traj.joint("shoulder").q, traj.q[..., 7:11])
    assert np.array_equal(traj.joint("shoulder").v, traj.v[..., 6:9])
    assert np.array_equal(traj.actuator("drive"), traj.u[..., 0])


@pytest.mark.parametrize("batch", [None, 2])
def test_a_sensor_reads_each_step_under_its_controls(batch):
    params = MODEL.params.replace(mass={"lower": [0.5, 0.7]}) if batch else None
    traj = rollout(batch, params=params)
    for t in (0, 5):
        now = SIM.sensors(ag.State(traj.q[..., t, :], traj.v[..., t, :]), traj.u[..., t, :], params=params)
        assert np.array_equal(traj.sensor("imu")[..., t, :], now["imu"])
        assert np.array_equal(traj.sensor("angle")[..., t, :], now["angle"])


def test_a_sensor_of_forces_refuses_a_rollout_under_wrenches():
    traj = rollout(wrench=np.ones((6, 3, 6)))
    with pytest.raises(ag.InputError, match="'imu' depends on the external wrenches"):
        traj.sensor("imu")


def test_gradients_by_name():
    traj = rollout()
    grad = SIM.vjp(traj, q_bar=np.ones(MODEL.nq), v_bar=np.ones(MODEL.nv))
    assert grad.joint("elbow").q == grad.q0[11]
    assert np.array_equal(grad.joint("base").v, grad.v0[:6])
    assert np.array_equal(grad.actuator("drive"), grad.u[:, 0])
    assert grad.params.body("lower").mass == grad.params.mass[2] != 0
    assert grad.params.joint("elbow").damping == grad.params.damping[2] != 0
    assert np.array_equal(grad.params.site("hand").site_position, grad.params.site_position[0])
    one = SIM.forward_dynamics_vjp(SIM.reset(), np.zeros(1), np.ones(MODEL.nv))
    assert one.joint("elbow").v == one.v[9] and one.actuator("drive") == one.u[0]
    with pytest.raises(ag.InputError, match="a function without controls"):
        SIM.outputs_vjp(SIM.reset(), ag.Outputs(com=np.ones(3))).actuator("drive")


def test_rows_of_params_are_replaced_by_name():
    p = MODEL.params.replace(mass={"lower": 0.9}, damping={"elbow": [0.1, 0.2]}, gain={"drive": 2.0})
    assert p.batch == 2 and np.array_equal(p.mass[0], [3.0, 1.0, 0.9]) and np.array_equal(p.damping[:, 2], [0.1, 0.2])
    assert np.array_equal(p.joint("elbow").damping, [0.1, 0.2]) and np.array_equal(p.actuator("drive").gain, [2.0, 2.0])
    with pytest.raises(ag.InputError, match=r"com of 'lower' has shape \(3,\)"):
        MODEL.params.replace(com={"lower": 1.0})
    with pytest.raises(ag.InputError, match="gravity has no names"):
        MODEL.params.replace(gravity={"lower": 1.0})
    with pytest.raises(ag.InputError, match="of 3 robots, and others are of 2"):
        p.replace(mass={"lower": np.ones(3)})


def test_errors_of_wrong_names_list_similar_ones():
    traj = rollout()
    with pytest.raises(ag.InputError, match="no body 'lwer'; did you mean 'lower'"):
        traj.body("lwer")
    with pytest.raises(ag.InputError, match="no joint 'knee'; it has: base, shoulder, elbow"):
        traj.joint("knee")
    with pytest.raises(ag.InputError, match="no sensor 'imus'; did you mean 'imu'"):
        traj.sensor("imus")
    with pytest.raises(AttributeError, match="a body has no parameter 'weight'"):
        _ = MODEL.params.body("lower").weight


def test_outputs_know_their_model_and_cotangents_need_none():
    out = SIM.outputs(SIM.reset())
    for same in (pickle.loads(pickle.dumps(out)), out._replace(com=None)):
        assert np.array_equal(same.body("lower").position, out.body_position[2])
    with pytest.raises(ag.InputError, match="constructed without a model"):
        ag.Outputs().body("lower")


def test_names_inside_torch_and_jax():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    import artigrad.jax as agj
    import artigrad.torch as agt

    state = SIM.reset()
    want = SIM.outputs(state).site("hand").position
    q, v = (torch.tensor(x) for x in state)
    assert np.array_equal(agt.outputs(SIM, (q, v)).site("hand").position.numpy(), want)
    jax.config.update("jax_enable_x64", True)
    jitted = jax.jit(lambda q, v: agj.outputs(SIM, (q, v)))(*map(jax.numpy.asarray, state))
    assert np.allclose(jitted.site("hand").position, want, atol=1e-12)
