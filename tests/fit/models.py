"""Robots with unknown parameters, and measurements of them."""

import numpy as np

import artigrad as ag

CAR_DT, CAR_EVERY = 2e-3, 5


def car(friction):
    """Four driven wheels on a floor; only the floor has friction."""
    b = ag.ModelBuilder("car")
    b.add_plane(friction=friction, name="floor")
    b.add_body("chassis", joint="free", position=(0, 0, 0.05), mass=4.0, inertia=(0.02, 0.05, 0.06))
    for name, x, y in (("fl", 0.16, 0.1), ("fr", 0.16, -0.1), ("rl", -0.16, 0.1), ("rr", -0.16, -0.1)):
        b.add_body(name, "chassis", joint="revolute", axis=(0, 1, 0), position=(x, y, 0), mass=0.3, inertia=(4e-4,) * 3)
        b.add_sphere(name, 0.05, friction=0.0)
        b.add_motor(name, name)
    return b.build()


def car_data(friction, noise, rng):
    """Return one second of data: the car skids sideways, drives off and brakes with sliding rear wheels."""
    sim = ag.Simulator(car(friction), dt=CAR_DT)
    u = np.zeros((100, 4))
    u[10:40], u[50:, 2:] = 0.2, -0.2
    start = sim.reset()
    start.v[[0, 1, 5]], start.v[6:] = (1.0, 0.2, 1.0), 20.0
    traj = sim.rollout(start, np.repeat(u, CAR_EVERY, 0))
    q, v = (noisy(x[::CAR_EVERY], noise, rng) for x in (traj.q, traj.v))
    return ag.Recording(q=q, v=v, u=u, dt=CAR_DT * CAR_EVERY)


def noisy(x, share, rng):
    """Return measurements with noise that is a fraction of each channel's range."""
    return x + share * np.ptp(x, axis=0) * rng.standard_normal(x.shape)
