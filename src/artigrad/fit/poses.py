"""Inverse kinematics of recorded sites, for initial guesses of recordings without joint positions."""

from __future__ import annotations

import numpy as np

from ..model import tangent
from ..model.params import Params
from ..model.state import State
from ..simulate.simulator import Simulator

_STEP, _DAMPING, _ROUNDS = 1e-6, 1e-6, 20


def poses_from_sites(sim: Simulator, sites: np.ndarray, params: Params) -> np.ndarray:
    """Return joint positions with sites near the recorded ones, by damped Gauss-Newton from the previous measurement.

    Args:
      sim: Simulator.
      sites: Recorded site positions (N, ns, 3), m, world axes.
      params: Parameters.

    Returns:
      q (N, nq). Directions that sites do not determine keep their previous values, at first those of `sim.reset()`.
    """
    m, q = sim.model, np.asarray(sim.reset().q, float)
    around = _STEP * np.concatenate([np.zeros((1, m.nv)), np.eye(m.nv)])
    found = []
    for target in sites:
        for _ in range(_ROUNDS):
            p = sim.sites(State(tangent.integrate(m, q, around), np.zeros((m.nv + 1, m.nv))), params=params)
            J = (p[1:] - p[0]).reshape(m.nv, -1) / _STEP
            JJ = J @ J.T
            step = np.linalg.solve(JJ + (_DAMPING * np.trace(JJ) + 1e-12) * np.eye(m.nv), J @ (target - p[0]).ravel())
            step *= min(1.0, 0.5 / max(np.abs(step).max(), 1e-12))
            q = tangent.integrate(m, q, step)
            if np.abs(step).max() < 1e-6:
                break
        found.append(q)
    return np.stack(found)
