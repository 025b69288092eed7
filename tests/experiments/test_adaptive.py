"""Adaptive control: the model can be the suite's cart-pole, is identified from few transitions, and has correct derivatives."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("scipy")
from importlib.util import find_spec

if find_spec("dm_control") is None:
    pytest.skip("no dm_control", allow_module_level=True)

from experiments.adaptive import HOLD, Pilot, Prediction, Suite, Transition, Upright


def shaken(poles, count=60, force=20.0, seed=0):
    """Transitions of the real system under random forces."""
    real, rng, seen = Suite(poles, seed), np.random.default_rng(seed), []
    state = real.reset()
    for _ in range(count):
        u = rng.uniform(-force, force, 1)
        after = real.step(u)
        seen.append(Transition(*state, u, *after))
        state = after
    return real, [t for t in seen if t.informative]


def true_parameters(real):
    m, poles = real.model, real.model.nv - 1
    masses, moments = m.body_mass[1:], m.body_inertia[2:, 1]
    values = [*masses, *m.dof_damping, *np.full(poles + 1, 1e-12), *np.full(poles, 0.5), *moments, *np.ones(poles - 1)]
    return np.log(values)


@pytest.mark.parametrize("poles", [1, 2])
def test_model_can_represent_dm_controls_cartpole(poles):
    real, seen = shaken(poles)
    pilot = Pilot(poles)
    assert pilot.unknowns.n == {1: 8, 2: 14}[poles] and len(seen) > 30
    assert Prediction(pilot.sim, pilot.unknowns, seen).error(true_parameters(real)) < 1e-9


@pytest.mark.parametrize("poles", [1, 2])
def test_gradient_of_predictions(poles):
    _, seen = shaken(poles, 20)
    pilot = Pilot(poles)
    problem = Prediction(pilot.sim, pilot.unknowns, seen)
    rng = np.random.default_rng(1)
    x = np.log(rng.uniform(0.3, 2.0, pilot.unknowns.n))
    d = rng.normal(size=len(x))
    slope = problem.gradient(x[None])[1][0] @ d
    up, down = problem.loss(np.stack([x + 1e-5 * d, x - 1e-5 * d]))
    assert (up - down) / 2e-5 == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("poles", [1, 2])
def test_derivatives_of_the_cost(poles):
    cost, rng, n = Upright(poles), np.random.default_rng(0), poles + 1
    q, v, u = rng.normal(size=(3, n)), rng.normal(size=(3, n)), rng.normal(size=(3, 1))
    _, Jx, Ju = cost.stage(q, v, u)
    for k in range(2 * n + 1):
        step = np.zeros(2 * n + 1)
        step[k] = 1e-6
        at = [cost.stage(q + s * step[:n], v + s * step[n : 2 * n], u + s * step[2 * n :])[0] for s in (1, -1)]
        found = Jx[..., k] if k < 2 * n else Ju[..., 0]
        np.testing.assert_allclose((at[0] - at[1]) / 2e-6, found, atol=1e-8)


def test_one_pole_is_identified_from_forty_transitions():
    real, seen = shaken(1, 40)
    pilot = Pilot(1)
    pilot.transitions = seen
    pilot.fit()
    assert pilot.error < 1e-3
    _, others = shaken(1, 40, seed=5)
    assert Prediction(pilot.sim, pilot.unknowns, others).error(pilot.x) < 1e-2
    assert real.steps == HOLD
