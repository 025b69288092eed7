"""Learning: networks and returns, reproducibility and resumption of every algorithm, Jacobians, evaluation, errors."""

import csv
import math
import signal

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import artigrad as ag
from artigrad.cli import app
from artigrad.cli.own_task import open_task
from artigrad.envs import TASKS, DifferentiableEnv
from artigrad.learn import ALGORITHMS, Player, Training
from artigrad.learn.episodes import lambda_returns
from artigrad.learn.mbpo import Ensemble, MbpoSettings
from artigrad.learn.networks import BatchedMLP, Normalizer
from artigrad.learn.presets import PRESETS, TASK_OPTIONS
from artigrad.learn.replay import ReplayBuffer

SMALL = {  # short updates, and learning in the second one
    "shac": {"num_envs": 4, "horizon_seconds": 0.07, "critic_iterations": 2},
    "ppo": {"num_envs": 4, "num_steps": 8, "update_epochs": 2, "num_minibatches": 2},
    "bptt": {"num_envs": 2, "horizon": 6},
    "sac": {"num_envs": 4, "learning_starts": 4, "critic_updates": 2, "batch_size": 8},
    "policy-enhancement": {"num_envs": 4, "num_steps": 6, "update_epochs": 2, "critic_updates": 2, "batch_size": 8},
    "mbpo": {
        "num_envs": 4,
        "learning_starts": 4,
        "critic_updates": 2,
        "batch_size": 8,
        "num_model_rollouts": 16,
        "model_train_frequency": 4,
        "model_epochs": 1,
        "critic_layer_norm": True,
        "policy_frequency": 2,
    },
    "sample-enhancement": {
        "num_envs": 4,
        "learning_starts": 4,
        "critic_updates": 2,
        "batch_size": 8,
        "num_model_rollouts": 16,
        "model_train_frequency": 4,
        "model_epochs": 1,
    },
    "sql": {"num_envs": 4, "learning_starts": 4, "critic_updates": 2, "batch_size": 8, "num_particles": 4},
}
each = pytest.mark.parametrize("algorithm", ALGORITHMS)


def training(algorithm, folder=None, seed=3, task="PendulumReach"):
    return Training(task, algorithm, folder, threads=1, seed=seed, hidden=(16, 16), **SMALL[algorithm])


def weights(run):
    return torch.cat([w.detach().flatten() for w in run.learner.policy.parameters()])


@each
def test_resumed_training_equals_an_uninterrupted_one_to_the_bit(algorithm, tmp_path):
    whole = training(algorithm)
    first = weights(whole).clone()
    for _ in range(4):
        whole.learner.update()
    assert not torch.equal(first, weights(whole))
    part = training(algorithm, tmp_path)
    for _ in range(2):
        part.learner.update()
    part.save()
    rest = training(algorithm, tmp_path)
    assert rest.learner.steps == part.learner.steps
    for _ in range(2):
        rest.learner.update()
    assert torch.equal(weights(whole), weights(rest))
    other = training(algorithm, seed=4)
    for _ in range(4):
        other.learner.update()
    assert not torch.equal(weights(whole), weights(other))


def test_checkpoint_of_other_settings_is_refused(tmp_path):
    training("ppo", tmp_path).save()
    training("ppo", tmp_path)
    with pytest.raises(ag.InputError, match=r"holds a training with seed=3 and not 4: .* or choose another folder"):
        training("ppo", tmp_path, seed=4)
    how = SMALL["ppo"] | {"gamma": 0.5, "hidden": [16, 16]}
    with pytest.raises(ag.InputError, match=r"with gamma=0\.99 and not 0\.5: give it the same settings"):
        Training("PendulumReach", "ppo", tmp_path, threads=1, seed=3, **how)


@pytest.mark.parametrize("contents", [b"", b"words", "half", {"weights": torch.zeros(3)}, torch.zeros(3)])
def test_damaged_checkpoint_is_refused(tmp_path, contents):
    path = tmp_path / "checkpoint.pt"
    training("ppo", tmp_path).save()
    if isinstance(contents, dict | torch.Tensor):
        torch.save(contents, path)
    else:
        path.write_bytes(contents if isinstance(contents, bytes) else path.read_bytes()[:5000])
    for reader in (lambda: training("ppo", tmp_path), lambda: Player(path)):
        with pytest.raises(
            ag.InputError, match=r"checkpoint\.pt is not the checkpoint of a training, or a damaged one"
        ):
            reader()


