"""Rows to be timed, and their timing.

The rows here are those of `benchmarks.engine`: artigrad, MuJoCo and Pinocchio on the same robots; `benchmarks.contact` has
others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pinocchio as pin
from rich.progress import Progress

import artigrad as ag

from . import peers

DT = 1e-3
STEP = "MuJoCo mj_step"  # the row all ratios refer to
CHAINS = (4, 8, 16, 32, 64, 128, 256)
FLOATS = {"f64": np.float64, "f32": np.float32}
FORWARD, GRADIENT, WITH_PARAMS = "forward", "forward + gradient", "forward + gradient, parameters too"
BACKWARD = "gradient alone"


class Scale(NamedTuple):
    """Size of the benchmark."""

    rounds: int
    starts: int  # processes per figure of the first gradient
    sample: float  # seconds a sample takes at least
    many_steps: int  # of 4096 robots
    link_steps: int  # links times steps of a chain
    long_steps: int
    long_memory: str


FULL = Scale(50, 3, 0.01, 50, 1 << 16, 1_000_000, "32MB")
QUICK = Scale(5, 1, 0.002, 10, 1 << 13, 50_000, "2MB")


@dataclass
class Row:
    """Call to be timed. One call does `units` units of work: steps of one robot, calls, or steps of one link."""

    name: str
    call: Callable[[], Any]
    units: int = 1
    robots: int = 1
    dtype: str = "f64"
    threads: int = 1
    repeats: int = 1
    samples: list[float] = field(default_factory=list)  # microseconds per unit

    @property
    def key(self) -> tuple[str, int, str, int]:
        return self.name, self.robots, self.dtype, self.threads

    @property
    def median(self) -> float:
        return float(np.median(self.samples))

    @property
    def least(self) -> float:
        return min(self.samples)

    def time(self) -> float:
        """Return the seconds of `repeats` calls."""
        start = time.perf_counter()
        for _ in range(self.repeats):
            self.call()
        return time.perf_counter() - start

    def sample(self) -> None:
        self.samples.append(self.time() / (self.repeats * self.units) * 1e6)


class CoreRow(Row):
    """Row timed in CPU seconds, which depend little on other load."""

    def time(self) -> float:
        start = time.process_time()
        for _ in range(self.repeats):
            self.call()
        return time.process_time() - start


Rows = dict[tuple[str, int, str, int], Row]


# -- one robot and many -----------------------------------------------------------------------------------------------
class Ours:
    """Simulator with states, controls and random cotangents of the same dtype; one robot has no batch axis."""

    def __init__(
        self,
        model: ag.Model,
        state: ag.State,
        u: np.ndarray,
        dtype: str = "f64",
        threads: int = 1,
        **options: Any,
    ):
        self.sim = ag.Simulator(model, DT, dtype=dtype, threads=threads, **options)  # type: ignore[arg-type]
        rng, lead = np.random.default_rng(1), state.q.shape[:-1]
        bars = [0.2 * rng.normal(size=(*lead, n)) for n in (model.nq, model.nv)]
        q, v, self.u, *self.bars = (np.ascontiguousarray(x, FLOATS[dtype]) for x in (*state, u, *bars))
        self.state, self.robots, self.steps = ag.State(q, v), int(np.prod(lead)), u.shape[-2]

    @classmethod
    def random(cls, model: ag.Model, robots: int, steps: int, *args: Any, **options: Any) -> Ours:
        """Return random states, and small random controls."""
        rng = np.random.default_rng(0)
        q = ag.integrate(model, model.keyframe().q, 0.2 * rng.normal(size=(robots, model.nv)))
        v, u = (0.2 * rng.normal(size=(robots, *shape)) for shape in ((model.nv,), (steps, model.nu)))
        state, u = (ag.State(q, v), u) if robots > 1 else (ag.State(q[0], v[0]), u[0])
        return cls(model, state, u, *args, **options)

    @cached_property
    def trajectory(self) -> ag.Trajectory:
        return self.forward()

    def jacobian(self) -> tuple[np.ndarray, np.ndarray]:
        """Compute the Jacobian of the first step."""
        return self.sim.linearize(self.state, self.u[..., 0, :])

    def forward(self) -> ag.Trajectory:
        return self.sim.rollout(self.state, self.u)

    def gradient(self) -> ag.Gradient:
        return self.sim.vjp(self.forward(), q_bar=self.bars[0], v_bar=self.bars[1], with_params=False)

    def gradient_with_params(self) -> ag.Gradient:
        return self.sim.vjp(self.forward(), q_bar=self.bars[0], v_bar=self.bars[1])

    def backward(self) -> ag.Gradient:
        return self.sim.vjp(self.trajectory, q_bar=self.bars[0], v_bar=self.bars[1], with_params=False)

    def row(self, name: str, call: Callable[[], Any]) -> Row:
        return Row(name, call, self.robots * self.steps, self.robots, self.sim.dtype, self.sim.threads)

    def rows(self, prefix: str = "", suffix: str = "") -> list[Row]:
        calls = {FORWARD: self.forward, GRADIENT: self.gradient, WITH_PARAMS: self.gradient_with_params}
        return [self.row(prefix + name + suffix, call) for name, call in calls.items()]


def peer_rows(model: ag.Model) -> list[Row]:
    """Return rows of MuJoCo and Pinocchio, and of a single step of artigrad."""
    ours = Ours.random(model, 1, 1)
    state, u = ours.state, ours.u[0]
    m, d = peers.mujoco_robot(model, DT)

    def mujoco_steps(calls: int, steps: int) -> None:
        d.qpos[:], d.qvel[:], d.ctrl[:] = state.q, state.v, u  # reset: otherwise the motors spin the legs
        for _ in range(calls):
            mujoco.mj_step(m, d, nstep=steps)

    robot, single = peers.pinocchio_robot(model), peers.pinocchio_robot(ag.robots.chain(1))
    data, single_data = robot.createData(), single.createData()
    q, v = peers.pinocchio_state(state)
    torque, one = peers.pinocchio_torque(model, u), np.zeros(1)
    return [
        Row(STEP, lambda: mujoco_steps(1, 1000), 1000),
        Row("MuJoCo mj_step, from Python", lambda: mujoco_steps(1000, 1), 1000),
        Row("Pinocchio aba, from Python", lambda: pin.aba(robot, data, q, v, torque)),
        Row(
            "Pinocchio computeABADerivatives, from Python",
            lambda: pin.computeABADerivatives(robot, data, q, v, torque),
        ),
        Row(
            "Pinocchio aba of one joint, from Python (call overhead)",
            lambda: pin.aba(single, single_data, one, one, one),
        ),
        Row("sim.step, from Python", lambda: ours.sim.step(state, u)),
    ]


def our_rows(model: ag.Model, scale: Scale) -> list[Row]:
    """Return rows of one robot, 64 and 4096; both dtypes; one thread and two."""
    rows = []
    for dtype in FLOATS:
        rows += Ours.random(model, 1, 1000, dtype).rows()
        for robots, steps in ((64, 200), (4096, scale.many_steps)):
            for threads in (1, 2):
                rows += Ours.random(model, robots, steps, dtype, threads).rows()
    return rows + Ours.random(model, 1, 10_000).rows(suffix=" (10,000 steps)")


def factor_rows(model: ag.Model) -> list[Row]:
    """Return rows of factor="sparse"; "articulated" is among the rows above."""
    sizes = ((1, 1000), (64, 200))
    every = [Ours.random(model, robots, steps, factor="sparse") for robots, steps in sizes]
    return [ours.row(f"{FORWARD}, sparse", ours.forward) for ours in every]


def chain_rows(scale: Scale) -> list[Row]:
    """Return rows of chains of increasing length with the same number of links times steps."""
    rows = []
    for n in CHAINS:
        model, steps = ag.robots.chain(n), scale.link_steps // n
        articulated, sparse = Ours.random(model, 1, steps), Ours.random(model, 1, steps, factor="sparse")
        calls = {FORWARD: articulated.forward, GRADIENT: articulated.gradient, f"{FORWARD}, sparse": sparse.forward}
        rows += [Row(f"chain of {n}: {name}", call, n * steps) for name, call in calls.items()]
    return rows


def time_rows(rows: list[Row], scale: Scale, progress: Progress) -> dict[str, float]:
    """Run all rounds. Before the first, each row is called once to compile it and once to choose its number of repeats.

    Each sample follows a call that is not timed, so that caches and memory are in the state of a steady loop.

    Returns:
        Mean number of busy cores beside the timed thread. If it is well above zero, there was other load, and rows with two
        threads had less than two cores; or a library uses threads (NumPy's BLAS) in rows with one thread.
    """
    task = progress.add_task("compile", total=len(rows))
    for row in rows:
        row.call()
        row.repeats = max(1, round(scale.sample / max(row.time(), 1e-7)))
        progress.advance(task)
    task = progress.add_task("rounds", total=scale.rounds * len(rows))
    start, own, others = time.monotonic(), time.process_time(), _busy_seconds() - time.process_time()
    for _ in range(scale.rounds):
        for row in rows:
            row.call()
            row.sample()
            progress.advance(task)
    wall = time.monotonic() - start
    busy = {"other work": _busy_seconds() - time.process_time() - others, "these rows": time.process_time() - own}
    return {f"cores busy with {what}": round(seconds / wall, 2) for what, seconds in busy.items()}


def _busy_seconds() -> float:
    """Return the non-idle seconds of all cores of this machine since its start, stolen time included."""
    ticks = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle, waiting = 3, 4
    return (sum(ticks) - ticks[idle] - ticks[waiting]) / os.sysconf("SC_CLK_TCK")
