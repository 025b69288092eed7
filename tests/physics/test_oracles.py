"""Dynamics against MuJoCo and Pinocchio on random trees of all joint types, to 1e-10."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import artigrad as ag
from artigrad.simulate.gradcheck import random_state

from .oracles import InMuJoCo, InPinocchio

TOLERANCE = 1e-10
trees = given(seed=st.integers(0, 10**6), n=st.integers(1, 40))


def close(a, b):
    scale = max(1.0, np.abs(b).max(initial=0.0))
    np.testing.assert_allclose(np.asarray(a) / scale, np.asarray(b) / scale, atol=TOLERANCE, rtol=0)


@trees
@settings(max_examples=40, deadline=None)
def test_agrees_with_mujoco(seed, n):
    model = ag.robots.random_tree(seed, n)
    rng = np.random.default_rng(seed)
    state, other = random_state(model, rng), InMuJoCo(model)
    other.set(*state)
    a = rng.normal(size=model.nv)
    sims = [ag.Simulator(model, factor=f) for f in ("articulated", "sparse")]

    close(sims[0].mass_matrix(state), other.mass_matrix())
    passive = other.d.qfrc_passive[other.v]
    close(sims[0].inverse_dynamics(state, a), other.inverse_dynamics(a))
    u = np.zeros(model.nu)
    free = model.params.replace(gain=0.0 * model.params.gain, bias=0.0 * model.params.bias)  # actuators off
    accelerations = [sim.forward_dynamics(state, u, params=free) for sim in sims]
    condition = np.linalg.cond(other.mass_matrix())
    wanted = np.linalg.solve(other.mass_matrix(), passive - other.d.qfrc_bias[other.v])
    for found in accelerations:
        scale = max(1.0, np.abs(wanted).max())
        assert np.abs(found - wanted).max() / scale < TOLERANCE * max(1.0, condition / 1e4)
    close(*accelerations)

    out = sims[0].outputs(state)
    close(out.site_position, other.d.site_xpos[other.sites])
    close(out.site_rotation, other.d.site_xmat[other.sites].reshape(-1, 3, 3))
    close(out.body_position, other.d.xpos[other.bodies])
    velocities = [other.site_velocity(k) for k in range(model.ns)]
    close(out.site_velocity, [v for v, _ in velocities])
    close(out.site_angular_velocity, [w for _, w in velocities])
    mujoco.mj_energyPos(other.m, other.d)
    mujoco.mj_energyVel(other.m, other.d)
    close(out.potential_energy, other.d.energy[0])
    close(out.kinetic_energy, other.d.energy[1])
    mujoco.mj_subtreeVel(other.m, other.d)
    close(out.com, other.d.subtree_com[0])


@trees
@settings(max_examples=40, deadline=None)
def test_agrees_with_pinocchio(seed, n):
    model = ag.robots.random_tree(seed, n)
    rng = np.random.default_rng(seed)
    state, other = random_state(model, rng), InPinocchio(model)
    q, T = other.to_q(state.q), other.change(state.q)
    v, a = T @ state.v, rng.normal(size=model.nv)
    sim = ag.Simulator(model)
    not_free = np.array([t != "free" for t in model.joint_type])
    same = model.params.replace(armature=model.params.armature * not_free)

    M = pin.crba(other.m, other.d, q)
    M = np.triu(M) + np.triu(M, 1).T
    close(sim.mass_matrix(state, params=same), T.T @ M @ T)
    tau = pin.rnea(other.m, other.d, q, v, T @ a + other.bias_rate(*state))
    close(sim.inverse_dynamics(state, a, params=same), T.T @ tau)

    u = np.zeros(model.nu)
    off = same.replace(**{k: 0.0 * same[k] for k in ("gain", "bias", "damping", "stiffness")})
    found = sim.forward_dynamics(state, u, params=off)
    wanted = T.T @ (pin.aba(other.m, other.d, q, v, np.zeros(model.nv)) - other.bias_rate(*state))
    condition = np.linalg.cond(M)
    assert np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max()) < TOLERANCE * max(1.0, condition / 1e4)

    pin.forwardKinematics(other.m, other.d, q, v)
    out = sim.outputs(state)
    for i in range(model.nb):
        pose = other.d.oMi[other.joint_of[i]] * other.place_of[i]
        close(out.body_position[i], pose.translation)
        close(out.body_rotation[i], pose.rotation)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_equals_mujocos(seed):
    """Semi-implicit Euler with implicit damping is MuJoCo's own integrator."""
    model = ag.robots.random_tree(seed, 8)
    off = model.params.replace(gain=0.0 * model.params.gain, bias=0.0 * model.params.bias)
    state, other = random_state(model, np.random.default_rng(seed)), InMuJoCo(model, dt=2e-3)
    other.set(*state)
    for _ in range(20):
        mujoco.mj_step(other.m, other.d)
    sim = ag.Simulator(model, dt=2e-3)
    final = sim.rollout(state, steps=20, params=off).final
    np.testing.assert_allclose(final.q, other.d.qpos[other.q], atol=1e-8)
    np.testing.assert_allclose(final.v, other.d.qvel[other.v], atol=1e-8)


def test_wrench_equals_xfrc_applied():
    model = ag.robots.random_tree(11, 8)
    rng = np.random.default_rng(0)
    off = model.params.replace(gain=0.0 * model.params.gain, bias=0.0 * model.params.bias)
    state, other = random_state(model, rng), InMuJoCo(model)
    wrench = rng.normal(size=(model.nb, 6))
    other.d.xfrc_applied[other.bodies] = wrench
    other.set(*state)
    mujoco.mj_step(other.m, other.d)
    final = ag.Simulator(model, dt=1e-3).step(state, params=off, wrench=wrench)
    np.testing.assert_allclose(final.v, other.d.qvel[other.v], atol=1e-9)
