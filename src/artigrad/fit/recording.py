"""Recordings and their windows: short pieces that are simulated as a batch, each from its own initial state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arguments import is_number
from ..errors import InputError
from ..model import tangent
from ..model.params import Params
from ..model.state import State
from ..simulate.simulator import Simulator
from .poses import poses_from_sites
from .unwrap_angles import unwrap

QUIET = (
    0.1  # smallest scale of a channel, as a fraction of the widest of its kind, so that one at rest has no large weight
)
NEARBY = 4  # measurements on each side for the estimate of a velocity that was not recorded


@dataclass(frozen=True, eq=False)
class Recording:
    """N measurements at equal time intervals. Needs q or sites.

    Attributes:
      q: Joint positions (N, nq).
      v: Velocities (N, nv).
      sites: Positions of all sites of the model (N, ns, 3), m, world axes.
      u: Controls between measurements (N-1, nu); None: zero.
      dt: Time between measurements, s, a multiple of the simulator's dt; None: the simulator's. Activations are not
        measured: they follow from the controls, and their initial values are estimated.
    """

    q: Any = None
    v: Any = None
    sites: Any = None
    u: Any = None
    dt: float | None = None


class Windows(NamedTuple):
    """Recordings cut into W windows of H measurements.

    Attributes:
      q, v, sites: Measurements (W, H, ...), or None.
      counts: False for padding of the last window of a recording, (W, H).
      follows: True for windows that continue the one before, (W,).
      u: Controls up to the first measurement of the next window, (W, steps, nu).
      start: Recorded initial state of each window.
      scale: Range of each measured channel, by which residuals are divided, in the order q (nv), v, sites.
      reach: Range of positions, velocities and activations, measured or estimated, (2 nv + na,).
      every: Simulator steps between two measurements.
      longest: Measurements in the longest recording.
      notes: Corrections of angles that jumped.
    """

    q: np.ndarray | None
    v: np.ndarray | None
    sites: np.ndarray | None
    counts: np.ndarray
    follows: np.ndarray
    u: np.ndarray
    start: State
    scale: np.ndarray
    reach: np.ndarray
    every: int
    longest: int
    notes: tuple[str, ...]


def windows(sim: Simulator, data: Recording | Sequence[Recording], length: int, params: Params) -> Windows:
    """Cut recordings into windows of about equal length, at most `length` measurements."""
    recordings = [data] if isinstance(data, Recording) else list(data) if isinstance(data, list | tuple) else []
    if not recordings or not all(isinstance(r, Recording) for r in recordings):
        raise InputError("data is an ag.Recording(q=..., v=..., u=...) or a list of them")
    if not isinstance(length, int | np.integer) or length < 3:
        raise InputError(f"a window is an integer number of measurements, at least 3, not {length!r}")
    checked = [_checked(sim, r) for r in recordings]
    if len({(frozenset(c), every) for c, every in checked}) > 1:
        raise InputError("recordings of one fit need the same channels and the same dt")
    every = checked[0][1]
    notes = unwrap(sim, [c for c, _ in checked], every * sim.options.dt)
    kinds = [k for k in ("q", "v", "sites") if k in checked[0][0]]
    scale = np.concatenate([_scale(sim, k, [c[k] for c, _ in checked]) for k in kinds])
    counted = [len(c[kinds[0]]) for c, _ in checked]
    H = max(-(-n // -(-n // length)) for n in counted)
    pieces: dict[str, list[np.ndarray]] = {k: [] for k in (*kinds, "u", "counts", "follows", "q0", "v0", "act0")}
    reached = []
    for (arrays, _), n in zip(checked, counted, strict=True):
        q, v = _states(sim, arrays, every * sim.options.dt, params)
        act = _activations(sim, State(q[0], v[0]), arrays["u"], every, params)
        reached.append((q, v, act))
        for first in range(0, n, H):
            rows = np.minimum(np.arange(first, first + H), n - 1)
            for k in kinds:
                pieces[k].append(arrays[k][rows])
            pieces["u"].append(np.repeat(arrays["u"][np.minimum(rows, n - 2)], every, 0))
            pieces["follows"].append(np.array(first > 0))
            pieces["counts"].append(np.arange(first, first + H) < n)
            pieces["q0"].append(q[first])
            pieces["v0"].append(v[first])
            pieces["act0"].append(act[first])
    parts = zip(("q", "v", "act"), zip(*reached, strict=True), strict=True)
    reach = np.concatenate([_scale(sim, k, list(x)) for k, x in parts])
    stacked = {k: np.stack(x) for k, x in pieces.items()}
    start = State(stacked["q0"], stacked["v0"], stacked["act0"])
    q_, v_, sites = (stacked.get(k) for k in ("q", "v", "sites"))
    return Windows(
        *(q_, v_, sites, stacked["counts"], stacked["follows"], stacked["u"], start, scale, reach, every, max(counted)),
        notes,
    )


def _checked(sim: Simulator, r: Recording) -> tuple[dict[str, np.ndarray], int]:
    """Return the validated arrays of a recording by name, and the number of steps between two measurements."""
    m = sim.model
    shapes = {"q": (m.nq,), "v": (m.nv,), "sites": (m.ns, 3)}
    arrays = {k: sim.checks.host_array(k, getattr(r, k)).copy() for k in shapes if getattr(r, k) is not None}
    if not arrays.keys() & {"q", "sites"}:
        raise InputError("a recording needs q or sites; velocities alone do not determine positions")
    n = len(next(iter(arrays.values())))
    for k, x in arrays.items():
        if x.shape != (n, *shapes[k]):
            own = ", ".join(map(str, shapes[k]))
            raise InputError(f"recorded {k} of '{m.name}' is (N, {own}) with the same N as the others, not {x.shape}")
    if n < 3:
        raise InputError(f"a recording of {n} measurements is too short: it needs at least 3")
    for a, _ in tangent.quaternions(m) if "q" in arrays else ():
        norm = np.linalg.norm(arrays["q"][:, a : a + 4], axis=-1, keepdims=True)
        if np.abs(norm - 1).max() > 0.2:
            raise InputError(f"recorded q[:, {a}:{a + 4}] are quaternions w x y z and must have length 1")
        arrays["q"][:, a : a + 4] /= norm
    arrays["u"] = np.zeros((n - 1, m.nu)) if r.u is None else sim.checks.host_array("u", r.u)
    if arrays["u"].shape != (n - 1, m.nu):
        raise InputError(f"controls between {n} measurements are {(n - 1, m.nu)}, not {arrays['u'].shape}")
    ratio = 1.0 if r.dt is None else r.dt / sim.options.dt if is_number(r.dt) else np.nan
    if not (0.5 < ratio < 1e9 and abs(ratio - round(ratio)) < 1e-6 * ratio):
        raise InputError(f"dt of a recording is a multiple of the simulator's {sim.options.dt:g} s, not {r.dt!r}")
    return arrays, round(ratio)


def _scale(sim: Simulator, kind: str, measured: list[np.ndarray]) -> np.ndarray:
    """Return the range of each channel over all recordings; for quaternions that of the rotation vectors from the first
    value."""
    if kind == "q":
        measured = [tangent.chord(sim.model, measured[0][0], q) for q in measured]
    every = np.concatenate([x.reshape(len(x), -1) for x in measured])
    width = np.ptp(every, axis=0)
    return np.maximum(width, QUIET * width.max()) if width.any() else np.ones_like(width)


def _activations(sim: Simulator, first: State, u: np.ndarray, every: int, params: Params) -> np.ndarray:
    """Return activations at every measurement (N, na), simulated from those of the keyframe, as an initial guess."""
    rest = sim.model.keyframe().act
    if not sim.model.na:
        return np.zeros((len(u) + 1, 0))
    found = sim.rollout(State(first.q, first.v, rest), np.repeat(u, every, 0), params=params).act[::every]
    return np.where(np.isfinite(found), found, rest)


def _states(sim: Simulator, arrays: dict[str, np.ndarray], dt: float, params: Params) -> tuple[np.ndarray, np.ndarray]:
    """Return q and v at every measurement, recorded or estimated from sites and from adjacent positions, as an initial
    guess."""
    q = arrays["q"] if "q" in arrays else poses_from_sites(sim, arrays["sites"], params)
    if "v" in arrays:
        return q, arrays["v"]
    j = np.arange(-NEARBY, NEARBY + 1)
    at = np.arange(len(q))[:, None] + j
    there = ((at >= 0) & (at < len(q))) * 1.0
    moved = tangent.chord(sim.model, q[:, None], q[np.clip(at, 0, len(q) - 1)])
    return q, np.einsum("j,nj,njk->nk", j, there, moved) / (dt * (there * j**2).sum(1))[:, None]
