"""Costs of a motion: what iLQR asks of them, and two kinds that serve most purposes.

x = (q, v) on the tangent space: derivatives with respect to it are (..., 2 nv), in the order of v for q, then v.
Activations cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InputError
from ..model.model import Model
from ..model.state import State
from ..model.tangent import difference


class Expansion(NamedTuple):
    """Derivatives of a cost: x (..., n), u (..., nu), xx (..., n, n), ux (..., nu, n), uu (..., nu, nu); n = 2 nv."""

    x: np.ndarray
    u: np.ndarray
    xx: np.ndarray
    ux: np.ndarray
    uu: np.ndarray


class Cost(Protocol):
    """What a motion costs: the sum of `value` over its steps and its last state, whose u is None."""

    def value(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        """Of steps q (B, T, nq), v (B, T, nv), u (B, T, nu): (B, T); of last states (B, nq), (B, nv): (B,)."""
        ...

    def expand(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> Expansion:
        """Its derivatives, for the same; of last states those with u have no entries that are read."""
        ...


def _matrix(name: str, weights: Any, n: int) -> np.ndarray:
    """(n, n) of a number, a diagonal or a matrix."""
    w = np.asarray(weights, float)
    w = w * np.eye(n) if w.ndim == 0 else np.diag(w) if w.ndim == 1 else w
    if w.shape != (n, n):
        raise InputError(f"{name} is a number, ({n},) or ({n}, {n}), not {np.shape(weights)}")
    return w


class Quadratic:
    """(x (-) x*)^T Q (x (-) x*)/2 + (u - u*)^T R (u - u*)/2 at every step, and the same with `final` at the last state.

    target: x*, a State, or with a time axis one for every step and the last state. Q, final: a number, (2 nv,) or
    (2 nv, 2 nv); R: likewise with nu; u_target: u* (nu,). Differences of positions are on the tangent space: angles are not
    wrapped, quaternions go the shorter way.
    """

    def __init__(self, model: Model, target: State, *, Q: Any, R: Any, final: Any = None, u_target: Any = 0.0):
        n = 2 * model.nv
        self.model = model
        self.q, self.v = (np.asarray(x, float) for x in State(*target)[:2])
        self.Q, self.R = _matrix("Q", Q, n), _matrix("R", R, model.nu)
        self.final = self.Q if final is None else _matrix("final", final, n)
        self.u = np.broadcast_to(np.asarray(u_target, float), (model.nu,))

    def _away(self, q: np.ndarray, v: np.ndarray, last: bool) -> np.ndarray:
        q_ref, v_ref = self.q, self.v
        if q_ref.ndim > 1:
            q_ref, v_ref = (x[..., -1, :] if last else x[..., : q.shape[-2], :] for x in (q_ref, v_ref))
        return np.concatenate([difference(self.model, q_ref, q), v - v_ref], -1)

    def value(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> np.ndarray:
        x, Q = self._away(q, v, u is None), self.final if u is None else self.Q
        cost = 0.5 * np.einsum("...i,...i->...", x @ Q, x)
        if u is None:
            return cost
        du = u - self.u
        return cost + 0.5 * np.einsum("...i,...i->...", du @ self.R, du)

    def expand(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None) -> Expansion:
        """Second derivatives of differences of quaternions are left out, as in the method of Gauss and Newton."""
        lead, n, m, Q = q.shape[:-1], 2 * self.model.nv, self.model.nu, self.final if u is None else self.Q
        du = np.zeros((*lead, m)) if u is None else (u - self.u) @ self.R.T
        xx, uu = (np.broadcast_to(w, (*lead, *w.shape)) for w in (Q, self.R))
        return Expansion(self._away(q, v, u is None) @ Q.T, du, xx, np.zeros((*lead, m, n)), uu)


Residual = Callable[..., tuple[np.ndarray, ...]]


class LeastSquares:
    """Half the sum of squares of residuals, expanded by the method of Gauss and Newton.

    stage(q, v, u): (r (..., k), dr/dx (..., k, 2 nv), dr/du (..., k, nu)) for any leading axes; final(q, v): (r, dr/dx), by
    default those of `stage` at u = 0 without what u does.
    """

    def __init__(self, model: Model, stage: Residual, final: Residual | None = None):
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
