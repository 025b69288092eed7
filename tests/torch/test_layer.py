"""The layer: starts at the model's own values, stays physical, learns."""

import copy
import pickle

import numpy as np
import pytest
import torch

import artigrad as ag
from artigrad.torch import LearnableParams, PhysicsLayer, rollout

SIM = ag.Simulator(ag.robots.laikago())
FIELDS = ("mass", "inertia", "friction", "restitution", "com", "limit")


def scatter(params, size):
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for theta in params.theta.values():
            theta.copy_(size * torch.randn(theta.shape, generator=generator, dtype=theta.dtype))


def test_starts_at_the_model():
    for name, x in LearnableParams(SIM, *FIELDS)().items():
        np.testing.assert_allclose(
            x.detach(), SIM.params[name], rtol=1e-12, atol=2e-6 if name == "restitution" else 1e-15
        )


def test_parameter_stays_physical():
    params = LearnableParams(SIM, *FIELDS)
    scatter(params, 3.0)
    fields = params()
    assert (fields["mass"] > 0).all() and (fields["friction"] > 0).all()
    assert ((fields["restitution"] > 0) & (fields["restitution"] < 1)).all()
    xx, yy, zz, xy, xz, yz = fields["inertia"].detach().T
    full = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], -1).reshape(-1, 3, 3)
    moments = torch.linalg.eigvalsh(full)
    slack = 1e-12 * moments[:, 2]
    assert (moments[:, 0] >= -slack).all()
    assert (moments[:, 0] + moments[:, 1] >= moments[:, 2] - slack).all()


def test_parameter_that_is_zero_everywhere_is_refused():
    with pytest.raises(ag.InputError, match="every damping of 'laikago' is zero"):
        LearnableParams(SIM, "damping")
    with pytest.raises(ag.InputError, match="unknown parameter 'weight'"):
        LearnableParams(SIM, "weight")


def test_names_are_those_of_fit():
    sim = ag.Simulator(ag.robots.pendulum(2, damping=0.1))
    body, other = sim.model.bodies
    params = LearnableParams(sim, f"mass[{body}]", f"com[{other}].z", f"inertia[{body}]", "gravity.z")
    with torch.no_grad():
        for theta in params.theta.values():
            theta += 0.1
    fields = params()
    np.testing.assert_allclose(fields["mass"].detach(), sim.params.mass * [np.exp(0.1), 1.0])
    np.testing.assert_allclose(fields["com"].detach(), sim.params.com + np.array([[0, 0, 0], [0, 0, 0.1]]))
    np.testing.assert_allclose(fields["gravity"].detach(), sim.params.gravity + np.array([0, 0, 0.1]))
    np.testing.assert_array_equal(fields["inertia"][1].detach(), sim.params.inertia[1])
    assert not np.allclose(fields["inertia"][0].detach(), sim.params.inertia[0])
    names = [n.replace(":", ".") for n in params.theta]

    def call(*thetas):
        out = torch.func.functional_call(
            params, {f"theta.{n.replace('.', ':')}": t for n, t in zip(names, thetas, strict=True)}
        )
        return tuple(out.values())

    assert torch.autograd.gradcheck(call, tuple(t.detach().requires_grad_() for t in params.theta.values()))
    with pytest.raises(ag.InputError, match="named before"):
        LearnableParams(sim, "mass", f"mass[{body}]")
    with pytest.raises(ag.InputError, match="has no body 'tool'"):
        LearnableParams(sim, "mass[tool]")


def test_parameters_of_a_trajectory_are_recovered():
    sim = ag.Simulator(ag.robots.pendulum(2, damping=0.1), dt=0.02)
    q, v = torch.tensor([0.4, -0.2], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    u = torch.ones(40, 2, dtype=torch.float64)
    true = {"mass": torch.tensor([1.5, 0.7]), "damping": torch.tensor([0.2, 0.05])}
    seen, _ = rollout(sim, (q, v), u, params=true)
    layer = PhysicsLayer(sim, 40, learn=("mass", "damping"))
    optimiser = torch.optim.LBFGS(
        layer.parameters(), max_iter=60, line_search_fn="strong_wolfe", tolerance_change=1e-14
    )

    def loss():
        optimiser.zero_grad()
        error = 1e3 * (layer((q, v), u)[0] - seen).square().mean()
        error.backward()
        return error

    optimiser.step(loss)
    for name, x in true.items():
        torch.testing.assert_close(layer.params()[name], x.double(), rtol=1e-3, atol=1e-4)


def test_gradient_penalty():
    """Two backward passes and `torch.func`, against differences."""
    sim = ag.Simulator(ag.robots.pendulum(2, damping=0.1))
    layer = PhysicsLayer(sim, 4, learn=("mass", "inertia"))
    scatter(layer.params, 0.2)
    start = tuple(torch.full((2,), 0.3, dtype=torch.float64) for _ in range(2))
    names, thetas = zip(*((k, w.detach().clone().requires_grad_()) for k, w in layer.named_parameters()), strict=True)

    def loss(*thetas):
        states = torch.func.functional_call(layer, dict(zip(names, thetas, strict=True)), (start,))
        return states.v.square().sum()

    def penalty(*thetas):
        slopes = torch.autograd.grad(loss(*thetas), thetas, create_graph=True)
        return sum(x.square().sum() for x in slopes)

    found = torch.autograd.grad(penalty(*thetas), thetas)
    every = tuple(range(len(thetas)))
    of_func = torch.func.grad(lambda *x: sum(y.square().sum() for y in torch.func.grad(loss, every)(*x)), every)
    for k, (a, b) in enumerate(zip(found, of_func(*thetas), strict=True)):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
        e = torch.zeros_like(a)
        e.view(-1)[0] = 1e-5
        plus, minus = (penalty(*(x + s * e if i == k else x for i, x in enumerate(thetas))) for s in (1, -1))
        assert abs(a.view(-1)[0] - (plus - minus) / 2e-5) < 1e-6 * (1 + abs(a.view(-1)[0]))


def test_is_a_module():
    layer = PhysicsLayer(SIM, 2, learn=("mass",))
    q, v = (torch.tensor(x) for x in SIM.reset(batch=3))
    states, _ = layer((q, v))
    assert states.shape == (3, 3, 19) and "laikago" in repr(layer)
    scatter(layer.params, 0.1)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        torch.testing.assert_close(other((q, v)), layer((q, v)))
    fresh = PhysicsLayer(SIM, 2, learn=("mass",))
    fresh.load_state_dict(layer.state_dict())
    torch.testing.assert_close(fresh((q, v)), layer((q, v)))
    with pytest.raises(ag.InputError, match="horizon"):
        PhysicsLayer(SIM, 0)
    with pytest.raises(ag.InputError, match=r"controls are \(..., 2, 12\)"):
        layer((q, v), torch.zeros(3, 5, 12, dtype=torch.float64))
