"""Every function under every transformation of JAX: values and derivatives of NumPy, or a refusal with its text.

The table in docs/jax.md is that of this file: `python -m tests.jax.test_transformations` prints it.
"""

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import artigrad as ag
import artigrad.jax as aj
from tests import transformations as cells
from tests.transformations import (
    DU,
    FIRST_ONLY,
    HESSIAN,
    MASS,
    MODEL,
    NO_GRADIENT,
    PENALTY,
    PRODUCT,
    SECOND,
    SIM,
    STEPS,
    TANGENT,
    X0,
    G,
    J,
    Y,
    page_table,
    reference,
    table_of_page,
)

jax.config.update("jax_enable_x64", True)
TOLERANCE = 1e-9
POINT = jnp.asarray(X0)
ALONG = jnp.array(cells.ALONG)
MANY = POINT + jnp.arange(4.0)[:, None] * jnp.array([0.001, -0.002, 0.001])  # four points


# -- functions of x ------------------------------------------------------------------------------------------------------
def state(x):
    return ag.State(cells.Q + x[0] * cells.DQ, cells.V + x[0] * cells.DV)


def control(x):
    return cells.U + DU * x[1:2]


def controls(x):
    return jnp.broadcast_to(control(x), (STEPS, MODEL.nu))


def params(x):
    return {"mass": MASS * (1.0 + 0.3 * x[2:])}


def closed_loop(x):
    """A policy in the loop, by `lax.scan`."""

    def step(now, _):
        hidden = jnp.tanh(cells.W1 @ jnp.concatenate(now) + cells.B1)
        u = jnp.sin((1.0 + x[1]) * (cells.W2 @ hidden) + cells.B2)
        after = aj.step(SIM, now, u, params=params(x))
        return after, jnp.concatenate([*after, u])

    return lax.scan(step, state(x), None, length=STEPS)[1].ravel()


def rollout(x):
    states = aj.rollout(SIM, state(x), controls(x), params=params(x))
    return jnp.concatenate([states.q[1:].ravel(), states.v[1:].ravel()])


FUNCTIONS = {
    "step": lambda x: jnp.concatenate(aj.step(SIM, state(x), control(x), params=params(x))),
    "rollout": rollout,
    "checkpointed rollout": lambda x: jnp.concatenate(
        aj.rollout(SIM, state(x), controls(x), params=params(x), checkpoints=ag.EveryKth(2))
    ),
    "closed_loop": closed_loop,
    "contacts": lambda x: aj.contacts(SIM, state(x), control(x), params=params(x)).force.ravel(),
    "outputs": lambda x: jnp.concatenate([y.ravel() for y in aj.outputs(SIM, state(x), params=params(x))]),
    "sensors": lambda x: jnp.concatenate(list(aj.sensors(SIM, state(x), control(x), params=params(x)).values())),
    "mass_matrix": lambda x: aj.mass_matrix(SIM, state(x), params=params(x)).ravel(),
    "inverse_dynamics": lambda x: aj.inverse_dynamics(SIM, state(x), cells.A + x[0] * cells.DA, params=params(x)),
    "forward_dynamics": lambda x: aj.forward_dynamics(SIM, state(x), control(x), params=params(x)),
    "linearize": lambda x: jnp.concatenate(
        [y.ravel() for y in aj.linearize(SIM, state(x), control(x), params=params(x))]
    ),
}


# -- transformations -----------------------------------------------------------------------------------------------------
def loss_of(f):
    return lambda x: jnp.sin(f(x)).sum()


def gradient(f):
    return jax.grad(loss_of(f))


def penalty(f):
    """Derivative of |gradient|^2 / 2."""
    return jax.grad(lambda x: (gradient(f)(x) ** 2).sum() / 2)(POINT)


def without_jit(f):
    with jax.disable_jit():
        return jax.grad(loss_of(f))(POINT)


def exported(f):
    return jax.export.export(jax.jit(f))(POINT).call(POINT)


