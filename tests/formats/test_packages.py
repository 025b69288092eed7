"""Robot files of installed packages load or raise the reason; loaded ones agree with MuJoCo to 1e-9."""

import warnings

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.formats.compiler import Compiled, compiled
from artigrad.formats.from_mjmodel import convert
from artigrad.formats.names import Names
from artigrad.formats.source import open_source
from artigrad.model.model import HEIGHT_FIELD, PLANE, POINTS
from artigrad.model.quaternions import matrix
from artigrad.simulate.gradcheck import random_state

from ..beside import compare
from ..packages import files, loading, refused

FILES = loading()
SAMPLES = 4
CONSTRAINTS = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
robots = pytest.mark.parametrize("path", [p for _, p in FILES], ids=[name for name, _ in FILES])


def in_both(path):
    """Return the file in MuJoCo and here.

    MJCF is read by MuJoCo; URDF files are preprocessed first. A robot that is fixed to the world is freed if it has mass.
    """
    model, floating = ag.load(path, strict=False), False
    if path.suffix == ".urdf" and model.nv == 0 and model.params.mass.sum() > 0:
        model, floating = ag.load(path, floating=True, strict=False), True
    if path.suffix == ".xml":
        return mujoco.MjModel.from_xml_path(str(path)), model
    return compiled(open_source(path), floating=floating, strict=False).m, model


def switch_off(m, model):
    """Remove the features in `model.unsupported`, and contacts, limits and dry friction, which are compared elsewhere."""
    m.opt.disableflags |= CONSTRAINTS
    m.tendon_armature[:] = 0
    m.jnt_stiffness[m.jnt_type < 2] = 0
    idle = (model.params.gear == 0) & (model.params.gain == 0)
    m.actuator_gainprm[idle], m.actuator_biasprm[idle] = 0, 0


def close(a, b, tolerance=1e-9):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.abs(a - b).max(initial=0.0) <= tolerance * max(1.0, np.abs(b).max(initial=0.0))


@robots
def test_agrees_with_mujoco(path):
    m, model = in_both(path)
    assert (model.nq, model.nv, model.nu) == (m.nq, m.nv, m.nu)
    switch_off(m, model)
    names, d, rng = Names(m), mujoco.MjData(m), np.random.default_rng(0)
    bodies = [model.body(name) for name in names.body[1:]]
    sites = [model.site(name) for name in names.site]
    close(model.params.mass[bodies], m.body_mass[1:])
    assert model.params.mass.sum() == pytest.approx(m.body_mass[1:].sum())
    np.testing.assert_array_equal(model.keyframe("reference").q, m.qpos0)

    sim, state = ag.Simulator(model), random_state(model, rng, SAMPLES)
    u = rng.normal(size=(SAMPLES, model.nu))
    zero = np.zeros((SAMPLES, model.nv))
    out, M, bias = sim.outputs(state), sim.mass_matrix(state), sim.inverse_dynamics(state, zero)
    a = sim.forward_dynamics(state, u)
    forces = sim.inverse_dynamics(state, a) - bias - np.einsum("bij,bj->bi", M, a)
    close(forces, 0 * forces, 1e-9 * max(1.0, np.abs(a).max(initial=0.0)))
    for k in range(SAMPLES):
        d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = state.q[k], state.v[k], state.act[k], u[k]
        mujoco.mj_forward(m, d)
        close(out.body_position[k, bodies], d.xpos[1:])
        close(out.body_rotation[k, bodies], d.xmat[1:].reshape(-1, 3, 3))
        close(out.site_position[k, sites], d.site_xpos)
        close(out.site_rotation[k, sites], d.site_xmat.reshape(-1, 3, 3))
        full = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, full)
        close(M[k], full)
        close(bias[k], d.qfrc_bias)
        close(M[k] @ a[k] + bias[k], d.qfrc_passive + d.qfrc_actuator)
        close(a[k], d.qacc_smooth)


