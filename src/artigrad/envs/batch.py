"""Batch: simulation of an EnvTask, shared by all environments. A step is one native call that autograd differentiates."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ..arguments import checked
from ..errors import InputError
from ..model.tangent import quaternions
from ..simulate.simulator import Simulator
from ..torch import rollout
from ..torch.tensor_checks import DTYPES, device_of, is_traced, is_transformed
from .balancing import CartpoleSwingUp, PendulumReach
from .env_task import EnvState, EnvTask, RandomSource
from .locomotion import Ant, HalfCheetah, Hopper, Humanoid, Laikago, Walker2d
from .mujoco_fields import MujocoFields
from .suite_humanoid import SuiteHumanoid

TASKS: dict[str, type[EnvTask]] = {
    "Ant": Ant,
    "HalfCheetah": HalfCheetah,
    "Hopper": Hopper,
    "Humanoid": Humanoid,
    "Walker2d": Walker2d,
    "CartpoleSwingUp": CartpoleSwingUp,
    "PendulumReach": PendulumReach,
    "SuiteHumanoid": SuiteHumanoid,
    "Laikago": Laikago,
}


class BatchStep(NamedTuple):
    """Result of one environment step, batch axis first."""

    state: EnvState
    reward: Tensor
    terminated: Tensor


class Batch:
    """Simulation of a batch of environments. It is stateless: methods take and return states.

    Attributes:
      task: The EnvTask.
      sim: Its Simulator.
      dtype, device: Data type and device of all tensors.
      clip_counts: (2,), number of state cotangents that were clipped in backward passes, and number of all.
    """

    @checked
    def __init__(
        self,
        task: str | EnvTask,
        *,
        device: str = "cpu",
        dtype: Literal["f32", "f64"] = "f32",
        threads: int | None = None,
        **options: Any,
    ):
        if isinstance(task, str):
            if task not in TASKS:
                raise InputError(f"tasks are {', '.join(TASKS)}; not '{task}'")
            known = list(inspect.signature(TASKS[task]).parameters)
            for name in options:
                if name not in known:
                    raise InputError(f"options of {task} are {', '.join(known) or 'none'}; not '{name}'")
            task = TASKS[task](**options)
        elif options:
            raise InputError(f"{', '.join(options)}: options go to a task given by name, not to an EnvTask")
        self.task = task
        self.sim = Simulator(task.model, device=device, dtype=dtype, threads=threads, **task.options)
        self.fields = MujocoFields(self.sim) if task.use_mjdata else None
        self.dtype, self.device = DTYPES[self.sim.dtype], device_of(self.sim)
        self.clip_counts = torch.zeros(2, device=self.device)

    def random_source(self, seed: int) -> RandomSource:
        """Return a source of random tensors of this batch's data type and device."""
        return RandomSource(torch.Generator(self.device).manual_seed(seed), self.dtype)

    def initial_state(self, random: RandomSource, count: int) -> EnvState:
        """Return random initial states of `count` episodes."""
        task, model = self.task, self.task.model
        q, v = task.sample_initial_state(random, count)
        self._check("sample_initial_state", q, (count, model.nq), "(count, nq) for q")
        self._check("sample_initial_state", v, (count, model.nv), "(count, nv) for v")
        q = self.normalize_quaternions(q)
        steps = torch.zeros(count, dtype=torch.long, device=self.device)
        goals = task.sample_goals(random, count)
        self._check("sample_goals", goals, (count, task.goal_size), "(count, goal_size)")
        return EnvState(q, v, self.extras((q, v), (q, v), None), goals, steps, q.new_zeros(count, model.na))

    def normalize_quaternions(self, q: Tensor) -> Tensor:
        """Return q (B, nq) with unit quaternions."""
        q = q.clone()
        for first, _ in quaternions(self.task.model):
            q[:, first : first + 4] /= q[:, first : first + 4].norm(dim=-1, keepdim=True)
        return q

    def extras(self, now: tuple[Tensor, Tensor], previous: tuple[Tensor, Tensor], u: Tensor | None) -> Tensor:
        """Return `EnvState.extras`.

        Args:
          now: State (q, v).
          previous: State one simulator step before, for tasks that use mjData.
          u: Controls of that step, (B, nu); None for initial states.
        """
        if self.fields is not None:
            return self.task.mjdata_extras(self.fields, *previous, u)
        if not self.task.extras_size:
            return now[0][:, :0]
        expected = (len(now[0]), self.task.extras_size)
        return self._check("extras", self.task.extras(self.sim, *now, u), expected, "(batch, extras_size)")

    def observe(self, state: EnvState) -> Tensor:
        """Return the task's observations, (B, observation_size)."""
        expected = (len(state.q), self.task.observation_size)
        observation = self._check("observe", self._call("observe", state), expected, "(batch, observation_size)")
        if (
            torch.compiler.is_dynamo_compiling() or is_transformed() or is_traced([observation])
        ):  # tensors without memory
            return observation.clone()
        places = {x.untyped_storage().data_ptr() for x in state if x.numel()}
        return observation.clone() if observation.untyped_storage().data_ptr() in places else observation

    def _call(self, name: str, *args: Any) -> Any:
        """Return the result of a method of the task, after a check that it did not modify a state in place."""
        if torch.compiler.is_dynamo_compiling():
            return getattr(self.task, name)(*args)
        states = [x for x in args if isinstance(x, EnvState)]
        given = [(k, x, x._version) for y in states for k, x in y._asdict().items() if not x.is_inference()]
        result = getattr(self.task, name)(*args)
        for field, x, version in given:
            if x._version != version:
                raise InputError(
                    f"{type(self.task).__name__}.{name} modified {field} of a state in place, which moves the robot: copy it "
                    f"first, {field} = state.{field}.clone()"
                )
        return result

    def _check(self, name: str, x: Tensor, shape: tuple[int, ...], what: str) -> Tensor:
        """Return the result of a method of the task, after a check of its shape."""
        if not isinstance(x, Tensor) or tuple(x.shape) != shape:
            given = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise InputError(f"{type(self.task).__name__}.{name} returned {given}; expected a tensor {shape}, {what}")
        return x

    def step(self, before: EnvState, action: Tensor, clip: float | None = None) -> BatchStep:
        """Simulate one environment step, without auto-reset.

        An environment whose state overflows keeps its state, gets no reward, is terminated, and has no gradient. Robots are
        simulated near the origin, where single precision has the highest resolution; rewards and terminations get the state
        where it is.

        Args:
          before: State, batch size B.
          action: Actions (B, nu). Controls are those of actions clipped to the limit of the task; rewards get them as given.
          clip: Maximum norms of the cotangents of each environment's state and controls in the backward pass; None: no limit.
        """
        task, offset = self.task, before.q[:, : self.task.num_excluded_positions].detach()
        start, before = before, task.translated(before, -offset)
        lost = torch.zeros(len(action), dtype=torch.bool, device=self.device)
        act = before.act if task.model.na else before.q[:, :0]
        state = (before.q, before.v, act)[: 3 if task.model.na else 2]
        u = self._check(
            "controls",
            task.controls(action.clamp(-task.limit, task.limit)),
            (len(action), task.model.nu),
            "(batch, nu)",
        )
        if is_transformed():
            u, *state0 = self._without_lost(clip, u, *state)
        else:
            u, *state0 = CotangentClipping.apply(clip, task.num_excluded_positions, lost, self.clip_counts, u, *state)
        states: Any = rollout(self.sim, tuple(state0), u[:, None].expand(-1, task.frame_skip, -1))
        last, previous = ((states.q[:, k], states.v[:, k]) for k in (-1, -2))
        reached = [*last, self.extras(last, previous, u), states.act[:, -1] if task.model.na else act]
        lost = self._lost(reached) if is_transformed() else lost.copy_(self._lost(reached))  # read by the backward pass
        kept = (x.detach() for x in (before.q, before.v, before.extras, act))
        q, v, extras, act = (torch.where(lost[:, None], x, y) for x, y in zip(kept, reached, strict=True))
        after = task.translated(EnvState(q, v, extras, before.goal, before.steps + 1, act), offset)
        reward = self._call("reward", start, action, after)
        reward = self._check("reward", reward, (len(lost),), "(batch,)")
        terminated = self._check("terminated", self._call("terminated", after), (len(lost),), "(batch,)")
        return BatchStep(after, torch.where(lost, 0.0, reward), terminated | lost)

    @staticmethod
    def _lost(states: Iterable[Tensor]) -> Tensor:
        """Return which environments have a state that is not finite, (B,)."""
        return ~torch.stack([x.isfinite().all(-1) for x in states]).all(0)

    def _without_lost(self, clip: float | None, u: Tensor, *state: Tensor) -> list[Tensor]:
        """Return u and the state, without derivatives of lost environments: for transformations of `torch.func` and forward
        mode, which find the lost by one more rollout."""
        if clip is not None:
            raise InputError("environments with clip= have first gradients by backward() only: leave clip out")
        fixed = [x.detach() for x in (u, *state)]
        states = rollout(self.sim, tuple(fixed[1:]), fixed[0][:, None].expand(-1, self.task.frame_skip, -1))
        lost = self._lost([x[:, -1] for x in states])
        return [torch.where(lost[:, None], x, y) for x, y in zip(fixed, (u, *state), strict=True)]


