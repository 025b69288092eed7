"""MJX: jit of a scan, and its reverse-mode gradient. One iteration of Newton, as its own quadrupeds have."""

import os
import time

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import jax
import jax.numpy as jnp
import mujoco
from common import FOLDER, Q_BAR, V_BAR, Q, U, V, report
from mujoco import mjx

m = mujoco.MjModel.from_xml_path(str(FOLDER / "robot.xml"))
m.opt.iterations, m.opt.ls_iterations = 1, 5
model = mjx.put_model(m)
data = mjx.put_data(m, mujoco.MjData(m))


def final(q, v, u):
    def step(d, control):
        return mjx.step(model, d.replace(ctrl=control)), None

    d, _ = jax.lax.scan(step, data.replace(qpos=q, qvel=v), u)
    return d.qpos, d.qvel


def loss(q, v, u):
    q, v = final(q, v, u)
    return q @ Q_BAR + v @ V_BAR


given = jnp.asarray(Q), jnp.asarray(V), jnp.asarray(U)
start = time.process_time()
forward = jax.jit(final).lower(*given).compile()
gradient = jax.jit(jax.grad(loss, (0, 1, 2))).lower(*given).compile()
compile_s = time.process_time() - start
version = f"{mujoco.__version__}, jax {jax.__version__}"
what = "Newton, 1 iteration, f32; jax.grad of the rollout"
report(version, lambda: float(forward(*given)[0][2]), lambda: jax.block_until_ready(gradient(*given)), what, compile_s)
