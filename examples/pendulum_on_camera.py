"""Estimate a double pendulum from videos: pixels at 400 frames per second, unknown scale, wrapped angles. Then predict half
a second of a video that was not part of the data.

The videos are synthetic: markers of a simulated pendulum, each half a pixel off, whose parameters are not passed to the
fit.

python examples/pendulum_on_camera.py
"""

import numpy as np

import artigrad as ag

FRAME = 1 / 400
LENGTHS, PIXELS = (0.091, 0.070), 5200.0  # m; pixels per meter, not passed to the fit
TRUE = {"mass[lower]": 0.11, "inertia[lower].yy": 5.5e-5}


def pendulum(lengths=LENGTHS):
    first, second = lengths
    b = ag.ModelBuilder("double")
    hinge = {"joint": "revolute", "axis": (0, 1, 0), "damping": 1e-5}
    b.add_body("upper", mass=0.2, com=(0, 0, -first / 2), inertia=(1e-4, 2e-4, 1e-4), **hinge)
    below = {"position": (0, 0, -first), "com": (0, 0, -second / 2)}
    b.add_body("lower", "upper", mass=0.15, inertia=(1e-4, 1e-4, 1e-5), **below, **hinge)
    b.add_site("joint", "upper", position=(0, 0, -first))
    b.add_site("tip", "lower", position=(0, 0, -second))
    return b.build()


def filmed(frames, q0, seed):
    """Return markers (frames, 3, 2) in pixels (pivot, joint and tip, each half a pixel off), and the true angles."""
    model = pendulum()
    true = model.params.replace(
        mass={"lower": TRUE["mass[lower]"]},
        inertia={"upper": (1e-4, 1.6e-4, 1e-4, 0, 0, 0), "lower": (6e-5, TRUE["inertia[lower].yy"], 1e-5, 0, 0, 0)},
        damping={"upper": 6e-5, "lower": 2e-5},
    )
    sim = ag.Simulator(model, dt=FRAME / 5, integrator="rk4")
    traj = sim.rollout(ag.State(np.array(q0), np.zeros(2)), steps=5 * (frames - 1), params=true)
    q = traj.q[::5]
    xz = sim.sites(ag.State(q, 0 * q), params=true)[..., [0, 2]]
    markers = np.concatenate([np.zeros((frames, 1, 2)), xz], 1) * [PIXELS, -PIXELS] + [960.0, 300.0]
    return markers + 0.5 * np.random.default_rng(seed).standard_normal(markers.shape), q


def angles(markers):
    """Return q from pixels: directions of the two rods, wrapped by atan2. They are independent of the scale."""
    rods = np.diff(markers, axis=1)
    absolute = np.arctan2(-rods[..., 0], rods[..., 1])
    return np.stack([absolute[:, 0], np.arctan2(*(f(absolute[:, 1] - absolute[:, 0]) for f in (np.sin, np.cos)))], 1)


def learned():
    """Return the fit to two videos of 500 frames, from an initial scale that is a third off."""
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


def predicted(sim, params):
    """Return errors (6, 200, 2), rad, of half a second after an estimate of the state from 0.25 s of another video, six
    times."""
    markers, true = filmed(1200, (2.0, 1.5), 7)
    q, seen, ahead, starts = angles(markers), 100, 200, range(0, 900, 150)
    first = ag.fit(sim, [ag.Recording(q=q[k : k + seen]) for k in starts], [], params=params, window=seen)
    assert first.converged and first.values == {}, "first states alone"
    traj = sim.rollout(first.start, steps=seen - 1 + ahead, params=params)
    wanted = np.stack([true[k + seen : k + seen + ahead] for k in starts])
    return np.angle(np.exp(1j * (traj.q[:, seen:] - wanted)))


def main():
    sim, found = learned()
    print(found)
    assert found.converged
    assert abs(PIXELS * found.values["metres per pixel"] - 1) < 0.01, "the scale within one percent"
    for name, true in TRUE.items():
        assert abs(found.values[name] / true - 1) < 0.05, f"{name} within five percent"
    assert any("jumps by whole turns" in note for note in found.notes), "wrapped angles are reported"
    error = np.sqrt(np.mean(np.square(predicted(sim, found.params))))
    print(f"prediction of half a second of another video: error {error:.4f} rad")
    assert error < 0.02


if __name__ == "__main__":
    main()
