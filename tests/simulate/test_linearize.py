"""Jacobians of one step compared with differences and the adjoint, under every integrator."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.model.tangent import to_ambient, to_tangent

SPINNING = """<mujoco><option timestep='.004'/><worldbody>
<body><freejoint/><geom type='capsule' size='.02' fromto='0 0 0 .3 0 0'/>
<body pos='.3 0 0'><joint type='ball' damping='.01'/><geom type='box' size='.1 .05 .02' pos='.1 .02 0'/></body></body>
<body pos='2 0 0'><freejoint/><geom type='ellipsoid' size='.1 .05 .02'/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "implicit", "rk4", "explicit"])
def test_linearize_equals_differences_and_the_adjoint_of_spinning_bodies(integrator):
    """Forces at the end of the step move links at other velocities: no direction may read those of another."""
    model = ag.load(SPINNING)
    sim, rng, nv = ag.Simulator(model, threads=1, integrator=integrator), np.random.default_rng(0), model.nv
    q, v = ag.integrate(model, model.keyframe().q, rng.normal(size=nv)), 3 * rng.normal(size=nv)
    A, _ = sim.linearize(ag.State(q, v))
    h, unit = 1e-5, np.eye(2 * nv)
    ends = [
        sim.step(ag.State(ag.integrate(model, np.tile(q, (2 * nv, 1)), d[:, :nv]), v + d[:, nv:]))
        for d in (h * unit, -h * unit)
    ]
    found = np.concatenate([ag.difference(model, ends[1].q, ends[0].q), ends[0].v - ends[1].v], 1).T / (2 * h)
    np.testing.assert_allclose(A, found, rtol=0, atol=1e-7)
    traj = sim.rollout(ag.State(np.tile(q, (2 * nv, 1)), np.tile(v, (2 * nv, 1))), steps=1)
    grad = sim.vjp(traj, q_bar=to_ambient(model, traj.q[:, -1], unit[:, :nv]), v_bar=unit[:, nv:])
    rows = np.concatenate([to_tangent(model, traj.q[:, 0], grad.q0), grad.v0], 1)
    np.testing.assert_allclose(A, rows, rtol=0, atol=1e-11)
