"""Learning: parts by hand, every algorithm reproduces from its seed and goes on where it stopped, and the gradient teaches."""

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
from artigrad.learn.mbpo import Ensemble, MbpoSettings
from artigrad.learn.parts import Normalizer, SideBySide, lambda_returns
from artigrad.learn.replay import Replay
from artigrad.learn.tuned import OPTIONS, TUNED

SMALL = {  # so that an update is short, and something is learned in the second
    "shac": {"envs": 4, "span": 0.07, "critic_passes": 2},
    "ppo": {"envs": 4, "horizon": 8, "passes": 2, "pieces": 2},
    "bptt": {"envs": 2, "horizon": 6},
    "sac": {"envs": 4, "first": 4, "updates": 2, "batch": 8},
    "policy-enhancement": {"envs": 4, "horizon": 6, "passes": 2, "updates": 2, "batch": 8},
    "mbpo": {
        "envs": 4,
        "first": 4,
        "updates": 2,
        "batch": 8,
        "rollouts": 16,
        "model_every": 4,
        "model_passes": 1,
        "norm": True,
        "policy_every": 2,
    },
    "sample-enhancement": {
        "envs": 4,
        "first": 4,
        "updates": 2,
        "batch": 8,
        "rollouts": 16,
        "model_every": 4,
        "model_passes": 1,
    },
    "sql": {"envs": 4, "first": 4, "updates": 2, "batch": 8, "particles": 4},
}
each = pytest.mark.parametrize("algorithm", ALGORITHMS)


def training(algorithm, folder=None, seed=3, task="PendulumReach"):
    return Training(task, algorithm, folder, threads=1, seed=seed, hidden=(16, 16), **SMALL[algorithm])


def weights(run):
    return torch.cat([w.detach().flatten() for w in run.learner.policy.parameters()])


@each
def test_goes_on_where_it_stopped_to_the_bit(algorithm, tmp_path):
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


