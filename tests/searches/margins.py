"""Switch margins compared with one-sided differences: states at rest, aligned, sliding, at limits and at ends of ranges."""

import numpy as np

import artigrad as ag

from .outcome import Outcome

SUMMARY = (
    "One step from states at rest, exactly and nearly aligned, tilted or sliding, of every solid on every other, of a box at a "
    "wall, of stacks and of joints at their limits: the gradient of a random loss against one-sided differences along all "
    "coordinates and two random directions. Wherever they differ, `health.switch_margin` has to be less than four times the "
    "displacement over dt and the change of velocities that the Jacobian gives it; it should be zero nowhere else. Where they "
    "do not differ and the margin is above 2e-4 m/s, central differences along all coordinates have to agree with the gradient "
    "to 1e-6."
)
COUNT, SAMPLE = 4_000, 60
BLOCK = 20  # states of one scene
STEPS = (1e-5, 1e-6)  # displacements
CENTRAL = (1e-4, 3e-5, 1e-5, 1e-6, 1e-7)  # displacements of central differences, of which the best counts
DIFFERS, EXACT = 1e-3, 1e-6  # relative to the largest entry of a gradient: by which a difference is not the gradient
NOISE = 1e-9  # of velocities: places of general solids are found to about 1e-10 m
ZERO = 1e-6  # m/s, a margin that warns of a kink here
FALSE_ALARMS = 0.02  # share of smooth states at rest that may have such a margin
DT = 0.002

SOLIDS = {
    "sphere": ("<geom size='.05' mass='1'/>", 0.05),
    "capsule": ("<geom type='capsule' size='.05 .06' euler='90 0 0' mass='1'/>", 0.05),
    "ellipsoid": ("<geom type='ellipsoid' size='.06 .05 .04' mass='1'/>", 0.04),
    "upright cylinder": ("<geom type='cylinder' size='.05 .04' mass='1'/>", 0.04),
    "lying cylinder": ("<geom type='cylinder' size='.05 .06' euler='90 0 0' mass='1'/>", 0.05),
    "box": ("<geom type='box' size='.05 .05 .05' mass='1'/>", 0.05),
    "mesh": ("<geom type='mesh' mesh='die' mass='1'/>", 0.05),
}
GROUNDS = {
    "plane": "<geom type='plane' size='2 2 .1'/>",
    "box": "<geom type='box' size='.1 .1 .05' pos='0 0 -.05'/>",
    "equal box": "<geom type='box' size='.05 .05 .05' pos='0 0 -.05'/>",
    "smaller box": "<geom type='box' size='.03 .02 .05' pos='0 0 -.05'/>",
    "upright cylinder": "<geom type='cylinder' size='.1 .05' pos='0 0 -.05'/>",
    "lying cylinder": "<geom type='cylinder' size='.1 .2' pos='0 0 -.1' euler='90 0 0'/>",
    "capsule": "<geom type='capsule' size='.1 .2' pos='0 0 -.1' euler='90 0 0'/>",
    "sphere": "<geom size='.1' pos='0 0 -.1'/>",
    "mesh": "<geom type='mesh' mesh='slab' pos='0 0 -.05'/>",
    "equal mesh": "<geom type='mesh' mesh='die' pos='0 0 -.05'/>",
}


def _mesh(name, x, y, z):
    corners = ((a * x, b * y, c * z) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1))
    return f"<mesh name='{name}' vertex='{' '.join(f'{v:g}' for corner in corners for v in corner)}'/>"


def _load(world, assets=""):
    return ag.load(f"<mujoco><option timestep='{DT}'/><asset>{assets}</asset><worldbody>{world}</worldbody></mujoco>")


def _body(geom, *place):
    return f"<body pos='{' '.join(map(str, place))}'><freejoint/>{geom}</body>"


def _on(ground, solid):
    """Return a solid on a ground."""
    assets = (_mesh("slab", 0.1, 0.1, 0.05) + _mesh("die", 0.05, 0.05, 0.05)) if "mesh" in ground + solid else ""
    geom, height = SOLIDS[solid]
    return lambda: (_load(GROUNDS[ground] + _body(geom, 0, 0, height - 2e-4), assets), _placed)


