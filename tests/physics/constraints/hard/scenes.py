"""Small scenes with contact, and common functions of tests of the hard law."""

from dataclasses import fields

import numpy as np

import artigrad as ag


def hard(model, dt=None, **options):
    """Return a Simulator under the hard law; options: those of the law and of the simulator."""
    law = {f.name: options.pop(f.name) for f in fields(ag.HardOptions) if f.name in options}
    return ag.Simulator(model, dt, law=ag.HardOptions(**law), **options)


TILTED = np.array([1.0, 0.1, 0.2, 0.3]) / np.linalg.norm([1.0, 0.1, 0.2, 0.3])


def check(builder, q, v, steps=1, tolerance=1e-6, skip=("restitution", "dry_friction"), **options):
    """Check all gradients at one state.

    The trajectory has a kink at zero restitution or dry friction, so these are skipped by default.
    """
    sim = hard(builder.build(), dt=1e-3, **options)
    rows = ag.gradcheck(
        sim,
        steps=steps,
        samples=1,
        tolerance=np.inf,
        show=False,
        state=ag.State(np.array(q, float), np.array(v, float)),
    )
    bad = [r for r in rows if r.what not in skip and r.error * max(r.largest, 1e-3) > tolerance * max(r.largest, 1.0)]
    assert not bad, bad
    return {r.what: r for r in rows}, sim


def ball(friction=0.7, restitution=0.0):
    b = ag.ModelBuilder("ball")
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.004, 0.005, 0.006), com=(0.01, 0.0, 0.02))
    b.add_sphere("ball", 0.1, restitution=restitution, friction=friction)
    b.add_plane(friction=0.1, rotation=(1, 0.1, 0.05, 0))
    return b


def pair(name):
    b = ag.ModelBuilder(name)
    b.add_body("a", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.add_body("b", joint="free", mass=0.5, inertia=(0.01, 0.02, 0.015))
    return b


DEEP = {"correction_speed": 100.0}  # pairs overlap by centimetres, and shall push also where they part fast
PAIRS = {
    "sphere-sphere": (
        lambda b: (b.add_sphere("a", 0.1, position=(0.2, 0, 0)), b.add_sphere("b", 0.1)),
        [0.25, 0.03, 0.16],
    ),
    "capsule-sphere": (
        lambda b: (b.add_capsule("a", 0.1, 0.5, rotation=(1, 0, 1, 0)), b.add_sphere("b", 0.1)),
        [0.2, 0.03, 0.17],
    ),
    "capsule-sphere end": (
        lambda b: (b.add_capsule("a", 0.1, 0.5, rotation=(1, 0, 1, 0)), b.add_sphere("b", 0.1)),
        [0.6, 0.03, 0.1],
    ),
    "capsule-capsule": (
        lambda b: (
            b.add_capsule("a", 0.1, 0.5, rotation=(1, 0, 1, 0)),
            b.add_capsule("b", 0.1, 0.3, rotation=(1, 1, 0, 0)),
        ),
        [0.2, 0.03, 0.17],
    ),
    "box-sphere face": (lambda b: (b.add_box("a", (0.5, 0.3, 0.1)), b.add_sphere("b", 0.1)), [0.2, 0.03, 0.17]),
    "box-sphere edge": (lambda b: (b.add_box("a", (0.5, 0.3, 0.1)), b.add_sphere("b", 0.1)), [0.55, 0.03, 0.1]),
    "box-sphere inside": (lambda b: (b.add_box("a", (0.5, 0.3, 0.1)), b.add_sphere("b", 0.1)), [0.2, 0.03, 0.07]),
}


ON_PLANE = {
    "box": (lambda b: b.add_box("b", (0.1, 0.2, 0.15)), 0.1499),
    "cylinder": (lambda b: b.add_cylinder("b", 0.1, 0.2, rotation=(1, 1.02, 0.03, 0)), 0.0999),
    "capsule": (lambda b: b.add_capsule("b", 0.1, 0.2), 0.2999),
    "points": (
        lambda b: b.add_convex_hull("b", [[0.1, 0.1, -0.2], [0.1, -0.1, -0.2], [-0.1, 0, -0.2], [0, 0, 0.3]]),
        0.1999,
    ),
}


def laikago_gradient(**options):
    model = ag.robots.laikago()
    rng = np.random.default_rng(0)
    u = model.keyframe_control() + 0.05 * rng.normal(size=(300, 12))
    start = hard(model).rollout(hard(model).reset(), u).final
    sim = hard(model, **options)
    traj = sim.rollout(start, u[:3])
    return sim.vjp(traj, q_bar=np.cos(np.arange(19.0)), v_bar=np.sin(np.arange(18.0))), traj