class CotangentClipping(torch.autograd.Function):
    """Identity on u and the state (q, v, and act of models with activations). The backward pass clips the cotangents of u and
    of the state to the norm `clip`, and clears those of lost environments.

    The cotangents of the first `num_excluded` entries of q (horizontal base position) do not grow: they are neither counted nor
    clipped. `lost` is filled after the forward pass."""

    @staticmethod
    def forward(
        ctx: Any, clip: float | None, num_excluded: int, lost: Tensor, counts: Tensor, u: Tensor, *state: Tensor
    ) -> Any:
        ctx.clip, ctx.num_excluded, ctx.lost, ctx.counts = clip, num_excluded, lost, counts
        return u.view_as(u), *(x.view_as(x) for x in state)

    @staticmethod
    def backward(ctx: Any, *bars: Tensor) -> Any:
        u_bar, q_bar, *rest = (torch.where(ctx.lost[:, None], 0.0, x) for x in bars)
        if ctx.clip is not None:
            position_bar, q_bar = q_bar.split([ctx.num_excluded, q_bar.shape[-1] - ctx.num_excluded], -1)
            scale = _clip_factor(ctx.clip, torch.cat([q_bar, *rest], -1))
            ctx.counts += torch.stack([(scale < 1.0).sum(), torch.tensor(len(scale), device=scale.device)])
            q_bar, rest = torch.cat([position_bar, scale * q_bar], -1), [scale * x for x in rest]
            u_bar = _clip_factor(ctx.clip, u_bar) * u_bar
        return None, None, None, None, u_bar, q_bar, *rest


def _clip_factor(clip: float, x: Tensor) -> Tensor:
    """Return factors (B, 1) that scale each row of x (B, n) to a norm of at most `clip`."""
    return (clip / x.norm(dim=-1, keepdim=True).clamp(min=1e-30)).clamp(max=1.0)
