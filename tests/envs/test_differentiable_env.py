"""Environments in PyTorch: gradients match differences, episodes end and begin anew, cotangents are held within bounds."""

import mujoco
import numpy as np
import pytest
import torch

import artigrad as ag
from artigrad.envs import TASKS, DifferentiableEnv, EnvTask, Moment

each = pytest.mark.parametrize("name", TASKS)


def settled(name, robots=2, **options):
    """Robots some steps after the beginning."""
    env = DifferentiableEnv(name, robots, dtype="f64", threads=1, seed=1, **options)
    env.reset()
    for _ in range(3):
        env.step(torch.zeros(robots, env.action_size, dtype=torch.float64))
    env.detach()
    return env


@each
def test_gradients_match_differences(name):
    """Of rewards and observations of two steps, with respect to the first state and both actions."""
    env = settled(name)
    start, rng = env.now, torch.Generator().manual_seed(0)
    wrenches = {"Ant": 78, "Humanoid": 78}.get(name, 0)  # observed last, and without gradient
    shape = (2, 2, env.action_size)
    actions = 0.8 * env.task.limit * (2 * torch.rand(shape, generator=rng, dtype=torch.float64) - 1)
    weights = torch.randn(2, env.observation_size, generator=rng, dtype=torch.float64)
    if wrenches:
        weights[:, -wrenches:] = 0.0
        env.task.contact_cost = 0.0

    def value(q, v, actions):
        env.now = start._replace(q=q, v=v)
        if env.task.seen_size:
            env.now = env.now._replace(seen=env.batch.seen((q, v), (q, v), None))
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
    """A kilometre away a step is what it is here: rewards and gradients to the action."""
    env = DifferentiableEnv(name, 2, threads=1, seed=1)
    env.reset()
    action = 0.3 * torch.ones(2, env.action_size)
    env.step(action)
    start, found = env.now, []
    for place in (0.0, 1000.0):
        env.now, given = env.task.moved(start, torch.full((2, env.task.hidden), place)), action.clone().requires_grad_()
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


def test_a_new_episode_begins_within_the_step_and_no_gradient_passes():
    env = settled("Hopper", 3)
    env.now = env.now._replace(steps=torch.tensor([3, 998, 999]))
    env.now.q[0, 1] = 0.6  # down
    action = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    found = env.step(action)
    assert found.terminated.tolist() == [True, False, False] and found.truncated.tolist() == [False, False, True]
    assert env.now.steps.tolist() == [0, 999, 0]
    assert found.last[0, 0] < 0.7 < 1.2 < found.observation[0, 0]
    assert torch.equal(found.last[1], found.observation[1]) and not torch.equal(found.last[2], found.observation[2])
    (grad,) = torch.autograd.grad(found.observation.sum(), action, retain_graph=True)
    assert grad[1].any() and not grad[0].any() and not grad[2].any()
    (grad,) = torch.autograd.grad(found.last.sum(), action)
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


def test_cotangents_are_cut_down_robot_by_robot():
    def gradient(clip):
        env = settled("Ant", 2, contact_forces=False)
        env.clip = clip
        action = torch.zeros(2, 8, dtype=torch.float64, requires_grad=True)
        found = env.step(action)
        loss = (found.last * torch.tensor([[1e-3], [1e3]], dtype=torch.float64)).sum()
        return torch.autograd.grad(loss, action)[0]

    free, cut = gradient(None), gradient(1.0)
    assert torch.equal(free[0], cut[0]) and free[1].norm() > 1.0
    torch.testing.assert_close(cut[1], free[1] / free[1].norm())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_robot_that_overflows_has_failed_and_leaves_no_nan():
    env = settled("CartpoleSwingUp", 3)
    env.now.v[1] = 1e200
    action = torch.zeros(3, 1, dtype=torch.float64, requires_grad=True)
    found = env.step(action)
    (grad,) = torch.autograd.grad(found.reward.sum() + env.step(action).last.sum(), action)
    assert found.terminated.tolist() == [False, True, False] and found.reward[1] == 0.0
    assert grad.isfinite().all() and grad[0].any()


