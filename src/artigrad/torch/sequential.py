"""PyTorch's own networks as ones that run inside the kernel: `nn.Sequential` of Linear, Tanh, ELU and ReLU, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from ..model.state import State
from ..simulate.arrays import params_of
from ..simulate.cotangents import GradientOptions
from ..simulate.policy_loop import Network, policy_backward, policy_forward
from ..simulate.simulator import Simulator
from .tensor_checks import DTYPES, aliases, is_batched

WIDEST = 1024  # beyond, PyTorch's own products of matrices are as fast


class OfState(nn.Module):
    """A network that reads the state in a row, as a policy: u = network((q, v, act, context))."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, *state_and_t: Any, context: Any = None) -> Tensor:
        return self.network(torch.cat((*state_and_t[:-1], *([] if context is None else tree_leaves(context))), -1))


def _is_hooked(module: nn.Module) -> bool:
    """Return True if calling a module does more than the forward of its class."""
    own = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    every = (
        "_global_forward_hooks",
        "_global_forward_pre_hooks",
        "_global_backward_hooks",
        "_global_backward_pre_hooks",
    )
    hooked = any(getattr(module, name, None) for name in own)
    hooked = hooked or any(getattr(torch.nn.modules.module, name, None) for name in every)
    return hooked or "forward" in module.__dict__ or getattr(module, "_compiled_call_impl", None) is not None


def layers_of(sim: Simulator, network: nn.Module) -> tuple[list[nn.Linear], tuple[str, ...]] | None:
    """Its layers and the activations after them, if it is one that runs inside the kernel."""
    if type(network) is not nn.Sequential or any(map(_is_hooked, (network, *network))):
        return None
    linear: list[nn.Linear] = []
    activations: list[str] = []
    for module in network:
        if type(module) is nn.Linear and module.bias is not None:
            linear.append(module)
            activations.append("linear")
            continue
        name = _activation(module)
        if name is None or not linear or activations[-1] != "linear":
            return None
        activations[-1] = name
    m = sim.model
    good = (
        sim.checks.on_host
        and bool(linear)
        and linear[0].in_features == m.nq + m.nv + m.na
        and linear[-1].out_features == m.nu > 0
        and max(layer.out_features for layer in linear) <= WIDEST
        and all(layer.weight.dtype == DTYPES[sim.dtype] and layer.weight.device.type == "cpu" for layer in linear)
    )
    return (linear, tuple(activations)) if good else None


def _activation(module: nn.Module) -> str | None:
    if type(module) is nn.ELU:
        return "elu" if module.alpha == 1.0 else None
    return {nn.Tanh: "tanh", nn.ReLU: "relu"}.get(type(module))


