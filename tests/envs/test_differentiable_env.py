"""DifferentiableEnv: gradients match differences, episodes end and are reset, cotangents are clipped."""

import mujoco
import numpy as np
import pytest
import torch

import artigrad as ag
from artigrad.envs import TASKS, DifferentiableEnv, EnvState, EnvTask

each = pytest.mark.parametrize("name", TASKS)


def settled(name, robots=2, **options):
    """Return environments some steps after a reset."""
    env = DifferentiableEnv(name, robots, dtype="f64", threads=1, seed=1, **options)
    env.reset()
    for _ in range(3):
        env.step(torch.zeros(robots, env.action_size, dtype=torch.float64))
    env.detach()
    return env


@each
def test_gradients_match_differences(name):
    """Rewards and observations of two steps, with respect to the first state and both actions."""
    env = settled(name)
    start, rng = env.state, torch.Generator().manual_seed(0)
    wrenches = {"Ant": 78, "Humanoid": 78}.get(name, 0)  # observed last, and without gradient
    shape = (2, 2, env.action_size)
    actions = 0.8 * env.task.limit * (2 * torch.rand(shape, generator=rng, dtype=torch.float64) - 1)
    weights = torch.randn(2, env.observation_size, generator=rng, dtype=torch.float64)
    if wrenches:
        weights[:, -wrenches:] = 0.0
        env.task.contact_cost_weight = 0.0

    def value(q, v, actions):
        env.state = start._replace(q=q, v=v)
        if env.task.extras_size:
            env.state = env.state._replace(extras=env.batch.extras((q, v), (q, v), None))
        found = [env.step(a) for a in actions]
        assert not torch.stack([x.terminated for x in found]).any()
        return sum(x.reward.sum() for x in found) + (weights * found[-1].observation).sum()

    given = [x.clone().requires_grad_() for x in (start.q, start.v, actions)]
    grads = torch.autograd.grad(value(*given), given)
    h, draw = 1e-7, torch.Generator().manual_seed(1)
    quaternions = [a for a, _ in ag.model.tangent.quaternions(env.task.model)]
    for k, (x, grad) in enumerate(zip(given, grads, strict=True)):
        d = torch.randn(x.shape, generator=draw, dtype=torch.float64)
        for a in quaternions if k == 0 else []:  # along the sphere
            unit = x.detach()[:, a : a + 4]
            d[:, a : a + 4] -= (d[:, a : a + 4] * unit).sum(-1, keepdim=True) * unit
        ends = [[y.detach() + (s * h * d if j == k else 0.0) for j, y in enumerate(given)] for s in (1, -1)]
        up, down = (value(*end).item() for end in ends)
        assert (grad * d).sum().item() == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6 * float(grad.norm()))


@pytest.mark.parametrize("name", ["HalfCheetah", "Ant"])
def test_single_precision_far_from_the_origin(name):
    """Rewards and gradients of a step are equal at the origin and 1 km away."""
    env = DifferentiableEnv(name, 2, threads=1, seed=1)
    env.reset()
    action = 0.3 * torch.ones(2, env.action_size)
    env.step(action)
    start, found = env.state, []
    for place in (0.0, 1000.0):
        env.state, given = (
            env.task.translated(start, torch.full((2, env.task.num_excluded_positions), place)),
            action.clone().requires_grad_(),
        )
        step = env.step(given)
        found.append([step.observation.detach(), *torch.autograd.grad(step.reward.sum(), given)])
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(there, here, rtol=1e-3, atol=1e-3)


@each
def test_same_seed_same_bits(name):
    def play(seed):
        env = DifferentiableEnv(name, 3, threads=1, seed=seed)
        seen = [env.reset()]
        for k in range(6):
            seen.append(env.step(torch.full((3, env.action_size), 0.1 * (-1) ** k)).observation)
        return torch.stack(seen)

    assert torch.equal(play(5), play(5))


def test_auto_reset_within_the_step_without_gradient():
    env = settled("Hopper", 3)
    env.state = env.state._replace(steps=torch.tensor([3, 998, 999]))
    env.state.q[0, 1] = 0.6  # down
    action = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    found = env.step(action)
    assert found.terminated.tolist() == [True, False, False] and found.truncated.tolist() == [False, False, True]
    assert env.state.steps.tolist() == [0, 999, 0]
    assert found.next_observation[0, 0] < 0.7 < 1.2 < found.observation[0, 0]
    assert torch.equal(found.next_observation[1], found.observation[1]) and not torch.equal(
        found.next_observation[2], found.observation[2]
    )
    (grad,) = torch.autograd.grad(found.observation.sum(), action, retain_graph=True)
    assert grad[1].any() and not grad[0].any() and not grad[2].any()
    (grad,) = torch.autograd.grad(found.next_observation.sum(), action)
    assert grad.any(-1).all()


def test_detach_cuts_the_graph():
    env = settled("Hopper", 1)
    first = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    env.step(first)
    assert torch.autograd.grad(env.step(first).reward.sum(), first)[0].any()
    env.step(first)
    env.detach()
    second = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.grad(env.step(second).reward.sum(), first, allow_unused=True)[0] is None


