"""Steps, rollouts and sites on plain arrays with any leading axes, and their adjoints: what PyTorch and JAX call.

Leading axes broadcast against each other. Parameters are `None` for the simulator's own, or flat arrays (n,) as in
`Params.flat`; leading axes of those are the first of the leading axes of the states, so that one set may serve several
robots. An adjoint reads the states that the rollout gave and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..model.params import Params
from ..model.state import State
from .cotangents import Cotangents, LossBars
from .engine import Inputs
from .results import Outputs
from .simulator import Simulator

Axes = tuple[int, ...]


class ArrayBars(NamedTuple):
    """Cotangents of the inputs of a step or a rollout, with all leading axes; of the parameters with their own, or None."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    params: np.ndarray | None


def rollout(
    sim: Simulator, q0: np.ndarray, v0: np.ndarray, u: np.ndarray, flat: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v)[t+1] = step((q, v)[t], u[t]): arrays (..., T+1, nq) and (..., T+1, nv) from u (..., T, nu)"""
    lead = _leading((q0, 1), (v0, 1), (u, 2), (flat, 1))
    traj = sim.rollout(
        State(_rows(q0, lead, 1), _rows(v0, lead, 1)), _rows(u, lead, 2), params=params_of(sim, flat, lead)
    )
    if sim.options.law == "soft":  # whose adjoint does not solve again, and has nothing to tell
        sim.checks.warn_if_unsolved(traj.violation)
    q, v = traj.kept[0]
    return q.reshape(*lead, *q.shape[1:]), v.reshape(*lead, *v.shape[1:])


def rollout_vjp(
    sim: Simulator,
    q: np.ndarray,
    v: np.ndarray,
    u: np.ndarray,
    flat: np.ndarray | None,
    q_bar: np.ndarray | None,
    v_bar: np.ndarray | None,
    with_params: bool,
) -> ArrayBars:
    """The cotangents of q0, v0, u and the parameters for those of all states; q and v are what `rollout` gave."""
    lead = _leading((q, 2), (v, 2), (u, 2), (flat, 1), (q_bar, 2), (v_bar, 2))
    states = State(_rows(q, lead, 2), _rows(v, lead, 2))
    bars = [None if x is None else _rows(x, lead, 2) for x in (q_bar, v_bar)]
    return _backward(sim, lead, states, _rows(u, lead, 2), flat, bars[0], bars[1], with_params)


def step(
    sim: Simulator, q: np.ndarray, v: np.ndarray, u: np.ndarray, flat: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """(q', v') = step(q, v, u): arrays (..., nq) and (..., nv) from u (..., nu)"""
    q_all, v_all = rollout(sim, q, v, u[..., None, :], flat)
    return q_all[..., 1, :], v_all[..., 1, :]


def step_vjp(
    sim: Simulator,
    q: np.ndarray,
    v: np.ndarray,
    u: np.ndarray,
    flat: np.ndarray | None,
    v_next: np.ndarray,
    q_bar: np.ndarray | None,
    v_bar: np.ndarray | None,
    with_params: bool,
) -> ArrayBars:
    """The cotangents of q, v, u and the parameters for those of the next state, whose velocities are v_next."""
    lead = _leading((q, 1), (v, 1), (u, 1), (flat, 1), (v_next, 1), (q_bar, 1), (v_bar, 1))
    speeds = np.stack([_rows(v, lead, 1), _rows(v_next, lead, 1)], 1)
    states = State(_rows(q, lead, 1)[:, None], speeds)
    last = [None if x is None else _rows(x, lead, 1) for x in (q_bar, v_bar)]
    bars = _backward(sim, lead, states, _rows(u, lead, 1)[:, None], flat, last[0], last[1], with_params)
    return bars._replace(u=bars.u[..., 0, :])


def sites(sim: Simulator, q: np.ndarray, flat: np.ndarray | None) -> np.ndarray:
    """p(q): positions (..., ns, 3) of all sites in the world."""
    lead = _leading((q, 1), (flat, 1))
    out = sim.sites(_at_rest(sim, q, lead), params=params_of(sim, flat, lead))
    return out.reshape(*lead, sim.model.ns, 3)


def sites_vjp(
    sim: Simulator, q: np.ndarray, flat: np.ndarray | None, p_bar: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The cotangents of q and of the parameters for that of the positions."""
    lead = _leading((q, 1), (flat, 1), (p_bar, 2))
    own = flat is not None and prod(lead[: flat.ndim - 1]) > 1
    bars = Outputs(site_position=_rows(p_bar, lead, 2))
    grad = sim.outputs_vjp(_at_rest(sim, q, lead), bars, params=params_of(sim, flat, lead, own))
    return grad.q.reshape(*lead, sim.model.nq), _params_bar(grad.params.flat, flat, lead)


