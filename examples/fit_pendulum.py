"""Estimate the lengths, the mass ratio and the damping of a double pendulum from ten seconds of noisy measurements.

python examples/fit_pendulum.py
"""

import numpy as np

import artigrad as ag

TRUE = {"mass[rod2]": 0.6, "length1": 0.8, "length2": 1.3, "damping": 0.1}


def length(body):
    """Return a function that writes a length into Params: the rod's center of mass and inertia, and the position of the
    next rod."""

    def put(params, x):
        com, position, inertia = (np.array(params[name]) for name in ("com", "position", "inertia"))
        com[body, 2] = -x / 2
        position[body + 1 :, 2] = -x
        inertia[body, :2] = params.mass[body] * x**2 / 12
        return params.replace(com=com, position=position, inertia=inertia)

    return put


def second_mass(params, x):
    return params.replace(mass=[params.mass[0], x])


def damping(params, x):
    return params.replace(damping=[x, x])


def parameters(start):
    """Return the parameters with their initial guesses. The pendulum has no actuation, so only the ratio of masses is
    identifiable: the first is given."""
    puts = (second_mass, length(0), length(1), damping)  # lengths after the mass, since inertias need it
    return [ag.Parameter(name, put, start[name], (0.01, 10.0)) for name, put in zip(TRUE, puts, strict=True)]


def recorded(sim, noise, rng):
    """Return a thousand measurements of the true pendulum; noise is a fraction of each channel's range."""
    params = sim.params
    for p in parameters(TRUE):
        params = p.set(params, p.start)
    traj = sim.rollout(ag.State(np.array([1.2, -0.5]), np.zeros(2)), steps=1000, params=params)
    q, v = (x + noise * np.ptp(x, axis=0) * rng.standard_normal(x.shape) for x in (traj.q, traj.v))
    return ag.Recording(q=q, v=v)


def main():
    sim = ag.Simulator(ag.robots.pendulum(2), dt=0.01)
    data = recorded(sim, noise=0.01, rng=np.random.default_rng(0))
    found = ag.fit(sim, data, parameters({"mass[rod2]": 1.0, "length1": 1.0, "length2": 1.0, "damping": 0.05}))
    print(found)
    for name, true in TRUE.items():
        assert abs(found.values[name] / true - 1) < 0.02, f"{name} within two percent"


if __name__ == "__main__":
    main()
