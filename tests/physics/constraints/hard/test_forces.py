"""Contact forces as outputs: values, and gradients of losses on them."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import TILTED, ball, hard

MODES = {
    "implicit": {},
    "cone": {"cone": "elliptic"},
    "reverse": {"solver": "gauss_seidel", "sweeps": 4, "gradient": "reverse"},
    "reverse cone": {"solver": "gauss_seidel", "sweeps": 4, "gradient": "reverse", "cone": "elliptic"},
}


def test_a_standing_robot_is_carried_by_its_feet():
    model = ag.robots.laikago()
    sim = hard(model)
    u = np.repeat(model.keyframe_control()[None], 1500, 0)
    traj = sim.rollout(sim.reset(), u)
    found = sim.contacts(traj)
    assert sim.contact_names == tuple(("floor", f"{leg}_foot") for leg in ("fr", "fl", "rr", "rl"))
    assert found.force.shape == found.point.shape == (1500, 4, 3) and found.gap.shape == (1500, 4)
    weight = 9.81 * np.sum(model.params.mass)
    np.testing.assert_allclose(found.force[-1].sum(0), [0, 0, weight], atol=0.02 * weight)
    assert np.abs(found.point[-1, :, 2]).max() < 1e-3
    assert (found.force[..., 2] >= 0).all() and (np.abs(found.force[..., :2]) <= found.force[..., 2:] + 1e-9).all()


def test_forces_are_the_change_of_momentum():
    """A bouncing ball, alone and in a batch with a flying one."""
    sim = hard(ag.robots.ball(floor=True))
    mass = sim.model.params.mass[0]
    q, v = np.repeat(sim.reset(batch=2).q, 1, 0), np.zeros((2, 6))
    q[:, 2], v[:, 0] = [0.1005, 5.0], 1.0
    v[0, 2] = -2.0
    traj = sim.rollout(ag.State(q, v), steps=3)
    found = sim.contacts(traj)
    change = mass * (np.diff(traj.v[..., :3], axis=1) / 1e-3 + np.array([0, 0, 9.81]))
    np.testing.assert_allclose(found.force.sum(2), change, atol=1e-9)
    assert found.force[0].max() > 1.0 and (found.force[1] == 0).all()
    assert (found.gap[1] == sim.options.law.search_distance).all() and (found.gap[0, 0] < 1e-3).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("v", [(0, 0, -0.3, 0.1, 0.2, 0.1), (2, 0.5, -0.3, 0.1, 0.2, 0.1)], ids=["stick", "slide"])
def test_gradients_of_losses_on_forces(mode, v):
    """Losses on forces and next states, with respect to all inputs, compared with central differences."""
    b = ball(0.6 if v[0] else 5.0)
    b.add_body("other", "ball", joint="revolute", axis=(0, 1, 0), mass=0.3, com=(0.2, 0, 0), inertia=(0.01, 0.01, 0.01))
    b.add_motor("motor", "other")
    sim = hard(b.build(), **MODES[mode])
    rng = np.random.default_rng(0)
    q0, v0, u0 = np.array([0, 0, 0.0999, *TILTED, 0.3]), np.array([*v, 0.5]), np.array([[0.2], [0.1]])
    weights = rng.normal(size=(2, 1, 3))
    bars = rng.normal(size=8), rng.normal(size=7)

    def loss(q, v, u, params):
        traj = sim.rollout(ag.State(q, v), u, params=params)
        return np.sum(weights * sim.contacts(traj).force) + bars[0] @ traj.final.q + bars[1] @ traj.final.v

    traj = sim.rollout(ag.State(q0, v0), u0)
    assert np.abs(sim.contacts(traj).force).max() > 1.0
    grad = sim.vjp(traj, q_bar=bars[0], v_bar=bars[1], force_bar=weights)
    direction = [rng.normal(size=x.shape) for x in (q0, v0, u0, sim.params.flat)]
    direction[0][3:7] -= TILTED * (TILTED @ direction[0][3:7])
    names = ("mass", "com", "friction", "shape_size", "shape_position", "position", "gravity", "damping")
    keep = np.zeros(sim.params.flat.shape, bool)
    for name in names:
        start, shape = sim.model.param_slots[name]
        keep[start : start + int(np.prod(shape))] = True
    direction[3][~keep] = 0.0
    h = 1e-6
    for k, got in enumerate((grad.q0, grad.v0, grad.u, grad.params.flat)):
        ends = []
        for sign in (1, -1):
            at = [q0, v0, u0, sim.params.flat]
            at[k] = at[k] + sign * h * direction[k]
            at[0] = np.concatenate([at[0][:3], at[0][3:7] / np.linalg.norm(at[0][3:7]), at[0][7:]])
            ends.append(loss(at[0], at[1], at[2], ag.Params(sim.model, at[3])))
        want = (ends[0] - ends[1]) / (2 * h)
        assert abs(want - np.sum(got * direction[k])) < 1e-6 * max(abs(want), 10.0), (k, want)


def test_models_without_contacts_raise():
    sim = hard(ag.robots.pendulum(2))
    traj = sim.rollout(sim.reset(), steps=2)
    with pytest.raises(ag.InputError, match="no shapes that may touch"):
        sim.contacts(traj)
    laikago = hard(ag.robots.laikago())
    traj = laikago.rollout(laikago.reset(), steps=2)
    with pytest.raises(ag.InputError, match=r"force_bar is \(2, 4, 3\)"):
        laikago.vjp(traj, force_bar=np.zeros((2, 3, 3)))
    sparse = laikago.rollout(laikago.reset(), steps=4, checkpoints=ag.EveryKth(2))
    with pytest.raises(ag.InputError, match="EveryStep"):
        laikago.contacts(sparse)


def test_a_full_table_is_an_error_that_names_the_option():
    b = ag.ModelBuilder("box")
    b.add_body("b", joint="free", mass=2.0, inertia=(0.01,) * 3, position=(0, 0, 0.0999))
    b.add_box("b", (0.1, 0.1, 0.1))
    b.add_plane()
    model = b.build()
    sim = hard(model, max_contacts=3)
    with pytest.raises(ag.ContactError, match=r"robot 1, together .*lanes=1.* max_contacts=3"):
        high = sim.reset(batch=2)
        high.q[0, 2] = 5.0
        sim.rollout(high, steps=1)
    with pytest.raises(ag.ContactError, match=r"robot 0 has more points .* max_contacts=3"):
        sim.linearize(sim.reset())
    enough = hard(model, max_contacts=4)
    np.testing.assert_array_equal(
        enough.rollout(enough.reset(), steps=3).q, hard(model).rollout(enough.reset(), steps=3).q
    )


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder", "points"])
def test_pruning_keeps_contacts(kind):
    """A shape whose farthest point alone is near: no contact is missed."""
    b = ag.ModelBuilder(kind)
    b.add_body("b", joint="free", mass=1.0, inertia=(0.01,) * 3)
    corner = np.array([0.1, 0.2, 0.3])
    far = {"sphere": 0.1, "capsule": 0.4, "box": np.linalg.norm(corner), "cylinder": np.hypot(0.1, 0.3)}
    far["points"] = np.linalg.norm(corner)
    down = {"box": corner, "points": corner, "cylinder": np.array([0.1, 0, 0.3])}.get(kind, np.array([0, 0, 1.0]))
    {
        "sphere": lambda: b.add_sphere("b", 0.1),
        "capsule": lambda: b.add_capsule("b", 0.1, 0.3),
        "box": lambda: b.add_box("b", tuple(corner)),
        "cylinder": lambda: b.add_cylinder("b", 0.1, 0.3),
        "points": lambda: b.add_convex_hull("b", [corner, -corner / 3, corner / 2]),
    }[kind]()
    b.add_plane()
    sim = hard(b.build(), search_distance=1e-4)
    d = down / np.linalg.norm(down)  # turned to point down
    axis, half = np.cross(d, [0, 0, -1.0]), np.arccos(-d[2]) / 2
    axis = axis / np.linalg.norm(axis) if np.linalg.norm(axis) > 1e-9 else np.array([1.0, 0, 0])
    q = np.array([0, 0, far[kind] - 1e-4, np.cos(half), *(np.sin(half) * axis)])
    assert sim.contacts(sim.rollout(ag.State(q, np.zeros(6)), steps=1)).force[..., 2].max() > 1.0
    q[2] += 3e-4
    assert sim.contacts(sim.rollout(ag.State(q, np.zeros(6)), steps=1)).force.max() == 0.0
