"""Activations and muscles: equal to MuJoCo's up to rounding; gradients; all uses of a state."""

import re

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler.cuda import driver
from artigrad.compiler.cuda.ptx import ptx
from artigrad.simulate.gradcheck import random_state
from tests.compiler.host_device import Recorder

ROBOT = """<mujoco model="muscled"><option timestep="0.002"/><worldbody>
  <site name="anchor" pos="0 .1 .6"/>
  <body pos="0 0 1"><joint name="h1" axis="0 1 0" damping=".1"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".04"/>
    <site name="s" pos=".3 .05 .03"/>
    <body pos=".5 0 0"><joint name="h2" axis="0 1 .3" damping=".05"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
  </body></body></worldbody>
  <tendon><spatial name="t"><site site="anchor"/><site site="s"/></spatial>
    <fixed name="f"><joint joint="h1" coef=".4"/><joint joint="h2" coef="-.7"/></fixed></tendon>
  <actuator>
    <motor name="motor" joint="h1" gear=".5"/>
    <intvelocity name="servo" joint="h1" kp="20" actrange="-.5 .5"/>
    <cylinder name="cylinder" joint="h2" timeconst=".05" area=".4" bias=".1 -.2 -.3"/>
    <general name="exact" joint="h2" dyntype="filterexact" dynprm=".03" gainprm="3" actlimited="true" actrange="-.3 .6"
      actearly="true"/>
    <muscle name="pull" tendon="t" force="40" lengthrange=".3 .7"/>
    <muscle name="smooth" joint="h1" timeconst=".02 .03" tausmooth=".4" scale="30" lengthrange="-1.5 1.5"/>
    <general name="early" tendon="f" dyntype="filter" dynprm=".02" gaintype="affine" gainprm="5 .3 -.2" actearly="true"/>
    <general name="half" joint="h2" dyntype="muscle" dynprm=".02 .03 0" gaintype="muscle"
      gainprm=".7 1.1 30 200 .4 1.5 1.3 1.2 1.1" lengthrange="-2 2" biastype="affine" biasprm=".1 -.2 -.1"/>
  </actuator>
  <contact><exclude body1="world" body2="world"/></contact>
  <sensor><actuatorfrc actuator="pull"/><actuatorpos actuator="pull"/><tendonvel tendon="t"/><actuatorfrc actuator="exact"/>
    <actuatorfrc actuator="half"/><actuatorvel actuator="early"/><jointactuatorfrc joint="h1"/></sensor>
  <keyframe><key name="ready" qpos=".1 .2" act=".1 .2 .3 .4 .5 .6 .7" ctrl="1 2 3 4 5 6 7 8"/></keyframe>
</mujoco>"""
INTEGRATORS = {"euler": 0, "rk4": 1, "implicit": 2, "implicitfast": 3}


@pytest.fixture(scope="module")
def model():
    return ag.load(ROBOT)


def given(model, seed, batch=None):
    """A random state, with activations also beyond their ranges, and controls."""
    rng = np.random.default_rng(seed)
    state = random_state(model, rng, batch)
    lead = () if batch is None else (batch,)
    return state._replace(act=1.6 * state.act - 0.4), rng.normal(size=(*lead, 3, model.nu))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_step_equals_mujocos(model, integrator):
    m = mujoco.MjModel.from_xml_string(ROBOT)
    m.opt.integrator = INTEGRATORS[integrator]
    d, sim = mujoco.MjData(m), ag.Simulator(model, integrator=integrator)
    state, u = given(model, 0, 40)
    after = sim.step(state, u[:, 0])
    for k in range(40):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = *(x[k] for x in state), u[k, 0]
        mujoco.mj_step(m, d)
        for x, y in zip(after, (d.qpos, d.qvel, d.act), strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-9, atol=1e-9)


