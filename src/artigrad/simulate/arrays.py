"""Conversion between arrays with any leading axes and rows of batch elements, for PyTorch and JAX; flat parameters.

Leading axes broadcast against each other, aligned at the first axis. Parameters are None for those of the simulator, or flat
arrays (n,) as in `Params.flat`. The leading axes of flat parameters are the first leading axes of the states, so that several
batch elements may share one set. Arrays are NumPy arrays, or tensors on the simulator's GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..model.param_checks import check_signs
from ..model.params import Params

if TYPE_CHECKING:
    from .simulator import Simulator

Axes = tuple[int, ...]
DIFFERENCE = 1e-4  # tolerance below lower bounds of parameters, for finite differences in gradient checks


# -- leading axes ------------------------------------------------------------------------------------------------------
def leading(*arrays: tuple[Any, int]) -> Axes:
    """Return the broadcast leading axes of arrays, each given with its number of trailing axes; None is ignored."""
    leads = [tuple(x.shape[: x.ndim - own]) for x, own in arrays if x is not None]
    if leads.count(leads[0]) == len(leads):  # the usual case, except under vmap; broadcasting takes 10 us
        return leads[0]
    most = max(map(len, leads))
    return np.broadcast_shapes(*(lead + (1,) * (most - len(lead)) for lead in leads))


def in_rows(x: Any, lead: Axes, own: int) -> Any:
    """Return x with its leading axes flattened to one batch axis, contiguous.

    Args:
      x: Array (..., *tail).
      lead: Leading axes that x is broadcast to.
      own: Number of axes of the tail.
    """
    tail = tuple(x.shape[x.ndim - own :])
    if isinstance(x, np.ndarray):
        x = x if x.shape == lead + tail else np.broadcast_to(x, lead + tail)
        return np.ascontiguousarray(x.reshape(prod(lead), *tail))
    return x.expand(*lead, *tail).reshape(prod(lead), *tail).contiguous()


# -- parameters --------------------------------------------------------------------------------------------------------
def params_of(sim: Simulator, flat: np.ndarray | None, lead: Axes, own: bool = False) -> Params:
    """Return flat parameters as Params: one set if all batch elements share it, else one per batch element.

    `own` requests one set per batch element. Params with the same values whose constants are cached are returned again.
    """
    if flat is None:
        return sim.params
    flat = spread_params(flat, lead, own)
    known = sim.engine.cached_params(flat)
    if known is None:
        known = Params(sim.model, flat)
        check_signs(known, DIFFERENCE)
    return known


def spread_params(flat: np.ndarray, lead: Axes, own: bool = False) -> np.ndarray:
    """Return flat parameters (n,) if all batch elements share them and `own` is False, else (batch, n)."""
    n, axes = flat.shape[-1], flat.ndim - 1
    if not own and prod(flat.shape[:-1]) == 1:
        return flat.reshape(n)
    spread = flat.reshape(*flat.shape[:-1], *(1,) * (len(lead) - axes), n)
    return np.broadcast_to(spread, (*lead, n)).reshape(-1, n)


def params_bar(bar: np.ndarray, flat: np.ndarray | None, lead: Axes) -> np.ndarray:
    """Return the cotangent of flat parameters with their leading axes, summed over batch elements that share a set."""
    axes = 0 if flat is None else flat.ndim - 1
    if bar.ndim == 1:
        return np.array(bar).reshape(*(1,) * axes, -1)  # a copy: arrays of Params are read-only
    return bar.reshape(prod(lead[:axes]), -1, bar.shape[-1]).sum(1).reshape(*lead[:axes], -1)


def flatten(
    params: Params,
    fields: Mapping[str, Any],
    broadcast_to: Callable[[Any, Axes], Any],
    concatenate: Callable[[list[Any], int], Any],
    base: Any,
) -> Any:
    """Return Params.flat with some fields replaced, by differentiable operations of a framework.

    Args:
      params: Parameters of the simulator.
      fields: Arrays by field name, each shaped as in Params or with the leading axes of the states first.
      broadcast_to: broadcast_to(x, shape) of the framework.
      concatenate: concatenate(arrays, axis) of the framework.
      base: `params.flat` as an array of the framework.
    """
    slots = sorted((params._slot(name), name) for name in fields)
    leads: set[Axes] = set()
    for (_, shape), name in slots:
        given = tuple(fields[name].shape)
        lead = given[: len(given) - len(shape)]
        if given != lead + shape:
            raise InputError(f"params['{name}'] is {shape}, with the leading axes of the robots before it; not {given}")
        leads |= {lead} if lead else set()
    if len(leads) > 1:
        raise InputError(f"params have fields with different leading axes: {sorted(leads)}")
    lead = next(iter(leads), ())
    pieces, at = [], 0
    for (start, shape), name in slots:
        whole = broadcast_to(fields[name], lead + shape).reshape(*lead, prod(shape))
        pieces += [broadcast_to(base[at:start], (*lead, start - at)), whole]
        at = start + prod(shape)
    return concatenate([*pieces, broadcast_to(base[at:], (*lead, len(base) - at))], -1)
