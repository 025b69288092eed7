"""MuJoCo C with its fastest solver; the gradient by chained finite differences of every step."""

import time

import mujoco
import numpy as np
from common import FOLDER, Q_BAR, V_BAR, Q, U, V, report
from mujoco import rollout

FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
NEEDED = ("GRAVITY", "ACTUATION", "CONTACT", "CONSTRAINT", "WARMSTART")  # without all else it is a tenth faster
SWITCHES = mujoco.mjtDisableBit.__members__.items()
OFF = sum(int(bit) for name, bit in SWITCHES if name.startswith("mjDSBL_") and name[7:] not in NEEDED)


class Robot:
    """Robot with a solver of MuJoCo, at its first state."""

    def __init__(self, solver):
        self.m = mujoco.MjModel.from_xml_path(str(FOLDER / "robot.xml"))
        self.m.opt.solver, self.m.opt.disableflags = solver, OFF
        self.d = mujoco.MjData(self.m)
        self.d.qpos[:], self.d.qvel[:] = Q, V
        self.first = np.empty(mujoco.mj_stateSize(self.m, FULL))
        mujoco.mj_getState(self.m, self.d, self.first, FULL)

    def forward(self):
        states, _ = rollout.rollout(self.m, self.d, self.first, U)
        return states[0, -1, 3]

    def gradient(self):
        m, d = self.m, self.d
        mujoco.mj_resetData(m, d)
        mujoco.mj_setState(m, d, self.first, FULL)
        n = 2 * m.nv
        A, B = np.empty((len(U), n, n)), np.empty((len(U), n, m.nu))
        for t, u in enumerate(U):
            d.ctrl[:] = u
            mujoco.mjd_transitionFD(m, d, 1e-6, False, A[t], B[t], None, None)
            mujoco.mj_step(m, d)
        turned = np.empty((3, 4))  # the quaternion's derivatives, along turns about the axes of the trunk
        for row, axis in zip(turned, np.eye(3), strict=True):
            mujoco.mju_derivQuat(row, d.qpos[3:7], axis)
        bar = np.concatenate([Q_BAR[:3], turned @ Q_BAR[3:7], Q_BAR[7:], V_BAR])
        u_bar = np.empty_like(U)
        for t in reversed(range(len(U))):
            u_bar[t], bar = bar @ B[t], bar @ A[t]
        return u_bar


def seconds(robot):
    robot.forward()
    begin = time.process_time()
    for _ in range(5):
        robot.forward()
    return time.process_time() - begin


robots = {name: Robot(solver) for solver, name in enumerate(("PGS", "CG", "Newton"))}
name = min(robots, key=lambda name: seconds(robots[name]))
robot = robots[name]
report(mujoco.__version__, robot.forward, robot.gradient, f"{name}; mjd_transitionFD of every step, from Python")