def test_forces_equal_mujocos(model):
    m = mujoco.MjModel.from_xml_string(ROBOT)
    d, sim, (state, u) = mujoco.MjData(m), ag.Simulator(model), given(model, 1, 20)
    readings = np.concatenate(list(sim.sensors(state, u[:, 0]).values()), 1)
    for k in range(20):
        d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = *(x[k] for x in state), u[k, 0]
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(readings[k], d.sensordata, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(sim.forward_dynamics(state.map(lambda x, k=k: x[k]), u[k, 0]), d.qacc, rtol=1e-9)


@pytest.mark.parametrize("integrator", ["euler", "rk4", "implicit"])
def test_gradients_by_differences(model, integrator):
    ag.gradcheck(ag.Simulator(model, integrator=integrator), samples=1, show=False)


def test_gradients_of_sensors(model):
    sim, (state, u) = ag.Simulator(model), given(model, 2)
    u, rng = u[0], np.random.default_rng(0)
    bars = {name: rng.normal(size=y.shape) for name, y in sim.sensors(state, u).items()}

    def loss(q, v, act, u, params=None):
        found = sim.sensors(ag.State(q, v, act), u, params=params)
        return sum(np.sum(found[name] * bar) for name, bar in bars.items())

    grad, x = sim.sensors_vjp(state, bars, u), [*state, u]
    for k, bar in enumerate((grad.q, grad.v, grad.act, grad.u)):
        d = rng.normal(size=bar.shape)
        up, down = (loss(*(y + h * d if i == k else y for i, y in enumerate(x))) for h in (1e-6, -1e-6))
        assert np.isclose((up - down) / 2e-6, np.sum(bar * d), rtol=1e-6, atol=1e-6)
    for name in ("muscle_gain", "muscle_bias", "muscle_length_range", "activation_time", "gear"):
        d = rng.normal(size=model.params[name].shape) * np.maximum(np.abs(model.params[name]), 1e-3)
        moved = [model.params.replace(unchecked=True, **{name: model.params[name] + h * d}) for h in (1e-6, -1e-6)]
        up, down = (loss(*x, params=p) for p in moved)
        assert np.isclose((up - down) / 2e-6, np.sum(grad.params[name] * d), rtol=1e-5, atol=1e-6), name


def gradients(sim, state, u, **how):
    traj = sim.rollout(state, u, **how)
    grad = sim.vjp(traj, **{f"{name}_bar": np.ones_like(x) for name, x in traj.final.named().items()})
    parts = {"q": traj.final.q, "v": traj.final.v, "act": traj.final.act, "q0": grad.q0, "v0": grad.v0}
    return parts | {"act0": grad.act0, "u": grad.u, "params": grad.params.flat}


def test_the_same_on_every_target_and_with_every_checkpoint(model):
    state, u = given(model, 3, 3)
    sim = ag.Simulator(model)
    whole = gradients(sim, state, u)
    for k in range(3):
        alone = gradients(sim, state.map(lambda x, k=k: x[k]), u[k])
        for name in alone.keys() - {"params"}:
            np.testing.assert_array_equal(whole[name][k], alone[name], err_msg=name)
    for checkpoints in (ag.EveryKth(2), ag.Binomial(memory=3 * 3 * 11 * 8 + 100)):
        for name, x in gradients(sim, state, u, checkpoints=checkpoints).items():
            np.testing.assert_array_equal(x, whole[name], err_msg=name)
    plain = gradients(ag.Simulator(model, backend="numpy"), state, u)
    coarse = gradients(ag.Simulator(model, dtype="f32"), state.map(np.float32), u.astype("f4"))
    for name, x in whole.items():
        np.testing.assert_allclose(plain[name], x, rtol=1e-9, atol=1e-9 * np.abs(x).max(), err_msg=name)
        if name != "params":
            np.testing.assert_allclose(coarse[name], x, atol=2e-2 * np.abs(x).max(), err_msg=name)


def test_activations_are_staged_for_a_gpu(model):
    device = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "device", lambda number: device)
        sim = ag.Simulator(model, dtype="f32", device="cuda")
        state = given(model, 0, 2)[0].map(np.float32)
        sim.vjp(sim.rollout(state, np.zeros((2, model.nu), np.float32)), v_bar=state.v)
    for name in ("artigrad_rollout", "artigrad_rollout_vjp"):
        text = ptx(device.staged[name].ir, (9, 0), 0, None)
        assert not re.search(r"\.f64|\.approx|\.ftz|\bcall\b|\.local\b", text), name


