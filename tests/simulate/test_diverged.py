"""A batch element that diverges is NaN; gradients of the others are unchanged."""

import numpy as np
import pytest

import artigrad as ag

SIM = ag.Simulator(ag.robots.pendulum(2), 0.01)
V = np.array([[0.0, 0.0], [1.0, 0.0], [1e9, 1e9], [0.0, 1.0]])
GOOD = [0, 1, 3]
U = np.zeros((4, 100, 2))


def loss_numpy(rows, sim=SIM):
    traj = sim.rollout(ag.State(np.ones((len(rows), 2)), V[rows]), U[rows])
    return sim.vjp(traj, q_bar=2 * traj.final.q).v0


def test_torch():
    torch = pytest.importorskip("torch")
    import artigrad.torch as at

    v, mass = torch.tensor(V, requires_grad=True), torch.tensor(SIM.params.mass, requires_grad=True)
    masses = torch.tensor(np.tile(SIM.params.mass, (4, 1)), requires_grad=True)
    given = torch.ones(4, 2, dtype=torch.float64), v
    for params in ({"mass": mass}, {"mass": masses}):
        with pytest.warns(RuntimeWarning) as caught:
            q = at.rollout(SIM, given, torch.tensor(U), params=params)[0][:, -1]
            (q**2).sum().backward()
        assert [str(x.message)[:12] for x in caught] == ["the motion o", "the gradient"]
    half = v.grad.numpy() / 2
    assert np.isnan(half[2]).all()
    np.testing.assert_array_equal(half[GOOD], loss_numpy(GOOD))
    assert mass.grad.isnan().all()  # a sum over all robots
    own = masses.grad.numpy()
    assert np.isnan(own[2]).all() and np.isfinite(own[GOOD]).all() and np.abs(own[GOOD]).max() > 0


def test_jax():
    jax = pytest.importorskip("jax")
    import artigrad.jax as aj

    jax.config.update("jax_enable_x64", True)

    def loss(v):
        return (aj.rollout(SIM, (np.ones(2), v), U[0])[0][-1] ** 2).sum()

    with pytest.warns(RuntimeWarning, match="gradient of 1 of 4"):
        found = np.array(jax.jit(jax.vmap(jax.grad(loss)))(V))
    assert np.isnan(found[2]).all()
    np.testing.assert_allclose(found[GOOD], loss_numpy(GOOD), rtol=1e-14)


def test_it_raises_if_asked_to():
    with pytest.raises(ag.InputError, match="nonfinite is 'warn' or 'raise'"):
        ag.Simulator(SIM.model, nonfinite="ignore")
    sim = ag.Simulator(SIM.model, 0.01, nonfinite="raise")
    with pytest.raises(FloatingPointError, match="motion of robot 2 is not finite"):
        loss_numpy([0, 1, 2, 3], sim)
    np.testing.assert_array_equal(loss_numpy(GOOD, sim), loss_numpy(GOOD))
