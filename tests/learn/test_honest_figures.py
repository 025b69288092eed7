"""Metrics of a training are those of whole episodes and of the averaged policy, and finite; settings have ranges."""

import pytest
import torch

import artigrad as ag
from artigrad.envs import TASKS
from artigrad.learn import Player, Training

SMALL = {"threads": 1, "num_envs": 4, "hidden": (8,)}


class Fails(TASKS["PendulumReach"]):
    """Task that fails at step 7 of 20, with reward 1 per step."""

    max_episode_steps = 20

    def terminated(self, state):
        return state.steps >= 7

    def reward(self, before, action, after):
        return 1.0 + 0.0 * after.q[:, 0]


class NotFinite(TASKS["PendulumReach"]):
    def reward(self, before, action, after):
        return super().reward(before, action, after).index_fill(0, torch.tensor([0]), torch.nan)


class Flat(TASKS["PendulumReach"]):
    def reward(self, before, action, after):
        return super().reward(before, action, after).detach()


@pytest.mark.parametrize("algorithm", ["ppo", "policy-enhancement"])
def test_returns_are_those_of_whole_episodes(algorithm):
    learner = Training(Fails(), algorithm, **SMALL, num_steps=None if algorithm != "ppo" else 8).learner
    metrics = [learner.update() for _ in range(4)][-1]
    assert (metrics["return"], metrics["length"]) == (7.0, 7.0)


def test_the_averaged_policy_begins_at_the_first_update():
    learner = Training("PendulumReach", "shac", **SMALL, ema_decay=0.99, horizon_seconds=0.05).learner
    first = [w.detach().clone() for w in learner.policy.parameters()]
    sums, weight = [torch.zeros_like(w) for w in first], 0.0
    for _ in range(3):
        learner.update()
        learner.update_ema()
        sums = [0.99 * x + w.detach() for x, w in zip(sums, learner.policy.parameters(), strict=True)]
        weight = 0.99 * weight + 1.0
    for average, x in zip(learner.ema_policy.parameters(), sums, strict=True):
        torch.testing.assert_close(average, x / weight)


@pytest.mark.filterwarnings("ignore:after .* a gradient of the training is not finite:RuntimeWarning")
def test_a_reward_that_is_not_finite_ends_the_training():
    for algorithm, more in (("ppo", {"num_steps": 4}), ("sac", {"learning_starts": 4, "batch_size": 8})):
        with pytest.raises(FloatingPointError, match="a reward of NotFinite is not finite"):
            Training(NotFinite(), algorithm, **SMALL, **more).run(400)


def test_gradients_that_stay_not_finite_end_the_training(monkeypatch):
    learner = Training("PendulumReach", "ppo", **SMALL, num_steps=4).learner
    monkeypatch.setattr("artigrad.learn.learner.MAX_SKIPPED_STEPS", 3)
    for w in learner.parameters:
        w.grad = torch.full_like(w, torch.nan)
    with pytest.warns(RuntimeWarning, match="not finite; its optimizer step is skipped"):
        learner.clip_and_step(learner.optimizer, learner.parameters)
    learner.clip_and_step(learner.optimizer, learner.parameters)
    with pytest.raises(FloatingPointError, match="3 gradients in succession are not finite"):
        learner.clip_and_step(learner.optimizer, learner.parameters)


def test_shac_refuses_rewards_without_a_gradient():
    with pytest.raises(ag.InputError, match="no reward of Flat has a gradient"):
        Training(Flat(), "shac", **SMALL, horizon_seconds=0.05).run(10)


@pytest.mark.parametrize(
    ("algorithm", "setting"),
    [
        ("ppo", {"ema_decay": 1.0}),
        ("shac", {"ema_decay": 2.0}),
        ("ppo", {"max_episode_steps": 0}),
        ("shac", {"max_episode_steps": -5}),
        ("shac", {"gamma": 1.5}),
        ("ppo", {"gamma": 1.0}),
        ("bptt", {"gamma": 1.1}),
        ("ppo", {"gae_lambda": 2.0}),
        ("sac", {"learning_rate": 0.0}),
        ("sac", {"tau": -0.1}),
        ("ppo", {"num_envs": 0}),
    ],
)
def test_settings_out_of_range_are_refused(algorithm, setting):
    (name,) = setting
    with pytest.raises(ag.InputError, match=rf"{name} of \w+ is "):
        Training("PendulumReach", algorithm, **{**SMALL, **setting})


def test_a_player_refuses_a_task_with_other_attributes(tmp_path):
    task = TASKS["PendulumReach"](2, substeps=8)
    training = Training(task, "ppo", tmp_path, **SMALL, num_steps=2)
    training.run(8)
    with pytest.raises(ag.InputError, match=r"was trained for PendulumReach with .*frame_skip=8: pass this task"):
        Player(training.checkpoint)
    assert Player(training.checkpoint, task=task).task.frame_skip == 8
    with pytest.raises(ag.InputError, match="holds another training"):
        Training("PendulumReach", "ppo", tmp_path, **SMALL, num_steps=2)
