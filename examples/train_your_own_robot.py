"""A robot of your own learns a task of your own: an arm brings its hand to wherever it is told, by SHAC, in seconds.

python examples/train_your_own_robot.py
artigrad train examples/train_your_own_robot.py --minutes 1
artigrad play training/train_your_own_robot-shac-0/checkpoint.pt --task examples/train_your_own_robot.py
"""

import tempfile
from pathlib import Path

import torch

import artigrad as ag
from artigrad.envs import DifferentiableEnv, EnvTask
from artigrad.learn import Training
from artigrad.torch import outputs

ARM = """
<mujoco>
  <option timestep="0.005" gravity="0 0 0"/>
  <default><joint axis="0 0 1" damping="2"/><geom type="capsule" size="0.03"/><position kp="20"/></default>
  <worldbody>
    <body>
      <joint name="shoulder"/><geom fromto="0 0 0 0.5 0 0"/>
      <body pos="0.5 0 0">
        <joint name="elbow" range="-150 150"/><geom fromto="0 0 0 0.5 0 0"/>
        <site name="hand" pos="0.5 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><position joint="shoulder"/><position joint="elbow"/></actuator>
</mujoco>
"""


class Reach(EnvTask):
    """Steps of 0.02 s, 2 s in all. Observed: sines and cosines of angles, velocities, the target, and how far off it is."""

    frame_skip, episode, goal_size, seen_size, observation_size = 4, 100, 2, 2, 10

    def __init__(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "arm.xml"  # you have one already: ag.load("my_robot.xml")
            file.write_text(ARM)
            self.model = ag.load(file)

    def controls(self, action):
        """Servos are told angles of up to 2.5 rad."""
        return 2.5 * action

    def start(self, draw, count):
        return draw.uniform(-1.0, 1.0, count, 2), draw.uniform(0.0, 0.0, count, 2)

    def goals(self, draw, count):
        """Anywhere between 0.3 and 0.9 m."""
        radius, angle = draw.uniform(0.3, 0.9, count, 1), draw.uniform(-2.0, 2.0, count, 1)
        return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], -1)

    def look(self, sim, q, v, u):
        """What is not in q and v: where the hand is."""
        return outputs(sim, (q, v)).site("hand").position[:, :2]

    def observe(self, now):
        return torch.cat([torch.sin(now.q), torch.cos(now.q), now.v, now.goal, now.goal - now.seen], -1)

    def reward(self, before, action, after):
        away = (after.seen - after.goal).square().sum(-1)
        return 1.0 - torch.sqrt(away + 1e-4) - 0.01 * action.square().sum(-1)


@torch.no_grad()
def distances(policy):
    """Of 64 hands to their targets after 1.9 s, m."""
    env = DifferentiableEnv(Reach(), 64, seed=1)
    observation = env.reset()
    for _ in range(95):
        observation = env.step(policy(observation)).observation
    return (env.now.seen - env.now.goal).norm(dim=-1)


def main():
    training = Training(Reach(), "shac", envs=16, hidden=(64, 64), gamma=0.9, span=0.1, threads=1, decay_steps=40_000)
    before = distances(training.learner.policy).median()
    training.run(steps=40_000)
    after = distances(training.learner.policy)
    print(f"{before:.3f} m away before, {after.median():.3f} m after {training.seconds:.0f} s of learning")
    assert after.median() < 0.05 and after.median() < 0.1 * before


if __name__ == "__main__":
    main()
