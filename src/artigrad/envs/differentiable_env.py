"""Many robots as one environment in PyTorch, differentiable, on the CPU or on a GPU."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ..errors import InputError
from ..model.sealed import Sealed
from .batch import Batch
from .env_task import EnvTask, Moment


class EnvStep(NamedTuple):
    """What a step gives, one row per robot.

    observation: what the next action is for; of a new episode where one ended. reward. terminated: the robot failed.
    truncated: the episode was cut off by its length. last: the observation that the step itself led to, also where the
    episode ended.
    """

    observation: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    last: Tensor


class DifferentiableEnv(Sealed):
    """`num_envs` robots at a task, given by name (`artigrad.envs.TASKS`, with its options) or as an `EnvTask`.

    Rewards and observations are differentiable with respect to this action and all before it, back to the beginning of each
    episode or the last `detach`. A robot whose episode ended starts anew within the same step, and no gradient passes.
    clip: the norms that the cotangents of a robot's state and of its controls are cut down to at each step back in time;
    without it gradients of contact grow by orders of magnitude within tens of steps. episode: steps after which one is cut
    off, where not the task's own.
    """

    CALLED = "a DifferentiableEnv"
    OPEN = ("now", "clip", "episode", "draw")

    def __init__(
        self,
        task: str | EnvTask,
        num_envs: int,
        *,
        device: str = "cpu",
        dtype: Literal["f32", "f64"] = "f32",
        threads: int | None = None,
        seed: int = 0,
        clip: float | None = None,
        episode: int | None = None,
        **options: Any,
    ):
        if not isinstance(num_envs, int) or num_envs < 1:
            raise InputError(f"num_envs is a whole number, at least 1, not {num_envs!r}")
        if clip is not None and not clip > 0.0:
            raise InputError(f"clip is a norm above zero, not {clip!r}")
        self.batch = Batch(task, device=device, dtype=dtype, threads=threads, **options)
        self.task, self.num_envs, self.clip = self.batch.task, num_envs, clip
        self.episode = self.task.episode if episode is None else episode
        self.draw = self.batch.draw(seed)
        self.now: Moment | None = None
        self._seal()

    def _remedy(self, name: str) -> str:
        """The simulator and the batch are made for what was given."""
        return "make another one" if hasattr(type(self), name) or name in self.__dict__ else ""

    @property
    def observation_size(self) -> int:
        return self.task.observation_size

    @property
    def dt(self) -> float:
        """s, of one step."""
        return self.batch.sim.dt * self.task.frame_skip

    @property
    def action_size(self) -> int:
        return self.task.model.nu

    def reset(self, *, spread: bool = False) -> Tensor:
        """All robots begin an episode. spread: at random steps of it, so that they do not all end it together."""
        now = self.batch.start(self.draw, self.num_envs)
        if spread:
            steps = self.draw.uniform(0.0, float(self.episode), self.num_envs).long()
            now = now._replace(steps=steps.clamp(max=self.episode - 1))
        self.now = now
        return self.batch.observe(now)

    def step(self, action: Tensor) -> EnvStep:
        if self.now is None:
            raise InputError("call reset() before the first step")
        wanted = (self.num_envs, self.action_size)
        if not isinstance(action, Tensor) or tuple(action.shape) != wanted:
            raise InputError(f"actions are a tensor {wanted}, not {tuple(getattr(action, 'shape', ()))}")
        after, reward, terminated = self.batch.step(self.now, action, self.clip)
        truncated = (after.steps >= self.episode) & ~terminated
        ended = terminated | truncated
        last = observation = self.batch.observe(after)
        if self.batch.device.type != "cpu":  # nobody waits for a GPU to look
            fresh = self.batch.start(self.draw, self.num_envs)
            after = Moment(*(_where(ended, x, y) for x, y in zip(fresh, after, strict=True)))
            observation = self.batch.observe(after)
        elif ended.any():
            rows = ended.nonzero()[:, 0]
            fresh = self.batch.start(self.draw, len(rows))
            after = Moment(*(y.index_copy(0, rows, x) for x, y in zip(fresh, after, strict=True)))
            observation = observation.index_copy(0, rows, self.batch.observe(fresh))
        self.now = after
        return EnvStep(observation, reward, terminated, truncated, last)

    def jacobian(self, now: Moment, action: Tensor) -> tuple[Moment, Tensor]:
        """The moments that a step leads to from any others, before an episode begins anew, and how their (q, v, seen, act)
        depend on the action, (B, entries, actions). It takes a step of one robot for each of these entries."""
        rows = sum(x.shape[-1] for x in (now.q, now.v, now.seen, now.act))
        many = Moment(*(x.detach().repeat_interleave(rows, 0) for x in now))
        with torch.enable_grad():
            actions = action.detach().repeat_interleave(rows, 0).requires_grad_()
            after = self.batch.step(many, actions)[0]
            found = torch.cat([after.q, after.v, after.seen, after.act], -1).reshape(-1, rows, rows)
            (slope,) = torch.autograd.grad(found.diagonal(dim1=1, dim2=2).sum(), actions)
        return Moment(*(x.detach()[::rows] for x in after)), slope.reshape(-1, rows, self.action_size)

    def slopes(self, now: Moment, action: Tensor) -> Tensor:
        """How y = (q, v, observation, reward) after a step from any moments, before an episode begins anew, depends on
        (q, v, action): (B, y, nq + nv + actions). It takes a step of one robot for each entry of y. Not of robots with
        activations, which would have to be among them."""
        if self.task.model.na:
            raise InputError(
                f"'{self.task.model.name}' has activations, which slopes() does not follow: train it by shac"
            )
        rows = now.q.shape[-1] + now.v.shape[-1] + self.observation_size + 1
        now = Moment(*(x.detach().repeat_interleave(rows, 0) for x in now))
        with torch.enable_grad():
            inputs = [now.q.requires_grad_(), now.v.requires_grad_(), action.detach().repeat_interleave(rows, 0)]
            after, reward, _ = self.batch.step(now, inputs[2].requires_grad_())
            found = torch.cat([after.q, after.v, self.batch.observe(after), reward[:, None]], -1)
            bars = torch.autograd.grad(found.reshape(-1, rows, rows).diagonal(dim1=1, dim2=2).sum(), inputs)
        return torch.cat(bars, -1).reshape(-1, rows, sum(x.shape[-1] for x in bars))

    def detach(self) -> Tensor:
        """Cut the graph here: what follows has no gradient with respect to what came before. Gives the observation."""
        if self.now is None:
            raise InputError("call reset() before detach()")
        self.now = Moment(*(x.detach() for x in self.now))
        return self.batch.observe(self.now)


def _where(rows: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Rows of x where they are asked for, else of y."""
    return torch.where(rows.reshape(-1, *[1] * (x.ndim - 1)), x, y)
