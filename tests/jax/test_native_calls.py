"""Steps and rollouts without Python in between: bits, errors and warnings are those of the callback, which stands by."""

import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import artigrad as ag
import artigrad.jax as aj
from artigrad.jax import native_calls, xla_call, xla_handler
from artigrad.jax.xla_interface import UnknownInterfaceError, check_header
from tests.family import MODEL, inputs

jax.config.update("jax_enable_x64", True)
SIM = ag.Simulator(MODEL)
HEADER = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()


def both_ways(monkeypatch, call):
    """Return the results of call() by native calls and by the callback; functions are jitted again."""
    found = [call()]
    with monkeypatch.context() as patch:
        patch.setattr(native_calls, "available", lambda on_host: False)
        found.append(call())
    return found


STATE_FUNCTIONS = {
    "outputs": lambda sim, s, x: tuple(aj.outputs(sim, s)),
    "mass_matrix": lambda sim, s, x: aj.mass_matrix(sim, s),
    "inverse_dynamics": lambda sim, s, x: aj.inverse_dynamics(sim, s, x["a"]),
    "forward_dynamics": lambda sim, s, x: aj.forward_dynamics(sim, s, x["u"]),
    "linearize": lambda sim, s, x: aj.linearize(sim, s, x["u"]),
}


@pytest.mark.parametrize("name", STATE_FUNCTIONS)
def test_functions_of_a_state_too(monkeypatch, name):
    x = {k: jnp.asarray(y) for k, y in inputs((2, 3)).items()}
    state = ag.State(x["q"], x["v"])

    def run(state, x):
        found, back = jax.vjp(lambda s, x: STATE_FUNCTIONS[name](SIM, s, x), state, x)
        return found if name == "linearize" else (found, back(jax.tree.map(jnp.sin, found)))

    assert "callback" not in jax.jit(run).lower(state, x).as_text()
    here, there = both_ways(monkeypatch, lambda: jax.jit(lambda *given: run(*given))(state, x))
    jax.tree.map(np.testing.assert_array_equal, here, there)
    with pytest.raises(Exception, match=r"q\[\d+, 0\] is nan"):
        jax.block_until_ready(jax.jit(run)(ag.State(x["q"] * jnp.nan, x["v"]), x))


def test_it_is_taken_here():
    assert native_calls.available()
    text = jax.jit(lambda q, v: aj.step(SIM, (q, v))).lower(*SIM.reset()).as_text()
    assert xla_handler.TARGET in text and "callback" not in text


