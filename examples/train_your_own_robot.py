"""Train a policy for your own robot and task: an arm moves its hand to a commanded position, by SHAC, in seconds.

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
    """Environment steps of 0.02 s, episodes of 2 s. Observation: sines and cosines of the joint angles, velocities, target, and
    the vector from the hand to the target."""

    frame_skip, max_episode_steps, goal_size, extras_size, observation_size = 4, 100, 2, 2, 10

    def __init__(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "arm.xml"  # for a file of your own: ag.load("my_robot.xml")
            file.write_text(ARM)
            self.model = ag.load(file)

    def controls(self, action):
        """Return target angles of the servos, at most 2.5 rad."""
        return 2.5 * action

    def sample_initial_state(self, random, count):
        return random.uniform(-1.0, 1.0, count, 2), random.uniform(0.0, 0.0, count, 2)

    def sample_goals(self, random, count):
        """Return targets at a distance of 0.3 to 0.9 m."""
        radius, angle = random.uniform(0.3, 0.9, count, 1), random.uniform(-2.0, 2.0, count, 1)
        return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], -1)

    def extras(self, sim, q, v, u):
        """Return the position of the hand, which is not an entry of q or v."""
        return outputs(sim, (q, v)).site("hand").position[:, :2]

    def observe(self, state):
        angles = [torch.sin(state.q), torch.cos(state.q)]
        return torch.cat([*angles, state.v, state.goal, state.goal - state.extras], -1)

    def reward(self, before, action, after):
        square = (after.extras - after.goal).square().sum(-1)
        return 1.0 - torch.sqrt(square + 1e-4) - 0.01 * action.square().sum(-1)


@torch.no_grad()
def distances(policy):
    """Return the distances of 64 hands to their targets after 1.9 s, m."""
    env = DifferentiableEnv(Reach(), 64, seed=1)
    observation = env.reset()
    for _ in range(95):
        observation = env.step(policy(observation)).observation
    return (env.state.extras - env.state.goal).norm(dim=-1)


def main():
    training = Training(
        Reach(), "shac", num_envs=16, hidden=(64, 64), gamma=0.9, horizon_seconds=0.1, threads=1, lr_decay_steps=40_000
    )
    before = distances(training.learner.policy).median()
    training.run(steps=40_000)
    after = distances(training.learner.policy)
    print(
        f"median distance {before:.3f} m before training, {after.median():.3f} m after {training.seconds:.0f} s of it"
    )
    assert after.median() < 0.05 and after.median() < 0.1 * before


if __name__ == "__main__":
    main()
