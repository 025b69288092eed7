"""Studies: their files, and their errors."""

import json

import numpy as np
import pytest

from artigrad import InputError
from artigrad.tasks import Golf, Pendulum, Racecar, Throw
from artigrad.tasks.study import study, verdict
from artigrad.tasks.write_up import advantage, result, write


@pytest.fixture(scope="module")
def racecar(tmp_path_factory):
    done = study(Racecar(), tmp_path_factory.mktemp("racecar"), starts=3)
    return done, write(done)


def test_a_study_leaves_numbers_curves_landscape_and_animation(racecar):
    _, files = racecar
    names = ["result.json", "curves.png", "landscape.png", "motion.html", "motion.gif"]
    assert [file.name for file in files] == names
    assert all(1000 < file.stat().st_size < 1_500_000 for file in files)
    said = json.loads(files[0].read_text())
    assert said["methods"]["sgd"]["ended"] == "solved" and said["gradient_against_differences"] < 1e-4
    assert all(0.15 < x[0] < 0.3 for x in said["methods"]["sgd"]["x"])


def test_gradients_need_fewer_motions_and_iterations_than_cma_es(racecar):
    less = result(racecar[0])["advantage"]
    assert less["motions"] > 10 and less["iterations"] > 1


def test_the_same_seed_gives_the_same_numbers(racecar, tmp_path):
    one, two = (result(s)["methods"]["sgd"] for s in (racecar[0], study(Racecar(), tmp_path, starts=3, compare=False)))
    assert one["x"] == two["x"] and one["solved_at"] == two["solved_at"]


def test_study_resumes(tmp_path):
    task = Pendulum()
    first = study(task, tmp_path, starts=2, iterations=5, compare=False)
    assert "still comes nearer: --resume" in verdict(task, first.main)
    second = study(task, tmp_path, starts=2, iterations=8, compare=False, resume=True)
    assert second.main.iterations == 8
    assert np.array_equal(second.main.loss[:5], first.main.loss)


def test_unreachable_target_is_reported(tmp_path):
    far = Racecar(1.5)  # faster than it was let go
    done = study(far, tmp_path / "a", starts=2, compare=False)
    assert "at their bounds: the target is out of reach" in verdict(far, done.main)
    assert advantage(far, done.main, done.main) == {}
    up = Golf((0.0, 0.0, 50.0), steps=300)  # the ball is not even hit in that time
    done = study(up, tmp_path / "b", starts=1, iterations=4, compare=False)
    assert "may be out of reach" in verdict(up, done.main)


def test_bounds_that_exclude_the_start_are_refused(tmp_path):
    task = Throw()
    task.upper = np.full_like(task.upper, 0.1)
    with pytest.raises(InputError, match="outside its bounds"):
        study(task, tmp_path)


def test_diverging_simulation_is_an_error(tmp_path):
    task = Golf(steps=100)
    task.score = lambda traj: Golf.score(task, traj)._replace(loss=np.full(len(traj.final.q), np.nan))
    with pytest.raises(ArithmeticError, match="diverged"):
        study(task, tmp_path, starts=1)


def test_unknown_methods_are_refused(tmp_path):
    with pytest.raises(InputError, match="a method is one of"):
        study(Pendulum(), tmp_path, method="newton")
