"""Simulators, and what was compiled with them, are freed."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import artigrad as ag
from artigrad.jax import step, xla_call

jax.config.update("jax_enable_x64", True)
MODEL = ag.robots.cartpole()
Q = jnp.full(2, 0.1)


def height(sim):
    return lambda q: step(sim, (q, q)).q.sum()


@pytest.mark.parametrize(
    "use", [lambda f: f(Q), lambda f: jax.grad(f)(Q), lambda f: jax.jit(jax.grad(f))(Q)], ids=["call", "grad", "jit"]
)
def test_a_simulator_that_was_used_is_freed(use):
    alive = []
    for _ in range(3):
        sim = ag.Simulator(MODEL)
        alive.append(weakref.ref(sim))
        jax.block_until_ready(use(height(sim)))
        del sim
    gc.collect()
    assert [ref() for ref in alive] == [None] * 3


def test_resources_of_calls_are_bounded(monkeypatch):
    monkeypatch.setattr(xla_call, "ENDING", 3)
    for _ in range(4):
        jax.block_until_ready(jax.jit(height(ag.Simulator(MODEL)))(Q))
        gc.collect()
    assert len(xla_call._ending) <= 3 and xla_call._free_blocks


def test_a_simulator_made_while_tracing_stays_with_the_program():
    program = jax.jit(lambda q: step(ag.Simulator(MODEL), (q, q)).q)
    expected = program(Q)
    gc.collect()
    np.testing.assert_array_equal(program(Q), expected)


def test_a_program_without_its_simulator_is_refused():
    sim = ag.Simulator(MODEL)
    program = jax.jit(height(sim))
    jax.block_until_ready(program(Q))
    for call in sim.engine.native_calls.values():
        if hasattr(call, "_block"):
            call._block.serial = 0
    with pytest.raises(Exception, match="simulator of this program was deleted"):
        jax.block_until_ready(program(Q))


def test_functions_run_without_jit():
    with jax.disable_jit():
        found = jax.grad(height(ag.Simulator(MODEL)))(Q)
    np.testing.assert_allclose(found, jax.jit(jax.grad(height(ag.Simulator(MODEL))))(Q), rtol=1e-14)


def test_results_are_strongly_typed():
    weak = jnp.full(2, 0.1)
    assert weak.weak_type
    for found in (step(ag.Simulator(MODEL), (weak, jnp.zeros(2))).v, jax.jit(height(ag.Simulator(MODEL)))(weak)):
        assert not found.weak_type and (found * jnp.float32(1.0)).dtype == jnp.float64
