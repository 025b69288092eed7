"""Learner: base class of the algorithms. Environment, networks, random numbers, and a state for checkpoints."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..deprecation import rename_overrides, renamed, renamed_arguments
from ..envs import DifferentiableEnv, EnvState, EnvTask
from ..errors import InputError, warn
from .episodes import EpisodeStats
from .networks import GaussianPolicy
from .optimizers import average_tensors, clip_and_step

MAX_SKIPPED_STEPS = 100  # optimizer steps

# names of settings, the values they may have, and the check
RANGES: tuple[tuple[tuple[str, ...], str, Callable[[Any], bool]], ...] = (
    (("gamma", "ema_decay"), "at least 0 and below 1", lambda x: 0.0 <= x < 1.0),
    (
        ("gae_lambda", "td_lambda", "tau", "target_critic_alpha", "real_ratio", "final_lr_fraction"),
        "between 0 and 1",
        lambda x: 0.0 <= x <= 1.0,
    ),
    (
        ("learning_rate", "actor_learning_rate", "critic_learning_rate", "model_learning_rate", "max_grad_norm"),
        "a number above 0",
        lambda x: x > 0.0,
    ),
    (
        ("clip_coef", "clip", "target_kl", "horizon_seconds", "alpha", "max_action_change", "gradient_threshold"),
        "a number above 0",
        lambda x: x > 0.0,
    ),
    (
        ("saturation_threshold", "saturation_weight", "exploration_std", "gradient_loss_weight", "extra_sample_std"),
        "a number of at least 0",
        lambda x: x >= 0.0,
    ),
    (
        ("num_envs", "max_episode_steps", "num_steps", "horizon", "update_epochs", "num_minibatches", "batch_size"),
        "a whole number of at least 1",
        lambda x: x >= 1,
    ),
    (
        ("buffer_size", "policy_frequency", "lr_decay_steps", "ensemble_size", "num_elites", "num_particles"),
        "a whole number of at least 1",
        lambda x: x >= 1,
    ),
    (
        ("critic_iterations", "num_critic_minibatches", "critic_updates", "model_epochs", "model_train_frequency"),
        "a whole number of at least 1",
        lambda x: x >= 1,
    ),
    (("learning_starts", "num_extra_samples"), "a whole number of at least 0", lambda x: x >= 0),
)


@renamed(envs="num_envs", episode="max_episode_steps", average="ema_decay")
@dataclass
class Settings:
    """Settings shared by all algorithms.

    Attributes:
      num_envs: Number of parallel environments.
      hidden: Widths of the policy's hidden layers.
      gamma: Discount factor.
      max_episode_steps: Environment steps until truncation in training; None: the task's. Short episodes reset more often.
      ema_decay: Decay per update of the exponential moving average of the policy's weights. Evaluation and checkpoints use the
        average. 0: no average.
      seed: Seed of all random numbers.
    """

    num_envs: int = 64
    hidden: tuple[int, ...] = (128, 64)
    gamma: float = 0.99
    max_episode_steps: int | None = None
    ema_decay: float = 0.0
    seed: int = 0

    def check_ranges(self) -> None:
        """Refuse settings out of range, with an InputError that names the setting."""
        for field in fields(self):
            value = getattr(self, field.name)
            for names, allowed, holds in RANGES:
                if field.name in names and value is not None and not holds(value):
                    raise InputError(f"{field.name} of {type(self).__name__} is {allowed}, not {value!r}")


@renamed(count="world_size", total="all_reduce_sum", mean="all_reduce_mean")
class ProcessGroup:
    """Processes that train one policy together; this class is a single process. `learn.distributed` has several.

    Attributes:
      rank: Index of this process.
      world_size: Number of processes.
      all_reduce_sum, all_reduce_mean: Sum and mean of a tensor over all processes; None for a single process.
    """

    rank, world_size = 0, 1
    all_reduce_sum: Callable[[Tensor], Tensor] | None = None
    all_reduce_mean: Callable[[Tensor], Tensor] | None = None


@renamed(
    workers="process_group",
    parts="modules",
    played="ema_policy",
    tally="episode_stats",
    policy_for="make_policy",
    follow="update_ema",
    check="check_finite",
    keep="register",
    descend="clip_and_step",
    share="average_gradients",
)
class Learner(ABC):
    """A learning algorithm at work on a task. Subclasses create networks and optimizers in `setup`, and write `update`.

    Args:
      task: Name in `artigrad.envs.TASKS`, or an EnvTask.
      settings: Settings of the algorithm; None: its defaults.
      device: "cpu" or "cuda".
      threads: Number of CPU threads of the simulator; None: all cores.
      process_group: Processes that train together; None: this one alone.
      options: Options of a task given by name.

    Attributes:
      steps: Environment steps so far, of all environments and processes.
      policy: The policy; policy(observation) returns an action.
      ema_policy: Exponential moving average of the policy if `settings.ema_decay` is not 0, else the policy.
      modules: Networks, optimizers and other objects with a state_dict, by name; saved in checkpoints.
    """

    Settings: ClassVar[type[Settings]] = Settings

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        rename_overrides(cls)

    @renamed_arguments(workers="process_group")
    def __init__(
        self,
        task: str | EnvTask,
        settings: Any = None,
        *,
        device: str = "cpu",
        threads: int | None = None,
        process_group: ProcessGroup | None = None,
        **options: Any,
    ):
        self.settings: Any = settings or self.Settings()
        s = self.settings
        s.check_ranges()
        self.ema_updates = self.skipped_steps = 0
        torch.manual_seed(s.seed)  # initial weights are drawn on the CPU, equal for all devices
        self.process_group = process_group or ProcessGroup()
        seed = s.seed + 1_000_003 * self.process_group.rank
        arguments: dict[str, Any] = {
            "device": device,
            "threads": threads,
            "seed": seed,
            "clip": getattr(s, "clip", None),
        }
        arguments["max_episode_steps"] = s.max_episode_steps
        self.env = DifferentiableEnv(task, s.num_envs, **arguments, **options)
        self.generator = torch.Generator(self.env.batch.device).manual_seed(seed)
        self.device, self.steps = self.env.batch.device, 0
        self.episode_stats = EpisodeStats(self.env)
        self.policy: Any = self.make_policy(self.env.task, s).to(self.device)
        self.modules: dict[str, Any] = {"policy": self.policy, "episode_stats": self.episode_stats}
        self.ema_policy: Any = self.register("ema_policy", copy.deepcopy(self.policy)) if s.ema_decay else self.policy
        self.setup()
        self.observation = self.env.reset(stagger=True)
        self.episode_stats.restart()

    @staticmethod
    def make_policy(task: EnvTask, settings: Any) -> nn.Module:
        """Return an untrained policy."""
        return GaussianPolicy(task.observation_size, task.model.nu, task.limit, settings.hidden)

    @abstractmethod
    def setup(self) -> None:
        """Create optimizers and further networks; `register` those with a state."""

    @abstractmethod
    def update(self) -> dict[str, float]:
        """Simulate, learn from it once, and return metrics by name, with "return" and "length" of episodes."""

    @torch.no_grad()
    def update_ema(self) -> None:
        """Update `ema_policy`; call it after each `update`. The average has no bias toward the untrained policy."""
        if self.ema_policy is not self.policy:
            self.ema_updates += 1
            decay = self.settings.ema_decay
            weight = (1.0 - decay) / (1.0 - decay**self.ema_updates)
            for average, new in zip(self.ema_policy.parameters(), self.policy.parameters(), strict=True):
                average.lerp_(new, weight)
            for average, new in zip(self.ema_policy.buffers(), self.policy.buffers(), strict=True):
                average.copy_(new)

    @torch.no_grad()
    def check_finite(self) -> None:
        """Raise FloatingPointError if the policy's actions are not finite."""
        assert self.env.state is not None
        if not self.policy(self.env.task.observe(self.env.state)).isfinite().all():
            raise FloatingPointError(
                f"after {self.steps} steps the actions of the policy are not finite: lower its learning rates, or check the "
                "observations and rewards of the task"
            )

    def register(self, name: str, part: Any) -> Any:
        """Add a network, an optimizer or another object with a state_dict to checkpoints, and return it."""
        self.modules[name] = part.to(self.device) if isinstance(part, nn.Module) else part
        return self.modules[name]

    def clip_and_step(self, optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter]) -> float:
        """Clip gradients to `max_grad_norm`, take an optimizer step, and return the norm before clipping.

        A gradient that is not finite is skipped, with a warning at the first one.

        Raises:
          FloatingPointError: MAX_SKIPPED_STEPS gradients in succession were not finite.
        """
        norm = clip_and_step(optimizer, parameters, self.settings.max_grad_norm)
        self.skipped_steps = self.skipped_steps + 1 if math.isnan(norm) else 0
        if self.skipped_steps == 1:
            warn(f"after {self.steps} steps a gradient of the training is not finite; its optimizer step is skipped")
        if self.skipped_steps == MAX_SKIPPED_STEPS:
            raise FloatingPointError(
                f"after {self.steps} steps {MAX_SKIPPED_STEPS} gradients in succession are not finite, so that nothing is "
                "learned: check the rewards and observations of the task, or lower the learning rates"
            )
        return norm

    def average_gradients(self, parameters: list[nn.Parameter], values: Tensor | None = None) -> list[float]:
        """Replace the gradients of the parameters by their means over the process group.

        Args:
          parameters: Parameters with gradients.
          values: Further values (n,) to average in the same reduction.

        Returns:
          The averaged values.
        """
        mean = parameters[0].new_zeros(0) if values is None else values
        if self.process_group.all_reduce_mean is not None:
            grads = [w.grad for w in parameters if w.grad is not None]
            *grads, mean = average_tensors(self.process_group.all_reduce_mean, [*grads, mean])
            for parameter, grad in zip(parameters, grads, strict=True):
                parameter.grad = grad
        return mean.tolist()

    def noise(self, *shape: int) -> Tensor:
        """Return standard normal noise."""
        return torch.randn(shape, generator=self.generator, device=self.device)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next update depends on."""
        env = self.env
        assert env.state is not None
        return {
            "steps": self.steps,
            "ema_updates": self.ema_updates,
            "settings": asdict(self.settings),
            "modules": {name: part.state_dict() for name, part in self.modules.items()},
            "env_state": [x.detach() for x in env.state],
            "generators": [g.get_state() for g in (self.generator, env.random.generator)],
            "torch": torch.get_rng_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state of `state_dict`."""
        self.steps, self.ema_updates = state["steps"], state["ema_updates"]
        for name, part in self.modules.items():
            part.load_state_dict(state["modules"][name])
        self.env.state = EnvState(*(x.to(self.device) for x in state["env_state"]))
        for generator, saved in zip((self.generator, self.env.random.generator), state["generators"], strict=True):
            generator.set_state(saved.cpu())
        torch.set_rng_state(state["torch"].cpu())
        self.observation = self.env.detach()
