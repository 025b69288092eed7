"""MuJoCo C with the fastest of its solvers; the gradient by finite differences of every step, chained."""

import time

import mujoco
import numpy as np
from common import FOLDER, Q_BAR, V_BAR, Q, U, V, report
from mujoco import rollout


def robot(solver):
    m = mujoco.MjModel.from_xml_path(str(FOLDER / "robot.xml"))
    m.opt.solver = solver
    return m, mujoco.MjData(m)


def start(m, d):
    mujoco.mj_resetData(m, d)
    d.qpos[:], d.qvel[:] = Q, V
    state = np.empty(mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(m, d, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    return state


def forward(m, d):
    states, _ = rollout.rollout(m, d, start(m, d)[None], U[None])
    return states[0, -1, 3]


def gradient(m, d):
    start(m, d)
    nv, n, nu = m.nv, 2 * m.nv, m.nu
    kept = np.empty((len(U), n, n + nu))
    A, B = np.empty((n, n)), np.empty((n, nu))
    for t, u in enumerate(U):
        d.ctrl[:] = u
        mujoco.mjd_transitionFD(m, d, 1e-6, False, A, B, None, None)
        kept[t, :, :n], kept[t, :, n:] = A, B
        mujoco.mj_step(m, d)
    bar = np.concatenate([Q_BAR[:nv], V_BAR])  # any direction of the tangent space costs the same
    for J in kept[::-1]:
        bar = (bar @ J)[:n]
    return bar


def seconds(solver):
    m, d = robot(solver)
    forward(m, d)
    begin = time.process_time()
    for _ in range(5):
        forward(m, d)
    return time.process_time() - begin


solvers = {"PGS": 0, "CG": 1, "Newton": 2}
name = min(solvers, key=lambda s: seconds(solvers[s]))
m, d = robot(solvers[name])
what = f"{name}; mjd_transitionFD of every step"
report(mujoco.__version__, lambda: forward(m, d), lambda: gradient(m, d), what)
