"""Adjoint of the sweeps: exact for a few sweeps, and equal to the implicit one after convergence."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import DEEP, ON_PLANE, PAIRS, TILTED, ball, check, hard, laikago_gradient, pair

FEW = {"solver": "gauss_seidel", "sweeps": 4, "gradient": "reverse"}


@pytest.mark.parametrize(
    ("friction", "v"),
    [(5.0, (0, 0, -0.3, 0.1, 0.2, 0.1)), (0.3, (2, 0.5, -0.3, 0.1, 0.2, 0.1)), (0.3, (2, 0.5, 0.3, 0.1, 0.2, 0.1))],
    ids=["sticking", "sliding", "separating"],
)
def test_a_ball(friction, v):
    check(ball(friction), [0, 0, 0.0999, *TILTED], v, **FEW)


def test_bouncing():
    rows, _ = check(
        ball(0.3, 0.6), [0, 0, 0.0999, *TILTED], [2, 0.5, -2.3, 0.1, 0.2, 0.1], skip=("dry_friction",), **FEW
    )
    assert rows["restitution"].largest > 0.1


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_bodies(name):
    b = pair(name)
    add, place = PAIRS[name]
    add(b)
    check(b, [0.1, *place, *TILTED], [0.5, 3.0, -1.0, -0.5, 0.3, 0.2, 0.1], **FEW, **DEEP)


@pytest.mark.parametrize("name", ON_PLANE)
def test_shapes_on_a_plane(name):
    """Redundant contacts and four sweeps: not converged, and exact."""
    b = ag.ModelBuilder(name)
    b.add_body("b", joint="free", mass=0.5, inertia=(0.01, 0.02, 0.015))
    b.add_plane(friction=0.5)
    add, z = ON_PLANE[name]
    add(b)
    _, sim = check(b, [0, 0, z, 1, 0, 0, 0], (0.5, 0.1, -0.1, 0.01, 0.02, 0.3), **FEW)
    state = ag.State(np.array([0, 0, z, 1, 0, 0, 0]), np.array([0.5, 0.1, -0.1, 0.01, 0.02, 0.3]))
    if name != "capsule":  # one point converges at once
        assert sim.rollout(state, steps=1).violation[0] > 1e-9


def test_limits_and_dry_friction():
    b = ag.ModelBuilder("both")
    arm = {"mass": 1.0, "com": (0.1, 0, -0.5), "inertia": (0.1, 0.1, 0.1)}
    b.add_body("r", joint="revolute", axis=(0, 1, 0), dry_friction=0.3, limit=(-0.5, 0.5), **arm)
    b.add_body("s", "r", joint="revolute", axis=(1, 0, 0), dry_friction=0.2, limit=(-0.3, 0.3), **arm)
    check(b, [0.50005, 0.1], [1.0, 0.5], skip=(), **FEW)


def test_groups_whose_trees_lie_between_each_other():
    """Balls 0 and 2 may touch, and 1 and 3: two groups, each with degrees of freedom of the other between its own."""
    b, place, v = ag.ModelBuilder("four"), [], []
    b.add_plane(friction=0.5, group=0b11, touches=0b11)
    for k in range(4):
        mask = 1 << k % 2
        b.add_body(f"ball {k}", joint="free", mass=0.5 + 0.1 * k, inertia=(0.002, 0.003, 0.0025))
        b.add_sphere(f"ball {k}", 0.1, group=mask, touches=mask, friction=0.3)
        place += [0.1995 * (k // 2), 0.05 * (k % 2), 0.0999, *TILTED]
        v += [0.5 - k // 2, 0.1, -0.2, 0.1, 0.2, 0.3 * k]
    rows, sim = check(b, place, v, **FEW)
    assert sim.engine.contact_integers["c_groups"] == 2
    assert rows["friction"].largest > 1e-3
    plain = hard(sim.model, backend="numpy", **FEW)  # scratch is NaN there until it is written
    grad = plain.vjp(
        plain.rollout(ag.State(np.array(place), np.array(v, float)), steps=1), q_bar=np.ones(28), v_bar=np.ones(24)
    )
    assert np.isfinite(grad.params.flat).all()


def test_a_tree_whose_links_lie_between_those_of_a_group():
    """Only b touches; the links of a lie before, between and after those of b."""
    b = ag.ModelBuilder("woven")
    rod = {"mass": 1.0, "com": (0, 0, -0.1), "inertia": (0.01, 0.01, 0.002), "joint": "revolute", "axis": (0, 1, 0)}
    for name, parent in (("a", "world"), ("b", "world"), ("a2", "a"), ("b2", "b"), ("a3", "a2")):
        place = (0.0, 0.5 if name == "b" else 0.0, 0.5) if parent == "world" else (0.0, 0.0, -0.2)
        b.add_body(name, parent, position=place, **rod)
    b.add_plane(friction=0.5)
    b.add_sphere("b2", 0.1, position=(0, 0, -0.2005), friction=0.5)
    _, sim = check(b, [0.1, 0.01, 0.2, 0.01, 0.3], [0.1, 0.5, 0.2, -0.4, 0.3], **FEW)
    plain = hard(sim.model, backend="numpy", **FEW)
    state = ag.State(np.array([0.1, 0.01, 0.2, 0.01, 0.3]), np.array([0.1, 0.5, 0.2, -0.4, 0.3]))
    traj = plain.rollout(state, steps=1)
    assert np.abs(plain.contacts(traj).force).max() > 0.1
    assert np.isfinite(plain.vjp(traj, q_bar=np.ones(5), v_bar=np.ones(5)).params.flat).all()


def test_equal_to_the_implicit_gradient_when_converged():
    swept, traj = laikago_gradient(solver="gauss_seidel", sweeps=3000, tolerance=1e-14, gradient="reverse")
    implicit, other = laikago_gradient()
    assert traj.violation[0] < 1e-12
    np.testing.assert_allclose(traj.q, other.q, atol=1e-12)
    for a, b in zip(swept[:3], implicit[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(b).max())
    np.testing.assert_allclose(
        swept.params.flat, implicit.params.flat, rtol=1e-7, atol=1e-8 * np.abs(implicit.params.flat).max()
    )


def test_few_sweeps_of_a_laikago():
    model = ag.robots.laikago()
    u = np.repeat(model.keyframe_control()[None], 200, 0)
    start = hard(model).rollout(hard(model).reset(), u).final
    rows = ag.gradcheck(
        hard(model, **FEW),
        steps=2,
        samples=1,
        tolerance=np.inf,
        show=False,
        state=ag.State(start.q, start.v + 0.1),
    )
    for r in rows:
        if r.what not in ("restitution", "dry_friction", "limit"):
            assert r.error * max(r.largest, 1e-3) < 3e-6 * max(r.largest, 1.0), (
                r
            )  # small toes: the differences' own error


def test_targets_agree():
    model = ag.robots.laikago()
    sims = [hard(model, backend=b, **FEW) for b in ("numpy", "native")]
    state = sims[1].reset(batch=3)
    state.v[:] = np.random.default_rng(0).normal(size=state.v.shape) * 0.2
    u = np.repeat(model.keyframe_control()[None], 2, 0)
    grads = [sim.vjp(sim.rollout(state, u), q_bar=np.ones((3, 19)), v_bar=np.ones((3, 18))) for sim in sims]
    for a, b in zip(*(g[:3] for g in grads), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(a).max())


def test_reverse_needs_sweeps():
    with pytest.raises(ag.InputError, match="choose that solver"):
        hard(ag.robots.laikago(), gradient="reverse")
