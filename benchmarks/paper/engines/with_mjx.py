"""MJX: jit of a scan, and its reverse-mode gradient.

One Newton iteration, and no implicit damping (the robot has none), as in the quadrupeds of MJX.
"""

import jax
import mujoco
from common import FOLDER
from jax_common import report_rollout
from mujoco import mjx

m = mujoco.MjModel.from_xml_path(str(FOLDER / "robot.xml"))
m.opt.iterations, m.opt.ls_iterations = 1, 5
m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
model = mjx.put_model(m)
data = mjx.put_data(m, mujoco.MjData(m))


def final(q, v, u):
    def step(d, control):
        return mjx.step(model, d.replace(ctrl=control)), None

    d, _ = jax.lax.scan(step, data.replace(qpos=q, qvel=v), u)
    return d.qpos, d.qvel


report_rollout(final, mujoco.__version__, "Newton, 1 iteration")
