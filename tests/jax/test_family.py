"""Every function on JAX arrays: gradients against differences in contact and against PyTorch's, vmap, pytrees."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax.test_util import check_grads

import artigrad as ag
import artigrad.jax as aj
import artigrad.torch as at
from tests.family import CALLS, MODEL, inputs, of_all

jax.config.update("jax_enable_x64", True)
SIM = ag.Simulator(MODEL)


@pytest.mark.parametrize("name", CALLS)
def test_check_grads_in_contact(name):
    call, names = of_all(name, aj, SIM)
    x = inputs()
    check_grads(
        jax.jit(call), [jnp.asarray(x[k]) for k in names], order=1, modes=("rev", "fwd"), eps=1e-6, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("name", CALLS)
def test_numbers_are_pytorchs_also_under_vmap(name):
    call, names = of_all(name, aj, SIM)
    in_torch, _ = of_all(name, at, SIM)
    x = inputs((2, 3))
    given = [x[k] for k in names]
    axes = (0,) * (len(names) - 3) + (None,) * 3

    def loss(*x):
        return sum(jnp.sin(y).sum() for y in call(*x))

    tensors = [torch.tensor(y, requires_grad=True) for y in given]
    wanted = in_torch(*tensors)
    slopes = torch.autograd.grad(sum(y.sin().sum() for y in wanted), tensors)
    for a, b in zip(jax.vmap(jax.vmap(call, axes), axes)(*given), wanted, strict=True):
        np.testing.assert_array_equal(a, b.detach())
    each = jax.jit(jax.vmap(jax.grad(loss, tuple(range(len(names)))), axes))(*given)
    for k, (a, b) in enumerate(zip(each, slopes, strict=True)):
        np.testing.assert_allclose(a if axes[k] == 0 else a.sum(0), b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["step", "rollout", "outputs", "forward_dynamics"])
def test_products_with_hessians_are_pytorchs(name):
    call, names = of_all(name, aj, SIM)
    in_torch, _ = of_all(name, at, SIM)
    x = inputs()
    given, along = [x[k] for k in names], [np.cos(x[k]) for k in names]
    every = tuple(range(len(names)))
    slope = jax.grad(lambda *x: sum(jnp.sin(y).sum() for y in call(*x)), every)
    _, found = jax.jit(lambda x, d: jax.jvp(slope, x, d))(given, along)
    theirs = torch.func.grad(lambda *x: sum(y.sin().sum() for y in in_torch(*x)), every)
    _, wanted = torch.func.jvp(theirs, tuple(map(torch.tensor, given)), tuple(map(torch.tensor, along)))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10 * float(b.abs().max()))


def test_a_jacobian_in_both_modes():
    x = inputs()

    def after(u):
        return aj.step(SIM, (x["q"], x["v"]), u).v

    np.testing.assert_allclose(jax.jacfwd(after)(x["u"]), jax.jacrev(after)(x["u"]), rtol=0, atol=1e-14)


def test_states_and_params_are_pytrees():
    x = inputs()
    state = ag.State(jnp.asarray(x["q"]), jnp.asarray(x["v"]))

    def loss(state, params):
        after = aj.step(SIM, state, x["u"], params=params)
        return after.q.sum() + after.v.sum()

    by_state, by_params = jax.jit(jax.grad(loss, (0, 1)))(state, MODEL.params)
    grad = SIM.vjp(
        SIM.rollout(ag.State(x["q"], x["v"]), x["u"][:, None]), q_bar=np.ones_like(x["q"]), v_bar=np.ones_like(x["v"])
    )
    np.testing.assert_allclose(by_state.q, grad.q0, rtol=1e-12)
    assert isinstance(by_params, ag.Params)
    np.testing.assert_allclose(by_params.mass, grad.params.mass, rtol=1e-12, atol=1e-14)


def test_outputs_without_gradient_raise():
    x = inputs()
    state = ag.State(jnp.asarray(x["q"]), jnp.asarray(x["v"]))
    with pytest.raises(Exception, match="gap of contacts has no gradient"):
        jax.block_until_ready(jax.grad(lambda s: aj.contacts(SIM, s).gap.sum())(state))
    with pytest.raises(Exception, match="linearize have no gradient"):
        jax.block_until_ready(jax.grad(lambda s: aj.linearize(SIM, s)[0].sum())(state))