def symbolic(f):
    shape = jax.export.symbolic_shape("b, 3")
    program = jax.export.export(jax.jit(jax.vmap(f)))(jax.ShapeDtypeStruct(shape, POINT.dtype))
    return program.call(MANY)[0]


def custom(f):
    """With a rule for its backward pass around it."""

    @jax.custom_vjp
    def g(x):
        return f(x)

    g.defvjp(lambda x: jax.vjp(f, x), lambda pull, bar: pull(bar))
    return jax.grad(loss_of(g))(POINT)


def custom_forward(f):
    g = jax.custom_jvp(f)
    g.defjvp(lambda x, dx: jax.jvp(f, x, dx))
    return jax.grad(loss_of(g))(POINT)


def mesh():
    return jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))


def sharded(f):
    """Sum of gradients over four devices, of points that are alike."""
    total = jax.shard_map(lambda x: lax.psum(loss_of(f)(x[0]), "i"), mesh=mesh(), in_specs=P("i"), out_specs=P())
    return jax.jit(jax.grad(total))(jnp.tile(POINT, (4, 1)))[3]


def replicated(f):
    """Gradient of what devices share."""
    total = jax.shard_map(
        lambda x, s: lax.psum(loss_of(f)(x) * s[0], "i"), mesh=mesh(), in_specs=(P(), P("i")), out_specs=P()
    )
    return jax.jit(jax.grad(total))(POINT, jnp.full(4, 0.25))


def partitioned(f):
    """A sharded batch under `jit`."""
    x = jax.device_put(MANY, NamedSharding(mesh(), P("i")))
    return jax.jit(jax.vmap(gradient(f)))(x)[0]


def loop(f):
    """Reverse mode through a loop of fixed length."""
    return jax.grad(lambda x: lax.fori_loop(0, 2, lambda _, s: s + loss_of(f)(x) / 2, 0.0))(POINT)


def forever(f):
    """A loop of unknown length, in forward mode."""
    count = lambda s: s[0] < 2  # noqa: E731
    one = lambda x: lax.while_loop(count, lambda s: (s[0] + 1, f(x)), (0, jnp.zeros_like(f(x))))[1]  # noqa: E731
    return jax.jvp(one, (POINT,), (ALONG,))[1]


def branches(f):
    return jax.grad(lambda x: lax.cond(x[0] > 0, loss_of(f), lambda x: x.sum(), x))(POINT)


def mapped_branches(f):
    """Both branches are run."""
    return jax.vmap(jax.grad(lambda x: lax.cond(x[0] > 0, loss_of(f), lambda x: x.sum(), x)))(MANY)[0]


def transposed(f):
    """The transpose of the linear map at a point, of the cotangents of the loss."""
    y, push = jax.linearize(f, POINT)
    return jax.linear_transpose(push, POINT)(jnp.cos(y))[0]


