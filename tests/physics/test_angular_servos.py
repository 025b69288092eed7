"""Position servos on ball joints and between sites: errors are wrapped to half a turn, as in MuJoCo; gradients."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.model import tangent

CALM = 'contype="0" conaffinity="0"'
ROBOT = f"""<mujoco><option timestep="0.01"/><worldbody><site name="world" euler="10 20 30"/>
  <body><joint axis="0 1 0"/><geom size=".1" mass="1" pos=".1 .1 0" {CALM}/>
    <body pos=".3 0 .1"><joint name="ball" type="ball"/><geom type="box" size=".1 .2 .3" mass="1" {CALM}/>
      <site name="s" pos=".1 .2 .3" euler="10 50 20"/>
      <body pos=".3 0 .1"><joint name="hinge" axis="1 0 0"/><geom size=".1" mass="1" pos="0 .1 0" {CALM}/>
        <site name="tip" pos=".1 .2 .3"/></body></body></body></worldbody>
  <actuator>
    <position joint="ball" kp="1.3" kv=".1" gear=".5 -.3 .8"/>
    <position jointinparent="ball" kp="2" gear=".1 .3 -.2" forcerange="-3 3"/>
    <position site="tip" refsite="world" gear="0 0 0 .3 .6 -.2"/>
    <position name="shifts too" site="tip" refsite="world" gear=".1 0 0 .3 .6 -.2"/>
    <position joint="hinge" kp="2"/>
    <intvelocity joint="ball" kp="1.3" gear=".5 -.3 .8" actrange="-20 20"/>
    <intvelocity site="tip" refsite="s" kp="1.3" gear="0 0 0 .2 1 .8" actrange="-3 3"/>
    <position site="tip" refsite="world" gear="0 0 0 .3 .6 -.2" timeconst=".03"/>
    <general site="s" refsite="world" gear="0 0 0 0 0 1" dyntype="integrator" actearly="true" gainprm="2" biastype="affine"
      biasprm=".1 -2 -.1"/>
    <general name="no servo" site="s" refsite="world" gear="0 0 0 0 0 1" gainprm="2" biastype="affine" biasprm=".1 -2.1 0"/>
  </actuator></mujoco>"""
INTEGRATORS = {"euler": 0, "rk4": 1, "implicitfast": 3}


@pytest.fixture(scope="module")
def model():
    return ag.load(ROBOT)


def given(model, batch, seed=0):
    """States, activations and controls of up to many turns."""
    rng = np.random.default_rng(seed)
    q = tangent.integrate(model, np.tile(model.keyframe().q, (batch, 1)), 2 * rng.normal(size=(batch, model.nv)))
    act = 4 * rng.normal(size=(batch, model.na))
    return ag.State(q, rng.normal(size=(batch, model.nv)), act), 5 * rng.normal(size=(batch, model.nu))


@pytest.mark.parametrize(("integrator", "backend"), [*((name, "numpy") for name in INTEGRATORS), ("euler", "native")])
def test_a_step_equals_mujocos(model, integrator, backend):
    m, (state, u) = mujoco.MjModel.from_xml_string(ROBOT), given(model, 100)
    m.opt.integrator = INTEGRATORS[integrator]
    d, traj = mujoco.MjData(m), ag.Simulator(model, integrator=integrator, backend=backend).rollout(state, u[:, None])
    for k in range(100):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = *(x[k] for x in state), u[k]
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(traj.q[k, 1], d.qpos, rtol=0, atol=1e-11)
        np.testing.assert_allclose(traj.v[k, 1], d.qvel, rtol=0, atol=1e-9)
        np.testing.assert_allclose(traj.act[k, 1], d.act, rtol=0, atol=1e-11)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_gradients_by_differences(model, integrator):
    sim, (state, u), rng = (
        ag.Simulator(model, integrator=integrator, backend="numpy"),
        given(model, 40),
        np.random.default_rng(1),
    )
    traj = sim.rollout(state, u[:, None])
    bars = [rng.normal(size=x[:, 1].shape) for x in traj.every_state()]
    bars[0] = np.zeros_like(bars[0])
    q_bar, v_bar, act_bar = (np.stack([0 * x, x], 1) for x in bars)
    grad = sim.vjp(traj, q_bar=q_bar, v_bar=v_bar, act_bar=act_bar)
    axes = model.params.gear_axes
    moved = {
        "v": rng.normal(size=state.v.shape),
        "q": rng.normal(size=state.v.shape),
        "act": rng.normal(size=state.act.shape),
        "u": rng.normal(size=u.shape),
        "gear_axes": 0.1 * rng.normal(size=axes.shape) * (axes != 0),
        "activation_time": 1e-2
        * rng.normal(size=model.params.activation_time.shape)
        * (model.params.activation_time > 0),
        "gain": rng.normal(size=model.nu),
    }

    def loss(name, h):
        """Return the loss of every batch element."""
        here, there, params = state, u, None
        if name == "q":
            here = here._replace(q=tangent.integrate(model, state.q, h * moved[name]))
        elif name in ("v", "act"):
            here = here._replace(**{name: getattr(state, name) + h * moved[name]})
        elif name == "u":
            there = u + h * moved[name]
        else:
            params = model.params.replace(unchecked=True, **{name: model.params[name] + h * moved[name]})
        after = sim.rollout(here, there[:, None], params=params)
        return sum(np.sum(bar * x[:, 1], 1) for bar, x in zip(bars, after.every_state(), strict=True))

    for name in moved if integrator == "euler" else ("act", "gear_axes"):
        direction = moved[name]
        wanted = (8 * (loss(name, 1e-5) - loss(name, -1e-5)) - loss(name, 2e-5) + loss(name, -2e-5)) / 12e-5
        if name in ("q", "v", "act", "u"):
            bar = {"v": grad.v0, "act": grad.act0, "u": grad.u[:, 0] if grad.u is not None else None}.get(name)
            bar = tangent.to_tangent(model, state.q, grad.q0) if name == "q" else bar
            np.testing.assert_allclose(np.sum(bar * direction, 1), wanted, rtol=1e-6, atol=1e-7, err_msg=name)
        else:
            assert np.sum(grad.params[name] * direction) == pytest.approx(wanted.sum(), rel=1e-7), name
