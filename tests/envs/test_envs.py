"""Gymnasium environments pass its checks; a vector environment equals single ones."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import artigrad as ag
from artigrad.envs import TASKS, Env, EnvState, VectorEnv

IDS = {name: f"artigrad/{name}-v0" for name in TASKS}
BATCH = 5
each = pytest.mark.parametrize("name", TASKS)


@each
def test_contract(name):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*infinity")  # observations are unbounded, as in Gymnasium
        check_env(gym.make(IDS[name]).unwrapped)


@each
def test_seeds_reproduce(name):
    rng = np.random.default_rng(0)
    env = gym.make_vec(IDS[name], num_envs=BATCH)
    actions = rng.uniform(-1, 1, (20, *env.action_space.shape))

    def play(seed):
        first, _ = env.reset(seed=seed)
        return np.stack([first] + [env.step(a)[0] for a in actions])

    once = play(3)
    assert once.dtype == env.observation_space.dtype
    np.testing.assert_array_equal(once, play(3))
    if name != "PendulumReach":  # which always starts from the horizontal
        assert not np.array_equal(once, play(4))


@each
def test_vector_environment_equals_single_ones(name):
    many, one = VectorEnv(name, BATCH, dtype="f64"), Env(name, dtype="f64")
    many.reset(seed=0)
    one.reset(seed=0)
    one.state = EnvState(*(x[2:3].clone() for x in many.state))
    rng = np.random.default_rng(1)
    for _ in range(8):
        actions = rng.uniform(-1.2, 1.2, (BATCH, many.single_action_space.shape[0]))  # clipped to the limits
        seen, reward, terminated, _, _ = many.step(actions)
        seen_one, reward_one, terminated_one, _, _ = one.step(actions[2])
        np.testing.assert_array_equal(seen[2], seen_one)
        assert (reward[2], terminated[2]) == (reward_one, terminated_one)


def test_next_step_autoreset():
    env = gym.make_vec(IDS["Hopper"], num_envs=3, max_episode_steps=4)
    env.reset(seed=0)
    push = np.zeros((3, 3), np.float32)
    env.unwrapped.state.q[1, 1] = 0.5  # robot 1 is down
    _, _, terminated, truncated, _ = env.step(push)
    assert terminated.tolist() == [False, True, False] and not truncated.any()
    seen, reward, terminated, truncated, _ = env.step(push)
    assert seen[1, 0] > 1.0 and reward[1] == 0.0 and not terminated.any() and not truncated.any()
    env.step(push)
    _, _, _, truncated, _ = env.step(push)
    assert truncated.tolist() == [True, False, True]
    _, reward, _, truncated, _ = env.step(push)
    assert reward[0] == reward[2] == 0.0 and not truncated.any() and reward[1] != 0.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflow_ends_the_episode():
    env = VectorEnv("CartpoleSwingUp", 2)
    env.reset(seed=0)
    env.state.v[0] = 1e30
    seen, reward, terminated, _, _ = env.step(np.zeros((2, 1)))
    assert terminated[0] and reward[0] == 0.0 and np.isfinite(seen[1]).all() and not terminated[1]


def test_more_links_and_poles():
    assert gym.make(IDS["PendulumReach"], links=5).action_space.shape == (5,)
    assert gym.make(IDS["CartpoleSwingUp"], poles=2).observation_space.shape == (8,)


def test_pendulum_is_that_of_the_paper():
    """Rewards up to the highest position sum to n^2/2, and observed positions are those of the sites."""
    env = Env("PendulumReach", links=3, dtype="f64")
    env.reset(seed=0)
    rewards = [env.step(np.array([1.0, 0.5, -0.5]))[1] for _ in range(10)]
    left = env.batch.task.distance(env.state)
    assert sum(rewards) + left.item() == pytest.approx(9 / 2)
    tip = env.batch.sim.sites(ag.State(env.state.q.numpy(), env.state.v.numpy()))[0, 0]
    seen = env.batch.task.observe(env.state)[0]
    np.testing.assert_allclose([seen[5], seen[8], seen[9]], [tip[0], tip[2], 0.1], atol=1e-12)


def test_fast_pendulum_terminates():
    env = Env("PendulumReach", links=2, max_velocity=3.0)
    env.reset(seed=0)
    ends = [env.step(np.ones(2))[2] for _ in range(20)]
    assert ends[-1] and not ends[0]


def test_errors_name_the_remedy():
    with pytest.raises(gym.error.ResetNeeded):
        Env("Ant").step(np.zeros(8))
    with pytest.raises(ag.InputError, match="tasks are Ant"):
        Env("Walker3d")
    many = VectorEnv("Hopper", 2)
    many.reset()
    with pytest.raises(ag.InputError, match=r"actions are an array \(2, 3\), not \(3,\)"):
        many.step(np.zeros(3))
    with pytest.raises(ag.InputError, match="one seed"):
        many.reset(seed=[1, 2])
    with pytest.raises(ag.InputError, match="num_envs"):
        VectorEnv("Hopper", 0)
    with pytest.raises(ag.InputError, match="actions has entries that are not finite"):
        many.step(np.full((2, 3), np.nan))
    with pytest.raises(ag.InputError, match="substeps"):
        Env("PendulumReach", substeps=0)
