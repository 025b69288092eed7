"""Environments keep Gymnasium's contract; a vectorised one is the single one many times; Jacobians match differences."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import artigrad as ag
from artigrad.envs import TASKS, Env, VectorEnv

IDS = {name: f"artigrad/{name}-v0" for name in TASKS}
BATCH = 5
each = pytest.mark.parametrize("name", TASKS)


@each
def test_contract(name):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*infinity")  # observations have no bounds, as those of MuJoCo's
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
def test_vector_is_the_single_one_many_times(name):
    many, one = VectorEnv(name, BATCH, dtype="f64"), Env(name, dtype="f64")
    many.reset(seed=0)
    one.reset(seed=0)
    one.state = ag.State(many.state.q[2:3].copy(), many.state.v[2:3].copy())
    rng = np.random.default_rng(1)
    for _ in range(8):
        actions = rng.uniform(-1.2, 1.2, (BATCH, many.single_action_space.shape[0]))
        seen, reward, terminated, _, _ = many.step(actions)
        seen_one, reward_one, terminated_one, _, _ = one.step(actions[2])
        np.testing.assert_array_equal(seen[2], seen_one)
        assert (reward[2], terminated[2]) == (reward_one, terminated_one)


@each
def test_jacobians_match_differences(name):
    env = Env(name, dtype="f64")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    action = rng.uniform(-0.9, 0.9, env.action_space.shape)
    for _ in range(3):
        env.step(action)
    here = env.differentiable_step(action)
    assert here.violation == 0.0
    step = 1e-6
    for k, e in enumerate(np.eye(len(action))):
        up, down = env.differentiable_step(action + step * e), env.differentiable_step(action - step * e)
        pairs = [("observation", "observation_action"), ("reward", "reward_action")]
        for value, slope in pairs:
            expected = (getattr(up, value) - getattr(down, value)) / (2 * step)
            np.testing.assert_allclose(getattr(here, slope)[..., k], expected, rtol=1e-6, atol=1e-6)
        for x, dx in ((0, here.q_action), (1, here.v_action)):
            np.testing.assert_allclose(dx[:, k], (up.state[x] - down.state[x]) / (2 * step), rtol=1e-6, atol=1e-6)
    seen, reward, terminated, _, _ = env.step(action)  # it did not move, and step gives what it said
    np.testing.assert_array_equal(seen, here.observation)
    assert (reward, terminated) == (here.reward, here.terminated)


def test_jacobians_of_a_batch():
    many = VectorEnv("Hopper", 3, dtype="f64")
    many.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (3, 3))
    actions[1, 2] = 1.5  # beyond the end: cut off, so without effect
    found = many.differentiable_step(actions)
    assert found.observation_action.shape == (3, 11, 3) and found.reward_action.shape == (3, 3)
    assert not found.observation_action[1, :, 2].any() and found.reward_action[1, 2] == 0.0
    one = Env("Hopper", dtype="f64")
    one.reset()
    one.state = ag.State(many.state.q[:1], many.state.v[:1])
    np.testing.assert_array_equal(one.differentiable_step(actions[0]).observation_action, found.observation_action[0])


def test_next_step_autoreset():
    env = gym.make_vec(IDS["CartpoleSwingUp"], num_envs=3, max_episode_steps=4)
    env.reset(seed=0)
    push = np.zeros((3, 1), np.float32)
    env.unwrapped.state.q[1, 0] = 5.0  # robot 1 is beyond the end of its rail
    _, _, terminated, truncated, _ = env.step(push)
    assert terminated.tolist() == [False, True, False] and not truncated.any()
    seen, reward, terminated, truncated, _ = env.step(push)
    assert abs(seen[1, 0]) < 1.0 and reward[1] == 0.0 and not terminated.any() and not truncated.any()
    env.step(push)
    _, _, _, truncated, _ = env.step(push)
    assert truncated.tolist() == [True, False, True]
    _, reward, _, truncated, _ = env.step(push)
    assert reward[0] == reward[2] == 0.0 and not truncated.any() and reward[1] != 0.0


def test_a_motion_that_overflows_ends_the_episode():
    env = VectorEnv("CartpoleSwingUp", 2)
    env.reset(seed=0)
    env.state.v[0] = 1e30
    with pytest.warns(RuntimeWarning, match="robot 0 is not finite"):
        seen, reward, terminated, _, _ = env.step(np.zeros((2, 1)))
    assert terminated[0] and reward[0] == 0.0 and np.isfinite(seen).all()


def test_more_links_and_poles():
    assert gym.make(IDS["PendulumReach"], links=5).action_space.shape == (5,)
    assert gym.make(IDS["CartpoleSwingUp"], poles=2).observation_space.shape == (8,)


def test_the_pendulum_is_that_of_the_paper():
    """The rewards of a way to the top add up to n^2/2, and observed places are those of the model's sites."""
    env = Env("PendulumReach", links=3, dtype="f64")
    env.reset(seed=0)
    rewards = [env.step(np.array([1.0, 0.5, -0.5]))[1] for _ in range(10)]
    left = env.batch.task._distance(env.state.q[0])
    assert sum(rewards) + left == pytest.approx(9 / 2)
    tip = env.batch.sim.sites(env.state)[0, 0]
    seen = env.batch.observe(env.state, env.steps)[0]
    np.testing.assert_allclose([seen[5], seen[8], seen[9]], [tip[0], tip[2], 0.1], atol=1e-12)


def test_errors_say_what_to_do():
    with pytest.raises(gym.error.ResetNeeded):
        Env("Ant").step(np.zeros(8))
    with pytest.raises(ag.InputError, match="tasks are CartpoleSwingUp"):
        Env("Walker")
    many = VectorEnv("Hopper", 2)
    many.reset()
    with pytest.raises(ag.InputError, match=r"actions are \(2, 3\), not \(3,\)"):
        many.step(np.zeros(3))
    with pytest.raises(ag.InputError, match="one seed"):
        many.reset(seed=[1, 2])
    with pytest.raises(ag.InputError, match="num_envs"):
        VectorEnv("Hopper", 0)
    with pytest.raises(ag.InputError, match=r"u\[0, 0, 0\] is nan"):
        many.step(np.full((2, 3), np.nan))
