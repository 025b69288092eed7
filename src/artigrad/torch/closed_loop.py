"""A policy in the loop: policy and physics in turn, and back through both.

    u[t] = policy(q[t], v[t], t),   (q, v)[t+1] = step((q, v)[t], u[t])

of a model with activations policy(q[t], v[t], act[t], t) and (q, v, act).

Kept are states and controls. On the backward pass the policy is evaluated once more at each step, so that memory does not
grow with the size of the network. What a policy remembers from step to step (noise drawn inside, a recurrent state) is
not there on the backward pass: that it gives the same controls again is checked. With `keep` what it computed is kept instead.
"""

from __future__ import annotations

import inspect
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..arguments import checked
from ..deprecation import moved_arguments
from ..errors import InputError, is_whole
from ..kernels.devices import all_finite
from ..model.state import State
from ..simulate.arrays import params_of
from ..simulate.cotangents import Cotangents, GradientOptions, LossBars, active_options
from ..simulate.engine import Engine, Inputs
from ..simulate.simulator import Simulator
from .sequential import InsideLoop, OfState, layers_of
from .tensor_checks import DTYPES, as_tensor, first_only, memory, native, tensor
from .tensor_functions import functions


class Loop(NamedTuple):
    """States q (..., T+1, nq), v (..., T+1, nv), act (..., T+1, na) and controls u (..., T, nu) of a closed loop."""

    q: Tensor
    v: Tensor
    u: Tensor
    act: Tensor

    @classmethod
    def of(cls, *parts: Tensor) -> Loop:
        """Of (q, v, u), or of (q, v, act, u) where there are activations."""
        q, v, *act, u = parts
        return cls(q, v, u, act[0] if act else q[..., :0])

    def parts(self, sim: Simulator) -> list[Tensor]:
        """Those of the state that the model has."""
        return [self.q, self.v, self.act] if sim.model.na else [self.q, self.v]


@native
@moved_arguments(gradient_options=GradientOptions)
@checked
def closed_loop(
    sim: Simulator,
    policy: nn.Module,
    state: tuple[Tensor, ...],
    steps: int,
    params: Any = None,
    *,
    hold: int = 1,
    gradient_options: GradientOptions | None = None,
    keep: bool = False,
) -> Loop:
    """The states and controls of `steps` steps under a policy, differentiable with respect to its weights, the first
    state and `params` (see `artigrad.torch.step`).

    policy: a module; policy(q, v, t), of a model with activations policy(q, v, act, t), gives the controls (..., nu) at step t,
    the same ones whenever it is asked. An `nn.Sequential` reads (q, v, act) in a row; on the CPU one of Linear, Tanh, ELU and
    ReLU runs inside the compiled loop. hold: the policy is asked every so many steps, of which `steps` is a multiple, and its
    controls are held (frame skip). gradient_options: conditioning of the cotangent of the state before each control step of the
    backward pass. keep: what a policy outside the compiled loop
    computes is kept for one backward pass: a sixth less time where its network is most of the work, and memory for all steps.
    """
    given, options = functions.given(sim, state), active_options(gradient_options)
    check_loop(policy, steps)
    if not is_whole(hold, 1) or steps % hold:
        raise InputError(f"hold is a whole number of which steps ({steps}) is a multiple, not {hold!r}")
    flat = functions.flat(sim, params, tuple(given["q"].shape[:-1]))
    start = tuple(given.values())
    if isinstance(policy, nn.Sequential):
        inside = layers_of(sim, policy)
        if inside is not None:
            every = [w for layer in inside[0] for w in (layer.weight, layer.bias)]
            return Loop.of(*InsideLoop.apply(sim, inside[1], (steps, hold), options, flat, *start, *every))
        _check_first_layer(sim, policy)
        policy = OfState(policy)
    else:
        _check_arguments(sim, policy)
    length = (steps, hold, keep and torch.is_grad_enabled())
    return Loop.of(*_ClosedLoop.apply(sim, policy, length, options, flat, *start, *weights_of(policy)))


def _check_first_layer(sim: Simulator, policy: nn.Sequential) -> None:
    """An nn.Sequential takes the numbers of a state, in the simulator's dtype."""
    m, dtype = sim.model, DTYPES[sim.dtype]
    other = next((w.dtype for w in policy.parameters() if w.dtype != dtype), None)
    if other is not None:
        raise InputError(
            f"the policy has weights of {other} and this simulator computes in {dtype}: pass policy.to({dtype}), or make a "
            "Simulator with another dtype"
        )
    first, size = policy[0] if len(policy) else None, m.nq + m.nv + m.na
    if isinstance(first, nn.Linear) and first.in_features != size:
        raise InputError(
            f"an nn.Sequential reads the {size} numbers of a state of '{m.name}', and this takes {first.in_features}"
        )


