"""Comparison of all gradients of a rollout with finite differences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arguments import checked
from ..errors import InputError
from ..model import tangent
from ..model.model import Model
from ..model.params import EXTRAS, FIELDS, Params
from ..model.state import State
from .checks import UNIT_TOLERANCE
from .kinks import angular_servo_kinks
from .simulator import Simulator

NUMBERS = 4_000_000  # parameter values in memory at a time
STEPS = (
    1e-4,
    1e-5,
    1e-6,
    1e-7,
    1e-8,
    1e-9,
    1e-10,
    1e-3,
    1e-2,
)  # small ones for points near kinks of contact, large ones for entries below the rounding error
STRUCTURAL = ("dry_friction", "tendon_dry_friction", "restitution")  # 0: no constraint row
HALVED = (
    "friction",
    "torsional_friction",
    "rolling_friction",
)  # the larger of a pair; the gradient of equal ones is halved


class Check(NamedTuple):
    """Result for one input.

    Attributes:
      what: Name of the input or parameter.
      entries: Number of entries compared.
      largest: Largest magnitude of the gradient.
      error: Largest deviation from finite differences, relative to `largest`, or to a hundredth of the largest gradient
        with respect to velocities if that is more.
    """

    what: str
    entries: int
    largest: float
    error: float


@checked
def gradcheck(
    model_or_sim: Any,
    *,
    steps: int = 3,
    samples: int = 2,
    seed: int = 0,
    tolerance: float = 1e-6,
    show: bool = True,
    state: State | None = None,
    entries: int | None = None,
) -> list[Check]:
    """Check the gradients of a rollout with respect to q0, v0, act0, u and every parameter.

    The loss is a random linear function of all states. Finite differences are extrapolated from two step sizes, central and
    one-sided ones, for several such pairs of steps; the closest one counts. Their own error is about 1e-9 where the rollout
    is smooth. At a kink, where a contact is just made, the gradient is one-sided.

    Args:
      model_or_sim: Model, or Simulator with dtype="f64".
      steps: Number of steps of the rollout.
      samples: Number of random states.
      seed: Seed of states, controls and loss.
      tolerance: Largest relative error.
      show: Print a table.
      state: State to check at, in place of random ones; for example one in contact.
      entries: Maximum number of entries per input: those with the largest gradients and as many others. None: all, unless
        there are very many.

    Returns:
      One row per input.

    Raises:
      ArithmeticError: A relative error is above `tolerance`.
    """
    sim = Simulator(model_or_sim) if isinstance(model_or_sim, Model) else model_or_sim
    if not isinstance(sim, Simulator):
        raise InputError(f"gradcheck takes a Model or a Simulator, not {type(sim).__name__}")
    if sim.dtype != "f64":
        raise InputError("gradcheck needs dtype='f64': finite differences in f32 are too inaccurate")
    for what, value, least in (("steps", steps, 1), ("samples", samples, 1), ("seed", seed, 0)):
        if value < least:
            raise InputError(f"{what} of gradcheck is a whole number, at least {least}, not {value}")
    if entries is not None and entries < 1:
        raise InputError(f"entries of gradcheck is a whole number, at least 1, not {entries}")
    if state is not None:
        checked_state, batched = sim.checks.state(state)
        if batched:
            raise InputError("the state of gradcheck has no batch axis")
        state = checked_state.map(lambda x: x[0])
    rng = np.random.default_rng(seed)
    worst: dict[str, Check] = {}
    margin = np.inf
    for _ in range(samples):
        found, near = _one_sample(sim, steps, rng, state, tolerance, entries)
        margin = min(margin, near)
        for row in found:
            old = worst.get(row.what)
            if old is None or row.error > old.error:
                worst[row.what] = row
    rows = list(worst.values())
    if show:
        _print(sim, steps, rows, tolerance)
    bad = [r for r in rows if not r.error <= tolerance]
    if bad:
        raise ArithmeticError(
            "gradients differ from finite differences: "
            + ", ".join(f"{r.what} {r.error:.1e}" for r in bad)
            + f"; the nearest contact or limit was {margin:.0e} m/s from another regime or from other contact features"
            + " (health.switch_margin)"
        )
    return rows


def random_state(model: Model, rng: np.random.Generator, batch: int | None = None) -> State:
    """Return a random state near the model's keyframe."""
    lead = () if batch is None else (batch,)
    q0 = model.keyframe().q
    q = tangent.integrate(model, np.broadcast_to(q0, (*lead, model.nq)), 0.5 * rng.normal(size=(*lead, model.nv)))
    v, act = 0.5 * rng.normal(size=(*lead, model.nv)), rng.uniform(0.1, 0.9, size=(*lead, model.na))
    return State(q, v, act)