class InsideLoop(torch.autograd.Function):
    """A closed loop whose policy runs inside the kernel. tensors: the parts of the first state, then W and b of each layer."""

    @staticmethod
    def forward(
        ctx: Any,
        sim: Simulator,
        activations: tuple[str, ...],
        length: tuple[int, int],
        options: GradientOptions | None,
        flat: Tensor | None,
        *tensors: Tensor,
    ) -> Any:
        (steps, hold), count = length, 3 if sim.model.na else 2
        lead, weights = tuple(tensors[0].shape[:-1]), tensors[count:]
        rows = (x.detach().reshape(-1, x.shape[-1]).contiguous().numpy() for x in tensors[:count])
        start, _ = sim.checks.state(State(*rows))
        params = params_of(sim, None if flat is None else flat.detach().numpy(), lead)
        states, u, ctx.violation = policy_forward(
            sim.engine, _network(weights, activations), start, steps, params, hold
        )
        sim.checks.warn_if_rollout_unsolved(ctx.violation)
        found = [torch.from_numpy(x).reshape(*lead, *x.shape[1:]) for x in (*states, u)]
        ctx.sim, ctx.activations, ctx.options, ctx.count, ctx.hold = sim, activations, options, count, hold
        ctx.save_for_backward(*found, flat, *weights, *tensors[:count])
        ctx.set_materialize_grads(False)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *given: Tensor | None) -> Any:
        count, sim, needed = ctx.count, ctx.sim, ctx.needs_input_grad[4:]
        saved = ctx.saved_tensors
        if torch.is_grad_enabled() or any(map(is_batched, given)):
            return None, None, None, None, *_outside(ctx, saved, given, needed)
        loop, (flat, *weights) = saved[: count + 1], saved[count + 1 : len(saved) - count]
        lead, names = tuple(loop[0].shape[:-2]), (*("q", "v", "act")[:count], "u")
        rows = [x.reshape(-1, *x.shape[-2:]).numpy() for x in loop]
        bars = [torch.zeros_like(x) if bar is None else bar.detach() for x, bar in zip(loop, given, strict=True)]
        bar_rows = [
            sim.checks.cotangent(f"{k}_bar", x.reshape(-1, *x.shape[-2:]).contiguous().numpy())
            for k, x in zip(names, bars, strict=True)
        ]
        params = params_of(sim, None if flat is None else flat.detach().numpy(), lead)
        back = policy_backward(
            sim.engine,
            _network(weights, ctx.activations),
            State(*rows[:-1]),
            rows[-1],
            params,
            (State(*bar_rows[:-1]), bar_rows[-1]),
            ctx.options,
            needed[0],
            _product,
            ctx.hold,
        )
        sim.checks.finite(list(back.state), len(back.u))
        if not sim.engine.law.reported_forward:
            sim.checks.warn_if_unsolved(ctx.violation)
        flat_bar = None if back.params is None else torch.tensor(back.params.flat).reshape(flat.shape)
        firsts = [torch.from_numpy(x).reshape(*lead, x.shape[-1]) for x in back.state]
        of_weights = [torch.from_numpy(x) for layer in back.layers for x in layer]
        out = (x if need else None for x, need in zip((flat_bar, *firsts, *of_weights), needed, strict=True))
        return None, None, None, None, *out


def _outside(ctx: Any, saved: tuple[Any, ...], bars: tuple[Any, ...], needed: tuple[bool, ...]) -> list[Any]:
    """Return the cotangents as differentiable functions, from a loop with the policy outside: for derivatives of gradients."""
    from .closed_loop import run_loop

    count, create = ctx.count, torch.is_grad_enabled()
    with torch.enable_grad():
        flat, *others = aliases(saved[count + 1 :])
        weights, start = tuple(others[:-count]), tuple(others[-count:])
        steps, network = saved[count].shape[-2], _OfWeights(weights, ctx.activations)
        loop, _ = run_loop(ctx.sim, network, start, flat, (steps, ctx.hold), ctx.options, keep=True)
    pairs = [(x, bar) for x, bar in zip((*loop.parts(ctx.sim), loop.u), bars, strict=True) if bar is not None]
    inputs = [x for x, need in zip((flat, *start, *weights), needed, strict=True) if need]
    outputs, given = (list(x) for x in zip(*pairs, strict=True))
    found = iter(torch.autograd.grad(outputs, inputs, given, create_graph=create, allow_unused=True))
    return [next(found) if need else None for need in needed]


class _OfWeights(nn.Module):
    """A network of given weights as a policy."""

    def __init__(self, weights: tuple[Tensor, ...], activations: tuple[str, ...]):
        super().__init__()
        self.weights, self.activations = weights, activations

    def forward(self, *state_and_t: Any) -> Tensor:
        x = torch.cat(state_and_t[:-1], -1)
        for W, b, name in zip(self.weights[::2], self.weights[1::2], self.activations, strict=True):
            x = nn.functional.linear(x, W, b)
            x = x if name == "linear" else getattr(nn.functional if name == "elu" else torch, name)(x)
        return x


def _network(weights: Any, activations: tuple[str, ...]) -> Network:
    arrays = [w.detach().contiguous().numpy() for w in weights]
    return Network(tuple(zip(arrays[::2], arrays[1::2], strict=True)), activations)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()