TRANSFORMATIONS = {
    "call": (Y, lambda f: f(POINT)),
    "jit": (Y, lambda f: jax.jit(f)(POINT)),
    "jit, lower, compile": (Y, lambda f: jax.jit(f).lower(POINT).compile()(POINT)),
    "make_jaxpr": (Y, lambda f: jax.core.eval_jaxpr(*jaxpr(f), POINT)[0]),
    "eval_shape": (Y, lambda f: f(POINT) if jax.eval_shape(f, POINT).shape == f(POINT).shape else None),
    "grad": (G, lambda f: gradient(f)(POINT)),
    "value_and_grad": (G, lambda f: jax.value_and_grad(loss_of(f))(POINT)[1]),
    "jit of grad": (G, lambda f: jax.jit(gradient(f))(POINT)),
    "grad of jit": (G, lambda f: gradient(jax.jit(f))(POINT)),
    "vjp": (J, lambda f: jax.vmap(jax.vjp(f, POINT)[1])(eye(f))[0]),
    "jvp": (TANGENT, lambda f: jax.jvp(f, (POINT,), (ALONG,))[1]),
    "linearize": (TANGENT, lambda f: jax.linearize(f, POINT)[1](ALONG)),
    "linear_transpose": (G, transposed),
    "jacrev": (J, lambda f: jax.jacrev(f)(POINT)),
    "jacfwd": (J, lambda f: jax.jacfwd(f)(POINT)),
    "jit of jacfwd": (J, lambda f: jax.jit(jax.jacfwd(f))(POINT)),
    "hessian (jacfwd of jacrev)": (HESSIAN, lambda f: jax.hessian(loss_of(f))(POINT)),
    "jacrev of jacrev": (HESSIAN, lambda f: jax.jacrev(gradient(f))(POINT)),
    "jacrev of jacfwd": (HESSIAN, lambda f: jax.jacrev(jax.jacfwd(loss_of(f)))(POINT)),
    "jacfwd of jacfwd": (HESSIAN, lambda f: jax.jacfwd(jax.jacfwd(loss_of(f)))(POINT)),
    "jvp of grad": (PRODUCT, lambda f: jax.jvp(gradient(f), (POINT,), (ALONG,))[1]),
    "jit of jvp of grad": (PRODUCT, lambda f: jax.jit(lambda x: jax.jvp(gradient(f), (x,), (ALONG,))[1])(POINT)),
    "grad of jvp": (PRODUCT, lambda f: jax.grad(lambda x: jax.jvp(loss_of(f), (x,), (ALONG,))[1])(POINT)),
    "linearize of grad": (PRODUCT, lambda f: jax.linearize(gradient(f), POINT)[1](ALONG)),
    "gradient penalty": (PENALTY, penalty),
    "third order": (Y, lambda f: jax.grad(lambda x: jax.hessian(loss_of(f))(x).sum())(POINT)),
    "vmap": (Y, lambda f: jax.vmap(f)(MANY)[0]),
    "vmap, other axes": (Y, lambda f: jax.vmap(f, 1, 1)(MANY.T)[:, 0]),
    "vmap of vmap": (Y, lambda f: jax.vmap(jax.vmap(f))(MANY[None])[0, 0]),
    "vmap of jit": (Y, lambda f: jax.vmap(jax.jit(f))(MANY)[0]),
    "vmap of grad": (G, lambda f: jax.vmap(gradient(f))(MANY)[0]),
    "vmap of grad, other axes": (G, lambda f: jax.vmap(gradient(f), 1)(MANY.T)[0]),
    "jit of vmap of grad": (G, lambda f: jax.jit(jax.vmap(gradient(f)))(MANY)[0]),
    "grad of vmap": (G, lambda f: jax.grad(lambda x: jnp.sin(jax.vmap(f)(x)).sum())(MANY)[0]),
    "vmap of hessian": (HESSIAN, lambda f: jax.vmap(jax.hessian(loss_of(f)))(MANY)[0]),
    "vmap with psum": (
        G,
        lambda f: jax.vmap(lambda x: jax.grad(loss_of(f))(x) * lax.psum(0.25, "b"), axis_name="b")(MANY)[0],
    ),
    "lax.map": (G, lambda f: lax.map(gradient(f), MANY)[0]),
    "lax.scan": (
        G,
        lambda f: jax.grad(lambda x: lax.scan(lambda s, _: (s + loss_of(f)(x) / 2, None), 0.0, None, length=2)[0])(
            POINT
        ),
    ),
    "lax.fori_loop": (G, loop),
    "lax.while_loop, forward": (TANGENT, forever),
    "lax.cond": (G, branches),
    "vmap of lax.cond": (G, mapped_branches),
    "checkpoint": (G, lambda f: jax.grad(loss_of(jax.checkpoint(f)))(POINT)),
    "custom_vjp": (G, custom),
    "custom_jvp": (G, custom_forward),
    "disable_jit": (G, without_jit),
    "enable_checks": (G, lambda f: with_config(f, "jax_enable_checks")),
    "debug_nans": (G, lambda f: with_config(f, "jax_debug_nans")),
    "export": (Y, exported),
    "export, symbolic batch": (Y, symbolic),
    "pmap": (G, lambda f: jax.pmap(gradient(f))(MANY)[0]),
    "shard_map": (G, sharded),
    "shard_map, shared": (G, replicated),
    "jit of a sharded batch": (G, partitioned),
}


