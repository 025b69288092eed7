"""Every method on problems with a known minimum, and failures during a run."""

import _thread
import threading

import numpy as np
import pytest

from artigrad import InputError
from artigrad.optimize import METHODS, History, minimize
from artigrad.optimize.lbfgs import LBFGS

SETTINGS = {
    "adam": {"learning_rate": 0.1},
    "sgd": {"learning_rate": 0.2},
    "lbfgs": {},
    "cma-es": {"sigma": 0.3},
}


class Bowl:
    """Problem 0.5 sum(k (x - middle)^2), with increasing stiffness; counts its evaluations."""

    def __init__(self, middle, bound=10.0):
        self.middle = np.array(middle, float)
        self.k = np.linspace(1.0, 3.0, len(self.middle))
        self.upper = np.full(len(self.middle), bound)
        self.lower = -self.upper
        self.calls = 0

    def loss(self, x):
        self.calls += 1
        return 0.5 * np.sum(self.k * (x - self.middle) ** 2, 1)

    def gradient(self, x):
        return self.loss(x), self.k * (x - self.middle)


def starts(n, count=3):
    return np.random.default_rng(0).uniform(-2, 2, (count, n))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 4])
def test_each_method_finds_the_minimum_from_every_start(method, n):
    bowl = Bowl(np.arange(n) - 0.5)
    run = minimize(bowl, starts(n), method=method, iterations=400, goal=1e-4, **SETTINGS[method])
    assert run.ended == "solved"
    assert np.abs(run.x - bowl.middle).max() < 0.05
    assert (run.solved_at(1e-4) > 0).all() and run.solved_at(1e-4).max() == run.iterations


@pytest.mark.parametrize("method", METHODS)
def test_variables_stay_within_their_bounds(method):
    bowl = Bowl([3.0, -3.0], bound=1.0)
    seen = []
    original = bowl.loss
    bowl.loss = lambda x: (seen.append(x.copy()), original(x))[1]
    run = minimize(bowl, 0.3 * starts(2), method=method, iterations=60, **SETTINGS[method])
    assert np.abs(np.concatenate(seen)).max() <= 1.0
    assert np.abs(run.x - [1.0, -1.0]).max() < 0.05


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_run(method):
    one, two = (
        minimize(Bowl([1, 2]), starts(2), method=method, iterations=20, seed=3, **SETTINGS[method]) for _ in "ab"
    )
    assert np.array_equal(one.loss, two.loss) and np.array_equal(one.x, two.x)


def test_all_starts_are_evaluated_as_one_batch():
    bowl = Bowl(np.zeros(3))
    run = minimize(bowl, starts(3, 8), method="lbfgs", iterations=5)
    assert bowl.calls == run.iterations  # one batch per iteration, not one per start
    bowl = Bowl(np.zeros(3))
    run = minimize(bowl, starts(3, 8), method="cma-es", iterations=5, sigma=0.3)
    assert bowl.calls == 5 and run.evaluations > 1


def test_polyaks_steps_need_no_tuned_learning_rate():
    run = minimize(Bowl([1.0]), [[9.0]], method="sgd", iterations=2, learning_rate=2.0, min_loss=0.0)
    assert run.best[0] < 1e-20  # one variable: there at once


def test_large_gradients_are_clipped():
    run = minimize(Bowl([0.0]), [[9.0]], method="sgd", iterations=2, learning_rate=1.0, max_grad_norm=0.5)
    assert run.x[0, 0] == 8.5


@pytest.mark.parametrize("method", METHODS)
def test_resumed_run_equals_an_uninterrupted_one(method, tmp_path):
    file, options = tmp_path / "run.npz", SETTINGS[method]
    whole = minimize(Bowl([1, 2]), starts(2), method=method, iterations=12, **options)
    minimize(Bowl([1, 2]), starts(2), method=method, iterations=3, file=file, **options)
    again = minimize(Bowl([1, 2]), starts(2), method=method, iterations=12, file=file, resume=True, **options)
    assert np.array_equal(whole.loss[:3], again.loss[:3]) and again.iterations <= 12
    assert np.all(np.diff(again.seconds) >= 0)
    assert (again.best <= np.array(again.loss[:3]).min(0)).all() and again.best.max() < whole.loss[2].max()
    if method in ("adam", "sgd"):  # these keep all they know
        assert np.array_equal(whole.loss, again.loss)


