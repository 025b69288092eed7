"""The physics under JAX's transformations: the numbers of NumPy's vjp and of PyTorch, one native call per batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import artigrad as ag
import artigrad.jax as aj
import artigrad.torch as at
from artigrad.jax import native_calls, xla_handler
from artigrad.simulate import function

jax.config.update("jax_enable_x64", True)
MODEL = ag.robots.laikago()
SIM = ag.Simulator(MODEL)
BATCH, STEPS = 4, 5


@pytest.fixture(scope="module")
def inputs():
    """q, v, u and masses of robots on their feet."""
    rng = np.random.default_rng(0)
    q = ag.integrate(MODEL, SIM.reset(batch=BATCH).q, 0.02 * rng.normal(size=(BATCH, MODEL.nv)))
    q[:, 2] -= 0.01
    u = MODEL.keyframe_control() + 0.1 * rng.normal(size=(BATCH, STEPS, MODEL.nu))
    return q, 0.1 * rng.normal(size=(BATCH, MODEL.nv)), u, np.array(MODEL.params.mass)


def loss(q, v, u, mass):
    q_all, v_all = aj.rollout(SIM, (q, v), u, params={"mass": mass})
    return (
        jnp.sin(q_all).sum()
        + jnp.cos(v_all).sum()
        + jnp.square(aj.sites(SIM, (q_all[..., -1, :], v_all[..., -1, :]))).sum()
    )


def torch_gradients(inputs):
    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    q, v, u, mass = tensors
    q_all, v_all = at.rollout(SIM, (q, v), u, params={"mass": mass})
    total = q_all.sin().sum() + v_all.cos().sum() + at.sites(SIM, (q_all[..., -1, :], v_all[..., -1, :])).square().sum()
    return torch.autograd.grad(total, tensors)


def numpy_gradients(inputs):
    q, v, u, mass = inputs
    traj = SIM.rollout(ag.State(q, v), u, params=MODEL.params.replace(mass=mass))
    q_bar = np.cos(traj.q)
    seen = SIM.outputs_vjp(traj.final, ag.Outputs(site_position=2 * SIM.sites(traj.final)))
    q_bar[:, -1] += seen.q
    grad = SIM.vjp(traj, q_bar=q_bar, v_bar=-np.sin(traj.v))
    return grad.q0, grad.v0, grad.u, grad.params.mass


def test_gradients_are_those_of_torch_and_numpy(inputs):
    ours = jax.jit(jax.grad(loss, (0, 1, 2, 3)))(*inputs)
    for others in (torch_gradients(inputs), numpy_gradients(inputs)):
        for a, b in zip(ours, others, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_vmap_is_one_native_call(inputs, monkeypatch):
    """A call of the whole batch: from XLA one of each kind in the program, and through Python, where that counts them."""
    mapped = jax.vmap(jax.grad(loss, (0, 1, 2, 3)), (0, 0, 0, None))
    text = jax.jit(mapped).lower(*inputs).as_text()
    # rollout and sites forward and back, and what each reads of the parameters, shared forward and each robot's own back
    assert 0 < text.count(xla_handler.TARGET) <= 10 and "while" not in text
    q, v, u, mass = jax.jit(mapped)(*inputs)
    whole = jax.grad(loss, (0, 1, 2, 3))(*inputs)
    for a, b in zip((q, v, u, mass.sum(0)), whole, strict=True):  # each robot has a gradient of the shared mass
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)

    batches = []
    for name in ("_evaluate", "_pull_back"):
        plain = getattr(function, name)

        def counted(sim, call, rows, *rest, plain=plain):
            if call.name == "rollout":
                batches.append(len(rows["u"]))
            return plain(sim, call, rows, *rest)

        monkeypatch.setattr(function, name, counted)
    monkeypatch.setattr(native_calls, "available", lambda on_host: False)
    jax.block_until_ready(jax.jit(lambda *x: mapped(*x))(*inputs))
    assert batches == [BATCH, BATCH]


def test_vmap_over_parameters_and_over_cotangents(inputs):
    q, v, u, mass = inputs
    masses = jnp.stack([mass, 1.1 * mass])
    many = jax.vmap(jax.grad(loss, 3), (None, None, None, 0))(
        q, v, u, masses
    )  # two robots' masses, all of the batch each
    for a, m in zip(many, masses, strict=True):
        np.testing.assert_allclose(a, jax.grad(loss, 3)(q, v, u, m), rtol=1e-12, atol=1e-12)
    A = jax.jacrev(lambda v: aj.step(SIM, (q[0], v), u[0, 0])[1])(v[0])
    expected, _ = SIM.linearize(ag.State(q[0], v[0]), u[0, 0])
    np.testing.assert_allclose(A, expected[MODEL.nv :, MODEL.nv :], rtol=1e-12, atol=1e-12)


def test_scan_of_steps_is_the_rollout(inputs):
    q, v, u, _ = inputs

    def scanned(q, v, u):
        (q, v), _ = jax.lax.scan(lambda s, u: (aj.step(SIM, s, u), None), ag.State(q, v), u)
        return jnp.sin(q).sum() + jnp.cos(v).sum()

    def rolled(q, v, u):
        q_all, v_all = aj.rollout(SIM, (q, v), u)
        return jnp.sin(q_all[-1]).sum() + jnp.cos(v_all[-1]).sum()

    a, b = (jax.jit(jax.vmap(jax.grad(f, (0, 1, 2))))(q, v, u) for f in (scanned, rolled))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_single_precision(inputs):
    sim = ag.Simulator(MODEL, dtype="f32")
    q, v, u, mass = (jnp.asarray(x, jnp.float32) for x in inputs)
    slope = jax.grad(lambda q, m: aj.rollout(sim, (q, v), u, params={"mass": m})[0].sum(), (0, 1))(q, mass)
    assert slope[0].dtype == slope[1].dtype == jnp.float32


def test_errors_have_the_remedy(inputs):
    q, v, u, mass = map(jnp.asarray, inputs)

    def bad(kind, match, call):
        with pytest.raises(kind, match=match):
            jax.block_until_ready(call())

    def speed(q):
        return jnp.sin(aj.step(SIM, (q, v[0]), u[0, 0])[1]).sum()

    bad(
        ag.InputError,
        "q is float32 and this simulator computes in float64",
        lambda: aj.rollout(SIM, (q.astype("f4"), v), u),
    )
    bad(ag.InputError, r"u of 'laikago' is \(..., 12\)", lambda: aj.step(SIM, (q, v), u[..., :3]))
    bad(ag.InputError, "do not broadcast", lambda: aj.rollout(SIM, (q, v), u[:3]))
    bad(ag.InputError, r"params\['mass'\] is \(17,\)", lambda: aj.rollout(SIM, (q, v), u, params={"mass": mass[:3]}))
    bad(ag.InputError, "params is a mapping", lambda: aj.rollout(SIM, (q, v), u, params=mass))
    bad(Exception, r"q\[0, 0\] is nan", lambda: jax.jit(lambda q: aj.rollout(SIM, (q, v), u))(q * jnp.nan))
    bad(ag.InputError, "third order", lambda: jax.grad(lambda q: jax.hessian(speed)(q).sum())(q[0]))


def test_numbers_that_jax_does_not_have_now():
    state = tuple(np.asarray(x, np.float32) for x in SIM.reset())
    with jax.enable_x64(False), pytest.raises(ag.InputError, match=r"computes in float64.*jax_enable_x64"):
        aj.step(SIM, state)
