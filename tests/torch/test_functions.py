"""Steps, rollouts and sites on tensors: gradients against differences and against NumPy's vjp, shapes, and the door."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.fx.experimental.proxy_tensor import make_fx

import artigrad as ag
import artigrad.torch as at

MODEL = ag.robots.laikago()
SIM = ag.Simulator(MODEL)
FIELDS = ("mass", "com", "inertia", "friction", "shape_size", "gravity")


def standing(batch=2, seed=0):
    """Robots on their feet, pressed into the floor a little and moving, and controls near those of the keyframe."""
    rng = np.random.default_rng(seed)
    q = ag.integrate(MODEL, SIM.reset(batch=batch).q, 0.02 * rng.normal(size=(batch, MODEL.nv)))
    q[:, 2] -= 0.01
    u = MODEL.keyframe_control() + 0.1 * rng.normal(size=(batch, 3, MODEL.nu))
    return [torch.tensor(x, requires_grad=True) for x in (q, 0.1 * rng.normal(size=(batch, MODEL.nv)), u)]


def field_tensors():
    return [torch.tensor(MODEL.params[name], requires_grad=True) for name in FIELDS]


def test_gradcheck_of_a_step_in_contact():
    """All of q too, quaternions off the unit sphere by the difference: gradients are ambient and the pose is that of q/|q|."""
    q, v, u = standing()
    u = u[:, 0].detach().requires_grad_()
    assert (at.sites(SIM, (q, v))[..., 2] < 0.03).any(), "some foot is to touch"
    assert gradcheck(lambda q, v, u: at.step(SIM, (q, v), u), (q, v, u), eps=1e-6, atol=1e-5)


def test_gradcheck_of_a_rollout_in_contact_with_params():
    def call(q, v, u, *fields):
        return at.rollout(SIM, (q, v), u, params=dict(zip(FIELDS, fields, strict=True)))

    assert gradcheck(call, (*standing(1), *field_tensors()), eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("own", [False, True])
def test_equals_vjp(own):
    """Shared parameters and one set per robot; the same numbers as the NumPy interface."""
    q, v, u = standing(5)
    mass = torch.tensor(MODEL.params.mass)
    mass = (mass * torch.linspace(0.9, 1.1, 5)[:, None] if own else mass).requires_grad_()
    q_all, v_all = at.rollout(SIM, (q, v), u, params={"mass": mass})
    (q_all.sin().sum() + v_all.cos().sum()).backward()
    params = MODEL.params.replace(mass=mass.detach().numpy())
    traj = SIM.rollout(ag.State(q.detach().numpy(), v.detach().numpy()), u.detach().numpy(), params=params)
    np.testing.assert_array_equal(q_all.detach(), traj.q)
    grad = SIM.vjp(traj, q_bar=np.cos(traj.q), v_bar=-np.sin(traj.v))
    for ours, theirs in ((q, grad.q0), (v, grad.v0), (u, grad.u), (mass, grad.params.mass)):
        np.testing.assert_allclose(ours.grad, theirs, rtol=1e-12, atol=1e-12)


def test_any_mixture_of_inputs_and_leading_axes():
    q, v, u = (x.detach() for x in standing(6))
    whole = at.rollout(SIM, (q, v), u)
    for k in range(3):
        inputs = [q, v, u]
        inputs[k] = inputs[k].clone().requires_grad_()
        at.rollout(SIM, inputs[:2], inputs[2])[1].sum().backward()
        assert inputs[k].grad.shape == inputs[k].shape and inputs[k].grad.any()
    grid = [x.reshape(2, 3, *x.shape[1:]) for x in (q, v, u)]
    torch.testing.assert_close(at.rollout(SIM, grid[:2], grid[2])[0], whole[0].reshape(2, 3, 4, -1), rtol=0, atol=0)
    shared = u[0].clone().requires_grad_()  # controls without batch axis are everyone's, and so is their gradient
    at.rollout(SIM, (q, v), shared)[1].sum().backward()
    apart = u[0].expand(6, -1, -1).clone().requires_grad_()
    at.rollout(SIM, (q, v), apart)[1].sum().backward()
    torch.testing.assert_close(shared.grad, apart.grad.sum(0))
    alone = at.step(SIM, (q[0], v[0]), u[0, 0])
    assert alone[0].shape == (MODEL.nq,)
    torch.testing.assert_close(alone[0], whole[0][0, 1], rtol=0, atol=0)


def test_memory_in_any_order():
    """Transposed inputs have the values and gradients of contiguous ones."""
    plain = [x.detach().requires_grad_() for x in standing(4)]
    turned = [x.detach().mT.contiguous().requires_grad_() for x in plain]
    for call, last in ((at.rollout, lambda u: u), (at.step, lambda u: u[:, 0])):
        results = []
        for inputs, view in ((plain, lambda x: x), (turned, lambda x: x.mT)):
            q, v, u = map(view, inputs)
            out = call(SIM, (q, v), last(u))
            slopes = torch.autograd.grad(sum(x.sin().sum() for x in out), inputs)
            results.append([*out, *map(view, slopes)])
        torch.testing.assert_close(*results, rtol=0, atol=0)


def test_single_precision():
    sim = ag.Simulator(MODEL, dtype="f32")
    q, v, u = (x.detach().float().requires_grad_() for x in standing())
    mass = torch.tensor(MODEL.params.mass, dtype=torch.float32, requires_grad=True)
    q_all, _ = at.rollout(sim, (q, v), u, params={"mass": mass})
    q_all.sum().backward()
    assert q_all.dtype == q.grad.dtype == mass.grad.dtype == torch.float32
    torch.testing.assert_close(q_all.double(), at.rollout(SIM, standing()[:2], standing()[2]).q, rtol=1e-4, atol=1e-4)


def test_keeps_states_and_nothing_else():
    q, v, u = standing()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
        q_all, v_all = at.rollout(SIM, (q, v), u)
    assert sum(kept) == q_all.numel() + v_all.numel() + u.numel()


def test_states_changed_after_the_rollout_are_noticed():
    q, v, u = standing()
    q_all, _ = at.rollout(SIM, (q, v), u)
    loss = q_all.sum()
    with torch.no_grad():
        q_all.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_derivatives_of_third_order_are_refused():
    q, v, u = standing()
    (slope,) = torch.autograd.grad(at.rollout(SIM, (q, v), u)[0].square().sum(), q, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), q, create_graph=True)
    with pytest.raises(ag.InputError, match="derivatives of third order"):
        second.sum().backward()


@pytest.mark.filterwarnings("ignore:.*not a leaf Tensor")  # torch's own, where it takes up the graph again
def test_compile_goes_around_it():
    q, v, u = standing()

    def loss(q, v, u):
        q_next, v_next = at.step(SIM, (q * 1.0, v), u)
        return (q_next.square().sum() + v_next.square().sum()) * 2.0

    plain = torch.autograd.grad(loss(q, v, u[:, 0]), (q, u))
    compiled = torch.autograd.grad(torch.compile(loss, backend="aot_eager")(q, v, u[:, 0]), (q, u))
    torch.testing.assert_close(compiled, plain)


def test_errors_have_the_remedy():
    q, v, u = (x.detach() for x in standing())

    def bad(match, q, v, u, **more):
        with pytest.raises(ag.InputError, match=match):
            at.rollout(SIM, (q, v), u, **more)

    bad(r"q is torch.float32 and this simulator computes in torch.float64: pass q.to", q.float(), v, u)
    bad(r"v of 'laikago' is \(..., 18\), not \(2, 19\)", q, q, u)
    bad(r"u of .laikago. is \(..., T, 12\)", q, v, u[0, 0])
    bad("do not broadcast", q, v, u[:1].expand(3, -1, -1))
    bad(r"q is a tensor, not ndarray", q.numpy(), v, u)
    bad(r"u is on 'meta' and this simulator runs on 'cpu': pass u.to\('cpu'\)", q, v, u.to("meta"))  # as a GPU would be
    bad(r"q\[0, 0\] is nan", q * torch.nan, v, u)
    bad(r"unknown parameter 'weight'", q, v, u, params={"weight": torch.ones(17)})
    bad(r"params\['mass'\] is \(17,\)", q, v, u, params={"mass": torch.ones(16)})
    bad(r"params have leading axes \(3,\), but the robots \(2,\)", q, v, u, params={"mass": torch.ones(3, 17)})
    bad("params is a mapping", q, v, u, params=torch.ones(17))
    with pytest.raises(ag.InputError, match=r"u of 'laikago' is \(..., 12\)"):
        at.step(SIM, (q, v), u[..., :5])


def test_unsolved_contact_is_reported():
    """A box on four points where three would suffice, without softness: the backward pass warns."""
    b = ag.ModelBuilder("box")
    b.add_body("b", joint="free", mass=2.0, inertia=(0.01,) * 3, position=(0, 0, 0.0999))
    b.add_box("b", (0.1, 0.1, 0.1))
    b.add_plane(friction=1.0)
    sim = ag.Simulator(b.build(), law=ag.HardOptions(softness=0.0))
    q, v = (torch.tensor(x, requires_grad=True) for x in sim.reset())
    u = torch.zeros(5, 0, dtype=torch.float64)
    assert sim.rollout(sim.reset(), steps=5).violation[0] > 0.0
    q_all, _ = at.rollout(sim, (q, v), u)
    with pytest.warns(RuntimeWarning, match="not solved in some step of robot 0"):
        q_all[-1].sum().backward()


def test_unphysical_values_are_reported():
    start = tuple(map(torch.tensor, SIM.reset()))
    with pytest.raises(ag.InputError, match=r"params.mass\[0\] is -1.0; it cannot be negative"):
        at.step(SIM, start, params={"mass": -torch.ones(MODEL.nb, dtype=torch.float64)})
    with pytest.raises(ag.InputError, match="sim is a Simulator, not Model"):
        at.step(MODEL, start)


def test_a_traced_program_needs_its_simulator():
    """The simulator is freed although it was traced, and its program then raises an error."""

    def trace():
        sim = ag.Simulator(ag.robots.pendulum(1))
        q, v = map(torch.tensor, sim.reset())
        program = make_fx(lambda v: at.step(sim, (q, v)).v)(v)
        torch.testing.assert_close(program(v + 1.0), at.step(sim, (q, v + 1.0)).v, rtol=0, atol=0)
        return program, v, weakref.ref(sim)

    program, v, alive = trace()
    gc.collect()
    assert alive() is None
    with pytest.raises(ag.InputError, match="simulator of this traced program was deleted"):
        program(v)
