"""Gradients of a step through every pair of shapes, under both laws, compared with finite differences."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.model import tangent

SIZES = {
    "plane": (),
    "sphere": (0.12,),
    "capsule": (0.1, 0.2),
    "ellipsoid": ((0.12, 0.16, 0.2),),
    "cylinder": (0.12, 0.15),
    "box": ((0.12, 0.15, 0.1),),
    "convex_hull": (
        np.array([[-1, -1, -0.9], [1.1, -1, -1], [-1, 1.2, -1.1], [0.9, 1, -0.8], [0.2, 0.1, 1.5], [1, 0, 1]]) * 0.12,
    ),
}
BALL = np.random.default_rng(0).normal(size=(100, 3))  # enough vertices for hill climbing
MORE = SIZES | {"hull": (BALL / np.linalg.norm(BALL, axis=1, keepdims=True) * [0.12, 0.15, 0.2],)}
METHODS = {"hull": "convex_hull"}  # of other kinds: add_ and the kind
TILT = np.array([1.0, 0.13, 0.21, 0.08])  # of B, in all placements unless given


def turned(w, x, y, z):
    q = np.array([w, x, y, z], float)
    return q / np.linalg.norm(q)


# A, B, place of B over A, its rotation: touching, in the middle of a feature
PLACES = [
    ("plane", "ellipsoid", (0.0, 0.0, 0.165), TILT),
    ("plane", "cylinder", (0.0, 0.0, 0.16), TILT),
    ("plane", "cylinder", (0.0, 0.0, 0.108), (1.0, 1.03, 0.02, 0.1)),
    ("plane", "box", (0.0, 0.0, 0.075), (1.0, 0.02, 0.01, 0.3)),
    ("sphere", "cylinder", (0.2, 0.0, 0.1), TILT),
    ("sphere", "cylinder", (0.05, 0.0, 0.25), TILT),
    ("sphere", "cylinder", (0.18, 0.0, 0.19), TILT),
    ("capsule", "capsule", (0.19, 0.02, 0.05), (1.0, 0.0, 0.0, 0.3)),
    ("capsule", "box", (0.21, 0.0, 0.0), (1.0, 0.01, 0.02, 0.03)),
    ("capsule", "box", (0.15, 0.14, 0.0), (1.0, 0.5, 0.2, 0.3)),
    ("box", "box", (0.02, 0.03, 0.17), (1.0, 0.01, 0.02, 0.3)),
    ("box", "box", (0.2, 0.1, 0.17), (1.0, 0.5, 0.4, 0.3)),
    ("box", "box", (0.17, 0.0, 0.2), (1.0, 0.42, 0.3, 0.7)),
]
SOLIDS = [
    ("sphere", "ellipsoid", (0.1, 0.05, 0.23), TILT),
    ("sphere", "convex_hull", (0.02, 0.01, 0.21), TILT),
    ("capsule", "ellipsoid", (0.21, 0.02, 0.03), TILT),
    ("capsule", "cylinder", (0.2, 0.02, 0.03), (1.0, 0.7, 0.4, 0.3)),
    ("capsule", "convex_hull", (0.2, 0.02, 0.03), TILT),
    ("ellipsoid", "ellipsoid", (0.2, 0.05, 0.13), TILT),
    ("ellipsoid", "cylinder", (0.2, 0.05, 0.1), TILT),
    ("ellipsoid", "box", (0.2, 0.05, 0.05), TILT),
    ("ellipsoid", "convex_hull", (0.18, 0.05, 0.1), TILT),
    ("cylinder", "cylinder", (0.2, 0.05, 0.13), (1.0, 0.6, 0.2, 0.3)),
    ("cylinder", "box", (0.19, 0.1, 0.02), (1.0, 0.5, 0.4, 0.3)),
    ("cylinder", "convex_hull", (0.18, 0.05, 0.1), TILT),
    ("box", "convex_hull", (0.1, 0.07, 0.2), (1.0, 0.4, 0.3, 0.2)),
    ("convex_hull", "convex_hull", (0.15, 0.02, 0.15), (1.0, 0.4, 0.3, 0.2)),
]
HULLS = [
    ("plane", "convex_hull", (0.0, 0.0, 0.07), TILT),
    ("plane", "hull", (0.0, 0.0, 0.15), TILT),
    ("box", "hull", (0.1, 0.07, 0.2), (1.0, 0.4, 0.3, 0.2)),
    ("hull", "hull", (0.16, 0.02, 0.17), (1.0, 0.4, 0.3, 0.2)),
]


def scene(places):
    """All pairs far from each other; A on a joint (a plane is fixed), B free."""
    b, q = ag.ModelBuilder("pairs"), []
    for k, (one, other, place, rotation) in enumerate(places):
        mask = {"group": 1 << k, "touches": 1 << k, "friction": 0.6}
        at = np.array([3.0 * k, 0.0, 0.0])
        if one == "plane":
            b.add_plane(position=at, rotation=turned(1.0, 0.02, 0.03, 0.0), **mask)
        else:
            b.add_body(
                f"a{k}",
                joint="revolute",
                axis=(0.3, 1, 0.2),
                position=at,
                mass=1.0,
                com=(0.1, 0, 0),
                inertia=(0.1, 0.1, 0.1),
            )
            getattr(b, f"add_{METHODS.get(one, one)}")(f"a{k}", *MORE[one], **mask)
            q += [0.0]
        b.add_body(f"b{k}", joint="free", mass=0.5, inertia=(0.01, 0.02, 0.015))
        getattr(b, f"add_{METHODS.get(other, other)}")(f"b{k}", *MORE[other], position=(0.01, 0.0, 0.02), **mask)
        rotation = turned(*rotation)
        q += [*(at + place), *rotation]
    return b.build(), np.array(q)


def touching(sim, state):
    """Return the touching pairs of shapes."""
    gap = sim.contacts(sim.rollout(state, np.zeros((1, sim.model.nu)))).gap[0]
    return {names for names, phi in zip(sim.contact_names, gap, strict=True) if phi < 0}


FIELDS = ("shape_position", "shape_size", "vertex")
SMALL = 1e-5


def directions(model, k, rng):
    """Yield random displacements of pair k: (field or part of the state, displacement)."""
    bodies = [i for i, name in enumerate(model.bodies) if name[1:] == str(k)]
    shapes = [i for i, name in enumerate(model.shapes.names) if model.shapes.masks[i][0] == 1 << k]
    dofs = [d for i in bodies for d in range(model.joint_v[i], model.joint_v[i] + model.joint_kind(i).nv)]
    rows = {"shape_position": shapes, "shape_size": shapes}
    rows["vertex"] = [v for i in shapes for v in range(model.shapes.vertices[i][0], sum(model.shapes.vertices[i]))]
    for what in ("q", "v"):
        d = np.zeros(model.nv)
        d[dofs] = rng.normal(size=len(dofs))
        yield what, d
    for what in FIELDS:
        d = np.zeros_like(model.params[what])
        d[rows[what]] = rng.normal(size=(len(rows[what]), 3)) * (
            model.params[what][rows[what]] != 0 if what == "shape_size" else 1
        )
        if d.any():
            yield what, d


@pytest.mark.parametrize(
    ("places", "law"),
    [(PLACES, "soft"), (PLACES, "hard"), (SOLIDS, "soft"), (HULLS, "soft")],
    ids=["closed forms", "closed forms, hard", "solids", "hulls"],
)
def test_a_step_is_differentiated_through_every_pair(places, law):
    model, q = scene(places)
    rng = np.random.default_rng(3)
    state = ag.State(q, 0.3 * rng.normal(size=model.nv))
    # eight points of two boxes are redundant: softness makes them share it well
    hard = {"law": ag.HardOptions(search_distance=0.005, softness=1e-4)}
    sim = ag.Simulator(model, 1e-3, **({"cone": "elliptic"} if law == "soft" else hard))
    u, p = np.zeros((1, 0)), model.params
    seen = touching(sim, state)
    q_bar, v_bar = rng.normal(size=model.nq), rng.normal(size=model.nv)
    gradient = sim.vjp(sim.rollout(state, u), q_bar=q_bar, v_bar=v_bar)
    moves = []
    for k in range(len(places)):
        assert any(f"b{k}:" in b for _, b in seen), places[k]
        moves += [(places[k][:2], what, d) for what, d in directions(model, k, rng)]

    def losses(h):
        """Return losses of all displacements at once, one batch element each."""
        qs, vs = np.repeat(state.q[None], len(moves), 0), np.repeat(state.v[None], len(moves), 0)
        params = {name: np.repeat(p[name][None], len(moves), 0) for name in FIELDS if p[name].size}
        for i, (_, what, d) in enumerate(moves):
            if what == "q":
                qs[i] = tangent.integrate(model, state.q, h * d)
            elif what == "v":
                vs[i] += h * d
            else:
                params[what][i] += h * d
        traj = sim.rollout(ag.State(qs, vs), u, params=p.replace(**params))
        return traj.q[:, -1] @ q_bar + traj.v[:, -1] @ v_bar

    narrow, wide = ((losses(h) - losses(-h)) / (2 * h) for h in (SMALL, 2 * SMALL))
    for (pair, what, d), wanted in zip(moves, (4 * narrow - wide) / 3, strict=True):
        if what == "q":
            got = tangent.to_tangent(model, state.q, gradient.q0) @ d
        else:
            got = gradient.v0 @ d if what == "v" else np.sum(gradient.params[what] * d)
        assert abs(got - wanted) < 2e-6 * (1 + abs(wanted)), (pair, what, got, wanted)


def test_the_hard_law_differentiates_boxes_on_boxes_at_its_default_softness():
    model, q = scene([place for place in PLACES if place[:2] == ("box", "box")])
    state = ag.State(q, 0.3 * np.random.default_rng(3).normal(size=model.nv))
    sim = ag.Simulator(model, 1e-3, law=ag.HardOptions(search_distance=0.005))
    assert len(touching(sim, state)) == 3
    for row in ag.gradcheck(sim, steps=1, samples=1, tolerance=np.inf, show=False, state=state):
        assert row.error < 1e-6, row
