"""Physical properties of the soft law: convergence, resting, holding, no increase of energy."""

from pathlib import Path

import numpy as np
import pytest

import artigrad as ag

from ....packages import files
from .scenes import CONES, every_row

FILES = dict(files())


def pile(count, seed=0):
    """Balls and capsules above a box of five planes."""
    rng = np.random.default_rng(seed)
    b = ag.ModelBuilder("pile")
    for k in range(count):
        place = rng.uniform([-0.25, -0.25, 0.1], [0.25, 0.25, 0.1 + 0.03 * count])
        b.add_body(f"body{k}", joint="free", mass=1.0, inertia=(0.002,) * 3, position=place)
        turn = rng.normal(size=4)
        if k % 2:
            b.add_sphere(f"body{k}", 0.06)
        else:
            b.add_capsule(f"body{k}", 0.04, 0.06, rotation=turn / np.linalg.norm(turn))
    b.add_plane()
    for k in range(4):
        half = (k * np.pi / 2 + np.pi / 2) / 2  # of the turn about z; and y to the inside
        x, y = np.cos(2 * half), np.sin(2 * half)
        lean = np.array([np.cos(np.pi / 4), -y * np.sin(np.pi / 4), x * np.sin(np.pi / 4), 0.0])
        b.add_plane(position=(-0.4 * x, -0.4 * y, 0.0), rotation=lean)
    return b.build()


def test_a_pile_of_fifty_settles():
    sim = ag.Simulator(pile(50), dt=4e-3, max_contacts=220)
    traj = sim.rollout(sim.reset(), steps=600)
    assert traj.violation[0] == 0.0
    q, v = traj.final.q.reshape(50, 7), traj.final.v.reshape(50, 6)
    assert q[:, 2].min() > 0.035 and np.abs(q[:, :2]).max() < 0.4
    assert np.median(np.linalg.norm(v, axis=1)) < 0.1


def energy(sim, traj):
    """Energy of a free body at all steps."""
    p = sim.params
    spin = np.sum(p.inertia[0, :3] * np.square(traj.v[:, 3:]), -1)
    return 0.5 * p.mass[0] * np.sum(np.square(traj.v[:, :3]), -1) + 0.5 * spin + 9.81 * p.mass[0] * traj.q[:, 2]


@pytest.mark.parametrize("cone", CONES)
def test_contact_never_increases_energy(cone):
    """Spinning balls thrown at the floor, at many speeds, with and without bouncing."""
    b = ag.ModelBuilder("ball")
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.004,) * 3)
    b.add_sphere("ball", 0.1, condim=6, friction=0.7, torsional_friction=0.01, rolling_friction=0.005)
    b.add_plane(friction=0.7)
    model = b.build()
    for solref in ((0.02, 1.0), (0.02, 0.3), (-4000.0, -5.0)):
        sim = ag.Simulator(model, dt=1e-3, cone=cone)
        params = model.params.replace(solref=np.tile(solref, (2, 1)))
        rng = np.random.default_rng(0)
        for _ in range(5):
            start = sim.reset()
            start.q[2], start.v[:] = 0.12, rng.normal(size=6) * [2, 2, 2, 20, 20, 20] - [0, 0, 3, 0, 0, 0]
            traj = sim.rollout(start, steps=1000, params=params)
            flying = energy(sim, traj)[traj.q[:, 2] > 0.1]
            assert (np.diff(flying) <= 1e-3 * flying[:-1] + 1e-9).all()


ROBOTS = {
    "laikago": ag.robots.laikago,
    "humanoid": ag.robots.humanoid,
    "ant": ag.robots.ant,
    "hopper": ag.robots.hopper,
    "dm humanoid": lambda: ag.load(FILES["dm_control/suite/humanoid.xml"], strict=False),
}


@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("name", ROBOTS)
def test_newton_converges_in_random_states(name, cone):
    """Falling, lying, deep in the floor, at and beyond limits: 2000 random states each, and the steps that follow."""
    if name == "dm humanoid" and "dm_control/suite/humanoid.xml" not in FILES:
        pytest.skip("dm_control is not installed")
    model = ROBOTS[name]()
    sim = ag.Simulator(model, cone=cone, max_contacts=128)
    rng = np.random.default_rng(0)
    n = 2000
    q = np.repeat(model.keyframe().q[None], n, 0)
    q = ag.integrate(model, q, rng.normal(size=(n, model.nv)) * rng.uniform(0, 1, size=(n, 1)))
    state = ag.State(q, rng.normal(size=(n, model.nv)) * 10.0 ** rng.uniform(-2, 1, size=(n, 1)))
    traj = sim.rollout(state, steps=3)
    assert np.isfinite(traj.final.v).all()
    assert (traj.violation == 0).all()


def test_a_stiff_servo_under_implicitfast():
    """Its damping is implicit: 200 N m s/rad on a hundredth of a kg m^2 is stable."""
    b = ag.ModelBuilder("servo")
    b.add_body("arm", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0), inertia=(0.01,) * 3, limit=(-1, 1))
    b.add_position_servo("servo", "arm", gain=2000.0, damping=200.0)
    model = b.build()
    u = np.full((500, 1), 0.5)
    final = ag.Simulator(model, dt=2e-3, integrator="implicitfast").rollout(ag.Simulator(model).reset(), u).final
    assert final.q[0] == pytest.approx(0.5, abs=5e-3)


def test_a_top_under_implicit():
    """400 rad/s about its axis, on the floor: finite for ten seconds."""
    b = ag.ModelBuilder("top")
    b.add_body("top", joint="free", mass=0.1, inertia=(1e-5, 1e-5, 2e-5), position=(0, 0, 0.03))
    b.add_sphere("top", 0.01, position=(0, 0, -0.02))
    b.add_plane()
    sim = ag.Simulator(b.build(), dt=2e-3, integrator="implicit")
    start = sim.reset()
    start.v[3:] = 1.0, 0.0, 400.0
    traj = sim.rollout(start, steps=5000)
    assert np.isfinite(traj.q).all() and np.abs(traj.v).max() < 1e3 and traj.violation[0] == 0.0


@pytest.mark.parametrize("law", ["soft", "hard"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_a_capsule_stands_upright(law, dtype):
    """Its axis, which determines the tangent, coincides with the normal."""
    b = ag.ModelBuilder("post")
    b.add_body("post", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.01), position=(0, 0, 0.2999))
    b.add_capsule("post", 0.1, 0.2)
    b.add_plane()
    sim = ag.Simulator(b.build(), law=law, dtype=dtype, dt=2e-3)
    traj = sim.rollout(sim.reset(), steps=200)
    assert np.abs(traj.final.v).max() < 0.05 and abs(traj.final.q[2] - 0.3) < 2e-3
    assert np.isfinite(sim.vjp(traj, q_bar=np.ones(7)).v0).all()


def test_line_search_converges_beside_the_apex_of_a_cone():
    """One state in 240,000: a contact of condim 6 slides past the apex of its cone, where Newton's steps shrink."""
    given = np.load(Path(__file__).parent / "beside_the_tip.npz")
    sim = ag.Simulator(ag.load(every_row(), strict=False), cone="elliptic", integrator="euler", max_contacts=128)
    assert sim.rollout(ag.State(given["q"], given["v"]), given["u"][None]).violation == 0.0
