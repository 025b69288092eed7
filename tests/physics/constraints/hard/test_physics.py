"""Contact compared with textbook solutions and with MuJoCo."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import hard


def block(angle, friction):
    """Return a box on a plane, tilted by rotating gravity."""
    b = ag.ModelBuilder("block", gravity=(9.81 * np.sin(angle), 0, -9.81 * np.cos(angle)))
    b.add_body("b", joint="free", mass=2.0, inertia=(0.01, 0.01, 0.01), position=(0, 0, 0.0999))
    b.add_box("b", (0.1, 0.1, 0.1), friction=friction)
    b.add_plane(friction=friction)
    return hard(b.build(), dt=1e-3)


@pytest.mark.parametrize("angle", [0.2, 0.45, 0.48, 0.6])
def test_block_on_an_incline(angle):
    friction = 0.5  # holds up to atan(0.5) = 0.4636
    sim = block(angle, friction)
    v = sim.rollout(sim.reset(), steps=500).final.v[0]
    slide = max(0.0, 9.81 * (np.sin(angle) - friction * np.cos(angle))) * 0.5
    assert abs(v - slide) < 1e-5


def ball(restitution=0.0, friction=0.5, height=0.5):
    b = ag.ModelBuilder("ball")
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.004, 0.004, 0.004), position=(0, 0, height))
    b.add_sphere("ball", 0.1, restitution=restitution, friction=friction)
    b.add_plane(restitution=0.0, friction=0.0)
    return b


@pytest.mark.parametrize("e", [0.5, 0.8])
def test_bounce_height(e):
    sim = hard(ball(e, height=1.1).build(), dt=1e-4)
    z = sim.rollout(sim.reset(), steps=9000).q[:, 2] - 0.1
    first = int(np.argmax(z < 1e-3))
    assert abs(z[first:].max() - e * e) < 0.005


def test_a_sliding_ball_ends_up_rolling_at_five_sevenths():
    sim = hard(ball(friction=0.3, height=0.0999).build(), dt=1e-3)
    state = ag.State(sim.reset().q, np.array([2.0, 0, 0, 0, 0, 0]))
    final = sim.rollout(state, steps=1500).final
    assert abs(final.v[0] - 2.0 * 5 / 7) < 1e-3
    assert abs(final.v[4] * 0.1 - final.v[0]) < 1e-3  # rolls without slipping (about the ball's own y axis at the end)


def test_momentum_of_a_collision():
    b = ag.ModelBuilder("collide", gravity=(0, 0, 0))
    rng = np.random.default_rng(0)
    for k, x, m in (("a", -0.13, 1.0), ("b", 0.11, 3.0)):
        b.add_body(k, joint="free", mass=m, inertia=(0.004 * m,) * 3, position=(x, 0.05 * m, 0))
        b.add_sphere(k, 0.1, restitution=0.7, friction=0.6)
    model = b.build()
    sim = hard(model, dt=1e-3)
    v = rng.normal(size=12) * 0.2
    v[0], v[6] = 1.0, -1.0
    traj = sim.rollout(ag.State(sim.reset().q, v), steps=300)
    momentum = traj.v[:, :3] + 3.0 * traj.v[:, 6:9]
    assert np.abs(traj.v[-1] - traj.v[0]).max() > 0.1
    assert np.abs(momentum - momentum[0]).max() < 1e-12


def test_a_stack_rests_without_drift():
    b = ag.ModelBuilder("stack")
    b.add_plane(friction=1.0)
    for k in range(3):
        b.add_body(f"b{k}", joint="free", mass=1.0, inertia=(0.004,) * 3, position=(0, 0, 0.0999 + 0.1999 * k))
        b.add_sphere(f"b{k}", 0.1, friction=1.0)
    sim = hard(b.build(), dt=1e-3)
    traj = sim.rollout(sim.reset(), steps=1000)
    assert np.abs(traj.q[-1] - traj.q[0]).max() < 1e-5
    assert traj.violation[0] < 1e-7


def test_a_pendulum_stops_at_its_limit():
    b = ag.ModelBuilder("limit")
    b.add_body(
        "rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1), limit=(-0.5, 0.5)
    )
    sim = hard(b.build(), dt=1e-3)
    traj = sim.rollout(ag.State([0.0], [8.0]), steps=400)
    assert 0.4999 < traj.q.max() < 0.5002
    assert traj.q[-1, 0] < 0.45  # and falls back


def test_dry_friction_stops_a_wheel_and_holds_it():
    b = ag.ModelBuilder("dry", gravity=(0, 0, 0))
    b.add_body("wheel", joint="revolute", mass=1.0, inertia=(0.1, 0.1, 0.1), dry_friction=0.2)
    b.add_motor("m", "wheel")
    sim = hard(b.build(), dt=1e-3)
    traj = sim.rollout(ag.State([0.0], [1.0]), np.full((1000, 1), 0.0))
    assert abs(traj.v[250, 0] - (1 - 0.2 / 0.1 * 0.25)) < 1e-6
    assert np.abs(traj.v[600:]).max() < 1e-12
    held = sim.rollout(traj.final, np.full((100, 1), 0.15)).final
    assert abs(held.v[0]) < 1e-6


@pytest.mark.parametrize("dt, speed", [(1e-3, 1.5e6), (0.1, 2e4)])
def test_a_joint_without_limit_turns_on_however_fast(dt, speed):
    b = ag.ModelBuilder("dry", gravity=(0, 0, 0))
    b.add_body("wheel", joint="revolute", mass=1.0, inertia=(0.1, 0.1, 0.1), dry_friction=0.2)
    sim = ag.Simulator(b.build(), law="hard", dt=dt)
    traj = sim.rollout(ag.State(np.zeros(1), np.array([speed])), steps=1)
    assert traj.final.v[0] == pytest.approx(speed - 2.0 * dt, rel=1e-12)
    grad = sim.vjp(traj, v_bar=np.ones(1))
    assert grad.q0[0] == 0.0 and grad.v0[0] == pytest.approx(1.0)


def test_laikago_stands():
    """Height, creep and magnitude of the gradient over two seconds."""
    model = ag.robots.laikago()
    assert abs(model.params.mass.sum() - 25.567) < 1e-9
    sim = hard(model)
    traj = sim.rollout(sim.reset(), np.repeat(model.keyframe_control()[None], 2000, 0))
    z = traj.q[:, 2]
    assert z.min() > 0.47 and z.max() < 0.4831
    assert np.linalg.norm(traj.q[-1, :2] - traj.q[0, :2]) < 0.02
    depth = 0.03 - sim.sites(ag.State(traj.q, traj.v))[..., 2]
    assert depth.max() < 1e-3
    for k in range(3):
        grad = sim.vjp(traj, q_bar=np.eye(19)[k])
        assert 1e-3 < np.linalg.norm([*grad.q0, *grad.v0]) < 10.0


# -- robustness --------------------------------------------------------------------------------------------------------
def test_deep_inside_the_floor_comes_out():
    sim = hard(ball(height=-0.05).build())
    traj = sim.rollout(sim.reset(), steps=500)
    assert np.isfinite(traj.q).all() and traj.q[-1, 2] > 0.09


@pytest.mark.parametrize("dt", [1e-4, 1e-3])
def test_depth_throws_nothing_up(dt):
    """A penetration of 1 cm is corrected at the same moderate speed for any dt."""
    sim = hard(ball(height=0.09).build(), dt=dt)
    traj = sim.rollout(sim.reset(), steps=int(0.3 / dt))
    assert 0.1 < traj.q[:, 2].max() < 0.152
    assert abs(traj.v[1, 2] - sim.options.law.correction_speed) < 1e-5
    quick = hard(ball(height=0.09).build(), dt=dt, correction_speed=1e6).rollout(sim.reset(), steps=1)
    assert abs(quick.v[1, 2] / (0.2 * (0.01 - 1e-4) / dt) - 1.0) < 1e-5


def test_a_joint_outside_its_limit_comes_back_slowly():
    b = ag.ModelBuilder("limit", gravity=(0, 0, 0))
    b.add_body("rod", joint="revolute", mass=1.0, inertia=(0.1,) * 3, limit=(-0.5, 0.5))
    sim = hard(b.build(), dt=1e-4)
    traj = sim.rollout(ag.State([1.0], [0.0]), steps=6000)
    assert np.abs(traj.v).max() < sim.options.law.correction_speed * (1.0 + 1e-6)
    assert traj.q[-1, 0] < 0.5001


def test_resting_contacts_do_not_depend_on_the_correction_speed():
    model = ag.robots.laikago()
    u = np.repeat(model.keyframe_control()[None], 200, 0)
    sims = [hard(model, correction_speed=speed) for speed in (1.0, 1e6)]
    trajs = [sim.rollout(sim.reset(), u) for sim in sims]
    np.testing.assert_array_equal(trajs[0].v, trajs[1].v)


def test_zero_friction_slides_forever():
    sim = hard(ball(friction=0.0, height=0.0999).build())
    final = sim.rollout(ag.State(sim.reset().q, np.array([1.0, 0, 0, 0, 0, 0])), steps=500).final
    assert abs(final.v[0] - 1.0) < 1e-12


def test_mass_ratio_of_ten_thousand():
    b = ag.ModelBuilder("heavy")
    b.add_plane(friction=0.5)
    for k, m, z in (("light", 1e-2, 0.0999), ("heavy", 1e2, 0.2997)):
        b.add_body(k, joint="free", mass=m, inertia=(0.004 * m,) * 3, position=(0, 0, z))
        b.add_sphere(k, 0.1, friction=0.5)
    sim = hard(b.build())
    traj = sim.rollout(sim.reset(), steps=300)
    assert np.isfinite(traj.q).all() and np.isfinite(traj.violation).all()
    assert traj.q[-1, 2] > 0.05
    grad = sim.vjp(traj, q_bar=np.ones(14), v_bar=np.ones(12))
    assert np.isfinite(grad.params.flat).all()


def test_options_that_do_not_go_with_contact():
    model = ag.robots.laikago()
    with pytest.raises(ag.InputError, match="need integrator='euler'"):
        hard(model, integrator="rk4")
    with pytest.raises(ag.InputError, match="need factor='articulated'"):
        hard(model, factor="sparse")
    with pytest.raises(ag.InputError, match="no option 'rigidity'"):
        hard(model, rigidity=1.0)
    with pytest.raises(ag.InputError, match="sweeps is a whole number"):
        hard(model, sweeps=0)
    with pytest.raises(ag.InputError, match="slop is a number"):
        hard(model, slop=-1.0)
