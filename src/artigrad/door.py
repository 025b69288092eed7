"""The door: every array and argument that comes in is looked at here. The staged core trusts what has passed."""

from __future__ import annotations

import warnings
from functools import lru_cache
from math import hypot, isfinite
from typing import Any, Literal

import numpy as np

from .errors import InputError
from .model import Model
from .options import Options
from .params import Params
from .places import Place
from .results import Trajectory

UNIT_TOLERANCE = 1e-3  # how far a quaternion's length may be from one


class Door:
    """The checks of a Simulator. Each error says what was wrong and what to do."""

    model: Model
    params: Params
    options: Options
    dtype: Literal["f64", "f32"]
    backend: str
    device: str
    _float: np.dtype
    _place: Place
    _quaternions: list[tuple[int, int]]

    def _check_options(self) -> None:
        if self.model.has_contact:
            for name, needed in (("integrator", "semi_implicit"), ("factor", "articulated")):
                if getattr(self.options, name) != needed:
                    raise InputError(f"'{self.model.name}' has contact or limits, which need {name}='{needed}'")

    def _check_state(self, state: Any) -> tuple[Any, Any, bool]:
        m = self.model
        q, v = self._two(state)
        q, v = self._numbers("q", q), self._numbers("v", v)
        if q.ndim not in (1, 2) or q.shape[-1] != m.nq or v.shape != (*q.shape[:-1], m.nv):
            raise InputError(
                f"'{m.name}' has q ({m.nq},) and v ({m.nv},), or (batch, {m.nq}) and (batch, {m.nv}); "
                f"got {q.shape} and {v.shape}"
            )
        batched = q.ndim == 2
        q, v = (q, v) if batched else (q[None], v[None])
        if len(q) == 0:
            raise InputError("the batch is empty")
        self._check_quaternions(q, batched)
        return q, v, batched

    def _check_quaternions(self, q: Any, batched: bool) -> None:
        for a, _ in self._quaternions:
            if not batched and abs(hypot(*q[0, a : a + 4].tolist()) - 1.0) <= UNIT_TOLERANCE:
                continue  # what follows takes 5 us
            length = np.sqrt(np.square(q[:, a : a + 4]).sum(1))
            off = np.abs(length - 1)
            if off.max() > UNIT_TOLERANCE:
                bad = np.flatnonzero(off > UNIT_TOLERANCE)
                raise InputError(
                    f"q[{a}:{a + 4}] is a quaternion w x y z and must have length 1, not {length[bad[0]]:.4g}"
                    f"{f' (robot {bad[0]})' if batched else ''}: divide it by its norm"
                )

    @staticmethod
    def _two(state: Any) -> tuple[Any, Any]:
        try:
            q, v = state
        except (TypeError, ValueError):
            raise InputError("a state is State(q, v): two arrays") from None
        return q, v

    def _one_step(self, name: str, x: Any, own: int) -> Any:
        """The input of a single step, with a time axis of length one before its own axes."""
        x = self._numbers(name, x)
        if x.ndim < own:
            raise InputError(f"{name} of a step has {own} axes, or {own + 1} with a batch; got shape {x.shape}")
        return x[(..., None, *[slice(None)] * own)]

    def _numbers(self, name: str, value: Any) -> Any:
        """A contiguous array of this simulator's dtype; an error for what is no number."""
        usual = type(value) is np.ndarray and value.dtype == self._float and value.flags.c_contiguous
        if usual and value.ndim and all_finite(value):  # what follows takes 5 us
            return value
        try:
            given = np.asarray(value)
            if given.dtype.kind not in "fiubO":
                raise TypeError
            out = np.ascontiguousarray(given, dtype=self._float)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name} must be an array of numbers, not {type(value).__name__}") from None
        if np.ndim(value) == 0:
            raise InputError(f"{name} must be an array, not a single number")
        if not all_finite(out):
            where = np.argwhere(~np.isfinite(out))[0]
            raise InputError(f"{name}[{', '.join(map(str, where))}] is {out[tuple(where)]}: all numbers must be finite")
        return out

    def _check_controls(self, u: Any, steps: int | None, batch: int, batched: bool) -> Any:
        nu = self.model.nu
        if u is None:
            if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 0:
                raise InputError("pass the controls u (T, nu), or steps=T for zero control")
            return self._place.zeros((int(steps), nu))
        if steps is not None:
            raise InputError("pass u or steps, not both: the length of u is the number of steps")
        u = self._numbers("u", u)
        if u.ndim == 2 and u.shape[1] == nu:
            return u
        if u.ndim == 3 and u.shape[2] == nu and batched and len(u) == batch:
            return u
        wanted = f"(T, {nu})" + (f" or ({batch}, T, {nu})" if batched else "")
        raise InputError(f"controls of '{self.model.name}' are {wanted}, not {u.shape}")

    def _check_wrench(self, wrench: Any, T: int, batch: int, batched: bool) -> Any:
        if wrench is None:
            return None
        wrench = self._numbers("wrench", wrench)
        one = (T, self.model.nb, 6)
        if wrench.shape == one or (batched and wrench.shape == (batch, *one)):
            return wrench
        raise InputError(f"wrenches are {one}{f' or {(batch, *one)}' if batched else ''}, not {wrench.shape}")

    def _check_params(self, params: Params | None, batch: int) -> Params:
        params = self.params if params is None else params
        if not isinstance(params, Params):
            raise InputError(f"params is a Params (model.params.replace(...)), not {type(params).__name__}")
        if params.model is not self.model:
            raise InputError(
                f"these params belong to '{params.model.name}'; this simulator runs '{self.model.name}', another Model: "
                "start from sim.model.params"
            )
        if params.batch not in (None, batch):
            raise InputError(f"params have {params.batch} sets, but the batch has {batch} robots")
        return params

    def _check_trajectory(self, traj: Any) -> None:
        if not isinstance(traj, Trajectory):
            raise InputError(f"this takes what rollout returned, a Trajectory, not {type(traj).__name__}")
        other = traj.simulator
        if other.model is not self.model:
            raise InputError("this trajectory was made with another model")
        for name in ("options", "dtype", "backend", "device"):
            if getattr(other, name) != getattr(self, name):
                raise InputError(f"this trajectory was made by a simulator with other {name}: {getattr(other, name)}")
        if traj.fingerprint != self._mark(traj.u, traj.wrench):
            raise InputError(
                "the controls or wrenches of this trajectory were changed after the rollout; pass a copy to it"
            )

    def _check_bar(self, name: str, bar: Any, n: int, traj: Trajectory, batch: int) -> Any:
        """(B, n) for the last state, (B, T+1, n) for all, None for zero."""
        if bar is None:
            return None
        bar = self._numbers(name, bar)
        lead = (batch,) if traj.batched else ()
        if bar.shape == (*lead, n):
            return bar.reshape(batch, n)
        if bar.shape == (*lead, traj.steps + 1, n):
            return bar.reshape(batch, traj.steps + 1, n)
        raise InputError(
            f"{name} is {(*lead, traj.steps + 1, n)} for all states or {(*lead, n)} for the last, not {bar.shape}"
        )

    def _check_force_bar(self, bar: Any, points: int, traj: Trajectory, batch: int) -> Any:
        """(B, T, points, 3), None for zero."""
        if bar is None:
            return None
        bar = self._numbers("force_bar", bar)
        if not points:
            raise InputError(f"'{self.model.name}' has no shapes that may touch: leave force_bar out")
        wanted = (*((batch,) if traj.batched else ()), traj.steps, points, 3)
        if bar.shape != wanted:
            raise InputError(f"force_bar is {wanted}, as the forces of contacts(traj), not {bar.shape}")
        return bar.reshape(batch, traj.steps, points, 3)

    def _mark(self, u: Any, wrench: Any) -> tuple[float, ...]:
        """By which to see that the caller has not changed these arrays since."""
        return fingerprint(u, wrench)

    def _warn_if_not_finite(self, pieces: list[Any], batch: int) -> Any:
        """Which robots' cotangents are finite; warns of those that are not."""
        if all(map(all_finite, pieces)):
            return np.ones(batch, bool)
        good = finite_rows(pieces, batch)
        if not good.all():
            which = ", ".join(map(str, np.flatnonzero(~good)[:8]))
            warnings.warn(
                f"the gradient of {(~good).sum()} of {batch} robots is not finite (robot {which}): the motion or a "
                "cotangent overflowed; look at the states, shorten dt or the horizon",
                RuntimeWarning,
                stacklevel=4,
            )
        return good