def _placed(rng, model, n):
    """Return placements: exactly aligned, shifted, over edges, rotated, and tilted."""
    q = np.tile(model.keyframe().q, (n, 1))
    for k, row in enumerate(q):
        kind = k % 5
        if kind:
            row[:2] += rng.uniform(-0.03, 0.03, 2)
        if kind == 2:
            row[0] = rng.choice([0.0, 0.05, -0.02])
        if kind > 2:
            angle = rng.uniform(-np.pi, np.pi)
            row[3:7] = np.cos(angle / 2), 0, 0, np.sin(angle / 2)
        if kind == 4:
            tilt = np.r_[np.zeros(3), rng.normal(size=2) * 10.0 ** rng.uniform(-9, -4), 0.0]
            q[k] = ag.integrate(model, row, tilt)
    return q


def _many(geoms, ground=GROUNDS["plane"]):
    """Return bodies at rest, shifted slightly where the case is not exactly aligned."""

    def start(rng, model, n):
        q = np.tile(model.keyframe().q, (n, 1))
        away = 10.0 ** rng.uniform(-12, -3, (n, 1)) * (np.arange(n) % 2)[:, None]
        return q + away * rng.normal(size=q.shape) * np.tile([1, 1, 0, 0, 0, 0, 0], model.nq // 7)

    return lambda: (_load(ground + "".join(_body(*geom) for geom in geoms)), start)


def _limits():
    """Return joints at, before and beyond their limits, one with equal bounds; and dry friction."""
    hinge = "<body pos='0 0 {}'><joint type='hinge' axis='0 1 0' {}/><geom size='.05' pos='.2 0 0' mass='1'/>"
    ranges = "limited='true' range='-20 30'", "limited='true' range='0 20'", "frictionloss='.5'"
    model = _load("".join(hinge.format(z, x) for z, x in zip((0, 0.3, 0.3), ranges, strict=True)) + "</body>" * 3)

    def start(rng, model, n):
        q = np.radians(rng.choice([-20.0, 0.0, 20.0, 30.0], (n, model.nq)))
        return q + rng.choice([0.0, 1.0, -1.0], q.shape) * 10.0 ** rng.uniform(-9, -3, q.shape)

    return model, start


_CUBE, _CAN = "<geom type='box' size='.05 .05 .05' mass='1'/>", "<geom type='cylinder' size='.04 .05' mass='1'/>"
_WIDE, _SMALL = "<geom type='box' size='.08 .08 .05' mass='1'/>", "<geom type='box' size='.03 .03 .03' mass='1'/>"
_WALL = GROUNDS["plane"] + "<geom type='box' size='.1 .5 .5' pos='-.1499 0 .5'/>"
SCENES = {
    "upright cylinder on plane": _on("plane", "upright cylinder"),
    "box on smaller box": _on("smaller box", "box"),
    "joints at limits": _limits,
    "stack of equal cubes": _many([(_CUBE, 0, 0, 0.0498), (_CUBE, 0, 0, 0.1495)]),
    "stack of smaller boxes": _many([(_WIDE, 0, 0, 0.0498), (_CUBE, 0, 0, 0.1494), (_SMALL, 0, 0, 0.229)]),
    "can on a box": _many([(_WIDE, 0, 0, 0.0498), (_CAN, 0, 0, 0.1494)]),
    "box at a wall": _many([(_CUBE, 0, 0, 0.0498)], _WALL),
} | {
    f"{solid} on {ground}": _on(ground, solid)
    for ground in GROUNDS
    for solid in SOLIDS
    if (ground, solid) not in (("plane", "upright cylinder"), ("smaller box", "box"))
}


def search(count, seed):
    """Draw and check `count` states."""
    outcome, rng = Outcome(), np.random.default_rng(seed)
    smooth = false = 0
    blocks = -(-count // BLOCK)
    for first in range(0, count, BLOCK):
        name = list(SCENES)[(seed * blocks + first // BLOCK) % len(SCENES)]  # shares of a search have other scenes
        margin, differs, missed, pushed = _block(rng, *SCENES[name](), settle=name != "joints at limits")
        for k in range(min(BLOCK, count - first)):
            warns = margin[k] < ZERO
            if not differs[k] and not pushed[k]:
                smooth, false = smooth + 1, false + warns
            if missed[k]:
                outcome.findings.append(f"seed {seed}, block {first}, state {k}, {name}: {missed[k]}")
            elif differs[k]:
                outcome.counts["a kink, and a margin below it"] += 1
            else:
                where = ", pushed" if pushed[k] else ", at rest"
                outcome.counts[
                    f"smooth{where}, " + ("but a margin of zero" if warns else "and a margin above zero")
                ] += 1
    if false > FALSE_ALARMS * max(smooth, 50):
        outcome.findings.append(f"seed {seed}: a margin of zero at {false} of {smooth} smooth states at rest")
    return outcome


def _block(rng, model, start, settle):
    """Return margins of states of one scene; failed gradients; those without a small margin; states with forces."""
    sim, nv = ag.Simulator(model, threads=1), model.nv
    state = ag.State(start(rng, model, BLOCK), np.zeros((BLOCK, nv)))
    if settle:
        state = sim.rollout(state, steps=800).final
    pushed = rng.random(BLOCK) < 0.25
    q, v = state.q, state.v + rng.normal(size=(BLOCK, nv)) * (pushed * 10.0 ** rng.uniform(-9, -2, BLOCK))[:, None]
    w = rng.normal(size=nv)

    def after(d):
        return sim.rollout(ag.State(ag.integrate(model, q, np.tile(d[:nv], (BLOCK, 1))), v + d[nv:]), steps=1)

    here = after(np.zeros(2 * nv))
    found = [sim.vjp(here, v_bar=np.tile(bar, (BLOCK, 1)), with_params=False) for bar in (w, *np.eye(nv))]
    margin = np.asarray(found[0].health.switch_margin)
    slope, *jacobian = (np.concatenate([ag.to_tangent(model, q, x.q0), x.v0], 1) for x in found)
    scale = 1.0 + np.abs(slope).max(1)
    differs, missed = np.zeros(BLOCK, bool), [""] * BLOCK
    directions = np.concatenate([np.eye(2 * nv), rng.normal(size=(2, 2 * nv)) / np.sqrt(2 * nv)])
    for h in STEPS:
        for n, d in enumerate(directions):
            for side in (1, -1):
                half, whole = (after(side * x * d).final.v for x in (h / 2, h))
                one_sided = (4 * (half @ w) - whole @ w - 3 * (here.final.v @ w)) * side / h
                off = np.abs(one_sided - slope @ d)
                moved = h * np.max([np.abs(row @ d) for row in jacobian], axis=0)
                for k in np.flatnonzero(off > DIFFERS * scale + NOISE / h):
                    differs[k] = True
                    if margin[k] > 4 * (h / DT + moved[k]):
                        missed[k] = f"margin {margin[k]:.1e}, off by {off[k] / scale[k]:.1e} {side * h:g} along {n}"
    for n, d in enumerate(np.eye(2 * nv)):
        off = np.full(BLOCK, np.inf)
        for h in CENTRAL:
            fine, coarse = ((after(x * d).final.v - after(-x * d).final.v) @ w / (2 * x) for x in (h / 2, h))
            off = np.minimum(off, np.abs((4 * fine - coarse) / 3 - slope[:, n]))
        for k in np.flatnonzero((off > EXACT * scale) & ~differs & (margin > 4 * CENTRAL[-1] / DT)):
            missed[k] = (
                missed[k]
                or f"margin {margin[k]:.1e}, off by {off[k] / scale[k]:.1e} from central differences along {n}"
            )
    return margin, differs, missed, pushed
