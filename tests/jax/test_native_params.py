"""Parameters as JAX arrays in native calls: values and gradients of the callback, shared or per batch element."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import artigrad as ag
import artigrad.jax as aj
from tests.family import MODEL, inputs
from tests.jax.test_native_calls import STATE_FUNCTIONS, both_ways

jax.config.update("jax_enable_x64", True)
SIM = ag.Simulator(MODEL)
FIELDS = ("mass", "com", "inertia", "friction", "damping")


def fields(lead=(), seed=0):
    """Some of the parameters a little off, with these leading axes."""
    rng = np.random.default_rng(seed)
    off = {k: 1.0 + 0.05 * rng.uniform(size=(*lead, *MODEL.params[k].shape)) for k in FIELDS}
    return {k: jnp.asarray(MODEL.params[k] * off[k] + (k == "damping") * 0.1) for k in FIELDS}


def arrays(lead, sim=SIM):
    return {k: jnp.asarray(x, sim.real) for k, x in inputs(lead).items()}


def close(native, callback, tolerance=1e-9):
    for a, b in zip(jax.tree.leaves(native), jax.tree.leaves(callback), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and np.abs(a - b).max(initial=0.0) <= tolerance * (1.0 + np.abs(b).max(initial=0.0))


FUNCTIONS = {
    "step": lambda sim, x, p: aj.step(sim, (x["q"], x["v"]), x["u"], params=p),
    "rollout": lambda sim, x, p: aj.rollout(sim, (x["q"], x["v"]), x["us"], params=p, wrench=x["wrenches"]),
    "outputs": lambda sim, x, p: tuple(aj.outputs(sim, (x["q"], x["v"]), params=p)),
    "mass_matrix": lambda sim, x, p: aj.mass_matrix(sim, (x["q"], x["v"]), params=p),
    "inverse_dynamics": lambda sim, x, p: aj.inverse_dynamics(sim, (x["q"], x["v"]), x["a"], params=p),
    "forward_dynamics": lambda sim, x, p: aj.forward_dynamics(sim, (x["q"], x["v"]), x["u"], params=p),
    "linearize": lambda sim, x, p: aj.linearize(sim, (x["q"], x["v"]), x["u"], params=p),
}


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_and_gradients_are_those_of_the_callback(monkeypatch, name, own):
    x, p = arrays((11,)), fields((11,) if own else ())

    def run(x, p):
        found, back = jax.vjp(lambda x, p: FUNCTIONS[name](SIM, x, p), x, p)
        return found if name == "linearize" else (found, back(jax.tree.map(jnp.sin, found)))

    assert "callback" not in jax.jit(run).lower(x, p).as_text()
    close(*both_ways(monkeypatch, lambda: jax.jit(lambda *given: run(*given))(x, p)))
    assert set(STATE_FUNCTIONS) < set(FUNCTIONS)


@pytest.mark.parametrize("lead", [(), (1,), (2, 3)])
def test_leading_axes(monkeypatch, lead):
    x, p = arrays(lead), fields(lead)

    def loss(p, u):
        return jnp.sin(aj.rollout(SIM, (x["q"], x["v"]), u, params=p).q).sum()

    close(*both_ways(monkeypatch, lambda: jax.jit(jax.grad(loss, (0, 1)))(p, x["us"])))


def test_in_f32(monkeypatch):
    sim = ag.Simulator(MODEL, dtype="f32", threads=2)
    x = arrays((19,), sim)

    def results():
        return jax.jit(lambda p: aj.rollout(sim, (x["q"], x["v"]), x["us"], params=p))(fields())

    close(*both_ways(monkeypatch, results), tolerance=1e-4)
    with jax.enable_x64(False):  # without f64, in which shared parameters are read, each robot has its own
        mass = np.float32(MODEL.params.mass)
        gradient = jax.grad(lambda m: aj.rollout(sim, (x["q"], x["v"]), x["us"], params={"mass": m}).v.sum())
        assert "callback" not in jax.jit(gradient).lower(mass).as_text()
        close(*both_ways(monkeypatch, lambda: jax.jit(lambda m: gradient(m))(mass)), tolerance=1e-3)


def test_vmap_and_scan(monkeypatch):
    x = arrays((4,))
    masses = fields((5,))["mass"]

    def last(mass, q):
        def one(s, u):
            return aj.step(SIM, s, u, params={"mass": mass}), None

        return jnp.sin(jax.lax.scan(one, ag.State(q, x["v"][0]), x["us"][0])[0].q).sum()

    def results():
        over_masses = jax.jit(jax.vmap(jax.value_and_grad(last), (0, None)))(masses, x["q"][0])
        over_robots = jax.jit(jax.vmap(jax.value_and_grad(last), (None, 0)))(masses[0], x["q"])
        return over_masses, over_robots

    close(*both_ways(monkeypatch, results))


def test_differences():
    """Along a direction of every parameter at once, in contact."""
    x = arrays(())

    @jax.jit
    def loss(p):
        return jnp.sin(aj.rollout(SIM, (x["q"], x["v"]), x["us"], params=p).v).sum()

    p = fields()  # frictions that differ: of two equal ones the larger has a kink
    d = {k: jnp.cos(jnp.arange(p[k].size).reshape(p[k].shape) + 1.0) * p[k] for k in FIELDS}
    h = 1e-4
    slope = sum(jnp.vdot(g, d[k]) for k, g in jax.grad(loss)(p).items())
    moved = [loss({k: p[k] + s * d[k] for k in FIELDS}) for s in (h, -h)]
    assert float(slope) == pytest.approx(float(moved[0] - moved[1]) / (2 * h), rel=1e-6)


def test_invalid_input_is_refused_repeatedly():
    state = SIM.reset()
    run = jax.jit(lambda field, value: aj.step(SIM, state, params={field: value}).q, static_argnums=0)
    good = jnp.asarray(MODEL.params.mass)
    for field, value, sentence in (
        ("mass", good * jnp.nan, r"params.mass\[0\] is nan"),
        ("mass", -good, r"params.mass\[0\] .* cannot be negative"),
        ("axis", 0 * MODEL.params.axis, "needs a direction"),
    ):
        for _ in range(2):
            with pytest.raises(Exception, match=sentence):
                jax.block_until_ready(run(field, value))
        jax.block_until_ready(run("mass", good))
