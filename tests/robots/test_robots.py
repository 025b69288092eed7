"""The bundled robots are what their docstrings say."""

import numpy as np
import pytest

import artigrad as ag


def dh(d, a, alpha, theta):
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array([[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]])


def test_arm_follows_its_denavit_hartenberg_rows():
    rng = np.random.default_rng(0)
    rows, q = rng.uniform(-0.5, 0.5, size=(5, 3)), rng.normal(size=5)
    model = ag.robots.arm_dh(rows)
    T = np.eye(4)
    for row, theta in zip(rows, q, strict=True):
        T = T @ dh(*row, theta)
    out = ag.Simulator(model).outputs(ag.State(q, np.zeros(5)))
    np.testing.assert_allclose(out.site_position[0], T[:3, 3], atol=1e-14)
    np.testing.assert_allclose(out.site_rotation[0], T[:3, :3], atol=1e-14)
    with pytest.raises(ag.ModelError, match="d, a, alpha"):
        ag.robots.arm_dh([[1, 2]])


@pytest.mark.parametrize("n", [1, 3])
def test_chains_and_poles(n):
    pendulum = ag.robots.pendulum(n, length=0.5)
    assert (pendulum.nv, pendulum.nu) == (n, n)
    np.testing.assert_allclose(ag.Simulator(pendulum).sites(ag.State(np.zeros(n), np.zeros(n))), [[0, 0, -0.5 * n]])
    pole = ag.robots.cartpole(n)
    sim = ag.Simulator(pole)
    np.testing.assert_allclose(sim.sites(sim.reset("zero"))[0], [0, 0, n], atol=1e-12)
    np.testing.assert_allclose(sim.sites(sim.reset("hanging"))[0], [0, 0, -n], atol=1e-12)
    assert ag.robots.chain(4, free=True).nv == 6 + 3


def test_quadruped():
    model = ag.robots.quadruped()
    assert (model.nb, model.nq, model.nv, model.nu) == (13, 19, 18, 12)
    sim = ag.Simulator(model)
    feet = sim.sites(sim.reset())
    assert np.ptp(feet[:, 2]) < 1e-12 and abs(feet[0, 2]) < 0.03


def test_random_trees_have_all_joints_and_several_roots():
    model = ag.robots.random_tree(0, 40)
    assert set(model.joint_type) == {"fixed", "revolute", "prismatic", "spherical", "free"}
    assert sum(p < 0 for p in model.parent) > 1
    again = ag.robots.random_tree(0, 40)
    np.testing.assert_array_equal(model.params.flat, again.params.flat)


def test_names_are_found():
    model = ag.robots.quadruped()
    assert model.bodies[model.body("fl_hip")] == "fl_hip"
    assert model.site("rr_foot") == 3
    assert model.actuator("fl_hip") == 0
    with pytest.raises(ag.InputError, match="no site 'hand'"):
        model.site("hand")


def test_gradcheck_prints_a_table(capsys):
    rows = ag.gradcheck(ag.robots.pendulum(1))
    printed = capsys.readouterr().out
    assert "gradients of pendulum-1" in printed and "mass" in printed
    assert {"q0", "v0", "u", "mass", "axis"} <= {r.what for r in rows}
    with pytest.raises(ag.InputError, match="f64"):
        ag.gradcheck(ag.Simulator(ag.robots.ball(), dtype="f32"))
    with pytest.raises(ag.InputError, match="takes a Model"):
        ag.gradcheck("ball")
