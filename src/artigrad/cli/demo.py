"""The demo: a cart learns to swing its pole up, by gradient descent on 150 forces through the simulated motion."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .. import robots
from ..results import Outputs, Trajectory
from ..simulator import Simulator
from ..state import State

STEPS, DT, STARTS = 150, 0.02, 8
EFFORT = 1e-4


def loss_and_gradient(sim: Simulator, start: State, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, Trajectory]:
    """Per start, over the last third: how far the pole's tip is from one metre above the middle of the rail, and how
    fast it moves; and the effort of the motor."""
    traj = sim.rollout(start, u)
    states = State(traj.q, traj.v)
    out = sim.outputs(states)
    late = np.arange(STEPS + 1) >= 2 * STEPS // 3
    w = (late / late.sum())[:, None, None]
    error, speed = out.site_position - [0.0, 0.0, 1.0], out.site_velocity
    loss = np.sum(w * (error**2 + 0.05 * speed**2), (1, 2, 3)) + EFFORT * np.sum(u**2, (1, 2))
    bars = sim.outputs_vjp(states, Outputs(site_position=2.0 * w * error, site_velocity=0.1 * w * speed))
    grad = sim.vjp(traj, bars.q, bars.v, with_params=False)
    return loss, grad.u + 2 * EFFORT * u, traj


def swing_up(out: Path, iterations: int) -> bool:
    """Run the demo; True if the pole ends upright."""
    console = Console()
    began = time.perf_counter()
    model = robots.cartpole(damping=0.02)
    sim = Simulator(model, dt=DT)
    hanging = sim.reset("hanging", batch=STARTS)
    rng = np.random.default_rng(0)
    u = 2.0 * rng.normal(size=(STARTS, STEPS, 1)).cumsum(1) / np.sqrt(STEPS)
    first = loss_and_gradient(sim, hanging, u)
    console.print(
        f"first gradient after [bold]{time.perf_counter() - began:.2f} s[/] ({STARTS} starts x {STEPS} steps)"
    )
    _check_against_differences(console, sim, hanging, u, first[1], rng)

    curve, mean, square, spent = [], np.zeros_like(u), np.zeros_like(u), 0.0
    columns = (
        TextColumn("swing-up"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=iterations)
        for k in range(1, iterations + 1):
            tick = time.perf_counter()
            loss, g, traj = loss_and_gradient(sim, hanging, u)
            spent += time.perf_counter() - tick
            curve.append(loss)
            mean, square = 0.9 * mean + 0.1 * g, 0.99 * square + 0.01 * g * g  # Adam
            u = u - 0.3 * (mean / (1 - 0.9**k)) / (np.sqrt(square / (1 - 0.99**k)) + 1e-9)
            progress.update(task, advance=1, description=f"best loss {loss.min():.3f}")
    best = int(np.argmin(curve[-1]))
    angle = traj.q[best, :, 1]
    upright = bool(np.cos(angle[-1]) > 0.95)
    rate = iterations * STARTS * STEPS / spent / 1e6
    console.print(f"{iterations} gradients of {STARTS} starts: {rate:.2f} million robot-steps with gradient per second")
    console.print(
        f"the pole ends {'[green]upright[/]' if upright else '[red]not upright[/]'}: cos(angle) = {np.cos(angle[-1]):.3f}"
    )
    _plot(console, out, np.array(curve), traj.q[best], u[best])
    return upright


def _check_against_differences(
    console: Console, sim: Simulator, start: State, u: np.ndarray, g: np.ndarray, rng: np.random.Generator
) -> None:
    """One line: the gradient along a random direction, and central differences."""
    d, h = rng.normal(size=u.shape), 1e-5
    up, down = (loss_and_gradient(sim, start, u + s * h * d)[0].sum() for s in (1, -1))
    fd, ours = (up - down) / (2 * h), float(np.sum(g * d))
    console.print(
        f"gradient along a random direction {ours:.9f}, finite differences {fd:.9f}: relative error {abs(fd / ours - 1):.1e}"
    )


def _plot(console: Console, out: Path, curve: np.ndarray, q: np.ndarray, u: np.ndarray) -> None:
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        console.print("no plot: pip install 'artigrad[plot]' brings matplotlib")
        return
    out.mkdir(parents=True, exist_ok=True)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
    left.semilogy(curve, color="0.7", lw=1)
    left.semilogy(curve.min(1), color="C0", lw=2)
    left.set(title="loss of each start, and the best", xlabel="iteration")
    moments = np.linspace(0, len(q) - 1, 40).astype(int)
    for k in moments:
        x, angle = q[k]
        shade = plt.get_cmap("viridis")(k / len(q))
        middle.plot([x, x + np.sin(angle)], [0, np.cos(angle)], color=shade, lw=2)
    middle.axhline(0, color="0.8", zorder=0)
    middle.set(title="the pole, from early (dark) to late (bright)", aspect="equal", xlabel="x / m")
    right.plot(np.arange(len(u)) * DT, u[:, 0])
    right.set(title="force on the cart", xlabel="t / s", ylabel="N")
    file = out / "swing_up.png"
    figure.savefig(file, dpi=110)
    plt.close(figure)
    console.print(f"plot: [bold]{file}[/]")
