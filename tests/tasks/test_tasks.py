"""Tasks: scenes as published, gradients compared with finite differences, and solutions by the methods."""

import numpy as np
import pytest

from artigrad.optimize import minimize
from artigrad.tasks import TASKS, Golf, PaperThrow, Pendulum, Racecar, Throw
from artigrad.tasks.study import check_gradient

# task: the error of the paper's experiment, iterations within which starts reach it, how many of how many
PUBLISHED = {
    "throw": (0.03, 60, 4, 5),
    "throw-paper": (0.03, 60, 4, 5),
    "golf": (0.05, 60, 5, 6),
    "racecar": (0.005, 10, 5, 5),
    "ball": (0.01, 150, 4, 5),
    "design": (1e-6, 200, 8, 10),
}


@pytest.fixture(scope="module")
def made():
    return {name: make() for name, make in TASKS.items()}


@pytest.mark.parametrize("name", TASKS)
def test_gradient_agrees_with_finite_differences(made, name):
    task = made[name]
    assert check_gradient(task, task.start(np.random.default_rng(1), 4)) < 1e-5


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_experiments_hold(made, name):
    task, (error, iterations, enough, starts) = made[name], PUBLISHED[name]
    x = task.start(np.random.default_rng(2), starts)
    run = minimize(task, x, method=task.method, iterations=iterations, goal=error**2, **task.settings[task.method])
    assert (run.solved_at(error**2) > 0).sum() >= enough


@pytest.mark.parametrize("name", ["throw", "throw-paper"])
def test_adam_solves_the_throws(made, name):
    task = made[name]
    run = minimize(
        task,
        task.start(np.random.default_rng(3), 5),
        method="adam",
        iterations=60,
        goal=0.03**2,
        **task.settings["adam"],
    )
    assert (run.solved_at(0.03**2) > 0).sum() >= 4


def test_pendulum_rises_within_its_bounds(made):
    task = made["pendulum"]
    starts = task.start(np.random.default_rng(0), 4)
    run = minimize(task, starts, method="adam", iterations=100, goal=task.loss_goal(), learning_rate=0.1)
    assert run.ended == "solved" and np.abs(run.x).max() <= 1.0


def test_friction_of_the_racecar(made):
    """It rises from 0.002 in the paper to 0.15 to 0.30; and the derivative of the loss there and at the start."""
    task = made["racecar"]
    assert task.sim.model.params.mass.sum() == pytest.approx(5.892, abs=1e-3)
    run = minimize(task, [[0.002]], method="sgd", iterations=10, **task.settings["sgd"])
    assert 0.15 < run.x[0, 0] < 0.30 and task.error(run.best)[0] < 0.005
    x, h = np.array([[0.002], [0.1], [0.17], [0.21], [0.3]]), 1e-6
    differences = (task.loss(x + h) - task.loss(x - h)) / (2 * h)
    np.testing.assert_allclose(task.gradient(x)[1][:, 0], differences, rtol=1e-4)


def test_ball_is_held_until_release(made):
    for name in ("throw", "throw-paper"):
        task = made[name]
        traj = task.rollout(task.start(np.random.default_rng(0), 2))
        force = np.linalg.norm(task.sim.contacts(traj).force, axis=-1)
        assert (force[:, : task.release] > 1.0).all()  # by both fingers, all the time
        assert (force[:, task.release + 100 :] == 0).all()
        grad = task.sim.vjp(traj, q_bar=task.score(traj).q_bar, with_params=False)
        assert (grad.health.switch_margin > 1e-3).all() and (grad.health.violation == 0).all()


def test_arm_at_rest_stays_at_rest(made):
    """Zero torques are relative to those that hold the arm."""
    task = made["throw"]
    q = task.rollout(np.zeros((1, task.n))).q[0, : task.release, :7]
    assert np.abs(q - q[0]).max() < 0.05


def test_torques_stay_within_those_of_the_arm(made):
    task = made["throw"]
    for side, bound in ((-1, task.lower), (1, task.upper)):
        np.testing.assert_allclose(bound.reshape(-1, 7)[0] + task.hold, side * np.array([87.0] * 4 + [12.0] * 3))


def test_the_club_hits_the_ball_once_and_not_the_tee(made):
    task = made["golf"]
    contacts = task.sim.contacts(task.rollout(np.zeros((1, task.n))))
    assert task.sim.contact_names == (("ball", "club"), ("tee", "ball"))
    hits = np.flatnonzero(np.linalg.norm(contacts.force[0, :, 0], axis=-1))
    assert 500 < hits[0] < 700 and len(hits) <= 2


def test_scenes_take_other_targets():
    for make, target in ((Throw, (0.9, -0.2, 0.1)), (PaperThrow, (0.2, 0.2, 0.7)), (Golf, (0.0, -2.0, -1.2))):
        task = make(target)
        loss = task.loss(np.zeros((1, task.n)))
        end = task.rollout(np.zeros((1, task.n))).final.q[0, 9:12] if make is not Golf else None
        assert np.isfinite(loss).all()
        if end is not None:
            assert loss[0] == pytest.approx(np.sum((end - target) ** 2))
    assert Racecar(0.9).loss(np.array([[0.0]]))[0] == pytest.approx(0.1**2, rel=0.01)


def test_pendulum_has_the_paper_links():
    task = Pendulum()
    assert task.sim.model.params.mass.tolist() == [1.0, 2.16, 2.16, 0.01]
    assert task.sim.sites(task.initial)[0].tolist() == pytest.approx([1.5, 0.0, 0.0])
