"""Circular cone: friction opposite to the slip in every direction, and both gradients."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import DEEP, ON_PLANE, PAIRS, TILTED, ball, check, hard, laikago_gradient, pair

CONE = {"cone": "elliptic"}
FEW = CONE | {"solver": "gauss_seidel", "sweeps": 4, "gradient": "reverse"}
MODES = pytest.mark.parametrize("options", [CONE, FEW], ids=["implicit", "reverse"])


def puck(angle, **options):
    """Return half a second of a box that slides at an angle."""
    b = ag.ModelBuilder("puck")
    b.add_body("puck", joint="free", mass=2.0, inertia=(0.01, 0.01, 0.01), position=(0, 0, 0.0999))
    b.add_box("puck", (0.1, 0.1, 0.1), friction=0.4)
    b.add_plane(friction=0.1)
    sim = hard(b.build(), **options)
    v = np.zeros(6)
    v[:2] = 3.0 * np.cos(angle), 3.0 * np.sin(angle)
    return sim.rollout(ag.State(sim.reset().q, v), steps=500)


@pytest.mark.parametrize("angle", [0.0, 0.4, np.pi / 4, 2.0])
def test_friction_is_the_same_in_every_direction(angle):
    v = puck(angle, **CONE).v[-1, :2]
    np.testing.assert_allclose(np.hypot(*v), 3.0 - 0.4 * 9.81 * 0.5, atol=5e-3)
    np.testing.assert_allclose(np.arctan2(v[1], v[0]), angle, atol=1e-3)  # it goes straight on


def test_a_pyramid_is_stronger_along_its_edges():
    slow = np.hypot(*puck(np.pi / 4).v[-1, :2])
    np.testing.assert_allclose(slow, 3.0 - np.sqrt(2) * 0.4 * 9.81 * 0.5, atol=5e-3)


@MODES
@pytest.mark.parametrize(
    ("friction", "v"),
    [(5.0, (0, 0, -0.3, 0.1, 0.2, 0.1)), (0.3, (2, 0.5, -0.3, 0.1, 0.2, 0.1)), (0.3, (2, 0.5, 0.3, 0.1, 0.2, 0.1))],
    ids=["sticking", "sliding", "separating"],
)
def test_gradients_of_a_ball(options, friction, v):
    _, sim = check(ball(friction), [0, 0, 0.0999, *TILTED], v, **options)
    if options is CONE:
        assert sim.rollout(ag.State(np.array([0, 0, 0.0999, *TILTED]), np.array(v, float)), steps=1).violation[0] == 0.0


@MODES
@pytest.mark.parametrize("name", PAIRS)
def test_gradients_of_pairs_of_bodies(options, name):
    b = pair(name)
    add, place = PAIRS[name]
    add(b)
    check(b, [0.1, *place, *TILTED], [0.5, 3.0, -1.0, -0.5, 0.3, 0.2, 0.1], **options, **DEEP)


@MODES
@pytest.mark.parametrize("name", ON_PLANE)
def test_gradients_on_a_plane(options, name):
    b = ag.ModelBuilder(name)
    b.add_body("b", joint="free", mass=0.5, inertia=(0.01, 0.02, 0.015))
    b.add_plane(friction=0.5)
    add, z = ON_PLANE[name]
    add(b)
    check(b, [0, 0, z, 1, 0, 0, 0], (0.5, 0.1, -0.1, 0.01, 0.02, 0.3), **options)


@MODES
def test_gradients_of_limits_and_dry_friction(options):
    b = ag.ModelBuilder("both")
    arm = {"mass": 1.0, "com": (0.1, 0, -0.5), "inertia": (0.1, 0.1, 0.1)}
    b.add_body("r", joint="revolute", axis=(0, 1, 0), dry_friction=0.3, limit=(-0.5, 0.5), **arm)
    b.add_body("s", "r", joint="revolute", axis=(1, 0, 0), dry_friction=0.2, limit=(-0.3, 0.3), **arm)
    rows, _ = check(b, [0.50005, 0.1], [1.0, 0.5], skip=(), **options)
    assert rows["dry_friction"].largest > 1e-4


@pytest.mark.parametrize("sweeps", [1, 2, 4])
def test_gradients_of_a_joint_that_dry_friction_holds(sweeps):
    """The block of its row contains A twice: for itself, and for the tangent that a joint lacks."""
    b = ag.ModelBuilder("held")
    b.add_body(
        "arm", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, -0.5), inertia=(0.1,) * 3, dry_friction=20.0
    )
    rows, _ = check(b, [0.3], [0.02], tolerance=1e-9, **(FEW | {"sweeps": sweeps}))
    assert rows["com"].largest > 1e-5


def test_both_gradients_agree_when_converged():
    swept, traj = laikago_gradient(
        solver="gauss_seidel", sweeps=6000, tolerance=1e-14, gradient="reverse", cone="elliptic"
    )
    implicit, other = laikago_gradient(**CONE)
    assert other.violation[0] == 0.0
    np.testing.assert_allclose(traj.q, other.q, atol=1e-12)
    for a, b in zip(swept[:3], implicit[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(b).max())


def test_every_stumbling_step_is_solved():
    model = ag.robots.laikago()
    noise = np.random.default_rng(0).normal(size=(64, 10, 12))
    u = model.keyframe_control() + 0.2 * np.repeat(noise, 50, axis=1)
    for dtype in ("f64", "f32"):
        sim = hard(model, dtype=dtype, **CONE)
        traj = sim.rollout(sim.reset(batch=64), u)
        assert traj.violation.max() == 0.0, dtype


def test_targets_agree():
    model = ag.robots.laikago()
    sims = [hard(model, backend=b, **CONE) for b in ("numpy", "native")]
    state = sims[1].reset(batch=3)
    state.v[:] = np.random.default_rng(0).normal(size=state.v.shape) * 0.3
    u = np.repeat(model.keyframe_control()[None], 2, 0)
    trajs = [sim.rollout(state, u) for sim in sims]
    grads = [
        sim.vjp(traj, q_bar=np.ones((3, 19)), v_bar=np.ones((3, 18))) for sim, traj in zip(sims, trajs, strict=True)
    ]
    np.testing.assert_allclose(trajs[0].v, trajs[1].v, rtol=1e-10, atol=1e-10)
    for a, b in zip(*(g[:3] for g in grads), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(a).max())
    alone = sims[1].rollout(ag.State(state.q[1], state.v[1]), u)
    np.testing.assert_array_equal(alone.v, trajs[1].v[1])  # other lanes do not change its bits


@pytest.mark.parametrize("load", [None, 10.0, 1000.0])
@pytest.mark.parametrize("v", [1.0, 0.01])
def test_sliding_has_the_derivative_at_its_solution(load, v):
    """A ball, alone and under a load on a stop: sweeps alone are far from the solution."""
    b = ag.ModelBuilder("sled")
    b.add_plane(friction=0.3)
    b.add_body("a", joint="free", mass=1.0, inertia=(0.006,) * 3, position=(0, 0, 0.0999))
    b.add_sphere("a", 0.1, friction=0.3)
    if load:
        b.add_body("w", "a", joint="prismatic", axis=(0, 0, 1), mass=load, inertia=(0.01 * load,) * 3, limit=(0, 1))
    model = b.build()
    sim, state = hard(model, **CONE), None
    state = sim.reset()
    state.v[0] = v
    if load:
        state.q[7] = -1e-4
    moved = [sim.step(ag.State(state.q, state.v + h * np.eye(model.nv)[1])).v[1] for h in (1e-5 * v, -1e-5 * v)]
    slope = (moved[0] - moved[1]) / (2e-5 * v)
    grad = sim.vjp(sim.rollout(state, steps=1), v_bar=np.eye(model.nv)[1])
    assert abs(grad.v0[1] - slope) < 1e-6
    assert abs(sim.linearize(state)[0][model.nv + 1, model.nv + 1] - slope) < 1e-6
