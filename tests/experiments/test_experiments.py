"""Experiments: scenes as published; a few iterations run, write their files and resume."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import artigrad.tasks
from artigrad import Simulator
from artigrad.cli import app
from artigrad.tasks import TASKS
from experiments import EXPERIMENTS, RunOptions, experiment, gait, lengths, reach, speed
from experiments.__main__ import main

torch = pytest.importorskip("torch")


def test_listing_names_every_experiment(capsys):
    main([])
    shown = capsys.readouterr().out
    for name, (_, _, summary) in EXPERIMENTS.items():
        assert f"{name} " in shown and summary in shown
        assert experiment(name).name == name and summary


def test_the_command_line_of_the_library_lists_tasks_and_refers_to_experiments():
    shown = CliRunner().invoke(app, ["run"])
    assert shown.exit_code == 0
    for name in (*TASKS, *EXPERIMENTS):
        assert name in shown.output
    refused = CliRunner().invoke(app, ["run", "reach"])
    assert refused.exit_code == 1 and "python -m experiments reach" in refused.output
    with pytest.raises(AttributeError, match="python -m experiments NAME"):
        artigrad.tasks.RunOptions  # noqa: B018


def test_an_experiment_runs_by_name_and_copies_its_small_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reach, "STEPS", 20)
    for name, value in {"sizes": (3, 8, 4), "batch": 2, "scenes": ("gravity",)}.items():
        monkeypatch.setattr(reach.ReachAny, name, value)
    folders = ["--folder", str(tmp_path / "run"), "--copy", str(tmp_path / "copy")]
    main(["reach-any", "--seeds", "1", "--iterations", "1", *folders])
    assert json.loads((tmp_path / "copy" / "run" / "result.json").read_text())["experiment"] == "reach-any"
    assert "results:" in capsys.readouterr().out


def test_sizes_of_the_papers():
    """Bodies, masses, sensors and weights."""
    from experiments.networks import PerSeedMLP

    robot = gait.quadruped(4.0)
    assert abs(robot.params.mass.sum() - 28.7) < 1e-9 and robot.nu == 8
    assert PerSeedMLP((2, 128, 128, 8), 1, skip=True).per_seed == 17_952
    assert (
        PerSeedMLP(reach.Reach.sizes, 1).per_seed == 17_284
        and PerSeedMLP(reach.ReachAny.sizes, 1).per_seed == 2_107_396
    )
    assert reach.arm(9.81, 30.0).params.mass.sum() == 32.0
    fast = speed.quadruped()
    assert fast.nb == 17 and fast.nu == 16
    for name, sizes in speed.NETWORKS.items():
        sim = Simulator(fast, dt=0.01, dtype="f32")
        assert sum(w.numel() for w in speed.sensing_policy(sim, sizes).parameters()) == int(name.replace(",", ""))


def test_motors_of_the_paper_cannot_hold_the_arm():
    """Some pose holds the tip at the point with 61 N m, none with less; found by search."""
    assert 40 < reach.holding_torque(np.array(reach.POINT)) < 80


def test_the_tip_of_the_arm_is_its_site():
    import artigrad.torch as at

    sim = Simulator(reach.arm(9.81, 30.0), dt=0.01)
    q = torch.randn(7, 4, dtype=torch.float64)
    assert torch.allclose(reach.tip_of(q), at.sites(sim, (q, q))[:, 0], atol=1e-12)


def test_networks_of_different_seeds_are_independent():
    from experiments.networks import PerSeedMLP, clip_each

    both, one = PerSeedMLP((2, 8, 3), 2, quiet=False), PerSeedMLP((2, 8, 3), 1, quiet=False, first_seed=1)
    x = torch.randn(2, 5, 2)
    assert torch.allclose(both(x)[1:], one(x[1:]), atol=1e-6)
    (100 * both(x)[0]).sum().backward()
    clip_each(both, 1.0)
    norms = [sum(w.grad[k].square().sum() for w in both.parameters()) ** 0.5 for k in (0, 1)]
    assert abs(norms[0] - 1) < 1e-5 and norms[1] == 0


def test_gait_runs_and_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(gait, "TORQUES", (24.0,))
    monkeypatch.setattr(gait, "SECONDS", 0.2)
    for iterations in (2, 3):
        how = RunOptions(tmp_path, seeds=2, iterations=iterations, resume=True)
        numbers = gait.Gait().run(how)
    assert numbers["24 N m"]["evaluations"] == 3
    assert len(torch.load(tmp_path / "gait-24.pt", weights_only=True)["record"]) == 3


def test_reach_any_learns(tmp_path, monkeypatch):
    monkeypatch.setattr(reach, "STEPS", 150)
    monkeypatch.setattr(reach.ReachAny, "sizes", (3, 32, 4))
    monkeypatch.setattr(reach.ReachAny, "batch", 4)
    monkeypatch.setattr(reach.ReachAny, "rate", 1e-2)
    monkeypatch.setattr(reach.ReachAny, "scenes", ("gravity",))
    numbers, files = reach.ReachAny()(RunOptions(tmp_path, seeds=2, iterations=12))
    curve = np.array(numbers["gravity"]["mean_distance"])
    assert curve.shape == (12, 2) and (curve[-1] < curve[0]).all()
    assert {file.name for file in files} >= {"result.json", "curves.png", "motion.html"}
    assert json.loads((tmp_path / "result.json").read_text())["gravity"]["weights"] > 0


def test_lengths_have_gradients():
    """Gradients of one second, compared with differences."""
    sim = Simulator(lengths.pendulum(lengths.GUESS), dt=lengths.DT / lengths.FINE)
    state = torch.tensor([[0.5, -0.3, 0.2, 0.1, 0.0, -0.2]], dtype=torch.float64)

    def end(x):
        return lengths.unroll(sim, state, x, 20).sum()

    x = torch.tensor(lengths.GUESS, dtype=torch.float64)
    at_x = x.clone().requires_grad_()
    (bar,) = torch.autograd.grad(end(at_x), at_x)
    for k, e in enumerate(torch.eye(3, dtype=torch.float64)):
        slope = (end(x + 1e-6 * e) - end(x - 1e-6 * e)) / 2e-6
        assert abs(slope - bar[k]) < 1e-6 * max(1.0, abs(slope))


def test_pixels_runs_through_the_camera(tmp_path, monkeypatch):
    """Each part trains its networks, and images have a gradient with respect to the state."""
    from experiments import pixels

    monkeypatch.setattr(pixels, "AHEAD", 3)
    small = pixels.Pixels()
    small.parts, small.robots, small.width, small.height = (1, 5, 1), (4, 4, 2), 24, 8
    small.policy_updates, small.batch = 5, 16
    monkeypatch.setattr(small, "evaluate", lambda dt: (0.0, 0.0, [0.0]))
    parts = []
    for iterations in (1, 6, 7):
        small.run(RunOptions(tmp_path, seeds=1, iterations=iterations, resume=True))
        parts.append([w.detach().clone() for part in (small.encoder, small.policy) for w in part.parameters()])
    moved = [
        [not torch.equal(a, b) for a, b in zip(*pair, strict=True)] for pair in (parts[:2], parts[1:])
    ]  # part 2 trains the encoder, part 3 all
    encoder = len(list(small.encoder.parameters()))
    assert any(moved[0][:encoder]) and not any(moved[0][encoder:])
    assert any(moved[1][:encoder]) and any(moved[1][encoder:])
    q = torch.tensor([[0.1, 0.3]], requires_grad=True)
    (bar,) = torch.autograd.grad(small.images(q, torch.zeros(1, 2)).square().sum(), q)
    assert (bar != 0).all()