def with_config(f, name):
    before = getattr(jax.config, name)
    jax.config.update(name, True)
    try:
        return gradient(f)(POINT)
    finally:
        jax.config.update(name, before)


def jaxpr(f):
    closed = jax.make_jaxpr(f)(POINT)
    return closed.jaxpr, closed.consts


def eye(f):
    return jnp.eye(len(jax.eval_shape(f, POINT)))


def expected(name, kind):
    return reference(name).of_kind(kind)


# -- refusals --------------------------------------------------------------------------------------------------------------


def refused(name, title):
    """Text of the refusal of a cell, or None."""
    kind = TRANSFORMATIONS[title][0]
    if title.startswith("export"):
        return "programs of artigrad run in the process that compiled them: export what is around its calls"
    if name in ("sensors", "checkpointed rollout", "linearize") and (kind in SECOND or title == "third order"):
        return FIRST_ONLY
    if name == "linearize" and title not in ("jacfwd", "jit of jacfwd") and kind in (G, J):
        return NO_GRADIENT
    if title == "jacfwd of jacfwd":
        return "forward mode of forward mode is not available: take jax.jvp of jax.grad, or jacfwd of jacrev"
    if title == "third order":
        return "derivatives of third order are not available: take differences of second ones"
    return None


# by themselves: compiled separately, or not at all; the others are compiled together, as inside of `jax.jit`
APART = (
    *(
        "call",
        "jit",
        "jit, lower, compile",
        "make_jaxpr",
        "eval_shape",
        "grad",
        "jit of grad",
        "jvp",
        "vmap",
        "jacfwd of jacfwd",
    ),
    *("disable_jit", "enable_checks", "debug_nans", "export", "export, symbolic batch", "pmap"),
    *("shard_map", "shard_map, shared", "jit of a sharded batch"),
)


def checked(name, title, run):
    """Return the failure of a cell, or None if it is as in the table."""
    kind, text = TRANSFORMATIONS[title][0], refused(name, title)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.asarray(run())
    except Exception as error:
        if text is not None and text in str(error):
            return None
        return f"{title}: {type(error).__name__}: {error}"
    if text is not None:
        return f"{title}: not refused"
    truth = expected(name, kind)
    if found.shape != truth.shape:
        return f"{title}: shape {found.shape} for {truth.shape}"
    error = np.abs(found - truth).max() / max(1.0, np.abs(truth).max())
    return None if error < TOLERANCE else f"{title}: error {error:.1e}"


def outcomes(name):
    """Return the failures of the cells of a function."""
    scale = reference(name).scale

    def f(x):
        return scale * FUNCTIONS[name](x)

    together = [title for title in TRANSFORMATIONS if title not in APART and refused(name, title) is None]
    found = {}
    try:
        found = jax.jit(lambda: {title: TRANSFORMATIONS[title][1](f) for title in together})()
    except Exception as error:
        print(name, type(error), error)  # one of them fails, and is found below
    runs = {title: partial(run, f) for title, (_, run) in TRANSFORMATIONS.items()}
    runs |= {title: jax.jit(run) for title, run in runs.items() if title not in APART}
    runs |= {title: lambda y=y: y for title, y in found.items()}
    return [x for title, run in runs.items() if (x := checked(name, title, run)) is not None]


@pytest.fixture(autouse=True)
def quick_compilation():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.skipif(jax.device_count() < 4, reason="JAX was started with fewer devices")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transformations(name):
    found = outcomes(name)
    assert not found, "\n".join(found)


def test_the_page_has_this_table():
    assert table_of_page("jax.md") == page_table(FUNCTIONS, TRANSFORMATIONS, refused)


if __name__ == "__main__":
    print(page_table(FUNCTIONS, TRANSFORMATIONS, refused))
