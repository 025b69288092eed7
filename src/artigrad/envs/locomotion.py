"""Gymnasium's robots that are to run along x, and a Laikago that is to walk at a given speed.

Observations, rewards and ends of episodes are those of Gymnasium's v5 environments, entry for entry, on Gymnasium's own robot
files, so that a policy moves between the two unchanged. First states are drawn as there, from another generator, and their
quaternions have length 1.
"""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

from .. import robots
from ..model.model import Model
from .env_task import Draw, EnvTask, Moment
from .mujoco_fields import MujocoFields
from .robot_files import robot_of


class Locomotion(EnvTask):
    """Rewarded: weight times speed along x + alive, where it has not failed, - cost |a|^2.

    Observed: q from entry `hidden` on, so that it does not matter where the robot is, and v, cut off at `fastest`.
    model: instead of Gymnasium's file. dt: s, one step of the environment.
    """

    file: str
    hidden: int = 1
    fastest: float = inf
    weight: float = 1.0
    alive: float = 1.0
    cost: float
    noise: float
    episode = 1000

    def __init__(self, model: Model | None = None):
        self.model = model or robot_of("gymnasium", self.file)
        self.dt = self.model.options.dt * self.frame_skip
        self.observation_size = self.model.nq - self.hidden + self.model.nv

    def start(self, draw: Draw, count: int) -> tuple[Tensor, Tensor]:
        q, v = map(draw.tensor, self.model.keyframe())
        return q + draw.uniform(-self.noise, self.noise, count, len(q)), v + self._speeds(draw, count)

    def _speeds(self, draw: Draw, count: int) -> Tensor:
        return draw.uniform(-self.noise, self.noise, count, self.model.nv)

    def observe(self, now: Moment) -> Tensor:
        return torch.cat([now.q[:, self.hidden :], now.v.clamp(-self.fastest, self.fastest)], -1)

    def recall(self, observation: Tensor) -> Moment:
        nq, nv, none = self.model.nq - self.hidden, self.model.nv, observation[:, :0]
        q = torch.cat([observation.new_zeros(len(observation), self.hidden), observation[:, :nq]], -1)
        return Moment(q, observation[:, nq : nq + nv], none, none, none)

    def progress(self, now: Moment) -> Tensor:
        """The place along x that counts."""
        return now.q[:, 0]

    def moved(self, now: Moment, place: Tensor) -> Moment:
        """Where the first of what was seen is a place along x, it moves too."""
        now = super().moved(now, place)
        if not self.seen_size:
            return now
        return now._replace(seen=torch.cat([now.seen[:, :1] + place[:, :1], now.seen[:, 1:]], -1))

    def reward(self, before: Moment, action: Tensor, after: Moment) -> Tensor:
        speed = (self.progress(after) - self.progress(before)) / self.dt
        return self.weight * speed + self.alive * ~self.over(after) - self.cost * action.square().sum(-1)


class Hopper(Locomotion):
    """Gymnasium's Hopper-v5: three torques, 11 observations, 4 steps of 0.002 s. Over when the torso is below 0.7 m or leans
    more than 0.2 rad, or anything moves faster than 100."""

    file, frame_skip, fastest, cost, noise = "hopper.xml", 4, 10.0, 1e-3, 5e-3

    def over(self, now: Moment) -> Tensor:
        far = (torch.cat([now.q[:, 2:], now.v], -1).abs() >= 100.0).any(-1)
        return far | ~(now.q[:, 1] > 0.7) | ~(now.q[:, 2].abs() < 0.2)


class Walker2d(Locomotion):
    """Gymnasium's Walker2d-v5: six torques, 17 observations, 4 steps of 0.002 s. Over when the height of the torso leaves
    0.8 to 2 m or it leans more than 1 rad."""

    file, frame_skip, fastest, cost, noise = "walker2d_v5.xml", 4, 10.0, 1e-3, 5e-3

    def over(self, now: Moment) -> Tensor:
        z, lean = now.q[:, 1], now.q[:, 2]
        return ~((z > 0.8) & (z < 2.0) & (lean.abs() < 1.0))


class HalfCheetah(Locomotion):
    """Gymnasium's HalfCheetah-v5: six torques, 17 observations, 5 steps of 0.01 s. It never fails."""

    file, frame_skip, alive, cost, noise = "half_cheetah.xml", 5, 0.0, 0.1, 0.1

    def _speeds(self, draw: Draw, count: int) -> Tensor:
        return self.noise * draw.normal(count, self.model.nv)