def test_cotangents_are_clipped_per_environment():
    def gradient(clip):
        env = settled("Ant", 2, contact_forces=False)
        env.clip = clip
        action = torch.zeros(2, 8, dtype=torch.float64, requires_grad=True)
        found = env.step(action)
        loss = (found.next_observation * torch.tensor([[1e-3], [1e3]], dtype=torch.float64)).sum()
        return torch.autograd.grad(loss, action)[0]

    free, cut = gradient(None), gradient(1.0)
    assert torch.equal(free[0], cut[0]) and free[1].norm() > 1.0
    torch.testing.assert_close(cut[1], free[1] / free[1].norm())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflow_terminates_and_leaves_no_nan():
    env = settled("CartpoleSwingUp", 3)
    env.state.v[1] = 1e200
    action = torch.zeros(3, 1, dtype=torch.float64, requires_grad=True)
    found = env.step(action)
    (grad,) = torch.autograd.grad(found.reward.sum() + env.step(action).next_observation.sum(), action)
    assert found.terminated.tolist() == [False, True, False] and found.reward[1] == 0.0
    assert grad.isfinite().all() and grad[0].any()


def test_environments_of_a_batch_are_independent():
    env = settled("Ant", 5)
    action = torch.linspace(-1, 1, 40, dtype=torch.float64).reshape(5, 8)
    alone = DifferentiableEnv("Ant", 1, dtype="f64", threads=1)
    alone.state = EnvState(*(x[3:4] for x in env.state))
    for all_of_them, one in zip(env.step(action), alone.step(action[3:4]), strict=True):
        np.testing.assert_allclose(all_of_them[3], one[0], rtol=1e-12, atol=1e-12)


def test_wrong_arguments_are_reported():
    with pytest.raises(ag.InputError, match="clip"):
        DifferentiableEnv("Hopper", 1, clip=0.0)
    env = DifferentiableEnv("Hopper", 2)
    with pytest.raises(ag.InputError, match="reset"):
        env.step(torch.zeros(2, 3))
    env.reset()
    with pytest.raises(ag.InputError, match=r"actions are a tensor \(2, 3\)"):
        env.step(torch.zeros(3))


FILTERED = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <body><joint name="j" axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/></body>
  </worldbody>
  <actuator><general joint="j" dyntype="filter" dynprm="0.1" gainprm="5" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


class Filtered(EnvTask):
    """Pendulum whose motor follows its control slowly."""

    frame_skip, max_episode_steps, observation_size = 4, 5, 3

    def __init__(self, folder):
        (folder / "filtered.xml").write_text(FILTERED)
        self.model = ag.load(folder / "filtered.xml")

    def sample_initial_state(self, random, count):
        return random.uniform(-1.0, 1.0, count, 1), random.uniform(0.0, 0.0, count, 1)

    def observe(self, now):
        return torch.cat([now.q, now.v, now.act], -1)

    def reward(self, before, action, after):
        return -after.q[:, 0].square() - 0.1 * after.act[:, 0].square()


def test_activations_continue_between_steps_and_have_gradients(tmp_path):
    task = Filtered(tmp_path)
    env = DifferentiableEnv(task, 2, dtype="f64", threads=1)
    env.reset()
    actions = torch.linspace(-0.9, 0.9, 8, dtype=torch.float64).reshape(4, 2, 1).requires_grad_()
    start, found = env.state, [env.step(a) for a in actions]
    model = mujoco.MjModel.from_xml_string(FILTERED)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = start.q[0], start.v[0]
    for step, action in zip(found, actions, strict=True):
        data.ctrl[:] = action[0].detach()
        mujoco.mj_step(model, data, 4)
        expected = np.concatenate([data.qpos, data.qvel, data.act])
        np.testing.assert_allclose(step.observation[0].detach(), expected, atol=1e-10)

    def total(actions):
        env.state = start
        return torch.stack([env.step(a).reward for a in actions]).sum()

    assert torch.autograd.gradcheck(total, actions)
    assert (env.step(actions[0]).observation[:, 2] == 0).all()  # a new episode


def test_step_jacobian_refuses_models_with_activations(tmp_path):
    env = DifferentiableEnv(Filtered(tmp_path), 2, threads=1)
    env.reset()
    with pytest.raises(ag.InputError, match="has activations"):
        env.step_jacobian(env.state, torch.zeros(2, 1))


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        (
            "sample_initial_state",
            lambda self, random, count: (random.uniform(0, 1, count, 2), random.uniform(0, 1, count, 1)),
            "sample_initial_state returned",
        ),
        ("sample_goals", lambda self, random, count: random.uniform(0, 1, count, 4), r"sample_goals returned \(2, 4\)"),
        (
            "observe",
            lambda self, now: now.q,
            r"observe returned \(2, 1\); expected a tensor \(2, 3\), .*observation_size",
        ),
        ("controls", lambda self, action: action[:, :0], "controls returned"),
        ("reward", lambda self, before, action, after: after.q, r"reward returned \(2, 1\); expected a tensor \(2,\)"),
        ("terminated", lambda self, state: state.q > 1.0, "terminated returned"),
    ],
)
def test_wrong_shapes_from_a_task_are_reported(tmp_path, monkeypatch, name, wrong, message):
    monkeypatch.setattr(Filtered, name, wrong)
    with pytest.raises(ag.InputError, match=f"Filtered.{message}"):
        env = DifferentiableEnv(Filtered(tmp_path), 2, threads=1)
        env.reset()
        env.step(torch.zeros(2, 1))
