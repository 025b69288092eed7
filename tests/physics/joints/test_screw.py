"""The screw joint beside a hinge and a slide of MuJoCo that move as one, and its gradients."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

PITCH, FLOOR = 0.13, 0.443  # m/rad; m
JOINT = {"axis": (0.3, 0.1, 1.0), "anchor": (0.02, 0.05, 0.0)}
INERTIAL = {"mass": 1.3, "com": (0.1, 0.05, -0.1), "inertia": (0.02, 0.03, 0.04)}
PLACE = {"position": (0.1, 0.2, 0.1), "rotation": (0.9, 0.1, 0.2, 0.3)}


def arm(build=lambda b: None):
    """A screw between a revolute and a prismatic joint."""
    b = ag.ModelBuilder("arm")
    b.add_body("base", joint="revolute", axis=(0.2, 1, 0.3), anchor=(0.05, 0, 0.1), position=(0, 0.1, 0.4), **INERTIAL)
    b.add_body("nut", "base", joint="screw", pitch=PITCH, damping=0.1, armature=0.02, **JOINT, **PLACE, **INERTIAL)
    b.add_body("tip", "nut", joint="prismatic", axis=(0, 1, 1), position=(0.1, -0.1, 0.1), **INERTIAL)
    build(b)
    return b.build()


def contact(b):
    """A limit, dry friction and a shape on the floor."""
    b._bodies["nut"] |= {"limit": np.array([-0.3, 0.4]), "dry_friction": 0.05}
    b.add_sphere("tip", 0.1, friction=0.6)
    b.add_plane(position=(0, 0, FLOOR), friction=0.6)
    b.add_site("hook", "tip", position=(0.1, 0.2, 0.3))


def pulled(b):
    """Transmissions and forces along the tree: a tendon, a thruster, gravity compensation by actuators, a fluid."""
    b.set_fluid(density=1.2, viscosity=0.3)
    b._bodies["tip"]["fluid_box"] = np.array([0.1, 0.2, 0.3])
    b._bodies["tip"]["gravity_compensation"] = 0.7
    b._bodies["nut"]["actuator_gravcomp"] = True
    b.add_site("hook", "tip", position=(0.1, 0.2, 0.3))
    b.add_site("eye", "world", position=(0.5, 0.2, 0.3))
    b.add_spatial_tendon("cord", ["eye", "hook"], stiffness=3.0, damping=0.4)
    b.add_actuator("thrust", site="hook", gear=(1.0, 0.3, 0.2, 0.1, 0.2, 0.3))
    b.add_motor("motor", "nut")


def test_a_screw_moves_as_a_hinge_and_a_slide_that_are_one():
    """In coordinates (hinge, slide) = (q, p q):  S^T M S qdd = S^T (tau - bias),  with S from (q1, q, q3)."""
    axis, quat = (np.array(x) / np.linalg.norm(x) for x in (JOINT["axis"], PLACE["rotation"]))
    inertial = '<inertial mass="1.3" pos=".1 .05 -.1" diaginertia=".02 .03 .04"/>'
    line = lambda x: " ".join(map(str, x))  # noqa: E731
    m = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody><body pos="0 .1 .4">
      <joint axis=".2 1 .3" pos=".05 0 .1"/>{inertial}
      <body pos=".1 .2 .1" quat="{line(quat)}">
        <joint axis="{line(axis)}" pos=".02 .05 0" type="slide"/>
        <joint axis="{line(axis)}" pos=".02 .05 0" damping=".1" armature=".02"/>{inertial}
        <body pos=".1 -.1 .1"><joint axis="0 1 1" type="slide"/>{inertial}</body></body></body></worldbody></mujoco>""")
    d, rng, sim = mujoco.MjData(m), np.random.default_rng(0), ag.Simulator(arm())
    S = np.array([[1, 0, 0], [0, PITCH, 0], [0, 1, 0], [0, 0, 1.0]])
    for _ in range(3):
        q, v = rng.normal(size=3), rng.normal(size=3)
        d.qpos[:], d.qvel[:] = S @ q, S @ v
        mujoco.mj_forward(m, d)
        M = np.zeros((4, 4))
        mujoco.mj_fullM(m, d, M)
        wanted = np.linalg.solve(S.T @ M @ S, S.T @ (d.qfrc_passive - d.qfrc_bias))
        state = ag.State(q, v)
        np.testing.assert_allclose(sim.forward_dynamics(state), wanted, rtol=1e-10)
        np.testing.assert_allclose(sim.mass_matrix(state), S.T @ M @ S, rtol=1e-10, atol=1e-12)
        found = sim.outputs(state).body("tip")
        np.testing.assert_allclose(found.position, d.xpos[3], atol=1e-12)


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (contact, {"law": "soft"}),
        (contact, {"law": "hard"}),
        (contact, {"law": ag.HardOptions(gradient="reverse", solver="gauss_seidel")}),
        (contact, {"law": ag.SoftOptions(noslip=5)}),
        (pulled, {"integrator": "euler"}),
        (pulled, {"integrator": "implicit"}),
        (pulled, {"integrator": "rk4"}),
    ],
    ids=lambda x: x.__name__ if callable(x) else str(next(iter(x.values()))),
)
def test_gradients(build, options):
    sim = ag.Simulator(arm(build), dt=2e-3, threads=1, **options)
    state = ag.State(np.array([0.1, 0.41, 0.02]), np.array([0.3, 0.2, -0.4]))
    if build is contact:
        assert (sim.contacts(sim.rollout(state, steps=1)).force > 0).any()
    rows = {row.what: row for row in ag.gradcheck(sim, state=state, samples=1, steps=2, tolerance=1e-6, show=False)}
    assert rows["pitch"].largest > 1e-4 and rows["pitch"].error < 1e-8


