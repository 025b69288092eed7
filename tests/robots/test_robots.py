"""Bundled robots match their docstrings."""

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


def test_a_laikago_with_shapes_on_its_links_falls_as_a_body_does():
    feet, whole = ag.robots.laikago(), ag.robots.laikago(links=True)
    assert len(whole.shapes.names) == len(feet.shapes.names) + 9
    on_its_side = feet.keyframe().q
    on_its_side[2:7] = [0.3, np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
    height = {}
    for model in (feet, whole):
        sim = ag.Simulator(model, dt=2e-3)
        traj = sim.rollout(ag.State(on_its_side, np.zeros(model.nv)), np.tile(model.keyframe_control(), (750, 1)))
        height[model] = traj.body("trunk").position[-1, 2]
    assert height[whole] > 0.05 and height[feet] < height[whole] - 0.02
    standing = [
        ag.Simulator(m).rollout(m.keyframe(), np.tile(m.keyframe_control(), (100, 1))).final for m in (feet, whole)
    ]
    np.testing.assert_allclose(standing[0].q, standing[1].q, rtol=0, atol=1e-12)


def test_a_ball_has_its_shape_without_a_floor():
    assert ag.robots.ball().shapes.names == ag.robots.ball(floor=True).shapes.names[:1]
    two = ag.scene([ag.robots.ball(), ag.robots.ball()], positions=[(0, 0, 0), (0.15, 0, 0)], floor=False)
    assert len(two.shapes.pairs) == 1
