"""What is common to learners: environment, networks, random numbers, and a state that is saved and taken up again."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..envs import DifferentiableEnv, EnvTask, Moment
from .parts import GaussianPolicy, Tally, descend, in_one


@dataclass
class Settings:
    """What all algorithms may be told. envs: robots side by side. hidden: widths of the policy's layers. gamma: what a reward
    one step later is worth. episode: steps after which an episode of the training is cut off, where not the task's own: short
    ones begin more often. average: what is played and saved is not the policy of the last update but a mean over about
    1 / (1 - average) of them, which varies less. seed: of everything random."""

    envs: int = 64
    hidden: tuple[int, ...] = (128, 64)
    gamma: float = 0.99
    episode: int | None = None
    average: float = 0.0
    seed: int = 0


class Together:
    """This process among those that train one policy together: alone. `learn.many` has others."""

    rank, count = 0, 1
    total: Callable[[Tensor], Tensor] | None = None
    mean: Callable[[Tensor], Tensor] | None = None


class Learner(ABC):
    """An algorithm at work on a task. Subclasses make networks and optimisers, and write `update`.

    steps: of the environment, of all robots and workers together. policy: what is learned; policy(observation) is an action.
    played: its mean over updates, where `average` asks for one.
    """

    Settings: ClassVar[type[Settings]] = Settings

    def __init__(
        self,
        task: str | EnvTask,
        settings: Any = None,
        *,
        device: str = "cpu",
        threads: int | None = None,
        workers: Together | None = None,
        **options: Any,
    ):
        self.settings: Any = settings or self.Settings()
        s = self.settings
        torch.manual_seed(s.seed)  # first weights are drawn on the CPU, the same ones for all devices
        self.workers = workers or Together()
        seed = s.seed + 1_000_003 * self.workers.rank
        how: dict[str, Any] = {"device": device, "threads": threads, "seed": seed, "clip": getattr(s, "clip", None)}
        how["episode"] = s.episode
        self.env = DifferentiableEnv(task, s.envs, **how, **options)
        self.generator = torch.Generator(self.env.batch.device).manual_seed(seed)
        self.device, self.steps = self.env.batch.device, 0
        self.tally = Tally(self.env)
        self.policy: Any = self.policy_for(self.env.task, s).to(self.device)
        self.parts: dict[str, Any] = {"policy": self.policy, "tally": self.tally}
        self.played: Any = self.keep("played", copy.deepcopy(self.policy)) if s.average else self.policy
        self.setup()
        self.observation = self.env.reset(spread=True)

    @staticmethod
    def policy_for(task: EnvTask, settings: Any) -> nn.Module:
        """A policy as yet untrained."""
        return GaussianPolicy(task.observation_size, task.model.nu, task.limit, settings.hidden)

    @abstractmethod
    def setup(self) -> None:
        """Make what is learned beside the policy, and optimisers; `keep` what has a state."""

    @abstractmethod
    def update(self) -> dict[str, float]:
        """Act, and learn from it once. Figures by name, "return" and "length" of episodes among them."""

    @torch.no_grad()
    def follow(self) -> None:
        """What is played comes nearer to what was learned; to be called after each update."""
        if self.played is not self.policy:
            for slow, new in zip(self.played.parameters(), self.policy.parameters(), strict=True):
                slow.lerp_(new, 1.0 - self.settings.average)
            for slow, new in zip(self.played.buffers(), self.policy.buffers(), strict=True):
                slow.copy_(new)

    @torch.no_grad()
    def check(self) -> None:
        """A policy that gives no numbers any more is told of, not trained on."""
        assert self.env.now is not None
        if not self.policy(self.env.task.observe(self.env.now)).isfinite().all():
            raise FloatingPointError(
                f"after {self.steps} steps the policy gives actions that are no numbers: lower its rates, or look at the "
                "observations and rewards of the task"
            )

    def keep(self, name: str, part: Any) -> Any:
        """A network, an optimiser or whatever else has a state_dict, which goes into checkpoints."""
        self.parts[name] = part.to(self.device) if isinstance(part, nn.Module) else part
        return self.parts[name]

    def descend(self, optimizer: torch.optim.Optimizer, weights: list[nn.Parameter]) -> float:
        """A step along the gradient; its norm."""
        return descend(optimizer, weights, self.settings.max_norm)

    def share(self, weights: list[nn.Parameter], figures: Tensor | None = None) -> list[float]:
        """Gradients of the weights become their means over all workers. So do figures, which come back."""
        told = weights[0].new_zeros(0) if figures is None else figures
        if self.workers.mean is not None:
            *parts, told = in_one(self.workers.mean, [*(w.grad for w in weights if w.grad is not None), told])
            for weight, part in zip(weights, parts, strict=True):
                weight.grad = part
        return told.tolist()

    def noise(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device)

    def state_dict(self) -> dict[str, Any]:
        """All that the next update depends on."""
        env = self.env
        assert env.now is not None
        return {
            "steps": self.steps,
            "settings": asdict(self.settings),
            "parts": {name: part.state_dict() for name, part in self.parts.items()},
            "moment": [x.detach() for x in env.now],
            "generators": [g.get_state() for g in (self.generator, env.draw.generator)],
            "torch": torch.get_rng_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]
        for name, part in self.parts.items():
            part.load_state_dict(state["parts"][name])
        self.env.now = Moment(*(x.to(self.device) for x in state["moment"]))
        for generator, was in zip((self.generator, self.env.draw.generator), state["generators"], strict=True):
            generator.set_state(was.cpu())
        torch.set_rng_state(state["torch"].cpu())
        self.observation = self.env.detach()
