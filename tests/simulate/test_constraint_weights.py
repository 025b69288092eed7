"""Inverse weights computed from parameters: equal to those of MuJoCo's compiler, with gradient."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate.constraint_weights import NAMES, ReferenceWeights
from artigrad.simulate.reference_pose import ReferencePose, matrices

MADE_OF = (
    *("mass", "com", "inertia", "position", "rotation", "anchor", "axis", "armature"),
    *("site_position", "site_rotation", "piece_scale", "piece_radius"),
)


def robot(seed=0):
    """Return a robot with joints of all kinds, bent in the reference pose, and tendons along joints, sites and shapes."""
    rng = np.random.default_rng(seed)

    def body(name, parent="world", **own):
        A = rng.normal(size=(3, 3))
        S = A @ A.T * 0.05
        place = {"position": 0.4 * rng.normal(size=3), "rotation": rng.normal(size=4)}
        place |= {"anchor": 0.2 * rng.normal(size=3)} if own["joint"] != "free" else {}
        inertia = np.trace(S) * np.eye(3) - S
        b.add_body(
            name, parent, mass=rng.uniform(0.5, 2), com=0.2 * rng.normal(size=3), inertia=inertia, **place, **own
        )
        b.add_site(f"s{name}", name, position=0.3 * rng.normal(size=3), rotation=rng.normal(size=4))

    b = ag.ModelBuilder("all")
    body("a", joint="revolute", axis=rng.normal(size=3), reference=0.7, armature=0.1)
    body("b", "a", joint="prismatic", axis=rng.normal(size=3), reference=-0.3)
    body("c", "b", joint="fixed")
    body("d", "c", joint="spherical", armature=0.05)
    body("e", "d", joint="revolute", axis=rng.normal(size=3), reference=-1.1)
    body("f", joint="free")
    b.add_site("world", "world", position=(0.5, 0.5, 0.5))
    b.add_fixed_tendon("sum", {"a": 0.5, "e": -1.0})
    b.add_spatial_tendon("string", ["world", "sd", 2.0, "sa", "se", "sf"])
    for name, shape in {"ball": ("sphere", "sd"), "roller": ("cylinder", "se"), "hollow": ("sphere", "sd")}.items():
        b.add_site(f"{name} from", "a")
        b.add_site(f"{name} to", "f", position=(1, 1, 1))
        side = ("sd",) if name == "hollow" else ()
        b.add_spatial_tendon(name, [f"{name} from", (*shape, 0.2, *side), f"{name} to"])
    return b.build()


def wrapping(model):
    """Return parameters with which the last three tendons wrap: around a sphere and a cylinder, and inside a hollow sphere."""
    pose, place = ReferencePose(model.params), np.array(model.params.site_position)
    aside = {"ball": 0.05, "roller": 0.05, "hollow": 0.3}
    for tendon in model.tendons[2:]:
        (piece,) = tendon.pieces
        c = pose.sites[0, piece.around]
        axes = pose.R[0, model.site_body[piece.around]] @ matrices(model.params.site_rotation[piece.around])
        for s, along in ((piece.a, (0.5, aside[tendon.name], 0.1)), (piece.b, (-0.4, aside[tendon.name], -0.2))):
            b = model.site_body[s]
            place[s] = pose.R[0, b].T @ (c + axes @ along - pose.r[0, b])
    return model.params.replace(site_position=place)


def value(params, bars):
    """Return the weights of `reweighted` along some directions."""
    found = params.reweighted()
    return sum(np.sum(found[name] * bars[name], axis=tuple(range(-bars[name].ndim, 0))) for name in NAMES)


@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_of_weights_are_those_of_differences(seed):
    model, rng = robot(seed), np.random.default_rng(seed)
    p = wrapping(model)
    paths = ReferenceWeights(p).paths
    assert all(own[0].wraps[0] for own in paths[2:]) and paths[4][0].path.hollow[0]
    bars = {name: rng.normal(size=p[name].shape) / max(1.0, np.abs(p[name]).max()) for name in NAMES}
    zero = ag.Params(model, np.zeros(model.param_size))
    found = p.reweighted_vjp(zero.replace(unchecked=True, **bars))
    assert not any(found[name].any() for name in NAMES)
    for name in MADE_OF:
        start, shape = model.param_slots[name]
        h = 1e-5 * np.eye(model.param_size)[start : start + int(np.prod(shape))]
        fine, coarse = (
            (value(ag.Params(model, p.flat + k * h), bars) - value(ag.Params(model, p.flat - k * h), bars)) / (2e-5 * k)
            for k in (1, 2)
        )
        np.testing.assert_allclose(found[name].ravel(), (4 * fine - coarse) / 3, rtol=1e-6, atol=1e-7, err_msg=name)


def test_weights_are_those_of_the_file_that_is_saved(tmp_path):
    """One set and several; a saved model moves like the simulated one."""
    model = robot()
    p = model.params.replace(mass=2 * model.params.mass, com={"a": (0.1, 0.2, 0.3)}, armature={"e": 0.3})
    made = p.reweighted()
    ag.save(model, tmp_path / "saved.xml", params=made)
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "saved.xml"))
    order = [m.body(name).id for name in model.bodies]
    np.testing.assert_allclose(made.body_invweight0, m.body_invweight0[order], rtol=1e-10)
    np.testing.assert_allclose(made.dof_invweight0, m.dof_invweight0, rtol=1e-10)
    np.testing.assert_allclose(made.tendon_invweight0, m.tendon_invweight0, rtol=1e-10)
    both = p.replace(mass=np.stack([p.mass, 3 * p.mass])).reweighted()
    assert both.batch == 2
    for name in NAMES:
        np.testing.assert_allclose(both[name][0], made[name], rtol=1e-12)
        np.testing.assert_allclose(model.params.reweighted()[name], model.params[name], rtol=1e-12)


def arm(**own):
    b = ag.ModelBuilder("arm")
    b.add_body("arm", joint="revolute", axis=(0, 1, 0), limit=(-0.1, 0.1), com=(0.2, 0, 0), inertia=(0.01,) * 3, **own)
    return b.build()


def test_gradients_and_fits_take_the_weights_along():
    """An arm at its limit, compared with the same arm built again."""
    model = arm(mass=1.0)
    sim = ag.Simulator(model, dt=0.005, threads=1)
    u = np.zeros((60, 0))

    def loss(mass):
        built = ag.Simulator(arm(mass=mass), dt=0.005, threads=1)
        return built.rollout(built.reset(), u).final.q[0]

    p = model.params.replace(mass=[2.0])
    traj = sim.rollout(sim.reset(), u, params=p.reweighted())
    np.testing.assert_allclose(traj.final.q[0], loss(2.0), rtol=1e-12)
    grad = p.reweighted_vjp(sim.vjp(traj, q_bar=np.ones(1)).params)
    fine, coarse = ((loss(2 + h) - loss(2 - h)) / (2 * h) for h in (1e-4, 2e-4))
    np.testing.assert_allclose(grad.mass[0], (4 * fine - coarse) / 3, rtol=1e-7)
    data = ag.Recording(q=traj.q, v=traj.v, u=u)
    right, wrong = (ag.fit(sim, data, ["mass"], reweighted=flag) for flag in (True, False))
    assert abs(right.values["mass[arm]"] - 2) < 1e-5 and np.array_equal(
        right.params.flat, right.params.reweighted().flat
    )
    assert abs(wrong.values["mass[arm]"] - 2) > 0.01


def test_saving_other_weights_is_refused(tmp_path):
    model = arm(mass=1.0)
    heavy = model.params.replace(mass=[20.0])
    with pytest.raises(
        ag.ModelError, match=r"inverse weights of constraints \('dof_invweight0'\): recomputed: save params.reweighted"
    ):
        ag.save(model, tmp_path / "heavy.xml", params=heavy)
    ag.save(model, tmp_path / "heavy.xml", params=heavy.reweighted())
    again = ag.Simulator(ag.load(tmp_path / "heavy.xml"), threads=1)
    sim, u = ag.Simulator(model, threads=1), np.zeros((100, 0))
    one, other = sim.rollout(sim.reset(), u, params=heavy.reweighted()).final, again.rollout(again.reset(), u).final
    np.testing.assert_allclose(one.q, other.q, rtol=1e-12)


def test_gradients_in_pytorch_and_jax_go_through_the_weights():
    import jax
    import jax.numpy as jnp
    import torch

    import artigrad.jax
    import artigrad.torch

    model = arm(mass=1.0)
    sim = ag.Simulator(model, dt=0.005, threads=1)
    state, u = sim.reset(), np.zeros((30, 0))
    p = model.params.replace(mass=[2.0])
    traj = sim.rollout(state, u, params=p.reweighted())
    wanted = p.reweighted_vjp(sim.vjp(traj, q_bar=np.ones(1)).params).mass

    mass = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    fields = artigrad.torch.reweighted(sim, {"mass": mass})
    assert fields["mass"] is mass
    there = ag.State(torch.tensor(state.q), torch.tensor(state.v))
    artigrad.torch.rollout(sim, there, torch.tensor(u), params=fields).q[-1].sum().backward()
    np.testing.assert_allclose(mass.grad, wanted, rtol=1e-10)

    with jax.enable_x64(True):

        def last(mass):
            fields = artigrad.jax.reweighted(sim, {"mass": mass})
            there = ag.State(jnp.asarray(state.q), jnp.asarray(state.v))
            return artigrad.jax.rollout(sim, there, jnp.asarray(u), params=fields).q[-1].sum()

        np.testing.assert_allclose(jax.jit(jax.grad(last))(jnp.array([2.0])), wanted, rtol=1e-10)
        several = jax.vmap(jax.grad(last))(jnp.array([[2.0], [3.0]]))
        np.testing.assert_allclose(several[0], wanted, rtol=1e-10)