def all_finite(x: np.ndarray) -> bool:
    """Whether no entry is NaN or infinite. A sum of squares tells, without an array of answers, unless it overflows."""
    return isfinite(_square(x)) or bool(np.isfinite(x).all())


def finite_rows(pieces: list[Any], batch: int) -> np.ndarray:
    """Which robots' rows are finite (or true); if all are and what they share is not, none."""
    good = np.ones(batch, bool)
    for x in pieces:
        if x.ndim > 1:
            good &= (x if x.dtype == bool else np.isfinite(x)).reshape(batch, -1).all(1)
    shared = all(np.isfinite(x).all() for x in pieces if x.ndim == 1)
    return good if shared or not good.all() else np.zeros(batch, bool)


FEW = 10_000  # entries for which BLAS is the fastest, and wakes no threads


def _square(x: np.ndarray) -> float:
    """The sum of squares, without a warning if it overflows."""
    return float(np.vdot(x, x) if x.size < FEW else np.einsum("i,i->", x.ravel(), x.ravel()))


def _by_place(x: np.ndarray) -> float:
    """The sum of all entries, each times a number of its place."""
    if x.size < FEW:
        return float(np.vdot(x, _ramp(x.size)))
    rows = x.reshape(len(x), -1)
    return float(np.einsum("ij,j->i", rows, _ramp(rows.shape[1])) @ _ramp(len(rows)))


@lru_cache(16)
def _ramp(n: int) -> np.ndarray:
    return np.sqrt(np.arange(1.0, n + 1.0))


def fingerprint(u: np.ndarray, wrench: np.ndarray | None) -> tuple[float, ...]:
    """Tells whether arrays that belong to the caller are still what they were; no copy is made of long controls."""
    arrays = [u] if wrench is None else [u, wrench]
    return tuple(f for x in arrays for f in (_by_place(x), _square(x)))