@pytest.mark.parametrize("method", METHODS)
def test_interrupted_run_is_saved_and_resumed(method, tmp_path):
    file, options = tmp_path / "run.npz", SETTINGS[method]
    bowl = Bowl(np.zeros(4))
    bowl.loss = lambda x: np.sum(np.abs(x) ** 1.5, 1)
    bowl.gradient = lambda x: (bowl.loss(x), 1.5 * np.sign(x) * np.abs(x) ** 0.5)

    def stop(history):
        if history.iterations == 4:
            _thread.interrupt_main()

    run = minimize(bowl, starts(4), method=method, iterations=30, file=file, watch=stop, **options)
    assert run.ended == "interrupted" and 4 <= run.iterations < 30
    saved, _ = History.load(file)
    assert np.array_equal(saved.loss, run.loss[: saved.iterations]) and saved.iterations >= 4
    again = minimize(bowl, starts(4), method=method, iterations=10, file=file, resume=True, **options)
    assert again.iterations <= 10 and np.array_equal(again.loss[:4], run.loss[:4])


def test_loss_that_is_not_finite_ends_the_run_with_its_history():
    bowl = Bowl([0.0])
    calm = bowl.gradient
    bowl.gradient = lambda x: (np.full(len(x), np.nan), x) if bowl.calls > 3 else calm(x)
    run = minimize(bowl, [[1.0], [2.0]], method="adam", learning_rate=0.1)
    assert "diverged" in run.ended and "nan" in run.ended
    assert run.iterations == 4 and np.isfinite(run.best).all()


def test_cma_es_continues_after_points_that_diverge():
    bowl = Bowl([0.0, 0.0])
    calm = bowl.loss
    bowl.loss = lambda x: np.where(x[:, 0] > 1.5, np.nan, calm(x))
    run = minimize(bowl, [[1.4, 1.0]], method="cma-es", sigma=0.5, iterations=60, goal=1e-3)
    assert run.ended == "solved"


def test_error_inside_scipy_is_raised():
    with pytest.raises(TypeError):
        LBFGS(Bowl(np.zeros(3)), np.array(starts(3)), memory="long").step()
    with pytest.raises(InputError, match="memory is a whole number of steps, at least 1, not 'long'"):
        minimize(Bowl(np.zeros(3)), starts(3), method="lbfgs", memory="long")


def test_threads_end_with_the_run():
    before = threading.active_count()
    minimize(Bowl(np.zeros(3)), starts(3), method="lbfgs", iterations=2)
    for thread in threading.enumerate():
        if thread.daemon:
            thread.join(timeout=5)
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"starts": [[11.0]]}, "outside its bounds -10 to 10"),
        ({"starts": [[np.inf]]}, "not finite"),
        ({"starts": [1.0]}, r"starts are \(starts, 1\)"),
        ({"method": "newton"}, "one of adam, sgd, lbfgs, cma-es"),
        ({"speed": 3}, "settings of adam"),
    ],
)
def test_wrong_arguments_are_reported(options, words):
    with pytest.raises(InputError, match=words):
        minimize(Bowl([0.0]), options.pop("starts", [[1.0]]), **({"method": "adam", "learning_rate": 0.1} | options))


def test_files_of_other_runs_are_refused(tmp_path):
    file = tmp_path / "run.npz"
    minimize(Bowl([0.0]), [[1.0]], method="adam", learning_rate=0.1, iterations=2, file=file)
    with pytest.raises(InputError, match="adam with 1 starts of 1 variables"):
        minimize(Bowl([0.0]), [[1.0], [2.0]], method="adam", learning_rate=0.1, iterations=4, file=file, resume=True)
    file.write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a saved run"):
        minimize(Bowl([0.0]), [[1.0]], method="adam", learning_rate=0.1, file=file, resume=True)
