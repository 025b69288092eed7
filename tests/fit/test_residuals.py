"""The gradient is exact, and the Gauss-Newton matrix is that of the residuals."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.fit.parameters import Parametrization
from artigrad.fit.recording import windows
from artigrad.fit.residuals import Residuals, Slope

from .models import CAR_DT, car, car_data

NAMES = {
    "pendulum": ["mass", "damping", "com[rod1].z", "position[rod2].z", "inertia[rod2]", "gain", "site_position[tip].z"],
    "ant": ["mass[torso]", "damping", "gear", "gravity.z"],
}


def problem(robot, seen, every=1):
    model = ag.robots.pendulum(2, damping=0.1) if robot == "pendulum" else ag.robots.ant()
    sim = ag.Simulator(model, dt=0.005)
    rng = np.random.default_rng(0)
    u = 0.3 * rng.standard_normal((23, model.nu))
    traj = sim.rollout(sim.reset(), np.repeat(u, every, 0))
    q, v = traj.q[::every], traj.v[::every]
    sites = sim.sites(ag.State(q, v))
    q = ag.integrate(model, q, 0.02 * rng.standard_normal(v.shape))
    measured = {"q": q, "v": v + 0.02 * rng.standard_normal(v.shape), "sites": sites}
    data = ag.Recording(**{k: measured[k] for k in seen}, u=u, dt=0.005 * every)
    chosen = Parametrization(model.params, NAMES[robot], {})
    p = Residuals(sim, windows(sim, data, 9, model.params), chosen)
    return p, p.first(0.05 * rng.standard_normal(len(chosen))), rng


def direction(p, point, rng):
    return Slope(rng.standard_normal(len(point.theta)), rng.standard_normal((len(point.r), 2 * p.sim.model.nv)))


def along(p, point, d, h=1e-6):
    there, back = (p.moved(point, Slope(s * h * d.theta, s * h * d.start)) for s in (1, -1))
    return (there.loss - back.loss) / (2 * h), (there.r - back.r) / (2 * h)


@pytest.mark.parametrize(
    "robot, seen, every",
    [("pendulum", ["q", "v"], 1), ("pendulum", ["q"], 3), ("pendulum", ["q", "sites"], 2), ("ant", ["q", "v"], 1)],
)
def test_gradient_against_differences_of_the_loss(robot, seen, every):
    p, point, rng = problem(robot, seen, every)
    g, d = p.gradient(point), direction(p, point, rng)
    slope, _ = along(p, point, d)
    exact = g.theta @ d.theta + np.sum(g.start * d.start)
    assert abs(exact - slope) < 1e-6 * abs(slope)
    assert np.count_nonzero(g.theta) >= 10  # many have a share in it


def test_gradient_while_wheels_slide():
    data = car_data(0.3, 0.0, np.random.default_rng(0))
    sim = ag.Simulator(car(0.2), dt=CAR_DT)
    few = ag.Recording(data.q[60:80], data.v[60:80], u=data.u[60:79], dt=data.dt)
    p = Residuals(sim, windows(sim, few, 5, sim.params), Parametrization(sim.params, ["friction[floor]"], {}))
    point = p.first(np.zeros(1))
    d = Slope(np.ones(1), np.zeros_like(p.gradient(point).start))
    slope, _ = along(p, point, d)
    assert abs(slope) > 1e-3 and abs(p.gradient(point).theta[0] - slope) < 1e-6 * abs(slope)


def test_normal_matrix_against_the_residuals():
    p, point, rng = problem("pendulum", ["q", "v", "sites"])
    n, d = p.normal(point), direction(p, point, rng)
    _, dr = along(p, point, d)
    square = d.theta @ n.tt @ d.theta + np.einsum("wi,wij,wj->", d.start, n.ss, d.start)
    square += 2 * np.einsum("i,wik,wk->", d.theta, n.ts, d.start)
    assert abs(square - np.sum(dr**2)) < 1e-6 * square


def test_padding_of_the_last_window_has_no_weight():
    p, _, _ = problem("pendulum", ["q", "v"])
    assert p.data.counts.shape == (3, 8) and p.data.counts.all()  # 24 measurements in windows of equal length
    longer = windows(p.sim, [ag.Recording(q=np.zeros((n, 2))) for n in (10, 7)], 5, p.sim.params)
    assert longer.counts.sum(1).tolist() == [5, 5, 5, 2] and longer.follows.tolist() == [False, True, False, True]
