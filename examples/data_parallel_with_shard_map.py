"""Data-parallel training on four devices with `jax.shard_map`, with bitwise the results of one device: gradients of the parts
of a batch are summed in a fixed order."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import artigrad as ag
from artigrad.jax import step

jax.config.update("jax_enable_x64", True)
DEVICES = min(4, jax.device_count())
sim = ag.Simulator(ag.robots.cartpole())
mesh = jax.make_mesh((DEVICES,), ("batch",), devices=jax.devices()[:DEVICES], axis_types=(jax.sharding.AxisType.Auto,))
q, v = jnp.linspace(-0.3, 0.3, 8 * DEVICES).reshape(-1, 2), jnp.zeros((4 * DEVICES, 2))


def loss(w, q, v):
    def control_step(state, _):
        u = jnp.tanh(jnp.concatenate(state, -1) @ w)[..., None]
        return step(sim, state, u), None

    state, _ = jax.lax.scan(control_step, ag.State(q, v), None, length=10)
    return jnp.square(state.v).sum()


def in_order(slopes):
    total = slopes[0]
    for slope in slopes[1:]:
        total = total + slope
    return total


def on_devices(w, q, v):
    return in_order(jax.lax.all_gather(jax.grad(loss)(w, q, v), "batch"))


def on_one(w, q, v):
    parts = (x.reshape(DEVICES, -1, 2) for x in (q, v))
    return in_order(jax.lax.map(lambda x: jax.grad(loss)(w, *x), tuple(parts)))


sharded = jax.shard_map(on_devices, mesh=mesh, in_specs=(P(), P("batch"), P("batch")), out_specs=P(), check_vma=False)
sharded, on_one = jax.jit(sharded), jax.jit(on_one)
weights = [jnp.full(4, 0.1), jnp.full(4, 0.1)]
first = float(loss(weights[0], q, v))
for _ in range(5):
    weights = [w - 100.0 * slope(w, q, v) for w, slope in zip(weights, (sharded, on_one), strict=True)]
print(f"loss {first:.6f}, after training {float(loss(weights[0], q, v)):.6f}")
assert (weights[0] == weights[1]).all(), "the same bits"
assert float(loss(weights[0], q, v)) < first
