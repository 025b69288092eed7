"""iLQR: controls that minimize the cost of a trajectory, and feedback gains (Li and Todorov 2004; Tassa et al. 2012, 2014).

An iteration linearizes all steps of all problems at once, runs the backward pass in one kernel (`kernels/riccati.py`), and
evaluates several step lengths as a batch of rollouts with feedback (`kernels/feedback.py`). Problems of a batch are
independent: one that fails or has converged does not affect the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import checked
from ..errors import InputError
from ..kernels.feedback import feedback_rollout
from ..kernels.riccati import FOUND, riccati, riccati_work
from ..model.params import Params
from ..model.state import State
from ..simulate.engine import Inputs
from ..simulate.simulator import Simulator
from .costs import Cost, Expansion

STEP_LENGTHS = 1.1 ** (-(np.arange(10.0) ** 2))  # of the line search: 1, 0.9, 0.7, ... 0.0004
SWEEPS = 20  # of projected Gauss-Seidel, for controls with limits
LEAST_MU, MOST_MU = 1e-6, 1e10
GROWTH = 2.0
UNLIMITED = 1e30


@dataclass
class Plan:
    """A trajectory with feedback gains. Batch axis first, if there is one.

    Attributes:
      u: Controls (T, nu).
      q, v, act: States (T+1, ...), one per control and the last.
      gain: K (T, nu, n), n = 2 nv + na, for the feedback `u + K (x (-) x_ref)` on the tangent space.
      cost: Cost of the trajectory.
      costs: Cost after every iteration, (iterations + 1, ...).
      solved: True if no step decreases the cost by more than the tolerance.
      iterations: Number of iterations.
      seconds: Wall-clock time.
    """

    u: np.ndarray
    q: np.ndarray
    v: np.ndarray
    gain: np.ndarray
    cost: Any
    costs: np.ndarray
    solved: Any
    iterations: Any
    seconds: float
    act: Any = None

    @property
    def states(self) -> State:
        """States with q and v, and act for models with activations."""
        return State(self.q, self.v, self.act)


@checked
def ilqr(
    sim: Simulator,
    cost: Cost,
    state: State,
    u: Any,
    *,
    hold: int = 1,
    limits: Any = None,
    iterations: int = 100,
    tolerance: float = 1e-7,
    seconds: float = np.inf,
    params: Params | None = None,
    watch: Callable[[Plan], None] | None = None,
) -> Plan:
    """Return a trajectory from `state` whose controls minimize `cost`, and its feedback gains.

    Args:
      sim: Simulator on the CPU.
      cost: Cost.
      state: Initial state, or a batch of them, each of which is a separate problem.
      u: Initial guess of the controls (T, nu), or (B, T, nu).
      hold: Simulator steps per control. The cost counts the states at which controls change.
      limits: (lower, upper) of the controls, numbers or (nu,); None: the actuators' control ranges.
      iterations: Maximum number of iterations.
      tolerance: Relative decrease of the cost per iteration at which a problem is solved.
      seconds: Time after which no further iteration begins.
      params: Parameters; None: `sim.params`.
      watch: Called with the plan after every iteration.
    """
    if not hasattr(cost, "value") or not hasattr(cost, "expand"):
        raise InputError(
            f"cost is a Quadratic, LeastSquares or an object with value and expand, not {type(cost).__name__}"
        )
    start, batched = sim.checks.state(state)
    if not sim.checks.on_host:
        raise InputError("ilqr runs on the CPU: make a Simulator(model) without device")
    u = sim.checks.array("u", u)
    if u.ndim not in (2, 3) or u.shape[-1] != sim.model.nu or (u.ndim == 3 and len(u) != len(start.q)):
        raise InputError(f"u is (T, {sim.model.nu}), or with the batch axis of the state, not {u.shape}")
    if isinstance(hold, bool) or not isinstance(hold, int) or hold < 1:
        raise InputError(f"hold is an integer number of steps, at least 1, not {hold!r}")
    search = _Search(sim, cost, sim.checks.params(params, len(start.q)), _limits(sim, limits, params), hold)
    search.begin(start, np.array(np.broadcast_to(u, (len(start.q), *u.shape[-2:]))))
    began = time.perf_counter()
    for _ in range(iterations):
        if search.done.all() or time.perf_counter() - began > seconds:
            break
        search.iterate(tolerance)
        if watch is not None:
            watch(search.plan(batched, time.perf_counter() - began))
    return search.plan(batched, time.perf_counter() - began)


def _limits(sim: Simulator, limits: Any, params: Params | None) -> np.ndarray:
    """Return lower and upper limits of the controls, (2, nu)."""
    if limits is None:
        own = (sim.params if params is None else params).control_range
        limits = np.array([own[..., 0].reshape(-1, sim.model.nu).max(0), own[..., 1].reshape(-1, sim.model.nu).min(0)])
    try:
        low, high = (np.broadcast_to(np.asarray(x, sim.real), (sim.model.nu,)) for x in limits)
    except (TypeError, ValueError):
        raise InputError(f"limits are (lower, upper), each a number or ({sim.model.nu},)") from None
    if not (low < high).all():
        raise InputError("limits of controls: the lower one is below the upper one")
    return np.ascontiguousarray(np.clip([low, high], -UNLIMITED, UNLIMITED))


class _Search:
    """State of the method for all problems of a batch."""

    def __init__(self, sim: Simulator, cost: Cost, params: Params, limits: np.ndarray, hold: int):
        self.sim, self.cost, self.params, self.limits, self.hold = sim, cost, params, limits, hold
        self.sweeps = SWEEPS if (np.abs(limits) < UNLIMITED).any() else 0

    def begin(self, start: State, u: np.ndarray) -> None:
        """Simulate the initial guess."""
        batch, T, m = u.shape
        self.n = 2 * self.sim.model.nv + self.sim.model.na
        self.u, self.gain = np.clip(u, *self.limits), np.zeros((batch, T, m, self.n))
        self.x = start.map(lambda x: np.repeat(x[:, None], T * self.hold + 1, 1))
        zero = np.zeros((batch, T, m))
        self.x, self.u = self._rollout(np.arange(batch), np.zeros(batch), zero, self.gain)
        self.best = self._cost(self.x, self.u)
        self.mu, self.growth = np.zeros(batch), np.ones(batch)
        self.done, self.solved, self.taken = ~np.isfinite(self.best), np.zeros(batch, bool), np.zeros(batch, int)
        self.costs = [self.best.copy()]

    def _cost(self, x: State, u: np.ndarray) -> np.ndarray:
        """Return the cost of every trajectory, infinite if it is not finite."""
        q, v = self._at_controls(x)[:2]
        with np.errstate(all="ignore"):
            total = self.cost.value(q[:, :-1], v[:, :-1], u).sum(1) + self.cost.value(q[:, -1], v[:, -1], None)
            finite = np.isfinite(total) & np.isfinite(q[:, -1]).all(1) & np.isfinite(v[:, -1]).all(1)
        return np.where(finite, total, np.inf)

    def _at_controls(self, x: State) -> State:
        """Return the states at which controls change, and the last."""
        return x.map(lambda y: y[:, :: self.hold])

    def iterate(self, tolerance: float) -> None:
        """Run one iteration of all problems that are not done."""
        now = np.flatnonzero(~self.done)
        push, gain, change, bad = self._gains(now)
        lengths, each = len(STEP_LENGTHS), np.repeat(now, len(STEP_LENGTHS))
        shares = np.tile(STEP_LENGTHS, len(now))
        many = (np.repeat(x, lengths, 0) for x in (push, gain))
        x, u = self._rollout(each, shares, *many)
        costs = self._cost(x, u).reshape(len(now), lengths)
        best = costs.argmin(1)
        picked = np.arange(len(now)) * lengths + best
        lowest = costs[np.arange(len(now)), best]
        expected = -(STEP_LENGTHS[best] * change[:, 0] + STEP_LENGTHS[best] ** 2 * change[:, 1])
        less = self.best[now] - lowest
        better = ~bad & (less > 1e-4 * np.abs(expected)) & (less > 0)
        size = np.abs(self.best[now]) + 1e-12
        # small decrease: the predicted one if no step was found, else the actual one
        small = np.where(better, less, np.abs(change[:, 0])) < tolerance * size
        self._accept(now[better], picked[better], (*x, u), gain[better], lowest[better])
        self._regularize(now, better)
        self.solved[now] = (
            small & ~bad & (better | (self.mu[now] <= LEAST_MU) | (np.abs(change[:, 0]) < tolerance * size))
        )
        self.done[now] = self.solved[now] | (self.mu[now] > MOST_MU)
        self.taken[now] += 1
        self.costs.append(self.best.copy())

    def _accept(self, which: np.ndarray, picked: np.ndarray, motions: Any, gain: np.ndarray, cost: np.ndarray) -> None:
        for mine, found in zip((*self.x, self.u), motions, strict=True):
            mine[which] = found[picked]
        self.gain[which], self.best[which] = gain, cost

    def _regularize(self, now: np.ndarray, better: np.ndarray) -> None:
        """Decrease the regularization after a success and increase it after a failure, by growing factors (Tassa et al.
        2012)."""
        growth = self.growth[now]
        growth = np.where(better, np.minimum(1 / GROWTH, growth / GROWTH), np.maximum(GROWTH, growth * GROWTH))
        mu = np.maximum(self.mu[now], np.where(better, 0.0, LEAST_MU)) * growth
        self.growth[now], self.mu[now] = growth, np.where(mu < LEAST_MU, 0.0, mu)

    # -- kernels -------------------------------------------------------------------------------------------------------
    def _params(self, which: np.ndarray) -> Params:
        return self.params if self.params.batch is None else Params(self.sim.model, self.params.flat[which])

    def _rollout(
        self, which: np.ndarray, share: np.ndarray, push: np.ndarray, gain: np.ndarray
    ) -> tuple[State, np.ndarray]:
        """Simulate under feedback about the trajectories of these problems, with a fraction `share` of the feedforward
        `push`."""
        engine, m, real = self.sim.engine, self.sim.model, self.sim.real
        count, T = len(which), self.u.shape[1]
        ref = self._at_controls(self.x).map(lambda y: np.ascontiguousarray(y[which], real))
        x = ref.map(lambda y: np.empty((count, T * self.hold + 1, y.shape[-1]), real))
        for own, begin in zip(x, ref, strict=True):
            own[:, 0] = begin[:, 0]
        u = np.empty((count, T, m.nu), real)
        inputs, status = Inputs(count, u, None, self._params(which)), engine.new_status(count)
        engine.bound_kernel(feedback_rollout, inputs, False, {"away": self.n})(
            count,
            engine.threads,
            controls=T,
            hold=self.hold,
            const=engine.constants(inputs.params, count),
            **x.named(),
            **ref.named("_ref"),
            u=u,
            u_ref=np.ascontiguousarray(self.u[which], real),
            push=np.ascontiguousarray(push, real),
            gain=np.ascontiguousarray(gain, real),
            share=np.ascontiguousarray(share[:, None], real),
            low=self.limits[0],
            high=self.limits[1],
            **({"status": status} if engine.constrained else {}),
        )
        engine.check_contact_buffer(status)
        return x, u

    def _gains(self, now: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return feedforward (B, T, m), gains (B, T, m, n), coefficients of the predicted decrease (B, 2), and failures
        (B,)."""
        m, n, real = self.sim.model.nu, self.n, self.sim.real
        x, u = (self.x.map(lambda y: y[now]), self.u[now]) if len(now) < len(self.u) else (self.x, self.u)
        batch, T = u.shape[:2]
        A, B = self._linearized(x, u, now)
        q, v = self._at_controls(x)[:2]
        stage, last = self.cost.expand(q[:, :-1], v[:, :-1], u), self.cost.expand(q[:, -1], v[:, -1], None)
        given = {"A": A, "B": B, "u": u, "mu": self.mu[now][:, None]} | _rows(stage, last, n)
        given = {name: np.ascontiguousarray(x, real) for name, x in given.items()}
        shapes = ((T, m), (T, m, n), (2,), (1,))
        found = {name: np.empty((batch, *shape), real) for name, shape in zip(FOUND, shapes, strict=True)}
        kernel = riccati(self.sim.engine.device.target(batch))
        kernel(
            batch,
            self.sim.engine.threads,
            steps=T,
            n=n,
            m=m,
            sweeps=self.sweeps,
            low=self.limits[0],
            high=self.limits[1],
            **given,
            **found,
            **riccati_work(n, m),
        )
        finite = np.isfinite(found["gain"]).all((1, 2, 3)) & np.isfinite(found["push"]).all((1, 2))
        bad = (found["bad"][:, 0] > 0.5) | ~finite
        push, gain = (np.where(bad.reshape(-1, *(1,) * (x.ndim - 1)), 0.0, x) for x in (found["push"], found["gain"]))
        return push, gain, np.where(bad[:, None], 0.0, found["gains"]), bad

    def _linearized(self, x: State, u: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A and B of all controls: the Jacobians of all steps by one call, chained over the steps of a control."""
        (batch, T), hold = u.shape[:2], self.hold
        count, params = batch * T * hold, self._params(now)
        if params.batch is not None:
            params = Params(self.sim.model, np.repeat(params.flat, T * hold, 0))
        states = x.map(lambda y: np.ascontiguousarray(y[:, :-1]).reshape(count, -1))
        inputs = Inputs(count, np.repeat(u, hold, 1).reshape(count, 1, -1), None, params)
        A, B, _ = self.sim.engine.jacobian(inputs, states)
        A, B = (y.reshape(batch, T, hold, *y.shape[1:]) for y in (A, B))
        whole, driven = A[:, :, 0], B[:, :, 0]
        for k in range(1, hold):
            whole, driven = A[:, :, k] @ whole, A[:, :, k] @ driven + B[:, :, k]
        return whole, driven

    def plan(self, batched: bool, seconds: float) -> Plan:
        """Return the best trajectories so far."""
        parts = (self.u, self.gain, self.best, *self._at_controls(self.x))
        u, gain, best, q, v, *act = (x.copy() if batched else x[0].copy() for x in parts)
        costs, solved, taken = np.array(self.costs), self.solved.copy(), self.taken.copy()
        if batched:
            return Plan(u, q, v, gain, best, costs, solved, taken, seconds, *act)
        return Plan(u, q, v, gain, float(best), costs[:, 0], bool(solved[0]), int(taken[0]), seconds, *act)


def _rows(stage: Expansion, last: Expansion, n: int) -> dict[str, np.ndarray]:
    """Return derivatives of the cost as inputs of the backward pass. Those of x have a row for the last state and zeros for
    activations."""
    x = np.concatenate([stage.x, last.x[:, None]], 1)
    xx = np.concatenate([stage.xx, last.xx[:, None]], 1)
    more = (0, n - x.shape[-1])
    none = (0, 0)
    x, xx = np.pad(x, (none, none, more)), np.pad(xx, (none, none, more, more))
    return {"lx": x, "lxx": xx, "lu": stage.u, "lux": np.pad(stage.ux, (none, none, none, more)), "luu": stage.uu}
