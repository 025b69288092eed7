"""Noslip sweeps: equal to MuJoCo's noslip iterations, and their exact adjoint."""

import mujoco
import numpy as np
import pytest
from benchmarks.parity import tight

import artigrad as ag
from artigrad.model import tangent

from .scenes import CONES, every_row

# A body on three feet that rubs in its joints, a ball on it, a tendon that rubs; contacts of three, four and six directions.
FEET = """
<mujoco><option cone="{cone}" timestep=".002" noslip_iterations="4" impratio="2"/>
<default><geom friction=".6 .02 .01"/></default>
<worldbody><geom name="floor" type="plane" size="5 5 .1"/>
  <body name="A" pos="0 0 .1"><freejoint/><geom name="foot" size=".1" mass="1" condim="6"/>
    <geom name="other" size=".1" pos=".3 0 0" mass="1" condim="4"/><geom name="third" size=".1" pos="0 .3 0" mass="1"/>
    <site name="top" pos="0 .1 .2"/><site name="sole" size=".3"/>
    <body name="B" pos=".3 .3 0"><joint name="j" axis="0 1 0" frictionloss=".4" damping=".1"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .2 .1 -.04"/>
      <body pos=".2 .1 0"><joint name="k" axis="0 0 1" frictionloss=".2" range="-10 10"/>
        <geom size=".06" pos=".1 0 -.04"/><site name="tip" pos=".1 0 0"/></body></body></body>
  <body name="C" pos="0 0 .28"><freejoint/><geom name="ball" size=".09" mass=".5"/></body>
</worldbody>
<tendon><spatial frictionloss=".3"><site site="top"/><site site="tip"/></spatial></tendon>
<actuator><motor joint="j" gear="2"/></actuator>
<sensor><force site="tip"/><touch site="sole"/><accelerometer site="top"/></sensor></mujoco>"""


def both(xml, tmp_path):
    path = tmp_path / "scene.xml"
    path.write_text(xml)
    m = mujoco.MjModel.from_xml_path(str(path))
    tight(m)
    return ag.load(path), m


def shaken(m, trial, steps):
    """A state of MuJoCo's after some steps under random controls."""
    d, rng = mujoco.MjData(m), np.random.default_rng(trial)
    d.qvel[:] = 0.3 * rng.normal(size=m.nv)
    for _ in range(steps):
        d.ctrl[:] = rng.normal(size=m.nu)
        mujoco.mj_step(m, d)
    return d


def slope(f, h=1e-6):
    """Return the derivative of f, which takes several x at once, by extrapolated differences."""
    a, b, c, d = f(np.array([2 * h, h, -h, -2 * h]))
    return (8 * (b - c) - (a - d)) / (12 * h)


@pytest.mark.parametrize("cone", CONES)
def test_steps_equal_mujocos(cone, tmp_path):
    xml = every_row(cone).replace("<option", '<option noslip_iterations="3"')
    model, m = both(xml, tmp_path)
    sim = ag.Simulator(model, law=ag.SoftOptions(iterations=100))
    states = [shaken(m, k, 1 + 2 * k) for k in range(8)]
    q, v, u = (np.array([getattr(d, name) for d in states]) for name in ("qpos", "qvel", "ctrl"))
    after, crept = (
        s.rollout(ag.State(q, v), u[:, None]) for s in (sim, ag.Simulator(model, law=ag.SoftOptions(noslip=0)))
    )
    for k in range(len(states)):
        fresh = mujoco.MjData(m)
        fresh.qpos[:], fresh.qvel[:], fresh.ctrl[:] = q[k], v[k], u[k]
        mujoco.mj_step(m, fresh)
        change = np.abs(fresh.qvel - v[k]).max()
        assert np.abs(after.final.v[k] - fresh.qvel).max() < 1e-8 * change
    assert np.abs(after.final.v - crept.final.v).max() > 1e-3  # they do something


