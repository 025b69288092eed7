"""The functions of a simulator on JAX arrays, under all transformations of JAX, on the CPU and on a GPU.

Most are native calls from XLA, forward and back (`native_calls`), with `params` too, where the simulator's device is the one
that XLA works on. The others (sensors, contact forces, checkpoints, forward mode) are callbacks through Python. `vmap` makes
either one call for the whole batch. Both modes are available, and second derivatives in every order of the modes but forward
over forward (`operations`); third derivatives raise. `State` and `Params` are pytrees,
of named fields (`params_tree`).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..errors import InputError
from ..model.state import State
from ..simulate.arrays import Axes
from ..simulate.framework_api import Functions
from ..simulate.function import Call
from ..simulate.results import Outputs
from ..simulate.simulator import Simulator
from . import operations, params_tree

jax.tree_util.register_pytree_with_keys(
    State,
    lambda state: ([(jax.tree_util.GetAttrKey(name), x) for name, x in state.named().items()], None),
    lambda _, leaves: State(*leaves),
    lambda state: (tuple(state), None),
)
params_tree.register()
jax.tree_util.register_pytree_node(  # a named tuple with a reference to its model
    Outputs, lambda out: (tuple(out), out.model), lambda model, leaves: Outputs(*leaves).of(model)
)


WIDER = "make a Simulator(dtype='f32'), or call jax.config.update('jax_enable_x64', True) and pass float64"


class _ArrayFunctions(Functions):
    def _array(self, sim: Simulator, name: str, x: Any) -> Array:
        x = _asarray(name, x)
        if x.dtype != sim.real:
            raise InputError(f"{name} is {x.dtype} and this simulator computes in {sim.real}: {WIDER}")
        return x

    def _zeros(self, sim: Simulator, shape: Axes) -> Array:
        if jax.dtypes.canonicalize_dtype(sim.real) != sim.real:
            raise InputError(f"this simulator computes in {sim.real}, which JAX does not have now: {WIDER}")
        return jnp.zeros(shape, sim.real)

    def _broadcast(self, x: Array, shape: Axes) -> Array:
        return jnp.broadcast_to(x, shape)

    def _concatenate(self, pieces: list[Array], axis: int) -> Array:
        return jnp.concatenate(pieces, axis)

    def _wide(self, x: Any) -> Array:
        return _asarray("params", x, float)

    def _apply(self, call: Call, inputs: tuple[Any, ...]) -> tuple[Array, ...]:
        return tuple(operations.apply(call, dict(zip(call.inputs, inputs, strict=True))))


def _asarray(name: str, x: Any, dtype: Any = None) -> Array:
    """Return an array of JAX; an InputError that names the argument for other types."""
    try:
        if x is None or isinstance(x, str | bytes):
            raise TypeError
        return jnp.asarray(x, dtype)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is an array of numbers, not {type(x).__name__}") from None


functions = _ArrayFunctions()
step = functions.step
rollout = functions.rollout
contacts = functions.contacts
linearize = functions.linearize
outputs = functions.outputs
sites = functions.sites
sensors = functions.sensors
mass_matrix = functions.mass_matrix
reweighted = functions.reweighted
inverse_dynamics = functions.inverse_dynamics
forward_dynamics = functions.forward_dynamics
