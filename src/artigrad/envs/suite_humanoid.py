"""The humanoid of dm_control's suite, which is to stand, walk or run; entry for entry as there, on its own robot file."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from ..model.model import Model
from ..model.state import State
from ..simulate.simulator import Simulator
from ..torch import outputs
from .balancing import FADE
from .env_task import Draw, EnvTask, Moment
from .robot_files import robot_of

STANDING = 1.4  # m, of the head
ENDS = ("left_hand", "left_foot", "right_hand", "right_foot")


class SuiteHumanoid(EnvTask):
    """dm_control's humanoid: 21 torques, 67 observations, 5 steps of 0.005 s. It never fails, and begins in any posture.

    speed: m/s, along the ground, that is asked for: 0 is the suite's stand, 1 its walk, 10 its run. model: in place of the
    suite's file. Observed: angles of joints, height of the head, places of hands and feet seen from the torso, where up is for
    the torso, velocity of the centre of mass, velocities. Rewarded, 1 at best: a product of factors for a high head, an upright
    torso, small actions and the speed. First states, in which nothing touches, are drawn out of 1000 of them.
    """

    frame_skip, episode, hidden = 5, 1000, 2

    def __init__(self, speed: float = 1.0, *, model: Model | None = None):
        if not speed >= 0.0:
            raise InputError(f"speed is in m/s, 0 to stand, not {speed!r}")
        self.model, self.speed = model or robot_of("dm_control", "humanoid.xml"), speed
        self.observation_size, self.seen_size = self.model.nq - 7 + self.model.nv + 19, 19
        self.bodies = {name: self.model.bodies.index(name) for name in ("torso", "head", *ENDS)}
        self.mass, self.com = (torch.tensor(self.model.params[name]) for name in ("mass", "com"))

    def start(self, draw: Draw, count: int) -> tuple[Tensor, Tensor]:
        postures = draw.tensor(apart(self.model))
        rows = torch.randint(len(postures), (count,), generator=draw.generator, device=postures.device)
        return postures[rows], postures.new_zeros(count, self.model.nv)

    def look(self, sim: Simulator, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """Height of the head, hands and feet seen from the torso, where up is for it, velocity of the centre of mass."""
        there = outputs(sim, (q, v))
        R, r = there.body_rotation, there.body_position
        torso, ends = self.bodies["torso"], r[:, [self.bodies[name] for name in ENDS]]
        arms = (ends - r[:, torso, None]) @ R[:, torso]
        mass, com = self.mass.to(q), self.com.to(q)
        turning = torch.linalg.cross(there.body_angular_velocity, (R @ com[..., None])[..., 0])
        velocity = (mass[:, None] * (there.body_velocity + turning)).sum(1) / mass.sum()
        return torch.cat([r[:, self.bodies["head"], 2:], arms.flatten(1), R[:, torso, 2], velocity], -1)

    def observe(self, now: Moment) -> Tensor:
        return torch.cat([now.q[:, 7:], now.seen, now.v], -1)

    def reward(self, before: Moment, action: Tensor, after: Moment) -> Tensor:
        head, upright, velocity = (after.seen[:, i] for i in (0, 15, slice(16, 18)))
        calm = (1.0 - action.square()).clamp(min=0.0).mean(-1)
        high = torch.exp(-0.5 * FADE * ((STANDING - head) / (STANDING / 4)).clamp(min=0.0).square())
        straight = (1.0 - (0.9 - upright) / 1.9).clamp(0.0, 1.0)
        if self.speed == 0.0:
            moving = torch.exp(-0.5 * FADE * (velocity / 2.0).square()).mean(-1)
        else:
            fast = torch.sqrt(velocity.square().sum(-1) + 1e-30)  # whose slope at rest is 0, not none
            moving = (1.0 + 5.0 * (fast / self.speed).clamp(max=1.0)) / 6.0
        return high * straight * (4.0 + calm) / 5.0 * moving


@cache
def apart(model: Model, count: int = 1000) -> np.ndarray:
    """Random postures (count, nq) of a floating robot in which nothing touches: joints within their limits, turned any way."""
    sim, rng = Simulator(model, threads=1), np.random.default_rng(0)
    bends = [i for i in range(model.nb) if model.joint_kind(i).nq == 1]  # in the order of q
    low, high = model.params["limit"][bends].T
    found: list[np.ndarray] = []
    while sum(map(len, found)) < count:
        turn, bent = rng.normal(size=(count, 4)), rng.uniform(low, high, (count, len(low)))
        turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
        q = np.concatenate([np.tile(model.keyframe().q[:3], (count, 1)), turn, bent], -1)
        traj = sim.rollout(State(q, np.zeros((count, model.nv))), np.zeros((count, 1, model.nu)))
        found.append(q[(sim.contacts(traj).gap > 0.0).all((1, 2))])
    return np.concatenate(found)[:count]
