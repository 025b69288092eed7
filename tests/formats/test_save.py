"""Saved models are the same robots: in MuJoCo, and loaded again."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.model.params import FIELDS
from artigrad.simulate.gradcheck import random_state

from ..packages import loading

FILES = loading()
BUNDLED = ("pendulum", "cartpole", "quadruped", "laikago", "ant", "hopper", "ball")


def same_in_mujoco(model, path):
    """Mass matrix, sites and accelerations of the saved file agree with the model's own, to 1e-9."""
    m = mujoco.MjModel.from_xml_path(str(path))
    assert (m.nq, m.nv, m.nu) == (model.nq, model.nv, model.nu)
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    d, rng, sim = mujoco.MjData(m), np.random.default_rng(0), ag.Simulator(model)
    state, u = random_state(model, rng, 2), rng.normal(size=(2, model.nu))
    a, sites = sim.forward_dynamics(state, u), sim.sites(state)
    order = [model.site(m.site(s).name) for s in range(m.nsite)]
    for k in range(2):
        d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = state.q[k], state.v[k], state.act[k], u[k]
        mujoco.mj_forward(m, d)
        assert np.abs(a[k] - d.qacc).max(initial=0.0) <= 1e-9 * max(1.0, np.abs(d.qacc).max(initial=0.0))
        np.testing.assert_allclose(sites[k, order], d.site_xpos, atol=1e-9)


@pytest.mark.parametrize("path", [p for _, p in FILES], ids=[name for name, _ in FILES])
def test_round_trip_of_files(path, tmp_path):
    model = ag.load(path, strict=False)
    if any(note.what == "inertia that no body can have" for note in model.notes):
        with pytest.raises(ag.ModelError, match="inertia that no body can have"):
            ag.save(model, tmp_path / "saved.xml")
        return
    ag.save(model, tmp_path / "saved.xml")
    same_in_mujoco(model, tmp_path / "saved.xml")
    again = ag.load(tmp_path / "saved.xml", strict=False)
    assert again.bodies == model.bodies and again.joints == model.joints and again.actuators == model.actuators
    assert [(s.name, s.kind) for s in again.sensors] == [(s.name, s.kind) for s in model.sensors]
    assert touching(again) == touching(model)
    assert len(again.visuals) == len(model.visuals)
    assert again.options == model.options and set(again.keyframes) == set(model.keyframes)
    for name in model.keyframes:
        np.testing.assert_array_equal(again.keyframe(name).q, model.keyframe(name).q)
    assert again.shapes == model.shapes  # hulls too, corner for corner
    for field in FIELDS if again.sites == model.sites else [f for f in FIELDS if not f.startswith("site_")]:
        there = model.params.mass > 0 if field == "com" else ...  # no mass, no center of mass
        one, other = again.params[field][there], model.params[field][there]
        size = np.abs(other).max(initial=0.0, where=np.isfinite(other))
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13 * size, err_msg=field)


@pytest.mark.parametrize(
    "name", ["bicycle/bike", "kuka_iiwa/model", "laikago/laikago_toes", "franka_panda/panda", "suite/dog"]
)
def test_saved_files_step_as_before(name, tmp_path):
    """Meshes in contact, and a fluid, to the last digits."""
    model = ag.load(next(path for known, path in FILES if name + "." in known), strict=False)
    ag.save(model, tmp_path / "saved.xml")
    one, other = (ag.Simulator(m, threads=1) for m in (model, ag.load(tmp_path / "saved.xml", strict=False)))
    state = random_state(model, np.random.default_rng(0), 2)
    u = np.random.default_rng(1).normal(size=(2, model.nu))
    a, b = (sim.step(state, u).v for sim in (one, other))
    assert np.abs(a - b).max() <= 1e-12 * np.abs(a).max()


SOAKED = """<mujoco><option density="300" viscosity=".1" wind="1 0 0" gravity="0 0 0"/><worldbody><body pos="0 0 1">
<freejoint/>{}</body></worldbody></mujoco>"""


@pytest.mark.parametrize("kind", ["capsule", "cylinder", "ellipsoid", "box"])
def test_boxes_in_a_fluid_keep_their_axes(kind, tmp_path):
    """Two moments of inertia may be equal, so that any axes across the third are principal ones."""
    size = {"ellipsoid": ".1 .1 .2", "box": ".1 .1 .1"}.get(kind, ".1 .2")
    text = SOAKED.format(f'<geom type="{kind}" size="{size}" euler="20 30 40"/>')
    model = ag.load(text)
    ag.save(model, tmp_path / "saved.xml")
    v = np.random.default_rng(0).normal(size=6)
    found = []
    for source in (text, (tmp_path / "saved.xml").read_text()):
        m = mujoco.MjModel.from_xml_string(source)
        d = mujoco.MjData(m)
        d.qvel[:] = v
        mujoco.mj_step(m, d)
        sim = ag.Simulator(ag.load(source), threads=1)
        found += [d.qvel.copy(), sim.step(ag.State(sim.reset().q, v)).v]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-12, atol=1e-12)


