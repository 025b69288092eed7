"""Steps, rollouts and sites on tensors, with autograd.

A backward pass reads the states of the rollout, its controls and its parameters; nothing else is kept. Only first
derivatives exist: differentiating a gradient raises. Under `torch.compile` each call is a break in the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from ..simulate import arrays
from ..simulate.simulator import Simulator
from .tensor_checks import Fields, first_only, flat_params, memory, native, tensor


@native
def step(sim: Simulator, q: Tensor, v: Tensor, u: Tensor, params: Fields = None) -> tuple[Tensor, Tensor]:
    """(q', v') = step(q, v, u): the state one dt later.

    q (..., nq), v (..., nv), u (..., nu): tensors of the simulator's dtype on the CPU, with any leading axes, which
    broadcast. params: fields of `Params` by name, as tensors (a field shaped as in `Params`, or with all leading axes
    before it), or a module that returns them when called; the others are the simulator's own. The gradient of q is
    ambient: a quaternion may have any length near one and stands for the rotation of q/|q|.
    """
    m = sim.model
    q, v, u = tensor(sim, "q", q, m.nq), tensor(sim, "v", v, m.nv), tensor(sim, "u", u, m.nu)
    q, v, u = _aligned(q, v, u, 1)
    return _Step.apply(sim, q, v, u, flat_params(sim, params, q.shape[:-1]))


@native
def rollout(sim: Simulator, q0: Tensor, v0: Tensor, u: Tensor, params: Fields = None) -> tuple[Tensor, Tensor]:
    """q (..., T+1, nq), v (..., T+1, nv): all states from (q0, v0) under controls u (..., T, nu); see `step`."""
    m = sim.model
    q0, v0, u = tensor(sim, "q", q0, m.nq), tensor(sim, "v", v0, m.nv), tensor(sim, "u", u, m.nu)
    if u.ndim < 2:
        raise InputError(f"controls of a rollout are (..., T, {m.nu}), not {tuple(u.shape)}")
    q0, v0, u = _aligned(q0, v0, u, 2)
    return _Rollout.apply(sim, q0, v0, u, flat_params(sim, params, q0.shape[:-1]))


@native
def sites(sim: Simulator, q: Tensor, params: Fields = None) -> Tensor:
    """p(q): positions (..., ns, 3) of all sites in the world, m; see `step`."""
    q = tensor(sim, "q", q, sim.model.nq)
    return _Sites.apply(sim, q, flat_params(sim, params, q.shape[:-1]))


def _aligned(q: Tensor, v: Tensor, u: Tensor, own: int) -> tuple[Tensor, Tensor, Tensor]:
    """All three with the same leading axes; `own` axes of u are its own."""
    leads = q.shape[:-1], v.shape[:-1], u.shape[:-own]
    if leads[0] == leads[1] == leads[2]:
        return q, v, u
    try:
        lead = np.broadcast_shapes(*leads)
    except ValueError:
        given = ", ".join(str(tuple(x)) for x in leads)
        raise InputError(f"the leading axes of q, v and u do not broadcast: {given}") from None
    return q.expand(*lead, -1), v.expand(*lead, -1), u.expand(*lead, *u.shape[-own:])


class _Step(torch.autograd.Function):
    """arrays.step and its adjoint."""

    @staticmethod
    def forward(ctx: Any, sim: Simulator, q: Tensor, v: Tensor, u: Tensor, flat: Tensor | None) -> Any:
        after = arrays.step(sim, memory(q), memory(v), memory(u), memory(flat))
        q_next, v_next = map(torch.from_numpy, after)
        ctx.sim = sim
        ctx.save_for_backward(q, v, u, flat, v_next)
        ctx.set_materialize_grads(False)
        return q_next, v_next

    @staticmethod
    def backward(ctx: Any, q_bar: Tensor | None, v_bar: Tensor | None) -> Any:
        given, needed = (*ctx.saved_tensors, q_bar, v_bar), ctx.needs_input_grad[1:]
        bars = arrays.step_vjp(ctx.sim, *map(memory, given), with_params=needed[3])  # type: ignore[misc]
        return None, *first_only(bars, needed, given)


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
        return None, *first_only(bars, needed, given)


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
        return None, *first_only(bars, ctx.needs_input_grad[1:], given)
