"""Whole turns in recorded angles: jumps where a sensor wraps around, and offsets between recordings."""

from __future__ import annotations

import numpy as np

from ..model.model import Model
from ..simulate.simulator import Simulator

TURN = 2 * np.pi


def unwrap(sim: Simulator, recordings: list[dict[str, np.ndarray]], dt: float) -> tuple[str, ...]:
    """Make angles of revolute joints continuous, and those of all recordings close to each other, in place.

    Between two measurements a joint is assumed to turn by less than half a turn, or by less than that beside the integral
    of its velocity if that was measured.

    Returns:
      A sentence for each correction.
    """
    model, notes = sim.model, []
    if "q" not in recordings[0]:
        return ()
    for i, name in enumerate(model.joints):
        kind, a, k = model.joint_kind(i), model.joint_q[i], model.joint_v[i]
        if not (kind.axial and kind.angular) or kind.travel:
            continue
        jumps = 0
        for r in recordings:
            moved = np.diff(r["q"][:, a])
            if "v" in r:
                moved = moved - dt * 0.5 * (r["v"][1:, k] + r["v"][:-1, k])
            turns = np.concatenate([[0.0], np.round(moved / TURN)])
            r["q"][:, a] -= TURN * np.cumsum(turns)
            jumps += int(np.count_nonzero(turns))
        if jumps:
            notes.append(f"joint '{name}' jumps by whole turns at {jumps} measurements, which were removed")
        middles = [float(np.median(r["q"][:, a])) for r in recordings]
        away = [round((x - middles[0]) / TURN) for x in middles]
        if any(away) and not _turns_matter(model, i):
            for r, count in zip(recordings, away, strict=True):
                r["q"][:, a] -= TURN * count
            notes.append(
                f"{np.count_nonzero(away)} recordings of joint '{name}' are offset by whole turns, which were removed"
            )
    return tuple(notes)


def _turns_matter(model: Model, i: int) -> bool:
    """Return True if a whole turn of joint i has an effect: on a spring, a limit, an actuator, a tendon or an equality."""
    p = model.params
    tied = (
        p.stiffness[i]
        or np.isfinite(p.limit[i]).any()
        or any(e.kind == "joint" and i in e[2:] for e in model.equalities)
    )
    pulled = any(piece.kind == "joint" and piece.a == i for tendon in model.tendons for piece in tendon.pieces)
    return bool(tied or pulled or any(t.kind.startswith("joint") and t.a == i for t in model.transmissions))