def _backward(
    sim: Simulator,
    lead: Axes,
    states: State,
    u: np.ndarray,
    flat: np.ndarray | None,
    q_bar: np.ndarray | None,
    v_bar: np.ndarray | None,
    with_params: bool,
) -> ArrayBars:
    """The adjoint of the steps with these states; of the last one only v is read. Inputs were checked on the forward pass."""
    batch, steps = u.shape[:2]
    for name, bar in (("q_bar", q_bar), ("v_bar", v_bar)):
        if bar is not None:
            sim.checks.numbers(name, bar)
    own = with_params and flat is not None and prod(lead[: flat.ndim - 1]) > 1
    inputs = Inputs(batch, u, None, params_of(sim, flat, lead, own))
    back = Cotangents(sim.engine, inputs, LossBars(q_bar, v_bar), with_params)
    back.segment(states, 0, steps)
    sim.checks.warn_if_unsolved(back.health[:, 0])
    params = back.params_gradient()
    sim.checks.finite([back.q_bar, back.v_bar, back.u_bar] + ([] if params is None else [params.flat]), batch)
    q0, v0, u_bar = (x.reshape(*lead, *x.shape[1:]) for x in (back.q_bar, back.v_bar, back.u_bar))
    return ArrayBars(q0, v0, u_bar, None if params is None else _params_bar(params.flat, flat, lead))


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


def on_cpu(sim: Simulator) -> None:
    """Raise for a simulator whose arrays are not in the computer's own memory."""
    if sim.device != "cpu":
        raise InputError(
            f"artigrad.torch and artigrad.jax run on the CPU, not on '{sim.device}': make a Simulator(model), or call "
            "sim.rollout and sim.vjp of this one, which take tensors of the GPU"
        )


# -- leading axes ------------------------------------------------------------------------------------------------------
def _leading(*arrays: tuple[np.ndarray | None, int]) -> Axes:
    """The leading axes of all arrays together; each comes with how many axes are its own.

    Axes line up at the front, so that one axis of parameters is the first of two axes of states.
    """
    leads = [x.shape[: x.ndim - own] for x, own in arrays if x is not None]
    if leads.count(leads[0]) == len(leads):  # as always but under vmap: what follows takes 10 us
        return leads[0]
    most = max(map(len, leads))
    return np.broadcast_shapes(*(lead + (1,) * (most - len(lead)) for lead in leads))


def _rows(x: np.ndarray, lead: Axes, own: int) -> np.ndarray:
    """x with one row per robot in place of the leading axes, contiguous as kernels want it."""
    tail = x.shape[x.ndim - own :]
    if x.shape[: x.ndim - own] != lead:
        x = np.broadcast_to(x, lead + tail)
    return np.ascontiguousarray(x.reshape(prod(lead), *tail))


def _at_rest(sim: Simulator, q: np.ndarray, lead: Axes) -> State:
    return State(_rows(q, lead, 1), np.zeros((prod(lead), sim.model.nv), q.dtype))


def params_of(sim: Simulator, flat: np.ndarray | None, lead: Axes, own: bool = False) -> Params:
    """One set if all robots share it, else one per robot; `own` asks for the latter. The last ones are used again."""
    if flat is None:
        return sim.params
    n, axes = flat.shape[-1], flat.ndim - 1
    if not own and prod(flat.shape[:-1]) == 1:
        flat = flat.reshape(n)
    else:
        spread = flat.reshape(*flat.shape[:-1], *(1,) * (len(lead) - axes), n)
        flat = np.broadcast_to(spread, (*lead, n)).reshape(-1, n)
    return sim.engine.known_params(flat) or Params(sim.model, flat)


def _params_bar(bar: np.ndarray, flat: np.ndarray | None, lead: Axes) -> np.ndarray:
    """The cotangent of flat parameters with their own leading axes: summed over the robots that shared a set."""
    axes = 0 if flat is None else flat.ndim - 1
    if bar.ndim == 1:
        return np.array(bar).reshape(*(1,) * axes, -1)  # that of Params cannot be written to
    return bar.reshape(prod(lead[:axes]), -1, bar.shape[-1]).sum(1).reshape(*lead[:axes], -1)