class Ant(Locomotion):
    """Gymnasium's Ant-v5: eight torques, 105 observations, 5 steps of 0.01 s. Over when the height of the torso leaves 0.2 to
    1 m. The last 78 observations are wrenches of contact on the bodies, each within -1 and 1; neither they nor their cost have
    a gradient.

    contact_forces: False leaves them and their cost out, which is faster; Gymnasium has include_cfrc_ext_in_observation=False
    and contact_cost_weight=0 for that. highest: m, in place of 1: who trains below it jumps above 1 less often.
    """

    file, frame_skip, hidden, cost, noise = "ant.xml", 5, 2, 0.5, 0.1
    lagging, contact_cost = True, 5e-4

    def __init__(self, model: Model | None = None, *, contact_forces: bool = True, highest: float = 1.0):
        super().__init__(model)
        self.highest = highest
        self.seen_size = 1 + 6 * self.model.nb * contact_forces
        self.observation_size += self.seen_size - 1

    def _speeds(self, draw: Draw, count: int) -> Tensor:
        return self.noise * draw.normal(count, self.model.nv)

    def see(self, fields: MujocoFields, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """Where the torso is along x, and the wrenches."""
        if u is None:
            return torch.cat([q[:, :1], q.new_zeros(len(q), self.seen_size - 1)], -1)
        place = fields.last_place(q, v, u)
        if self.seen_size == 1:
            return place[:, :1]
        with torch.no_grad():
            q, v = fields.last_stage(q, v, u)
            wrenches = fields.wrenches(q, v, u, fields.outputs(q, v).com)
        return torch.cat([place[:, :1], wrenches.flatten(1).clamp(-1.0, 1.0)], -1)

    def observe(self, now: Moment) -> Tensor:
        return torch.cat([super().observe(now), now.seen[:, 1:]], -1)

    def progress(self, now: Moment) -> Tensor:
        return now.seen[:, 0]

    def reward(self, before: Moment, action: Tensor, after: Moment) -> Tensor:
        return super().reward(before, action, after) - self.contact_cost * after.seen[:, 1:].square().sum(-1)

    def over(self, now: Moment) -> Tensor:
        height = now.q[:, 2]
        return ~((height >= 0.2) & (height <= self.highest))


class Humanoid(Locomotion):
    """Gymnasium's Humanoid-v5: 17 torques, 348 observations, 5 steps of 0.003 s. Over when the height of the torso leaves 1 to
    2 m. What counts is the place of the centre of mass. Of the observations, the last 78, wrenches of contact on the bodies,
    have no gradient, nor has their cost.
    """

    file, frame_skip, hidden, limit, cost, noise = "humanoid.xml", 5, 2, 0.4, 0.1, 1e-2
    weight, alive = 1.25, 5.0
    lagging, contact_cost, most = True, 5e-7, 10.0

    def __init__(self, model: Model | None = None):
        super().__init__(model)
        m = self.model
        self.bodies = sum(":" not in name for name in m.bodies)
        self.seen_size = 1 + 22 * self.bodies + m.nv - 6
        self.observation_size += self.seen_size - 1
        self.gears = torch.zeros(m.nu, m.nv - 6, dtype=torch.float64)
        for k, joint in enumerate(m.actuator_joint):
            self.gears[k, m.joint_v[joint] - 6] = float(m.params["gear"][k])

    def see(self, fields: MujocoFields, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """The centre of mass along x; inertias and velocities of bodies, torques of motors, wrenches of contact."""
        wrenches, torques = q.new_zeros(len(q), 6 * self.bodies), q.new_zeros(len(q), self.model.nv - 6)
        if u is not None:
            q, v = fields.last_stage(q, v, u)
            torques = u.clamp(-self.limit, self.limit) @ self.gears.to(u)
        there = fields.outputs(q, v)
        if u is not None:
            wrenches = fields.wrenches(q, v, u, there.com).flatten(1)
        bodies = (x.flatten(1) for x in (fields.inertias(there), fields.velocities(there)))
        return torch.cat([there.com[:, :1], *bodies, torques, wrenches], -1)

    def observe(self, now: Moment) -> Tensor:
        return torch.cat([super().observe(now), now.seen[:, 1:]], -1)

    def progress(self, now: Moment) -> Tensor:
        return now.seen[:, 0]

    def reward(self, before: Moment, action: Tensor, after: Moment) -> Tensor:
        touching = self.contact_cost * after.seen[:, -6 * self.bodies :].square().sum(-1)
        return super().reward(before, action, after) - touching.clamp(max=self.most)

    def over(self, now: Moment) -> Tensor:
        height = now.q[:, 2]
        return ~((height > 1.0) & (height < 2.0))


class Laikago(EnvTask):
    """A Laikago that is to walk along x at the speed its episode asks for, 0 to 1.2 m/s: the action moves the targets of twelve
    servos by up to 0.4 rad from standing; 36 observations, 10 steps of 0.002 s.

    Rewarded: 1 - 2 |velocity - wanted|^2, less what it turns, leans, bounces and strains. Over when the trunk is below 0.3 m
    or leans more than 60 degrees.
    """

    frame_skip, episode, goal_size = 10, 500, 1
    reach, fastest = 0.4, 1.2

    def __init__(self, model: Model | None = None) -> None:
        self.model = model or robots.laikago()
        self.options = {"dt": 0.002}
        self.observation_size = self.model.nq - 2 + self.model.nv + 1

    def controls(self, action: Tensor) -> Tensor:
        stand = torch.as_tensor(self.model.keyframe_control(), dtype=action.dtype, device=action.device)
        return stand + self.reach * action.clamp(-1.0, 1.0)

    def start(self, draw: Draw, count: int) -> tuple[Tensor, Tensor]:
        q, v = map(draw.tensor, self.model.keyframe())
        return q + draw.uniform(-0.02, 0.02, count, len(q)), v + 0.02 * draw.normal(count, len(v))

    def goals(self, draw: Draw, count: int) -> Tensor:
        return draw.uniform(0.0, self.fastest, count, 1)

    def observe(self, now: Moment) -> Tensor:
        return torch.cat([now.q[:, 2:], now.v, now.goal], -1)

    def reward(self, before: Moment, action: Tensor, after: Moment) -> Tensor:
        q, v = after.q, after.v
        missed = (v[:, 0] - after.goal[:, 0]).square() + v[:, 1].square()
        turned = q[:, 4:7].square().sum(-1) + 0.1 * v[:, 3:6].square().sum(-1) + 0.2 * v[:, 2].square()
        return 1.0 - 2.0 * missed - turned - q[:, 1].square() - 0.02 * action.square().sum(-1)

    def over(self, now: Moment) -> Tensor:
        x, y = now.q[:, 4], now.q[:, 5]
        upright = 1.0 - 2.0 * (x * x + y * y)  # z component of the trunk's z axis
        return ~((now.q[:, 2] >= 0.3) & (upright >= 0.5))
