"""Brax, generalized pipeline: jit of a scan, and its reverse-mode gradient."""

import os
import time

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import importlib.metadata

import jax
import jax.numpy as jnp
import mujoco
from brax.generalized import pipeline
from brax.io import mjcf
from common import FOLDER, Q_BAR, V_BAR, Q, U, V, report

system = mjcf.load_model(mujoco.MjModel.from_xml_path(str(FOLDER / "masked.xml")))


def final(q, v, u):
    state, _ = jax.lax.scan(lambda s, a: (pipeline.step(system, s, a), None), pipeline.init(system, q, v), u)
    return state.q, state.qd


def loss(q, v, u):
    q, v = final(q, v, u)
    return q @ Q_BAR + v @ V_BAR


given = jnp.asarray(Q), jnp.asarray(V), jnp.asarray(U)
start = time.process_time()
forward = jax.jit(final).lower(*given).compile()
gradient = jax.jit(jax.grad(loss, (0, 1, 2))).lower(*given).compile()
compile_s = time.process_time() - start
version = f"{importlib.metadata.version('brax')}, jax {jax.__version__}"
what = "generalized, f32; jax.grad of the rollout"
report(version, lambda: float(forward(*given)[0][2]), lambda: jax.block_until_ready(gradient(*given)), what, compile_s)