def test_linearize(model):
    sim, (state, u) = ag.Simulator(model), given(model, 4)
    A, B = sim.linearize(state, u[0])
    n = 2 * model.nv + model.na
    assert A.shape == (n, n) and B.shape == (n, model.nu)
    x = np.concatenate([*state, u[0]])
    for k, column in enumerate(np.concatenate([A, B], 1).T):
        ends = []
        for h in (1e-6, -1e-6):
            q, v, act, control = np.split(x + h * np.eye(len(x))[k], np.cumsum([2, 2, model.na]))
            ends.append(np.concatenate(sim.step(ag.State(q, v, act), control)))
        np.testing.assert_allclose(column, (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-7 * np.abs(A).max())


def test_policy_reads_activations(model):
    rng, n = np.random.default_rng(0), 4 + model.na
    layers = ((0.3 * rng.normal(size=(5, n)), np.zeros(5)), (0.3 * rng.normal(size=(model.nu, 5)), np.zeros(model.nu)))
    network, sim, state = ag.Network(layers, ("tanh", "linear")), ag.Simulator(model), given(model, 5)[0]
    traj = sim.rollout(state, steps=3, policy=network)
    again = sim.rollout(state, traj.u)
    np.testing.assert_array_equal(traj.act, again.act)
    grad = sim.vjp(traj, act_bar=np.ones(model.na))
    d = rng.normal(size=model.na)
    ends = [
        sim.rollout(state._replace(act=state.act + h * d), steps=3, policy=network).final.act.sum()
        for h in (1e-6, -1e-6)
    ]
    assert np.isclose((ends[0] - ends[1]) / 2e-6, grad.act0 @ d, rtol=1e-6)


def test_activations_survive_saving(model, tmp_path):
    sim, (state, u) = ag.Simulator(model), given(model, 6)
    traj = sim.rollout(state, u)
    for name in ("run.npz", "run.csv"):
        traj.save(tmp_path / name)
        read = sim.read(tmp_path / name)
        np.testing.assert_allclose(read.act, traj.act, rtol=0, atol=1e-15)
    ready = model.keyframe("ready")
    np.testing.assert_array_equal(ready.act, np.arange(1, 8) / 10)
    np.testing.assert_array_equal(sim.reset("ready", batch=2).act, [ready.act, ready.act])
    ag.save(model, tmp_path / "muscled.xml")
    again = ag.load(tmp_path / "muscled.xml")
    assert again.activations == model.activations and again.muscles == model.muscles
    np.testing.assert_array_equal(again.keyframe("ready").act, ready.act)
    np.testing.assert_allclose(ag.Simulator(again).step(state, u[0]).v, sim.step(state, u[0]).v, rtol=1e-9)


def test_activations_in_a_scene(model):
    both, (state, u) = ag.scene([model, model], floor=False), given(model, 7, 2)
    assert both.na == 2 * model.na
    whole = ag.Simulator(both).step(state.map(np.ravel), u[:, 0].ravel())
    one = ag.Simulator(model).step(state, u[:, 0])
    np.testing.assert_allclose(whole.act, one.act.ravel(), rtol=1e-12)
    np.testing.assert_allclose(whole.v, one.v.ravel(), rtol=1e-9)


@pytest.mark.parametrize("off", ['<flag actuation="disable"/>', 'actuatorgroupdisable="3"'])
def test_disabled_activations_are_constant(off):
    inside = off.startswith("<")
    text = ROBOT.replace("/><worldbody>", f">{off}</option><worldbody>" if inside else f" {off}/><worldbody>")
    text = text.replace('name="pull"', 'group="3" name="pull"').replace("<intvelocity", '<intvelocity group="3"')
    m, model = mujoco.MjModel.from_xml_string(text), ag.load(text)
    d, (state, u) = mujoco.MjData(m), given(model, 9)
    state = state._replace(act=np.clip(state.act, -0.3, 0.5))
    d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = *state, u[0]
    mujoco.mj_step(m, d)
    after = ag.Simulator(model).step(state, u[0])
    np.testing.assert_allclose(after.act, d.act, atol=1e-12)
    np.testing.assert_allclose(after.v, d.qvel, rtol=1e-9)


def test_builder_calls():
    b = ag.ModelBuilder("arm")
    b.add_body("rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5))
    b.add_muscle("muscle", "rod", force=10.0, length_range=(-1.0, 1.0), time=(0.04, 0.04))
    b.add_actuator("lag", "rod", dynamics="filter", activation_time=(0.1, 0, 0), activation_range=(-1, 1))
    sim = ag.Simulator(b.build(), 0.01)
    assert sim.model.na == 2
    after = sim.step(sim.reset(), [1.0, 1.0])
    np.testing.assert_allclose(after.act, [0.01 / (0.04 * 0.5), 0.1])
    with pytest.raises(ag.ModelError, match="dynamics of actuator 'x' is one of integrator"):
        b.add_actuator("x", "rod", dynamics="slow")


def test_invalid_arguments_are_refused(model):
    sim, (state, u) = ag.Simulator(model), given(model, 8)
    np.testing.assert_array_equal(
        sim.step((state.q, state.v), u[0]).act, sim.step(state._replace(act=np.zeros(7)), u[0]).act
    )
    with pytest.raises(ag.InputError, match=r"activations of 'muscled' are \(7,\)"):
        sim.step(state._replace(act=np.zeros(3)), u[0])
    other = ag.Simulator(ag.robots.pendulum() if hasattr(ag.robots, "pendulum") else ag.robots.hopper())
    home = other.reset()
    assert len(home) == 2 and home.act.shape == (0,)
    with pytest.raises(ag.InputError, match="has no activations"):
        other.step(ag.State(home.q, home.v, np.zeros(2)))
