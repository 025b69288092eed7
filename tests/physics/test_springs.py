"""Springs of ball and free joints, nonlinear springs and dampers: agreement with MuJoCo, and gradients."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad import Outputs
from artigrad.simulate.gradcheck import random_state

ROBOT = """<mujoco><option integrator="{integrator}" timestep=".004">
    <flag contact="disable" energy="enable"/></option><worldbody>
    <body name="base" pos=".1 .2 .3" euler="20 -30 40"><joint name="float" type="free" stiffness="20 3 5" damping=".5 .1 .2"/>
      <geom type="box" size=".1 .2 .15"/>
      <body name="arm" pos=".3 0 0"><joint name="shoulder" type="ball" stiffness="4 1 2" damping=".1 .05 .02"/>
        <geom type="capsule" size=".05 .2" pos=".1 .2 0"/>
        <body name="hand" pos=".2 0 .3" euler="0 30 0"><joint name="elbow" axis="0 1 .2" stiffness="3 -1 2" springref="20"
          damping=".2 .3 .1" armature=".01"/><geom size=".1" pos=".1 0 0"/></body></body></body>
    <body pos="2 0 0"><joint name="slide" type="slide" stiffness="5 0 8" damping="0 .4"/><geom size=".1"/></body></worldbody>
    <sensor><e_potential/></sensor></mujoco>"""
FIELDS = (
    "stiffness",
    "stiffness_curve",
    "damping",
    "damping_curve",
    "spring_reference",
    "position",
    "rotation",
    "mass",
)


def both(integrator):
    text = ROBOT.format(integrator=integrator)
    return mujoco.MjModel.from_xml_string(text), ag.load(text)


def state_of(model, rng, batch=None):
    state = random_state(model, rng, batch)
    state.q[..., :3] *= 0.3
    return state


def test_forces_and_energies_equal_mujocos():
    m, model = both("Euler")
    d, sim, rng = mujoco.MjData(m), ag.Simulator(model), np.random.default_rng(0)
    for _ in range(5):
        state = state_of(model, rng)
        d.qpos[:], d.qvel[:] = state[:2]
        mujoco.mj_forward(m, d)
        a = sim.forward_dynamics(state)
        np.testing.assert_allclose(a, d.qacc, atol=1e-9 * np.abs(d.qacc).max(), rtol=0)
        np.testing.assert_allclose(sim.outputs(state).potential_energy, d.energy[0], rtol=1e-11)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "RK4"])
def test_steps_equal_mujocos(integrator):
    m, model = both(integrator)
    d, sim, state = mujoco.MjData(m), ag.Simulator(model), state_of(model, np.random.default_rng(1))
    d.qpos[:], d.qvel[:] = state[:2]
    mujoco.mj_step(m, d)
    after = sim.step(state)
    tolerance = 1e-9 if integrator != "RK4" else 1e-4  # which turns in another way
    np.testing.assert_allclose(after.q, d.qpos, atol=tolerance)
    np.testing.assert_allclose(after.v, d.qvel, atol=tolerance * np.abs(d.qvel).max())


def loss_of(sim, weights, state, params):
    traj, out = sim.rollout(state, steps=2, params=params), sim.outputs(state, params=params)
    return (traj.q[-1] * weights[0]).sum() + (traj.v[-1] * weights[1]).sum() + weights[2] * out.potential_energy


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "RK4"])
def test_gradients(integrator):
    _, model = both(integrator)
    sim, rng = ag.Simulator(model), np.random.default_rng(2)
    state, weights = state_of(model, rng), (rng.normal(size=model.nq), rng.normal(size=model.nv), 0.3)
    traj = sim.rollout(state, steps=2)
    q_bar, v_bar = np.zeros_like(traj.q), np.zeros_like(traj.v)
    q_bar[-1], v_bar[-1] = weights[:2]
    grad = sim.vjp(traj, q_bar=q_bar, v_bar=v_bar)
    out = sim.outputs_vjp(state, Outputs(potential_energy=0.3))

    def slope(f, h=1e-5):
        one, two = ((f(x) - f(-x)) / (2 * x) for x in (h, 2 * h))
        return (4 * one - two) / 3

    for k, (x, g) in enumerate(((state.q, grad.q0 + out.q), (state.v, grad.v0))):
        d = rng.normal(size=x.shape)
        moved = lambda h, k=k, d=d: ag.State(*(y + h * d if i == k else y for i, y in enumerate(state[:2])))  # noqa: E731
        found = slope(lambda h, moved=moved: loss_of(sim, weights, moved(h), model.params))
        assert found == pytest.approx(np.sum(g * d), rel=1e-8, abs=1e-8)
    for name in FIELDS:
        x = model.params[name]
        d = rng.normal(size=x.shape) * (1 if name in ("position", "rotation") else x != 0)
        found = slope(
            lambda h, x=x, d=d, name=name: loss_of(sim, weights, state, model.params.replace(**{name: x + h * d}))
        )
        assert found == pytest.approx(np.sum((grad.params[name] + out.params[name]) * d), rel=1e-7, abs=1e-8), name


def test_springs_survive_saving_and_editing(tmp_path):
    _, model = both("Euler")
    ag.save(model, tmp_path / "again.xml")
    again, edited = ag.load(tmp_path / "again.xml"), ag.edit(model).build()
    state = state_of(model, np.random.default_rng(3))
    for other in (again, edited):
        one, two = (ag.Simulator(x).forward_dynamics(state) for x in (model, other))
        np.testing.assert_allclose(one, two, atol=1e-9 * np.abs(one).max())


def test_a_spring_that_a_model_was_built_without_is_refused():
    b = ag.ModelBuilder("x")
    b.add_body("a", joint="spherical", mass=1.0, inertia=(1, 1, 1))
    model = b.build()
    sim = ag.Simulator(model)
    with pytest.raises(ag.InputError, match="joint 'a' a spring"):
        sim.rollout(sim.reset(), steps=1, params=model.params.replace(stiffness=[1.0]))
    with pytest.raises(ag.InputError, match="stiffness_curve is not zero"):
        sim.rollout(sim.reset(), steps=1, params=model.params.replace(stiffness_curve=[[1.0, 0.0]]))
