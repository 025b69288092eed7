"""Contact on every target: NumPy, one robot, SIMD vectors; bits independent of other lanes."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler import widest
from artigrad.physics.constraints.hard import solver

from .scenes import hard

MODEL = ag.robots.laikago()


def inputs(batch, steps, seed=0):
    """Return random states: some in the air, some sliding, some standing."""
    rng = np.random.default_rng(seed)
    q = np.repeat(MODEL.keyframe().q[None], batch, 0)
    q = ag.integrate(MODEL, q, 0.05 * rng.normal(size=(batch, 18)))
    q[:, 2] = 0.47 + 0.04 * rng.random(batch)
    u = MODEL.keyframe_control() + 0.2 * rng.normal(size=(batch, steps, 12))
    return ag.State(q, 0.5 * rng.normal(size=(batch, 18))), u


def run(sim, state, u):
    traj = sim.rollout(state, u)
    grad = sim.vjp(traj, q_bar=np.cos(traj.q), v_bar=np.sin(traj.v))
    return [traj.q, traj.v, grad.q0, grad.v0, grad.u], grad.params.flat


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_same_bits_in_any_batch_lane_and_thread(dtype, cone):
    batch = widest(dtype) + 3
    state, u = inputs(batch, 40)
    whole, _ = run(hard(MODEL, dtype=dtype, cone=cone, threads=1), state, u)
    for a, b in zip(whole, run(hard(MODEL, dtype=dtype, cone=cone, threads=2), state, u)[0], strict=True):
        np.testing.assert_array_equal(a, b)
    sim = hard(MODEL, dtype=dtype, cone=cone)
    for pick in ([0], [batch - 1, 2], list(range(batch))[::-1]):
        part, _ = run(sim, ag.State(state.q[pick], state.v[pick]), u[pick])
        for a, b in zip(whole, part, strict=True):
            np.testing.assert_array_equal(a[pick], b)


@pytest.mark.parametrize("solver", ["hybrid", "gauss_seidel"])
def test_nan_counts_as_unsolved(solver):
    """An overflow shows in the violation, for any final state."""
    sim = hard(MODEL, solver=solver)
    state = sim.reset()
    state.v[:] = 1e200
    with pytest.warns(RuntimeWarning, match="not finite"):
        assert sim.rollout(state, steps=2).violation[0] != 0.0


@pytest.mark.filterwarnings("ignore:the constraint problem was not solved")  # by eight sweeps: that is what is compared
@pytest.mark.parametrize("solver", ["hybrid", "gauss_seidel"])
def test_numpy_agrees_with_native(solver):
    state, u = inputs(3, 4)
    results, sweeps = [], {"sweeps": 8} if solver == "gauss_seidel" else {}
    for backend in ("numpy", "native"):
        arrays, params = run(hard(MODEL, backend=backend, solver=solver, **sweeps), state, u)
        results.append([*arrays, params])
    for a, b in zip(*results, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(a).max()))


def test_solvers_agree_when_converged():
    state, u = inputs(4, 3)
    hybrid = hard(MODEL).rollout(state, u)
    swept = hard(MODEL, solver="gauss_seidel", sweeps=20000, tolerance=1e-12).rollout(state, u)
    assert hybrid.violation.max() == 0.0
    assert swept.violation.max() < 1e-9
    np.testing.assert_allclose(hybrid.v, swept.v, atol=1e-7)
    few = hard(MODEL, solver="gauss_seidel", sweeps=3).rollout(state, u)
    assert few.violation.max() > 1e-6  # and reports it otherwise


def test_robots_in_a_scene_move_as_they_do_alone():
    """Groups are independent: the same bits as alone."""
    three = ag.scene([MODEL] * 3, positions=[(0, 0, 0), (2, 1, 0), (-1, 5, 0)])
    assert (three.nq, three.nv, three.nu) == (57, 54, 36)
    u = np.repeat(MODEL.keyframe_control()[None], 100, 0)
    alone = hard(MODEL).rollout(hard(MODEL).reset(), u)
    sim = hard(three)
    together = sim.rollout(sim.reset(), np.tile(u, 3))
    np.testing.assert_array_equal(together.q[:, 2:19], alone.q[:, 2:])
    np.testing.assert_allclose(together.q[-1, 19 + 2 : 38], alone.q[-1, 2:], atol=1e-9)
    assert three.site("1/fl_foot") == 5


def test_robots_that_meet_in_a_scene():
    ball = ag.robots.ball(floor=True, friction=0.3)
    sim = hard(ag.scene([ball, ball], positions=[(0, 0, 0), (0.5, 0, 0)], friction=0.3))
    state = sim.reset("zero")
    state.v[0] = 2.0
    final = sim.rollout(state, steps=600).final
    assert final.v[6] > 0.3  # pushed along
    with pytest.raises(ag.ModelError, match="2 positions for 1 robots"):
        ag.scene([ball], positions=[(0, 0, 0), (1, 0, 0)])
    with pytest.raises(ag.ModelError, match="one or more Models"):
        ag.scene([])


@pytest.mark.parametrize("make", [ag.robots.ant, ag.robots.hopper], ids=lambda f: f.__name__)
def test_gym_robots_rest_and_have_right_gradients(make):
    model = make()
    sim = hard(model, dt=2e-3)
    traj = sim.rollout(sim.reset(), steps=1500)
    assert np.isfinite(traj.q).all() and traj.violation[0] < 1e-6
    limits = [(model.params.limit[i], traj.q[:, model.joint_q[i]]) for i in model.shapes.limited]
    assert all(lo - 2e-3 < q.min() and q.max() < hi + 2e-3 for (lo, hi), q in limits)
    rows = ag.gradcheck(sim, steps=1, samples=1, tolerance=np.inf, show=False, state=traj.final)
    for r in rows:
        if r.what not in ("restitution", "dry_friction"):
            assert r.error * max(r.largest, 1e-3) < 1e-5 * max(r.largest, 1.0), r


@pytest.mark.parametrize(("height", "found"), [(0.115, True), (0.129, False), (0.135, False)])
def test_contact_of_another_lane_does_not_bring_contact_forward(height, found):
    """A fast ball has the same bits beside a touching ball as alone, before and behind the margin of both."""
    model = ag.robots.ball(floor=True)
    sim = hard(model)
    q, v = np.repeat(sim.reset().q[None], 3, 0), np.zeros((3, 6))
    q[1, 2], v[1, 2] = height, -20.0
    together = sim.step(ag.State(q, v))
    np.testing.assert_array_equal(together.v[1], sim.step(ag.State(q[1], v[1])).v)
    assert (together.v[1, 2] > -20.0) == found


@pytest.mark.parametrize("solver", ["hybrid", "gauss_seidel"])
@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@pytest.mark.parametrize("speed", [5.0, 30.0, 300.0])
def test_contact_that_closes_within_a_step_is_found(speed, dt, solver):
    """A ball, and one attached to another, stop at the surface for any speed and time step."""
    b = ag.ModelBuilder("thin", gravity=(0, 0, 0))
    b.add_plane()
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.004,) * 3)
    b.add_sphere("ball", 0.1)
    b.add_body("slow", joint="free", mass=1.0, inertia=(0.004,) * 3)
    b.add_sphere("slow", 0.1)
    sim = hard(b.build(), dt=dt, solver=solver)
    reach, q, v = speed * dt, np.zeros(14), np.zeros(12)
    for part in (0.05, 0.5, 0.95):
        q[[3, 10]] = 1.0
        q[2], q[[7, 9]] = 0.1 + part * reach, (5.0, 3.0)
        v[2] = -speed
        after = sim.step(ag.State(q, v))
        assert abs(after.q[2] - 0.1) < 1e-4  # on the floor
        q[2], q[7], q[9] = 5.0, 0.2 + part * reach, 5.0
        v[:3], v[6] = (speed, 0, 0), 0.0
        after = sim.step(ag.State(q, v))
        assert 0.1999 < after.q[7] - after.q[0] < 0.2001  # touching
        v[0] = 0.0


@pytest.mark.parametrize("speed", [20.0, 700.0])
def test_a_limit_that_is_passed_in_one_step_is_found_in_it(speed):
    """The farther of the two limits is found, too."""
    b = ag.ModelBuilder("limit", gravity=(0, 0, 0))
    b.add_body("rod", joint="revolute", mass=1.0, inertia=(0.1,) * 3, limit=(-0.5, 0.5))
    sim = hard(b.build(), dt=1e-3)
    assert abs(sim.step(ag.State([0.5 - 0.9e-3 * speed], [speed])).q[0] - 0.5) < 1e-4


def test_without_softness():
    """A limited joint is regular; redundant contacts fall back to the sweeps and report their residual."""
    b = ag.ModelBuilder("limit")
    b.add_body(
        "rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1), limit=(-0.5, 0.5)
    )
    sim = hard(b.build(), softness=0.0)
    traj = sim.rollout(ag.State([0.0], [8.0]), steps=200)
    assert np.isfinite(traj.q).all() and traj.violation[0] == 0.0
    b = ag.ModelBuilder("box")
    b.add_body("b", joint="free", mass=2.0, inertia=(0.01,) * 3, position=(0, 0, 0.0999))
    b.add_box("b", (0.1, 0.1, 0.1))
    b.add_plane()
    sim = hard(b.build(), softness=0.0)
    traj = sim.rollout(sim.reset(), steps=50)
    assert np.isfinite(traj.q).all() and abs(traj.q[-1, 2] - 0.0999) < 1e-4


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_work_is_bounded_whatever_touches(cone, monkeypatch):
    """The worst case: no set of eight points ever passes the check.

    The cost, with an exact solve counted as one sweep per contact and three, is less than ten times fifty sweeps, and the
    residual is reported.
    """
    b = ag.ModelBuilder("plate")
    b.add_body("b", joint="free", mass=2.0, inertia=(0.02, 0.02, 0.03), position=(0, 0, 0.0199))
    for reach in (0.1, 0.2):
        b.add_convex_hull("b", [[x, y, -0.02] for x in (-reach, reach) for y in (-0.15, 0.15)], friction=0.5)
    b.add_plane(friction=0.5)
    sim, spent = hard(b.build(), cone=cone, backend="numpy"), {"sweep": 0, "factor": 0}

    def counted(name, real):
        def call(*args, **options):
            spent[name] += 1
            return real(*args, **options)

        return call

    def never(*args, real=solver.check):
        bad, worst = real(*args)
        return bad * 0.0 + 1.0, worst

    for name in spent:
        monkeypatch.setattr(solver, name, counted(name, getattr(solver, name)))
    monkeypatch.setattr(solver, "check", never)
    traj = sim.rollout(ag.State(sim.reset().q, np.array([0.3, 0.1, 0.0, 0.0, 0.0, 0.2])), steps=1)
    assert 50 < spent["sweep"] + (8 + 3) * spent["factor"] < 10 * 50
    assert traj.violation[0] > 0.0


def test_same_bits_of_robots_that_need_more_or_less_work():
    """Random ants: the number of iterations of one does not depend on the others."""
    model = ag.robots.ant()
    sim, rng = hard(model, dt=0.01), np.random.default_rng(3)
    q = ag.integrate(model, np.repeat(model.keyframe().q[None], 11, 0), 0.3 * rng.normal(size=(11, model.nv)))
    q[:, 2] = rng.uniform(0.2, 0.6, 11)
    state, u = ag.State(q, rng.normal(size=(11, model.nv))), rng.uniform(-1, 1, size=(11, 60, model.nu))
    together = sim.rollout(state, u)
    for k in range(11):
        alone = sim.rollout(ag.State(q[k], state.v[k]), u[k])
        np.testing.assert_array_equal(alone.v, together.v[k])
        assert alone.violation[0] == together.violation[k]


def test_contact_between_links_of_one_tree():
    b = ag.ModelBuilder("self")
    arm = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": (0.02, 0.02, 0.02), "position": (0.2, 0, 0)}
    b.add_body("base", joint="free", mass=2.0, inertia=(0.05, 0.05, 0.05))
    b.add_body("a", "base", joint="spherical", **arm)
    b.add_body("b", "a", joint="revolute", axis=(0, 0, 1), **arm)
    free = hard(b.build())
    b.add_sphere("base", 0.15, friction=0.5)
    b.add_sphere("b", 0.15, friction=0.4, position=(0.06, 0, 0))
    sim = hard(b.build())
    q = np.array([0, 0, 0, 1, 0, 0, 0, np.cos(0.5), 0, 0, np.sin(0.5), 2.5])
    v = np.array([0, 0, 0, 0.1, 0.2, 0.3, 0.1, 0.2, 2.0, 6.0])
    gap = np.linalg.norm(np.subtract(*sim.outputs(ag.State(q, v)).body_position[[0, 2]]))
    assert gap < 0.4
    for angle in np.linspace(2.0, 3.1, 111):  # find a pose that touches
        q[-1] = angle
        if np.abs(sim.step(ag.State(q, v)).v - free.step(ag.State(q, v)).v).max() > 1e-3:
            break
    else:
        raise AssertionError("no pose touches")
    rows = ag.gradcheck(sim, steps=1, samples=1, tolerance=np.inf, show=False, state=ag.State(q, v))
    for r in rows:
        if r.what not in ("restitution", "dry_friction"):
            assert r.error * max(r.largest, 1e-3) < 1e-6 * max(r.largest, 1.0), r


def test_every_step_of_stumbling_robots_is_solved():
    """64,000 steps with new random targets every 50: unrelaxed sweeps run into cycles on some of them."""
    rng = np.random.default_rng(0)
    u = MODEL.keyframe_control() + np.repeat(0.1 * rng.normal(size=(64, 20, 12)), 50, axis=1)
    sim = hard(MODEL)
    assert (sim.rollout(sim.reset(batch=64), u).violation == 0.0).all()


def test_every_step_of_flailing_ants_is_solved():
    """Legs of capsules with common ends: nearly the same contact twice, where sweeps alone converge slowly."""
    model = ag.robots.ant()
    sim, rng = hard(model, dt=0.01), np.random.default_rng(0)
    u = np.repeat(rng.uniform(-1, 1, size=(256, 40, model.nu)), 5, 1)
    assert sim.rollout(sim.reset(batch=256), u).violation.max() == 0.0
