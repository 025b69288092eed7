"""Parameter estimation: estimates, reports on unidentifiable parameters, and refused input."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import artigrad as ag
from artigrad.fit.parameters import chosen
from artigrad.model.params import FIELDS
from tests.physics.constraints.soft.scenes import every_row

from .models import CAR_DT, car, car_data, noisy

EXAMPLE = Path(__file__).parents[2] / "examples" / "fit_pendulum.py"


@pytest.fixture(scope="module")
def double():
    """Return the double pendulum of the example, its measurement and its unknown parameters."""
    spec = importlib.util.spec_from_file_location("fit_pendulum", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def swinging(sim, params, noise=0.0, steps=300, u=None, seed=0):
    """Return a recording of a pendulum."""
    rng = np.random.default_rng(seed)
    start = ag.State(np.linspace(1.2, -0.5, sim.model.nq), np.zeros(sim.model.nv))
    traj = sim.rollout(start, u=np.zeros((steps, sim.model.nu)) if u is None else u, params=params)
    sites = sim.sites(ag.State(traj.q, traj.v), params=params)
    return ag.Recording(q=noisy(traj.q, noise, rng), v=noisy(traj.v, noise, rng), u=u), noisy(sites, noise, rng)


def sines(steps, nu):
    return 2.0 * np.sin(np.arange(steps)[:, None] * 0.05 * (1 + 0.6 * np.arange(nu)))


# -- estimates ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(10))
def test_double_pendulum_from_random_starts(double, seed):
    rng = np.random.default_rng(seed)
    sim = ag.Simulator(ag.robots.pendulum(2), dt=0.01)
    data = double.recorded(sim, 0.01, rng)
    start = {name: x * np.exp(rng.uniform(-0.7, 0.7)) for name, x in double.TRUE.items()}
    found = ag.fit(sim, data, double.parameters(start))
    assert found.converged and not found.unidentifiable
    for name, true in double.TRUE.items():
        assert abs(found.values[name] / true - 1) < 0.02, name
        assert abs(found.values[name] - true) < 4.5 * found.standard_deviation[name], name


@pytest.mark.parametrize("start", [0.05, 0.5])
def test_friction_of_a_car(start):
    data = car_data(0.21, 0.01, np.random.default_rng(0))
    found = ag.fit(ag.Simulator(car(start), dt=CAR_DT), data, ["friction[floor]"])
    assert abs(found.values["friction[floor]"] / 0.21 - 1) < 0.02
    assert found.params.friction[0] == found.values["friction[floor]"]


def test_without_noise_values_are_exact():
    sim = ag.Simulator(ag.robots.pendulum(2, damping=0.2), dt=0.01)
    true = sim.params.replace(mass=[1.3, 0.7], damping=[0.1, 0.3], gain=[1.2, 0.8])
    data, _ = swinging(sim, true, u=sines(300, 2))
    found = ag.fit(sim, data, ["mass", "damping[rod1]", "damping[rod2]", "gain"])
    np.testing.assert_allclose(found.params.flat, true.flat, rtol=1e-7)
    assert found.noise < 1e-8 and list(found.losses[-3:]) == sorted(found.losses[-3:], reverse=True)


@pytest.mark.parametrize("seen", ["q", "sites"])
def test_without_velocities(seen):
    sim = ag.Simulator(ag.robots.pendulum(1, damping=0.2), dt=0.01)
    true = sim.params.replace(damping=[0.5], gain=[1.5])
    data, sites = swinging(sim, true, noise=0.01, u=sines(400, 1), steps=400)
    data = ag.Recording(q=data.q, u=data.u) if seen == "q" else ag.Recording(sites=sites, u=data.u)
    found = ag.fit(sim, data, ["damping", "gain"])
    assert abs(found.values["damping[rod1]"] - 0.5) < 0.02 and abs(found.values["gain[rod1]"] - 1.5) < 0.04


def test_several_recordings_tell_more_than_one():
    sim = ag.Simulator(ag.robots.pendulum(1, damping=0.2), dt=0.01)
    true = sim.params.replace(damping=[0.5])
    data = [swinging(sim, true, noise=0.01, steps=n, seed=n)[0] for n in (60, 90, 140)]
    one, all_ = (ag.fit(sim, d, ["damping"]) for d in (data[0], data))
    assert all_.standard_deviation["damping[rod1]"] < 0.6 * one.standard_deviation["damping[rod1]"]
    assert abs(all_.values["damping[rod1]"] - 0.5) < 4 * all_.standard_deviation["damping[rod1]"]


def test_inertias_stay_those_of_bodies():
    b = ag.ModelBuilder("top")
    b.add_body("top", joint="spherical", mass=1.0, inertia=(0.3, 0.25, 0.2))
    b.add_site("mark", "top", position=(0.0, 0.0, 0.5))
    sim = ag.Simulator(b.build(), dt=0.01)
    true = sim.params.replace(inertia=[[0.3, 0.2, 0.12, 0.02, -0.01, 0.03]])
    traj = sim.rollout(ag.State(np.array([1.0, 0, 0, 0]), np.array([3.0, 2.0, 5.0])), steps=200, params=true)
    found = ag.fit(sim, ag.Recording(q=traj.q, v=traj.v), ["inertia[top]"])
    ratio = found.params.inertia[0] / true.inertia[0]  # a body that turns freely shows its moments up to a factor
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    assert len(found.unidentifiable) == 1 and np.isinf(found.standard_deviation["inertia[top].xx"])
    xx, yy, zz = np.linalg.eigvalsh(found.params.inertia[0][[[0, 3, 4], [3, 1, 5], [4, 5, 2]]])
    assert xx > 0 and zz < xx + yy


def test_labels_that_it_prints_can_be_given():
    sim = ag.Simulator(ag.robots.pendulum(2, damping=0.2), dt=0.01)
    inertia = np.array(sim.params.inertia)
    inertia[0, 1] *= 1.4
    data, _ = swinging(sim, sim.params.replace(unchecked=True, inertia=inertia), steps=150)
    found = ag.fit(sim, data, ["inertia[rod1].yy", "com[rod1].z"])
    assert found.values["inertia[rod1].yy"] == pytest.approx(inertia[0, 1], rel=1e-5)
    assert list(found.values) == ["inertia[rod1].yy", "com[rod1].z"]
    other = np.delete(np.array(found.params.inertia[0]), 1)
    assert np.array_equal(other, np.delete(sim.params.inertia[0], 1))


def test_first_states_alone():
    sim = ag.Simulator(ag.robots.pendulum(2, damping=0.2), dt=0.01)
    true = sim.params.replace(mass=[1.4, 0.6])
    data = [swinging(sim, true, noise=0.01, steps=80, seed=k)[0] for k in range(2)]
    found = ag.fit(sim, [ag.Recording(q=d.q) for d in data], [], params=true)
    assert found.start.q.shape == (2, 2) and found.values == {} and np.array_equal(found.params.flat, true.flat)
    np.testing.assert_allclose(found.start.q, [[1.2, -0.5]] * 2, atol=0.02)
    np.testing.assert_allclose(found.start.v, np.zeros((2, 2)), atol=0.15)
    assert abs(found.start.q - [d.q[0] for d in data]).max() > 0  # not what was measured


def test_activations_are_estimated_with_first_states():
    """A muscle that is active when the recording begins, and a motor with a filter; neither activation is measured."""
    sim = ag.Simulator(
        ag.load("""<mujoco><option timestep=".01"/><worldbody>
          <body><joint name="a" axis="0 1 0" damping=".3"/><geom type="capsule" size=".05" fromto="0 0 0 0 0 -.5" mass="1"/>
            <body pos="0 0 -.5"><joint name="b" axis="0 1 0" damping=".2"/>
              <geom type="capsule" size=".04" fromto="0 0 0 0 0 -.5" mass=".6"/></body></body></worldbody>
          <actuator><general joint="a" dyntype="filter" dynprm=".2" gainprm="2"/>
            <muscle joint="b" force="20" lengthrange="-2 2" timeconst=".05 .1" gear=".2"/></actuator></mujoco>""")
    )
    true = sim.params.replace(damping=[0.4, 0.1], gain=[1.3, sim.params.gain[1]])
    start = ag.State(np.array([0.5, -0.3]), np.zeros(2), np.array([0.8, 0.6]))
    u = np.stack([np.sin(0.07 * np.arange(300)), (np.arange(300) // 40 % 2) * 0.7], 1)
    traj = sim.rollout(start, u, params=true)
    found = ag.fit(sim, ag.Recording(q=traj.q, v=traj.v, u=u), ["damping", "gain[a]"])
    np.testing.assert_allclose(found.params.flat, true.flat, rtol=1e-6)
    np.testing.assert_allclose(found.start.act, [[0.8, 0.6]], rtol=1e-5)


@pytest.mark.parametrize("velocities", [False, True])
def test_angles_that_jump_are_unwrapped(velocities):
    """A pendulum that rotates fully, with a sensor that wraps its angle, in two recordings with different offsets."""
    sim = ag.Simulator(ag.robots.pendulum(1, damping=0.2), dt=0.01)
    true, data, plain = sim.params.replace(damping=[0.5]), [], []
    for turns in (0, 3):
        start = ag.State(np.array([1.0]), np.array([14.0]))
        traj = sim.rollout(start, steps=120, params=true)
        wrapped = (traj.q + np.pi) % (2 * np.pi) - np.pi + 2 * np.pi * turns
        assert np.abs(np.diff(wrapped[:, 0])).max() > 5
        data.append(ag.Recording(q=wrapped, v=traj.v if velocities else None))
        plain.append(ag.Recording(q=traj.q, v=traj.v if velocities else None))
    found, want = (ag.fit(sim, d, ["damping"]) for d in (data, plain))
    assert found.values["damping[rod1]"] == pytest.approx(want.values["damping[rod1]"], rel=1e-9)
    assert "jumps by whole turns" in found.notes[0] and "whole turns" in str(found) and not want.notes


def test_turns_of_a_joint_with_a_spring_are_kept():
    b = ag.ModelBuilder("sprung")
    b.add_body("rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), stiffness=0.5, damping=0.1)
    sim = ag.Simulator(b.build(), dt=0.01)
    true = sim.params.replace(damping=[0.3])
    starts = [0.5, 0.5 + 2 * np.pi]
    data = [ag.Recording(q=sim.rollout(ag.State(np.array([x]), np.zeros(1)), steps=100, params=true).q) for x in starts]
    found = ag.fit(sim, data, ["damping"])
    assert found.values["damping[rod]"] == pytest.approx(0.3, rel=1e-6) and found.notes == ()


def test_value_stays_at_an_active_bound():
    sim = ag.Simulator(ag.robots.pendulum(1, damping=0.2), dt=0.01)
    data, _ = swinging(sim, sim.params.replace(damping=[0.5]), noise=0.01)
    found = ag.fit(sim, data, ["damping"], bounds={"damping": (0.1, 0.3)})
    assert found.values["damping[rod1]"] == pytest.approx(0.3) and np.isnan(found.standard_deviation["damping[rod1]"])
    assert "at its bound" in str(found)


# -- parameters that cannot be distinguished ---------------------------------------------------------------------------
def test_two_masses_that_only_add():
    b = ag.ModelBuilder("pan")
    b.add_body("pan", joint="prismatic", axis=(0, 0, 1), mass=1.0, stiffness=50.0, damping=0.5)
    b.add_body("load", "pan", mass=2.0)
    sim = ag.Simulator(b.build(), dt=0.01)
    traj = sim.rollout(sim.reset(), steps=200, params=sim.params.replace(mass=[1.5, 2.5]))
    rng = np.random.default_rng(0)
    data = ag.Recording(q=noisy(traj.q, 0.01, rng), v=noisy(traj.v, 0.01, rng))
    found = ag.fit(sim, data, ["mass", "damping"])
    assert sum(found.values[f"mass[{n}]"] for n in ("pan", "load")) == pytest.approx(4.0, rel=0.02)
    assert len(found.unidentifiable) == 1
    assert (
        "mass[pan] and mass[load] cannot be distinguished: mass[pan] up 1 %, mass[load] down" in found.unidentifiable[0]
    )
    assert np.isinf(found.standard_deviation["mass[pan]"]) and found.standard_deviation["damping[pan]"] < 0.1
    assert "unidentifiable" in str(found) and "cannot be distinguished" in str(found)


def test_gear_and_gain_only_multiply():
    sim = ag.Simulator(ag.robots.pendulum(1, damping=0.2), dt=0.01)
    data, _ = swinging(sim, sim.params.replace(gear=[2.0]), u=sines(300, 1))
    found = ag.fit(sim, data, ["gear", "gain", "damping"])
    assert found.values["gear[rod1]"] * found.values["gain[rod1]"] == pytest.approx(2.0, rel=1e-5)
    assert (
        len(found.unidentifiable) == 1
        and "gear[rod1]" in found.unidentifiable[0]
        and "gain[rod1]" in found.unidentifiable[0]
    )
    assert "damping" not in found.unidentifiable[0]


def test_parameter_without_effect_is_reported():
    sim = ag.Simulator(ag.robots.pendulum(1, damping=0.2), dt=0.01)
    data, _ = swinging(sim, sim.params, noise=0.01)  # no motor runs
    found = ag.fit(sim, data, ["gain", "damping"])
    assert found.unidentifiable == ("gain[rod1] has almost no effect on these data",)


# -- errors ------------------------------------------------------------------------------------------------------------
def refused(words, parameters=("damping",), data=None, **options):
    sim = ag.Simulator(ag.robots.pendulum(2, damping=0.1), dt=0.01)
    data = ag.Recording(q=np.zeros((100, 2)), v=np.zeros((100, 2))) if data is None else data
    with pytest.raises(ag.InputError, match=words) as error:
        ag.fit(sim, data, list(parameters) if isinstance(parameters, tuple) else parameters, **options)
    assert "\n" not in str(error.value)


def put_nothing(params, x):
    return None


@pytest.mark.parametrize(
    "parameters, words",
    [
        (("color",), "unknown parameter 'color'"),
        (("mass[rod9]",), "no body 'rod9' for 'mass\\[rod9\\]'; it has: rod1, rod2"),
        (("com[rod1].w",), "com has components x, y, z"),
        (("mass[rod1].x",), "mass has no components"),
        (("rotation[rod1]",), "pass an ag.Parameter"),
        (("stiffness",), "every 'stiffness' is zero or infinite"),
        (("mass", "mass[rod1]"), "'mass\\[rod1\\]' is listed twice"),
        ("mass", "parameters is a list"),
        ((3,), "a parameter is a name"),
        ((ag.Parameter("x", put_nothing, 1.0),), "must return Params, not NoneType"),
        ((ag.Parameter("x", put_nothing, 1.0, (2.0, 3.0)),), "'x' starts at 1, outside its bounds"),
    ],
)
def test_parameters_that_do_not_exist(parameters, words):
    refused(words, parameters)


@pytest.mark.parametrize(
    "bounds, words",
    [
        ({"damping": (0.2, 1.0)}, "'damping\\[rod1\\]' starts at 0.1, outside its bounds \\(0.2, 1\\): move one"),
        ({"damping[rod2]": (1.0, 0.2)}, "the lowest must be below the highest"),
        ({"damping": 3.0}, "are two numbers"),
        ({"mass": (0.0, 1.0)}, "bounds for 'mass', which is not estimated"),
    ],
)
def test_bounds_that_do_not_fit(bounds, words):
    refused(words, bounds=bounds)


def test_data_that_do_not_fit():
    q = np.zeros((100, 2))
    refused("N, 2\\).*not \\(100, 3\\)", data=ag.Recording(q=np.zeros((100, 3))))
    refused("same N", data=ag.Recording(q=q, v=q[1:]))
    refused("controls between 100 measurements are \\(99, 2\\), not \\(100, 2\\)", data=ag.Recording(q=q, u=q))
    refused("q\\[3, 1\\] is nan", data=ag.Recording(q=np.where(np.arange(200).reshape(100, 2) == 7, np.nan, q)))
    refused("needs q or sites", data=ag.Recording(v=q))
    refused("at least 3", data=ag.Recording(q=q[:2]))
    refused("a multiple of the simulator's 0.01 s", data=ag.Recording(q=q, dt=0.015))
    refused("need the same channels", data=[ag.Recording(q=q), ag.Recording(q=q, v=q)])
    refused("data is an ag.Recording", data=[q])
    refused("cannot determine 2 parameters", data=ag.Recording(q=q[:3]))
    refused("a window is an integer number", window=2)


def test_simulators_that_do_not_fit():
    sim = ag.Simulator(ag.robots.pendulum(2), dtype="f32")
    with pytest.raises(ag.InputError, match="dtype='f64'"):
        ag.fit(sim, ag.Recording(q=np.zeros((9, 2))), ["mass"])


def test_every_parameter_has_a_name_or_an_error():
    params = ag.load(every_row()).params
    for field in FIELDS:
        if not params[field].size:
            continue
        try:
            place = chosen(params, field).place
        except ag.InputError as error:
            assert "no independent entries" in str(error), field
        else:
            assert params[field][place].size == params[field].size, field
    assert chosen(params, "solimp[floor].width").components == [2]
    assert chosen(params, "density").place == ()
