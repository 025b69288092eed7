"""Observations, rewards and terminations equal those of Gymnasium's and dm_control's environments for the same states."""

import gymnasium as gym
import mujoco
import numpy as np
import pytest
import torch
from dm_control.suite import cartpole, humanoid
from dm_control.utils.rewards import tolerance

from artigrad.envs import TASKS
from artigrad.envs.batch import Batch
from artigrad.envs.env_task import EnvState

GYM = ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d")


def tensor(x):
    return torch.tensor(np.array(x), dtype=torch.float64)[None]


def moment(batch, q, v):
    now = EnvState(tensor(q), tensor(v), torch.zeros(1, 0), torch.zeros(1, 0), torch.zeros(1, dtype=torch.long))
    return now._replace(extras=batch.extras(now[:2], now[:2], None))


def theirs(name):
    """Gymnasium's environment with a converged solver."""
    env = gym.make(f"{name}-v5").unwrapped
    env.model.opt.solver, env.model.opt.tolerance, env.model.opt.iterations = mujoco.mjtSolver.mjSOL_NEWTON, 1e-14, 100
    return env


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", GYM)
def test_steps_match_gymnasium(name):
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
            now = now._replace(q=tensor(env.data.qpos), v=tensor(env.data.qvel))  # against accumulation of errors
            if terminated:
                break
    assert ends or name in ("Ant", "HalfCheetah")


@pytest.mark.parametrize("name", GYM)
def test_initial_states_have_gymnasiums_distribution(name):
    """Means and standard deviations of every entry; quaternions before normalization."""
    env, task = theirs(name), TASKS[name]()
    q, v = task.sample_initial_state(Batch(task, dtype="f64").random_source(0), 4000)
    drawn = []
    for seed in range(400):
        env.reset(seed=seed)
        drawn.append((env.data.qpos.copy(), env.data.qvel.copy()))
    for ours, other in ((q.numpy(), np.stack([x for x, _ in drawn])), (v.numpy(), np.stack([x for _, x in drawn]))):
        spread = other.std(0)
        assert (np.abs(ours.mean(0) - other.mean(0)) < 0.25 * spread).all()
        np.testing.assert_allclose(ours.std(0), spread, rtol=0.15)


@pytest.mark.parametrize("poles", [1, 2, 3])
def test_cartpole_steps_match_dm_control(poles):
    """dm_control's file in MuJoCo; rewards by its functions."""
    xml, assets = cartpole.get_model_and_assets(poles)
    model = mujoco.MjModel.from_xml_string(xml, assets)
    data, batch, rng = (
        mujoco.MjData(model),
        Batch("CartpoleSwingUp", poles=poles, dtype="f64"),
        np.random.default_rng(0),
    )
    q, v = batch.task.sample_initial_state(batch.random_source(0), 1)
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
        slow, centered = tolerance(data.qvel[1:], margin=5).min(), tolerance(data.qpos[0], margin=2)
        expected = (0.5 + 0.5 * cosine).mean() * (4 + calm) / 5 * (1 + slow) / 2 * (1 + centered) / 2
        assert reward.item() == pytest.approx(expected, abs=1e-9) and not over


class SuitePhysics:
    """The physics interface of dm_control's task on MuJoCo: dm_control's class does not load under MuJoCo 4."""

    def __init__(self):
        xml, assets = humanoid.get_model_and_assets()
        self.model = mujoco.MjModel.from_xml_string(xml, assets)
        self.model.opt.tolerance, self.model.opt.iterations = 1e-14, 100
        self.data = mujoco.MjData(self.model)

    def put(self, q):
        self.data.qpos[:], self.data.qvel[:] = q, 0.0
        mujoco.mj_forward(self.model, self.data)

    def step(self, action):
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, 5)
        mujoco.mj_forward(self.model, self.data)

    def place(self, name):
        return self.data.body(name).xpos

    def torso_vertical_orientation(self):
        return self.data.body("torso").xmat[6:]

    def torso_upright(self):
        return self.torso_vertical_orientation()[2]

    def head_height(self):
        return self.place("head")[2]

    def center_of_mass_velocity(self):
        return self.data.sensor("torso_subtreelinvel").data

    def joint_angles(self):
        return self.data.qpos[7:]

    def velocity(self):
        return self.data.qvel

    def control(self):
        return self.data.ctrl

    def extremities(self):
        R, torso = self.data.body("torso").xmat.reshape(3, 3), self.place("torso")
        ends = [side + limb for side in ("left_", "right_") for limb in ("hand", "foot")]
        return np.hstack([(self.place(name) - torso) @ R for name in ends])


@pytest.mark.parametrize("speed", [0, 1, 10])
def test_humanoid_steps_match_dm_control(speed):
    """Observations and rewards by dm_control's functions, on MuJoCo's trajectory."""
    physics, task = SuitePhysics(), humanoid.Humanoid(speed, pure_state=False)
    batch, rng = Batch("SuiteHumanoid", speed=float(speed), dtype="f64", threads=1), np.random.default_rng(0)
    assert batch.sim.dt == physics.model.opt.timestep
    first, _ = batch.task.sample_initial_state(batch.random_source(0), 3)
    first[1:, 2] = 0.6  # contact follows soon
    touched = 0
    for q in first.numpy():
        physics.put(q)
        now = moment(batch, q, physics.data.qvel)
        for _ in range(25):
            action = rng.uniform(-1, 1, 21)
            physics.step(action)
            now, reward, over = batch.step(now, tensor(action))
            seen = np.concatenate([np.atleast_1d(x) for x in task.get_observation(physics).values()])
            np.testing.assert_allclose(batch.task.observe(now)[0], seen, rtol=1e-7, atol=1e-7)
            assert reward.item() == pytest.approx(task.get_reward(physics), rel=1e-8, abs=1e-8) and not over
            now = now._replace(q=tensor(physics.data.qpos), v=tensor(physics.data.qvel))
            touched += physics.data.ncon
    assert touched


def test_humanoid_initial_states_have_no_contact():
    task, physics = TASKS["SuiteHumanoid"](), SuitePhysics()
    q, v = task.sample_initial_state(Batch(task, dtype="f64").random_source(0), 200)
    for row in q.numpy():
        physics.put(row)
        assert physics.data.ncon == 0
    assert (v == 0).all() and len(np.unique(q.numpy(), axis=0)) > 100
    low, high = physics.model.jnt_range[1:].T
    assert (q.numpy()[:, 7:] >= low).all() and (q.numpy()[:, 7:] <= high).all()
    assert (q.numpy()[:, 7:].std(0) > 0.2 * (high - low)).all() and (q.numpy()[:, 3:7].std(0) > 0.4).all()
