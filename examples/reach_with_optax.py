"""Swing a double pendulum's tip to a target and stop there: torques optimized by optax through the physics (JAX).

python examples/reach_with_optax.py
"""

import jax
import jax.numpy as jnp
import optax

import artigrad as ag
from artigrad.jax import rollout, sites

jax.config.update("jax_enable_x64", True)
STEPS, DT = 100, 0.02
TARGET = jnp.array([1.0, 0.0, 0.5])


def main():
    sim = ag.Simulator(ag.robots.pendulum(2, damping=0.05), dt=DT)
    start = jax.tree.map(jnp.asarray, sim.reset())

    def tip_and_speed(u):
        last = jax.tree.map(lambda x: x[-1], rollout(sim, start, u))
        return sites(sim, last)[0], last.v

    def loss(u):
        tip, speed = tip_and_speed(u)
        return jnp.square(tip - TARGET).sum() + 0.02 * jnp.square(speed).sum() + 1e-5 * jnp.square(u).sum()

    schedule = optax.cosine_decay_schedule(0.3, 200)
    optimizer = optax.adam(schedule)

    @jax.jit
    def improve(u, memory):
        value, slope = jax.value_and_grad(loss)(u)
        change, memory = optimizer.update(slope, memory)
        return optax.apply_updates(u, change), memory, value

    u = 0.1 * jax.random.normal(jax.random.key(0), (STEPS, 2))
    memory = optimizer.init(u)
    for iteration in range(200):
        u, memory, value = improve(u, memory)
        if iteration % 50 == 0:
            print(f"iteration {iteration}: loss {value:.4f}")
    tip, speed = tip_and_speed(u)
    distance = float(jnp.linalg.norm(tip - TARGET))
    print(f"the tip ends {distance:.4f} m from the target, joints at {jnp.abs(speed).max():.3f} rad/s at most")
    assert distance < 0.02 and jnp.abs(speed).max() < 0.2


if __name__ == "__main__":
    main()
