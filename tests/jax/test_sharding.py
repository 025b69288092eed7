"""Sharded batches: gradients of what devices share, types of variance, devices of results. Four CPU devices (conftest)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import artigrad as ag
from artigrad.jax import rollout, step

jax.config.update("jax_enable_x64", True)
MODEL = ag.robots.cartpole()
SIM = ag.Simulator(MODEL)
MASS = jnp.asarray(MODEL.params.mass)
Q, V = jnp.linspace(0.0, 1.0, 16).reshape(8, 2), jnp.ones((8, 2))
U = jnp.linspace(-1.0, 1.0, 24).reshape(8, 3, 1)

pytestmark = pytest.mark.skipif(jax.device_count() < 4, reason="JAX was started with fewer devices")


def mesh(**kinds):
    return jax.make_mesh((4,), ("i",), axis_types=(getattr(jax.sharding.AxisType, kinds.get("kind", "Auto")),))


def loss(q, v, u, mass):
    states = rollout(SIM, (q, v), u, params={"mass": mass})
    return jnp.sin(states.q).sum() + states.v[..., -1, :].sum()


@pytest.mark.parametrize("check", [True, False], ids=["check_vma", "unchecked"])
def test_gradient_of_a_replicated_parameter_is_the_sum_over_devices(check):
    def total(q, v, u, mass):
        return jax.lax.psum(loss(q, v, u, mass), "i")

    specs = {"in_specs": (P("i"), P("i"), P("i"), P()), "out_specs": P(), "check_vma": check}
    found = jax.jit(jax.grad(jax.shard_map(total, mesh=mesh(), **specs), (2, 3)))(Q, V, U, MASS)
    for a, b in zip(found, jax.grad(loss, (2, 3))(Q, V, U, MASS), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_gradient_of_shared_inputs_inside_shard_map():
    def inside(q, v, u, mass):
        return jax.grad(lambda mass: jax.lax.psum(loss(q, v, u, mass), "i"))(mass)

    found = jax.shard_map(inside, mesh=mesh(), in_specs=(P("i"), P("i"), P("i"), P()), out_specs=P())(Q, V, U, MASS)
    np.testing.assert_allclose(found, jax.grad(loss, 3)(Q, V, U, MASS), rtol=1e-12)


def test_a_result_of_sharded_controls_varies():
    def one(q, u):
        return step(SIM, (q, q), u[0, 0]).v

    with pytest.raises(ValueError, match="out_specs which require replication"):
        jax.shard_map(one, mesh=mesh(), in_specs=(P(), P("i")), out_specs=P())(Q[0], U)
