"""One-step gradients through contact against central differences: every pair of shapes, every regime."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import DEEP, ON_PLANE, PAIRS, TILTED, ball, check, hard, pair


def test_sticking():
    rows, _ = check(ball(5.0), [0, 0, 0.0999, *TILTED], [0, 0, -0.3, 0.1, 0.2, 0.1])
    assert rows["friction"].largest < 1e-9  # friction is strong enough: more of it changes nothing
    assert rows["shape_size"].largest > 1.0


def test_sliding():
    rows, _ = check(ball(0.3), [0, 0, 0.0999, *TILTED], [2, 0.5, -0.3, 0.1, 0.2, 0.1])
    assert rows["friction"].largest > 1e-3


def test_separating():
    rows, _ = check(ball(0.3), [0, 0, 0.105, *TILTED], [2, 0.5, 0.3, 0.1, 0.2, 0.1])
    assert rows["friction"].largest < 1e-9 and rows["shape_size"].largest < 1e-9


def test_bouncing():
    rows, _ = check(ball(0.3, 0.6), [0, 0, 0.0999, *TILTED], [2, 0.5, -2.3, 0.1, 0.2, 0.1], skip=("dry_friction",))
    assert rows["restitution"].largest > 0.1


def test_closing_a_gap():
    check(ball(0.3), [0, 0, 0.1055, *TILTED], [2, 0.5, -6.0, 0.1, 0.2, 0.1])


@pytest.mark.parametrize("q", [0.50005, 0.4999, -0.50005])
def test_joint_limits(q):
    b = ag.ModelBuilder("limit")
    arm = {"mass": 1.0, "com": (0.1, 0, -0.5), "inertia": (0.1, 0.1, 0.1)}
    b.add_body("rod", joint="revolute", axis=(0, 1, 0), limit=(-0.5, 0.5), damping=0.1, **arm)
    rows, _ = check(b, [q], [3.0 * np.sign(q)])
    assert rows["limit"].largest > 0.1


SWEPT = {"solver": "gauss_seidel", "sweeps": 4, "gradient": "reverse"}


@pytest.mark.parametrize("options", [{}, SWEPT], ids=["implicit", "reverse"])
@pytest.mark.parametrize("height", [0.0999, 0.08], ids=["below the correction speed", "at it"])
def test_depth(options, height):
    """The correction velocity depends on depth up to correction_speed, and is constant beyond."""
    _, sim = check(ball(0.3), [0, 0, height, *TILTED], [2, 0.5, -0.3, 0.1, 0.2, 0.1], **options)
    traj = sim.rollout(ag.State(np.array([0, 0, height, 1.0, 0, 0, 0]), np.zeros(6)), steps=1)
    assert (abs(sim.vjp(traj, v_bar=np.eye(6)[2]).q0[2]) > 100.0) == (height > 0.09)


@pytest.mark.parametrize("options", [{}, SWEPT], ids=["implicit", "reverse"])
@pytest.mark.parametrize("beyond", [0.003, 0.5])
def test_joints_beyond_their_limits(options, beyond):
    b = ag.ModelBuilder("limit")
    arm = {"mass": 1.0, "com": (0.1, 0, -0.5), "inertia": (0.1, 0.1, 0.1)}
    b.add_body("rod", joint="revolute", axis=(0, 1, 0), limit=(-0.5, 0.5), damping=0.1, **arm)
    rows, _ = check(b, [0.5 + beyond], [3.0], **options)
    assert (rows["limit"].largest > 0.1) == (beyond < 0.1)


def test_dry_friction_sliding_and_holding():
    b = ag.ModelBuilder("dry")
    arm = {"mass": 1.0, "com": (0.1, 0, -0.5), "inertia": (0.1, 0.1, 0.1)}
    b.add_body("r", joint="revolute", axis=(0, 1, 0), dry_friction=0.3, **arm)
    b.add_body("s", "r", joint="revolute", axis=(1, 0, 0), dry_friction=30.0, **arm)
    rows, _ = check(b, [0.2, 0.1], [1.0, 0.0], skip=())
    assert rows["dry_friction"].largest > 1e-4


@pytest.mark.parametrize("speed", [(0.1, 0.2, -0.5), (3.0, -1.0, -0.5)], ids=["slow", "fast"])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_bodies(name, speed):
    b = pair(name)
    add, place = PAIRS[name]
    add(b)
    _, sim = check(b, [0.1, *place, *TILTED], [0.5, *speed, 0.3, 0.2, 0.1], **DEEP)
    start = ag.State(np.array([0.1, *place, *TILTED]), np.array([0.5, *speed, 0.3, 0.2, 0.1]))
    alone = hard(pair("alone").build(), dt=1e-3).step(start)
    assert np.abs(sim.step(start).v - alone.v).max() > 1e-3  # they did touch


@pytest.mark.parametrize(
    "v", [(0.5, 0.1, -0.1, 0.01, 0.02, 0.3), (0, 0, -0.1, 0.01, 0.02, 0.03)], ids=["sliding", "sticking"]
)
@pytest.mark.parametrize("name", ON_PLANE)
def test_shapes_on_a_plane(name, v):
    b = ag.ModelBuilder(name)
    b.add_body("b", joint="free", mass=0.5, inertia=(0.01, 0.02, 0.015))
    b.add_plane(friction=0.5)
    add, z = ON_PLANE[name]
    add(b)
    check(b, [0, 0, z, 1, 0, 0, 0], v)


def test_two_free_bodies_far_from_the_origin():
    b = ag.ModelBuilder("two", gravity=(0, 0, 0))
    for k in "ab":
        b.add_body(k, joint="free", mass=1.0, inertia=(0.004, 0.005, 0.003))
        b.add_sphere(k, 0.1, friction=0.4, position=(0, 0.01, 0.02))
    check(b, [9.9, 5, 3, *TILTED, 10.098, 5.02, 3, 1, 0, 0, 0], [1, 0, 0, 0.1, 0.2, 0.3, -1, 0, 0.5, 0, 2.0, 0])


def test_head_on_elastic_balls_swap_their_velocities():
    b = ag.ModelBuilder("swap", gravity=(0, 0, 0))
    for k, x in (("a", -0.15), ("b", 0.15)):
        b.add_body(k, joint="free", mass=1.0, inertia=(0.004, 0.004, 0.004), position=(x, 0, 0))
        b.add_sphere(k, 0.1, restitution=1.0, friction=0.0)
    sim = hard(b.build(), dt=1e-3, softness=0.0)
    v = np.zeros(12)
    v[0], v[6] = 1.0, -0.5
    traj = sim.rollout(ag.State(sim.reset().q, v), steps=200)
    np.testing.assert_allclose(traj.v[-1, [0, 6]], [-0.5, 1.0], atol=1e-12)
    for k, other in ((0, 6), (6, 0)):
        grad = sim.vjp(traj, v_bar=np.eye(12)[k])
        np.testing.assert_allclose(grad.v0[[k, other]], [0.0, 1.0], atol=1e-12)


def test_laikago_step_and_rollout():
    model = ag.robots.laikago()
    sim = hard(model)
    rng = np.random.default_rng(0)
    u = model.keyframe_control() + 0.05 * rng.normal(size=(300, 12))
    start = sim.rollout(sim.reset(), u).final
    rows = ag.gradcheck(sim, steps=1, samples=1, tolerance=np.inf, show=False, state=start)
    for r in rows:
        if r.what not in ("restitution", "dry_friction", "limit"):
            assert r.error * max(r.largest, 1e-3) < 1e-6 * max(r.largest, 1.0), r
    d, h = rng.normal(size=(100, 12)), 1e-6
    bar = np.zeros(19)
    bar[:3] = 1.0
    base = np.repeat(model.keyframe_control()[None], 100, 0)
    grad = sim.vjp(sim.rollout(start, base), q_bar=bar)
    ends = [sim.rollout(start, base + s * h * d).final.q[:3].sum() for s in (1, -1)]
    assert abs((ends[0] - ends[1]) / (2 * h) - np.sum(grad.u * d)) < 1e-4 * abs(np.sum(grad.u * d))


def test_health_of_a_gradient():
    sim = hard(ag.robots.ball(floor=True))
    q, v = np.repeat(np.array([[0, 0, 0.0999, 1, 0, 0, 0]]), 3, 0), np.zeros((3, 6))
    v[0, 2], v[1, 2], q[2, 2] = -1.0, 0.0099, 1.0  # presses hard; just leaves the floor; flies
    health = sim.vjp(sim.rollout(ag.State(q, v), steps=1), q_bar=np.ones((3, 7))).health
    assert health.finite.all() and (health.violation == 0).all()
    assert 0 < health.switch_margin[1] < 1e-3 < 0.1 < health.switch_margin[0] < 10
    assert health.switch_margin[2] == 1000.0
    box = ag.ModelBuilder("box")
    box.add_body("b", joint="free", mass=2.0, inertia=(0.01,) * 3)
    box.add_box("b", (0.1, 0.1, 0.1))
    box.add_plane()
    swept = hard(box.build(), solver="gauss_seidel", sweeps=1)
    traj = swept.rollout(ag.State(np.array([0, 0, 0.0999, 1, 0, 0, 0]), np.array([0, 0, -0.1, 0.1, 0, 0])), steps=1)
    with pytest.warns(RuntimeWarning, match="not solved in some step of robot 0"):
        assert swept.vjp(traj, q_bar=np.ones(7)).health.violation[0] > 1e-6
    free = hard(ag.robots.pendulum(1))
    assert free.vjp(free.rollout(free.reset(), steps=2), q_bar=np.ones(1)).health.switch_margin == [1000.0]
