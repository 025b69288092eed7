"""All pairs of solids at rest: gradients of a step compared with differences."""

import numpy as np

import artigrad as ag

from .aligned import SIZES, geom
from .outcome import Outcome
from .slopes import UNSETTLED, count_places, settled, verdicts

SUMMARY = (
    "Every solid at rest on every other, on planes and on height fields, tilted by 0 to 1e-4 rad from there, under both laws: "
    "the gradient of a step against differences to 1e-6, or a margin below 0.1 mm where there is a kink."
)
COUNT, SAMPLE = 2_000, 40
TILTS = (0.0, 0.0, 1e-12, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4)
SETTLE = 700  # steps
ABOVE = ("sphere", "capsule", "ellipsoid", "lying cylinder", "mesh", "box", "cylinder", "hexagon", "upright capsule")
BELOW = (
    "mesh",
    "box",
    "plane",
    "cylinder",
    "lying cylinder",
    "capsule",
    "sphere",
    "ellipsoid",
    "hexagon",
    "level field",
    "field",
)


def search(count, seed):
    """Draw and check until `count` states at rest are found."""
    outcome, rng = Outcome(), np.random.default_rng(seed)
    block = seed * -(-count // len(TILTS))  # shares of a search have other solids
    while sum(outcome.counts.values()) - outcome.counts[UNSETTLED] < count:
        turn, above = divmod(block, len(ABOVE))
        below, law = BELOW[turn % len(BELOW)], ("soft", "hard")[turn // len(BELOW) % 2]
        name, text = _scene(rng, below, ABOVE[above])
        count_places(outcome, _check(rng, text, law), f"seed {seed}, block {block}, {name}, {law}")
        block += 1
    return outcome


def _scene(rng, below, above):
    """Return (name, MJCF) of one solid over another."""
    meshes, sizes = (
        [],
        rng.choice(SIZES, (2, 3)).tolist() if rng.random() < 0.5 else [[float(rng.choice(SIZES))] * 3] * 2,
    )
    floor, top = _floor(rng, below, sizes[0], meshes)
    if above == "upright capsule":
        shape, mesh, half = f'type="capsule" size="{sizes[1][0]} {sizes[1][1]}"', "", sizes[1][0] + sizes[1][1]
    else:
        shape, mesh, half = geom(above, sizes[1])
    x, y = rng.choice([0.0, 0.0, 0.01], 2) if rng.random() < 0.5 else rng.uniform(-0.01, 0.01, 2)
    turn = rng.choice([0.0, 0.0, 90.0, 45.0, 360.0 * rng.random()])
    return f"{above} {sizes[1]} at {x} {y} turned {turn} on {below} {sizes[0]}", (
        f'<mujoco><option timestep=".002"/><asset>{"".join({*meshes, mesh})}</asset><worldbody>{floor}'
        f'<body pos="{x} {y} {top + half - 5e-5}" euler="0 0 {turn}"><freejoint/><geom {shape} mass="1"/></body>'
        "</worldbody></mujoco>"
    )


def _floor(rng, below, size, assets):
    if below == "plane":
        return '<geom type="plane" size="1 1 1"/>', 0.0
    if "field" in below:
        heights = np.full(36, 0.5) if below == "level field" else rng.uniform(0.2, 0.5, 36)
        text = " ".join(f"{h:.6f}" for h in heights)
        assets.append(f'<hfield name="f" nrow="6" ncol="6" size=".25 .25 .1 .05" elevation="{text}"/>')
        return '<geom type="hfield" hfield="f"/>', 0.1 if below == "level field" else 0.05
    shape, mesh, top = geom(below, size)
    assets.append(mesh)
    return f"<geom {shape}/>", top


def _check(rng, text, law):
    """Return (verdict, detail) of a state at rest and of tilted ones."""
    model = ag.load(text)
    sim = ag.Simulator(model, threads=1, law=law)
    q, v, at_rest = settled(sim, ag.State(sim.reset().q[None], np.zeros((1, 6))), SETTLE)
    if not at_rest[0]:
        return [(UNSETTLED, "")] * len(TILTS)
    d, yaw = np.zeros((len(TILTS), 6)), rng.choice([0.0, 0.5 * np.pi, 2.0 * np.pi * rng.random()], len(TILTS))
    d[:, 3], d[:, 4] = np.cos(yaw) * TILTS, np.sin(yaw) * TILTS
    return verdicts(sim, ag.integrate(model, np.repeat(q, len(TILTS), 0), d), np.repeat(v, len(TILTS), 0))
