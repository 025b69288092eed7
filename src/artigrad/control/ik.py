"""Inverse kinematics: joint positions at which sites and bodies are where they shall be, from many starts at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import InputError
from ..model.params import Params
from ..model.state import State
from ..model.tangent import move, quaternions
from ..optimize import minimize
from ..simulate.simulator import Simulator

DAMPING, LEAST, MOST = 1e-3, 1e-12, 1e6  # of steps, relative to the size of J^T J


class Goal(NamedTuple):
    """Where something shall be. of: name of a site, or else a body. position: (3,), m, of its origin; rotation: (3, 3), its
    axes; in world axes, None for any. Both may have the batch axis of the starts. weight: of the position, 1/m;
    turn_weight: of the rotation, 1/rad."""

    of: str
    position: Any = None
    rotation: Any = None
    weight: float = 1.0
    turn_weight: float = 1.0


class IK(NamedTuple):
    """q: (nq,), or (B, nq) from a batch of starts. error: the norm of what is left to all goals, weighted. solved: whether
    it is at most the tolerance. iterations: how many it took."""

    q: np.ndarray
    error: Any
    solved: Any
    iterations: int

    @property
    def best(self) -> np.ndarray:
        """Of a batch, the q with the least error."""
        return self.q if self.q.ndim == 1 else self.q[int(np.argmin(self.error))]


def ik(
    sim: Simulator,
    goals: Goal | Sequence[Goal],
    start: Any = None,
    *,
    method: Literal["dls", "lbfgs"] = "dls",
    limits: bool = True,
    iterations: int = 100,
    tolerance: float = 1e-8,
    params: Params | None = None,
) -> IK:
    """Positions q at which all goals are met, or as nearly as can be.

    start: q (nq,), or (B, nq) to search from many; by default the model's keyframe. method: "dls", damped least squares
    (Levenberg-Marquardt, joints at a limit taken out), or "lbfgs", SciPy's, for robots without ball and free joints. limits:
    keep joints within their limits; a start beyond one is moved to it.
    """
    goals = [goals] if isinstance(goals, Goal) else list(goals) if isinstance(goals, Iterable) else []
    if not goals or not all(isinstance(goal, Goal) for goal in goals):
        raise InputError("goals is a Goal(of, position=..., rotation=...) or a list of them")
    q = sim.model.keyframe().q if start is None else sim.checks.host_numbers("start", start).astype(float)
    batched = q.ndim > 1
    problem = _Reach(sim, goals, np.atleast_2d(q), limits, params)
    if method == "dls":
        q, error, count = _least_squares(problem, iterations, tolerance)
    elif method == "lbfgs":
        q, error, count = _lbfgs(problem, iterations, tolerance)
    else:
        raise InputError(f"method is 'dls' or 'lbfgs', not {method!r}")
    solved = error <= tolerance
    return IK(q, error, solved, count) if batched else IK(q[0], float(error[0]), bool(solved[0]), count)


class _Reach:
    """What is left to all goals, and how it changes. lower, upper: bounds of tangent steps from `q`, for `optimize`."""

    def __init__(self, sim: Simulator, goals: list[Goal], q: np.ndarray, limits: bool, params: Params | None):
        m = sim.model
        if q.shape[-1] != m.nq:
            raise InputError(f"start is ({m.nq},) or (B, {m.nq}), not {q.shape}")
        if not goals or all(t.position is None and t.rotation is None for t in goals):
            raise InputError("a goal has a position or a rotation to reach")
        self.sim, self.goals, self.params = sim, goals, sim.params if params is None else params
        self.low, self.high = np.full(m.nv, -np.inf), np.full(m.nv, np.inf)
        self.at = np.zeros(m.nv, int)  # where in q the degree of freedom is, of joints with limits
        for i in range(m.nb) if limits else ():
            own, joint = self.params.limit[..., i, :].reshape(-1, 2), m.joint_kind(i)
            if not np.isfinite(own).any():
                continue
            if not joint.axial:
                raise InputError(
                    f"ik does not keep limits of {joint.name} joints, as of '{m.joints[i]}': pass limits=False"
                )
            k = m.joint_v[i]
            self.low[k], self.high[k], self.at[k] = own[:, 0].max(), own[:, 1].min(), m.joint_q[i]
        self.q = self.within(q)
        self.batch = len(q)

    def within(self, q: np.ndarray) -> np.ndarray:
        """q with joints within their limits."""
        q = q.copy()
        for k in np.flatnonzero(np.isfinite(self.low) | np.isfinite(self.high)):
            q[:, self.at[k]] = np.clip(q[:, self.at[k]], self.low[k], self.high[k])
        return q

    def state(self, q: np.ndarray) -> State:
        return State(q, np.zeros((len(q), self.sim.model.nv)))

    def residuals(self, q: np.ndarray, rows: np.ndarray, jacobian: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """(B, k), and its Jacobian (B, k, nv) on the tangent space; rows: which starts these are."""
        state, m = self.state(q), self.sim.model
        params = self.params if self.params.batch is None else Params(m, self.params.flat[rows])
        out = self.sim.outputs(state, params=params)
        r, J = [], []
        for t in self.goals:
            kind, k = ("site", m.site(t.of)) if t.of in m.sites else ("body", m.body(t.of))
            Jt = self.sim.jacobian(state, t.of, params=params) if jacobian else np.zeros((len(q), 6, m.nv))
            if t.position is not None:
                r.append(t.weight * (getattr(out, f"{kind}_position")[:, k] - _of_rows(t.position, rows, 1)))
                J.append(t.weight * Jt[:, :3])
            if t.rotation is not None:
                turned = getattr(out, f"{kind}_rotation")[:, k] @ np.swapaxes(_of_rows(t.rotation, rows, 2), -1, -2)
                r.append(t.turn_weight * _rotation_vector(turned))
                J.append(t.turn_weight * Jt[:, 3:])
        return np.concatenate(r, -1), np.concatenate(J, -2)

    # -- an `optimize.Problem` of steps from the starts, one after the other -------------------------------------------
    def of_steps(self, d: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r, J = self.residuals(self.q[rows] + d, rows)
        return 0.5 * np.sum(r**2, 1), np.einsum("bk,bkn->bn", r, J)


def _of_rows(x: Any, rows: np.ndarray, own: int) -> np.ndarray:
    """What a goal is for these starts."""
    x = np.asarray(x, float)
    return x[rows] if x.ndim > own else x


def _rotation_vector(R: np.ndarray) -> np.ndarray:
    """(..., 3, 3) -> (..., 3), the angle within pi."""
    w = 0.5 * np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], -1)
    sine, cosine = np.linalg.norm(w, axis=-1), 0.5 * (np.trace(R, axis1=-2, axis2=-1) - 1.0)
    angle = np.arctan2(sine, cosine)
    # near a half turn the axis is the column of R + 1 that is the longest
    wide = R + np.eye(3)
    column = np.take_along_axis(wide, np.linalg.norm(wide, axis=-2).argmax(-1)[..., None, None], -1)[..., 0]
    column = column / np.linalg.norm(column, axis=-1, keepdims=True)
    flip = np.where(np.sum(column * w, -1) < 0, -1.0, 1.0)
    axis = np.where((sine > 1e-6)[..., None], w / np.maximum(sine, 1e-30)[..., None], column * flip[..., None])
    return np.where((cosine > 0)[..., None] & (sine < 1e-6)[..., None], w, angle[..., None] * axis)


def _least_squares(p: _Reach, iterations: int, tolerance: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Levenberg-Marquardt from every start; a joint at a limit that would go beyond it is left out of a step."""
    m, q, every = p.sim.model, p.q.copy(), np.arange(p.batch)
    damping = np.full(p.batch, DAMPING)
    r, J = p.residuals(q, every)
    error = np.linalg.norm(r, axis=1)
    moving, count = (error > tolerance), 0
    while moving.any() and count < iterations:
        count += 1
        rows = np.flatnonzero(moving)
        g, H = np.einsum("bk,bkn->bn", r[rows], J[rows]), np.swapaxes(J[rows], 1, 2) @ J[rows]
        free = ~_held(p, q[rows], -g)
        H, g = H * free[:, :, None] * free[:, None, :], g * free
        size = np.trace(H, axis1=1, axis2=2) / m.nv + 1e-30
        H[:, range(m.nv), range(m.nv)] += (damping[rows] * size)[:, None] + ~free
        step = -np.linalg.solve(H, g[..., None])[..., 0]
        there = p.within(move(m, q[rows], step))
        found, J_there = p.residuals(there, rows)
        norm = np.linalg.norm(found, axis=1)
        better = norm < error[rows]
        taken, gained = rows[better], error[rows[better]] - norm[better]
        q[taken], r[taken], J[taken], error[taken] = there[better], found[better], J_there[better], norm[better]
        damping[rows] = np.clip(np.where(better, damping[rows] / 10, damping[rows] * 10), LEAST, None)
        moving[taken] = (error[taken] > tolerance) & (gained > 1e-12 * error[taken])
        moving[rows] &= damping[rows] < MOST
    return q, error, count


