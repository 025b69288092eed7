"""The same state and action give the same observation, reward and end as in Gymnasium's and dm_control's own environments."""

import gymnasium as gym
import mujoco
import numpy as np
import pytest
import torch
from dm_control.suite import cartpole
from dm_control.utils.rewards import tolerance

from artigrad.envs import TASKS
from artigrad.envs.batch import Batch
from artigrad.envs.env_task import Moment

GYM = ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d")


def tensor(x):
    return torch.tensor(np.array(x), dtype=torch.float64)[None]


def moment(batch, q, v):
    now = Moment(tensor(q), tensor(v), torch.zeros(1, 0), torch.zeros(1, 0), torch.zeros(1, dtype=torch.long))
    return now._replace(seen=batch._see(now.q, now.v, None))


def theirs(name):
    """Gymnasium's environment; what its solver leaves open is brought to an end."""
    env = gym.make(f"{name}-v5").unwrapped
    env.model.opt.solver, env.model.opt.tolerance, env.model.opt.iterations = mujoco.mjtSolver.mjSOL_NEWTON, 1e-14, 100
    return env


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", GYM)
def test_steps_of_gymnasium(name):
    env, batch, rng = theirs(name), Batch(name, dtype="f64", threads=1), np.random.default_rng(0)
    task = batch.task
    assert env.observation_space.shape == (task.observation_size,)
    assert (env.action_space.high == np.float32(task.limit)).all() and (env.frame_skip, env.dt) == (
        task.frame_skip,
        task.dt,
    )
    ends = 0
    for seed in range(3):
        env.reset(seed=seed)
        q, v = env.data.qpos.copy(), env.data.qvel.copy()
        if task.model.nq > task.model.nv:
            q[3:7] /= np.linalg.norm(q[3:7])
        env.set_state(q, v)
        now = moment(batch, q, v)
        np.testing.assert_allclose(task.observe(now)[0], env._get_obs(), atol=1e-12)
        for _ in range(40):
            action = rng.uniform(-task.limit, task.limit, task.model.nu)
            seen, reward, terminated, _, _ = env.step(action)
            now, found, over = batch.step(now, tensor(action))
            np.testing.assert_allclose(task.observe(now)[0], seen, rtol=1e-8, atol=1e-8)
            assert found.item() == pytest.approx(reward, rel=1e-8, abs=1e-8)
            assert bool(over) == terminated
            ends += terminated
            now = now._replace(q=tensor(env.data.qpos), v=tensor(env.data.qvel))  # so that nothing builds up
            if terminated:
                break
    assert ends or name in ("Ant", "HalfCheetah")


@pytest.mark.parametrize("name", GYM)
def test_first_states_are_drawn_as_in_gymnasium(name):
    """Means and spreads of many, entry by entry; of a quaternion, before it is given length one."""
    env, task = theirs(name), TASKS[name]()
    q, v = task.start(Batch(task, dtype="f64").draw(0), 4000)
    drawn = []
    for seed in range(400):
        env.reset(seed=seed)
        drawn.append((env.data.qpos.copy(), env.data.qvel.copy()))
    for ours, other in ((q.numpy(), np.stack([x for x, _ in drawn])), (v.numpy(), np.stack([x for _, x in drawn]))):
        spread = other.std(0)
        assert (np.abs(ours.mean(0) - other.mean(0)) < 0.25 * spread).all()
        np.testing.assert_allclose(ours.std(0), spread, rtol=0.15)


@pytest.mark.parametrize("poles", [1, 2, 3])
def test_steps_of_the_suite(poles):
    """dm_control's file in MuJoCo; its rewards by its own functions."""
    xml, assets = cartpole.get_model_and_assets(poles)
    model = mujoco.MjModel.from_xml_string(xml, assets)
    data, batch, rng = (
        mujoco.MjData(model),
        Batch("CartpoleSwingUp", poles=poles, dtype="f64"),
        np.random.default_rng(0),
    )
    q, v = batch.task.start(batch.draw(0), 1)
    data.qpos[:], data.qvel[:] = q[0], v[0]
    now = moment(batch, data.qpos, data.qvel)
    for _ in range(60):
        action = rng.uniform(-1, 1, 1)
        data.ctrl[:] = action
        mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        now, reward, over = batch.step(now, tensor(action))
        cosine, sine = data.xmat[2:, 8], data.xmat[2:, 2]
        place = np.concatenate([data.qpos[:1], np.stack([cosine, sine], -1).ravel()])
        np.testing.assert_allclose(batch.task.observe(now)[0], np.concatenate([place, data.qvel]), atol=1e-9)
        calm = tolerance(action, margin=1, value_at_margin=0, sigmoid="quadratic")[0]
        slow, centred = tolerance(data.qvel[1:], margin=5).min(), tolerance(data.qpos[0], margin=2)
        expected = (0.5 + 0.5 * cosine).mean() * (4 + calm) / 5 * (1 + slow) / 2 * (1 + centred) / 2
        assert reward.item() == pytest.approx(expected, abs=1e-9) and not over
