"""Forward mode: jvp is the transpose of vjp, hvp the derivative of it; in contact, on every target."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.model.params import FIELDS
from tests.family import MODEL, inputs
from tests.physics.constraints.soft.scenes import every_row
from tests.physics.test_activation import ROBOT as MUSCLED
from tests.physics.test_activation import given

SIM = ag.Simulator(MODEL)


def moves(model, batch, steps, seed=1):
    """Return a direction of all inputs of a rollout, parameters included."""
    rng, p = np.random.default_rng(seed), model.params
    named = {"dq": (batch, model.nq), "dv": (batch, model.nv), "du": (batch, steps, model.nu)}
    named |= {"dact": (batch, model.na)} if model.na else {}
    d = {name: rng.normal(size=shape) for name, shape in named.items()}
    fields = {k: rng.normal(size=p[k].shape) * np.isfinite(p[k]) for k in FIELDS if p[k].size}
    return d | {"dparams": fields}


def crawling(seed=0):
    x = inputs((3,), seed)
    return ag.State(x["q"], x["v"]), x["us"], x["wrenches"]


def paired(gradient, d):
    """Return the gradient along a direction, and the magnitude of its terms."""
    terms = [gradient.q0 * d["dq"], gradient.v0 * d["dv"], gradient.u * d["du"]]
    terms += [gradient.act0 * d["dact"]] if "dact" in d else []
    terms += [gradient.params[k] * x for k, x in d["dparams"].items()]
    return sum(x.sum() for x in terms), sum(np.abs(x).sum() for x in terms)


def check_transpose(sim, state, u, tolerance=1e-11):
    traj, model = sim.rollout(state, u), sim.model
    rng, T = np.random.default_rng(2), u.shape[1]
    q_bar, v_bar, act_bar = (rng.normal(size=(len(u), T + 1, n)) for n in (model.nq, model.nv, model.na))
    d = moves(model, len(u), T)
    found = sim.jvp(traj, **d)
    expected, size = paired(sim.vjp(traj, q_bar=q_bar, v_bar=v_bar, act_bar=act_bar), d)
    total = sum((bar * x).sum() for bar, x in zip((q_bar, v_bar, act_bar), found, strict=False))
    assert abs(total - expected) < tolerance * size


@pytest.mark.parametrize(("cone", "integrator"), [("pyramidal", "Euler"), ("elliptic", "implicitfast")])
def test_jvp_is_the_transpose_of_vjp_for_every_row_and_parameter(cone, integrator):
    model = ag.load(every_row(cone, integrator))
    sim, rng = ag.Simulator(model), np.random.default_rng(0)
    start = sim.rollout(sim.state(batch=2), steps=5).final
    check_transpose(sim, ag.State(start.q, start.v + 0.01 * rng.normal(size=start.v.shape)), rng.normal(size=(2, 3, 3)))


@pytest.mark.parametrize("law", [ag.HardOptions(), ag.HardOptions(gradient="reverse", solver="gauss_seidel")])
def test_the_hard_law(law):
    state, u, _ = crawling()
    check_transpose(ag.Simulator(MODEL, law=law), state, u)


@pytest.mark.parametrize("integrator", ["euler", "rk4", "implicit"])
def test_activations(integrator):
    model = ag.load(MUSCLED)
    state, u = given(model, 0, 3)
    check_transpose(ag.Simulator(model, integrator=integrator), state, u)


def test_hvp_with_activations():
    """The reference is differences of the gradient along state and controls; activations stay within their ranges."""
    model = ag.load(MUSCLED)
    sim, (state, u) = ag.Simulator(model), given(model, 1, 2)
    state, u = state._replace(act=np.clip(state.act, 0.1, 0.25)), 0.1 * u + 0.3
    d = moves(model, 2, u.shape[1]) | {"dparams": None}

    def run(h):
        at = ag.State(*(x + h * d[f"d{name}"] for name, x in state.named().items()))
        traj = sim.rollout(at, u + h * d["du"])
        g = sim.vjp(traj, q_bar=np.sin(traj.q), v_bar=np.cos(traj.v), act_bar=np.sin(traj.act), with_params=False)
        return traj, [g.q0, g.v0, g.act0, g.u]

    traj, _ = run(0.0)
    along = sim.jvp(traj, **d)
    moved = {"dq_bar": np.cos(traj.q) * along.q, "dv_bar": -np.sin(traj.v) * along.v}
    moved["dact_bar"] = np.cos(traj.act) * along.act
    found = sim.hvp(
        traj, q_bar=np.sin(traj.q), v_bar=np.cos(traj.v), act_bar=np.sin(traj.act), **d, **moved, with_params=False
    )
    for a, b, c in zip((found.q0, found.v0, found.act0, found.u), run(1e-5)[1], run(-1e-5)[1], strict=True):
        slope = (b - c) / 2e-5
        np.testing.assert_allclose(a, slope, rtol=0, atol=2e-6 * np.abs(slope).max())


def test_every_target():
    state, u, _ = crawling()
    d = moves(MODEL, 3, u.shape[1])
    wanted = SIM.jvp(SIM.rollout(state, u), **d)
    for options, tolerance in (({"backend": "numpy"}, 1e-11), ({"dtype": "f32"}, 2e-3)):
        sim = ag.Simulator(MODEL, **options)
        single = [x.astype(sim.real) for x in (*state, u)]
        found = sim.jvp(sim.rollout(ag.State(*single[:2]), single[2]), **d)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max())


def test_a_robot_has_its_own_bits_and_shapes():
    state, u, wrench = crawling()
    d = moves(MODEL, 3, u.shape[1])
    del d["dparams"]
    pushed = {"dwrench": np.ones_like(wrench)}
    whole = SIM.jvp(SIM.rollout(state, u, wrench=wrench), **d, **pushed)
    alone = SIM.rollout(ag.State(state.q[1], state.v[1]), u[1], wrench=wrench[1])
    one = SIM.jvp(alone, **{k: x[1] for k, x in d.items()}, dwrench=pushed["dwrench"][1])
    for a, b in zip(whole, one, strict=True):
        np.testing.assert_array_equal(a[1], b)
    shared = SIM.rollout(state, u[0])
    np.testing.assert_array_equal(
        SIM.jvp(shared, du=d["du"][0]).q, SIM.jvp(shared, du=np.tile(d["du"][0], (3, 1, 1))).q
    )


def test_controls_that_are_held():
    state, u, _ = crawling()
    traj, d = SIM.rollout(state, u, hold=2), moves(MODEL, 3, u.shape[1])
    moved = SIM.jvp(traj, du=d["du"])
    v_bar = np.ones_like(traj.v)
    assert abs((v_bar * moved.v).sum() - (SIM.vjp(traj, v_bar=v_bar).u * d["du"]).sum()) < 1e-10


def normalized(q):
    return np.concatenate([q[:, :3], q[:, 3:7] / np.linalg.norm(q[:, 3:7], axis=1, keepdims=True), q[:, 7:]], 1)


@pytest.mark.parametrize(("law", "step"), [("soft", 1e-5), ("hard", 1e-6)])
def test_hvp_is_how_the_gradient_changes(law, step):
    """A loss that is nonlinear in the states, along all inputs but a radial part of q.

    Frictions are equal, so that their maximum has a kink there.
    """
    sim, (state, u, _) = ag.Simulator(MODEL, law=law), crawling()
    d = moves(MODEL, 3, u.shape[1])
    d["dparams"] = {k: 0.1 * d["dparams"][k] for k in ("mass", "com", "damping", "armature")}
    d["dq"] = (normalized(state.q + 1e-7 * d["dq"]) - normalized(state.q - 1e-7 * d["dq"])) / 2e-7

    def run(h):
        params = MODEL.params.replace(unchecked=True, **{k: MODEL.params[k] + h * x for k, x in d["dparams"].items()})
        at = ag.State(normalized(state.q + h * d["dq"]), state.v + h * d["dv"])
        traj = sim.rollout(at, u + h * d["du"], params=params)
        g = sim.vjp(traj, q_bar=np.sin(traj.q), v_bar=np.cos(traj.v))
        return traj, [g.q0, g.v0, g.u, g.params.mass, g.params.com, g.params.damping]

    traj, _ = run(0.0)
    along = sim.jvp(traj, **d)
    found = sim.hvp(
        traj,
        q_bar=np.sin(traj.q),
        v_bar=np.cos(traj.v),
        **d,
        dq_bar=np.cos(traj.q) * along.q,
        dv_bar=-np.sin(traj.v) * along.v,
    )
    ours = [found.q0, found.v0, found.u, found.params.mass, found.params.com, found.params.damping]
    for a, b, c in zip(ours, run(step)[1], run(-step)[1], strict=True):
        slope = (b - c) / (2 * step)
        np.testing.assert_allclose(a, slope, rtol=0, atol=2e-6 * np.abs(slope).max())


def test_mismatched_files_are_refused():
    state, u, _ = crawling()
    traj = SIM.rollout(state, u)

    def bad(match, call):
        with pytest.raises(ag.InputError, match=match):
            call()

    bad(r"dv is \(3, 7\), not \(7,\)", lambda: SIM.jvp(traj, dv=np.zeros(7)))
    bad("had no wrenches", lambda: SIM.jvp(traj, dwrench=np.zeros((3, MODEL.nb, 6))))
    bad("unknown parameter 'wight'", lambda: SIM.jvp(traj, dparams={"wight": np.ones(2)}))
    bad("dparams have 2 sets", lambda: SIM.jvp(traj, dparams={"mass": np.ones((2, MODEL.nb))}))
    bad("kept EveryKth", lambda: SIM.jvp(SIM.rollout(state, u, checkpoints=ag.EveryKth(2)), dv=np.ones((3, 7))))
    own = SIM.jvp(traj, dparams={"mass": np.ones((3, MODEL.nb))})
    np.testing.assert_allclose(own.v, SIM.jvp(traj, dparams={"mass": np.ones(MODEL.nb)}).v, rtol=1e-12, atol=1e-14)
