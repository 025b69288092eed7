"""Gradients of robot files compared with differences, in contact.

`python -m tests.gradients [PART OF A NAME ...]` prints a line per file of `tests.packages`; ten of the random objects
represent all.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np

import artigrad as ag
from artigrad.model import tangent
from artigrad.simulate.gradcheck import _one_sample, random_state

STEPS, ENTRIES = 2, 40  # of the rollout, and of each input
TOLERANCE = 1e-6
NEAR_A_KINK = 1e-6  # m/s: nearer, differences see both sides
SECONDS, MOST = 1.0, 1000  # of falling, and in steps
WILD = 1e3  # m/s or rad/s
TINY = 1e-11  # a change of the state that only what rounding decides can see
SIZES = np.array([1e-5, 1e-6, 1e-7])  # of changes that differences are made of


def placed(path: Path) -> ag.Model:
    """Return the robot of a file; that of a URDF, which has no floor, with a free base over one if possible."""
    if path.suffix == ".xml":
        return ag.load(path, strict=False)
    try:
        return ag.scene([ag.load(path, strict=False, floating=True, motors=True)])
    except ag.ModelError:  # it moves no mass if it is free
        return ag.load(path, strict=False, motors=True)


def touching(sim: ag.Simulator, rng: np.random.Generator) -> tuple[ag.State, bool]:
    """Return a state in contact, and True if there is one.

    The robot falls or is driven at random from near the keyframe, and from farther away without a contact.
    """
    for start in _starts(sim, rng):
        traj = sim.rollout(start, 0.3 * rng.normal(size=(int(min(SECONDS / sim.dt, MOST)), sim.model.nu)))
        wild = ~(np.abs(traj.v).max(-1, initial=0.0) < WILD)
        end = int(np.argmax(wild)) if wild.any() else len(wild)
        if sim.contact_names:
            pressed = np.flatnonzero((sim.contacts(traj).force != 0).any((1, 2))[: max(end - 2, 1)])
            if len(pressed):
                at = pressed[min(5, len(pressed) - 1)]
                return ag.State(traj.q[at], traj.v[at], traj.act[at]), True
    at = end // 2
    return ag.State(traj.q[at], traj.v[at], traj.act[at]), False


def _starts(sim: ag.Simulator, rng: np.random.Generator) -> Iterator[ag.State]:
    m = sim.model
    q = tangent.integrate(m, m.keyframe().q, 0.02 * rng.normal(size=m.nv))
    state = ag.State(q, 0.1 * rng.normal(size=m.nv), rng.uniform(0.1, 0.9, size=m.na))
    yield _raised(sim, state) if m.name == "scene" else state
    for _ in range(5 if sim.contact_names else 0):
        yield random_state(m, rng)


def _raised(sim: ag.Simulator, state: ag.State) -> ag.State:
    """Return the state raised until nothing is below the floor."""
    floor = [k for k, pair in enumerate(sim.contact_names) if "floor" in pair]
    for _ in range(100):
        if not floor or (sim.contacts(sim.rollout(state, steps=1)).gap[:, floor] > 0).all():
            break
        state = state._replace(q=state.q + 0.05 * (np.arange(len(state.q)) == 2))
    return state


def _rough(sim: ag.Simulator, state: ag.State, u: np.ndarray, inputs: list[str], rng: np.random.Generator) -> str:
    """Return the reason why differences do not apply to some inputs; "" if they do.

    Tiny changes of the state change the trajectory, or differences of several sizes disagree.
    """
    n, m = 32, sim.model

    def after(start: ag.State, u: np.ndarray, params: ag.Params | None = None) -> np.ndarray:
        return sim.rollout(start, u, params=params).v[:, -1]

    def along(what: str, moves: np.ndarray) -> np.ndarray:
        """Return velocities after the steps with an input changed by multiples of a random direction."""
        start, us, params = state.map(lambda x: np.tile(x, (len(moves), 1))), np.tile(u, (len(moves), 1, 1)), None
        if what == "u":
            us = us + np.multiply.outer(moves, rng.normal(size=u.shape))
        elif what in ("q0", "v0", "act0"):
            x = getattr(start, what[:-1])
            start = start._replace(**{what[:-1]: x + np.multiply.outer(moves, rng.normal(size=x.shape[1:]))})
        else:
            x = sim.params[what]
            moved = x + np.multiply.outer(moves, np.where(np.isfinite(x), rng.normal(size=x.shape), 0.0))
            params = sim.params.replace(unchecked=True, **{what: moved})
        return after(start, us, params)

    start = state.map(lambda x: np.tile(x, (n + 1, 1)))
    tiny = TINY * rng.normal(size=(n + 1, m.nv)) * (np.arange(n + 1) > 0)[:, None]
    near = after(start._replace(q=tangent.integrate(m, start.q, tiny)), np.tile(u, (n + 1, 1, 1)))
    if np.abs(near - near[0]).max() > 1e-6 * max(1.0, np.abs(near[0]).max()):
        return "rounding decides what touches"
    for what in inputs:
        ends = along(what, np.concatenate([SIZES, -SIZES]))
        slopes = (ends[: len(SIZES)] - ends[len(SIZES) :]) / (2 * SIZES[:, None])
        if np.ptp(slopes, axis=0).max() > 1e-3 * np.abs(slopes).max():
            return f"differences of several sizes disagree, as of {what}"
    return ""


def checked(path: Path, seed: int = 0) -> str:
    """Return a short text: error of gradients; if large, the input, and the reason."""
    model = placed(path)
    if not model.nv:
        return "nothing moves"
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = ag.Simulator(model, **({"law": ag.SoftOptions(iterations=100)} if model.has_contact else {}))
        state, touches = touching(sim, rng)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        u = 0.5 * deepcopy(rng).normal(size=(STEPS, model.nu))  # which the sample begins with
        rows, margin = _one_sample(sim, STEPS, rng, state, TOLERANCE, ENTRIES)
    where = "touching" if touches else "in the air"
    off = [r for r in rows if not r.error <= TOLERANCE]
    wrong = ", ".join(f"{r.what} {r.error:.0e}" for r in off)
    if not wrong:
        return f"{max(r.error for r in rows):.0e} {where}"
    if any("not solved" in str(warning.message) for warning in told):
        return f"{wrong} {where}: warns that the constraint problem was not solved"
    if margin < NEAR_A_KINK:
        return f"{wrong} {where}: {margin:.0e} m/s from a kink"
    return f"{wrong} {where}: {_rough(sim, state, u, [r.what for r in off], rng) or 'WRONG'}"


if __name__ == "__main__":
    from .packages import LUMPS, files

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PART OF A NAME")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name, path in files(everything=True):
        if (LUMPS in name and not path.stem.endswith("00")) or not any(part in name for part in args.names or [""]):
            continue
        begin = time.perf_counter()
        try:
            found = checked(path, args.seed)
        except ag.ModelError as problem:
            found = f"not loaded: {problem}"
        print(f"{name} | {found} | {time.perf_counter() - begin:.0f} s", flush=True)
