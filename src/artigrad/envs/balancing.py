"""Balancing tasks: cart-pole swing-up and n-link pendulum."""

from __future__ import annotations

from math import log, pi

import torch
from torch import Tensor

from ..build.builder import ModelBuilder
from ..deprecation import renamed_arguments
from ..errors import InputError
from ..model.model import Model
from ..robots import loaded_links
from ..robots.chains import LINK as LENGTH
from ..robots.inertias import capsule
from .env_task import EnvState, EnvTask, RandomSource

MARGIN_DECAY = 2.0 * log(10.0)  # dm_control's tolerance() is exp(-MARGIN_DECAY x^2 / 2), 0.1 at x = 1 margin


class CartpoleSwingUp(EnvTask):
    """dm_control's cart-pole swing-up with n poles: swing up from hanging and balance.

    An action of 1 is a force of 10 N on the cart. Observation: cart position (m), cosine and sine of each pole's angle from the
    vertical, velocities. Reward: the mean of (1 + cosine) / 2, times factors for small actions, slow poles and a centered cart.
    The task never terminates.

    Args:
      poles: Number of poles n.
    """

    frame_skip, max_episode_steps = 1, 1000

    def __init__(self, poles: int = 1):
        if poles < 1:
            raise InputError(f"poles is an integer of at least 1, not {poles!r}")
        self.model, self.poles = suite_cartpole(poles), poles
        self.options = {"dt": 0.01, "integrator": "rk4"}
        self.observation_size = 2 + 3 * poles

    def sample_initial_state(self, random: RandomSource, count: int) -> tuple[Tensor, Tensor]:
        q = 0.1 * random.normal(count, 1 + self.poles)
        q[:, :2] = 0.1 * q[:, :2]
        q[:, 1] += pi
        return q, 0.01 * random.normal(count, 1 + self.poles)

    def observe(self, state: EnvState) -> Tensor:
        angle = torch.cumsum(state.q[:, 1:], -1)
        directions = torch.stack([torch.cos(angle), torch.sin(angle)], -1).flatten(1)
        return torch.cat([state.q[:, :1], directions, state.v], -1)

    def reward(self, before: EnvState, action: Tensor, after: EnvState) -> Tensor:
        upright = 0.5 + 0.5 * torch.cos(torch.cumsum(after.q[:, 1:], -1)).mean(-1)
        centered = torch.exp(-0.5 * MARGIN_DECAY * (after.q[:, 0] / 2.0).square())
        calm = (1.0 - action[:, 0].square()).clamp(min=0.0)
        slow = torch.exp(-0.5 * MARGIN_DECAY * (after.v[:, 1:] / 5.0).square()).amin(-1)
        return upright * (4.0 + calm) / 5.0 * (1.0 + slow) / 2.0 * (1.0 + centered) / 2.0


def suite_cartpole(n: int) -> Model:
    """Return dm_control's cart with n poles."""
    b = ModelBuilder(f"suite-cartpole-{n}")
    b.add_body(
        "cart",
        joint="prismatic",
        joint_name="slider",
        axis=(1, 0, 0),
        position=(0, 0, 1),
        mass=1.0,
        limit=(-1.8, 1.8),
        limit_solref=(0.08, 1.0),
        damping=5e-4,
    )
    mass, moments = capsule(1.0, 0.045, 0.5)
    inertia = [0.1 / mass * moment for moment in moments]
    for k in range(1, n + 1):
        b.add_body(
            f"pole_{k}",
            f"pole_{k - 1}" if k > 1 else "cart",
            joint="revolute",
            axis=(0, 1, 0),
            position=(0, 0, 1) if k > 1 else (0, 0, 0),
            mass=0.1,
            com=(0, 0, 0.5),
            inertia=inertia,
            damping=2e-6,
        )
    b.add_motor("slide", "slider", gear=10.0, control_range=(-1.0, 1.0))
    return b.build()


class PendulumReach(EnvTask):
    """Raise the tip of an n-link pendulum from the horizontal to its highest position (Qiao et al. 2021, figure 4).

    An action of 1 is a torque of 10 N m. Links are 0.5 m long, with 1.0 kg at the first end, 2.16 kg at the others and 0.01
    kg at the tip; gravity is 9.8 m/s^2, a step 1/60 s. Observation: joint velocities, x and z of the end of each link (the
    last is the tip), elapsed fraction of the episode. Reward: decrease of the squared distance of the tip to the goal; the
    sum of an episode is n^2/2 at most. The task terminates after 100 steps, which the observation shows, and when a joint
    exceeds `max_velocity`.

    Args:
      links: Number of links n.
      substeps: Simulator steps per environment step. With 1, as in the paper, long chains gain energy.
      max_velocity: Joint velocity that terminates the episode, rad/s.
    """

    max_episode_steps = 100

    @renamed_arguments(fastest="max_velocity")
    def __init__(self, links: int = 2, *, substeps: int = 1, max_velocity: float = 100.0):
        for name, value in (("links", links), ("substeps", substeps)):
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is an integer of at least 1, not {value!r}")
        self.model, self.links, self.frame_skip, self.max_velocity = loaded_links(links), links, substeps, max_velocity
        self.options = {"dt": 1 / 60 / substeps}
        self.observation_size = 3 * links + 1

    def controls(self, action: Tensor) -> Tensor:
        return 10.0 * action

    def sample_initial_state(self, random: RandomSource, count: int) -> tuple[Tensor, Tensor]:
        return random.uniform(0.0, 0.0, count, self.links), random.uniform(0.0, 0.0, count, self.links)

    def link_ends(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """Return x and z (B, n) of the ends of the links, m, for joint angles q (B, n)."""
        angle = torch.cumsum(q, -1)
        return LENGTH * torch.cumsum(torch.cos(angle), -1), LENGTH * torch.cumsum(torch.sin(angle), -1)

    def observe(self, state: EnvState) -> Tensor:
        return torch.cat(
            [state.v, *self.link_ends(state.q), (state.steps / self.max_episode_steps).to(state.q)[:, None]], -1
        )

    def distance(self, state: EnvState) -> Tensor:
        """Return the squared distance (B,) of the tip to its highest position, m^2."""
        x, z = self.link_ends(state.q)
        return x[:, -1].square() + (z[:, -1] - LENGTH * self.links).square()

    def reward(self, before: EnvState, action: Tensor, after: EnvState) -> Tensor:
        return self.distance(before) - self.distance(after)

    def state_from_observation(self, observation: Tensor) -> EnvState:
        v, none = observation[:, : self.links], observation[:, :0]
        return EnvState(
            torch.zeros_like(v), v, none, none, (self.max_episode_steps * observation[:, -1]).round().long()
        )

    def terminated(self, state: EnvState) -> Tensor:
        return ~(state.v.abs() <= self.max_velocity).all(-1) | (state.steps >= self.max_episode_steps)
