"""The hard law does not depend on units, and no setting of it is ignored."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import hard


def falling(mass, restitution=0.0, size=0.1):
    b = ag.ModelBuilder("ball")
    b.add_plane(restitution=restitution)
    b.add_body("a", joint="free", mass=mass, inertia=(0.4 * mass * size**2,) * 3, position=(0, 0, size - 1e-4))
    b.add_sphere("a", size)
    return b.build()


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("e", [0.0, 1.0])
@pytest.mark.parametrize("mass", [1e-9, 1e-3, 1.0, 1e3, 1e6, 1e9])
def test_a_fall_ends_in_one_step_whatever_the_mass(mass, e, dtype):
    sim = hard(falling(mass, e), dt=1e-3, dtype=dtype)
    state = sim.reset()
    state.v[2] = -1.0
    traj = sim.rollout(state, steps=1)
    assert traj.violation[0] == 0.0
    assert abs(traj.final.v[2] - e) < (2e-5 if dtype == "f64" else 1e-3)
    grad = sim.vjp(traj, v_bar=np.eye(6)[2])
    assert abs(grad.v0[2] + e) < 1e-4  # v+ = -e v
    assert grad.health.violation[0] == 0.0


def test_softness_of_the_paper_is_an_inverse_mass():
    """1/m + 1e-6 in place of 1/m: a million kilograms keep half of their speed."""
    sim = hard(falling(1e6), dt=1e-3, softness=0.0, absolute_softness=1e-6)
    state = sim.reset()
    state.v[2] = -1.0
    assert abs(sim.step(state).v[2] + 0.505) < 1e-3  # of 1 m/s and what gravity adds


@pytest.mark.parametrize("mass", [0.05, 50.0])
def test_sticking_on_an_incline_has_little_creep(mass):
    b, turn = ag.ModelBuilder("incline"), (np.cos(0.15), 0, np.sin(0.15), 0)
    b.add_plane(rotation=turn, friction=0.8)
    b.add_body("a", joint="free", mass=mass, inertia=(mass / 150,) * 3)
    b.add_box("a", (0.1,) * 3)
    sim = hard(b.build(), dt=1e-3, softness=1e-3)
    state = sim.reset()
    state.q[:3], state.q[3:7] = 0.0999 * np.array([np.sin(0.3), 0, np.cos(0.3)]), turn
    settled = sim.rollout(state, steps=500).final
    later = sim.rollout(settled, steps=1000).final
    assert np.linalg.norm(later.q[:3] - settled.q[:3]) < 2e-6  # m in a second


@pytest.mark.parametrize("solver", ["hybrid", "gauss_seidel"])
@pytest.mark.parametrize("gradient", ["implicit", "reverse"])
def test_the_weights_that_softness_is_a_share_of_have_gradients(solver, gradient):
    if (solver, gradient) == ("hybrid", "reverse"):
        return
    b = ag.ModelBuilder("two")
    b.add_plane(friction=0.5)
    b.add_body("a", joint="free", mass=1.0, inertia=(0.004,) * 3, position=(0, 0, 0.0999))
    b.add_sphere("a", 0.1)
    b.add_body("b", "a", joint="prismatic", axis=(1, 0, 0), mass=0.5, inertia=(0.002,) * 3, limit=(0.0, 1.0))
    model = b.build()
    swept = {"solver": solver, "sweeps": 200, "gradient": gradient} if solver == "gauss_seidel" else {}
    sim, p = hard(model, dt=1e-3, softness=0.1, **swept), model.params
    state = sim.reset()
    state.q[7], state.v[:] = -1e-4, 0.01 * np.arange(7)
    bar = np.cos(np.arange(7.0))
    grad = sim.vjp(sim.rollout(state, steps=1), v_bar=bar).params
    for name, at in (("body_invweight0", (0, 0)), ("dof_invweight0", (6,))):
        ends = []
        for h in (1e-4, -1e-4):
            x = p[name].copy()
            x[at] *= 1 + h
            ends.append(sim.rollout(state, steps=1, params=p.replace(**{name: x})).final.v @ bar)
        wanted = (ends[0] - ends[1]) / (2e-4 * p[name][at])
        assert abs(grad[name][at] - wanted) < 1e-6 * abs(wanted) + 1e-10, name


@pytest.mark.parametrize("law", ["soft", "hard"])
def test_the_normal_of_a_contact_is_reported(law):
    sim = ag.Simulator(falling(1.0), dt=1e-3, law=law)
    found = sim.contacts(sim.rollout(sim.reset(), steps=1))
    np.testing.assert_allclose(found.normal[0, 0], [0, 0, 1], atol=1e-12)


def test_settings_without_effect_are_refused():
    with pytest.raises(ag.InputError, match="sweeps is an option of solver='gauss_seidel'"):
        hard(falling(1.0), sweeps=100)
    model = falling(1.0)
    with pytest.warns(RuntimeWarning, match="no margins of contact"):
        hard(model.replace(params=model.params.replace(margin=np.full(2, 0.01))))
