"""A policy in the loop: policy and physics in turn, and back through both.

    u[t] = policy(q[t], v[t], t),   (q, v)[t+1] = step((q, v)[t], u[t])

Kept are states and controls. On the backward pass the policy is evaluated once more at each step, so that memory does not
grow with the size of the network. What a policy remembers from step to step (noise drawn inside, a recurrent state) is
not there on the backward pass: that it gives the same controls again is checked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InputError
from ..kernels.devices import all_finite
from ..model.state import State
from ..simulate.arrays import params_of
from ..simulate.cotangents import Cotangents, LossBars
from ..simulate.engine import Inputs
from ..simulate.simulator import Simulator
from .tensor_checks import Fields, first_only, flat_params, memory, native, tensor


class Loop(NamedTuple):
    """States q (..., T+1, nq), v (..., T+1, nv) and controls u (..., T, nu) of a closed loop."""

    q: Tensor
    v: Tensor
    u: Tensor


class _Tricks(NamedTuple):
    """How the cotangent of the states is kept from growing on its way back in time."""

    decay: float
    clip: float | None
    truncate: int | None


@native
def closed_loop(
    sim: Simulator,
    policy: nn.Module,
    state: tuple[Tensor, Tensor],
    steps: int,
    params: Fields = None,
    *,
    decay: float = 1.0,
    clip: float | None = None,
    truncate: int | None = None,
) -> Loop:
    """The states and controls of `steps` steps under a policy, differentiable with respect to its weights, the first
    state and `params` (see `artigrad.torch.step`).

    policy: a module; policy(q, v, t) gives the controls (..., nu) at step t, the same ones whenever it is asked.
    decay: the cotangent of the states is multiplied by it for each step back in time. clip: the norm that the cotangent
    of each robot's state is cut down to before each step back. truncate: gradients of later steps do not pass the states
    at multiples of this many steps.
    """
    q, v = state
    q, v = tensor(sim, "q", q, sim.model.nq), tensor(sim, "v", v, sim.model.nv)
    if q.shape[:-1] != v.shape[:-1]:
        raise InputError(f"q and v have the same leading axes, not {tuple(q.shape[:-1])} and {tuple(v.shape[:-1])}")
    if not isinstance(policy, nn.Module):
        raise InputError(f"the policy is a torch.nn.Module, so that its weights are known; not {type(policy).__name__}")
    for name, value in (("steps", steps), ("truncate", truncate)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise InputError(f"{name} is a whole number, at least 1, not {value!r}")
    weights = [w for w in policy.parameters() if w.requires_grad]
    flat, tricks = flat_params(sim, params, q.shape[:-1]), _Tricks(decay, clip, truncate)
    return Loop(*_ClosedLoop.apply(sim, policy, steps, tricks, q, v, flat, *weights))


class _ClosedLoop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        sim: Simulator,
        policy: nn.Module,
        steps: int,
        tricks: _Tricks,
        q0: Tensor,
        v0: Tensor,
        flat: Tensor | None,
        *weights: Tensor,
    ) -> Any:
        lead, m = q0.shape[:-1], sim.model
        q, v = q0.new_empty(*lead, steps + 1, m.nq), q0.new_empty(*lead, steps + 1, m.nv)
        u = q0.new_empty(*lead, steps, m.nu)
        q[..., 0, :], v[..., 0, :] = q0, v0
        inputs, states = _bind(sim, q, v, u, flat)
        sim.checks.state(State(states.q[:, 0], states.v[:, 0]))
        status = sim.engine.new_status(inputs.batch)
        for t in range(steps):
            u_t = tensor(sim, "what the policy gives", policy(q[..., t, :], v[..., t, :], t), m.nu)
            if not all_finite(memory(u_t)):
                raise InputError(f"the policy gives controls that are not finite at step {t}: look at its weights")
            u[..., t, :] = u_t
            sim.engine.extend(inputs, states, t, status)
        ctx.sim, ctx.policy, ctx.tricks, ctx.violation = sim, policy, tricks, status[:, 0]
        ctx.save_for_backward(q, v, u, flat, *weights)
        ctx.set_materialize_grads(False)
        return q, v, u

    @staticmethod
    def backward(ctx: Any, q_bar: Tensor | None, v_bar: Tensor | None, u_bar: Tensor | None) -> Any:
        q, v, u, flat, *weights = ctx.saved_tensors
        sim, lead, needed = ctx.sim, q.shape[:-2], ctx.needs_input_grad[4:]
        inputs, states = _bind(sim, q, v, u, flat)
        bars = [_rows(torch.zeros_like(x) if bar is None else bar, 2) for x, bar in ((q, q_bar), (v, v_bar))]
        for name, bar in zip(("q_bar", "v_bar"), bars, strict=True):
            sim.checks.numbers(name, bar)
        back = Cotangents(sim.engine, inputs, LossBars(bars[0], bars[1]), needed[2])
        recomputed = _PolicyAdjoint(ctx.policy, weights)
        for t in reversed(range(u.shape[-2])):
            _restrain(ctx.tricks, t + 1, [back.q_bar, back.v_bar], bars)
            back.segment(State(states.q[:, t : t + 2], states.v[:, t : t + 2]), t, t + 1)
            u_t_bar = torch.from_numpy(back.u_bar[:, t]).reshape(*lead, -1)
            if u_bar is not None:
                u_t_bar = u_t_bar + u_bar[..., t, :]
            for mine, added in zip((back.q_bar, back.v_bar), recomputed(q, v, u, t, u_t_bar), strict=True):
                mine += _rows(added, 1)
        sim.checks.finite([back.q_bar, back.v_bar, back.u_bar], inputs.batch)
        sim.checks.warn_if_unsolved(ctx.violation)
        params = back.params_gradient()
        flat_bar = None if params is None else torch.tensor(params.flat).reshape(flat.shape)
        q0_bar, v0_bar = (torch.from_numpy(x).reshape(*lead, -1) for x in (back.q_bar, back.v_bar))
        out = first_only((q0_bar, v0_bar, flat_bar, *recomputed.weight_bars), needed, (q, v, flat, *weights))
        return None, None, None, None, *out


class _PolicyAdjoint:
    """The policy evaluated once more, to be differentiated; gathers the cotangents of its weights."""

    def __init__(self, policy: nn.Module, weights: list[Tensor]):
        self.policy, self.weights = policy, weights
        self.weight_bars = tuple(map(torch.zeros_like, weights))

    def __call__(self, q: Tensor, v: Tensor, u: Tensor, t: int, u_bar: Tensor) -> tuple[Tensor, Tensor]:
        """The cotangents of q[t] and v[t] for that of u[t]."""
        with torch.enable_grad():
            q_t, v_t = (x[..., t, :].detach().requires_grad_() for x in (q, v))
            u_t = self.policy(q_t, v_t, t).expand_as(u_bar)
            if not torch.allclose(u_t, u[..., t, :], rtol=1e-3, atol=1e-6):
                raise InputError(
                    f"on the backward pass the policy gives other controls at step {t}: it must not draw noise, drop out or "
                    "remember; pass noise in as a table that it reads by t, and call policy.eval()"
                )
            if not u_t.requires_grad:
                return torch.zeros_like(q_t), torch.zeros_like(v_t)
            inputs = (q_t, v_t, *self.weights)
            q_bar, v_bar, *bars = torch.autograd.grad(u_t, inputs, u_bar, materialize_grads=True)
        for total, bar in zip(self.weight_bars, bars, strict=True):
            total += bar
        return q_bar, v_bar


def _restrain(tricks: _Tricks, t: int, carried: list[np.ndarray], bars: list[np.ndarray]) -> None:
    """Apply the tricks to the cotangent of state t, before it goes back through the step that led there."""
    if tricks.truncate is not None and t % tricks.truncate == 0:
        for mine, direct in zip(carried, bars, strict=True):
            mine[:] = direct[:, t]
    if tricks.clip is not None:
        norm = np.sqrt(sum(np.square(x).sum(1) for x in carried))
        for x in carried:
            x *= np.minimum(1.0, tricks.clip / np.maximum(norm, 1e-30))[:, None]
    if tricks.decay != 1.0:
        for x in carried:
            x *= tricks.decay


def _bind(sim: Simulator, q: Tensor, v: Tensor, u: Tensor, flat: Tensor | None) -> tuple[Inputs, State]:
    """The kernels on the memory of these tensors."""
    params = params_of(sim, memory(flat), tuple(q.shape[:-2]))
    states = State(_rows(q, 2), _rows(v, 2))
    return Inputs(len(states.q), _rows(u, 2), None, params), states


def _rows(x: Tensor, own: int) -> np.ndarray:
    """A contiguous array with one row per robot: on the memory of x if that is so already."""
    return memory(x.reshape(-1, *x.shape[x.ndim - own :]).contiguous())
