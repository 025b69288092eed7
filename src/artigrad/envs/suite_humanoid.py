"""dm_control's humanoid tasks (stand, walk, run), entry for entry, on dm_control's robot file."""

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
from .balancing import MARGIN_DECAY
from .env_task import EnvState, EnvTask, RandomSource
from .robot_files import robot_of

STAND_HEIGHT = 1.4  # height of the head, m
EXTREMITIES = ("left_hand", "left_foot", "right_hand", "right_foot")


class SuiteHumanoid(EnvTask):
    """dm_control's humanoid: 21 torques, 67 observations, 5 simulator steps of 0.005 s. Never terminates.

    Observation: joint angles, height of the head, positions of hands and feet in the torso's frame, the vertical in the torso's
    frame, velocity of the center of mass, velocities. Reward, at most 1: product of factors for a high head, an upright torso,
    small actions and the commanded speed. Initial states are random postures without contact, drawn from a pool of 1000.

    Args:
      speed: Commanded horizontal speed, m/s: 0 for dm_control's stand, 1 for walk, 10 for run.
      model: Robot in place of dm_control's file.
    """

    frame_skip, max_episode_steps, num_excluded_positions = 5, 1000, 2

    def __init__(self, speed: float = 1.0, *, model: Model | None = None):
        if not speed >= 0.0:
            raise InputError(f"speed is a number of at least 0, in m/s, not {speed!r}")
        self.model, self.speed = model or robot_of("dm_control", "humanoid.xml"), speed
        self.observation_size, self.extras_size = self.model.nq - 7 + self.model.nv + 19, 19
        self.bodies = {name: self.model.bodies.index(name) for name in ("torso", "head", *EXTREMITIES)}
        self.mass, self.com = (torch.tensor(self.model.params[name]) for name in ("mass", "com"))

    def sample_initial_state(self, random: RandomSource, count: int) -> tuple[Tensor, Tensor]:
        postures = random.tensor(contact_free_postures(self.model))
        rows = torch.randint(len(postures), (count,), generator=random.generator, device=postures.device)
        return postures[rows], postures.new_zeros(count, self.model.nv)

    def extras(self, sim: Simulator, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """Return the height of the head, positions of hands and feet in the torso's frame, the vertical in the torso's
        frame, and the velocity of the center of mass."""
        frames = outputs(sim, (q, v))
        R, r = frames.body_rotation, frames.body_position
        torso, ends = self.bodies["torso"], r[:, [self.bodies[name] for name in EXTREMITIES]]
        arms = (ends - r[:, torso, None]) @ R[:, torso]
        mass, com = self.mass.to(q), self.com.to(q)
        turning = torch.linalg.cross(frames.body_angular_velocity, (R @ com[..., None])[..., 0])
        velocity = (mass[:, None] * (frames.body_velocity + turning)).sum(1) / mass.sum()
        return torch.cat([r[:, self.bodies["head"], 2:], arms.flatten(1), R[:, torso, 2], velocity], -1)

    def observe(self, state: EnvState) -> Tensor:
        return torch.cat([state.q[:, 7:], state.extras, state.v], -1)

    def reward(self, before: EnvState, action: Tensor, after: EnvState) -> Tensor:
        head, upright, velocity = (after.extras[:, i] for i in (0, 15, slice(16, 18)))
        calm = (1.0 - action.square()).clamp(min=0.0).mean(-1)
        high = torch.exp(-0.5 * MARGIN_DECAY * ((STAND_HEIGHT - head) / (STAND_HEIGHT / 4)).clamp(min=0.0).square())
        straight = (1.0 - (0.9 - upright) / 1.9).clamp(0.0, 1.0)
        if self.speed == 0.0:
            moving = torch.exp(-0.5 * MARGIN_DECAY * (velocity / 2.0).square()).mean(-1)
        else:
            fast = torch.sqrt(velocity.square().sum(-1) + 1e-30)  # its gradient at rest is 0, not NaN
            moving = (1.0 + 5.0 * (fast / self.speed).clamp(max=1.0)) / 6.0
        return high * straight * (4.0 + calm) / 5.0 * moving


@cache
def contact_free_postures(model: Model, count: int = 1000) -> np.ndarray:
    """Return random postures (count, nq) of a floating robot without contact: joints within limits, any orientation."""
    sim, rng = Simulator(model, threads=1), np.random.default_rng(0)
    hinges = [i for i in range(model.nb) if model.joint_kind(i).nq == 1]  # in the order of q
    low, high = model.params["limit"][hinges].T
    found: list[np.ndarray] = []
    while sum(map(len, found)) < count:
        quaternion, angles = rng.normal(size=(count, 4)), rng.uniform(low, high, (count, len(low)))
        quaternion /= np.linalg.norm(quaternion, axis=-1, keepdims=True)
        q = np.concatenate([np.tile(model.keyframe().q[:3], (count, 1)), quaternion, angles], -1)
        traj = sim.rollout(State(q, np.zeros((count, model.nv))), np.zeros((count, 1, model.nu)))
        found.append(q[(sim.contacts(traj).gap > 0.0).all((1, 2))])
    return np.concatenate(found)[:count]
