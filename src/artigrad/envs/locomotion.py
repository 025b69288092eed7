"""Gymnasium's locomotion tasks, and a Laikago that tracks a velocity command.

Observations, rewards and terminations equal those of Gymnasium's v5 environments entry for entry, on Gymnasium's robot files,
so that policies transfer between the two without changes. Initial states have the same distribution, drawn by another
generator, with unit quaternions.
"""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

from .. import robots
from ..deprecation import renamed, renamed_arguments
from ..model.model import Model
from .env_task import EnvState, EnvTask, RandomSource
from .mujoco_fields import MujocoFields
from .robot_files import robot_of


@renamed(
    fastest="velocity_clip",
    weight="forward_reward_weight",
    alive="healthy_reward",
    cost="ctrl_cost_weight",
    noise="reset_noise_scale",
    contact_cost="contact_cost_weight",
)
class Locomotion(EnvTask):
    """Run along x.

    Reward: forward_reward_weight * velocity along x + healthy_reward (unless terminated) - ctrl_cost_weight * |action|^2.
    Observation: q without its first `num_excluded_positions` entries, and v clipped to `velocity_clip`.

    Args:
      model: Robot in place of Gymnasium's file.

    """

    file: str
    num_excluded_positions: int = 1
    velocity_clip: float = inf
    forward_reward_weight: float = 1.0
    healthy_reward: float = 1.0
    ctrl_cost_weight: float
    reset_noise_scale: float
    max_episode_steps = 1000

    def __init__(self, model: Model | None = None):
        self.model = model or robot_of("gymnasium", self.file)
        self.observation_size = self.model.nq - self.num_excluded_positions + self.model.nv

    @property
    def dt(self) -> float:
        """Duration of one environment step, s."""
        return float(self.options.get("dt", self.model.options.dt)) * self.frame_skip

    def sample_initial_state(self, random: RandomSource, count: int) -> tuple[Tensor, Tensor]:
        q, v = map(random.tensor, self.model.keyframe())
        return q + random.uniform(
            -self.reset_noise_scale, self.reset_noise_scale, count, len(q)
        ), v + self._initial_velocities(random, count)

    def _initial_velocities(self, random: RandomSource, count: int) -> Tensor:
        return random.uniform(-self.reset_noise_scale, self.reset_noise_scale, count, self.model.nv)

    def observe(self, state: EnvState) -> Tensor:
        return torch.cat(
            [state.q[:, self.num_excluded_positions :], state.v.clamp(-self.velocity_clip, self.velocity_clip)], -1
        )

    def state_from_observation(self, observation: Tensor) -> EnvState:
        nq, nv, none = self.model.nq - self.num_excluded_positions, self.model.nv, observation[:, :0]
        q = torch.cat([observation.new_zeros(len(observation), self.num_excluded_positions), observation[:, :nq]], -1)
        return EnvState(q, observation[:, nq : nq + nv], none, none, none)

    def progress(self, state: EnvState) -> Tensor:
        """Return the position along x that the reward counts, (B,), m."""
        return state.q[:, 0]

    def translated(self, state: EnvState, offset: Tensor) -> EnvState:
        """Return the translated state; the first entry of extras is a position along x and is translated too."""
        state = super().translated(state, offset)
        if not self.extras_size:
            return state
        return state._replace(extras=torch.cat([state.extras[:, :1] + offset[:, :1], state.extras[:, 1:]], -1))

    def speed(self, before: EnvState, after: EnvState) -> Tensor:
        """Return the mean velocity along x during a step, (B,), m/s."""
        return (self.progress(after) - self.progress(before)) / self.dt

    def reward_parts(self, before: EnvState, action: Tensor, after: EnvState) -> dict[str, Tensor]:
        """Return the parts of the reward, (B,) each, under Gymnasium's names."""
        return {
            "reward_forward": self.forward_reward_weight * self.speed(before, after),
            "reward_survive": self.healthy_reward * ~self.terminated(after),
            "reward_ctrl": -self.ctrl_cost_weight * action.square().sum(-1),
        }

    def reward(self, before: EnvState, action: Tensor, after: EnvState) -> Tensor:
        first, *others = self.reward_parts(before, action, after).values()
        return sum(others, first)

    def info(self, before: EnvState, action: Tensor, after: EnvState) -> dict[str, Tensor]:
        place = {"x_position": after.q[:, 0], "x_velocity": self.speed(before, after)}
        return place | self.reward_parts(before, action, after)


