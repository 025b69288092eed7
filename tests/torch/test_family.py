"""Every function on tensors: gradients against differences in contact, leading axes, vmap, what has no gradient."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import artigrad as ag
import artigrad.torch as at
from tests.family import CALLS, MODEL, STEPS, inputs, of_all

SIM = ag.Simulator(MODEL)


def tensors(names, lead=(2,), grad=True):
    x = inputs(lead)
    return [torch.tensor(x[name], requires_grad=grad) for name in names]


@pytest.mark.parametrize("name", CALLS)
def test_gradcheck_in_contact(name):
    call, names = of_all(name, at, SIM)
    given = tensors(names)
    state = ag.State(*(x.detach().numpy() for x in given[:2]))
    assert (SIM.contacts(SIM.rollout(state, steps=1)).gap < 0).any(), "something is to touch"
    assert gradcheck(call, given, eps=1e-6, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CALLS)
def test_leading_axes_and_vmap(name):
    """Several axes, none, and `vmap`: the same robots give the same numbers, and the same gradients."""
    call, names = of_all(name, at, SIM)
    given, fields = tensors(names[:-3], (2, 3), False), tensors(names[-3:], grad=False)
    whole = call(*given, *fields)
    axes = (0,) * len(given) + (None,) * 3
    mapped = torch.func.vmap(torch.func.vmap(call, axes), axes)(*given, *fields)
    alone = call(*(x[1, 2] for x in given), *fields)
    for a, b, c in zip(whole, mapped, alone, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
        torch.testing.assert_close(a[1, 2], c, rtol=1e-12, atol=1e-14)

    def loss(*x):
        return sum(y.sin().sum() for y in call(*x))

    every = tuple(range(len(names)))
    together = torch.func.grad(loss, every)(*given, *fields)
    each = torch.func.vmap(torch.func.grad(loss, every), axes)(*given, *fields)
    for k, (a, b) in enumerate(zip(together, each, strict=True)):
        torch.testing.assert_close(a, b if k < len(given) else b.sum(0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_forward_mode_is_the_transpose(name):
    call, names = of_all(name, at, SIM)
    given = tensors(names)
    along = [x.detach().cos() for x in given]
    out, moved = torch.func.jvp(call, tuple(x.detach() for x in given), tuple(along))
    bars = [y.sin() for y in out]
    slopes = torch.autograd.grad(call(*given), given, bars, materialize_grads=True)
    terms = [(a * b).sum() for a, b in zip(slopes, along, strict=True)]
    found = sum((a * b).sum() for a, b in zip(bars, moved, strict=True))
    assert abs(found - sum(terms)) < 1e-12 * sum(map(abs, terms))


@pytest.mark.parametrize("name", ["step", "rollout", "mass_matrix", "inverse_dynamics"])
def test_forward_over_reverse_is_how_gradients_change(name):
    call, names = of_all(name, at, SIM)
    given = tensors(names, grad=False)
    along = [0.1 * x.cos() if k not in ("q", "friction") else 0 * x for k, x in zip(names, given, strict=True)]
    slope = torch.func.grad(lambda *x: sum(y.sin().sum() for y in call(*x)), tuple(range(len(names))))
    _, found = torch.func.jvp(slope, tuple(given), tuple(along))
    h = 1e-5
    ends = [slope(*(x + side * h * d for x, d in zip(given, along, strict=True))) for side in (1, -1)]
    for a, b, c in zip(found, *ends, strict=True):
        difference = (b - c) / (2 * h)
        torch.testing.assert_close(a, difference, rtol=0, atol=1e-6 * max(float(difference.abs().max()), 1e-3))


def test_a_jacobian_in_both_modes():
    q, v, u = tensors(("q", "v", "u"), grad=False)
    jacobians = [mode(lambda u: at.step(SIM, (q, v), u).v)(u) for mode in (torch.func.jacfwd, torch.func.jacrev)]
    torch.testing.assert_close(*jacobians, rtol=0, atol=1e-14)


def test_a_rollout_by_steps_and_with_checkpoints():
    q, v, *_ = tensors(("q", "v"), grad=False)
    zero = torch.zeros(STEPS, MODEL.nu, dtype=torch.float64)
    states = at.rollout(SIM, (q, v), steps=STEPS)
    torch.testing.assert_close(states, at.rollout(SIM, (q, v), zero), rtol=0, atol=0)
    last = at.rollout(SIM, (q, v), steps=STEPS, checkpoints=ag.Binomial(memory=10_000))
    torch.testing.assert_close(last.q, states.q[:, -1], rtol=0, atol=0)


def test_contacts_of_a_rollout_are_the_simulators():
    q, v, u = tensors(("q", "v", "us"))
    states = at.rollout(SIM, (q, v), u)
    forces = at.contacts(SIM, (states.q[:, :-1], states.v[:, :-1]), u)
    traj = SIM.rollout(ag.State(q.detach().numpy(), v.detach().numpy()), u.detach().numpy())
    for ours, theirs in zip(forces, SIM.contacts(traj), strict=True):
        np.testing.assert_array_equal(ours.detach(), theirs)
    slope = torch.autograd.grad(forces.force.sin().sum(), u)[0]
    expected = SIM.vjp(traj, force_bar=np.cos(SIM.contacts(traj).force))
    np.testing.assert_allclose(slope, expected.u, rtol=1e-9, atol=1e-12)


def test_linearize_is_the_simulators():
    q, v, u = tensors(("q", "v", "u"))
    for a, b in zip(
        at.linearize(SIM, (q, v), u),
        SIM.linearize(ag.State(*(x.detach().numpy() for x in (q, v))), u.detach().numpy()),
        strict=True,
    ):
        np.testing.assert_array_equal(a.detach(), b)


def test_params_of_the_model_are_taken_as_they_are():
    q, v, u = tensors(("q", "v", "u"))
    light = MODEL.params.replace(mass=0.5 * MODEL.params.mass)
    mass = torch.tensor(light.mass)
    torch.testing.assert_close(
        at.step(SIM, (q, v), u, params=light), at.step(SIM, (q, v), u, params={"mass": mass}), rtol=0, atol=0
    )
    with pytest.raises(ag.InputError, match="another Model"):
        at.step(SIM, (q, v), u, params=ag.robots.ball().params)


def test_outputs_without_gradient_raise():
    q, v, u = tensors(("q", "v", "u"))
    contacts = at.contacts(SIM, (q, v), u)
    with pytest.raises(ag.InputError, match="gap of contacts has no gradient"):
        (contacts.force.sum() + contacts.gap.sum()).backward()
    with pytest.raises(ag.InputError, match="linearize have no gradient"):
        at.linearize(SIM, (q, v), u)[0].sum().backward()
    with pytest.raises(ag.InputError, match="has no shapes that may touch"):
        sim = ag.Simulator(ag.robots.pendulum(2))
        at.contacts(sim, tuple(map(torch.tensor, sim.reset())))
    with pytest.raises(ag.InputError, match=r"wrenches are \(..., 3, 2, 6\), as many as controls"):
        at.rollout(SIM, (q, v), steps=STEPS, wrench=torch.zeros(2, MODEL.nb, 6, dtype=torch.float64))
    with pytest.raises(ag.InputError, match="pass u or steps, not both"):
        at.rollout(SIM, (q, v), u[:, None], steps=1)
