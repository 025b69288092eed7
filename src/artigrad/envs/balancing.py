"""Poles and pendulums in a vertical plane."""

from __future__ import annotations

from math import log, pi

import torch
from torch import Tensor

from ..errors import InputError
from ..io.builder import ModelBuilder
from ..model.model import Model
from ..robots import loaded_links
from ..robots.chains import LINK as LENGTH
from ..robots.inertias import capsule
from .env_task import Draw, EnvTask, Moment

FADE = 2.0 * log(10.0)  # a tolerance has fallen to 0.1 at its margin


class CartpoleSwingUp(EnvTask):
    """The swing-up of dm_control's cartpole with n poles: from hanging to upright, and stay there; 10 N at an action of 1.

    Observed: place of the cart (m), cosine and sine of each pole's angle from the vertical, velocities. Rewarded: the mean of
    (1 + cosine) / 2, times factors for small actions, slow poles and a cart near the middle. It never fails.
    """

    frame_skip, episode = 1, 1000

    def __init__(self, poles: int = 1):
        if poles < 1:
            raise InputError(f"poles is a whole number, at least 1, not {poles!r}")
        self.model, self.poles = suite_cartpole(poles), poles
        self.options = {"dt": 0.01, "integrator": "rk4"}
        self.observation_size = 2 + 3 * poles

    def start(self, draw: Draw, count: int) -> tuple[Tensor, Tensor]:
        q = 0.1 * draw.normal(count, 1 + self.poles)
        q[:, :2] = 0.1 * q[:, :2]
        q[:, 1] += pi
        return q, 0.01 * draw.normal(count, 1 + self.poles)

    def observe(self, now: Moment) -> Tensor:
        angle = torch.cumsum(now.q[:, 1:], -1)
        turned = torch.stack([torch.cos(angle), torch.sin(angle)], -1).flatten(1)
        return torch.cat([now.q[:, :1], turned, now.v], -1)

    def reward(self, before: Moment, action: Tensor, after: Moment) -> Tensor:
        upright = 0.5 + 0.5 * torch.cos(torch.cumsum(after.q[:, 1:], -1)).mean(-1)
        centred = torch.exp(-0.5 * FADE * (after.q[:, 0] / 2.0).square())
        calm = (1.0 - action[:, 0].square()).clamp(min=0.0)
        slow = torch.exp(-0.5 * FADE * (after.v[:, 1:] / 5.0).square()).amin(-1)
        return upright * (4.0 + calm) / 5.0 * (1.0 + slow) / 2.0 * (1.0 + centred) / 2.0


def suite_cartpole(n: int) -> Model:
    """The cart with n poles of dm_control."""
    b = ModelBuilder(f"suite-cartpole-{n}")
    b.body(
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
        b.body(
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
    b.motor("slide", "slider", gear=10.0, control_range=(-1.0, 1.0))
    return b.build()


class PendulumReach(EnvTask):
    """Bring the tip of n links from the horizontal to the highest point it can reach; the action times 10 N m at each joint.

    The n-link pendulum of Qiao et al. (2021), figure 4: links of 0.5 m, 1.0 kg then 2.16 kg at their ends, a tip of
    0.01 kg, gravity 9.8 m/s^2, steps of 1/60 s. Observed: velocities, x and z of each link's end (the last is the tip),
    the part of the episode that is over. Rewarded: how much the squared distance to the goal shrank, n^2/2 in all at best.
    substeps: of the simulator in each step; with 1, as in the paper, long chains gain energy. Over after 100 steps, which is
    seen and not a cut: nothing comes after; and when a joint turns faster than `fastest` rad/s: such motions are none of the
    pendulum.
    """

    episode = 100

    def __init__(self, links: int = 2, *, substeps: int = 1, fastest: float = 100.0):
        for name, value in (("links", links), ("substeps", substeps)):
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is a whole number, at least 1, not {value!r}")
        self.model, self.links, self.frame_skip, self.fastest = loaded_links(links), links, substeps, fastest
        self.options = {"dt": 1 / 60 / substeps}
        self.observation_size = 3 * links + 1

    def controls(self, action: Tensor) -> Tensor:
        return 10.0 * action

    def start(self, draw: Draw, count: int) -> tuple[Tensor, Tensor]:
        return draw.uniform(0.0, 0.0, count, self.links), draw.uniform(0.0, 0.0, count, self.links)

    def ends(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """x and z of the links' ends."""
        angle = torch.cumsum(q, -1)
        return LENGTH * torch.cumsum(torch.cos(angle), -1), LENGTH * torch.cumsum(torch.sin(angle), -1)

    def observe(self, now: Moment) -> Tensor:
        return torch.cat([now.v, *self.ends(now.q), (now.steps / self.episode).to(now.q)[:, None]], -1)

    def distance(self, now: Moment) -> Tensor:
        """|x - g|^2 of the tip to the highest point it can reach."""
        x, z = self.ends(now.q)
        return x[:, -1].square() + (z[:, -1] - LENGTH * self.links).square()

    def reward(self, before: Moment, action: Tensor, after: Moment) -> Tensor:
        return self.distance(before) - self.distance(after)

    def recall(self, observation: Tensor) -> Moment:
        v, none = observation[:, : self.links], observation[:, :0]
        return Moment(torch.zeros_like(v), v, none, none, (self.episode * observation[:, -1]).round().long())

    def over(self, now: Moment) -> Tensor:
        return ~(now.v.abs() <= self.fastest).all(-1) | (now.steps >= self.episode)
