"""Arrays with any leading axes, and parameters as flat arrays: how the calls of PyTorch and JAX become rows of robots.

Leading axes broadcast against each other and line up at the front. Parameters are `None` for the simulator's own, or flat
arrays (n,) as in `Params.flat`; leading axes of those are the first of the leading axes of the states, so that one set may
serve several robots. Arrays are NumPy's, or tensors on the simulator's GPU.
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
DIFFERENCE = 1e-4  # by how much the differences of a check of gradients may leave what robots have


# -- leading axes ------------------------------------------------------------------------------------------------------
def leading(*arrays: tuple[Any, int]) -> Axes:
    """The leading axes of all arrays together; each comes with how many axes are its own. None has none."""
    leads = [tuple(x.shape[: x.ndim - own]) for x, own in arrays if x is not None]
    if leads.count(leads[0]) == len(leads):  # as always but under vmap: what follows takes 10 us
        return leads[0]
    most = max(map(len, leads))
    return np.broadcast_shapes(*(lead + (1,) * (most - len(lead)) for lead in leads))


def in_rows(x: Any, lead: Axes, own: int) -> Any:
    """x with one row per robot in place of the leading axes, contiguous as kernels want it."""
    tail = tuple(x.shape[x.ndim - own :])
    if isinstance(x, np.ndarray):
        x = x if x.shape == lead + tail else np.broadcast_to(x, lead + tail)
        return np.ascontiguousarray(x.reshape(prod(lead), *tail))
    return x.expand(*lead, *tail).reshape(prod(lead), *tail).contiguous()


# -- parameters --------------------------------------------------------------------------------------------------------
def params_of(sim: Simulator, flat: np.ndarray | None, lead: Axes, own: bool = False) -> Params:
    """One set if all robots share it, else one per robot; `own` asks for the latter. The last ones are used again."""
    if flat is None:
        return sim.params
    flat = spread_params(flat, lead, own)
    known = sim.engine.known_params(flat)
    if known is None:
        known = Params(sim.model, flat)
        check_signs(known, DIFFERENCE)
    return known


def spread_params(flat: np.ndarray, lead: Axes, own: bool = False) -> np.ndarray:
    """(n,) if all robots share them and are not asked to have their `own`, else (robots, n)."""
    n, axes = flat.shape[-1], flat.ndim - 1
    if not own and prod(flat.shape[:-1]) == 1:
        return flat.reshape(n)
    spread = flat.reshape(*flat.shape[:-1], *(1,) * (len(lead) - axes), n)
    return np.broadcast_to(spread, (*lead, n)).reshape(-1, n)


def params_bar(bar: np.ndarray, flat: np.ndarray | None, lead: Axes) -> np.ndarray:
    """The cotangent of flat parameters with their own leading axes: summed over the robots that shared a set."""
    axes = 0 if flat is None else flat.ndim - 1
    if bar.ndim == 1:
        return np.array(bar).reshape(*(1,) * axes, -1)  # that of Params cannot be written to
    return bar.reshape(prod(lead[:axes]), -1, bar.shape[-1]).sum(1).reshape(*lead[:axes], -1)


def flatten(
    params: Params,
    fields: Mapping[str, Any],
    broadcast_to: Callable[[Any, Axes], Any],
    concatenate: Callable[[list[Any], int], Any],
    base: Any,
) -> Any:
    """Params.flat with some fields replaced, in a framework's own operations, so that it can be differentiated.

    fields: by name, each shaped as in Params or with the leading axes of the robots first. base: `params.flat` as an
    array of the framework.
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