def _one_sample(
    sim: Simulator, steps: int, rng: np.random.Generator, start: State | None, tolerance: float, most: int | None
) -> tuple[list[Check], float]:
    """Return results of all inputs at one state, and the smallest switch margin of the rollout, m/s."""
    m = sim.model
    state = random_state(m, rng) if start is None else State(*start).map(lambda x: np.array(x, dtype=float))
    u = 0.5 * rng.normal(size=(steps, m.nu))
    bars = State(*(rng.normal(size=(steps + 1, n)) for n in (m.nq, m.nv, m.na)))
    grad = sim.vjp(sim.rollout(state, u), q_bar=bars.q, v_bar=bars.v, act_bar=bars.act)
    assert grad.params is not None

    def losses(start: State, u: np.ndarray, params: Params) -> np.ndarray:
        traj = sim.rollout(start, u, params=params)
        return sum(np.sum(x * bar, (1, 2)) for x, bar in zip(traj.every_state(), bars, strict=True))

    def vary(what: str, entries: np.ndarray, scale: np.ndarray, step: float) -> list[np.ndarray]:
        """Return central, forward and backward differences of the loss along entries of an input, extrapolated."""
        along, out = np.zeros((len(entries), scale.size)), []
        along[np.arange(len(entries)), entries] = scale[entries]
        for h in (2 * step, step):
            moves = np.concatenate([along, -along, np.zeros((1, scale.size))]) * h
            if what in STRUCTURAL:
                moves = moves * (sim.params[what].ravel() > 0)
            if any(what in names and kind not in m.features for kind, names in EXTRAS.items()):
                moves = moves * 0.0  # features are fixed by the model
            n = len(moves)
            start = state.map(lambda x, n=n: np.repeat(x[None], n, 0))  # type: ignore[misc]
            us, params = np.repeat(u[None], n, 0), sim.params
            if what in ("q0", "v0", "act0"):
                start = start._replace(**{what[:-1]: getattr(start, what[:-1]) + moves})
            elif what == "u":
                us = us + moves.reshape(us.shape)
            else:
                base = sim.params[what]
                params = sim.params.replace(unchecked=True, **{what: base + moves.reshape(n, *base.shape)})
            found = losses(start, us, params)
            up, down, here = found[: len(entries)], found[len(entries) : -1], found[-1]
            out.append([x / (h * scale[entries]) for x in ((up - down) / 2, up - here, here - down)])
        (coarse, *rough), (fine, *sides) = out
        central = 2 * fine - coarse if what in HALVED else (4 * fine - coarse) / 3
        return [central, *(2 * x - y for x, y in zip(sides, rough, strict=True))]

    rows = []
    floor = max(
        1e-3, 1e-2 * float(np.abs(grad.v0).max(initial=0.0))
    )  # smaller gradients are below the rounding error of the rollout
    inputs: list[tuple[str, np.ndarray, np.ndarray]] = [
        ("q0", state.q, grad.q0),
        ("v0", state.v, grad.v0),
        ("act0", state.act, grad.act0),
        ("u", u, grad.u),
    ]
    inputs += [(name, sim.params[name], grad.params[name]) for name in FIELDS]
    for what, x, g in inputs:
        if x.size == 0:
            continue
        x = np.where(np.isfinite(x), x, 0.0).ravel()
        scale = _scales(sim, state, what, x)
        entries = _chosen(g.ravel(), most or max(100, NUMBERS // m.param_size), rng)
        found, edge = g.ravel()[entries], _on_an_edge(sim, what, x)[entries]
        scale = np.where(scale > 0, scale, 1.0)
        off, largest = np.full(len(entries), np.inf), float(np.abs(found).max())
        enough = 0.01 * min(tolerance, 1e-6) * max(largest, floor)
        for step in STEPS:
            left = np.flatnonzero(~(off <= enough))  # entries without a matching difference so far
            if not len(left) or (what == "q0" and 2 * step > UNIT_TOLERANCE):  # quaternions stay near unit norm
                break
            tries = vary(what, entries[left], scale, step)
            tries = [np.where(np.isfinite(fd), fd, 0.0) for fd in tries]  # an infinite limit stays infinite
            tries = [np.where(edge[left], found[left], fd) for fd in tries]
            off[left] = np.minimum(off[left], np.min([np.abs(fd - found[left]) for fd in tries], axis=0))
        rows.append(Check(what, len(entries), largest, float(off.max()) / max(largest, floor)))
    return rows, float(np.min(grad.health.switch_margin))


def _chosen(g: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return all entries; for very many, those with the largest gradients and as many random others."""
    if g.size <= most:
        return np.arange(g.size)
    by_size = np.argsort(-np.abs(g))
    half = (most + 1) // 2
    return np.sort(np.concatenate([by_size[:half], rng.choice(by_size[half:], most - half, replace=False)]))


def _on_an_edge(sim: Simulator, what: str, x: np.ndarray) -> np.ndarray:
    """Return a mask of entries at the end of their range, where finite differences are not comparable."""
    if what in (
        "friction",
        "restitution",
        "body_invweight0",
        "dof_invweight0",
    ):  # a weight of zero is replaced by a tiny one
        return x <= 0
    if what in ("gain", "bias", "gear_axes"):  # an angular servo that wraps
        return angular_servo_kinks(sim.model, sim.params)[what].ravel()
    if what == "pair_solref_friction":  # two zeros: unused
        return np.repeat(~x.reshape(-1, 2).any(1), 2)
    if what.endswith("solref") and sim.options.constant_numbers[0] > 0.0:  # time constants are at least two steps
        times = np.arange(x.size) % 2 == 0
        return times & (np.abs(x / (2 * sim.options.dt) - 1) < 2 * STEPS[0])
    return np.zeros(x.size, bool)


def _scales(sim: Simulator, state: State, what: str, x: np.ndarray) -> np.ndarray:
    """Return the scale of each entry, to which difference steps are relative."""
    least = float(sim.mass_matrix(state).diagonal().min(initial=1.0))  # the smallest entry of M
    if what in ("inertia", "mass"):  # relative to the body; zeros have the scale of the other entries
        rows = np.abs(x).reshape(sim.model.nb, -1)
        own = np.broadcast_to(rows.max(1, keepdims=True), rows.shape)
        floor = least if what == "inertia" else 1e-4 * rows.max()
        return np.maximum(np.where(own > 0, own, rows.max() or 1.0), floor).ravel()
    if what == "armature":  # competes with M
        return np.full(x.size, min(1.0, least))
    if what in ("damping", "stiffness"):  # so do dt times damping and dt^2 times stiffness
        return np.full(x.size, min(1.0, least / sim.options.dt ** (1 if what == "damping" else 2)))
    if what in ("torsional_friction", "rolling_friction"):  # m, small
        return np.minimum(1.0, np.where(x > 0, 100 * x, 1.0))
    if what == "bias":  # acts through the gear
        return np.repeat(1.0 / np.maximum(1.0, np.abs(sim.params.gear)), 3)
    return np.ones(x.size)


def _print(sim: Simulator, steps: int, rows: list[Check], tolerance: float) -> None:
    from rich.console import Console  # loaded on demand
    from rich.table import Table

    table = Table(
        title=f"gradients of {sim.model.name}: {steps} steps, {sim.options.integrator}, dt {sim.options.dt:g}"
    )
    for name in ("with respect to", "entries", "largest", "relative error"):
        table.add_column(name, justify="left" if name == "with respect to" else "right")
    for r in rows:
        color = "green" if r.error <= tolerance else "red"
        table.add_row(r.what, str(r.entries), f"{r.largest:.2e}", f"[{color}]{r.error:.1e}[/]")
    Console().print(table)