def test_a_hull_counts_for_its_own_mesh_alone(tmp_path):
    """The saved hull is ignored if the mesh or its pose was edited."""
    b = ag.ModelBuilder("m")
    b.add_body("a", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1))
    corners = np.random.default_rng(0).normal(size=(20, 3)) * 0.1
    b.add_convex_hull("a", corners, name="lump", position=(0.1, 0, 0), rotation=(0.5, 0.5, 0.5, 0.5))
    model = b.build()
    ag.save(model, tmp_path / "saved.xml")
    text = (tmp_path / "saved.xml").read_text()
    assert np.array_equal(ag.load(text).params.vertex, corners) and ag.load(text).shapes == model.shapes
    for old, new in (
        (' pos="0.1 0.0 0.0" quat="0.5', ' pos="0.2 0.0 0.0" quat="0.5'),
        ('<mesh name="mesh0"', '<mesh name="mesh0" scale="2 2 2"'),
    ):
        assert text.count(old) == 1
        m = mujoco.MjModel.from_xml_string(text.replace(old, new))
        changed = ag.load(text.replace(old, new))
        np.testing.assert_array_equal(changed.params.shape_position[0], m.geom_pos[0])


def touching(model):
    names = model.shapes.names
    return {frozenset((names[a], names[b])) for a, b in model.shapes.pairs}


@pytest.mark.parametrize("name", BUNDLED)
def test_round_trip_of_bundled_robots(name, tmp_path):
    model = getattr(ag.robots, name)()
    ag.save(model, tmp_path / "saved.xml")
    same_in_mujoco(model, tmp_path / "saved.xml")
    assert touching(ag.load(tmp_path / "saved.xml")) == touching(model)


@pytest.mark.filterwarnings("ignore:the file has the joints")
@pytest.mark.parametrize("seed", range(6))
def test_round_trip_of_random_trees(seed, tmp_path):
    model = ag.robots.random_tree(seed, 12)
    params = model.params.replace(max_velocity=np.full(model.nu, np.inf))
    ag.save(model, tmp_path / "saved.xml", params=params)
    again = ag.load(tmp_path / "saved.xml")
    state = random_state(model, np.random.default_rng(seed))
    q, v = (np.concatenate([entries(model, i, k) for i in order(model, again)]) for k in (0, 1))  # branch by branch
    one = ag.Simulator(model).forward_dynamics(state, params=params)
    other = ag.Simulator(again).forward_dynamics(ag.State(state.q[q], state.v[v]))
    np.testing.assert_allclose(one[v], other, rtol=1e-8, atol=1e-8)


def order(model, again):
    """The bodies of a model in the order of another with the same joints."""
    return [model.joint(again.joints[i]) for i in range(again.nb) if again.joint_type[i] != "fixed"]


def entries(model, i, k):
    """Return the first entry of joint i in q (k = 0) or v (k = 1)."""
    return (model.joint_q, model.joint_v)[k][i] + np.arange((model.joint_kind(i).nq, model.joint_kind(i).nv)[k])


def test_the_same_steps_on_the_floor(tmp_path):
    """With contact: a saved robot falls, hits and slides like the original."""
    model = ag.robots.laikago()
    ag.save(model, tmp_path / "saved.xml")
    again = ag.load(tmp_path / "saved.xml")
    one, other = (ag.Simulator(m, dt=1e-3) for m in (model, again))
    start = ag.State(one.reset("home").q, 0.3 * np.random.default_rng(0).normal(size=model.nv))
    a, b = (sim.rollout(start, np.zeros((100, 12))).final for sim in (one, other))
    np.testing.assert_allclose(a.q, b.q, atol=1e-7)


def test_other_params(tmp_path):
    model = ag.robots.pendulum()
    ag.save(model, tmp_path / "heavy.xml", params=model.params.replace(mass=3 * model.params.mass))
    np.testing.assert_allclose(ag.load(tmp_path / "heavy.xml").params.mass, 3 * model.params.mass)


def test_features_without_mjcf_counterpart_are_reported(tmp_path):
    b = ag.ModelBuilder("bouncy")
    b.add_body("ball", joint="free", mass=1.0, inertia=(1, 1, 1))
    b.add_sphere("ball", 0.1, restitution=0.5)
    b.add_plane()
    model = b.build()
    with pytest.raises(ag.ModelError, match=r"restitution .*: contacts do not bounce"):
        ag.save(model, tmp_path / "x.xml")
    assert not (tmp_path / "x.xml").exists()
    ag.save(model, tmp_path / "x.xml", strict=False)
    assert ag.load(tmp_path / "x.xml").nv == 6


def test_keyframes_follow_the_order_of_the_file(tmp_path):
    """MJCF has a body's children before the next body; a model may have them in another order."""
    b = ag.ModelBuilder("branches")
    for name, parent, joint in (("a", "world", "free"), ("b", "world", "spherical"), ("c", "a", "revolute")):
        b.add_body(name, parent, joint=joint, mass=1.0, inertia=(0.1, 0.1, 0.1))
    turn = [0.6, 0.8, 0.0, 0.0]
    b.add_keyframe("home", q=[1, 2, 3, 1, 0, 0, 0, *turn, 0.5], v=np.arange(10))
    with pytest.warns(RuntimeWarning, match="order of its tree: a, c, b"):
        ag.save(b.build(), tmp_path / "branches.xml")
    again = ag.load(tmp_path / "branches.xml")
    q, v, *_ = again.keyframes["home"]
    assert again.joints == ("a", "c", "b")
    np.testing.assert_array_equal(q, [1, 2, 3, 1, 0, 0, 0, 0.5, *turn])
    np.testing.assert_array_equal(v, [0, 1, 2, 3, 4, 5, 9, 6, 7, 8])