def test_neighbours_do_not_matter():
    env = settled("Ant", 5)
    action = torch.linspace(-1, 1, 40, dtype=torch.float64).reshape(5, 8)
    alone = DifferentiableEnv("Ant", 1, dtype="f64", threads=1)
    alone.now = Moment(*(x[3:4] for x in env.now))
    for all_of_them, one in zip(env.step(action), alone.step(action[3:4]), strict=True):
        np.testing.assert_allclose(all_of_them[3], one[0], rtol=1e-12, atol=1e-12)


def test_what_is_wrong_is_said():
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
    """A pendulum whose motor follows its control slowly."""

    frame_skip, episode, observation_size = 4, 5, 3

    def __init__(self, folder):
        (folder / "filtered.xml").write_text(FILTERED)
        self.model = ag.load(folder / "filtered.xml")

    def start(self, draw, count):
        return draw.uniform(-1.0, 1.0, count, 1), draw.uniform(0.0, 0.0, count, 1)

    def observe(self, now):
        return torch.cat([now.q, now.v, now.act], -1)

    def reward(self, before, action, after):
        return -after.q[:, 0].square() - 0.1 * after.act[:, 0].square()


def test_activations_go_on_from_step_to_step_and_have_gradients(tmp_path):
    task = Filtered(tmp_path)
    env = DifferentiableEnv(task, 2, dtype="f64", threads=1)
    env.reset()
    actions = torch.linspace(-0.9, 0.9, 8, dtype=torch.float64).reshape(4, 2, 1).requires_grad_()
    start, found = env.now, [env.step(a) for a in actions]
    model = mujoco.MjModel.from_xml_string(FILTERED)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = start.q[0], start.v[0]
    for step, action in zip(found, actions, strict=True):
        data.ctrl[:] = action[0].detach()
        mujoco.mj_step(model, data, 4)
        expected = np.concatenate([data.qpos, data.qvel, data.act])
        np.testing.assert_allclose(step.observation[0].detach(), expected, atol=1e-10)

    def total(actions):
        env.now = start
        return torch.stack([env.step(a).reward for a in actions]).sum()

    assert torch.autograd.gradcheck(total, actions)
    assert (env.step(actions[0]).observation[:, 2] == 0).all()  # a new episode


def test_slopes_of_robots_with_activations_are_refused(tmp_path):
    env = DifferentiableEnv(Filtered(tmp_path), 2, threads=1)
    env.reset()
    with pytest.raises(ag.InputError, match="has activations"):
        env.slopes(env.now, torch.zeros(2, 1))


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        (
            "start",
            lambda self, draw, count: (draw.uniform(0, 1, count, 2), draw.uniform(0, 1, count, 1)),
            "start gives",
        ),
        ("goals", lambda self, draw, count: draw.uniform(0, 1, count, 4), r"goals gives \(2, 4\)"),
        (
            "observe",
            lambda self, now: now.q,
            r"observe gives \(2, 1\); wanted is a tensor \(2, 3\), .*observation_size",
        ),
        ("controls", lambda self, action: action[:, :0], "controls gives"),
        ("reward", lambda self, before, action, after: after.q, r"reward gives \(2, 1\); wanted is a tensor \(2,\)"),
        ("over", lambda self, now: now.q > 1.0, "over gives"),
    ],
)
def test_what_a_task_gives_in_a_wrong_shape_is_named(tmp_path, monkeypatch, name, wrong, said):
    monkeypatch.setattr(Filtered, name, wrong)
    with pytest.raises(ag.InputError, match=f"Filtered.{said}"):
        env = DifferentiableEnv(Filtered(tmp_path), 2, threads=1)
        env.reset()
        env.step(torch.zeros(2, 1))
