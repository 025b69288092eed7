"""Brax, generalized pipeline: jit of a scan, and its reverse-mode gradient.

Eight iterations, as in the humanoid of Brax: with the four of its Ant the robot sinks, and the default of a hundred takes
three times as long for the same result.
"""

import importlib.metadata

import jax
import jax_common
import mujoco
from brax.generalized import pipeline
from brax.io import mjcf
from common import FOLDER

m = mujoco.MjModel.from_xml_path(str(FOLDER / "masked.xml"))
m.opt.iterations = 8
system = mjcf.load_model(m)


def final(q, v, u):
    state, _ = jax.lax.scan(lambda s, a: (pipeline.step(system, s, a), None), pipeline.init(system, q, v), u)
    return state.q, state.qd


jax_common.report_rollout(final, importlib.metadata.version("brax"), "generalized, 8 iterations")