def difference(f, model, h=1e-5):
    """Derivative of f(params) with respect to the pitch, of fourth order."""
    at = lambda x: f(model.params.replace(pitch={"nut": PITCH + x}))  # noqa: E731
    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


def test_gradients_of_outputs_sensors_and_inverse_weights():
    def sensors(b):
        pulled(b)
        for kind in ("accelerometer", "framelinvel", "force", "velocimeter"):
            b.add_sensor(kind, kind, "hook")
        b.add_sensor("angmom", "subtreeangmom", "base")

    model, rng = arm(sensors), np.random.default_rng(1)
    sim, state = ag.Simulator(model, threads=1), ag.State(rng.normal(size=3), rng.normal(size=3))
    bars = {name: rng.normal(size=x.shape) for name, x in sim.sensors(state).items()}
    read = lambda p: sum((bars[name] * x).sum() for name, x in sim.sensors(state, params=p).items())  # noqa: E731
    found = sim.sensors_vjp(state, bars).params.body("nut").pitch
    np.testing.assert_allclose(found, difference(read, model), rtol=1e-8)

    bar = rng.normal(size=(3, 3))
    found = sim.mass_matrix_vjp(state, bar).params.body("nut").pitch
    wanted = difference(lambda p: (bar * sim.mass_matrix(state, params=p)).sum(), model)
    np.testing.assert_allclose(found, wanted, rtol=1e-8)

    model = model.replace(params=model.params.replace(pitch={"nut": PITCH}))
    weights = {name: rng.normal(size=model.params[name].shape) for name in ("body_invweight0", "dof_invweight0")}
    zero = ag.Params(model, np.zeros(model.param_size))
    found = model.params.reweighted_vjp(zero.replace(unchecked=True, **weights)).body("nut").pitch
    wanted = difference(lambda p: sum((x * p.reweighted()[name]).sum() for name, x in weights.items()), model)
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    for name in weights:  # the builder's own, in the reference pose
        np.testing.assert_allclose(model.params.reweighted()[name], model.params[name], rtol=1e-10)


def test_batches_forward_mode_and_targets():
    model, rng = arm(contact), np.random.default_rng(2)
    state = ag.State(np.array([0.1, 0.41, 0.02]) + 0.01 * rng.normal(size=(3, 3)), 0.2 * rng.normal(size=(3, 3)))
    pitch = PITCH + 0.02 * rng.normal(size=(3, 3))
    runs = []
    for backend in ("native", "numpy"):
        sim = ag.Simulator(model, threads=1, backend=backend)
        traj = sim.rollout(state, steps=3, params=model.params.replace(pitch=pitch))
        grad = sim.vjp(traj, q_bar=np.cos(traj.q), v_bar=np.sin(traj.v))
        runs.append((traj.q, traj.v, grad.q0, grad.v0, grad.params.pitch))
        if backend == "native":
            dq, dv, *_ = sim.jvp(traj, dparams={"pitch": np.eye(3)[1]})
            paired = (np.cos(traj.q) * dq).sum((1, 2)) + (np.sin(traj.v) * dv).sum((1, 2))
            np.testing.assert_allclose(paired, grad.params.pitch[:, 1], rtol=1e-10)
            alone = sim.rollout(ag.State(state.q[2], state.v[2]), steps=3, params=model.params.replace(pitch=pitch[2]))
            np.testing.assert_array_equal(alone.q, traj.q[2])
    for native, numpy in zip(*runs, strict=True):
        np.testing.assert_allclose(native, numpy, rtol=1e-11, atol=1e-13)


def test_builders_and_files():
    model = arm()
    assert model.params.body("nut").pitch == PITCH and (ag.edit(model).build().params.pitch == model.params.pitch).all()
    with pytest.raises(ag.ModelError, match="MJCF has no screw joints, and so 'nut' cannot be saved"):
        ag.spec(model)
    with pytest.raises(ag.ModelError, match="a pitch is of screw joints, not of a revolute one"):
        ag.ModelBuilder("x").add_body("x", joint="revolute", pitch=0.1, **INERTIAL)
