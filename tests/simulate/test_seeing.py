"""Rangefinders, limits and contacts as sensors: compared with MuJoCo, gradients with differences."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate.gradcheck import random_state

BLOCK = "-.2 -.2 0  .2 -.2 0  0 .3 0  0 0 .4  .05 .05 .1"
FACES = "0 2 1  0 1 4  1 2 4  2 0 4"
HILLS = " ".join(str(x) for x in (0.1, 0.5, 0.2, 0.9, 0.3, 0.4, 0.8, 0.0, 0.6, 1.0, 0.2, 0.7))
# what a ray may meet, on a body that moves
MET = {
    "plane": 'type="plane" size="2 2 1"',
    "sphere": 'type="sphere" size=".3"',
    "capsule": 'type="capsule" size=".2 .25"',
    "ellipsoid": 'type="ellipsoid" size=".2 .3 .4"',
    "cylinder": 'type="cylinder" size=".3 .2"',
    "box": 'type="box" size=".2 .3 .25"',
    "mesh": 'type="mesh" mesh="block"',
    "field": 'type="hfield" hfield="hills"',
}
RAYS = """<mujoco><asset><mesh name="block" vertex="{block}" face="{faces}"/>
      <hfield name="hills" nrow="3" ncol="4" size=".5 .4 .3 .2" elevation="{hills}"/>
      <material name="glass" rgba="1 1 1 0"/></asset>
    <worldbody><geom name="wall" type="plane" size="0 0 1" pos="0 0 -3"/>
      <geom type="box" size="9 9 .01" pos="0 0 -.5" material="glass" contype="0" conaffinity="0"/>
      <geom type="box" size="9 9 .01" pos="0 0 -.6" rgba="1 1 1 0"/>
      <body name="eye" pos="0 0 1.5"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="ball"/>
        <geom size=".1" contype="0" conaffinity="0"/><site name="a" pos=".05 .02 .03" euler="175 5 0"/>
        <site name="b" euler="160 -10 20"/><site name="c" euler="190 8 -30"/></body>
      <body name="thing"><joint type="slide" axis="1 0 0"/><joint type="ball"/>
        {moves}</body>{stays}</worldbody>
    <sensor><rangefinder site="a"/><rangefinder site="b" data="dist dir origin point depth"/><rangefinder site="c"/>
      <rangefinder site="c" cutoff="1.1"/></sensor></mujoco>"""


STILL = ("plane", "field")


def rays_at(kind):
    """Return a file whose rangefinders point at a shape."""
    met = f'<geom name="met" {MET[kind]} pos=".02 .03 .1" euler="10 -5 3" mass="1" contype="0" conaffinity="0"/>'
    speck = '<geom size=".01" mass="1" rgba="0 0 0 0" contype="0" conaffinity="0"/>'
    where = {"moves": speck, "stays": met} if kind in STILL else {"moves": met, "stays": ""}
    return RAYS.format(block=BLOCK, faces=FACES, hills=HILLS, **where)


def look(rng, model, batch=None):
    """Return a state in which rangefinders point down at the shape."""
    state = random_state(model, rng, batch)
    q = state.q * np.array([0.1, 0.1, 1, 0, 0, 0, 0.1, 1, 0, 0, 0])
    turn = rng.normal(size=(*q.shape[:-1], 8)) * 0.1 + np.array([1.0, 0, 0, 0, 1, 0, 0, 0])
    q[..., 2:6], q[..., 7:11] = turn[..., :4], turn[..., 4:]
    for k in (2, 7):
        q[..., k : k + 4] /= np.linalg.norm(q[..., k : k + 4], axis=-1, keepdims=True)
    return ag.State(q, state.v)


def readings(m, d, q, v, u=()):
    mujoco.mj_resetData(m, d)
    d.qpos[:], d.qvel[:] = q, v
    d.ctrl[: len(u)] = u
    mujoco.mj_forward(m, d)
    return [d.sensordata[a : a + n].copy() for a, n in zip(m.sensor_adr, m.sensor_dim, strict=True)]


def agree(sim, m, state, u=None, tolerance=1e-9):
    """Compare readings of a batch of states with those of MuJoCo."""
    d, found = mujoco.MjData(m), list(sim.sensors(state, u).values())
    for k in range(len(state.q)):
        wanted = readings(m, d, state.q[k], state.v[k], () if u is None else u[k])
        for sensor, y, w in zip(sim.model.sensors, found, wanted, strict=True):
            np.testing.assert_allclose(y[k], w, rtol=0, atol=tolerance * max(1.0, np.abs(w).max()), err_msg=str(sensor))
    return found


def check_gradients(sim, state, rng, names=(), u=None, step=1e-5, tolerance=1e-6):
    """Check gradients of a random sum of all readings, along random directions."""
    model = sim.model
    bars = {name: rng.normal(size=y.shape) for name, y in sim.sensors(state, u).items()}
    grad = sim.sensors_vjp(state, bars, u)
    given = {"q": state.q, "v": state.v} | ({} if u is None else {"u": u})

    def loss(params=model.params, **x):
        x = given | x
        y = sim.sensors(ag.State(x["q"], x["v"]), x.get("u"), params=params)
        return sum(np.sum(bars[k] * v) for k, v in y.items())

    def slope(f):
        one, two = ((f(h) - f(-h)) / (2 * h) for h in (step, 2 * step))
        return (4 * one - two) / 3

    for what, x in given.items():
        d = rng.normal(size=x.shape)
        found, wanted = np.sum(getattr(grad, what) * d), slope(lambda h, d=d, x=x, what=what: loss(**{what: x + h * d}))
        assert found == pytest.approx(wanted, rel=tolerance, abs=tolerance), what
    for name in names:
        x = model.params[name]
        d = np.where(np.abs(x) > 0, rng.normal(size=x.shape), 0.0) * np.isfinite(x)
        moved = lambda h, x=x, d=d, name=name: loss(model.params.replace(**{name: np.where(d == 0, x, x + h * d)}))  # noqa: E731
        found = np.sum(np.where(d == 0, 0.0, grad.params[name] * d))
        assert found == pytest.approx(slope(moved), rel=tolerance, abs=tolerance), name


@pytest.mark.parametrize("kind", MET)
def test_rays_match_mujoco(kind):
    text = rays_at(kind)
    model, m, rng = ag.load(text), mujoco.MjModel.from_xml_string(text), np.random.default_rng(0)
    sim, state = ag.Simulator(model), look(rng, model, 60)
    found = agree(sim, m, state)
    near = np.concatenate([found[0][:, 0], found[2][:, 0]])
    assert (near < 3).sum() > 5 and ((near > 3).any() or kind == "plane")  # both the thing and the wall behind it
    few = ag.State(*(x[:12].copy() for x in state[:2]))
    fields = ("shape_position", "shape_rotation", "site_position", "site_rotation", "position")
    fields += {"field": ("height", "shape_size"), "plane": (), "mesh": ()}.get(kind, ("shape_size",))
    check_gradients(sim, few, rng, fields, step=1e-7 if kind in ("mesh", "field") else 1e-6)


def test_rays_from_inside_and_past_everything():
    text = """<mujoco><worldbody><geom type="{met}" size=".5 .5 .5" contype="0"/>
        <body><joint type="ball"/><geom size=".1"/><site name="a" pos="0 0 .1"/><site name="b" pos="0 0 3"/></body></worldbody>
        <sensor><rangefinder site="a"/><rangefinder site="b"/><rangefinder site="b" cutoff=".5"/></sensor></mujoco>"""
    for kind in ("sphere", "capsule", "ellipsoid", "cylinder", "box"):
        model, m = (f(text.format(met=kind)) for f in (ag.load, mujoco.MjModel.from_xml_string))
        state = random_state(model, np.random.default_rng(0), 20)
        found = agree(ag.Simulator(model), m, state)
        assert (found[0] > 0).all() and (found[1] == -1).all() and (found[2] == -0.5).all()


LIMITS = """<mujoco><worldbody><site name="hook" pos="0 0 2"/>
    <body pos="0 0 1"><joint name="one" axis="0 1 0" range="-30 30" margin=".1" damping="1"/><geom size=".1" pos=".3 0 0"/>
      <body pos=".5 0 0"><joint name="two" type="ball" range="0 40" margin=".05" damping="1"/><geom size=".1" pos=".2 .1 0"/>
        <site name="tip" pos=".3 0 .1"/></body></body>
    <body pos="2 0 1"><joint name="three" type="slide" range="-.1 .1" margin=".15"/><geom size=".1"/></body></worldbody>
    <tendon><spatial name="rope" range=".2 .9" margin=".02" limited="true"><site site="hook"/><site site="tip"/></spatial>
      <fixed name="sum" range="-.4 .4" limited="true"><joint joint="one" coef="1"/><joint joint="three" coef=".1"/></fixed>
    </tendon>
    <actuator><motor tendon="rope" gear="2"/><motor tendon="rope"/><motor joint="one"/></actuator>
    <sensor>{sensors}</sensor></mujoco>"""
LIMITS = LIMITS.format(
    sensors="".join(f'<jointlimit{w} joint="{j}"/>' for w in ("pos", "vel", "frc") for j in ("one", "two", "three"))
    + "".join(f'<tendonlimit{w} tendon="{t}"/>' for w in ("pos", "vel", "frc") for t in ("rope", "sum"))
    + '<jointlimitfrc joint="one" cutoff=".5"/><tendonactuatorfrc tendon="rope"/><clock/>'
)


def test_limits():
    model, m, rng = ag.load(LIMITS), mujoco.MjModel.from_xml_string(LIMITS), np.random.default_rng(1)
    m.opt.iterations, m.opt.tolerance = 200, 0
    sim, state, u = (
        ag.Simulator(model, law=ag.SoftOptions(iterations=60)),
        random_state(model, rng, 60),
        rng.normal(size=(60, 3)),
    )
    state.q[:, 5] *= 0.2
    found = agree(sim, m, state, u)
    assert [k for k, y in enumerate(found[:-1]) if not y.any()] == [], [s.kind for s in model.sensors]
    few, names = (
        ag.State(*(x[:6].copy() for x in state[:2])),
        ("limit", "limit_margin", "tendon_limit", "tendon_limit_margin"),
    )
    check_gradients(sim, few, rng, (*names, "limit_solref", "mass", "site_position", "gear"), u[:6])
    traj = sim.rollout(ag.State(state.q[0], state.v[0]), u=np.zeros((3, 3)))
    np.testing.assert_allclose(traj.sensor("sensor17")[:, 0], np.arange(3) * model.options.dt)
    assert sim.sensors(sim.reset(), time=2.5)["sensor17"] == [2.5]


DATA = "found force torque dist pos normal tangent linvel angvel"
CONTACTS = f"""<mujoco><worldbody><geom name="floor" type="plane" size="3 3 1" pos="0 0 -.001"/>
    <geom name="post" type="box" size=".2 .2 .2" pos="1 0 .2"/>
    <body name="base" pos="0 0 .198"><freejoint/><geom name="crate" type="box" size=".2 .25 .2"/>
      <site name="half" type="box" size=".1 .3 .4" pos=".12 0 0"/></body>
    <body name="arm" pos="0 0 .5"><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
      <geom name="ball" size=".1" condim="6"/><body name="hand" pos=".9 0 0"><joint axis="0 0 1"/>
      <geom name="fist" type="sphere" size=".1"/></body></body></worldbody>
    <sensor><contact geom1="crate" num="6" data="{DATA}"/><contact geom1="floor" num="5" data="{DATA}"/>
      <contact body1="base" body2="arm" data="{DATA}"/><contact subtree1="arm" num="3" data="{DATA}"/>
      <contact geom1="fist" geom2="post" data="{DATA}"/><contact geom1="post" geom2="fist" data="{DATA}"/>
      <contact geom1="crate" num="2" reduce="maxforce" data="found force pos" cutoff="1"/>
      <contact subtree1="arm" num="2" reduce="mindist" data="force dist"/>
      <contact body1="base" num="2" reduce="netforce" data="found force torque dist pos normal tangent"/>
      <contact body2="base" reduce="netforce" data="force torque pos"/><contact num="9" data="found dist"/>
      <contact site="half" num="4" data="found force pos"/><contact geom1="floor" geom2="fist" data="{DATA}"/>
      <insidesite site="half" objtype="body" objname="base"/><insidesite site="half" objtype="geom" objname="fist"/>
    </sensor></mujoco>"""


def resting(model, rng, batch):
    """Return a state in contact: the crate with its vertices on the floor, the ball on the crate, the fist on the post."""
    q = np.tile(model.keyframe("reference").q, (batch, 1))
    q[:, :2] += rng.normal(size=(batch, 2)) * 0.01
    q[:, 3:7] += rng.normal(size=(batch, 4)) * 1e-4
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    q[:, 7] = -0.0025 + rng.normal(size=batch) * 2e-4
    q[:, 8] = rng.normal(size=batch) * 1e-3
    q[:, 9] = rng.normal(size=batch) * 0.1
    return ag.State(q, rng.normal(size=(batch, model.nv)) * 0.1)


def test_contacts():
    model, m, rng = ag.load(CONTACTS), mujoco.MjModel.from_xml_string(CONTACTS), np.random.default_rng(2)
    m.opt.iterations, m.opt.tolerance = 200, 0
    sim, state = ag.Simulator(model, law=ag.SoftOptions(iterations=60)), resting(model, rng, 8)
    found = agree(sim, m, state, tolerance=1e-8)
    counts = found[10][:, 0]
    assert counts.min() >= 5 and found[4][:, 0].any()
    check_gradients(
        sim,
        ag.State(*(x[:2].copy() for x in state[:2])),
        rng,
        ("mass", "shape_size", "solref"),
        step=3e-7,
        tolerance=1e-6,
    )


def test_a_reading_does_not_depend_on_batch_or_target():
    for text, sample in ((LIMITS, random_state), (CONTACTS, resting)):
        model, rng = ag.load(text), np.random.default_rng(4)
        state = sample(model, rng, 5)
        state.q[1] = model.keyframe("reference").q
        sim, plain = ag.Simulator(model), ag.Simulator(model, backend="numpy")
        whole = sim.sensors(state)
        bars = {name: np.ones_like(y) for name, y in whole.items()}
        grad = sim.sensors_vjp(state, bars)
        for k in range(5):
            one = ag.State(state.q[k], state.v[k])
            for name, y in sim.sensors(one).items():
                np.testing.assert_array_equal(whole[name][k], y, err_msg=name)
            alone = sim.sensors_vjp(one, {name: y[k] for name, y in bars.items()})
            np.testing.assert_array_equal(alone.q, grad.q[k])
        for name, y in plain.sensors(ag.State(state.q[0], state.v[0])).items():
            np.testing.assert_allclose(
                y, whole[name][0], rtol=1e-7, atol=1e-7 * max(1.0, np.abs(y).max()), err_msg=name
            )


def test_they_are_saved_edited_and_put_in_scenes(tmp_path):
    for k, text in enumerate((rays_at("mesh"), LIMITS, CONTACTS)):
        model, path = ag.load(text), tmp_path / f"{k}.xml"
        ag.save(model, path, strict=False)
        again, edited = ag.load(path), ag.edit(model).build()
        assert edited.sensors == model.sensors and edited.shapes == model.shapes
        assert len(again.visuals) == len(model.visuals) and again.shapes.unseen == model.shapes.unseen
        for one, two in zip(again.visuals, model.visuals, strict=True):
            np.testing.assert_allclose(one.rgba, two.rgba, atol=2e-3)
        state = random_state(model, np.random.default_rng(0))
        wanted = ag.Simulator(model).sensors(state)
        for name, y in ag.Simulator(again).sensors(state).items():
            np.testing.assert_allclose(y, wanted[name], atol=1e-9, rtol=1e-9)
        assert ag.scene([model, model]).nv == 2 * model.nv


@pytest.mark.parametrize(
    ("sensor", "why"),
    [
        ('<rangefinder site="s" data="normal"/>', "rangefinder' of normals"),
        ('<rangefinder camera="c"/>', "rangefinder' of a camera"),
        ('<camprojection site="s" camera="c"/>', "sensor 'camprojection'"),
        ('<user dim="2"/>', "sensor 'user'"),
    ],
)
def test_unsupported_rangefinder_data_are_refused(sensor, why):
    text = f"""<mujoco><worldbody><body><joint/><geom size=".1"/><site name="s"/><camera name="c" resolution="2 2"/></body>
        </worldbody><sensor>{sensor}</sensor></mujoco>"""
    with pytest.raises(ag.ModelError, match=why):
        ag.load(text)


def test_wrong_sensors_are_refused():
    b = ag.ModelBuilder("x")
    b.add_body("a", joint="revolute", mass=1.0, com=(1, 0, 0))
    b.add_site("s", "a")
    for options, why in (
        ({"kind": "contact", "between": (("shape", "foot"), ("", ""))}, "there is no such shape"),
        ({"kind": "contact", "reduce": "most"}, "reduce is one of"),
        ({"kind": "contact", "data": ("colour",)}, "gives found, force"),
        ({"kind": "rangefinder", "on": "s", "data": ("normal",)}, "gives dist, dir"),
        ({"kind": "insidesite", "on": "s", "zone": ("box", (1, 1, 1))}, "ref is its name"),
        ({"kind": "contact", "reduce": "netforce", "data": ("linvel",)}, "no linvel"),
    ):
        with pytest.raises(ag.ModelError, match=why):
            b.add_sensor("s", **options)
        b._sensors.clear()
    b.add_sensor("look", "rangefinder", "s")
    b.add_convex_hull("world", np.eye(3), name="rock")
    with pytest.raises(ag.ModelError, match="'rock', corners without a surface"):
        b.build()
