"""Parameters at kinks: reported ones have different derivatives on both sides, others have not."""

import numpy as np
import pytest

import artigrad as ag

DT, STEP = 0.01, 1e-7
AWAY = {"friction": 0.2, "time": 0.05, "limit": 0.05, "d1": 0.95}


def simulator(**given):
    """A ball that slides on a plane, and an arm at its limit."""
    x = AWAY | given
    model = ag.load(
        f"""<mujoco><worldbody>
          <geom type="plane" size="1 1 1" friction=".3" solref=".03 1" solimp=".9 {x["d1"]} .001 .5 2"/>
          <body pos="0 0 .099"><freejoint/>
            <geom size=".1" mass="1" friction="{x["friction"]}" solref="{x["time"]} 1" solimp=".9 {x["d1"]} .001 .5 2"/></body>
          <body pos="3 0 1"><joint type="hinge" axis="0 1 0" range="-20 20" limited="true" solreflimit="{x["limit"]} 1"/>
            <geom size=".1" pos=".3 0 0" mass="1" contype="0" conaffinity="0"/></body>
        </worldbody></mujoco>"""
    )
    return ag.Simulator(model, dt=DT, threads=1)


def slopes(sim, name, entry):
    """Return the one-sided derivatives of a loss with respect to one entry of a parameter."""
    q, v = np.r_[0.0, 0.0, 0.0994, 1.0, 0.0, 0.0, 0.0, np.radians(21.0)], np.r_[1.0, 0.0, -0.1, 0.0, 0.0, 0.0, 0.2]
    several = np.stack([np.array(sim.params[name])] * 3)
    several.reshape(3, -1)[:, entry] += STEP * np.arange(-1.0, 2.0)
    params = sim.params.replace(unchecked=True, **{name: several})
    start = ag.State(np.stack([q] * 3), np.stack([v] * 3))
    return np.diff(sim.rollout(start, steps=1, params=params).final.v @ np.arange(1.0, 8.0)) / STEP


@pytest.mark.parametrize(
    ("given", "kinks"),
    [
        ({}, {}),
        ({"friction": 0.3}, {"friction": [0, 1]}),
        ({"time": 0.01}, {"solref": [0, 2]}),  # a mean of two steps
        ({"limit": 0.02}, {"limit_solref": [2]}),
        ({"d1": 0.9999}, {"solimp": [1, 6]}),
    ],
)
def test_reported_kinks_have_two_slopes_and_others_one(given, kinks):
    sim = simulator(**given)
    found = sim.parameter_kinks()
    assert {name: np.flatnonzero(mask).tolist() for name, mask in found.items()} == kinks
    for name in ("friction", "solref", "solimp", "limit_solref"):
        for entry in range(sim.params[name].size):
            below, above = slopes(sim, name, entry)
            two = abs(above - below) > 1e-3 * (1e-2 + abs(above) + abs(below))
            assert not two or entry in kinks.get(name, []), (name, entry, below, above)
            if given and entry in kinks.get(name, []):
                assert two, (name, entry, below, above)


def test_equal_ends_of_a_range_and_equal_restitution_are_reported():
    b = ag.ModelBuilder("slider")
    b.add_body("slider", joint="prismatic", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_sphere("slider", 0.1)
    b.add_plane()
    b.add_motor("motor", "slider")
    model = b.build()
    params = model.params.replace(force_range=np.array([[2.0, 2.0]]), friction=np.array([0.5, 0.4]))
    assert list(ag.Simulator(model).parameter_kinks(params=params)) == ["force_range"]
    assert set(ag.Simulator(model, law="hard").parameter_kinks(params=params)) == {"force_range", "restitution"}


def test_numbers_that_make_a_servo_wrap_its_error_are_reported():
    b = ag.ModelBuilder("wheel")
    b.add_body("wheel", joint="revolute", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_site("rim", "wheel", position=(0.1, 0.2, 0.0))
    b.add_site("world", "world")
    on = {"site": "rim", "refsite": "world"}
    b.add_actuator("turns", kind="position", **on, gear=(0, 0, 0, 0.2, 0.1, 0.6))
    b.add_actuator("shifts too", kind="position", **on, gear=(0, 0.1, 0, 0.2, 0.1, 0.6))
    b.add_actuator("affine", **on, gear=(0, 0, 0, 0.2, 0.1, 0.6), gain=2.0, bias=(0.0, -2.0, 0.0))
    sim = ag.Simulator(b.build())
    found = {name: np.argwhere(mask).tolist() for name, mask in sim.parameter_kinks().items()}
    assert found == {"gain": [[2]], "bias": [[0, 1], [2, 1]], "gear_axes": [[j, k] for j in (0, 2) for k in range(3)]}
    for name, entry in ((name, tuple(entry)) for name, entries in found.items() for entry in entries):
        moved = sim.params[name].copy()
        moved[entry] += 1e-9
        for u, jumps in (([20.0, 0.0, 20.0], True), ([0.5, 0.0, 0.5], False)):
            here, there = (
                sim.step(sim.state(), u, params=p).v for p in (sim.params, sim.params.replace(**{name: moved}))
            )
            assert (np.abs(here - there) > 1e-4).all() == jumps, (name, entry, u)
    for row in ag.gradcheck(sim, steps=2, samples=1, show=False, state=sim.state()):
        assert row.error < 1e-6