def test_values_of_episodes_by_hand():
    """One robot fails after the second step, another's episode is cut off there, a third goes on."""
    rewards = torch.tensor([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
    last = torch.tensor([[10.0] * 3, [20.0] * 3, [30.0] * 3])
    terminated = torch.tensor([[False] * 3, [True, False, False], [False] * 3])
    ended = torch.tensor([[False] * 3, [True, True, False], [False] * 3])
    g, lam = 0.9, 0.8
    found = lambda_returns(rewards, rewards, last, terminated, ended, g, lam)
    third = 3 + g * 30
    second = [2.0, 2 + g * 20, 2 + g * (0.2 * 20 + lam * third)]
    expected = [[1 + g * (0.2 * 10 + lam * x) for x in second], second, [third] * 3]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_observations_are_brought_to_one_scale():
    rows = torch.randn(300, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 10.0, 0.1]) + 5.0
    normalizer = Normalizer(3)
    assert torch.equal(normalizer(rows[:5].clamp(max=9.0)), rows[:5].clamp(max=9.0).clamp(-10, 10))
    for piece in rows.split((100, 50, 150)):
        normalizer.update(piece)
    torch.testing.assert_close(normalizer.mean, rows.double().mean(0))
    torch.testing.assert_close(normalizer.square / 300, rows.double().var(0, correction=0))
    assert normalizer(rows).std(0).sub(1).abs().max() < 0.02
    for value in np.random.default_rng(0).normal(size=50):  # what never changes is no cause for NaN
        same = Normalizer(1)
        for _ in range(3):
            same.update(torch.full((1000, 1), float(value)))
        assert same(torch.full((1, 1), float(value))).abs() < 1e-3


def test_replay_keeps_the_latest():
    replay = Replay(1500, torch.device("cpu"))
    for k in range(20):
        replay.add(x=torch.arange(100.0) + 100 * k)
    assert replay.count == 1500 and set(replay.rows["x"].tolist()) == set(map(float, range(500, 2000)))
    assert len(replay.sample(64, torch.Generator().manual_seed(0))["x"]) == 64


@pytest.mark.parametrize("norm", [False, True])
def test_networks_side_by_side_are_what_each_is_alone(norm):
    torch.manual_seed(0)
    nets = SideBySide(3, [4, 8, 8, 2], torch.relu, norm=norm)
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


def test_an_ensemble_learns_what_comes_and_how_sure_that_is():
    """Of two entries one is known, and one has noise of half its size; both are told, each with its spread."""
    torch.manual_seed(0)
    model = Ensemble(1, 1, MbpoSettings(members=2, elites=2, model_hidden=(32,)))
    x = torch.randn(2, 4000, 2)
    y = torch.stack([torch.tanh(x[..., 0]), x[..., 1] + 0.5 * torch.randn(2, 4000)], -1)
    model.inputs.restart(x)
    model.outputs.restart(y)
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(300):
        at = torch.randint(4000, (256,))
        adam.zero_grad()
        model.errors(x[:, at], y[:, at])[0].sum().backward()
        adam.step()
    spread = (model(x)[1].exp() * model.outputs.spread()).mean((0, 1))
    assert spread[0] < 0.25 and 0.4 < spread[1] < 0.6, spread
    assert (model.errors(x, y)[1] < 0.2).all()  # noise alone is half of 0.25 / 1.25


def pendulums_in_motion():
    """Two of two links, and the action that moves them."""
    env = DifferentiableEnv("PendulumReach", 2, dtype="f64", threads=1, links=2)
    env.reset()
    action = torch.tensor([[0.5, -0.3], [0.2, 0.9]], dtype=torch.float64)
    for _ in range(3):
        env.step(action)
    env.detach()
    return env, action


def test_jacobians_match_differences():
    env, action = pendulums_in_motion()
    now, h = env.now, 1e-6
    end, J = env.jacobian(now, action)
    torch.testing.assert_close(task_step(env, now, action), torch.cat([end.q, end.v, end.seen], -1), rtol=0, atol=0)
    for k in range(2):
        moved = h * torch.eye(2, dtype=torch.float64)[k]
        ends = [task_step(env, now, action + sign * moved) for sign in (1.0, -1.0)]
        torch.testing.assert_close(J[..., k], (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-7)


def task_step(env, now, action):
    """(q, v, seen) after a step."""
    after = env.batch.step(now, action).now
    return torch.cat([after.q, after.v, after.seen], -1)


@pytest.mark.parametrize("task", ["Ant", "Hopper"])
def test_samples_beside_are_true_but_for_squares(task):
    """What Jacobians say of other actions, beside a step with them: the nearer, the truer, by the square."""
    how = {"threads": 1, "envs": 64, "first": 64, "hidden": (8,), "options": OPTIONS.get(task, {})}
    learner = Training(task, "sample-enhancement", **how).learner
    env = learner.env = DifferentiableEnv(task, 64, dtype="f64", threads=1, seed=3, **how["options"])
    learner.policy.double()
    learner.steps = 64
    learner.observation = env.reset()
    start = env.now
    learner.act()
    rows, off = torch.arange(64), []
    for learner.settings.reach in (1e-3, 5e-4):
        learner.generator.manual_seed(0)
        told = learner.samples(rows)
        beside = (told["action"] != learner.replay.at(rows)["action"]).any(-1)
        assert 0.7 < beside.double().mean() < 1.0  # nine of ten
        env.now = start
        true = env.step(told["action"])
        assert torch.equal(true.terminated, told["failed"] > 0.5)
        off.append((true.last - told["after"]).norm(dim=-1) + (true.reward - told["reward"]).abs())
        assert off[-1][~beside].max() < 1e-12
    least = off[0] > 1e-11
    ratio = off[1][least] / off[0][least]
    assert ratio.median() < 0.3 and off[0].median() < 1e-5, (ratio, off)


def test_slopes_of_a_step_match_differences():
    env, action = pendulums_in_motion()
    now, h = env.now, 1e-6
    slopes, inputs = env.slopes(now, action), torch.cat([now.q, now.v, action], -1)
    for k in range(6):
        ends = []
        for sign in (1.0, -1.0):
            q, v, a = (inputs + sign * h * torch.eye(6, dtype=torch.float64)[k]).split(2, -1)
            env.now = now._replace(q=q, v=v)
            found = env.step(a.contiguous())
            ends.append(torch.cat([env.now.q, env.now.v, found.last, found.reward[:, None]], -1))
        torch.testing.assert_close(slopes[..., k], (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("lam", [1.0, 0.0])
def test_slopes_of_returns_are_those_of_the_closed_loop(lam):
    """With lam = 1 through physics and policy to the last step, with lam = 0 one step, as published; then the critic's."""
    how = {"threads": 1, "envs": 3, "horizon": 5, "lam": lam, "gamma": 0.9, "hidden": (16, 16)}
    learner = Training("PendulumReach", "policy-enhancement", **how).learner
    env, policy = learner.env, learner.policy
    learner.observation = env.reset()
    learner.decay()
    now, seen = env.now, learner.record()
    found = learner.slopes(seen)[1]
    for t in range(5):
        q, v, action = (seen[name][t].clone().requires_grad_() for name in ("q", "v", "action"))
        env.now, total, a = now._replace(q=q, v=v, steps=seen["steps"][t]), 0.0, action
        last = 5 if lam else t + 1
        for k in range(t, last):
            step = env.step(a)
            total = total + 0.9 ** (k - t) * step.reward
            a = policy(step.last, seen["noise"][k + 1]) if k < last - 1 else policy(step.last)
        total = total + 0.9 ** (last - t) * learner.target(step.last, a)
        expected = torch.cat(torch.autograd.grad(total.sum(), (q, v, action)), -1)
        torch.testing.assert_close(found[t], expected, rtol=1e-3, atol=1e-4)


def test_the_gradient_lifts_a_pendulum():
    run = Training("PendulumReach", "bptt", threads=1, options={"links": 1}, rate=3e-2, hidden=(32,), horizon=40)
    found = [run.learner.update()["return"] for _ in range(12)]
    assert found[0] < 0.1 and max(found) > 0.3  # 0.5 at best
    assert max(found) <= 0.5 + 1e-6


def test_both_estimates_of_a_gradient_are_of_the_same():
    """Through the physics and by likelihood, over many robots: the same direction and length."""
    run = Training(
        "PendulumReach", "shac", threads=1, envs=4096, span=0.05, mixed=True, hidden=(4,), options={"links": 1}
    )
    learner, found = run.learner, []
    learner.mixture.forward = lambda first, zeroth: found.append((first.clone(), zeroth)) or first
    for _ in range(3):
        learner.update()
    first, zeroth = (torch.stack(x).mean(0) for x in zip(*found, strict=True))
    assert torch.cosine_similarity(first, zeroth, 0) > 0.9
    assert 0.8 < zeroth.norm() / first.norm() < 1.25


def test_the_horizon_adapts_to_how_wild_gradients_are():
    how = {"threads": 1, "envs": 4, "span": 0.04, "adaptive": True, "critic_passes": 1}
    calm, wild = (Training("Hopper", "shac", clip=clip, **how) for clip in (1e9, 1e-9))
    grown, shrunk = ([run.learner.update() for _ in range(4)] for run in (calm, wild))
    assert [x["horizon"] for x in grown] == [5, 6, 7, 8] and grown[-1]["cut"] == 0.0
    assert [x["horizon"] for x in shrunk] == [5, 4, 3, 2] and shrunk[0]["cut"] > 0.9


def test_a_run_leaves_its_figures_and_a_policy(tmp_path):
    run = training("shac", tmp_path, task="Hopper")
    seen = []
    run.run(steps=60, watch=seen.append)
    rows = list(csv.DictReader((tmp_path / "progress.csv").read_text().splitlines()))
    assert [float(r["steps"]) for r in rows] == [36.0, 72.0] == [f["steps"] for f in seen]
    player = Player(tmp_path / "checkpoint.pt")
    observation = np.linspace(-1, 1, 11)
    expected = run.learner.played(torch.tensor(observation[None], dtype=torch.float32))[0]
    np.testing.assert_array_equal(player(observation), expected.detach())
    motion = player.motion(0.1)
    env = DifferentiableEnv("Hopper", 1, dtype="f64", threads=1)
    seen = env.reset()
    for _ in range(12):
        with torch.no_grad():
            seen = env.step(player.policy(seen.float()).double()).last
    np.testing.assert_allclose(motion.final.q[1:], seen[0, :5], atol=1e-12)
    ours, theirs = player.returns(3), player.gymnasium_returns(3)
    assert np.isfinite(ours).all() and np.isfinite(theirs).all() and ours.shape == theirs.shape == (3,)


def test_what_is_played_is_a_mean_over_updates(tmp_path):
    run = Training("Hopper", "shac", tmp_path, threads=1, average=0.5, hidden=(16, 16), **SMALL["shac"])
    slow, learner = weights(run).clone(), run.learner
    for _ in range(2):
        learner.update()
        learner.follow()
        slow = 0.5 * (slow + weights(run))
    played = torch.cat([w.detach().flatten() for w in learner.played.parameters()])
    torch.testing.assert_close(played, slow)
    assert torch.equal(learner.played.normalizer.mean, learner.policy.normalizer.mean)
    run.save()
    seen = torch.linspace(-1, 1, 11)
    assert torch.equal(torch.tensor(Player(tmp_path / "checkpoint.pt")(seen)), learner.played(seen).detach())


def test_nothing_comes_after_a_pendulums_end():
    """Which is in its observation, and where an ensemble of networks sees it too."""
    env = DifferentiableEnv("PendulumReach", 1, threads=1)
    env.reset()
    found = [env.step(torch.zeros(1, 2)) for _ in range(100)]
    assert [bool(x.terminated) for x in found] == [False] * 99 + [True] and not any(x.truncated for x in found)
    over = [bool(env.task.over(env.task.recall(x.last))) for x in found[-2:]]
    assert over == [False, True]


def test_command_line(tmp_path):
    call = ["train", "cartpoleswingup", "--algorithm", "ppo", "--steps", "100", "--folder", str(tmp_path)]
    found = CliRunner().invoke(app, call)
    assert found.exit_code == 0 and "artigrad play" in " ".join(found.output.split())
    assert "goes on" in CliRunner().invoke(app, call).output
    wrong = CliRunner().invoke(app, ["train", "unicorn"])
    assert wrong.exit_code == 1 and "tasks are Ant" in " ".join(wrong.output.split())


OWN = """
from artigrad.envs.balancing import CartpoleSwingUp

class TwoPoles(CartpoleSwingUp):
    def __init__(self):
        super().__init__(2)
"""


def test_tasks_of_ones_own(tmp_path):
    """Trained, gone on with and played: as an object, and out of a file on the command line."""
    (tmp_path / "poles.py").write_text(OWN)
    own, run = str(tmp_path / "poles.py"), str(tmp_path / "run")
    call = ["train", own, "--algorithm", "ppo", "--steps", "100", "--folder", run]
    found = CliRunner().invoke(app, call)
    assert found.exit_code == 0, found.output
    assert "goes on" in CliRunner().invoke(app, [*call[:1], own + ":TwoPoles", *call[2:]]).output
    played = CliRunner().invoke(app, ["play", run + "/checkpoint.pt", "--task", own, "--episodes", "1"])
    assert played.exit_code == 0 and "TwoPoles" in played.output, played.output
    with pytest.raises(ag.InputError, match="task of your own, TwoPoles: pass task="):
        Player(run + "/checkpoint.pt")
    task = open_task(own)
    assert Player(run + "/checkpoint.pt", task=task).returns(1).shape == (1,)
    assert Training(task, "ppo", run).learner.steps >= 100
    imitation = type("CartpoleSwingUp", (type(task),), {})()  # another one of a known name
    assert Training(imitation, "ppo", threads=1).about["task"].endswith(".CartpoleSwingUp")
    for wrong, said in (("nowhere.py", "no file"), (own + ":Three", "no 'Three'; its tasks are TwoPoles")):
        found = CliRunner().invoke(app, ["train", wrong])
        assert found.exit_code == 1 and said in " ".join(found.output.split()), found.output


def test_control_c_ends_between_two_updates_and_progress_has_each_once(tmp_path, monkeypatch):
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
    assert found.exit_code == 0 and "the same command goes on" in found.output
    with (halves / "progress.csv").open("a") as file:  # what came after the checkpoint, before a machine was lost
        file.write("900000,1.0,0.0,0.0,0.0,0.0,0.0\n900001,")
    assert CliRunner().invoke(app, [*call, str(halves)]).exit_code == 0
    one, other = (
        list(csv.DictReader((folder / "progress.csv").read_text().splitlines())) for folder in (whole, halves)
    )
    assert [row["steps"] for row in one] == [row["steps"] for row in other] and len(one) > 1
    weights = [torch.load(x / "checkpoint.pt")["learner"]["parts"]["policy"]["mean.0.weight"] for x in (whole, halves)]
    assert torch.equal(*weights)


def test_what_is_wrong_is_said(tmp_path):
    broken = training("ppo")
    broken.learner.policy.normalizer.update(broken.learner.observation * math.nan)
    with pytest.raises(FloatingPointError, match="no numbers"):
        broken.learner.check()
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
    assert math.isnan(training("ppo").learner.tally.figures()["return"])


def test_a_training_begins_with_what_is_known_to_work():
    for (task, algorithm), settings in TUNED.items():
        assert task in TASKS and ALGORITHMS[algorithm].Settings(**settings)
    small = {"envs": 2, "hidden": (8,), "critic_hidden": (8,), "threads": 1}
    usual = Training("ant", "SHAC", **small)
    assert usual.learner.settings.episode == usual.learner.env.episode == 250
    assert usual.learner.env.observation_size == 27 and usual.about["options"] == {"contact_forces": False}
    other = Training("Ant", "shac", episode=100, options={"contact_forces": True}, **small)
    assert other.learner.env.episode == 100 and other.learner.env.observation_size == 105
