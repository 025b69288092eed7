"""Failures are reported at once, with their location."""

import warnings

import numpy as np
import pytest

import artigrad as ag

MODEL = ag.robots.pendulum(2)


def too_fast(sim, robot, batch=4):
    state = sim.reset(batch=batch)
    state.v[robot] = 1e200
    return state


@pytest.mark.parametrize("checkpoints", [ag.EveryStep(), ag.EveryKth(5), ag.Binomial(memory=8 * 4 * 4 * 4)])
def test_nonfinite_trajectory_is_reported(checkpoints):
    sim = ag.Simulator(MODEL)
    with pytest.warns(RuntimeWarning, match="robot 2 is not finite") as told:
        traj = sim.rollout(too_fast(sim, 2), steps=20, checkpoints=checkpoints)
    np.testing.assert_array_equal(np.isnan(traj.violation), [False, False, True, False])
    assert told[0].filename == __file__  # the caller's line, not one of the library's


def test_the_step_is_named():
    sim = ag.Simulator(ag.robots.cartpole(1), dt=1e-2)
    u = np.zeros((10, sim.model.nu))
    u[6] = 1e300
    with pytest.warns(RuntimeWarning, match="from step [789] on"):
        sim.rollout(sim.reset(), u)


def test_nonfinite_step():
    sim = ag.Simulator(MODEL)
    with pytest.warns(RuntimeWarning, match="not finite"):
        sim.step(too_fast(sim, 0))


def test_contact_too():
    sim = ag.Simulator(ag.robots.laikago())
    state = sim.reset()
    state.v[:] = 1e200
    with pytest.warns(RuntimeWarning, match="not finite"):
        assert np.isnan(sim.rollout(state, steps=3).violation).all()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("mass", -1.0, "cannot be negative"),
        ("friction", -0.1, "cannot be negative"),
        ("restitution", 1.5, "between 0 and 1"),
    ],
)
def test_numbers_that_no_robot_has(field, value, message):
    sim = ag.Simulator(ag.robots.laikago(), law="hard")
    changed = np.full(sim.params[field].shape, value)
    with pytest.raises(ag.InputError, match=rf"params.{field}\[0\].*{message}.*unchecked=True"):
        sim.step(sim.reset(), params=sim.params.replace(**{field: changed}))
    sim.step(sim.reset(), params=sim.params.replace(unchecked=True, mass=sim.params.mass - 1e-9))


@pytest.mark.parametrize("field", ["limit", "control_range", "force_range"])
def test_reversed_ranges(field):
    sim = ag.Simulator(ag.robots.laikago())
    reversed_ones = sim.params[field].copy()
    reversed_ones[-1] = (1.0, -1.0)
    with pytest.raises(ag.InputError, match=rf"params.{field}\[\d+\].*lowest comes before"):
        sim.step(sim.reset(), params=sim.params.replace(**{field: reversed_ones}))


def test_masked_arrays_are_refused():
    sim = ag.Simulator(MODEL)
    gaps = np.ma.masked_equal(np.ones((3, MODEL.nu)), 1.0)
    with pytest.raises(ag.InputError, match="u is a masked array"):
        sim.rollout(sim.reset(), gaps)
    with pytest.raises(ag.InputError, match=r"params.mass is a masked array"):
        MODEL.params.replace(mass=np.ma.masked_equal([1.0, 2.0], 1.0))


def test_numbers_of_numpy_are_numbers():
    law = ag.SoftOptions(iterations=np.int64(7))
    sim = ag.Simulator(MODEL, np.float32(0.5), threads=np.int64(1), lanes=np.int64(1), law=law)
    assert sim.options == ag.Options(dt=0.5, law=ag.SoftOptions(iterations=7))
    assert type(sim.options.law.iterations) is int


@pytest.mark.parametrize("options", [{"iterations": True}, {"refsafe": 1.5}, {"noslip": -1}, {"impratio": 0}])
def test_options_of_the_soft_law_of_the_wrong_kind(options):
    with pytest.raises(ag.InputError, match=next(iter(options))):
        ag.SoftOptions(**options)


@pytest.mark.parametrize("options", [{"dt": True}, {"law": "firm"}, {"law": 3}, {"max_contacts": 3.0}])
def test_options_of_the_wrong_kind(options):
    with pytest.raises(ag.InputError, match=next(iter(options))):
        ag.Simulator(MODEL, **options)


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda b: b.add_sphere("ball", 0.1, group=1.0), "group of shape 'ball:sphere0' must be a whole number"),
        (lambda b: b.add_convex_hull("ball", [[1, 2, 3], [1, 2]]), r"must be \(n, 3\) finite numbers"),
        (lambda b: b.add_convex_hull("ball", [1, 2, 3, 4, 5, 6]), r"must be \(n, 3\) finite numbers"),
        (lambda b: b.add_body("other", mass=True), "mass of body 'other' must be a number"),
    ],
)
def test_shapes_and_bodies_of_the_wrong_kind(add, message):
    b = ag.ModelBuilder("ball")
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1))
    with pytest.raises(ag.ModelError, match=message):
        add(b)


def test_solved_rollout_does_not_warn():
    sim = ag.Simulator(ag.robots.laikago())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sim.rollout(sim.reset(batch=3), steps=5).violation.max() == 0


@pytest.mark.parametrize("dtype, angle", [("f64", 1e13), ("f32", 1e4)])
def test_unresolved_angles_are_reported(dtype, angle):
    sim = ag.Simulator(ag.robots.pendulum(2), dtype=dtype)
    with pytest.warns(
        RuntimeWarning, match="joint 'rod2' of robot 1 is at .* rad, where angles are no longer resolved"
    ):
        sim.outputs(ag.State(np.array([[0.0, 1.0], [0.0, angle]]), np.zeros((2, 2))))
    fast = ag.Simulator(ag.robots.pendulum(1), dtype=dtype)
    with pytest.warns(RuntimeWarning, match="joint 'rod1' is at"):
        fast.rollout(ag.State(np.zeros(1), np.array([0.3 * angle / fast.dt])), steps=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(ag.State(np.array([0.1 * angle, 0.0]), np.zeros(2)))


@pytest.mark.parametrize("dtype, far", [("f64", 1e6), ("f32", 50.0)])
def test_robots_that_slid_too_far_for_their_digits_are_reported(dtype, far):
    sim = ag.Simulator(ag.robots.hopper(), dtype=dtype)
    q, v = sim.reset(batch=2)
    q[1, 0] = far
    with pytest.warns(RuntimeWarning, match="of robot 1 is at .* m, too far from the origin for the digits of float"):
        sim.step(ag.State(q, v))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q[1, 0] = 0.2 * far
        sim.step(ag.State(q, v))
    free = ag.Simulator(ag.robots.laikago(), dtype=dtype)
    q, v = free.reset()
    q[0] = far
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        free.step(ag.State(q, v))
