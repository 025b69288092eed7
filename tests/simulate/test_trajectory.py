"""Text of a trajectory, and trajectory files; Jacobians of sites and bodies."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

MODEL = ag.robots.quadruped()


def rolled(batch=None, steps=5, **options):
    sim = ag.Simulator(MODEL, dt=2e-3, **options)
    u = np.random.default_rng(0).normal(size=(*(() if batch is None else (batch,)), steps, MODEL.nu))
    return sim, sim.rollout(sim.reset(batch=batch), u)


def test_time_and_length():
    sim, traj = rolled()
    assert sim.dt == 2e-3 and len(traj) == len(traj.q) == len(traj.time) == 6
    np.testing.assert_allclose(traj.time, np.arange(6) * 2e-3)


def test_short_descriptions():
    sim, traj = rolled(3)
    assert repr(traj) == "Trajectory('quadruped', 3 robots, 5 steps of 0.002 s, EveryStep())"
    assert repr(sim) == "Simulator('quadruped', dt=0.002, law='soft', integrator='euler', f64, 'cpu')"
    assert "<iframe" in traj._repr_html_()
    table = MODEL._repr_html_()
    assert all(f"<td>{name}</td>" in table for name in MODEL.bodies)


@pytest.mark.parametrize(("ending", "batch"), [("npz", None), ("npz", 3), ("csv", None)])
def test_round_trip_through_a_file(tmp_path, ending, batch):
    sim, traj = rolled(batch)
    traj.save(tmp_path / f"run.{ending}")
    again = sim.read(tmp_path / f"run.{ending}")
    for name in ("q", "v", "u", "violation", "time"):
        np.testing.assert_array_equal(getattr(again, name), getattr(traj, name))
    bar = np.ones(traj.final.q.shape)
    np.testing.assert_array_equal(sim.vjp(again, q_bar=bar).u, sim.vjp(traj, q_bar=bar).u)


def test_a_csv_file_has_one_robot(tmp_path):
    sim, traj = rolled(3)
    traj.save(tmp_path / "run.csv", robot=2)
    np.testing.assert_array_equal(sim.read(tmp_path / "run.csv").q, traj.q[2])
    head = (tmp_path / "run.csv").read_text().splitlines()[0].split(",")
    assert head[:2] == ["time", f"q.{MODEL.joints[0]}.0"] and head[-1] == f"u.{MODEL.actuators[-1]}"


def test_files_that_do_not_fit(tmp_path):
    sim, traj = rolled()
    traj.save(tmp_path / "run.npz")
    (tmp_path / "broken.npz").write_bytes(b"no")
    for reader, file, message in (
        (ag.Simulator(MODEL, dt=1e-3), "run.npz", "has dt=0.002"),
        (ag.Simulator(ag.robots.pendulum(1), dt=2e-3), "run.npz", "is not of 'pendulum"),
        (sim, "broken.npz", "not a saved trajectory"),
        (sim, "gone.npz", "there is no file"),
        (sim, "run.txt", "are read from .npz or .csv"),
    ):
        with pytest.raises(ag.InputError, match=message):
            reader.read(tmp_path / file)


def test_files_of_the_same_options_that_do_not_follow_are_reported(tmp_path, recwarn):
    sim, traj = rolled(steps=8)
    traj.save(tmp_path / "run.csv")
    ag.Simulator(MODEL, dt=2e-3, dtype="f32").read(tmp_path / "run.csv")
    assert not recwarn
    with pytest.warns(RuntimeWarning, match=r"'run.csv' differs from the steps of this simulator \(step 1 by"):
        ag.Simulator(MODEL, dt=2e-3, integrator="implicit").read(tmp_path / "run.csv")
    held = sim.rollout(sim.reset(), np.ones((2, MODEL.nu)), wrench=np.ones((2, MODEL.nb, 6)))
    held.save(tmp_path / "run.csv")
    with pytest.warns(RuntimeWarning, match=r"step 0 by"):  # which has no wrenches
        sim.read(tmp_path / "run.csv")
    arrays = dict(np.load(save(traj, tmp_path / "run.npz")))
    arrays["v"][3] += 1e-3
    np.savez(tmp_path / "run.npz", **arrays)
    with pytest.warns(RuntimeWarning, match=r"step 2 by 1\.0e-03"):
        sim.read(tmp_path / "run.npz")


def save(traj, path):
    traj.save(path)
    return path


def test_jacobians_are_mujocos(tmp_path):
    model = ag.robots.laikago()
    sim, rng = ag.Simulator(model), np.random.default_rng(0)
    ag.save(model, tmp_path / "robot.xml", strict=False)
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    d = mujoco.MjData(m)
    d.qpos[:] = q = ag.integrate(model, model.keyframe().q, rng.normal(size=model.nv))
    mujoco.mj_forward(m, d)
    state = ag.State(q, rng.normal(size=model.nv))
    lin, ang = np.zeros((3, m.nv)), np.zeros((3, m.nv))
    for name in (model.bodies[0], model.bodies[-1]):
        mujoco.mj_jacBody(m, d, lin, ang, m.body(name).id)
        np.testing.assert_allclose(sim.jacobian(state, name), np.concatenate([lin, ang]), atol=1e-12)
    site = model.sites[0]
    mujoco.mj_jacSite(m, d, lin, ang, m.site(site).id)
    many = ag.State(np.stack([q, q]), np.stack([state.v, state.v]))
    np.testing.assert_allclose(sim.jacobian(many, site)[1], np.concatenate([lin, ang]), atol=1e-12)
    with pytest.raises(ag.InputError, match="has no body 'tail'"):
        sim.jacobian(state, "tail")
