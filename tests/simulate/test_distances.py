"""Sensors of distance, normal and fromto: compared with MuJoCo, gradients with differences."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate.gradcheck import random_state
from tests.simulate.test_seeing import agree, check_gradients

SHAPES = {
    "ball": 'type="sphere" size=".1"',
    "pill": 'type="capsule" size=".1 .2"',
    "egg": 'type="ellipsoid" size=".1 .2 .15"',
    "can": 'type="cylinder" size=".1 .2"',
    "block": 'type="box" size=".1 .2 .15"',
    "stone": 'type="mesh" mesh="stone"',
}
FILE = """<mujoco><option ccd_tolerance="1e-12" ccd_iterations="200"/>
    <asset><mesh name="stone" vertex="-.1 0 0  .2 0 0  0 .3 0  0 0 .2  .1 .1 .3"/></asset>
    <worldbody><geom name="floor" type="plane" size="1 1 1" pos="0 0 -.8" euler="5 3 0"/>
      <body name="first" pos="0 0 .2"><joint type="ball"/><joint type="slide" axis="1 1 0"/>
        <geom name="one" {one} mass="1" pos=".02 .03 .1"/><geom name="more" size=".05" pos="0 0 -.4"/></body>
      <body name="second" pos=".7 .4 .7"><joint type="slide" axis="1 0 1"/><joint type="ball"/>
        <geom name="other" {other} mass="1" contype="0" conaffinity="0" euler="10 20 30"/></body></worldbody>
    <sensor>{sensors}</sensor></mujoco>"""
SIDES = ('geom1="one" geom2="other"', 'geom1="other" geom2="floor"', 'body1="second" body2="first"')


def measured(one, other, cutoff=2.0):
    sensors = [f'<{kind} {s} cutoff="{cutoff}"/>' for kind in ("distance", "normal", "fromto") for s in SIDES]
    return FILE.format(one=SHAPES[one], other=SHAPES[other], sensors="".join(sensors))


def apart(model, batch):
    """Return states in which the two bodies are near each other, mostly without overlap."""
    rng = np.random.default_rng(1)
    state = random_state(model, rng, batch)
    q = state.q.copy()
    q[:, 4:6] = 0.1 * rng.normal(size=(batch, 2))
    return ag.State(q, 0 * state.v), rng


@pytest.mark.parametrize("pair", ["ball block", "egg can", "block stone", "can pill"])
def test_distances_are_mujoco_s(pair):
    text = measured(*pair.split())
    model, m = ag.load(text), mujoco.MjModel.from_xml_string(text)
    sim, (state, rng) = ag.Simulator(model), apart(model, 30)
    found = sim.sensors(state)
    there = min(y[:, 0].min() for y in list(found.values())[:3])
    assert there > 0  # what overlaps is a matter of contact
    agree(sim, m, state, tolerance=1e-4 if {"egg", "can"} & {*pair.split()} else 1e-9)  # MuJoCo's, of curved solids
    few = ag.State(*(x[:6].copy() for x in state[:2]))
    fields = ("shape_position", "shape_rotation", "shape_size", *(("vertex",) if "stone" in pair else ()))
    check_gradients(sim, few, rng, fields, step=1e-6)


def test_overlaps_are_negative_and_their_segment_turns_round():
    text = measured("ball", "block").replace('pos=".7 .4 .7"', 'pos=".1 .1 .25"')
    model, m = ag.load(text), mujoco.MjModel.from_xml_string(text)
    state = ag.State(np.array([[1.0, 0, 0, 0, 0.02, 0.01, 1, 0, 0, 0]]), np.zeros((1, 8)))
    found = agree(ag.Simulator(model), m, state)
    assert found[0][0, 0] < 0 and found[3][0] @ (found[6][0, 3:] - found[6][0, :3]) > 0
    check_gradients(ag.Simulator(model), state, np.random.default_rng(0), ("shape_size",), step=1e-6)


def test_readings_end_at_the_cutoff():
    text = measured("ball", "block", cutoff=0.01)
    model, m = ag.load(text), mujoco.MjModel.from_xml_string(text)
    state, _ = apart(model, 3)
    distance, *_, segment = agree(ag.Simulator(model), m, state)
    assert (distance == 0.01).all() and not segment.any()
    grad = ag.Simulator(model).sensors_vjp(state, {model.sensors[0].name: np.ones((3, 1))})
    assert not grad.q.any()


def test_distances_of_bodies_with_many_shapes():
    """576 pairs within the cutoff."""
    row = "<replicate count='24' offset='0 .03 .02' euler='0 0 15'><geom size='{}' pos='.1 -.2 -.2'/></replicate>"
    bodies = "".join(
        f"<body name='{name}' pos='{x} 0 .3'><freejoint/>{row.format(size)}</body>"
        for name, x, size in (("one", 0, 0.01), ("two", 0.9, 0.03))
    )
    both = "body1='one' body2='two' cutoff='2'"
    text = f"<mujoco><worldbody>{bodies}</worldbody><sensor><distance {both}/><fromto {both}/></sensor></mujoco>"
    m, sim, rng = mujoco.MjModel.from_xml_string(text), ag.Simulator(ag.load(text)), np.random.default_rng(0)
    d, zero = mujoco.MjData(m), np.zeros((8, 12))
    q = ag.integrate(sim.model, np.tile(m.qpos0, (8, 1)), 0.2 * rng.normal(size=(8, 12)))
    read = np.concatenate(list(sim.sensors(ag.State(q, zero)).values()), 1)
    for k in range(8):
        d.qpos[:] = q[k]
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(read[k], d.sensordata, rtol=0, atol=1e-12)


def test_distances_are_saved_and_edited():
    model = ag.load(measured("pill", "stone"))
    state, _ = apart(model, 2)
    wanted = ag.Simulator(model).sensors(state)
    for other in (ag.edit(model).build(), ag.load(ag.spec(model))):
        found = ag.Simulator(other).sensors(state)
        for name, y in wanted.items():
            np.testing.assert_allclose(found[name], y, atol=1e-9)


def test_unmeasurable_distances_are_refused():
    b = ag.ModelBuilder("two")
    b.add_body("a", joint="free", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.add_plane(name="floor")
    b.add_plane(name="wall", rotation=(1.0, 0.0, 1.0, 0.0))
    with pytest.raises(ag.ModelError, match="shape or body"):
        b.add_sensor("far", "geomdist", between=(("subtree", "a"), ("shape", "floor")))
    b.add_sensor("far", "geomdist", between=(("body", "a"), ("shape", "floor")))
    with pytest.raises(ag.ModelError, match="body 'a', which has no shapes"):
        b.build()
    b.add_sphere("a", 0.1)
    b.add_sensor("walls", "geomdist", between=(("shape", "wall"), ("shape", "floor")))
    with pytest.raises(ag.ModelError, match="two planes"):
        b.build()


@pytest.mark.parametrize("pair", ["block block", "block can", "stone block"])
def test_deep_overlaps_are_the_least_ones(pair):
    """MuJoCo's expanding polytope finds the least overlap; a search from a few directions nearly always does."""
    one, other = pair.split()
    text = FILE.format(one=SHAPES[one], other=SHAPES[other], sensors=f'<distance {SIDES[0]} cutoff="1"/>')
    text = text.replace('pos=".7 .4 .7"', 'pos="0 0 .3"').replace('<joint type="slide" axis="1 1 0"/>', "")
    model, m, rng = ag.load(text), mujoco.MjModel.from_xml_string(text), np.random.default_rng(0)
    count = 400
    q = rng.normal(size=(count, model.nq)) * np.where(np.arange(model.nq) == 4, 0.1, 1.0)
    for k in (0, 5):
        q[:, k : k + 4] /= np.linalg.norm(q[:, k : k + 4], axis=1, keepdims=True)
    found = ag.Simulator(model).sensors(ag.State(q, np.zeros((count, model.nv))))[model.sensors[0].name][:, 0]
    d, wanted = mujoco.MjData(m), np.zeros(count)
    for k in range(count):
        d.qpos[:] = q[k]
        mujoco.mj_kinematics(m, d)
        mujoco.mj_sensorPos(m, d)
        wanted[k] = d.sensordata[0]
    deep = wanted < -0.02
    assert deep.sum() > 100 and (np.abs(found - wanted)[deep] < 1e-6).mean() > 0.98
    assert (found - wanted)[deep].max() < 1e-6
