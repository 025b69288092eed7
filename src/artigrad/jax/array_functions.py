"""The physics on JAX arrays: `step`, `rollout` and `sites` under `jit`, `grad`, `vmap` and `lax.scan`, on the CPU.

Each call is a callback into the native code; `vmap` makes it one call for the whole batch. Gradients are reverse mode:
forward mode (`jvp`, `jacfwd`) and second derivatives raise. A rollout is one callback where a scan of steps is many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import InputError
from ..simulate import arrays
from ..simulate.simulator import Simulator

Fields = Mapping[str, Any] | None
Flat = Array | None


def step(sim: Simulator, q: Array, v: Array, u: Array, params: Fields = None) -> tuple[Array, Array]:
    """(q', v') = step(q, v, u): the state one dt later.

    q (..., nq), v (..., nv), u (..., nu): arrays of the simulator's dtype with any leading axes, which broadcast. params:
    fields of `Params` by name (a field shaped as in `Params`, or with all leading axes before it); the others are the
    simulator's own. The gradient of q is ambient: a quaternion may have any length near one and stands for q/|q|.
    """
    q_all, v_all = rollout(sim, q, v, _array(sim, "u", u, sim.model.nu)[..., None, :], params)
    return q_all[..., 1, :], v_all[..., 1, :]


def rollout(sim: Simulator, q0: Array, v0: Array, u: Array, params: Fields = None) -> tuple[Array, Array]:
    """q (..., T+1, nq), v (..., T+1, nv): all states from (q0, v0) under controls u (..., T, nu); see `step`."""
    m = sim.model
    q0, v0, u = _array(sim, "q", q0, m.nq), _array(sim, "v", v0, m.nv), _array(sim, "u", u, m.nu)
    if u.ndim < 2:
        raise InputError(f"controls of a rollout are (..., T, {m.nu}), not {u.shape}")
    try:
        lead = np.broadcast_shapes(q0.shape[:-1], v0.shape[:-1], u.shape[:-2])
    except ValueError:
        given = f"{q0.shape[:-1]}, {v0.shape[:-1]}, {u.shape[:-2]}"
        raise InputError(f"the leading axes of q, v and u do not broadcast: {given}") from None
    q0, v0, u = (jnp.broadcast_to(x, (*lead, *x.shape[-own:])) for x, own in ((q0, 1), (v0, 1), (u, 2)))
    return _rollout(sim, q0, v0, u, _flat(sim, params, lead))


def sites(sim: Simulator, q: Array, params: Fields = None) -> Array:
    """p(q): positions (..., ns, 3) of all sites in the world, m; see `step`."""
    q = _array(sim, "q", q, sim.model.nq)
    return _sites(sim, q, _flat(sim, params, q.shape[:-1]))


# -- rollouts ----------------------------------------------------------------------------------------------------------
@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rollout(sim: Simulator, q0: Array, v0: Array, u: Array, flat: Flat) -> tuple[Array, Array]:
    rows = u.shape[-2] + 1
    like = (_like(q0, (*q0.shape[:-1], rows, sim.model.nq)), _like(v0, (*v0.shape[:-1], rows, sim.model.nv)))
    return _native(partial(arrays.rollout, sim), like, q0, v0, u, flat)


def _rollout_forward(sim: Simulator, q0: Array, v0: Array, u: Array, flat: Flat) -> Any:
    q, v = _rollout(sim, q0, v0, u, flat)
    return (q, v), (q, v, u, flat)


def _rollout_backward(sim: Simulator, kept: Any, bars: Any) -> Any:
    return _rollout_vjp(sim, *kept, *bars)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _rollout_vjp(sim: Simulator, q: Array, v: Array, u: Array, flat: Flat, q_bar: Array, v_bar: Array) -> Any:
    call = partial(arrays.rollout_vjp, sim, with_params=flat is not None)
    first = [_like(x, (*x.shape[:-2], x.shape[-1])) for x in (q, v)]
    return _native(call, (*first, _like(u), _like(flat)), q, v, u, flat, q_bar, v_bar)


# -- sites -------------------------------------------------------------------------------------------------------------
@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _sites(sim: Simulator, q: Array, flat: Flat) -> Array:
    (positions,) = _native(
        lambda *given: (arrays.sites(sim, *given),), (_like(q, (*q.shape[:-1], sim.model.ns, 3)),), q, flat
    )
    return positions


def _sites_forward(sim: Simulator, q: Array, flat: Flat) -> Any:
    return _sites(sim, q, flat), (q, flat)


def _sites_backward(sim: Simulator, kept: Any, p_bar: Array) -> Any:
    return _sites_vjp(sim, *kept, p_bar)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _sites_vjp(sim: Simulator, q: Array, flat: Flat, p_bar: Array) -> Any:
    return _native(partial(arrays.sites_vjp, sim), (_like(q), _like(flat)), q, flat, p_bar)


def _first_only(*_: Any) -> Any:
    raise InputError("artigrad has first derivatives only: take differences of gradients for second ones")


_rollout.defvjp(_rollout_forward, _rollout_backward)
_rollout_vjp.defjvp(_first_only)
_sites.defvjp(_sites_forward, _sites_backward)
_sites_vjp.defjvp(_first_only)


# -- the way to native code --------------------------------------------------------------------------------------------
def _like(x: Flat, shape: tuple[int, ...] | None = None) -> jax.ShapeDtypeStruct | None:
    return None if x is None else jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype)


def _native(call: Callable[..., Any], like: tuple[Any, ...], *inputs: Flat) -> Any:
    """call(*inputs) on arrays, as a callback. Under vmap an input without the new axis gets one of length one, so that what
    robots share stays shared."""

    def run(*given: Any) -> tuple[np.ndarray | None, ...]:
        found = call(*(None if x is None else np.asarray(x) for x in given))
        return tuple(None if y is None else np.asarray(x, y.dtype) for x, y in zip(found, like, strict=True))

    return jax.pure_callback(run, like, *inputs, vmap_method="expand_dims")


def _array(sim: Simulator, name: str, x: Any, n: int) -> Array:
    """x (..., n), checked. Values are looked at by the simulator's own checks when the program runs."""
    arrays.on_cpu(sim)
    x = jnp.asarray(x)
    if x.dtype != sim.real:
        raise InputError(
            f"{name} is {x.dtype} and this simulator computes in {sim.real}: make a Simulator(dtype='f32'), or call "
            "jax.config.update('jax_enable_x64', True) and pass float64"
        )
    if x.ndim < 1 or x.shape[-1] != n:
        raise InputError(f"{name} of '{sim.model.name}' is (..., {n}), not {x.shape}")
    return x


def _flat(sim: Simulator, params: Fields, lead: tuple[int, ...]) -> Flat:
    """All parameters as one array of JAX's widest float, (n,) or (*lead, n); None for the simulator's own."""
    if params is None:
        return None
    if not isinstance(params, Mapping):
        raise InputError(f"params is a mapping from names to arrays, not {type(params).__name__}")
    fields = {name: jnp.asarray(x, float) for name, x in params.items()}
    flat = arrays.flatten(sim.params, fields, jnp.broadcast_to, jnp.concatenate, jnp.asarray(sim.params.flat))
    if flat.ndim > 1 and flat.shape[:-1] != lead:
        raise InputError(f"params have leading axes {flat.shape[:-1]}, but the robots {lead}")
    return flat