def test_lambda_returns_by_hand():
    """After the second step the first environment terminates, the second is truncated, the third continues."""
    rewards = torch.tensor([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
    last = torch.tensor([[10.0] * 3, [20.0] * 3, [30.0] * 3])
    terminated = torch.tensor([[False] * 3, [True, False, False], [False] * 3])
    ended = torch.tensor([[False] * 3, [True, True, False], [False] * 3])
    g, lam = 0.9, 0.8
    found = lambda_returns(rewards, last, terminated, ended, g, lam)
    third = 3 + g * 30
    second = [2.0, 2 + g * 20, 2 + g * (0.2 * 20 + lam * third)]
    expected = [[1 + g * (0.2 * 10 + lam * x) for x in second], second, [third] * 3]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_normalizer_has_mean_and_deviation_of_all_observations():
    rows = torch.randn(300, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 10.0, 0.1]) + 5.0
    normalizer = Normalizer(3)
    assert torch.equal(normalizer(rows[:5].clamp(max=9.0)), rows[:5].clamp(max=9.0).clamp(-10, 10))
    for piece in rows.split((100, 50, 150)):
        normalizer.update(piece)
    torch.testing.assert_close(normalizer.mean, rows.double().mean(0))
    torch.testing.assert_close(normalizer.square / 300, rows.double().var(0, correction=0))
    assert normalizer(rows).std(0).sub(1).abs().max() < 0.02
    for value in np.random.default_rng(0).normal(size=50):  # constant observations do not give NaN
        same = Normalizer(1)
        for _ in range(3):
            same.update(torch.full((1000, 1), float(value)))
        assert same(torch.full((1, 1), float(value))).abs() < 1e-3


def test_replay_buffer_keeps_the_latest_rows():
    replay = ReplayBuffer(1500, torch.device("cpu"))
    for k in range(20):
        replay.add(x=torch.arange(100.0) + 100 * k)
    assert replay.count == 1500 and set(replay.rows["x"].tolist()) == set(map(float, range(500, 2000)))
    assert len(replay.sample(64, torch.Generator().manual_seed(0))["x"]) == 64


@pytest.mark.parametrize("norm", [False, True])
def test_batched_mlp_equals_single_networks(norm):
    torch.manual_seed(0)
    nets = BatchedMLP(3, [4, 8, 8, 2], torch.relu, layer_norm=norm)
    x = torch.randn(3, 5, 4)
    parts = [p.view(s) for p, s in zip(nets.flat.split([math.prod(s) for s in nets.shapes]), nets.shapes, strict=True)]
    found = nets(x)
    for k in range(3):
        y = x[k]
        for layer in range(3):
            y = y @ parts[2 * layer][k] + parts[2 * layer + 1][k]
            if layer < 2:
                y = torch.relu(torch.nn.functional.layer_norm(y, (8,)) if norm else y)
        torch.testing.assert_close(found[k], y)
    which = torch.tensor([2, 0])
    torch.testing.assert_close(nets(x[which], which), found[which])


def test_ensemble_predicts_means_and_standard_deviations():
    """One entry of the output is deterministic, one has noise of standard deviation 0.5."""
    torch.manual_seed(0)
    model = Ensemble(1, 1, MbpoSettings(ensemble_size=2, num_elites=2, model_hidden=(32,)))
    x = torch.randn(2, 4000, 2)
    y = torch.stack([torch.tanh(x[..., 0]), x[..., 1] + 0.5 * torch.randn(2, 4000)], -1)
    model.inputs.restart(x)
    model.outputs.restart(y)
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(300):
        at = torch.randint(4000, (256,))
        adam.zero_grad()
        model.losses(x[:, at], y[:, at])[0].sum().backward()
        adam.step()
    std = (model(x)[1].exp() * model.outputs.std()).mean((0, 1))
    assert std[0] < 0.25 and 0.4 < std[1] < 0.6, std
    assert (model.losses(x, y)[1] < 0.2).all()  # noise alone is half of 0.25 / 1.25


def moving_pendulums():
    """Two environments of two links, and the actions that move them."""
    env = DifferentiableEnv("PendulumReach", 2, dtype="f64", threads=1, links=2)
    env.reset()
    action = torch.tensor([[0.5, -0.3], [0.2, 0.9]], dtype=torch.float64)
    for _ in range(3):
        env.step(action)
    env.detach()
    return env, action


def test_action_jacobian_matches_differences():
    env, action = moving_pendulums()
    now, h = env.state, 1e-6
    end, J = env.action_jacobian(now, action)
    torch.testing.assert_close(task_step(env, now, action), torch.cat([end.q, end.v, end.extras], -1), rtol=0, atol=0)
    for k in range(2):
        moved = h * torch.eye(2, dtype=torch.float64)[k]
        ends = [task_step(env, now, action + sign * moved) for sign in (1.0, -1.0)]
        torch.testing.assert_close(J[..., k], (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-7)


def task_step(env, now, action):
    """(q, v, extras) after a step."""
    after = env.batch.step(now, action).state
    return torch.cat([after.q, after.v, after.extras], -1)


@pytest.mark.parametrize("task", ["Ant", "Hopper"])
def test_error_of_extrapolated_transitions_is_quadratic(task):
    """Extrapolated transitions against simulated ones: half the change of action has a quarter of the error."""
    how = {"threads": 1, "num_envs": 64, "learning_starts": 64, "hidden": (8,), "options": TASK_OPTIONS.get(task, {})}
    learner = Training(task, "sample-enhancement", **how).learner
    env = learner.env = DifferentiableEnv(task, 64, dtype="f64", threads=1, seed=3, **how["options"])
    learner.policy.double()
    learner.steps = 64
    learner.observation = env.reset()
    start = env.state
    learner.collect_step()
    rows, off = torch.arange(64), []
    for learner.settings.extra_sample_std in (1e-3, 5e-4):
        learner.generator.manual_seed(0)
        batch = learner.transitions(rows)
        extra = (batch["action"] != learner.replay.at(rows)["action"]).any(-1)
        assert 0.7 < extra.double().mean() < 1.0  # nine of ten
        env.state = start
        true = env.step(batch["action"])
        assert torch.equal(true.terminated, batch["terminated"] > 0.5)
        off.append(
            (true.next_observation - batch["next_observation"]).norm(dim=-1) + (true.reward - batch["reward"]).abs()
        )
        assert off[-1][~extra].max() < 1e-12
    least = off[0] > 1e-11
    ratio = off[1][least] / off[0][least]
    assert ratio.median() < 0.3 and off[0].median() < 1e-5, (ratio, off)


def test_step_jacobian_matches_differences():
    env, action = moving_pendulums()
    now, h = env.state, 1e-6
    J, inputs = env.step_jacobian(now, action), torch.cat([now.q, now.v, action], -1)
    for k in range(6):
        ends = []
        for sign in (1.0, -1.0):
            q, v, a = (inputs + sign * h * torch.eye(6, dtype=torch.float64)[k]).split(2, -1)
            env.state = now._replace(q=q, v=v)
            found = env.step(a.contiguous())
            ends.append(torch.cat([env.state.q, env.state.v, found.next_observation, found.reward[:, None]], -1))
        torch.testing.assert_close(J[..., k], (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("lam", [1.0, 0.0])
def test_return_gradients_are_those_of_the_closed_loop(lam):
    """td_lambda = 1: through physics and policy to the last step; 0: through one step, then by the critic, as published."""
    how = {"threads": 1, "num_envs": 3, "num_steps": 5, "td_lambda": lam, "gamma": 0.9, "hidden": (16, 16)}
    learner = Training("PendulumReach", "policy-enhancement", **how).learner
    env, policy = learner.env, learner.policy
    learner.observation = env.reset()
    learner.decay_learning_rates()
    now, rollout = env.state, learner.collect_rollout()
    found = learner.return_gradients(rollout)[1]
    for t in range(5):
        q, v, action = (rollout[name][t].clone().requires_grad_() for name in ("q", "v", "action"))
        env.state, total, a = now._replace(q=q, v=v, steps=rollout["steps"][t]), 0.0, action
        last = 5 if lam else t + 1
        for k in range(t, last):
            step = env.step(a)
            total = total + 0.9 ** (k - t) * step.reward
            a = (
                policy(step.next_observation, rollout["noise"][k + 1])
                if k < last - 1
                else policy(step.next_observation)
            )
        total = total + 0.9 ** (last - t) * learner.target(step.next_observation, a)
        expected = torch.cat(torch.autograd.grad(total.sum(), (q, v, action)), -1)
        torch.testing.assert_close(found[t], expected, rtol=1e-3, atol=1e-4)


def test_bptt_raises_a_pendulum():
    run = Training(
        "PendulumReach", "bptt", threads=1, options={"links": 1}, learning_rate=3e-2, hidden=(32,), horizon=40
    )
    found = [run.learner.update()["return"] for _ in range(12)]
    assert found[0] < 0.1 and max(found) > 0.3  # 0.5 at best
    assert max(found) <= 0.5 + 1e-6


def test_pathwise_and_likelihood_ratio_gradients_agree():
    """Means over many environments have the same direction and norm."""
    run = Training(
        "PendulumReach",
        "shac",
        threads=1,
        num_envs=4096,
        horizon_seconds=0.05,
        mixed_gradient=True,
        hidden=(4,),
        options={"links": 1},
    )
    learner, found = run.learner, []
    learner.mixture.forward = lambda first, zeroth: found.append((first.clone(), zeroth)) or first
    for _ in range(3):
        learner.update()
    first, zeroth = (torch.stack(x).mean(0) for x in zip(*found, strict=True))
    assert torch.cosine_similarity(first, zeroth, 0) > 0.9
    assert 0.8 < zeroth.norm() / first.norm() < 1.25


def test_horizon_adapts_to_the_fraction_of_clipped_cotangents():
    how = {"threads": 1, "num_envs": 4, "horizon_seconds": 0.04, "adaptive_horizon": True, "critic_iterations": 1}
    calm, wild = (Training("Hopper", "shac", clip=clip, **how) for clip in (1e9, 1e-9))
    grown, shrunk = ([run.learner.update() for _ in range(4)] for run in (calm, wild))
    assert [x["horizon"] for x in grown] == [5, 6, 7, 8] and grown[-1]["clip_fraction"] == 0.0
    assert [x["horizon"] for x in shrunk] == [5, 4, 3, 2] and shrunk[0]["clip_fraction"] > 0.9


def test_run_writes_progress_and_a_policy(tmp_path):
    run = training("shac", tmp_path, task="Hopper")
    seen = []
    run.run(steps=60, watch=seen.append)
    rows = list(csv.DictReader((tmp_path / "progress.csv").read_text().splitlines()))
    assert [float(r["steps"]) for r in rows] == [36.0, 72.0] == [f["steps"] for f in seen]
    player = Player(tmp_path / "checkpoint.pt")
    observation = np.linspace(-1, 1, 11)
    expected = run.learner.ema_policy(torch.tensor(observation[None], dtype=torch.float32))[0]
    np.testing.assert_array_equal(player(observation), expected.detach())
    motion = player.rollout(0.1)
    env = DifferentiableEnv("Hopper", 1, dtype="f64", threads=1)
    seen = env.reset()
    for _ in range(12):
        with torch.no_grad():
            seen = env.step(player.policy(seen.float()).double()).next_observation
    np.testing.assert_allclose(motion.final.q[1:], seen[0, :5], atol=1e-12)
    ours, theirs = player.returns(3), player.gymnasium_returns(3)
    assert np.isfinite(ours).all() and np.isfinite(theirs).all() and ours.shape == theirs.shape == (3,)


def test_checkpoint_holds_the_moving_average_of_the_policy(tmp_path):
    run = Training("Hopper", "shac", tmp_path, threads=1, ema_decay=0.5, hidden=(16, 16), **SMALL["shac"])
    learner = run.learner
    slow, total = torch.zeros_like(weights(run)), 0.0
    for _ in range(2):
        learner.update()
        learner.update_ema()
        slow, total = 0.5 * (slow + weights(run)), 0.5 * (total + 1.0)
    slow /= total  # the untrained policy has no part in it
    played = torch.cat([w.detach().flatten() for w in learner.ema_policy.parameters()])
    torch.testing.assert_close(played, slow)
    assert torch.equal(learner.ema_policy.normalizer.mean, learner.policy.normalizer.mean)
    run.save()
    seen = torch.linspace(-1, 1, 11)
    assert torch.equal(torch.tensor(Player(tmp_path / "checkpoint.pt")(seen)), learner.ema_policy(seen).detach())


def test_pendulum_terminates_after_100_steps():
    """The observation shows it, so that an ensemble of networks predicts it."""
    env = DifferentiableEnv("PendulumReach", 1, threads=1)
    env.reset()
    found = [env.step(torch.zeros(1, 2)) for _ in range(100)]
    assert [bool(x.terminated) for x in found] == [False] * 99 + [True] and not any(x.truncated for x in found)
    over = [bool(env.task.terminated(env.task.state_from_observation(x.next_observation))) for x in found[-2:]]
    assert over == [False, True]


def test_command_line(tmp_path):
    call = ["train", "cartpoleswingup", "--algorithm", "ppo", "--steps", "100", "--folder", str(tmp_path)]
    found = CliRunner().invoke(app, call)
    assert found.exit_code == 0 and "artigrad play" in " ".join(found.output.split())
    assert "continues" in CliRunner().invoke(app, call).output
    wrong = CliRunner().invoke(app, ["train", "unicorn"])
    assert wrong.exit_code == 1 and "tasks are Ant" in " ".join(wrong.output.split())


OWN = """
from artigrad.envs.balancing import CartpoleSwingUp

class TwoPoles(CartpoleSwingUp):
    def __init__(self):
        super().__init__(2)
"""


def test_user_task_is_trained_resumed_and_evaluated(tmp_path):
    """It is passed as an object, and as a file on the command line."""
    (tmp_path / "poles.py").write_text(OWN)
    own, run = str(tmp_path / "poles.py"), str(tmp_path / "run")
    call = ["train", own, "--algorithm", "ppo", "--steps", "100", "--folder", run]
    found = CliRunner().invoke(app, call)
    assert found.exit_code == 0, found.output
    assert "continues" in CliRunner().invoke(app, [*call[:1], own + ":TwoPoles", *call[2:]]).output
    played = CliRunner().invoke(app, ["play", run + "/checkpoint.pt", "--task", own, "--episodes", "1"])
    assert played.exit_code == 0 and "TwoPoles" in played.output, played.output
    with pytest.raises(ag.InputError, match="task of your own, TwoPoles: pass task="):
        Player(run + "/checkpoint.pt")
    task = open_task(own)
    assert Player(run + "/checkpoint.pt", task=task).returns(1).shape == (1,)
    assert Training(task, "ppo", run).learner.steps >= 100
    imitation = type("CartpoleSwingUp", (type(task),), {})()  # another task of the same name
    assert Training(imitation, "ppo", threads=1).about["task"].endswith(".CartpoleSwingUp")
    for wrong, message in (("nowhere.py", "no file"), (own + ":Three", "no 'Three'; its tasks are TwoPoles")):
        found = CliRunner().invoke(app, ["train", wrong])
        assert found.exit_code == 1 and message in " ".join(found.output.split()), found.output


def test_interrupt_ends_after_an_update_and_progress_has_each_row_once(tmp_path, monkeypatch):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    call = ["train", "cartpoleswingup", "--algorithm", "ppo", "--steps", "30000", "--threads", "1", "--folder"]
    assert CliRunner().invoke(app, [*call, str(whole)]).exit_code == 0
    update = ALGORITHMS["ppo"].update

    def interrupted(self):
        signal.raise_signal(signal.SIGINT)  # in the middle of an update
        return update(self)

    with monkeypatch.context() as during:
        during.setattr(ALGORITHMS["ppo"], "update", interrupted)
        found = CliRunner().invoke(app, [*call, str(halves)])
    assert found.exit_code == 0 and "the same command continues" in found.output
    with (halves / "progress.csv").open("a") as file:  # rows after the checkpoint, before a crash
        file.write("900000,1.0,0.0,0.0,0.0,0.0,0.0\n900001,")
    assert CliRunner().invoke(app, [*call, str(halves)]).exit_code == 0
    one, other = (
        list(csv.DictReader((folder / "progress.csv").read_text().splitlines())) for folder in (whole, halves)
    )
    assert [row["steps"] for row in one] == [row["steps"] for row in other] and len(one) > 1
    weights = [
        torch.load(x / "checkpoint.pt")["learner"]["modules"]["policy"]["mean.0.weight"] for x in (whole, halves)
    ]
    assert torch.equal(*weights)


def test_wrong_arguments_are_reported(tmp_path):
    broken = training("ppo")
    broken.learner.policy.normalizer.update(broken.learner.observation * math.nan)
    with pytest.raises(FloatingPointError, match="not finite"):
        broken.learner.check_finite()
    with pytest.raises(ag.InputError, match="algorithms are shac"):
        Training("Ant", "dreamer")
    with pytest.raises(ag.InputError, match="settings of shac are"):
        Training("Hopper", "shac", learning_rate=1.0)
    with pytest.raises(ag.InputError, match="nothing ends the training"):
        training("bptt").run()
    training("bptt", tmp_path).save()
    with pytest.raises(ag.InputError, match="holds another training"):
        training("shac", tmp_path)
    with pytest.raises(ag.InputError, match="there is no file"):
        Player(tmp_path / "none.pt")
    assert math.isnan(training("ppo").learner.episode_stats.metrics()["return"])


def test_training_uses_presets():
    for (task, algorithm), settings in PRESETS.items():
        assert task in TASKS and ALGORITHMS[algorithm].Settings(**settings)
    small = {"num_envs": 2, "hidden": (8,), "critic_hidden": (8,), "threads": 1}
    usual = Training("ant", "SHAC", **small)
    assert usual.learner.settings.max_episode_steps == usual.learner.env.max_episode_steps == 250
    assert usual.learner.env.observation_size == 27 and usual.about["options"] == {"contact_forces": False}
    other = Training("Ant", "shac", max_episode_steps=100, options={"contact_forces": True}, **small)
    assert other.learner.env.max_episode_steps == 100 and other.learner.env.observation_size == 105