@pytest.mark.parametrize("cone", CONES)
def test_gradients(cone, tmp_path):
    """Reverse mode compared with differences, for the state and every parameter, and with forward mode."""
    model, m = both(FEET.format(cone=cone), tmp_path)
    sim = ag.Simulator(model, backend="numpy", law=ag.SoftOptions(iterations=100))
    d, rng = shaken(m, 1, 20), np.random.default_rng(0)
    assert d.ncon > 2
    state, u = ag.State(d.qpos.copy(), d.qvel.copy()), np.zeros((1, model.nu))
    traj = sim.rollout(state, u)
    v_bar, dv, dq = rng.normal(size=(2, model.nv)), rng.normal(size=model.nv), rng.normal(size=model.nv)
    grad = sim.vjp(traj, q_bar=np.zeros((2, model.nq)), v_bar=v_bar)

    def loss(q=state.q, v=state.v, params=None):
        q, v, us = (np.broadcast_to(x, (4, x.shape[-1])) for x in (q, v, u[0]))
        return np.sum(sim.rollout(ag.State(q, v), us[:, None], params=params).v * v_bar, (1, 2))

    wanted = slope(lambda x: loss(v=state.v + x[:, None] * dv))
    assert grad.v0 @ dv == pytest.approx(wanted, rel=1e-7)
    assert np.sum(sim.jvp(traj, dv=dv).v * v_bar) == pytest.approx(wanted, rel=1e-7)
    wanted = slope(lambda x: loss(q=np.array([tangent.integrate(model, state.q, y * dq) for y in x])))
    assert tangent.to_tangent(model, state.q, grad.q0) @ dq == pytest.approx(wanted, rel=1e-7)
    for name in ("friction", "torsional_friction", "mass", "com", "dry_friction", "tendon_dry_friction", "shape_size"):
        base = model.params[name]
        change = base * rng.normal(size=base.shape)
        moved = base + np.multiply.outer(np.array([2, 1, -1, -2]) * 1e-6, change)
        wanted = slope(lambda _, m=moved, n=name: loss(params=model.params.replace(**{n: m})))
        assert np.sum(grad.params[name] * change) == pytest.approx(wanted, rel=1e-6, abs=1e-7), name


def test_gradients_beside_contacts_without_friction(tmp_path):
    """A contact of condim 1 is not swept, and does not affect joints with dry friction."""
    joint = '<joint axis="0 1 0" frictionloss=".1"/>'
    model, _ = both(
        f"""<mujoco><option noslip_iterations="2"/><worldbody><geom type="plane" size="1 1 1" condim="1"/>
        <body pos="0 0 .3">{joint}<geom type="capsule" size=".05" fromto="0 0 0 .3 0 0" contype="0"/>
        <body pos=".3 0 0">{joint}<geom size=".1" pos=".1 0 -.201" condim="1"/></body></body></worldbody></mujoco>""",
        tmp_path,
    )
    sim = ag.Simulator(model, backend="numpy", law=ag.SoftOptions(iterations=100))
    state, v_bar = ag.State(np.zeros(2), np.array([0.3, -0.2])), np.array([[0.0, 0.0], [1.0, -2.0]])
    traj = sim.rollout(state, np.zeros((1, 0)))
    assert (sim.contacts(traj).along[0, :, 0] > 0).any()
    for dv in np.eye(2):
        moved = lambda x, dv=dv: sim.rollout(  # noqa: E731
            ag.State(np.zeros((4, 2)), state.v + x[:, None] * dv), np.zeros((4, 1, 0))
        )
        wanted = slope(lambda x, moved=moved: np.sum(moved(x).v * v_bar, (1, 2)))
        assert sim.vjp(traj, q_bar=np.zeros((2, 2)), v_bar=v_bar).v0 @ dv == pytest.approx(wanted, rel=1e-7)


def test_gradients_of_sensors(tmp_path):
    """Contact forces in sensors."""
    model, m = both(FEET.format(cone="pyramidal"), tmp_path)
    sim = ag.Simulator(model, backend="numpy", law=ag.SoftOptions(iterations=100))
    d, rng = shaken(m, 1, 20), np.random.default_rng(0)
    state, u, dv = ag.State(d.qpos.copy(), d.qvel.copy()), np.zeros(model.nu), rng.normal(size=model.nv)
    names = [s.name for s in model.sensors]
    y_bar = {s: rng.normal(size=np.shape(x)) for s, x in sim.sensors(state, u).items()}

    def loss(x):
        q, us = (np.broadcast_to(y, (len(x), len(y))) for y in (state.q, u))
        read = sim.sensors(ag.State(q, state.v + x[:, None] * dv), us)
        return sum(np.sum(read[s] * y_bar[s], -1) for s in names)

    assert sim.sensors_vjp(state, y_bar, u).v @ dv == pytest.approx(slope(loss), rel=1e-6)