@robots
def test_two_of_them_are_a_scene(path):
    """Each is unchanged at its position, and an edit without changes is the model."""
    model = ag.load(path, strict=False)
    if not model.nb:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pairs without a routine
        scene, again = ag.scene([model, model]), ag.edit(model).build()
    assert (scene.nq, scene.nv, scene.nu, scene.ns) == tuple(2 * n for n in (model.nq, model.nv, model.nu, model.ns))
    assert {*model.keyframes} <= {*scene.keyframes}
    for key, (q, v, u, act, _) in model.keyframes.items():
        np.testing.assert_allclose(again.keyframes[key][0], q, atol=1e-15)
        np.testing.assert_array_equal(scene.keyframes[key][1], np.tile(v, 2))
        np.testing.assert_array_equal(scene.keyframes[key][2], np.tile(u, 2))
        np.testing.assert_array_equal(scene.keyframes[key][3], np.tile(act, 2))
    assert again.shapes == model.shapes and again.sensors == model.sensors and again.tendons == model.tendons
    for field in ("mass", "inertia", "shape_size", "gain", "stiffness", "tendon_limit", "equality_anchor", "friction"):
        np.testing.assert_allclose(again.params[field], model.params[field], atol=1e-15)


@robots
def test_shapes_and_looks_are_where_mujoco_has_its_geoms(path):
    m, model = in_both(path)
    d, names = mujoco.MjData(m), Names(m)
    m.geom_sameframe[:] = 0  # or MuJoCo takes a geom's frame for its body's if they are within 1e-6
    state = random_state(model, np.random.default_rng(2))
    d.qpos[:], d.qvel[:] = state[:2]
    mujoco.mj_forward(m, d)
    out, p = ag.Simulator(model).outputs(state), model.params

    def place(body, position, quaternion):
        """World pose of a frame that is fixed to a body, or to the world."""
        R, x = (np.eye(3), np.zeros(3)) if body < 0 else (out.body_rotation[body], out.body_position[body])
        return x + R @ position, R @ matrix(np.asarray(quaternion))

    for s, name in enumerate(model.shapes.names):
        g = names.geom.index(name)
        x, R = place(model.shapes.body[s], p.shape_position[s], p.shape_rotation[s])
        close(x, d.geom_xpos[g])
        close(R, d.geom_xmat[g].reshape(3, 3))
        if model.shapes.kind[s] not in (PLANE, POINTS, HEIGHT_FIELD):
            close(p.shape_size[s], m.geom_size[g] * (p.shape_size[s] > 0))  # those of its kind
    drawn = [g for g in range(m.ngeom) if m.geom_group[g] < 3 and m.geom_type[g] != mujoco.mjtGeom.mjGEOM_HFIELD]
    assert len(drawn) == len(model.visuals)
    for g, look in zip(drawn, model.visuals, strict=True):
        x, R = place(look.body, look.position, look.quaternion)
        close(x, d.geom_xpos[g])
        close(R, d.geom_xmat[g].reshape(3, 3))


@robots
def test_steps_as_mujoco_does(path):
    """Equal controls from equal states lead to equal states: recordings are interchangeable."""
    m, model = in_both(path)
    switch_off(m, model)
    m.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    model = convert(Compiled(m, [], [], {}), "robot")
    assert not model.has_contact
    state, rng = model.keyframe(), np.random.default_rng(1)
    u = rng.normal(size=(5, model.nu))
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = state[:2]
    traj = ag.Simulator(model).rollout(state, u)
    for k in range(5):
        close(traj.q[k], d.qpos, 1e-8)
        close(traj.v[k], d.qvel, 1e-8)
        close(traj.act[k], d.act, 1e-8)
        d.ctrl[:] = u[k]
        mujoco.mj_step(m, d)


WHOLE = ("suite/finger.xml", "suite/fish.xml", "suite/quadruped.xml", "assets/ant.xml")


@pytest.mark.parametrize("path", [p for name, p in FILES if name.endswith(WHOLE)], ids=lambda path: path.stem)
def test_with_contacts_and_sensors_as_mujoco_does(path):
    found = compare(ag.load(path), mujoco.MjModel.from_xml_path(str(path)), 5)
    assert max(found.free, found.forces, found.tendons) < 1e-12 and found.same > 1
    assert max(found.all, found.sensors, found.step) < 1e-6


@pytest.mark.skipif(not files(), reason="none of the packages is installed: pip install 'artigrad[robots]'")
def test_most_of_them_load():
    assert len(refused()) <= 0.2 * len(files()), refused()
    assert all("\n" not in why for why in refused().values())
