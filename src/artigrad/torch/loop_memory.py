"""Policy and physics in turn on memory that stays, as CUDA graphs record them (`recorded_loop`)."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import InputError, is_whole
from ..kernels.devices import all_finite
from ..model.state import State
from ..simulate.arrays import params_of
from ..simulate.cotangents import Cotangents
from ..simulate.engine import Engine, Inputs
from ..simulate.simulator import Simulator
from .tensor_checks import as_tensor, is_traced, memory, tensor

OTHER_CONTROLS = (
    "on the backward pass the policy gives other controls at step {t}: it must not change while it runs; return what it "
    "remembers as carry=, or pass keep=True, which keeps what it computed"
)


class Loop(NamedTuple):
    """States q (..., T+1, nq), v (..., T+1, nv), act (..., T+1, na) and controls u (..., T, nu) of a closed loop."""

    q: Tensor
    v: Tensor
    u: Tensor
    act: Tensor

    @classmethod
    def of(cls, *parts: Tensor) -> Loop:
        """Make a loop of (q, v, u), or of (q, v, act, u) where there are activations."""
        q, v, *act, u = parts
        return cls(q, v, u, act[0] if act else q[..., :0])

    def parts(self, sim: Simulator) -> list[Tensor]:
        """Return the parts of the state that the model has."""
        return [self.q, self.v, self.act] if sim.model.na else [self.q, self.v]


def check_loop(policy: nn.Module, steps: int) -> None:
    """Check the arguments that all loops have."""
    if not isinstance(policy, nn.Module):
        raise InputError(f"the policy is a torch.nn.Module, so that its weights are known; not {type(policy).__name__}")
    if not is_whole(steps, 1):
        raise InputError(f"steps is a whole number, at least 1, not {steps!r}")


def weights_of(policy: nn.Module) -> list[Tensor]:
    """The weights of a policy that are learned."""
    return [w for w in policy.parameters() if w.requires_grad]


def carried_bars(back: Cotangents) -> list[Tensor]:
    """Cotangents of the state that a backward pass carries, as tensors."""
    return [shared_memory(back.engine, x) for x in back.state_bar]


def unroll(sim: Simulator, policy: nn.Module, loop: Loop, inputs: Inputs, states: State) -> None:
    """Evaluate policy and steps in turn on the memory of a loop whose first state is there."""
    status = sim.engine.new_status(inputs.batch)
    for t in range(inputs.steps):
        u = controls(sim, policy(*(x[..., t, :] for x in loop.parts(sim)), t), t)
        loop.u[..., t, :] = u.detach()
        sim.engine.extend(inputs, states, t, status)
    sim.checks.warn_if_rollout_unsolved(status[:, 0])


def controls(sim: Simulator, given: Any, t: int) -> Tensor:
    """Return the controls of a policy at step t, checked."""
    u = tensor(sim, "policy(q, v, t)", given)
    if u.ndim < 1 or u.shape[-1] != sim.model.nu:
        raise InputError(
            f"the controls of a policy of '{sim.model.name}' are (..., {sim.model.nu}), not {tuple(u.shape)}"
        )
    has_values = sim.checks.on_host and not torch._C._are_functorch_transforms_active() and not is_traced([u])
    if has_values and not all_finite(memory(sim, u)):
        raise InputError(f"the policy gives controls that are not finite at step {t}: check its weights")
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
    """The policy, evaluated again at each step and differentiated; accumulates the cotangents of its weights."""

    def __init__(self, sim: Simulator, policy: nn.Module, weights: list[Tensor], u: Tensor):
        self.sim, self.policy, self.weights = sim, policy, weights
        self.weight_bars = tuple(map(torch.zeros_like, weights))
        self.differs = torch.zeros(u.shape[-2], dtype=torch.bool, device=u.device)

    def __call__(self, loop: Loop, t: int, u_bar: Tensor) -> list[Tensor]:
        """Return the cotangents of the parts of state t for that of u[t]."""
        with torch.enable_grad():
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
        """Raise where the policy gave other controls than in the forward pass, so that the gradient is wrong."""
        if self.differs.any():
            raise InputError(OTHER_CONTROLS.format(t=int(self.differs.nonzero().max())))


def bind(sim: Simulator, loop: Loop, flat: Tensor | None) -> tuple[Inputs, State]:
    """The kernels on the memory of these tensors."""
    params = params_of(sim, None if flat is None else flat.detach().numpy(), tuple(loop.u.shape[:-2]))
    rows = [memory(sim, rows_of(x, 2)) for x in (*loop.parts(sim), loop.u)]
    if not sim.checks.on_host:
        rows = [sim.checks.array("a tensor of the loop", x) for x in rows]
    return Inputs(len(rows[0]), rows[-1], None, params), State(*rows[:-1])


def rows_of(x: Tensor, own: int) -> Tensor:
    """A contiguous tensor with one row per robot: on the memory of x if that is so already."""
    lead, tail = x.shape[: x.ndim - own], x.shape[x.ndim - own :]
    return x.reshape(prod(lead), *tail).contiguous()


def shared_memory(engine: Engine, x: Any) -> Tensor:
    """A tensor on the memory of an array of the simulator."""
    return as_tensor(engine.device.given(x))
