"""Tendons around spheres and cylinders: MuJoCo's lengths and forces; gradients; equal on every target."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.build.inverse_weights import tendon_lengths, tendon_weights
from artigrad.simulate.gradcheck import random_state

PATHS = {
    "sphere": '<site site="a"/><geom geom="ball"/><site site="b"/>',
    "cylinder": '<site site="a"/><geom geom="drum"/><site site="b"/><geom geom="hub"/><site site="c"/>',
    "sides": '<site site="d"/><geom geom="drum" sidesite="side"/><site site="b"/><pulley divisor="2"/><site site="d"/>'
    '<geom geom="ball" sidesite="side"/><site site="b"/>',
    "inside": '<site site="d"/><geom geom="drum" sidesite="inner"/><site site="b"/>',
    "in_a_ball": '<site site="a"/><geom geom="ball" sidesite="inner"/><site site="c"/>',
}
CALM = 'contype="0" conaffinity="0"'
ROBOT = f"""<mujoco model="wrapped"><worldbody>
  <site name="a" pos="-.3 .02 .9"/><site name="d" pos="-.3 -.04 1.1"/>
  <body name="one" pos="0 0 1"><joint axis="0 1 .1" damping=".1"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".04" {CALM}/>
    <geom name="ball" size=".08" pos=".02 .01 0" {CALM}/>
    <geom name="drum" type="cylinder" size=".06 .1" pos=".05 0 .03" euler="80 10 0" {CALM}/>
    <site name="side" pos=".05 .02 .3"/><site name="inner" pos=".06 .01 .04"/>
    <body name="two" pos=".5 0 0"><joint axis="0 1 .3" damping=".05"/>
      <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" {CALM}/>
      <geom name="hub" size=".05" pos="0 0 .01" {CALM}/><site name="b" pos="-.2 .03 .02"/><site name="c" pos=".2 -.01 -.03"/>
  </body></body></worldbody>
  <tendon>{"".join(f'<spatial name="{n}" damping=".1" stiffness="5">{path}</spatial>' for n, path in PATHS.items())}</tendon>
  <actuator>{"".join(f'<motor name="{name}" tendon="{name}"/>' for name in PATHS)}</actuator>
  <sensor>{"".join(f'<tendonpos tendon="{name}"/><tendonvel tendon="{name}"/>' for name in PATHS)}</sensor></mujoco>"""


@pytest.fixture(scope="module")
def model():
    return ag.load(ROBOT)


def given(model, seed, batch=None):
    rng = np.random.default_rng(seed)
    state = random_state(model, rng, batch)
    return state._replace(q=2 * state.q), rng.normal(size=(*([] if batch is None else [batch]), 2, model.nu))


def test_steps_agree_with_mujoco(model):
    """Inside a shape, MuJoCo's iteration stops at a relative error of 1e-8."""
    m, (state, u) = mujoco.MjModel.from_xml_string(ROBOT), given(model, 0, 150)
    d, sim = mujoco.MjData(m), ag.Simulator(model, backend="numpy")
    readings = np.concatenate(list(sim.sensors(state, u[:, 0]).values()), 1)
    a, wraps = sim.forward_dynamics(state, u[:, 0]), set()
    for k in range(150):
        d.qpos[:], d.qvel[:], d.ctrl[:] = *(x[k] for x in state), u[k, 0]
        mujoco.mj_forward(m, d)
        wraps |= {(t, int(n)) for t, n in enumerate(d.ten_wrapnum)}
        np.testing.assert_allclose(readings[k, :6], d.sensordata[:6], rtol=0, atol=1e-12)
        np.testing.assert_allclose(readings[k, 6:], d.sensordata[6:], rtol=0, atol=5e-8)
        np.testing.assert_allclose(a[k], d.qacc, atol=5e-8 * np.abs(d.qacc).max())
    assert all(len({n for s, n in wraps if s == t}) > 1 for t in range(len(PATHS)))  # each does and does not
    np.testing.assert_allclose(model.params.tendon_invweight0, m.tendon_invweight0, rtol=1e-9)


@pytest.mark.parametrize("integrator", ["euler", "implicit"])
def test_gradients_by_differences(model, integrator):
    sim = ag.Simulator(model, integrator=integrator)
    for seed in (1, 2):
        ag.gradcheck(sim, steps=2, samples=1, show=False, state=given(model, seed)[0])


def gradients(sim, state, u):
    traj = sim.rollout(state, u)
    grad = sim.vjp(traj, q_bar=np.ones_like(traj.q), v_bar=np.ones_like(traj.v))
    return {"q": traj.q, "v": traj.v, "q0": grad.q0, "v0": grad.v0, "u": grad.u, "params": grad.params.flat}


def test_the_same_on_every_target(model):
    state, u = given(model, 3, 5)
    sim = ag.Simulator(model)
    whole = gradients(sim, state, u)
    for k in range(5):
        alone = gradients(sim, state.map(lambda x, k=k: x[k]), u[k])
        for name in alone.keys() - {"params"}:
            np.testing.assert_array_equal(whole[name][k], alone[name], err_msg=name)
    plain = gradients(ag.Simulator(model, backend="numpy"), state, u)
    coarse = gradients(ag.Simulator(model, dtype="f32"), state.map(np.float32), u.astype("f4"))
    for name, x in whole.items():
        np.testing.assert_allclose(plain[name], x, rtol=1e-9, atol=1e-9 * np.abs(x).max(), err_msg=name)
        if name != "params":
            np.testing.assert_allclose(coarse[name], x, atol=2e-2 * np.abs(x).max(), err_msg=name)


