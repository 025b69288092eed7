"""The functions of a simulator on JAX arrays: under `jit`, `grad`, `vmap` and `lax.scan`, on the CPU.

Steps and rollouts under the simulator's own parameters are native calls from XLA (`native_calls`), everything else is a
callback through Python; `vmap` makes either one call for the whole batch. Gradients are reverse mode: forward mode (`jvp`,
`jacfwd`) and second derivatives raise. `State` and `Params` are pytrees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import InputError
from ..model.params import Params
from ..simulate import differentiable
from ..simulate.arrays import Axes
from ..simulate.differentiable import Call
from ..simulate.family import Functions
from ..simulate.results import Outputs
from ..simulate.simulator import Simulator
from . import native_calls

jax.tree_util.register_pytree_node(
    Params, lambda params: ((params.flat,), params.model), lambda model, leaves: Params.of(model, leaves[0])
)
jax.tree_util.register_pytree_node(  # a named tuple, but for the model that it knows
    Outputs, lambda out: (tuple(out), out.model), lambda model, leaves: Outputs(*leaves).of(model)
)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _apply(call: Call, *inputs: Array | None) -> tuple[Array, ...]:
    """A described function, on arrays."""
    if native_calls.serves(call, inputs[-1]):
        native = partial(native_calls.forward, call)
        return _on_cpu(native, partial(_callback, call), *inputs[:-1])
    return _callback(call, *inputs)


def _callback(call: Call, *inputs: Array | None) -> tuple[Array, ...]:
    """The same through Python."""
    inputs = (*inputs, *(None for _ in range(len(call.function.inputs) - len(inputs))))
    lead = inputs[0].shape[:-1]  # type: ignore[union-attr]
    like = tuple(jax.ShapeDtypeStruct((*lead, *shape), call.sim.real) for shape in call.outputs.values())
    return _native(partial(differentiable.forward, call), like, inputs)


def _apply_forward(call: Call, *inputs: Array | None) -> Any:
    outputs = _apply(call, *inputs)
    return outputs, call.kept(inputs, outputs)


def _apply_backward(call: Call, kept: Any, bars: Any) -> Any:
    return _apply_vjp(call, kept, bars)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _apply_vjp(call: Call, kept: tuple[Array | None, ...], bars: tuple[Array, ...]) -> tuple[Array | None, ...]:
    """Its adjoint: cotangents of all inputs that there are."""
    if native_calls.serves(call, dict(zip(call.function.kept, kept, strict=True))["params"]):
        return _on_cpu(partial(native_calls.backward, call), partial(_callback_vjp, call), kept, bars)
    return _callback_vjp(call, kept, bars)


def _callback_vjp(call: Call, kept: tuple[Array | None, ...], bars: tuple[Array, ...]) -> tuple[Array | None, ...]:
    known = dict(zip(call.function.kept, kept, strict=True))
    flat = known["params"]
    like = tuple(_like_input(call, name, known, bars[0]) for name in call.function.inputs)
    pieces = len(kept)

    def run(given: tuple[Any, ...]) -> tuple[Any, ...]:
        found = differentiable.backward(call, given[:pieces], given[pieces:], flat is not None)
        return tuple(x if y is not None else None for x, y in zip(found, like, strict=True))

    return _native(run, like, (*kept, *bars))


@_apply_vjp.defjvp
def _first_only(*_: Any) -> Any:
    raise InputError("artigrad has first derivatives only: take differences of gradients for second ones")


_apply.defvjp(_apply_forward, _apply_backward)


def _on_cpu(native: Callable[..., Any], callback: Callable[..., Any], *given: Any) -> Any:
    """The native call where a program runs on the CPU, the callback elsewhere."""
    if jax.default_backend() == "cpu":
        return native(*given)
    return jax.lax.platform_dependent(*given, cpu=native, default=callback)


def _like_input(call: Call, name: str, known: dict[str, Array | None], bar: Array) -> Any:
    """Shape and dtype of an input, of which the adjoint may have kept only states that it led to."""
    if name in known:
        x = known[name]
        return None if x is None else jax.ShapeDtypeStruct(x.shape, x.dtype)
    lead = bar.shape[: bar.ndim - next(iter(call.bar_axes.values()))]
    return jax.ShapeDtypeStruct((*lead, {"q": call.sim.model.nq, "v": call.sim.model.nv}[name]), call.sim.real)


def _native(call: Callable[[tuple[Any, ...]], Any], like: tuple[Any, ...], inputs: tuple[Any, ...]) -> Any:
    """call(inputs) on arrays, as a callback. Under vmap an input without the new axis gets one of length one, so that what
    robots share stays shared."""

    def run(*given: Any) -> tuple[np.ndarray | None, ...]:
        found = call(tuple(None if x is None else np.asarray(x) for x in given))
        return tuple(None if y is None else np.asarray(x, y.dtype) for x, y in zip(found, like, strict=True))

    return jax.pure_callback(run, like, *inputs, vmap_method="expand_dims")


class _ArrayFunctions(Functions):
    def _array(self, sim: Simulator, name: str, x: Any) -> Array:
        if not sim.checks.on_host:
            raise InputError(
                f"artigrad.jax runs on the CPU, not on '{sim.device}': make a Simulator(model), or call sim.rollout and "
                "sim.vjp of this one, which take arrays of the GPU"
            )
        x = jnp.asarray(x)
        if x.dtype != sim.real:
            raise InputError(
                f"{name} is {x.dtype} and this simulator computes in {sim.real}: make a Simulator(dtype='f32'), or call "
                "jax.config.update('jax_enable_x64', True) and pass float64"
            )
        return x

    def _zeros(self, sim: Simulator, shape: Axes) -> Array:
        return jnp.zeros(shape, sim.real)

    def _broadcast(self, x: Array, shape: Axes) -> Array:
        return jnp.broadcast_to(x, shape)

    def _concatenate(self, pieces: list[Array], axis: int) -> Array:
        return jnp.concatenate(pieces, axis)

    def _wide(self, x: Any) -> Array:
        return jnp.asarray(x, float)

    def _apply(self, call: Call, inputs: tuple[Any, ...]) -> tuple[Array, ...]:
        return _apply(call, *inputs)


functions = _ArrayFunctions()
step = functions.step
rollout = functions.rollout
contacts = functions.contacts
linearize = functions.linearize
outputs = functions.outputs
sites = functions.sites
sensors = functions.sensors
mass_matrix = functions.mass_matrix
inverse_dynamics = functions.inverse_dynamics
forward_dynamics = functions.forward_dynamics
