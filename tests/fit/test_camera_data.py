"""A double pendulum as a camera records it: pixels at 400 frames a second, of unknown scale, angles that wrap around."""

import numpy as np
import pytest

import artigrad as ag

FRAME = 1 / 400
LENGTHS, PIXELS = (0.091, 0.070), 5200.0  # m; pixels a metre, which the fit is not told


def pendulum(lengths=LENGTHS):
    first, second = lengths
    b = ag.ModelBuilder("double")
    hinge = {"joint": "revolute", "axis": (0, 1, 0), "damping": 1e-5}
    b.body("upper", mass=0.2, com=(0, 0, -first / 2), inertia=(1e-4, 2e-4, 1e-4), **hinge)
    b.body(
        "lower",
        "upper",
        position=(0, 0, -first),
        mass=0.15,
        com=(0, 0, -second / 2),
        inertia=(1e-4, 1e-4, 1e-5),
        **hinge,
    )
    b.site("joint", "upper", position=(0, 0, -first))
    b.site("tip", "lower", position=(0, 0, -second))
    return b.build()


def filmed(frames, q0, seed):
    """Markers (frames, 3, 2) in pixels: pivot, joint and tip, each half a pixel off; and the angles as they were."""
    model = pendulum()
    true = model.params.replace(
        mass={"lower": 0.11},
        inertia={"upper": (1e-4, 1.6e-4, 1e-4, 0, 0, 0), "lower": (1e-4, 5.5e-5, 1e-5, 0, 0, 0)},
        damping={"upper": 6e-5, "lower": 2e-5},
    )
    sim = ag.Simulator(model, dt=FRAME / 5, integrator="rk4")
    traj = sim.rollout(ag.State(np.array(q0), np.zeros(2)), steps=5 * (frames - 1), params=true)
    q = traj.q[::5]
    xz = sim.sites(ag.State(q, 0 * q), params=true)[..., [0, 2]]
    markers = np.concatenate([np.zeros((frames, 1, 2)), xz], 1) * [PIXELS, -PIXELS] + [960.0, 300.0]
    return markers + 0.5 * np.random.default_rng(seed).standard_normal(markers.shape), q


def angles(markers):
    """q from pixels: directions of the two rods, wrapped as atan2 gives them. No scale goes in."""
    rods = np.diff(markers, axis=1)
    absolute = np.arctan2(-rods[..., 0], rods[..., 1])
    return np.stack([absolute[:, 0], np.arctan2(*(f(absolute[:, 1] - absolute[:, 0]) for f in (np.sin, np.cos)))], 1)


@pytest.fixture(scope="module")
def learned():
    """Two films of 500 frames, and what a fit makes of them that starts a third off in scale."""
    films = [filmed(500, q0, seed)[0] for seed, q0 in enumerate([(2.4, 0.6), (-1.9, -1.2)])]
    rods = np.median([np.linalg.norm(np.diff(f, axis=1), axis=-1).mean(0) for f in films], 0)
    sim = ag.Simulator(pendulum(rods / 4000.0), dt=FRAME, integrator="rk4")

    def scaled(params, metres):
        ends = -metres * rods
        return params.replace(
            position={"lower": (0, 0, ends[0])},
            com={"upper": (0, 0, ends[0] / 2), "lower": (0, 0, ends[1] / 2)},
        )

    scale = ag.Parameter("metres per pixel", scaled, 1 / 4000.0, (1e-5, 1e-2))
    wanted = [scale, "mass[lower]", "inertia[upper].yy", "inertia[lower].yy", "damping"]
    return sim, ag.fit(sim, [ag.Recording(q=angles(f)) for f in films], wanted)


def test_it_finds_the_scale(learned):
    _, found = learned
    assert found.converged, found
    assert found.values["metres per pixel"] == pytest.approx(1 / PIXELS, rel=0.01)
    assert found.values["mass[lower]"] == pytest.approx(0.11, rel=0.03)
    assert found.values["inertia[lower].yy"] == pytest.approx(5.5e-5, rel=0.05)
    assert any("'upper' jumps by whole turns" in note or "'lower' jumps by whole turns" in note for note in found.notes)


def test_it_predicts_half_a_second_that_it_has_not_seen(learned):
    """The state at the end of 0.25 s of another film is estimated, then half a second goes on from there."""
    sim, found = learned
    markers, true = filmed(1200, (2.0, 1.5), 7)
    q, seen, ahead = angles(markers), 100, 200
    starts = range(0, 900, 150)
    known = [ag.Recording(q=q[k : k + seen]) for k in starts]
    first = ag.fit(sim, known, [], params=found.params, window=seen)
    assert first.converged and first.values == {}
    traj = sim.rollout(first.start, steps=seen - 1 + ahead, params=found.params)
    error = [
        np.angle(np.exp(1j * (traj.q[n, seen:] - true[k + seen : k + seen + ahead]))) for n, k in enumerate(starts)
    ]
    assert np.sqrt(np.mean(np.square(error))) < 0.02
