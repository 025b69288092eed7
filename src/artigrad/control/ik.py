"""Inverse kinematics: joint positions at which sites and bodies have given poses, from several initial guesses at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ..arguments import checked, is_number, numbers, shown
from ..deprecation import renamed
from ..errors import InputError
from ..model.params import Params
from ..model.state import State
from ..model.tangent import integrate, quaternions
from ..optimize import minimize
from ..simulate.simulator import Simulator

DAMPING, LEAST, MOST = 1e-3, 1e-12, 1e6  # damping at first, least and most, relative to the trace of J^T J


@renamed(of="frame", turn_weight="rotation_weight")
class Goal(NamedTuple):
    """Target pose of a site or a body, in world axes.

    Attributes:
      frame: Name of a site, or else of a body.
      position: Position of its origin, m, (3,) or with the batch axis of the initial guesses; None: free.
      rotation: Rotation matrix, (3, 3) or with the batch axis; None: free.
      weight: Weight of the position error, 1/m.
      rotation_weight: Weight of the rotation error, 1/rad.
    """

    frame: str
    position: Any = None
    rotation: Any = None
    weight: float = 1.0
    rotation_weight: float = 1.0


class IK(NamedTuple):
    """Result of inverse kinematics.

    Attributes:
      q: Joint positions (nq,), or (B, nq) for a batch of initial guesses.
      error: Norm of the weighted residuals of all goals.
      solved: True if error is at most the tolerance.
      iterations: Number of iterations.
    """

    q: np.ndarray
    error: Any
    solved: Any
    iterations: int

    @property
    def best(self) -> np.ndarray:
        """The q of a batch with the smallest error, (nq,)."""
        return self.q if self.q.ndim == 1 else self.q[int(np.argmin(self.error))]


@checked
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
    """Return joint positions that meet all goals, or minimize the sum of squared errors.

    Args:
      sim: Simulator.
      goals: One goal or several.
      start: Initial guess (nq,), or several (B, nq); None: the model's keyframe.
      method: "dls", damped least squares (Levenberg-Marquardt with active limits removed), or "lbfgs", SciPy's, for robots
        without ball and free joints.
      limits: Keep joints within their limits; an initial guess beyond one is projected.
      iterations: Maximum number of iterations.
      tolerance: Error at which a guess is solved.
      params: Parameters; None: `sim.params`.
    """
    goals = [goals] if isinstance(goals, Goal) else list(goals) if isinstance(goals, list | tuple) else []
    if not goals or not all(isinstance(goal, Goal) for goal in goals):
        raise InputError("goals is a Goal(frame, position=..., rotation=...) or a list of them")
    if params is not None:
        sim.checks.params(params, params.batch or 1)
    q = sim.model.keyframe().q if start is None else sim.checks.host_array("start", start).astype(float)
    batched = q.ndim > 1
    problem = _Residuals(sim, goals, np.atleast_2d(q), limits, params)
    if method == "dls":
        q, error, count = _least_squares(problem, iterations, tolerance)
    elif method == "lbfgs":
        q, error, count = _lbfgs(problem, iterations, tolerance)
    else:
        raise InputError(f"method is 'dls' or 'lbfgs', not {method!r}")
    solved = error <= tolerance
    return IK(q, error, solved, count) if batched else IK(q[0], float(error[0]), bool(solved[0]), count)


def _checked_goal(goal: Goal) -> Goal:
    """Return a goal whose entries are arrays."""
    if not isinstance(goal.frame, str):
        raise InputError(f"frame of a Goal is the name of a site or a body, not {shown(goal.frame)}")
    for name in ("weight", "rotation_weight"):
        value = getattr(goal, name)
        if not is_number(value) or not 0.0 <= value < 1e100:
            raise InputError(f"{name} of a Goal is a number, zero or more, not {shown(value)}")
    place, turn = (
        None if x is None else numbers(f"{name} of a Goal", x)
        for name, x in (("position", goal.position), ("rotation", goal.rotation))
    )
    for name, x, own in (("position", place, (3,)), ("rotation", turn, (3, 3))):
        if x is not None and (x.shape[-len(own) :] != own or not x.size):
            raise InputError(f"{name} of a Goal is {own}, or with the batch axis of the starts, not {x.shape}")
    return goal._replace(position=place, rotation=turn)


class _Residuals:
    """Residuals of all goals and their Jacobian. `low` and `high` are joint limits (nv,)."""

    def __init__(self, sim: Simulator, goals: list[Goal], q: np.ndarray, limits: bool, params: Params | None):
        m = sim.model
        if q.shape[-1] != m.nq:
            raise InputError(f"start is ({m.nq},) or (B, {m.nq}), not {q.shape}")
        if not goals or all(t.position is None and t.rotation is None for t in goals):
            raise InputError("a goal has a position or a rotation to reach")
        goals = [_checked_goal(goal) for goal in goals]
        self.sim, self.goals, self.params = sim, goals, sim.params if params is None else params
        self.low, self.high = np.full(m.nv, -np.inf), np.full(m.nv, np.inf)
        self.at = np.zeros(m.nv, int)  # index in q of each degree of freedom with limits
        for i in range(m.nb) if limits else ():
            limit, joint = self.params.limit[..., i, :].reshape(-1, 2), m.joint_kind(i)
            if not np.isfinite(limit).any():
                continue
            if not joint.axial:
                raise InputError(
                    f"ik does not support limits of {joint.name} joints, such as '{m.joints[i]}': pass limits=False"
                )
            k = m.joint_v[i]
            self.low[k], self.high[k], self.at[k] = limit[:, 0].max(), limit[:, 1].min(), m.joint_q[i]
        self.q = self.within(q)
        self.batch = len(q)

    def within(self, q: np.ndarray) -> np.ndarray:
        """Return q with joints projected onto their limits."""
        q = q.copy()
        for k in np.flatnonzero(np.isfinite(self.low) | np.isfinite(self.high)):
            q[:, self.at[k]] = np.clip(q[:, self.at[k]], self.low[k], self.high[k])
        return q

    def state(self, q: np.ndarray) -> State:
        return State(q, np.zeros((len(q), self.sim.model.nv)))

    def residuals(self, q: np.ndarray, rows: np.ndarray, jacobian: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals (B, k) and their Jacobian (B, k, nv) on the tangent space, for initial guesses with indices
        `rows`."""
        state, m = self.state(q), self.sim.model
        params = self.params if self.params.batch is None else Params(m, self.params.flat[rows])
        out = self.sim.outputs(state, params=params)
        r, J = [], []
        for t in self.goals:
            kind, k = ("site", m.site(t.frame)) if t.frame in m.sites else ("body", m.body(t.frame))
            Jt = self.sim.jacobian(state, t.frame, params=params) if jacobian else np.zeros((len(q), 6, m.nv))
            if t.position is not None:
                r.append(t.weight * (getattr(out, f"{kind}_position")[:, k] - _of_rows(t.position, rows, 1)))
                J.append(t.weight * Jt[:, :3])
            if t.rotation is not None:
                turned = getattr(out, f"{kind}_rotation")[:, k] @ np.swapaxes(_of_rows(t.rotation, rows, 2), -1, -2)
                r.append(t.rotation_weight * _rotation_vector(turned))
                J.append(t.rotation_weight * Jt[:, 3:])
        return np.concatenate(r, -1), np.concatenate(J, -2)

    # -- for `optimize.Problem` ----------------------------------------------------------------------------------------
    def of_steps(self, d: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return loss and gradient of steps d from initial guesses with indices `rows`."""
        r, J = self.residuals(self.q[rows] + d, rows)
        return 0.5 * np.sum(r**2, 1), np.einsum("bk,bkn->bn", r, J)


def _of_rows(x: Any, rows: np.ndarray, own: int) -> np.ndarray:
    """Return the target of initial guesses with indices `rows`."""
    x = np.asarray(x, float)
    return x[rows] if x.ndim > own else x


def _rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return rotation vectors (..., 3) of rotation matrices (..., 3, 3), with angles of at most pi."""
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


def _least_squares(p: _Residuals, iterations: int, tolerance: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Levenberg-Marquardt from every initial guess; joints at a limit that a step would exceed are fixed in it."""
    m, q, every = p.sim.model, p.q.copy(), np.arange(p.batch)
    damping = np.full(p.batch, DAMPING)
    r, J = p.residuals(q, every)
    error = np.linalg.norm(r, axis=1)
    moving, count = (error > tolerance), 0
    while moving.any() and count < iterations:
        count += 1
        rows = np.flatnonzero(moving)
        g, H = np.einsum("bk,bkn->bn", r[rows], J[rows]), np.swapaxes(J[rows], 1, 2) @ J[rows]
        free = ~_at_active_limit(p, q[rows], -g)
        H, g = H * free[:, :, None] * free[:, None, :], g * free
        size = np.trace(H, axis1=1, axis2=2) / m.nv + 1e-30
        H[:, range(m.nv), range(m.nv)] += (damping[rows] * size)[:, None] + ~free
        step = -np.linalg.solve(H, g[..., None])[..., 0]
        there = p.within(integrate(m, q[rows], step))
        found, J_there = p.residuals(there, rows)
        norm = np.linalg.norm(found, axis=1)
        better = norm < error[rows]
        taken, gained = rows[better], error[rows[better]] - norm[better]
        q[taken], r[taken], J[taken], error[taken] = there[better], found[better], J_there[better], norm[better]
        damping[rows] = np.clip(np.where(better, damping[rows] / 10, damping[rows] * 10), LEAST, None)
        moving[taken] = (error[taken] > tolerance) & (gained > 1e-12 * error[taken])
        moving[rows] &= damping[rows] < MOST
    return q, error, count


def _at_active_limit(p: _Residuals, q: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return True for degrees of freedom at a limit that a step in this direction would exceed, (B, nv)."""
    at = q[:, p.at]
    return ((at <= p.low) & (direction < 0)) | ((at >= p.high) & (direction > 0))


class _OneStart:
    """Problem of `optimize` for one initial guess. Guesses differ in their bounds."""

    def __init__(self, p: _Residuals, row: int):
        self.p, self.rows, at = p, np.array([row]), p.q[row][p.at]
        self.lower, self.upper = p.low - at, p.high - at

    def loss(self, x: np.ndarray) -> np.ndarray:
        return self.gradient(x)[0]

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.p.of_steps(x, np.repeat(self.rows, len(x)))


def _lbfgs(p: _Residuals, iterations: int, tolerance: float) -> tuple[np.ndarray, np.ndarray, int]:
    """SciPy's L-BFGS-B from every initial guess."""
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
