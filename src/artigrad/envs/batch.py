"""A batch of robots at a task: what single and vectorised environments share. One step is one native call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import InputError
from ..model.state import State
from ..simulate.simulator import Simulator
from .balancing import CartpoleSwingUp, PendulumReach
from .env_task import EnvTask, Transition
from .locomotion import Ant, Hopper, QuadrupedWalk

TASKS: dict[str, Callable[..., EnvTask]] = {
    "CartpoleSwingUp": CartpoleSwingUp,
    "PendulumReach": PendulumReach,
    "Ant": Ant,
    "Hopper": Hopper,
    "QuadrupedWalk": QuadrupedWalk,
}


class Moved(NamedTuple):
    """What one step of the environment gives, one row per robot."""

    state: State
    reward: np.ndarray
    terminated: np.ndarray


class DifferentiableStep(NamedTuple):
    """What `step(action)` would give, and how it depends on the action; a vectorised environment has its axis first.

    state: the next q (nq,) and v (nv,). observation: (no,). reward, terminated: as of `step`. q_action (nq, na), v_action
    (nv, na), observation_action (no, na), reward_action (na,): Jacobians with respect to the action, zero for entries
    of it that lie beyond -1 or 1. violation: m/s, how far contact was from solved in some step; the Jacobians are exact
    where it is 0 (see `Health`).
    """

    state: State
    observation: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    q_action: np.ndarray
    v_action: np.ndarray
    observation_action: np.ndarray
    reward_action: np.ndarray
    violation: np.ndarray


class Batch:
    """Robots at a task, without memory of where they are: states go in and come out."""

    def __init__(self, task: str | EnvTask, dtype: Literal["f32", "f64"], threads: int | None, **options: Any):
        if isinstance(task, str):
            if task not in TASKS:
                raise InputError(f"tasks are {', '.join(TASKS)}; not '{task}'")
            task = TASKS[task](**options)
        elif options:
            raise InputError(f"{', '.join(options)}: options go to a task given by name, not to a EnvTask")
        self.task = task
        self.sim = Simulator(task.model, task.dt, dtype=dtype, threads=threads, **task.options)

    def start(self, rng: np.random.Generator, count: int) -> State:
        q, v = self.task.start(rng, count)
        return State(q.astype(self.sim.real), v.astype(self.sim.real))

    def observe(self, state: State, steps: np.ndarray) -> np.ndarray:
        """What the robots see after so many steps."""
        return self.task.observe(state, steps / self.task.episode).astype(self.sim.real)

    def controls(self, action: np.ndarray) -> np.ndarray:
        """The controls (B, frame_skip, nu) of an action, which is cut off at -1 and 1."""
        task = self.task
        u = (task.offset + task.scale * np.clip(action, -1.0, 1.0)).astype(self.sim.real)
        return np.broadcast_to(u[:, None], (len(u), task.frame_skip, u.shape[-1]))

    def step(self, state: State, action: np.ndarray) -> Moved:
        """One step. A robot whose motion overflowed stays where it was, without reward, and has failed."""
        q, v = self.sim.rollout(state, self.controls(action)).final
        lost = ~(np.isfinite(q).all(1) & np.isfinite(v).all(1))
        if lost.any():
            q[lost], v[lost] = state.q[lost], state.v[lost]
        after = State(q, v)
        with np.errstate(over="ignore", invalid="ignore"):
            reward = self.task.reward(Transition(state, np.clip(action, -1.0, 1.0), after)).astype(np.float64)
        return Moved(after, np.where(lost, 0.0, reward), self.task.over(after) | lost)

    def differentiable_step(self, state: State, action: np.ndarray, steps: np.ndarray) -> DifferentiableStep:
        """One step and its Jacobians: dr/da = r_a + r_q dq'/da + r_v dv'/da, do/da = o_q dq'/da + o_v dv'/da"""
        task, moved = self.task, self.step(state, action)
        dq, dv, violation = self._jacobians(state, action)
        wide = State(*(x[:, None] for x in moved.state))
        rows = np.broadcast_to(np.eye(task.observation_size), (len(action), *[task.observation_size] * 2))
        o_q, o_v = task.observe_vjp(wide, rows)
        r = task.reward_vjp(Transition(state, np.clip(action, -1.0, 1.0), moved.state))
        within = np.abs(action) <= 1.0
        return DifferentiableStep(
            moved.state,
            self.observe(moved.state, steps),
            moved.reward,
            moved.terminated,
            q_action=dq,
            v_action=dv,
            observation_action=o_q @ dq + o_v @ dv,
            reward_action=r.action * within + np.einsum("bi,bia->ba", r.q, dq) + np.einsum("bi,bia->ba", r.v, dv),
            violation=violation,
        )

    def _jacobians(self, state: State, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """dq'/da (B, nq, na), dv'/da (B, nv, na): one row of cotangents per entry of the next state; and the violation."""
        m, count = self.task.model, len(action)
        n = m.nq + m.nv
        q, v, u = (np.repeat(x, n, 0) for x in (*state, self.controls(action)))
        rows = np.tile(np.eye(n, dtype=self.sim.real), (count, 1))
        grad = self.sim.vjp(self.sim.rollout(State(q, v), u), rows[:, : m.nq], rows[:, m.nq :], with_params=False)
        da = (grad.u.sum(1) * self.task.scale).reshape(count, n, m.nu) * (np.abs(action) <= 1.0)[:, None]
        return da[:, : m.nq], da[:, m.nq :], grad.health.violation.reshape(count, n).max(1)
