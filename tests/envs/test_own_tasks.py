"""Tasks of users: options, excluded positions, time limits, aliasing, masks, info."""

import gymnasium as gym
import numpy as np
import pytest
import torch

import artigrad as ag
import artigrad.envs
from artigrad.envs import TASKS, DifferentiableEnv, Env, EnvTask, VectorEnv

CARTPOLE = TASKS["CartpoleSwingUp"]


def test_options_of_one_task_leave_others_alone():
    class Finer(EnvTask):
        frame_skip, max_episode_steps, observation_size = 4, 100, 2

        def __init__(self):
            self.model = TASKS["PendulumReach"]().model
            self.options["dt"] = 0.0005

        def sample_initial_state(self, random, count):
            return random.uniform(0, 0, count, 2), random.uniform(0, 0, count, 2)

        def observe(self, state):
            return state.q

        def reward(self, before, action, after):
            return after.q[:, 0]

    assert DifferentiableEnv(Finer(), 1).dt == 4 * 0.0005
    assert TASKS["Hopper"]().options == {} and EnvTask.options == {}
    assert DifferentiableEnv("Hopper", 1).dt == TASKS["Hopper"]().dt == 0.008


@pytest.mark.parametrize("excluded", [0, 1])
def test_rewards_and_terminations_get_the_position(excluded):
    class To(TASKS["HalfCheetah"]):
        num_excluded_positions = excluded

        def sample_initial_state(self, random, count):
            q, v = super().sample_initial_state(random, count)
            return torch.cat([torch.full_like(q[:, :1], 7.0), q[:, 1:]], -1), v

        def reward(self, before, action, after):
            return -(after.q[:, 0] - 5.0).abs()

        def terminated(self, state):
            return state.q[:, 0] > 6.0

    env = DifferentiableEnv(To(), 1, dtype="f64")
    env.reset()
    step = env.step(torch.zeros(1, 6, dtype=torch.float64))
    assert abs(float(step.reward) + 2.0) < 0.05 and bool(step.terminated)


def test_observations_do_not_share_memory_with_the_state():
    class Plain(CARTPOLE):
        def __init__(self):
            super().__init__()
            self.observation_size = 2

        def observe(self, state):
            return state.q

    env = Env(Plain())
    observation, _ = env.reset(seed=0)
    kept = env.state.q.clone()
    observation /= 10.0
    assert torch.equal(env.state.q, kept)
    batch = DifferentiableEnv(Plain(), 2)
    batch.reset()
    step = batch.step(torch.zeros(2, 1))
    kept = step.next_observation.clone()
    step.observation.zero_()
    assert torch.equal(step.next_observation, kept) and not torch.equal(batch.state.q, torch.zeros(2, 2))


@pytest.mark.parametrize("name", ["observe", "reward", "terminated"])
def test_a_task_that_modifies_the_state_is_refused(name):
    def modify(self, *args):
        args[-1].q[:, 1] -= 1.0
        return getattr(CARTPOLE, name)(self, *args)

    env = DifferentiableEnv(type("Modifying", (CARTPOLE,), {name: modify})(), 1)
    with pytest.raises(ag.InputError, match=rf"Modifying\.{name} modified q of a state in place"):
        env.reset()
        env.step(torch.zeros(1, 1))


def test_a_single_environment_is_truncated_at_the_limit_of_its_task():
    class Short(CARTPOLE):
        max_episode_steps = 5

    env = Env(Short())
    env.reset(seed=0)
    assert [env.step(np.zeros(1, np.float32))[3] for _ in range(5)] == [False] * 4 + [True]
    longer = gym.make("artigrad/CartpoleSwingUp-v0", max_episode_steps=CARTPOLE.max_episode_steps + 2)
    longer.reset(seed=0)
    ended = [longer.step(np.zeros(1, np.float32))[3] for _ in range(CARTPOLE.max_episode_steps + 2)]
    assert not any(ended[:-1]) and ended[-1]


@pytest.mark.parametrize("most", [0, -1, 2.5])
def test_time_limits_are_whole_numbers_of_at_least_one(most):
    for make in (VectorEnv, DifferentiableEnv):
        with pytest.raises(ag.InputError, match="max_episode_steps is"):
            make("Hopper", 2, max_episode_steps=most)


def test_a_reset_mask_resets_its_environments_only():
    env = VectorEnv("Hopper", 3)
    env.reset(seed=0)
    for _ in range(3):
        before, *_ = env.step(np.full((3, 3), 0.5, np.float32))
    after, _ = env.reset(options={"reset_mask": np.array([True, False, False])})
    assert (before == after).all(1).tolist() == [False, True, True]
    assert env.state.steps.tolist() == [0, 3, 3]
    with pytest.raises(ag.InputError, match="reset_mask is a bool array"):
        env.reset(options={"reset_mask": np.zeros(3, bool)})
    with pytest.raises(ag.InputError, match="not 'mask'"):
        env.reset(options={"mask": 1})


@pytest.mark.parametrize("name", ["Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d"])
def test_actions_beyond_the_limits_cost_what_gymnasium_charges(name):
    theirs, ours = gym.make(f"{name}-v5").unwrapped, gym.make(f"artigrad/{name}-v0", dtype="f64").unwrapped
    theirs.reset(seed=0)
    ours.reset(seed=0)
    q = ours.batch.normalize_quaternions(torch.tensor(theirs.data.qpos)[None])
    theirs.set_state(q[0].numpy(), theirs.data.qvel.copy())
    ours.state = ours.state._replace(q=q, v=torch.tensor(theirs.data.qvel)[None])
    action = np.full(theirs.action_space.shape, 2.0)
    their_reward, their_info = theirs.step(action)[1::3]
    our_reward, our_info = ours.step(action)[1::3]
    if name in ("Ant", "Humanoid"):  # their first position is that of the reset
        their_reward, our_reward = (
            r - i["reward_forward"] for r, i in ((their_reward, their_info), (our_reward, our_info))
        )
    assert abs(their_reward - our_reward) < 1e-8
    for part in ("reward_ctrl", "reward_survive", "x_position"):
        assert part not in their_info or abs(their_info[part] - our_info[part]) < 1e-8, part


def test_info_of_a_vector_environment_has_a_row_per_environment():
    env = gym.make_vec("artigrad/Hopper-v0", 3)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(np.full((3, 3), 0.5, np.float32))
    parts = sum(info[name] for name in ("reward_forward", "reward_survive", "reward_ctrl"))
    assert np.abs(parts - reward).max() < 1e-6 and info["_reward_ctrl"].tolist() == [True] * 3