def _check_arguments(sim: Simulator, policy: nn.Module) -> None:
    """Other modules are called with the parts of the state and the step."""
    names = ("q", "v", "act", "t") if sim.model.na else ("q", "v", "t")
    try:
        inspect.signature(policy.forward).bind(*names)
    except TypeError:
        raise InputError(
            f"a policy is called as policy({', '.join(names)}), which {type(policy).__name__} cannot be: put it into an "
            "nn.Sequential, which reads the state in a row, or into a module that can"
        ) from None


def check_loop(policy: nn.Module, steps: int) -> None:
    """Check the arguments that all loops have."""
    if not isinstance(policy, nn.Module):
        raise InputError(f"the policy is a torch.nn.Module, so that its weights are known; not {type(policy).__name__}")
    if not is_whole(steps, 1):
        raise InputError(f"steps is a whole number, at least 1, not {steps!r}")


def weights_of(policy: nn.Module) -> list[Tensor]:
    """The weights of a policy that are learned."""
    return [w for w in policy.parameters() if w.requires_grad]


class _ClosedLoop(torch.autograd.Function):
    """tensors: the parts of the first state, then the weights."""

    @staticmethod
    def forward(
        ctx: Any,
        sim: Simulator,
        policy: nn.Module,
        length: tuple[int, int, bool],
        options: GradientOptions | None,
        flat: Tensor | None,
        *tensors: Tensor,
    ) -> Any:
        (steps, hold, keep), count = length, 3 if sim.model.na else 2
        start, weights = tensors[:count], tensors[count:]
        lead = start[0].shape[:-1]
        states = [x.new_empty(*lead, steps + 1, x.shape[-1]) for x in start]
        u = start[0].new_empty(*lead, steps, sim.model.nu)
        for x, x0 in zip(states, start, strict=True):
            x[..., 0, :] = x0
        loop = Loop.of(*states, u)
        ctx.kept = {} if keep and any(ctx.needs_input_grad) else None
        with sim.engine.device.working([u]):
            inputs, rows = bind(sim, loop, flat)
            if sim.checks.on_host:
                sim.checks.state(rows.map(lambda x: x[:, 0]))
            ctx.violation = unroll(sim, policy, loop, inputs, rows, hold, ctx.kept)
        ctx.sim, ctx.policy, ctx.options, ctx.count, ctx.hold = sim, policy, options, count, hold
        ctx.save_for_backward(*states, u, flat, *weights)
        ctx.set_materialize_grads(False)
        return *states, u

    @staticmethod
    def backward(ctx: Any, *given: Tensor | None) -> Any:
        sim, count, needed = ctx.sim, ctx.count, ctx.needs_input_grad[4:]
        states, (u, flat, *weights) = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        loop, recomputed = Loop.of(*states, u), PolicyAdjoint(sim, ctx.policy, weights, u, ctx.kept)
        with sim.engine.device.working([u]):
            inputs, rows = bind(sim, loop, flat)
            pairs = zip(states, given[:-1], strict=True)
            direct = [rows_of(torch.zeros_like(x) if bar is None else bar, 2) for x, bar in pairs]
            named = zip(("q_bar", "v_bar", "act_bar"), direct, strict=False)
            bars = LossBars(*(sim.checks.cotangent(k, memory(sim, x)) for k, x in named))
            back = Cotangents(sim.engine, inputs, bars, needed[0], options=ctx.options, hold=ctx.hold)
            through_loop(back, rows, recomputed, loop, given[-1])
            lead = u.shape[:-2]
            carried = [x.reshape(*lead, x.shape[-1]) for x in carried_bars(back)]
            params = back.params_gradient()
        recomputed.check()
        if sim.checks.on_host:
            sim.checks.finite([*back.state_bar, back.u_bar], inputs.batch)
            if not sim.engine.law.reported_forward:
                sim.checks.warn_if_unsolved(ctx.violation)
        flat_bar = None if params is None else torch.tensor(params.flat).reshape(flat.shape)
        out = first_only((flat_bar, *carried, *recomputed.weight_bars), needed, (flat, *states, *weights))
        return None, None, None, None, *out


def carried_bars(back: Cotangents) -> list[Tensor]:
    """The cotangents of the state on their way back, as tensors."""
    return [shared_memory(back.engine, x) for x in back.state_bar]


# of each step the parts of the state that the policy was given, and what it gave
Kept = dict[int, tuple[list[Tensor], Tensor]]


def unroll(
    sim: Simulator,
    policy: nn.Module,
    loop: Loop,
    inputs: Inputs,
    states: State,
    hold: int = 1,
    kept: Kept | None = None,
) -> Any:
    """Policy and steps in turn, from the first to the last, on the memory of a loop whose first state is there. How far
    constraints were from solved. kept: gets what the policy computed."""
    status = sim.engine.new_status(inputs.batch)
    for t in range(0, inputs.steps, hold):
        loop.u[..., t : t + hold, :] = _controls(sim, policy, loop, t, kept).detach()[..., None, :]
        sim.engine.extend(inputs, states, t, status, hold)
    sim.checks.warn_of_motion(status[:, 0])
    return status[:, 0]