@pytest.mark.parametrize("lead", [(), (2, 19)])
@pytest.mark.parametrize(("dtype", "threads"), [("f64", 1), ("f64", 2), ("f32", 2)])
def test_the_bits_are_those_of_the_callback(monkeypatch, lead, dtype, threads):
    sim = ag.Simulator(MODEL, dtype=dtype, threads=threads)
    x = {k: jnp.asarray(y, sim.real) for k, y in inputs(lead).items()}

    def steps(q, v, u, wrench):
        return aj.step(sim, (q, v), u[..., 0, :], wrench=wrench[..., 0, :, :])

    def rollout(q, v, u, wrench):
        return aj.rollout(sim, (q, v), u, wrench=wrench)

    def alone(q, v, u, wrench):
        return aj.rollout(sim, (q, v), u)

    for function in (steps, rollout, alone):
        given = (x["q"], x["v"], x["us"], x["wrenches"])

        def results(function=function, given=given):
            def there_and_back(*given):
                states, back = jax.vjp(function, *given)
                return states, back(jax.tree.map(jnp.sin, states))

            return jax.jit(there_and_back)(*given)

        native, callback = both_ways(monkeypatch, results)
        for a, b in zip(jax.tree.leaves(native), jax.tree.leaves(callback), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_model_without_contact_and_one_without_controls(monkeypatch):
    for model in (ag.robots.cartpole(), ag.robots.ball()):
        sim = ag.Simulator(model)
        q, v = map(jnp.asarray, sim.reset(batch=9))

        def results(sim=sim, q=q, v=v):
            return jax.jit(jax.grad(lambda v: jnp.sin(aj.rollout(sim, (q, v), steps=4).q).sum()))(v)

        np.testing.assert_array_equal(*both_ways(monkeypatch, results))


def test_scan_and_vmap_over_some_inputs(monkeypatch):
    x = inputs((4,))

    def scanned(q, v, u):
        last, _ = jax.lax.scan(lambda s, u: (aj.step(SIM, s, u), None), ag.State(q, v), u)
        return jnp.sin(last.q).sum() + jnp.sin(last.v).sum()

    def results():
        mapped = jax.vmap(jax.grad(scanned, (0, 2)), (0, None, 0))
        return jax.jit(mapped)(x["q"], jnp.asarray(x["v"][0]), jnp.asarray(x["us"]))

    for a, b in zip(*both_ways(monkeypatch, results), strict=True):
        np.testing.assert_array_equal(a, b)


def test_from_many_threads_at_once():
    sim, x = ag.Simulator(MODEL, threads=2), inputs((40,))
    run = jax.jit(lambda q, v, u: aj.rollout(sim, (q, v), u))
    expected, found = run(x["q"], x["v"], x["us"]), {}

    def work(k):
        found[k] = [run(x["q"], x["v"], x["us"]) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for states in (s for k in range(4) for s in found[k]):
        np.testing.assert_array_equal(states.v, expected.v)


def test_errors_are_those_of_the_callback():
    x = {k: jnp.asarray(y) for k, y in inputs((3,)).items()}

    def bad(match, call):
        with pytest.raises(Exception, match=match):
            jax.block_until_ready(call())

    bad(r"u\[1, 2, 0\] is nan", lambda: aj.rollout(SIM, (x["q"], x["v"]), x["us"].at[1, 2, 0].set(jnp.nan)))
    bad(r"v\[2, 1\] is inf", lambda: aj.rollout(SIM, (x["q"], x["v"].at[2, 1].set(jnp.inf)), x["us"]))
    bad(r"must have length 1, not 1\.\d+ \(robot 1\)", lambda: aj.step(SIM, (x["q"].at[1, 3:7].mul(1.1), x["v"])))
    small = ag.Simulator(ag.robots.laikago(), max_contacts=2)
    many = [jnp.asarray(y) for y in small.reset(batch=2)]
    bad("max_contacts=2 allows for", lambda: aj.rollout(small, many, steps=5))
    nan = jnp.full_like(x["v"], jnp.nan)
    _, back = jax.vjp(lambda v: aj.step(SIM, (x["q"], v)).v, x["v"])
    with pytest.warns(
        RuntimeWarning, match="gradient of 3 of 3 robots is not finite"
    ):  # those of a robot that diverged
        assert np.isnan(jax.block_until_ready(back(nan))[0]).all()


def test_warnings_are_not_lost():
    b = ag.ModelBuilder("box")
    b.add_body("b", joint="free", mass=2.0, inertia=(0.01,) * 3, position=(0, 0, 0.0999))
    b.add_box("b", (0.1, 0.1, 0.1))
    b.add_plane(friction=1.0)
    sim = ag.Simulator(b.build(), law=ag.HardOptions(softness=0.0))
    q, v = map(jnp.asarray, sim.reset())
    slope = jax.jit(jax.grad(lambda q: aj.rollout(sim, (q, v), steps=5).q[-1].sum()))
    with pytest.warns(RuntimeWarning, match="not solved in some step of robot 0"):
        jax.block_until_ready(slope(q))
    x = {k: jnp.asarray(y) for k, y in inputs((3,)).items()}
    hasty = ag.Simulator(MODEL, law=ag.SoftOptions(iterations=1))
    with pytest.warns(RuntimeWarning, match="not solved in some step of robot 0 .* of the constraint forces"):
        jax.block_until_ready(jax.jit(lambda q: aj.rollout(hasty, (q, x["v"]), steps=10).q)(x["q"].at[:, 2].add(-0.02)))
    speeds, back = jax.vjp(lambda v: aj.rollout(SIM, (x["q"], v), x["us"]).v, x["v"])
    with pytest.warns(RuntimeWarning, match="gradient of 3 of 3 robots is not finite"):
        jax.block_until_ready(back(jnp.full_like(speeds, 1.7e308)))


def test_another_interface_is_noticed():
    check_header(HEADER)
    for old, new, match in (
        ("#define XLA_FFI_API_MAJOR 0", "#define XLA_FFI_API_MAJOR 1", "version 1"),
        (
            "struct XLA_FFI_Buffer {",
            "struct XLA_FFI_Buffer {\n  int64_t more;",
            "dtype of XLA_FFI_Buffer is at 24, not 16",
        ),
        ("struct XLA_FFI_Scalar {", "struct XLA_FFI_Skalar {", "no struct XLA_FFI_Scalar"),
    ):
        assert old in HEADER
        with pytest.raises(UnknownInterfaceError, match=match):
            check_header(HEADER.replace(old, new))


def test_where_it_cannot_be_the_callback_serves(monkeypatch):
    def refuse():
        raise UnknownInterfaceError("not here")

    monkeypatch.setattr(xla_handler, "register", refuse)
    native_calls.available.cache_clear()
    try:
        assert not native_calls.available()
        state = SIM.reset()
        text = jax.jit(lambda q, v: aj.step(SIM, (q, v))).lower(*state).as_text()
        assert "callback" in text and xla_handler.TARGET not in text
        np.testing.assert_array_equal(aj.step(SIM, state).q, SIM.step(state).q)
    finally:
        native_calls.available.cache_clear()


def test_a_program_of_another_process_is_refused(monkeypatch):
    monkeypatch.setattr(xla_call, "PROCESS", 1)
    with pytest.raises(Exception, match="compiled in another process"):
        jax.block_until_ready(jax.jit(lambda q, v: aj.step(SIM, (q, v)).q)(*SIM.reset()))
