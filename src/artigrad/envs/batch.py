"""A batch of robots at a task: what all environments share. One step is one native call, and autograd goes through it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ..errors import InputError
from ..model.tangent import quaternions
from ..simulate.simulator import Simulator
from ..torch import rollout
from ..torch.tensor_checks import DTYPES, device_of
from .balancing import CartpoleSwingUp, PendulumReach
from .env_task import Draw, EnvTask, Moment
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


class Moved(NamedTuple):
    """What one step of the environment gives, one row per robot."""

    now: Moment
    reward: Tensor
    terminated: Tensor


class Batch:
    """Robots at a task, without memory of where they are: moments go in and come out."""

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
            task = TASKS[task](**options)
        elif options:
            raise InputError(f"{', '.join(options)}: options go to a task given by name, not to an EnvTask")
        self.task = task
        self.sim = Simulator(task.model, device=device, dtype=dtype, threads=threads, **task.options)
        self.fields = MujocoFields(self.sim) if task.lagging else None
        self.dtype, self.device = DTYPES[self.sim.dtype], device_of(self.sim)
        self.cut = torch.zeros(2, device=self.device)  # states whose cotangents were cut down, and all of them

    def draw(self, seed: int) -> Draw:
        """Random tensors for this batch."""
        return Draw(torch.Generator(self.device).manual_seed(seed), self.dtype)

    def start(self, draw: Draw, count: int) -> Moment:
        """First moments of `count` episodes."""
        task, model = self.task, self.task.model
        q, v = task.start(draw, count)
        self._check("start", q, (count, model.nq), "(count, nq) for q")
        self._check("start", v, (count, model.nv), "(count, nv) for v")
        q = self.of_length_one(q)
        steps = torch.zeros(count, dtype=torch.long, device=self.device)
        goals = self._check("goals", task.goals(draw, count), (count, task.goal_size), "(count, goal_size)")
        return Moment(q, v, self.seen((q, v), (q, v), None), goals, steps, q.new_zeros(count, model.na))

    def of_length_one(self, q: Tensor) -> Tensor:
        """q (B, nq) with quaternions of length 1."""
        q = q.clone()
        for first, _ in quaternions(self.task.model):
            q[:, first : first + 4] /= q[:, first : first + 4].norm(dim=-1, keepdim=True)
        return q

    def seen(self, now: tuple[Tensor, Tensor], last: tuple[Tensor, Tensor], u: Tensor | None) -> Tensor:
        """What the task looks up of a state, or of the one before the last step of the simulator, and the controls u."""
        if self.fields is not None:
            return self.task.see(self.fields, *last, u)
        if not self.task.seen_size:
            return now[0][:, :0]
        wanted = (len(now[0]), self.task.seen_size)
        return self._check("look", self.task.look(self.sim, *now, u), wanted, "(robots, seen_size)")

    def observe(self, now: Moment) -> Tensor:
        """Observations of the task."""
        wanted = (len(now.q), self.task.observation_size)
        return self._check("observe", self.task.observe(now), wanted, "(robots, observation_size)")

    def _check(self, name: str, x: Tensor, shape: tuple[int, ...], what: str) -> Tensor:
        """What a task gave, if it has the shape it is to have."""
        if not isinstance(x, Tensor) or tuple(x.shape) != shape:
            gave = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise InputError(f"{type(self.task).__name__}.{name} gives {gave}; wanted is a tensor {shape}, {what}")
        return x

    def step(self, before: Moment, action: Tensor, clip: float | None = None) -> Moved:
        """One step. A robot whose motion overflowed stays where it was, without reward, and has failed; no gradient goes
        through its step. clip: the norms that cotangents of each robot's state and controls are cut down to where they
        come out of the step. Each robot is simulated near the origin, where single precision has most digits."""
        task, place = self.task, before.q[:, : self.task.hidden].detach()
        before = task.moved(before, -place)
        lost = torch.zeros(len(action), dtype=torch.bool, device=self.device)
        act = before.act if task.model.na else before.q[:, :0]
        state = (before.q, before.v, act)[: 3 if task.model.na else 2]
        u = self._check("controls", task.controls(action), (len(action), task.model.nu), "(robots, nu)")
        u, *state0 = Restrained.apply(clip, task.hidden, lost, self.cut, u, *state)
        states: Any = rollout(self.sim, tuple(state0), u[:, None].expand(-1, task.frame_skip, -1))
        now, last = ((states.q[:, k], states.v[:, k]) for k in (-1, -2))
        found = [*now, self.seen(now, last, u), states.act[:, -1] if task.model.na else act]
        lost |= ~torch.stack([x.isfinite().all(-1) for x in found]).all(0)
        stay = (x.detach() for x in (before.q, before.v, before.seen, act))
        q, v, seen, act = (torch.where(lost[:, None], x, y) for x, y in zip(stay, found, strict=True))
        after = Moment(q, v, seen, before.goal, before.steps + 1, act)
        reward = self._check("reward", task.reward(before, action, after), (len(lost),), "(robots,)")
        over = self._check("over", task.over(after), (len(lost),), "(robots,)")
        return Moved(task.moved(after, place), torch.where(lost, 0.0, reward), over | lost)


class Restrained(torch.autograd.Function):
    """u and the state (q, v, and act of robots that have activations) as they are; backwards, cotangents of u and of the state
    within `clip`, and none of robots that are lost.

    What the cotangents of the first `hidden` entries of q are does not grow, and is neither counted nor cut down: where a
    robot is. `lost` is filled after the forward pass, once it is known."""

    @staticmethod
    def forward(ctx: Any, clip: float | None, hidden: int, lost: Tensor, cut: Tensor, u: Tensor, *state: Tensor) -> Any:
        ctx.clip, ctx.hidden, ctx.lost, ctx.cut = clip, hidden, lost, cut
        return u.view_as(u), *(x.view_as(x) for x in state)

    @staticmethod
    def backward(ctx: Any, *bars: Tensor) -> Any:
        u_bar, q_bar, *rest = (torch.where(ctx.lost[:, None], 0.0, x) for x in bars)
        if ctx.clip is not None:
            where, shape = q_bar.split([ctx.hidden, q_bar.shape[-1] - ctx.hidden], -1)
            scale = _scale(ctx.clip, torch.cat([shape, *rest], -1))
            ctx.cut += torch.stack([(scale < 1.0).sum(), torch.tensor(len(scale), device=scale.device)])
            q_bar, rest = torch.cat([where, scale * shape], -1), [scale * x for x in rest]
            u_bar = _scale(ctx.clip, u_bar) * u_bar
        return None, None, None, None, u_bar, q_bar, *rest


def _scale(clip: float, x: Tensor) -> Tensor:
    """What brings each row within a norm."""
    return (clip / x.norm(dim=-1, keepdim=True).clamp(min=1e-30)).clamp(max=1.0)