def _controls(sim: Simulator, policy: nn.Module, loop: Loop, t: int, kept: Kept | None) -> Tensor:
    """What the policy gives at step t, looked at."""
    state = [x[..., t, :] for x in loop.parts(sim)]
    if kept is None:
        given = policy(*state, t)
    else:
        with torch.enable_grad():
            state = [x.clone().requires_grad_() for x in state]
            given = policy(*state, t)
        kept[t] = state, given
    u = tensor(sim, "what the policy gives", given)
    if u.ndim < 1 or u.shape[-1] != sim.model.nu:
        raise InputError(f"what the policy gives of '{sim.model.name}' is (..., {sim.model.nu}), not {tuple(u.shape)}")
    if sim.checks.on_host and not all_finite(memory(sim, u)):
        raise InputError(f"the policy gives controls that are not finite at step {t}: look at its weights")
    return u


def through_loop(
    back: Cotangents,
    states: State,
    policy: PolicyAdjoint,
    loop: Loop,
    u_bar: Tensor | None,
) -> None:
    """Step and policy in turn, from the last to the first; cotangents of the state are added to where the step left them."""
    carried, u, hold = carried_bars(back), loop.u, back.hold
    u_bars = shared_memory(back.engine, back.u_bar).reshape(u.shape)
    for t in reversed(range(0, u.shape[-2], hold)):
        end = t + hold
        back.segment(states.map(lambda x, t=t, end=end: x[:, t : end + 1]), t, end)  # type: ignore[misc]
        u_t_bar = u_bars[..., t:end, :].sum(-2)
        if u_bar is not None:
            u_t_bar = u_t_bar + u_bar[..., t:end, :].sum(-2)
        for mine, added in zip(carried, policy(loop, t, u_t_bar), strict=True):
            mine += added.reshape(mine.shape)


class PolicyAdjoint:
    """The policy as it was kept, or evaluated once more, to be differentiated; gathers the cotangents of its weights."""

    def __init__(self, sim: Simulator, policy: nn.Module, weights: list[Tensor], u: Tensor, kept: Kept | None = None):
        self.sim, self.policy, self.weights, self.kept = sim, policy, weights, kept
        self.weight_bars = tuple(map(torch.zeros_like, weights))
        self.differs = torch.zeros(u.shape[-2], dtype=torch.bool, device=u.device)

    def __call__(self, loop: Loop, t: int, u_bar: Tensor) -> list[Tensor]:
        """The cotangents of the parts of state t for that of u[t]."""
        with torch.enable_grad():
            if self.kept is not None:
                state, given = self.kept[t]
                u_t = given.expand_as(u_bar)
            else:
                state = [x[..., t, :].detach().requires_grad_() for x in loop.parts(self.sim)]
                u_t = self.policy(*state, t).expand_as(u_bar)
                self.differs[t] = ~torch.isclose(u_t.detach(), loop.u[..., t, :], rtol=1e-3, atol=1e-6).all()
            if not u_t.requires_grad:
                return [torch.zeros_like(x) for x in state]
            found = torch.autograd.grad(u_t, (*state, *self.weights), u_bar, materialize_grads=True)
        for total, bar in zip(self.weight_bars, found[len(state) :], strict=True):
            total += bar
        return list(found[: len(state)])

    def check(self) -> None:
        """The gradient is wrong where the policy gave other controls than on the way forth."""
        if self.differs.any():
            raise InputError(
                f"on the backward pass the policy gives other controls at step {int(self.differs.nonzero().max())}: it must "
                "not draw noise, drop out or remember; pass noise in as a table that it reads by t, and call policy.eval()"
            )


def bind(sim: Simulator, loop: Loop, flat: Tensor | None) -> tuple[Inputs, State]:
    """The kernels on the memory of these tensors."""
    params = params_of(sim, None if flat is None else flat.detach().numpy(), tuple(loop.u.shape[:-2]))
    rows = [memory(sim, rows_of(x, 2)) for x in (*loop.parts(sim), loop.u)]
    if not sim.checks.on_host:
        rows = [sim.checks.numbers("a tensor of the loop", x) for x in rows]
    return Inputs(len(rows[0]), rows[-1], None, params), State(*rows[:-1])


def rows_of(x: Tensor, own: int) -> Tensor:
    """A contiguous tensor with one row per robot: on the memory of x if that is so already."""
    lead, tail = x.shape[: x.ndim - own], x.shape[x.ndim - own :]
    return x.reshape(prod(lead), *tail).contiguous()


def shared_memory(engine: Engine, x: Any) -> Tensor:
    """A tensor on the memory of an array of the simulator."""
    return as_tensor(engine.device.given(x))
