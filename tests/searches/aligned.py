"""Solids at rest in exact alignment: gradients of a step compared with one-sided differences."""

from typing import NamedTuple

import numpy as np

import artigrad as ag

from .outcome import Outcome
from .slopes import UNSETTLED, count_places, settled, verdicts

SUMMARY = (
    "Settled stacks, towers, gripped and leaning solids, rails (boxes, cylinders, capsules, spheres, ellipsoids, meshes; equal "
    "and unequal sizes; in exact alignment) under both laws: the gradient of a step against differences to both sides, to 1e-6 "
    "wherever these agree. Of boxes that lie across each other at an angle each direction has one slope to both sides, but no "
    "gradient has all of them: these are counted apart. So are margins that are above 0.1 mm beside a kink."
)
COUNT, SAMPLE = 10_000, 48
PLACES = 8  # scenes of one model
SETTLE = 500  # steps


def search(count, seed):
    """Draw scenes until `count` are at rest, and check these. The first ones are of boxes only."""
    outcome, rng, block = Outcome(), np.random.default_rng(seed), 0
    while sum(outcome.counts.values()) - outcome.counts[UNSETTLED] < count:
        solids = BOXES if block * PLACES < SAMPLE else ALL
        name, text, offsets = solids.scenes[rng.integers(len(solids.scenes))](rng, PLACES, solids)
        law = ("soft", "hard")[block % 2]
        count_places(outcome, check(text, offsets, law), f"seed {seed}, block {block}, {name}, {law}")
        block += 1
    return outcome


def check(text, offsets, law):
    """Return (verdict, detail) of each state."""
    model = ag.load(text)
    sim = ag.Simulator(model, threads=1, law=law)
    q, v, at_rest = settled(sim, _start(model, sim, offsets), SETTLE)
    found = iter(verdicts(sim, q[at_rest], v[at_rest]) if at_rest.any() else ())
    return [next(found) if there else (UNSETTLED, "") for there in at_rest]


def _start(model, sim, offsets):
    """Return a state per placement, with free bodies moved."""
    q = np.tile(np.asarray(sim.reset().q, float), (len(offsets), 1))
    free = [i - 3 for i, _ in ag.model.tangent.quaternions(model)]
    for k, i in enumerate(free):
        q[:, i : i + 3] += offsets[:, offsets.shape[1] - len(free) + k]
    return ag.State(q, np.zeros((len(offsets), model.nv)))


# -- scenes ------------------------------------------------------------------------------------------------------------------
UNIT = [[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)]
HEXAGON = [[np.cos(a), np.sin(a), z] for z in (-1, 1) for a in np.arange(6) * np.pi / 3]


def geom(kind, size):
    """Return (MJCF of a shape, meshes, half height). size: three half sizes."""
    x, y, z = size
    if kind == "box":
        return f'type="box" size="{x} {y} {z}"', "", z
    if kind == "cylinder":
        return f'type="cylinder" size="{x} {z}"', "", z
    if kind == "lying cylinder":
        return f'type="cylinder" size="{x} {y}" euler="90 0 0"', "", x
    if kind == "capsule":
        return f'type="capsule" size="{x} {y}" euler="90 0 0"', "", x
    if kind == "sphere":
        return f'type="sphere" size="{z}"', "", z
    if kind == "ellipsoid":
        return f'type="ellipsoid" size="{x} {y} {z}"', "", z
    corners = np.array(UNIT if kind == "mesh" else HEXAGON) * size
    name = "m" + "_".join(map(str, size)).replace(".", "") + kind[0]
    text = " ".join(f"{v:.17g}" for v in corners.ravel())
    return f'type="mesh" mesh="{name}"', f'<mesh name="{name}" vertex="{text}"/>', z


SIZES = (0.03, 0.05, 0.05, 0.05, 0.08)


def _size(rng):
    return tuple(rng.choice(SIZES, 3).tolist()) if rng.random() < 0.5 else (float(rng.choice(SIZES)),) * 3


def _model(bodies, meshes):
    assets = "".join(sorted({m for m in meshes if m}))
    return f'<mujoco><option timestep=".002"/><asset>{assets}</asset><worldbody>{"".join(bodies)}</worldbody></mujoco>'


