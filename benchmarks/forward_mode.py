"""Forward mode and Hessian-vector products beside alternatives: `python -m benchmarks.forward_mode`.

jvp along one direction beside a rollout, its gradient, and the Jacobians of all its steps; hvp beside central differences
of the gradient, with their error.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import artigrad as ag

STEPS, TRIES = 100, 15


def best(call: Callable[[], Any]) -> float:
    """Return the shortest of several runs, ms."""
    call()
    times = []
    for _ in range(TRIES):
        began = perf_counter()
        call()
        times.append(perf_counter() - began)
    return 1e3 * min(times)


def row(name: str, batch: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    sim = ag.Simulator(getattr(ag.robots, name)())
    start = sim.rollout(sim.state(batch=batch), steps=100).final
    u, du = (0.1 * rng.normal(size=(batch, STEPS, sim.model.nu)) for _ in range(2))
    traj = sim.rollout(start, u)
    q_bar = rng.normal(size=(batch, sim.model.nq))

    def gradient(u: np.ndarray) -> np.ndarray:
        return sim.vjp(sim.rollout(start, u), q_bar=q_bar, with_params=False).u

    def differences(h: float = 1e-5) -> np.ndarray:
        return (gradient(u + h * du) - gradient(u - h * du)) / (2 * h)

    exact = sim.hvp(traj, q_bar=q_bar, du=du, with_params=False).u
    return {
        "rollout": best(lambda: sim.rollout(start, u)),
        "vjp": best(lambda: sim.vjp(traj, q_bar=q_bar, with_params=False)),
        "jvp": best(lambda: sim.jvp(traj, du=du)),
        "linearize every step": STEPS * best(lambda: sim.linearize(start, u[:, 0])),
        "hvp": best(lambda: sim.hvp(traj, q_bar=q_bar, du=du, with_params=False)),
        "differences": best(differences),
        "their error": float(np.abs(differences() - exact).max() / np.abs(exact).max()),
    }


def main() -> None:
    for name in ("cartpole", "laikago", "humanoid"):
        for batch in (1, 64):
            found = row(name, batch)
            print(f"{name:9s} {batch:3d}  " + "  ".join(f"{k} {x:.3g}" for k, x in found.items()), flush=True)


if __name__ == "__main__":
    main()