class Hopper(Locomotion):
    """Gymnasium's Hopper-v5: 3 torques, 11 observations, 4 simulator steps of 0.002 s.

    Terminates when the torso is below 0.7 m, leans more than 0.2 rad, or an entry of the state other than x and z is 100 or
    more.
    """

    file, frame_skip, velocity_clip, ctrl_cost_weight, reset_noise_scale = "hopper.xml", 4, 10.0, 1e-3, 5e-3

    def terminated(self, state: EnvState) -> Tensor:
        far = (torch.cat([state.q[:, 2:], state.v], -1).abs() >= 100.0).any(-1)
        return far | ~(state.q[:, 1] > 0.7) | ~(state.q[:, 2].abs() < 0.2)


class Walker2d(Locomotion):
    """Gymnasium's Walker2d-v5: 6 torques, 17 observations, 4 simulator steps of 0.002 s.

    Terminates when the height of the torso leaves 0.8 to 2 m or it leans more than 1 rad.
    """

    file, frame_skip, velocity_clip, ctrl_cost_weight, reset_noise_scale = "walker2d_v5.xml", 4, 10.0, 1e-3, 5e-3

    def terminated(self, state: EnvState) -> Tensor:
        z, lean = state.q[:, 1], state.q[:, 2]
        return ~((z > 0.8) & (z < 2.0) & (lean.abs() < 1.0))


class HalfCheetah(Locomotion):
    """Gymnasium's HalfCheetah-v5: 6 torques, 17 observations, 5 simulator steps of 0.01 s. Never terminates."""

    file, frame_skip, healthy_reward, ctrl_cost_weight, reset_noise_scale = "half_cheetah.xml", 5, 0.0, 0.1, 0.1

    def _initial_velocities(self, random: RandomSource, count: int) -> Tensor:
        return self.reset_noise_scale * random.normal(count, self.model.nv)