def _held(p: _Reach, q: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Which degrees of freedom are at a limit that a step in this direction would pass."""
    at = q[:, p.at]
    return ((at <= p.low) & (direction < 0)) | ((at >= p.high) & (direction > 0))


class _OneStart:
    """The step from one start, as `optimize` sees it. Starts differ in their bounds, so each is a problem of its own."""

    def __init__(self, p: _Reach, row: int):
        self.p, self.rows, at = p, np.array([row]), p.q[row][p.at]
        self.lower, self.upper = p.low - at, p.high - at

    def loss(self, x: np.ndarray) -> np.ndarray:
        return self.gradient(x)[0]

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.p.of_steps(x, np.repeat(self.rows, len(x)))


def _lbfgs(p: _Reach, iterations: int, tolerance: float) -> tuple[np.ndarray, np.ndarray, int]:
    """SciPy's L-BFGS-B from every start."""
    if quaternions(p.sim.model):
        raise InputError("method='lbfgs' is for robots without ball and free joints: use 'dls'")
    q, count = p.q.copy(), 0
    for row in range(p.batch):
        goal = 0.5 * tolerance**2
        found = minimize(
            _OneStart(p, row), np.zeros((1, p.sim.model.nv)), method="lbfgs", iterations=iterations, goal=goal
        )
        q[row] += found.x[0]
        count = max(count, found.iterations)
    r, _ = p.residuals(q, np.arange(p.batch), jacobian=False)
    return q, np.linalg.norm(r, axis=1), count
