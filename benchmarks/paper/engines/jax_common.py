"""Common parts of MJX and Brax: JAX on one core of the CPU, and the jit of a rollout and of its reverse-mode gradient."""

import time

import jax
import jax.numpy as jnp
from common import Q_BAR, V_BAR, Q, U, V, report

jax.config.update("jax_platforms", "cpu")


def report_rollout(final, version, what):
    """Time a rollout. `final` returns the last q and v, from the first ones and the controls."""

    def loss(q, v, u):
        q, v = final(q, v, u)
        return q @ Q_BAR + v @ V_BAR

    given = jnp.asarray(Q), jnp.asarray(V), jnp.asarray(U)
    start = time.process_time()
    forward = jax.jit(final).lower(*given).compile()
    gradient = jax.jit(jax.grad(loss, (0, 1, 2))).lower(*given).compile()
    compile_s = time.process_time() - start
    report(
        f"{version}, jax {jax.__version__}",
        lambda: float(forward(*given)[0][2]),
        lambda: jax.block_until_ready(gradient(*given))[2],
        f"{what}, f32; jax.grad of the rollout",
        compile_s,
    )