def _stack(rng, places, solids, count=1):
    """A fixed solid with others on it."""
    below, size = rng.choice((*solids.flat, "plane")), _size(rng)
    if below == "plane":
        bodies, meshes, top = ['<geom type="plane" size="1 1 1"/>'], [], 0.0
    else:
        shape, mesh, half = geom(below, size)
        bodies, meshes, top = [f"<geom {shape}/>"], [mesh], half
    names, sizes = [below], [size]
    for k in range(count):
        kind = rng.choice(solids.flat + (solids.round if k == count - 1 else ()))
        size = sizes[-1] if rng.random() < 0.5 else _size(rng)
        shape, mesh, half = geom(kind, size)
        turn = rng.choice(["", "", 'euler="0 0 90"', 'euler="0 0 45"'])
        top += half - 5e-5
        bodies.append(f'<body pos="0 0 {top}" {turn}><freejoint/><geom {shape} mass="1"/></body>')
        top += half
        meshes.append(mesh)
        names.append(f"{kind} {size}{turn}")
        sizes.append(size)
    offsets = np.zeros((places, count, 3))
    offsets[places // 2 :, :, :2] = rng.choice([-0.02, -0.01, 0.0, 0.01, 0.02], (places - places // 2, count, 2))
    return " | ".join(map(str, [names[0], sizes[0], *names[1:]])), _model(bodies, meshes), offsets


def _tower(rng, places, solids):
    return _stack(rng, places, solids, int(rng.integers(2, 4)))


def _gripped(rng, places, solids):
    """Two parallel fingers on a solid, with or without its weight."""
    kind, finger, size = rng.choice(solids.flat + solids.round[:1]), rng.choice(solids.fingers), _size(rng)
    tip = size if rng.random() < 0.5 else _size(rng)
    shape, mesh, _ = geom(kind, size)
    reach = size[0]
    f_geom, f_mesh, _ = geom(finger, (0.01, *tip[1:]))
    bodies = [
        f'<body pos="{s * (reach + 0.00995)} 0 0"><joint type="slide" axis="{-s} 0 0" stiffness="2000" springref=".005" '
        f'damping="20"/><geom {f_geom} mass=".2" friction="1 .005 .0001"/></body>'
        for s in (-1, 1)
    ]
    bodies.append(f'<body gravcomp="{rng.integers(2)}"><freejoint/><geom {shape} mass=".5"/></body>')
    offsets = np.zeros((places, 3, 3))
    offsets[places // 2 :, 2, 1:] = rng.choice([-0.02, 0.0, 0.01, 0.03], (places - places // 2, 2))
    return f"gripped {kind} {size} by {finger} {tip}", _model(bodies, [mesh, f_mesh]), offsets


def _leaning(rng, places, solids):
    """A solid with one end on the floor and the other against a wall of the same or another width."""
    kind = rng.choice(solids.leaning)
    width = float(rng.choice(SIZES))
    wall = float(rng.choice(SIZES)) if rng.random() < 0.5 else width
    length, thick, tilt = 0.2, 0.02, float(rng.choice([20.0, 30.0, 45.0]))
    if kind == "capsule":
        shape, mesh = f'type="capsule" size="{thick} {length}"', ""
        support = length * np.cos(np.radians(tilt)) + thick, length * np.sin(np.radians(tilt)) + thick
    else:
        shape, mesh, _ = geom(kind, (thick, width, length))
        c, s = np.cos(np.radians(tilt)), np.sin(np.radians(tilt))
        support = length * c + thick * s, length * s + thick * c
    floor = rng.choice(['type="plane" size="1 1 1"', f'type="box" size=".5 {wall} .05" pos="0 0 -.05"'])
    x, z = support[1] - 1e-5, support[0] - 1e-5
    bodies = [
        f'<geom {floor} friction="2 .005 .0001"/>'
        f'<geom type="box" size=".05 {wall} .5" pos=".05 0 .5" friction="2 .005 .0001"/>',
        f'<body pos="{-x} 0 {z}" euler="0 {tilt} 0"><freejoint/><geom {shape} mass="1" friction="2 .005 .0001"/></body>',
    ]
    offsets = np.zeros((places, 1, 3))
    offsets[places // 2 :, 0, 1] = rng.choice([-0.02, 0.0, 0.01, 0.03], places - places // 2)
    return f"leaning {kind} {width} at {tilt} on {floor}, wall {wall}", _model(bodies, [mesh]), offsets


def _rails(rng, places, solids):
    """A capsule or cylinder along another one, or between two."""
    kind = rng.choice(("capsule", "capsule", "lying cylinder"))
    (r, length, _), (_, other, _) = _size(rng), _size(rng)
    shape, mesh, _ = geom(kind, (r, other if rng.random() < 0.5 else length, r))
    apart = float(rng.choice([0.0, 0.5, 0.9])) * r
    under, _, _ = geom("capsule", (r, length, r))
    height = 2 * np.sqrt(r * r - apart * apart / 4) - 5e-5 if apart else 2 * r - 5e-5
    bodies = [f'<geom {under} pos="{x} 0 0"/>' for x in sorted({-apart / 2, apart / 2})]
    bodies.append(f'<body pos="0 0 {height}"><freejoint/><geom {shape} mass="1"/></body>')
    offsets = np.zeros((places, 1, 3))
    offsets[places // 2 :, 0, 1] = rng.choice([-0.02, 0.0, 0.01, 0.03], places - places // 2)
    return f"{kind} of {r} and {other} along {length}, {apart} apart", _model(bodies, [mesh]), offsets


class Solids(NamedTuple):
    """Kinds of solids to draw from, and their construction."""

    flat: tuple
    round: tuple
    fingers: tuple
    leaning: tuple
    scenes: tuple


BOXES = Solids(("box",), (), ("box",), ("box",), (_stack, _tower, _gripped, _leaning))
ALL = Solids(
    ("box", "box", "box", "cylinder", "mesh", "hexagon"),
    ("capsule", "lying cylinder", "sphere", "ellipsoid"),
    ("box", "box", "mesh"),
    ("box", "mesh", "capsule"),
    (_stack, _stack, _tower, _gripped, _leaning, _rails),
)
