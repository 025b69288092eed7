"""Steps, rollouts and sites on tensors, with autograd.

A backward pass reads the states of the rollout, its controls and its parameters; nothing else is kept. Only first
derivatives exist: differentiating a gradient raises. Under `torch.compile` each call is a break in the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import arrays
from ..errors import InputError
from ..simulator import Simulator
from .door import Fields, first_only, flat_params, memory, native, tensor


@native
def step(sim: Simulator, q: Tensor, v: Tensor, u: Tensor, params: Fields = None) -> tuple[Tensor, Tensor]:
    """(q', v') = step(q, v, u): the state one dt later.

    q (..., nq), v (..., nv), u (..., nu): tensors of the simulator's dtype on the CPU, with any leading axes, which
    broadcast. params: fields of `Params` by name, as tensors (a field shaped as in `Params`, or with all leading axes
    before it), or a module that returns them when called; the others are the simulator's own. The gradient of q is
    ambient: a quaternion may have any length near one and stands for the rotation of q/|q|.
    """
    q_all, v_all = rollout(sim, q, v, tensor(sim, "u", u, sim.model.nu).unsqueeze(-2), params)
    return q_all[..., 1, :], v_all[..., 1, :]


@native
def rollout(sim: Simulator, q0: Tensor, v0: Tensor, u: Tensor, params: Fields = None) -> tuple[Tensor, Tensor]:
    """q (..., T+1, nq), v (..., T+1, nv): all states from (q0, v0) under controls u (..., T, nu); see `step`."""
    m = sim.model
    q0, v0, u = tensor(sim, "q", q0, m.nq), tensor(sim, "v", v0, m.nv), tensor(sim, "u", u, m.nu)
    if u.ndim < 2:
        raise InputError(f"controls of a rollout are (..., T, {m.nu}), not {tuple(u.shape)}")
    try:
        lead = np.broadcast_shapes(q0.shape[:-1], v0.shape[:-1], u.shape[:-2])
    except ValueError:
        given = ", ".join(str(tuple(x)) for x in (q0.shape[:-1], v0.shape[:-1], u.shape[:-2]))
        raise InputError(f"the leading axes of q, v and u do not broadcast: {given}") from None
    q0, v0, u = q0.expand(*lead, m.nq), v0.expand(*lead, m.nv), u.expand(*lead, *u.shape[-2:])
    return _Rollout.apply(sim, q0, v0, u, flat_params(sim, params, lead))


@native
def sites(sim: Simulator, q: Tensor, params: Fields = None) -> Tensor:
    """p(q): positions (..., ns, 3) of all sites in the world, m; see `step`."""
    q = tensor(sim, "q", q, sim.model.nq)
    return _Sites.apply(sim, q, flat_params(sim, params, tuple(q.shape[:-1])))


class _Rollout(torch.autograd.Function):
    """arrays.rollout and its adjoint."""

    @staticmethod
    def forward(ctx: Any, sim: Simulator, q0: Tensor, v0: Tensor, u: Tensor, flat: Tensor | None) -> Any:
        q, v = map(torch.from_numpy, arrays.rollout(sim, memory(q0), memory(v0), memory(u), memory(flat)))
        ctx.sim = sim
        ctx.save_for_backward(q, v, u, flat)
        ctx.set_materialize_grads(False)
        return q, v

    @staticmethod
    def backward(ctx: Any, q_bar: Tensor | None, v_bar: Tensor | None) -> Any:
        given, needed = (*ctx.saved_tensors, q_bar, v_bar), ctx.needs_input_grad[1:]
        bars = arrays.rollout_vjp(ctx.sim, *map(memory, given), with_params=needed[3])  # type: ignore[misc]
        return None, *first_only(_tensors(bars), needed, given)


class _Sites(torch.autograd.Function):
    """arrays.sites and its adjoint."""

    @staticmethod
    def forward(ctx: Any, sim: Simulator, q: Tensor, flat: Tensor | None) -> Any:
        ctx.sim = sim
        ctx.save_for_backward(q, flat)
        return torch.from_numpy(arrays.sites(sim, memory(q), memory(flat)))

    @staticmethod
    def backward(ctx: Any, p_bar: Tensor) -> Any:
        given = (*ctx.saved_tensors, p_bar)
        bars = arrays.sites_vjp(ctx.sim, *map(memory, given))
        return None, *first_only(_tensors(bars), ctx.needs_input_grad[1:], given)


def _tensors(bars: tuple[np.ndarray | None, ...]) -> tuple[Tensor | None, ...]:
    return tuple(None if x is None else torch.from_numpy(x) for x in bars)
