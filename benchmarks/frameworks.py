"""Overhead of PyTorch and JAX over native calls: `python -m benchmarks.frameworks [--quick] [--out FOLDER]`.

Times of a step and of a rollout of 256 standing Laikagos, one thread, beside the same call of the Simulator, timed in
rounds as in `benchmarks.engine`, in CPU seconds. Native code is up to 7 % faster or slower by its stack address, which a
framework changes; ratios of rollouts contain that. A network in the loop, inside the kernel and outside. Peak memory of a
long gradient beside that of the same physics in plain PyTorch (`benchmarks.plain_torch`), and of a policy in the loop, each
in a separate process.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch import nn

import artigrad as ag
from artigrad import jax as aj
from artigrad import torch as at
from artigrad.torch.sequential import OfState

from . import report
from .probe import measure
from .report import Sheet, at_least, at_most
from .rows import DT, FORWARD, FULL, GRADIENT, QUICK, CoreRow, Row, time_rows

ROBOTS, STEPS = 256, 100
LONG, TAPED, LOOP = 5000, 12, 1000  # steps
LOOPED = 64  # steps of a loop that is timed
NATIVE, TORCH, JAX = "native", "PyTorch", "JAX, jit"
INSIDE, OUTSIDE = "inside the kernel", "outside"


def framework_rows() -> list[Row]:
    """Return rows of a step and a rollout, forward and with the gradient of the controls, by each interface."""
    model = ag.robots.laikago()
    sim = ag.Simulator(model, DT, threads=1)
    rng = np.random.default_rng(0)
    u = model.keyframe_control() + 0.05 * rng.normal(size=(ROBOTS, STEPS, model.nu))
    start = sim.rollout(sim.reset(batch=ROBOTS), u).final  # on their feet, and apart from each other
    traj = sim.rollout(start, u)
    whole = Inputs(start, u, [rng.normal(size=x.shape) for x in (traj.q, traj.v)])
    one = Inputs(start, u[:, 0].copy(), [x[:, 1].copy() for x in whole.bars])
    rows = []
    for name, calls in (("step", _step_calls(sim, one)), ("rollout", _rollout_calls(sim, whole))):
        rows += [CoreRow(f"{name}, {kind}: {what}", call, 1, ROBOTS) for (kind, what), call in calls.items()]
    return rows


class Inputs(NamedTuple):
    """States, controls and cotangents of the outputs."""

    state: ag.State
    u: np.ndarray
    bars: list[np.ndarray]

    def to(self, kind: Callable[[Any], Any]) -> tuple[Any, Any, Any, list[Any]]:
        q, v, u, *bars = map(kind, (*self.state, self.u, *self.bars))
        return q, v, u, bars


Calls = dict[tuple[str, str], Callable[[], Any]]


def _step_calls(sim: ag.Simulator, given: Inputs) -> Calls:
    state, u, bars = given

    def gradient() -> None:
        sim.vjp(sim.rollout(state, u[:, None]), q_bar=bars[0], v_bar=bars[1], with_params=False)

    return {
        (FORWARD, NATIVE): lambda: sim.step(state, u),
        (GRADIENT, NATIVE): gradient,
        **_framework_calls(sim, given, at.step, aj.step),
    }


def _rollout_calls(sim: ag.Simulator, given: Inputs) -> Calls:
    state, u, bars = given

    def gradient() -> None:
        sim.vjp(sim.rollout(state, u), q_bar=bars[0], v_bar=bars[1], with_params=False)

    return {
        (FORWARD, NATIVE): lambda: sim.rollout(state, u),
        (GRADIENT, NATIVE): gradient,
        **_framework_calls(sim, given, at.rollout, aj.rollout),
    }


def _framework_calls(sim: ag.Simulator, given: Inputs, in_torch: Callable, in_jax: Callable) -> Calls:
    """Return the calls of PyTorch and JAX."""
    q, v, u, bars = given.to(torch.tensor)
    place, speed, push, push_bars = given.to(jnp.asarray)
    u.requires_grad_()

    def slope(push: Any) -> Any:
        _, back = jax.vjp(lambda u: in_jax(sim, (place, speed), u), push)
        return back(ag.State(*push_bars))

    jax_forward, jax_gradient = jax.jit(lambda u: in_jax(sim, (place, speed), u)), jax.jit(slope)
    return {
        (FORWARD, TORCH): lambda: in_torch(sim, (q, v), u),
        (GRADIENT, TORCH): lambda: torch.autograd.grad(in_torch(sim, (q, v), u), u, bars),
        (FORWARD, JAX): lambda: jax.block_until_ready(jax_forward(push)),
        (GRADIENT, JAX): lambda: jax.block_until_ready(jax_gradient(push)),
    }


def loop_rows() -> list[Row]:
    """Return rows of a network in the loop of Laikagos, 64 steps: inside the kernel and outside, forward and with gradient."""
    model, rows = ag.robots.laikago(), []
    sim = ag.Simulator(model, DT, threads=1, dtype="f32")
    for robots in (1, ROBOTS):
        state = tuple(map(torch.tensor, sim.reset(batch=robots)))
        for width in (64, 256):
            torch.manual_seed(0)
            sizes = (model.nq + model.nv, width, width, model.nu)
            layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.Tanh())]
            net = nn.Sequential(*layers)
            for where, policy in ((INSIDE, net), (OUTSIDE, OfState(net))):

                def forward(policy: nn.Module = policy, state: Any = state) -> None:
                    with torch.no_grad():
                        at.closed_loop(sim, policy, state, LOOPED)

                def gradient(policy: nn.Module = policy, state: Any = state) -> None:
                    at.closed_loop(sim, policy, state, LOOPED).q.sum().backward()

                for kind, call in ((FORWARD, forward), (GRADIENT, gradient)):
                    rows.append(CoreRow(f"{robots} x {width} wide, {kind}: {where}", call, LOOPED * robots, robots))
    return rows


def scan_rows() -> list[Row]:
    """Return rows of 100 steps of one robot: a native rollout, and a scan of steps in JAX."""
    model = ag.robots.laikago()
    sim = ag.Simulator(model, DT, threads=1)
    state, u = sim.reset(), np.tile(model.keyframe_control(), (STEPS, 1))
    start, push = jax.tree.map(jnp.asarray, state), jnp.asarray(u)

    def scanned(u: Any) -> Any:
        return jax.lax.scan(lambda s, u: (aj.step(sim, s, u), None), start, u)[0]

    forward = jax.jit(scanned)
    return [
        CoreRow(f"scan, {FORWARD}: {NATIVE}", lambda: sim.rollout(state, u), 1, 1),
        CoreRow(f"scan, {FORWARD}: {JAX}", lambda: jax.block_until_ready(forward(push)), 1, 1),
    ]


def loop_sheet(rows: list[Row]) -> Sheet:
    by = {row.name: row.median for row in rows}
    lines = []
    for row in rows:
        other = by[row.name.rsplit(": ", 1)[0] + f": {OUTSIDE}"]
        lines.append([row.name, f"{row.median:.2f}", f"{row.least:.2f}", f"{other / row.median:.1f} x"])
    title = f"A network of two hidden layers in the loop, Laikago, f32, {LOOPED} steps, one thread: us per robot-step"
    return Sheet(title, ["", "median", "min", "as fast as outside"], lines)


def time_sheet(rows: list[Row]) -> Sheet:
    lines, by = [], {row.name: row.median for row in rows}
    for row in rows:
        native = by[row.name.rsplit(": ", 1)[0] + f": {NATIVE}"]
        lines.append(
            [
                row.name,
                f"{row.median:.0f}",
                f"{row.least:.0f}",
                f"{row.median - native:+.0f}",
                f"{row.median / native:.3f} x",
            ]
        )
    title = f"{ROBOTS} Laikagos, {STEPS} steps in a rollout, one thread: us per call"
    return Sheet(title, ["", "median, us", "min, us", "over native, us", "of native"], lines)


def memory_sheet(memory: dict[str, Any]) -> Sheet:
    ours, tape, loop = memory["torch"], memory["plain"], memory["loop"]
    whole = tape["MB_per_step"] * LONG / 1e3
    lines = [
        [
            f"artigrad.torch, {LONG} steps and back: peak above the start",
            f"{ours['beyond_MB']:.1f} MB, {ours['seconds']:.2f} s",
        ],
        [
            f"plain PyTorch, {TAPED} steps and back",
            f"{tape['MB_per_step']:.1f} MB a step, {tape['seconds'] / TAPED:.2f} s a step",
        ],
        [f"plain PyTorch, {LONG} steps: what that would be", f"{whole:.0f} GB"],
        [
            f"128 robots, {loop['weights'] / 1e6:.2f} million weights in the loop, {memory['loop_steps']} steps and back",
            f"{loop['beyond_MB']:.0f} MB above the start, {loop['states_MB']:.0f} MB of them states, {loop['seconds']:.0f} s",
        ],
    ]
    return Sheet("Memory of a Laikago's gradient (separate processes)", ["", "figure"], lines)


def targets(rows: list[Row], loops: list[Row], memory: dict[str, Any]) -> list[dict[str, Any]]:
    by = {row.name: row.median for row in rows}
    found = []
    for kind in (FORWARD, GRADIENT):
        over = by[f"step, {kind}: {TORCH}"] - by[f"step, {kind}: {NATIVE}"]
        calls = 1 if kind == FORWARD else 2
        found.append(at_most(f"PyTorch over native, per call, a step of {ROBOTS}: {kind}", over / calls, 150.0, "us"))
        share = by[f"rollout, {kind}: {TORCH}"] / by[f"rollout, {kind}: {NATIVE}"]
        found.append(at_most(f"PyTorch of native, a rollout of {STEPS} steps: {kind}", share, 1.05))
        share = by[f"rollout, {kind}: {JAX}"] / by[f"rollout, {kind}: {NATIVE}"]
        found.append(at_most(f"JAX of native, a rollout of {STEPS} steps: {kind}", share, 1.1))
    times = {row.name: row.median for row in loops}
    for name in (row.name for row in loops if row.name.endswith(INSIDE)):
        what, gain = name.rsplit(": ", 1)[0], times[name.replace(INSIDE, OUTSIDE)] / times[name]
        found.append(
            at_least(f"network inside, as fast as outside, {what}", gain, 15.0 if what.startswith("1 ") else 2.0)
        )
    found.append(at_most(f"PyTorch, peak memory of {LONG} steps and back", memory["torch"]["beyond_MB"], 10.0, "MB"))
    return found


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="rough figures")
    parser.add_argument(
        "--out", type=Path, default=Path("benchmarks/results"), help="folder of frameworks.json and .md"
    )
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else FULL
    console = Console() if sys.stdout.isatty() else Console(width=120)
    torch.set_num_threads(1)
    jax.config.update("jax_enable_x64", True)

    about = report.machine() | {"torch": torch.__version__, "jax": jax.__version__}
    loop_steps = LOOP // 20 if arguments.quick else LOOP
    memory: dict[str, Any] = {"torch": measure("torch_gradient", LONG), "plain": measure("plain_torch", TAPED)}
    memory |= {"loop": measure("closed_loop", loop_steps), "loop_steps": loop_steps}
    rows, loops = framework_rows() + scan_rows(), loop_rows()
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, refresh_per_second=2) as progress:
        about |= time_rows(rows + loops, scale, progress)
    reached = targets(rows, loops, memory)
    sheets = [time_sheet(rows), loop_sheet(loops), memory_sheet(memory), report.target_sheet(reached)]
    for sheet in sheets:
        console.print(sheet.rich(), "")
    console.print(", ".join(f"{key} {value}" for key, value in about.items()))
    found = {"machine": about, "rounds": scale.rounds, "memory": memory, "targets": reached}
    report.save(arguments.out, "frameworks", "PyTorch and JAX", found, rows + loops, sheets)
    console.print(f"saved {arguments.out / 'frameworks.json'} and frameworks.md")


if __name__ == "__main__":
    main()
