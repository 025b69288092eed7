"""LQR: optimal feedback gain about an equilibrium."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arguments import checked, numbers
from ..deprecation import renamed
from ..errors import InputError
from ..model.model import Model
from ..model.params import Params
from ..model.state import State
from ..model.tangent import difference
from ..simulate.simulator import Simulator
from .costs import _matrix

DOUBLINGS = 60


@renamed(poles="spectral_radius")
class LQR(NamedTuple):
    """Feedback u = u0 + K (x (-) x0) on the tangent space; calling it with a state returns controls.

    Attributes:
      sim: Simulator.
      state: x0.
      u: u0, (nu,).
      gain: K (nu, n), n = 2 nv + na.
      value: P (n, n); the cost from x on is (x (-) x0)^T P (x (-) x0)/2.
      spectral_radius: Largest |eigenvalue| of the closed loop, below 1.
    """

    sim: Simulator
    state: State
    u: np.ndarray
    gain: np.ndarray
    value: np.ndarray
    spectral_radius: float

    def __call__(self, state: State) -> np.ndarray:
        """Return the controls (..., nu) at a state with any leading axes."""
        q, *rest = (np.asarray(x) for x in State(*state))
        away = [
            difference(self.sim.model, self.state.q, q),
            *(x - x0 for x, x0 in zip(rest, self.state[1:], strict=True)),
        ]
        x = np.concatenate(away, -1)
        return self.u + x @ self.gain.T


@checked
def lqr(
    sim: Simulator,
    state: State,
    u: Any = None,
    *,
    Q: Any = 1.0,
    R: Any = 1.0,
    params: Params | None = None,
    tolerance: float = 1e-2,
) -> LQR:
    """Return the feedback about an equilibrium that minimizes the sum of x^T Q x/2 + u^T R u/2 over all steps.

    Args:
      sim: Simulator.
      state: Equilibrium, without a batch axis.
      u: Controls there, (nu,); None: zero.
      Q: Weight of the state: a number, (n,) or (n, n), n = 2 nv + na.
      R: Weight of the controls: a positive number, (nu,) or (nu, nu).
      params: Parameters; None: `sim.params`.
      tolerance: Largest rate of change of an entry of the state at the equilibrium: 1/s for activations, m/s and rad/s,
        m/s^2 and rad/s^2. np.inf linearizes about any state, for example for gains along a trajectory.

    Raises:
      InputError: The state is not an equilibrium under u, or no feedback stabilizes it.
    """
    n, m = 2 * sim.model.nv + sim.model.na, sim.model.nu
    if not m:
        raise InputError(f"'{sim.model.name}' has no actuators to control it with")
    start, batched = sim.checks.state(state)
    if batched:
        raise InputError("lqr takes the state of one robot, without a batch axis")
    state = start.map(lambda x: np.asarray(sim.engine.device.host(x), float)[0])
    u = np.zeros(m) if u is None else numbers("u", u)
    if u.shape != (m,):
        raise InputError(f"u is ({m},), not {u.shape}")
    A, B = sim.linearize(state, u, params=params)
    Q, R = _matrix("Q", Q, n), _matrix("R", R, m)
    if not np.linalg.eigvalsh(R).min() > 0.0:
        raise InputError("R is positive definite: without a cost of every control, gains have no bound")
    if not np.linalg.eigvalsh(Q).min() >= -1e-12 * np.abs(Q).max():
        raise InputError("Q is positive semidefinite: a state that earns something has no best feedback")
    P = _riccati(np.asarray(A, float), np.asarray(B, float), Q, R)
    K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    spectral_radius = float(np.abs(np.linalg.eigvals(A + B @ K)).max())
    if not spectral_radius < 1.0:
        raise InputError(
            f"no feedback stabilizes '{sim.model.name}' here: its actuators do not control all of its motion, Q is zero"
            " or R too large"
        )
    if tolerance < np.inf:
        _check_rest(sim, state, u, params, tolerance)
    return LQR(sim, state, u, K, P, spectral_radius)


def _check_rest(sim: Simulator, state: State, u: np.ndarray, params: Params | None, tolerance: float) -> None:
    """Raise InputError if one step under u changes the state faster than the tolerance."""
    m, after = sim.model, sim.step(state, u, params=params)
    (q, *rest), (q_after, *rest_after) = state, after.map(lambda x: np.asarray(sim.engine.device.host(x), float))
    rates = [difference(m, q, q_after), *(b - a for a, b in zip(rest, rest_after, strict=True))]
    for name, what, rate in zip(("q", "v", "act"), ("moves", "accelerates", "changes"), rates, strict=False):
        largest = np.abs(rate).max(initial=0.0) / sim.dt
        if not largest <= tolerance:
            k = int(np.abs(rate).argmax())
            unit = " per s squared" if name == "v" else " per s"
            raise InputError(
                f"'{m.name}' does not rest at this state under these controls: {_entry(m, name, k)} {what} at "
                f"{largest:.3g}{unit}. Pass controls u that hold it there (at a state without motion), or "
                "tolerance=np.inf for the gain about any state"
            )


def _entry(model: Model, name: str, k: int) -> str:
    """Return the name of an entry of the tangent space."""
    if name == "act":
        return f"activation {k}"
    i = max(i for i in range(len(model.joint_v)) if model.joint_v[i] <= k)
    return f"'{model.joints[i]}'"


def _riccati(A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return P = Q + A^T P (1 + G P)^-1 A by the doubling algorithm: each iteration doubles the horizon."""
    F, G, P = A, B @ np.linalg.solve(R, B.T), Q
    one = np.eye(len(A))
    for _ in range(DOUBLINGS):
        try:
            W = np.linalg.inv(one + G @ P)
        except np.linalg.LinAlgError:
            raise InputError(
                "no feedback keeps the robot at this state under u: Q or R is too large or too small"
            ) from None
        more = F.T @ P @ W @ F
        F, G, P = F @ W @ F, G + F @ W @ G @ F.T, P + 0.5 * (more + more.T)
        size = np.abs(P).max()
        if not np.isfinite(size) or size > 1e150:
            raise InputError(
                "no feedback stabilizes the robot at this state under u: with Q and R the cost is unbounded"
            )
        if np.abs(more).max() <= 1e-14 * size:
            break
    return P
