"""Rollouts under a network: equal to the rollout of its controls; gradients compared with differences."""

import numpy as np
import pytest

import artigrad as ag
from tests.family import MODEL, inputs

SIM = ag.Simulator(MODEL)
STEPS = 5


def network(seed=0, shift=None):
    """Return two layers; shift: a direction of all weights."""
    rng = np.random.default_rng(seed)
    sizes = ((7, MODEL.nq + MODEL.nv), (MODEL.nu, 7))
    layers = [[rng.normal(size=s) * 0.3, rng.normal(size=s[0])] for s in sizes]
    if shift is not None:
        layers = [[x + d for x, d in zip(layer, step, strict=True)] for layer, step in zip(layers, shift, strict=True)]
    return ag.Network(tuple(map(tuple, layers)), ("tanh", "linear"))


def loss_bars(traj, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=np.shape(x)) for x in (traj.q, traj.v, traj.u)]


def loss(traj, bars):
    return sum(float((x * b).sum()) for x, b in zip((traj.q, traj.v, traj.u), bars, strict=True))


@pytest.mark.parametrize("lead", [(), (3,)])
def test_it_is_the_rollout_of_the_controls_it_gives(lead):
    x = inputs(lead)
    traj = SIM.rollout(ag.State(x["q"], x["v"]), policy=network(), steps=STEPS)
    again = SIM.rollout(ag.State(x["q"], x["v"]), traj.u)
    np.testing.assert_array_equal(traj.q, again.q)
    np.testing.assert_array_equal(traj.final.v, again.final.v)
    (W1, b1), (W2, b2) = network().layers
    seen = np.concatenate([traj.q, traj.v], -1)[..., :-1, :]
    np.testing.assert_allclose(traj.u, np.tanh(seen @ W1.T + b1) @ W2.T + b2, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("lead", "hold"), [((), 1), ((3,), 1), ((3,), 2)])
def test_gradients_by_differences(lead, hold):
    x, rng, h = inputs(lead), np.random.default_rng(2), 1e-6
    start = ag.State(x["q"], x["v"])
    traj = SIM.rollout(start, policy=network(), steps=STEPS, hold=hold)
    bars = loss_bars(traj)
    grad = SIM.vjp(traj, q_bar=bars[0], v_bar=bars[1], u_bar=bars[2])

    def slope(of):
        return (loss(of(h), bars) - loss(of(-h), bars)) / (2 * h)

    step = [[rng.normal(size=np.shape(w)) for w in layer] for layer in network().layers]
    found = sum(
        float((g * d).sum())
        for layer, way in zip(grad.layers, step, strict=True)
        for g, d in zip(layer, way, strict=True)
    )
    shifted = lambda e: network(shift=[[e * d for d in w] for w in step])  # noqa: E731
    moved = lambda e: SIM.rollout(start, policy=shifted(e), steps=STEPS, hold=hold)  # noqa: E731
    assert found == pytest.approx(slope(moved), rel=1e-6)
    way = rng.normal(size=x["v"].shape)
    moved = lambda e: SIM.rollout(ag.State(x["q"], x["v"] + e * way), policy=network(), steps=STEPS, hold=hold)  # noqa: E731
    assert float((grad.v0 * way).sum()) == pytest.approx(slope(moved), rel=1e-6)
    way = rng.normal(size=MODEL.nb)
    params = lambda e: MODEL.params.replace(mass=MODEL.params.mass + e * way)  # noqa: E731
    moved = lambda e: SIM.rollout(start, policy=network(), steps=STEPS, hold=hold, params=params(e))  # noqa: E731
    assert float((grad.params.mass * way).sum()) == pytest.approx(slope(moved), rel=1e-6)
    assert grad.u.shape == (*lead, STEPS, MODEL.nu)  # of each control, however long it is held


def test_errors_have_the_remedy():
    state = SIM.reset()

    def bad(match, call):
        with pytest.raises(ag.InputError, match=match):
            call()

    W, b = np.zeros((MODEL.nu, 3)), np.zeros(MODEL.nu)
    bad(
        r"reads 8 \+ 7 values \(q, v\) and returns 1 controls, not 3 and 1",
        lambda: SIM.rollout(state, policy=ag.Network(((W, b),), ("tanh",)), steps=2),
    )
    bad("an activation is one of linear, tanh, relu, elu", lambda: ag.Network(((W, b),), ("sigmoid",)))
    bad("as many activations as layers", lambda: ag.Network(((W, b),), ()))
    bad(r"a layer with 3 inputs is W \(n, 3\)", lambda: ag.Network(((W, np.zeros(5)),), ("tanh",)))
    bad("leave them out", lambda: SIM.rollout(state, np.zeros((2, 1)), policy=network()))
    bad("steps=T", lambda: SIM.rollout(state, policy=network()))
    bad("policy is an ag.Network, not function", lambda: SIM.rollout(state, policy=lambda q: q, steps=2))
    bad(
        "u_bar belongs to rollouts under a policy", lambda: SIM.vjp(SIM.rollout(state, steps=2), u_bar=np.zeros((2, 1)))
    )
    traj = SIM.rollout(state, policy=network(), steps=2)
    bad("no gradients of contact forces", lambda: SIM.vjp(traj, force_bar=np.zeros(3)))
    bad(r"u_bar is \(2, 1\)", lambda: SIM.vjp(traj, u_bar=np.zeros((3, 1))))
    bad("not finite at step 0", lambda: SIM.rollout(state, policy=network(shift=[[np.nan, 0], [0, 0]]), steps=2))
