"""Activations on JAX arrays: as pytrees, through native calls and through Python, under scan."""

import jax
import jax.numpy as jnp
import numpy as np

import artigrad as ag
import artigrad.jax as aj
from tests.physics.test_activation import ROBOT, given

jax.config.update("jax_enable_x64", True)
MODEL = ag.load(ROBOT)
SIM = ag.Simulator(MODEL)


def test_gradients_are_the_simulators():
    state, u = given(MODEL, 0, 2)
    state, u = state.map(jnp.asarray), jnp.asarray(u)

    def loss(state, u, params):
        end = aj.rollout(SIM, state, u, params=params)
        return sum(x[:, -1].sum() for x in end)

    plain = SIM.rollout(state.map(np.asarray), np.asarray(u))
    ones = plain.final.map(np.ones_like)
    wanted = SIM.vjp(plain, q_bar=ones.q, v_bar=ones.v, act_bar=ones.act)
    for params in (None, {"mass": jnp.asarray(MODEL.params.mass)}):
        bar, u_bar = jax.jit(jax.grad(loss, (0, 1)))(state, u, params)
        assert isinstance(bar, ag.State)
        for x, y in zip((*bar, u_bar), (wanted.q0, wanted.v0, wanted.act0, wanted.u), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)


def test_scan_is_a_rollout():
    state, u = given(MODEL, 1)
    state, u = state.map(jnp.asarray), jnp.asarray(u)

    def move(state, control):
        after = aj.step(SIM, state, control)
        return after, after.act

    last, every = jax.lax.scan(move, state, u)
    whole = aj.rollout(SIM, state, u)
    np.testing.assert_array_equal(every, whole.act[1:])
    np.testing.assert_array_equal(last.v, whole.v[-1])


def test_forward_mode_and_hessians():
    state, u = given(MODEL, 2)
    state, u = state._replace(act=np.clip(state.act, 0.1, 0.25)).map(jnp.asarray), jnp.asarray(0.1 * u + 0.3)

    def loss(act, u):
        end = aj.rollout(SIM, state._replace(act=act), u)
        return sum(jnp.sin(x[-1]).sum() for x in end)

    bars = jax.grad(loss, (0, 1))(state.act, u)
    moves = (jnp.linspace(-1, 1, MODEL.na), jnp.ones_like(u))
    _, slope = jax.jvp(loss, (state.act, u), moves)
    np.testing.assert_allclose(slope, sum((a * b).sum() for a, b in zip(bars, moves, strict=True)), rtol=1e-11)
    _, bent = jax.jvp(jax.grad(loss), (state.act, u), moves)
    ends = [jax.grad(loss)(state.act + h * moves[0], u + h * moves[1]) for h in (1e-5, -1e-5)]
    np.testing.assert_allclose(bent, (ends[0] - ends[1]) / 2e-5, atol=1e-6 * np.abs(bent).max())
