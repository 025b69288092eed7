"""Parameters as arrays of JAX, in native calls: one more call derives the constants that kernels read, another is its adjoint.

One set that all robots share is read in f64, once; one set per robot lies in packs, as steps read it. Python checks
parameters whenever they differ from those of the last call.
"""

from __future__ import annotations

from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..kernels.derived_constants import constants_kernel
from ..model.param_checks import check_signs
from ..model.params import Params
from ..physics.tables import constants_size
from ..simulate.arrays import DIFFERENCE, Axes
from ..simulate.simulator import Simulator
from .gpu_call import call_on
from .xla_call import NativeCall, Place, kept_by_simulator

Sets = bool | None  # True: one set per robot; False: one shared set; None: parameters of the simulator


def sets_of(flat: Array | None, lead: Axes = (), *, every: bool = False) -> Sets:
    """Return the kind of parameter sets of a call. every: one set per robot where there are several, for gradients."""
    if flat is None:
        return None
    if flat.dtype != np.float64:  # in which one set is read
        return True
    return prod(lead[: flat.ndim - 1] if every else flat.shape[:-1]) > 1


@kept_by_simulator
def any_params(sim: Simulator, own: Sets) -> Params:
    """Params such that kernels made for them are right for all numbers."""
    if own is None:
        return sim.params
    params = Params(sim.model, np.repeat(sim.params.flat[None], 2, 0) if own else sim.params.flat)
    params._set(params.model, params.flat, params.checked, frozenset({"damping", "powers"}))
    return params


def fixed(sim: Simulator, own: Sets, **more: Any) -> Any:
    """The arguments of a kernel that stay: its constants under the simulator's own parameters."""
    return lambda batch: more | ({"const": sim.engine.constants(sim.params, batch)} if own is None else {})


def const_places(sim: Simulator, own: Sets) -> list[Place]:
    """The constants as an operand, where they are not the simulator's own."""
    if own is None:
        return []
    size = constants_size(sim.model)
    return [Place("const", _packed(sim, size) if own else lambda robots: (size,), "const", whole=True)]


def const_bar_place(sim: Simulator) -> Place:
    """Their cotangents, which are those of each robot."""
    return Place("const_bar", _packed(sim, _bars(sim)), "const_bar", whole=True, cleared=True)


def constants(sim: Simulator, flat: Array, lead: Axes, own: Sets) -> Array:
    """Return the constants that kernels read, in the layout of `const_places`."""
    if own:
        rows = _rows(flat, lead).astype(sim.real)
        return _constants(sim, True)((prod(lead),), 1, rows)[0]
    return _constants(sim, False)((), 1, flat.reshape(-1))[0][0, :, 0].astype(sim.real)


def params_bar(sim: Simulator, flat: Array, lead: Axes, own: Sets, const_bar: Array) -> Array:
    """The cotangent of parameters with all leading axes that they have, from those of the constants."""
    axes = lead[: flat.ndim - 1]
    if own:
        rows = _rows(flat, lead).astype(sim.real)
        bars = _constants_vjp(sim, True)((prod(lead),), 1, rows, const_bar)[0]
        return bars.reshape(*axes, -1, bars.shape[-1]).sum(-2).astype(flat.dtype)
    every = const_bar.transpose(0, 2, 1).reshape(-1, const_bar.shape[1])[: prod(lead)]
    total = every.astype(flat.dtype).sum(0).reshape(1, -1, 1)
    total = jnp.broadcast_to(total, (1, total.shape[1], _lanes(sim)))
    return _constants_vjp(sim, False)((), 1, flat.reshape(-1), total)[0].reshape(*axes, -1)


def _rows(flat: Array, lead: Axes) -> Array:
    """One set per robot."""
    n, missing = flat.shape[-1], len(lead) - (flat.ndim - 1)
    spread = flat.reshape(*flat.shape[:-1], *(1,) * missing, n)
    return jnp.broadcast_to(spread, (*lead, n)).reshape(-1, n)


def _bars(sim: Simulator) -> int:
    return constants_size(sim.model, bars=True)


def _packed(sim: Simulator, size: int) -> Any:
    """Return the shape of an array in packs, as a function of the number of robots."""

    def shape(robots: int) -> Axes:
        lanes = sim.engine.device.target(robots).lanes
        return -(-robots // lanes), size, lanes

    return shape


def _lanes(sim: Simulator) -> int:
    """Return the number of lanes of a set that robots share."""
    return 1 if sim.checks.on_host else sim.engine.device.target(1).lanes


# -- the two calls -----------------------------------------------------------------------------------------------------------
@kept_by_simulator
def _constants(sim: Simulator, own: bool) -> NativeCall:
    """params -> const"""
    size = constants_size(sim.model)

    def check(when: int, rows: dict[str, np.ndarray]) -> None:
        params = Params(sim.model, rows["params"] if own else rows["params"][0])
        sim.engine.check(params)
        check_signs(params, DIFFERENCE)

    given = [Place("params", lambda steps: (sim.model.param_size,), "params", checked=True)]
    found = [Place("const", _packed(sim, size) if own else lambda robots: (1, size, _lanes(sim)), "out", whole=True)]
    return _call(sim, own, (given, found), check, backward=False)


@kept_by_simulator
def _constants_vjp(sim: Simulator, own: bool) -> NativeCall:
    """(params, const_bar) -> params_bar"""
    n, size = sim.model.param_size, _bars(sim)
    bars = _packed(sim, size) if own else lambda robots: (1, size, _lanes(sim))
    given = [Place("params", lambda steps: (n,), "params"), Place("const_bar", bars, "out_bar", whole=True)]
    found = [Place("params_bar", lambda steps: (n,), "params_bar", cleared=True, finite=True)]

    def check(when: int, rows: dict[str, np.ndarray]) -> None:
        if "params_bar" in rows:
            sim.checks.finite([rows["params_bar"]], len(rows["params_bar"]))

    return _call(sim, own, (given, found), check, backward=True)


def _call(sim: Simulator, own: bool, places: Any, check: Any, *, backward: bool) -> NativeCall:
    real = sim.real if own else np.dtype(np.float64)
    numbers = np.array(sim.options.constant_numbers, real)

    def bound(batch: int) -> Any:
        return constants_kernel(sim.model, sim.engine.device.target(batch), shared=not own, backward=backward)

    return call_on(sim)(sim, bound, places, None, lambda batch: {"soft": numbers}, check, real)
