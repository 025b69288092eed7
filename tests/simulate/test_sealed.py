"""Attributes that would be set without effect are refused, with the remedy."""

import copy
import pickle

import numpy as np
import pytest

import artigrad as ag
from artigrad.control import MPC, Quadratic
from artigrad.envs import DifferentiableEnv


def refused(thing, name, value=1.0):
    with pytest.raises(AttributeError) as error:
        setattr(thing, name, value)
    return str(error.value)


def test_no_attribute_of_a_simulator_is_set_without_effect():
    model = ag.robots.pendulum()
    sim = ag.Simulator(model)
    assert "params=" in refused(sim, "params", model.params.replace(mass=3 * model.params.mass))
    assert "Simulator(model, law=...)" in refused(sim, "law", "hard")
    assert "Simulator(model, integrator=...)" in refused(sim, "integrator", "rk4")
    options = list(sim.options.__dataclass_fields__)
    public = [name for name in dir(sim) if not name.startswith("_") and name not in ("threads", "launch", "stream")]
    for name in (*options, *public):
        assert "make another one" in refused(sim, name), name
    assert "did you mean" in refused(sim, "intgrator_", "rk4") or "no attribute" in refused(sim, "intgrator_", "rk4")
    with pytest.raises(AttributeError, match="cannot be changed"):
        del sim.params
    with pytest.raises(ag.InputError, match="threads"):
        sim.threads = 0
    sim.threads = 3
    assert sim.engine.threads == sim.threads == 3
    copied = pickle.loads(pickle.dumps(copy.copy(sim)))
    assert "params=" in refused(copied, "params")


def test_a_subclass_of_a_simulator_has_attributes_of_its_own():
    class Mine(ag.Simulator):
        def __init__(self, model):
            super().__init__(model)
            self.gain = 3.0

    sim = Mine(ag.robots.pendulum())
    assert sim.gain == 3.0
    assert "params=" in refused(sim, "params")
    assert "law" in refused(sim, "law")


def test_no_attribute_of_a_model_is_set_without_effect():
    model = ag.robots.pendulum()
    assert "model.replace(params=...)" in refused(model, "params", model.params)
    assert "model.params.replace(mass=...)" in refused(model, "mass")
    assert "Simulator(model, dt=...)" in refused(model, "dt")
    for name in (n for n in dir(model) if not n.startswith("_")):
        assert "cannot be changed" in refused(model, name), name
    assert "no attribute" in refused(model, "graviti")
    model.links, model.features  # noqa: B018  (cached properties are kept as before)


def test_params_are_replaced_and_the_message_has_the_way():
    model = ag.robots.pendulum()
    for name in model.params:
        assert "use replace" in refused(model.params, name), name
    assert "replace" in refused(model.params, "flat")
    assert "replace" in refused(model.params, "mas")
    assert "params.replace(mass=" in refused(model.params.body(model.bodies[0]), "mass")
    with pytest.raises(AttributeError, match="use replace"):
        model.params["mass"] = 1.0
    assert pickle.loads(pickle.dumps(model.params)).features == model.params.features


def test_unknown_attributes_of_a_builder_are_refused():
    b = ag.ModelBuilder("x")
    b.gravity = (0.0, 0.0, -1.0)
    assert "b.options.changed" in refused(b, "integrator", "rk4")
    assert "did you mean 'gravity'" in refused(b, "gravit")
    assert "call it" in refused(b, "body", 1)


def test_a_replaced_model_moves_as_one_with_these_parameters_passed():
    model = ag.robots.cartpole()
    params = model.params.replace(mass=2.5 * model.params.mass, com=1.3 * model.params.com)
    other = model.replace(params=params, options=model.options.changed({"dt": 2e-3}), name="heavier")
    start = ag.State(np.full(model.nq, 0.3), np.ones(model.nv))
    wanted = ag.Simulator(model, dt=2e-3, threads=1).rollout(start, steps=20, params=params).final
    sim = ag.Simulator(other, threads=1)
    found = sim.rollout(start, steps=20).final
    np.testing.assert_array_equal(found.q, wanted.q)
    assert (other.name, sim.dt, model.name) == ("heavier", 2e-3, model.name)
    assert other.params.model is other and model.params.model is model
    assert other.features == model.features
    with pytest.raises(ag.InputError, match="params of a Model"):
        other.replace(params=params)
    with pytest.raises(ag.InputError, match="options of a Model"):
        other.replace(options="rk4")


def test_controllers_costs_and_environments_refuse_unknown_attributes():
    model = ag.robots.cartpole()
    sim = ag.Simulator(model, dt=0.02, threads=1)
    cost = Quadratic(model, ag.State([0.0, 0.0], [0.0, 0.0]), Q=1.0, R=1.0)
    mpc, env = MPC(sim, cost, 5), DifferentiableEnv("CartpoleSwingUp", 2)
    assert "did you mean 'iterations'" in refused(mpc, "itertions")
    assert "make another one" in refused(mpc, "horizon") and "make another one" in refused(cost, "Q")
    assert "no attribute" in refused(cost, "weight")
    assert "did you mean 'max_episode_steps'" in refused(env, "max_episode_step") and "make another one" in refused(
        env, "num_envs"
    )
    mpc.iterations, mpc.seconds, env.clip = 3, 0.1, 1.0
    assert cost.window(3, 2) is cost
    moving = Quadratic(model, ag.State(np.zeros((4, 2)), np.ones((4, 2))), Q=1.0, R=1.0).window(2, 5)
    assert moving.q.shape == (6, 2) and "make another one" in refused(moving, "q")
