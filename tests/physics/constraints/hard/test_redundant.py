"""Redundant rows: dry friction with limits and contacts. The switch margin is the zone in which the gradient holds."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import hard

DT = 1e-3


def slider(dry=0.1):
    """A slider that rests on its limit under its weight."""
    b = ag.ModelBuilder("slider")
    b.add_body("a", joint="prismatic", axis=(0, 0, 1), mass=1.0, inertia=(0.01,) * 3, limit=(0, 1), dry_friction=dry)
    b.add_motor("m", "a")
    return b.build(), np.array([0.05])


def grip(dry=0.05):
    """A cube held by two fingers with dry friction."""
    b = ag.ModelBuilder("grip")
    b.add_body("cube", joint="free", mass=0.2, inertia=(0.2 * 0.05**2 * 2 / 3,) * 3)
    b.add_box("cube", (0.05,) * 3, friction=0.8)
    for k, side in enumerate((-1, 1)):
        place = {"axis": (-side, 0, 0), "position": (side * (0.07 - 1e-4), 0, 0)}
        b.add_body(f"f{k}", joint="prismatic", mass=0.3, inertia=(0.001,) * 3, dry_friction=dry, **place)
        b.add_box(f"f{k}", (0.02, 0.03, 0.04), friction=0.8)
        b.add_motor(f"m{k}", f"f{k}")
    return b.build(), np.array([5.0, 5.0])


@pytest.mark.parametrize("scene, cone", [(slider, "pyramidal"), (slider, "elliptic"), (grip, "pyramidal")])
@pytest.mark.parametrize("softness", [1e-3, 1e-2])
def test_margin_of_redundant_rows_is_where_the_gradient_ends(scene, softness, cone):
    model, u = scene()
    sim = hard(model, dt=DT, softness=softness, cone=cone)
    state = sim.rollout(sim.reset(), np.tile(u, (300, 1))).final
    joint = model.nv - 1
    traj = sim.rollout(state, u[None])
    grad = sim.vjp(traj, v_bar=np.eye(model.nv)[joint])
    assert traj.violation[0] == 0.0
    zone = float(grad.health.switch_margin[0]) * DT

    def difference(h):
        q = state.q.copy()
        q[-1] += h
        return (sim.step(ag.State(q, state.v), u).v[joint] - traj.final.v[joint]) / h

    slope = grad.q0[-1]
    for h in (zone / 4, -zone / 4):
        assert abs(difference(h) - slope) < 1e-3 * abs(slope)
    assert max(abs(difference(h) - slope) for h in (1e3 * zone, -1e3 * zone)) > 0.1 * abs(slope)


def test_margin_of_rows_that_are_not_redundant_is_that_of_their_impulses():
    model, u = slider(dry=0.0)
    sim = hard(model, dt=DT)
    state = sim.rollout(sim.reset(), np.tile(u, (300, 1))).final
    grad = sim.vjp(sim.rollout(state, u[None]), v_bar=np.ones(1))
    assert 1e-3 < grad.health.switch_margin[0] < 1e-2  # the weight of a step, 9.8e-3 m/s


def test_a_humanoid_on_its_soles_has_a_margin_below_the_zone_of_its_gradient():
    model = ag.robots.humanoid()
    u, nv, h = model.keyframe_control(), model.nv, 1e-5
    sim = hard(model, dt=DT)
    state = sim.rollout(sim.reset(), np.tile(u, (400, 1))).final
    A, _ = sim.linearize(state, u)
    grad = sim.vjp(sim.rollout(state, u[None]), v_bar=np.ones(nv))
    assert grad.health.violation[0] == 0.0

    def after(d):
        return sim.step(ag.State(ag.integrate(model, state.q, d), state.v), u).v

    columns = np.array([(after(h * e) - after(-h * e)) / (2 * h) for e in np.eye(nv)]).T
    assert np.abs(columns - A[nv:, :nv]).max() > 100.0  # joints that dry friction holds only for less than h
    assert grad.health.switch_margin[0] * DT < 1e-3 * h
