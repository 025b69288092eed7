"""Costs of trajectories for iLQR and MPC.

x = (q, v); derivatives with respect to x are on the tangent space, (..., 2 nv), nv entries for q, then nv for v.
Activations have no cost.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arguments import checked, numbers, shown
from ..errors import InputError
from ..model.model import Model
from ..model.sealed import Sealed
from ..model.state import State
from ..model.tangent import difference, difference_jacobian, quaternions


class Expansion(NamedTuple):
    """Derivatives of a cost, n = 2 nv.

    Attributes:
      x: Gradient with respect to x, (..., n).
      u: Gradient with respect to u, (..., nu).
      xx, ux, uu: Second derivatives (..., n, n), (..., nu, n), (..., nu, nu).
    """

    x: np.ndarray
    u: np.ndarray
    xx: np.ndarray
    ux: np.ndarray
    uu: np.ndarray


class Cost(Protocol):
    """Cost of a trajectory: the sum of `value` over its controls and its last state, for which u is None.

    A time-varying cost may have a method `window(first, steps)`, as `Quadratic.window`, which MPC calls to move along.
    """

    def value(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        """Return the cost of steps q (B, T, nq), v (B, T, nv), u (B, T, nu) as (B, T), or of last states (B, nq), (B, nv)
        as (B,)."""
        ...

    def expand(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> Expansion:
        """Return the derivatives for the same arguments. For last states those with respect to u are not used."""
        ...


def _matrix(name: str, weights: Any, n: int) -> np.ndarray:
    """Return the symmetric part (n, n) of a weight given as a number, a diagonal or a matrix."""
    w = numbers(name, weights)
    w = w * np.eye(n) if w.ndim == 0 else np.diag(w) if w.ndim == 1 else w
    if w.shape != (n, n):
        raise InputError(f"{name} is a number, ({n},) or ({n}, {n}), not {np.shape(weights)}")
    return 0.5 * (w + w.T)


class Quadratic(Sealed):
    """Quadratic cost (x (-) x*)^T Q (x (-) x*)/2 + (u - u*)^T R (u - u*)/2 per step, with `final` in place of Q at the last
    state.

    Differences of positions are on the tangent space: angles are not wrapped; quaternions go the shorter way, and the cost
    has a kink at half a turn.

    Args:
      model: Robot.
      target: x*, a State, or one with a time axis of T + 1 rows for T controls and the last state.
      Q: Weight of the state: a number, (2 nv,) or (2 nv, 2 nv).
      R: Weight of the controls: a number, (nu,) or (nu, nu).
      final: Weight of the last state; None: Q.
      u_target: u*, a number or (nu,).
    """

    CALLED = "a Quadratic"

    @checked
    def __init__(self, model: Model, target: State, *, Q: Any, R: Any, final: Any = None, u_target: Any = 0.0):
        n = 2 * model.nv
        self.model = model
        if not isinstance(target, tuple | list) or len(target) not in (2, 3):
            raise InputError(f"target is a State(q, v), not {shown(target)}")
        self.q, self.v = (numbers(f"{name} of the target", x) for name, x in zip("qv", target, strict=False))
        lead = self.q.shape[:-1]
        if self.q.shape != (*lead, model.nq) or self.v.shape != (*lead, model.nv):
            raise InputError(
                f"q and v of the target are ({model.nq},) and ({model.nv},), or (T + 1, {model.nq}) and (T + 1, {model.nv}), "
                f"not {self.q.shape} and {self.v.shape}"
            )
        self.Q, self.R = _matrix("Q", Q, n), _matrix("R", R, model.nu)
        self.final = self.Q if final is None else _matrix("final", final, n)
        u_target = numbers("u_target", u_target)
        if u_target.shape not in ((), (model.nu,)):
            raise InputError(f"u_target is a number or ({model.nu},), not {u_target.shape}")
        self.u = np.broadcast_to(u_target, (model.nu,))
        self._seal()

    def _remedy(self, name: str) -> str:
        """Return the remedy for attributes that are validated on construction."""
        return "make another one" if name in self.__dict__ else ""

    def window(self, first: int, steps: int) -> Quadratic:
        """Return the cost of `steps` controls from control `first` on. A time-varying target begins there and stays at its
        last row after its end."""
        if self.q.ndim == 1:
            return self
        part = copy(self)
        rows = np.minimum(np.arange(first, first + steps + 1), self.q.shape[-2] - 1)
        part.__dict__.update(q=self.q[..., rows, :], v=self.v[..., rows, :])
        return part

    def _away(self, q: np.ndarray, v: np.ndarray, last: bool) -> np.ndarray:
        """Return x (-) x*, (..., 2 nv)."""
        q_ref, v_ref = self.q, self.v
        if q_ref.ndim > 1:
            if not last and q_ref.shape[-2] != q.shape[-2] + 1:
                raise InputError(
                    f"the target has {q_ref.shape[-2]} rows, and {q.shape[-2]} controls need {q.shape[-2] + 1}: "
                    f"pass cost.window(0, {q.shape[-2]})"
                )
            q_ref, v_ref = (x[..., -1, :] if last else x[..., :-1, :] for x in (q_ref, v_ref))
        return np.concatenate([difference(self.model, q_ref, q), v - v_ref], -1)

    def value(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        x, Q = self._away(q, v, u is None), self.final if u is None else self.Q
        cost = 0.5 * np.einsum("...i,...i->...", x @ Q, x)
        if u is None:
            return cost
        du = u - self.u
        return cost + 0.5 * np.einsum("...i,...i->...", du @ self.R, du)

    def expand(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> Expansion:
        """Return exact first derivatives and Gauss-Newton second derivatives, without those of the difference of
        quaternions."""
        nv, last = self.model.nv, u is None
        lead, n, m, Q = q.shape[:-1], 2 * nv, self.model.nu, self.final if last else self.Q
        away = self._away(q, v, last)
        du = np.zeros((*lead, m)) if u is None else (u - self.u) @ self.R
        x, xx, uu = away @ Q, np.broadcast_to(Q, (*lead, n, n)), np.broadcast_to(self.R, (*lead, m, m))
        if quaternions(self.model):
            J = np.zeros((*lead, n, n))
            J[..., range(nv, n), range(nv, n)] = 1.0
            J[..., :nv, :nv] = difference_jacobian(self.model, away[..., :nv])
            Jt = np.swapaxes(J, -1, -2)
            x, xx = (Jt @ x[..., None])[..., 0], Jt @ Q @ J
        return Expansion(x, du, xx, np.zeros((*lead, m, n)), uu)


Residual = Callable[..., tuple[np.ndarray, ...]]


class LeastSquares:
    """Half the sum of squared residuals, with Gauss-Newton second derivatives.

    Args:
      model: Robot.
      stage: Function (q, v, u) -> (r (..., k), dr/dx (..., k, 2 nv), dr/du (..., k, nu)) for any leading axes.
      final: Function (q, v) -> (r, dr/dx) of the last state; None: `stage` at u = 0.
    """

    @checked
    def __init__(self, model: Model, stage: Residual, final: Residual | None = None):
        if not callable(stage) or not (final is None or callable(final)):
            raise InputError("stage and final are functions that return residuals and their Jacobians")
        self.model, self.stage, self._final = model, stage, final

    def _last(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        if self._final is not None:
            return self._final(q, v)
        return self.stage(q, v, np.zeros((*q.shape[:-1], self.model.nu)))[:2]

    def value(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        r = self._last(q, v)[0] if u is None else self.stage(q, v, u)[0]
        return 0.5 * np.einsum("...i,...i->...", r, r)

    def expand(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> Expansion:
        lead, n, m = q.shape[:-1], 2 * self.model.nv, self.model.nu
        if u is None:
            r, Jx = self._last(q, v)
            Ju = np.zeros((*r.shape, m))
        else:
            r, Jx, Ju = self.stage(q, v, u)
        Jxt, Jut = np.swapaxes(Jx, -1, -2), np.swapaxes(Ju, -1, -2)
        out = ((Jxt @ r[..., None])[..., 0], (Jut @ r[..., None])[..., 0], Jxt @ Jx, Jut @ Jx, Jut @ Ju)
        shapes = ((n,), (m,), (n, n), (m, n), (m, m))
        return Expansion(*(np.broadcast_to(x, (*lead, *shape)) for x, shape in zip(out, shapes, strict=True)))
