"""A trajectory (under the soft law) and a gradient through an unsolved step warn in every call; solved ones do not.

Warnings are errors in these tests.
"""

from contextlib import nullcontext

import numpy as np
import pytest

import artigrad as ag


def box(twice=False):
    """twice: two shapes at one place, with more points than a direct solve without softness can distinguish."""
    b = ag.ModelBuilder("box")
    b.add_body("b", joint="free", mass=2.0, inertia=(0.01,) * 3, position=(0, 0, 0.0999))
    for k in range(1 + twice):
        b.add_box("b", (0.1, 0.1, 0.1), name=f"shape {k}")
    b.add_plane(friction=1.0)
    b.add_body("wheel", "b", joint="revolute", mass=0.1, inertia=(1e-3,) * 3)
    b.add_motor("motor", "wheel")
    return b.build()


def swept(**options):
    """Options of Gauss-Seidel sweeps."""
    return {"law": ag.HardOptions(solver="gauss_seidel", **options)}


UNSOLVED = {
    "hybrid": ({"law": ag.HardOptions(softness=0.0)}, r"\(by .* m/s\).* larger softness"),
    "sweeps": (swept(sweeps=1), r"\(by .* m/s\).* gradient='reverse'"),
    "soft": ({"law": ag.SoftOptions(iterations=1)}, r"\(by .* of the constraint forces\).* more iterations"),
}
SOLVED = {
    "hybrid": {"law": "hard"},
    "sweeps": swept(sweeps=20000, softness=1e-2),
    "sweeps differentiated": swept(sweeps=1, gradient="reverse"),
    "within the tolerance": swept(sweeps=1, tolerance=10.0),
    "soft": {},
}


def start(sim):
    """Return states: the first robot flies, the second slides and turns."""
    state = sim.reset(batch=2)
    state.q[0, 2] = 1.0
    state.v[1, :6] = 0.5, 0.1, -0.1, 0.1, 0.2, 0.3
    return state


def expected(name):
    """Expect a warning of the trajectory under the soft law."""
    message = r"not solved in some step of robot 1 \(by .*\), so that its motion is not exact there: more iterations"
    return pytest.warns(RuntimeWarning, match=message) if name == "soft" else nullcontext()


def test_a_step_warns():
    sim = ag.Simulator(box(), law=ag.SoftOptions(iterations=1))
    with expected("soft"):
        sim.step(start(sim))


@pytest.mark.parametrize("name", UNSOLVED)
def test_warning_names_robot_residual_and_remedy(name):
    options, message = UNSOLVED[name]
    sim = ag.Simulator(box(twice=name == "hybrid"), **options)
    with expected(name) as caught:
        traj = sim.rollout(start(sim), steps=3)
    assert name != "soft" or (len(caught) == 1 and caught[0].filename == __file__)
    assert traj.violation[0] == 0.0 < traj.violation[1]
    with pytest.warns(RuntimeWarning, match=f"not solved in some step of robot 1 {message}") as caught:
        grad = sim.vjp(traj, q_bar=np.ones((2, 8)))
    assert len(caught) == 1 and caught[0].filename == __file__
    assert grad.health.violation[1] > 0.0


@pytest.mark.parametrize("name", ["sweeps", "soft"])
def test_jacobians_of_a_step(name):
    sim = ag.Simulator(box(), **UNSOLVED[name][0])
    with pytest.warns(RuntimeWarning, match="not solved in some step of robot 1"):
        sim.linearize(start(sim))


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", SOLVED)
def test_it_is_silent_where_constraints_are_solved(name, dtype):
    sim = ag.Simulator(box(), dtype=dtype, **SOLVED[name])
    traj = sim.rollout(start(sim), steps=3)
    sim.vjp(traj, q_bar=np.ones((2, 8)))
    if "differentiated" in name:
        assert traj.violation[1] > 1e-6  # unsolved, and its gradient exact


@pytest.mark.parametrize("name", UNSOLVED)
def test_torch_and_jax(name):
    options, _ = UNSOLVED[name]
    sim = ag.Simulator(box(twice=name == "hybrid"), **options)
    state, u = start(sim), np.zeros((2, 3, 1))
    torch = pytest.importorskip("torch")
    import artigrad.torch as at

    class Nothing(torch.nn.Module):
        def forward(self, q, v, t):
            return 0.0 * q[..., :1]

    def backward(loss):
        with nullcontext() if name == "soft" else pytest.warns(RuntimeWarning, match="robot 1 .* gradient"):
            loss.sum().backward()

    given = torch.tensor(state.q, requires_grad=True), torch.tensor(state.v)
    with expected(name):
        q = at.rollout(sim, given, torch.tensor(u))[0]
    backward(q)
    with expected(name):
        q = at.closed_loop(sim, Nothing(), given, 3).q
    backward(q)
    jax = pytest.importorskip("jax")
    import artigrad.jax as aj

    jax.config.update("jax_enable_x64", True)

    with pytest.warns(RuntimeWarning, match="not solved in some step of robot 1"):
        jax.block_until_ready(jax.grad(lambda q: aj.rollout(sim, (q, state.v), u)[0].sum())(state.q))