class Ant(Locomotion):
    """Gymnasium's Ant-v5: 8 torques, 105 observations, 5 simulator steps of 0.01 s.

    Terminates when the height of the torso leaves 0.2 to 1 m. The last 78 observations are the contact wrenches on the bodies,
    clipped to [-1, 1]; they and their cost have no gradient.

    Args:
      model: Robot in place of Gymnasium's file.
      contact_forces: False omits contact wrenches and their cost, which is faster (Gymnasium:
        include_cfrc_ext_in_observation=False and contact_cost_weight=0).
      max_height: Height of the torso that terminates the episode, m. Policies trained with less than 1 exceed 1 less often.
    """

    file, frame_skip, num_excluded_positions, ctrl_cost_weight, reset_noise_scale = "ant.xml", 5, 2, 0.5, 0.1
    use_mjdata, contact_cost_weight = True, 5e-4

    @renamed_arguments(highest="max_height")
    def __init__(self, model: Model | None = None, *, contact_forces: bool = True, max_height: float = 1.0):
        super().__init__(model)
        self.max_height = max_height
        self.extras_size = 1 + 6 * self.model.nb * contact_forces
        self.observation_size += self.extras_size - 1

    def _initial_velocities(self, random: RandomSource, count: int) -> Tensor:
        return self.reset_noise_scale * random.normal(count, self.model.nv)

    def mjdata_extras(self, fields: MujocoFields, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """Return the position of the torso along x, and the contact wrenches."""
        if u is None:
            return torch.cat([q[:, :1], q.new_zeros(len(q), self.extras_size - 1)], -1)
        position = fields.last_base_position(q, v, u)
        if self.extras_size == 1:
            return position[:, :1]
        with torch.no_grad():
            q, v = fields.last_stage(q, v, u)
            wrenches = fields.contact_wrenches(q, v, u, fields.outputs(q, v).com)
        return torch.cat([position[:, :1], wrenches.flatten(1).clamp(-1.0, 1.0)], -1)

    def observe(self, state: EnvState) -> Tensor:
        return torch.cat([super().observe(state), state.extras[:, 1:]], -1)

    def progress(self, state: EnvState) -> Tensor:
        return state.extras[:, 0]

    def reward_parts(self, before: EnvState, action: Tensor, after: EnvState) -> dict[str, Tensor]:
        cost = self.contact_cost_weight * after.extras[:, 1:].square().sum(-1)
        return super().reward_parts(before, action, after) | {"reward_contact": -cost}

    def terminated(self, state: EnvState) -> Tensor:
        height = state.q[:, 2]
        return ~((height >= 0.2) & (height <= self.max_height))


class Humanoid(Locomotion):
    """Gymnasium's Humanoid-v5: 17 torques, 348 observations, 5 simulator steps of 0.003 s.

    Terminates when the height of the torso leaves 1 to 2 m. The reward counts the velocity of the center of mass. The last 78
    observations are the contact wrenches on the bodies; they and their cost have no gradient.
    """

    file, frame_skip, num_excluded_positions, limit, ctrl_cost_weight, reset_noise_scale = (
        "humanoid.xml",
        5,
        2,
        0.4,
        0.1,
        1e-2,
    )
    forward_reward_weight, healthy_reward = 1.25, 5.0
    use_mjdata, contact_cost_weight, max_contact_cost = True, 5e-7, 10.0

    def __init__(self, model: Model | None = None):
        super().__init__(model)
        m = self.model
        self.bodies = sum(":" not in name for name in m.bodies)
        self.extras_size = 1 + 22 * self.bodies + m.nv - 6
        self.observation_size += self.extras_size - 1
        self.gears = torch.zeros(m.nu, m.nv - 6, dtype=torch.float64)
        for k, joint in enumerate(m.actuator_joint):
            self.gears[k, m.joint_v[joint] - 6] = float(m.params["gear"][k])

    def mjdata_extras(self, fields: MujocoFields, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """Return the center of mass along x, inertias and velocities of the bodies, actuator torques, contact wrenches."""
        wrenches, torques = q.new_zeros(len(q), 6 * self.bodies), q.new_zeros(len(q), self.model.nv - 6)
        if u is not None:
            q, v = fields.last_stage(q, v, u)
            torques = u.clamp(-self.limit, self.limit) @ self.gears.to(u)
        frames = fields.outputs(q, v)
        if u is not None:
            wrenches = fields.contact_wrenches(q, v, u, frames.com).flatten(1)
        bodies = (x.flatten(1) for x in (fields.inertias(frames), fields.velocities(frames)))
        return torch.cat([frames.com[:, :1], *bodies, torques, wrenches], -1)

    def observe(self, state: EnvState) -> Tensor:
        return torch.cat([super().observe(state), state.extras[:, 1:]], -1)

    def progress(self, state: EnvState) -> Tensor:
        return state.extras[:, 0]

    def reward_parts(self, before: EnvState, action: Tensor, after: EnvState) -> dict[str, Tensor]:
        cost = self.contact_cost_weight * after.extras[:, -6 * self.bodies :].square().sum(-1)
        parts = super().reward_parts(before, action, after)
        return parts | {"reward_contact": -cost.clamp(max=self.max_contact_cost)}

    def terminated(self, state: EnvState) -> Tensor:
        height = state.q[:, 2]
        return ~((height > 1.0) & (height < 2.0))


class Laikago(EnvTask):
    """A Laikago that walks along x at a commanded velocity of 0 to 1.2 m/s, the goal of the episode.

    Actions shift the position targets of 12 servos by up to 0.4 rad from the standing pose; 36 observations, 10 simulator
    steps of 0.002 s. Reward: 1 - 2 |velocity - command|^2, minus costs of turning, leaning, vertical motion and actions.
    Terminates when the trunk is below 0.3 m or leans more than 60 degrees.
    """

    frame_skip, max_episode_steps, goal_size = 10, 500, 1
    action_scale, max_command = 0.4, 1.2

    def __init__(self, model: Model | None = None) -> None:
        self.model = model or robots.laikago()
        self.options = {"dt": 0.002}
        self.observation_size = self.model.nq - 2 + self.model.nv + 1

    def controls(self, action: Tensor) -> Tensor:
        stand = torch.as_tensor(self.model.keyframe_control(), dtype=action.dtype, device=action.device)
        return stand + self.action_scale * action.clamp(-1.0, 1.0)

    def sample_initial_state(self, random: RandomSource, count: int) -> tuple[Tensor, Tensor]:
        q, v = map(random.tensor, self.model.keyframe())
        return q + random.uniform(-0.02, 0.02, count, len(q)), v + 0.02 * random.normal(count, len(v))

    def sample_goals(self, random: RandomSource, count: int) -> Tensor:
        return random.uniform(0.0, self.max_command, count, 1)

    def observe(self, state: EnvState) -> Tensor:
        return torch.cat([state.q[:, 2:], state.v, state.goal], -1)

    def reward(self, before: EnvState, action: Tensor, after: EnvState) -> Tensor:
        q, v = after.q, after.v
        error = (v[:, 0] - after.goal[:, 0]).square() + v[:, 1].square()
        turning = q[:, 4:7].square().sum(-1) + 0.1 * v[:, 3:6].square().sum(-1) + 0.2 * v[:, 2].square()
        return 1.0 - 2.0 * error - turning - q[:, 1].square() - 0.02 * action.square().sum(-1)

    def terminated(self, state: EnvState) -> Tensor:
        x, y = state.q[:, 4], state.q[:, 5]
        upright = 1.0 - 2.0 * (x * x + y * y)  # z component of the trunk's z axis
        return ~((state.q[:, 2] >= 0.3) & (upright >= 0.5))