def test_bits_do_not_depend_on_other_lanes(tmp_path):
    model, m = both(FEET.format(cone="pyramidal"), tmp_path)
    sim = ag.Simulator(model)
    states = [shaken(m, k, 10 * k) for k in range(5)]
    q, v = (np.array([getattr(d, name) for d in states]) for name in ("qpos", "qvel"))
    together = sim.rollout(ag.State(q, v), np.zeros((5, 3, model.nu)))
    for k in range(5):
        alone = ag.Simulator(model, lanes=1).rollout(ag.State(q[k], v[k]), np.zeros((3, model.nu)))
        assert np.array_equal(alone.v, together.v[k])


def test_noslip_stops_creep(tmp_path):
    slope = '<mujoco><option noslip_iterations="{n}" gravity="3 0 -9"/><worldbody><geom type="plane" size="1 1 1"/>'
    slope += '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>'
    crept = []
    for n in (0, 10):
        path = tmp_path / f"slope{n}.xml"
        path.write_text(slope.format(n=n))
        sim = ag.Simulator(ag.load(path))
        crept.append(abs(sim.rollout(sim.reset(), np.zeros((500, 0))).q[-1, 0]))
    assert crept[1] < 0.1 * crept[0]


FEW_DOFS = {
    "hinge": '<joint axis=".3 .2 1" pos=".2 .05 .1"/>',
    "planar": '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>',
    "ball": '<joint type="ball" pos=".1 .1 .1"/>',
}


@pytest.mark.parametrize("condim", [3, 4, 6])
@pytest.mark.parametrize("joints", FEW_DOFS)
def test_more_directions_of_friction_than_joints(joints, condim):
    """The matrix of a contact is singular. MuJoCo sets its friction to zero, or leaves it where that raises the cost."""
    text = f"""<mujoco><option cone="elliptic" noslip_iterations="2"/><worldbody><geom type="plane" size="1 1 1"/>
    <body pos="0 0 .09">{FEW_DOFS[joints]}<geom type="box" size=".1 .15 .12" condim="{condim}" friction=".7 .02 .01"/></body>
    </worldbody></mujoco>"""
    m, model = mujoco.MjModel.from_xml_string(text), ag.load(text)
    tight(m)
    d, rng = mujoco.MjData(m), np.random.default_rng(3)
    d.qvel[:] = rng.normal(size=m.nv)
    q = tangent.integrate(model, d.qpos.copy(), 0.1 * rng.normal(size=m.nv))
    d.qpos[:] = q
    sim = ag.Simulator(model, backend="numpy", law=ag.SoftOptions(iterations=100, noslip=2))
    state = ag.State(q, d.qvel.copy())
    traj = sim.rollout(state, steps=1)
    mujoco.mj_step(m, d)
    np.testing.assert_allclose(traj.final.v, d.qvel, rtol=1e-9, atol=1e-9)
    bar = rng.normal(size=model.nv)
    grad = sim.vjp(traj, v_bar=bar)
    for k, along in enumerate(np.eye(model.nv)):
        by_v = slope(lambda h, e=along: sim.step(ag.State(np.tile(q, (4, 1)), state.v + h[:, None] * e)).v @ bar)
        by_q = slope(
            lambda h, e=along: (
                sim.step(
                    ag.State(tangent.integrate(model, np.tile(q, (4, 1)), h[:, None] * e), np.tile(state.v, (4, 1)))
                ).v
                @ bar
            )
        )
        found = grad.v0[k], tangent.to_tangent(model, q, grad.q0)[k]
        np.testing.assert_allclose(found, (by_v, by_q), rtol=1e-6, atol=1e-6)