def test_saved_and_in_a_scene(model, tmp_path):
    ag.save(model, tmp_path / "wrapped.xml")
    state, u = given(model, 4)
    one = ag.Simulator(model, backend="numpy").step(state, u[0])
    again = ag.load(tmp_path / "wrapped.xml")
    assert sorted(again.sites) == sorted(model.sites)
    np.testing.assert_allclose(ag.Simulator(again, backend="numpy").step(state, u[0]).v, one.v, rtol=1e-9)
    pair = ag.Simulator(ag.scene([model, model], floor=False), backend="numpy")
    both = pair.step(ag.State(*(np.tile(x, 2) for x in state)), np.tile(u[0], 2))
    np.testing.assert_allclose(both.v, np.tile(one.v, 2), rtol=1e-9)


def test_ends_that_coincide_or_lie_on_the_surface():
    """A string without length pulls along x, as in MuJoCo; one from the surface leaves along it."""
    text = f"""<mujoco><worldbody><site name="w" pos="0 0 1"/>
      <body pos="0 0 1"><freejoint/><geom size=".1" mass="2" {CALM}/><site name="s"/></body>
      <body pos="1 0 1"><joint axis="0 1 0"/><geom name="c" type="cylinder" size=".05 .1" mass="2" {CALM}/>
        <site name="t" pos=".05 0 0"/></body><body pos="1 .3 1.1"><joint axis="1 0 0"/><geom size=".1" pos="-.2 0 0" {CALM}/>
        <site name="u" pos="-.2 .05 .1"/></body></worldbody>
      <tendon><spatial frictionloss="1" damping="2"><site site="w"/><site site="s"/></spatial>
        <spatial name="b" stiffness="30" springlength="0"><site site="t"/><geom geom="c"/><site site="u"/></spatial>
      </tendon></mujoco>"""
    model, m, v = ag.load(text), mujoco.MjModel.from_xml_string(text), np.random.default_rng(0).normal(size=8)
    d, sim = mujoco.MjData(m), ag.Simulator(model, backend="numpy")
    d.qvel[:] = v
    mujoco.mj_step(m, d)
    np.testing.assert_allclose(sim.step(ag.State(m.qpos0, v)).v, d.qvel, rtol=0, atol=1e-12)
    np.testing.assert_allclose(tendon_weights(model), m.tendon_invweight0, rtol=1e-9)
    np.testing.assert_allclose(tendon_lengths(model, m.qpos0), m.tendon_length0, rtol=1e-12)
    q, along, bar = (
        m.qpos0 + np.r_[0.1, 0.2, 0.1, np.zeros(4), 0.3, 0.2],
        np.random.default_rng(1).normal(size=8),
        np.ones(8),
    )
    grad = sim.vjp(sim.rollout(ag.State(q, v), steps=1), v_bar=bar)
    ends = (sim.step(ag.State(ag.integrate(model, q, h * along), v)).v @ bar for h in (1e-6, -1e-6))
    found = ag.model.tangent.to_tangent(model, q, grad.q0) @ along
    assert found == pytest.approx(np.subtract(*ends) / 2e-6, rel=1e-6)


def test_ends_in_line_with_the_center_of_a_sphere_have_half_a_turn_between_them():
    """The plane of the string is that of rounding errors, in which both ends need not be."""
    slides = "".join(f'<joint type="slide" axis="{a}"/>' for a in ("1 0 0", "0 1 0", "0 0 1"))
    ends = "".join(f'<body>{slides}<geom size=".01" {CALM}/><site name="{k}"/></body>' for k in "ab")
    model = ag.load(f"""<mujoco><worldbody><geom name="ball" size=".05" {CALM}/>{ends}</worldbody><tendon><spatial name="t">
        <site site="a"/><geom geom="ball"/><site site="b"/></spatial></tendon>
        <sensor><tendonpos name="t" tendon="t"/></sensor></mujoco>""")
    rng, n, r = np.random.default_rng(0), 2000, 0.05
    a = rng.normal(size=(n, 3))
    a *= rng.uniform(0.1, 3.0, (n, 1)) / np.linalg.norm(a, axis=1, keepdims=True)
    b = -a * 10.0 ** rng.uniform(-1, 1, (n, 1))
    b *= np.maximum(1.0, 0.1 / np.linalg.norm(b, axis=1, keepdims=True))
    b += 10.0 ** rng.uniform(-17, -13, (n, 1)) * rng.normal(size=(n, 3))
    found = ag.Simulator(model, threads=1).sensors(ag.State(np.hstack([a, b]), np.zeros((n, 6))))["t"][:, 0]
    lengths = [np.linalg.norm(x, axis=1) for x in (a, b)]
    wanted = np.pi * r + sum(np.sqrt(x * x - r * r) - r * np.arccos(r / x) for x in lengths)
    assert np.abs(found - wanted).max() < 1e-11


def test_invalid_paths_are_refused():
    b = ag.ModelBuilder("arm")
    b.add_body("rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5))
    for name, x in (("one", -0.3), ("two", 0.3), ("center", 0.0)):
        b.add_site(name, "world" if name == "one" else "rod", position=(x, 0, -0.5))
    b.add_spatial_tendon("string", ["one", ("sphere", "center", 0.1), "two"])
    assert b.build().tendons[0].pieces[0].kind == "sphere"
    with pytest.raises(ag.ModelError, match="between two sites"):
        b.add_spatial_tendon("end", ["one", "two", ("sphere", "center", 0.1)])
    with pytest.raises(ag.ModelError, match="a sphere or a cylinder"):
        b.add_spatial_tendon("box", ["one", ("box", "center", 0.1), "two"])
