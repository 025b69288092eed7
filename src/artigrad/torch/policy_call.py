"""A policy in the loop as part of PyTorch's graph, kept or evaluated again on the backward pass.

The policy is called under autograd, so that gradients reach whatever it reads: weights, those that `torch.func.functional_call`
puts in their place, tensors of a closure, outputs of other networks, its own earlier results. Evaluated again, it gives the
tensors that autograd would have kept; its own random numbers, autocast and weights are those of the first evaluation.
"""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_leaves

from ..errors import InputError
from ..simulate.simulator import Simulator
from .loop_memory import OTHER_CONTROLS
from .sequential import OfState
from .tensor_checks import DTYPES

REMEMBERED = 1e3  # tolerance of controls that are computed again, in units of rounding


def policy_for(sim: Simulator, policy: nn.Module, more: tuple[str, ...]) -> nn.Module:
    """Return a policy that takes the parts of the state, the step and these keywords; an error for one that cannot."""
    names = ("q", "v", "act", "t") if sim.model.na else ("q", "v", "t")
    if "carry" not in more and _reads_a_row(policy, names, more):
        _check_first_layer(sim, policy, "context" in more)
        return OfState(policy)
    if not _takes(policy, names, more):
        wanted = ", ".join([*names, *(f"{name}={name}" for name in more)])
        raise InputError(
            f"a policy is called as policy({wanted}), which {type(policy).__name__} does not take: put it into an "
            "nn.Sequential, which reads the state in a row, or into a module that does"
        )
    return policy


def _reads_a_row(policy: nn.Module, names: tuple[str, ...], more: tuple[str, ...]) -> bool:
    """Return True if a policy, or the module in it, is an nn.Sequential without a forward for the parts of the state."""
    inner = policy
    while True:
        wrapped = [getattr(inner, name, None) for name in ("_orig_mod", "module")]
        found = next((x for x in wrapped if isinstance(x, nn.Module)), None)
        if found is None or isinstance(inner, nn.Sequential):
            break
        inner = found
    scripted = getattr(inner, "original_name", None) == "Sequential"
    if not isinstance(inner, nn.Sequential) and not scripted:
        return False
    return scripted or type(inner).forward is nn.Sequential.forward or not _takes(inner, names, more)


def _takes(policy: nn.Module, names: tuple[str, ...], more: tuple[str, ...]) -> bool:
    try:
        inspect.signature(policy.forward).bind(*names, **dict.fromkeys(more))
    except TypeError:
        return False
    except ValueError:  # without a signature
        pass
    return True


def _check_first_layer(sim: Simulator, policy: nn.Module, context: bool) -> None:
    """Check that a network takes the entries of a state, in the simulator's dtype."""
    m, dtype = sim.model, DTYPES[sim.dtype]
    other = next((w.dtype for w in policy.parameters() if w.dtype != dtype), None)
    if other is not None and not torch.is_autocast_enabled("cpu"):
        raise InputError(
            f"the policy has weights of {other} and this simulator computes in {dtype}: pass policy.to({dtype}), or make a "
            "Simulator with another dtype"
        )
    first, size = next(iter(policy.children()), None), m.nq + m.nv + m.na
    if type(first) is nn.Linear and first.in_features != size and not context:
        raise InputError(
            f"an nn.Sequential reads the {size} numbers of a state of '{m.name}', and this takes {first.in_features}"
        )


class PolicyCall:
    """Calls of a policy in one loop. keep: whether autograd keeps what it computes, or it is evaluated again."""

    def __init__(self, policy: nn.Module, like: Tensor, keep: bool):
        scripted = any(isinstance(x, torch.jit.ScriptModule) for x in policy.modules())  # optimized while it runs
        self.policy, self.keep = policy, keep or scripted or not torch.is_grad_enabled()
        self.device = like.device
        if not self.keep:
            self.tensors = dict(policy.named_parameters(remove_duplicate=False))
            self.buffers = dict(policy.named_buffers(remove_duplicate=False))
            self.versions = {name: x._version for name, x in self.tensors.items()}

    def __call__(self, t: int, *given: Any, **more: Any) -> Any:
        before = [x._version for x in given if isinstance(x, Tensor) and not x.is_inference()]
        found = self.policy(*given, **more) if self.keep else _Evaluation(self, t, given, more)()
        if before != [x._version for x in given if isinstance(x, Tensor) and not x.is_inference()]:
            raise InputError(
                f"the policy changes the state that it is given in place at step {t}: let it work on a copy"
            )
        return found

    def again(self, t: int, given: tuple[Any, ...], more: dict[str, Any]) -> Any:
        """Evaluate the policy with the tensors of its first evaluation; buffers are copies, which it may update."""
        changed = [name for name, x in self.tensors.items() if x._version != self.versions[name]]
        if changed:
            raise InputError(
                f"{changed[0]} of the policy was changed in place between the loop and its backward pass, which evaluates the "
                "policy again: call backward before the optimizer's step, or pass keep=True"
            )
        now = dict(self.policy.named_parameters(remove_duplicate=False))
        swapped = {name: x for name, x in self.tensors.items() if now.get(name) is not x}
        tensors = swapped | {name: x.clone() for name, x in self.buffers.items()}
        if not tensors:
            return self.policy(*given, **more)
        return torch.func.functional_call(self.policy, tensors, given, more)


class _Evaluation:
    """One evaluation, whose tensors are computed again when autograd first needs one."""

    def __init__(self, call: PolicyCall, t: int, given: tuple[Any, ...], more: dict[str, Any]):
        self.call, self.t, self.given, self.more = call, t, given, more
        self.count = 0
        self.known: list[Tensor] | None = None
        kinds = {"cpu", call.device.type}
        self.autocast = [
            (kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in sorted(kinds)
        ]

    def __call__(self) -> Any:
        before = self._random_state()
        with saved_tensors_hooks(self._pack, self._unpack):
            found = self.call.policy(*self.given, **self.more)
        after = self._random_state()
        same = all(map(torch.equal, before, after))
        self.random = None if same else before
        self.found = [x.detach() for x in tree_leaves(found) if isinstance(x, Tensor)]
        return found

    def _random_state(self) -> list[Tensor]:
        on_gpu = [torch.cuda.get_rng_state(self.call.device)] if self.call.device.type == "cuda" else []
        return [torch.get_rng_state(), *on_gpu]

    def _pack(self, x: Tensor) -> int:
        self.count += 1
        return self.count - 1

    def _unpack(self, k: int) -> Tensor:
        if self.known is None:
            self.known = self._evaluate_again()
        return self.known[k]

    def _evaluate_again(self) -> list[Tensor]:
        known: list[Tensor] = []

        def pack(x: Tensor) -> int:
            known.append(x.detach())
            return len(known) - 1

        def copies(x: Any) -> Any:
            return x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x

        given, more = torch.utils._pytree.tree_map(copies, (self.given, self.more))
        with ExitStack() as stack:
            stack.enter_context(torch.enable_grad())
            for kind, enabled, dtype in self.autocast:
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled))
            if self.random is not None:
                devices = [self.call.device] if self.call.device.type == "cuda" else []
                stack.enter_context(torch.random.fork_rng(devices))
                torch.set_rng_state(self.random[0])
                if devices:
                    torch.cuda.set_rng_state(self.random[1], self.call.device)
            stack.enter_context(saved_tensors_hooks(pack, known.__getitem__))
            found = self.call.again(self.t, given, more)
        now = [x.detach() for x in tree_leaves(found) if isinstance(x, Tensor)]
        if len(known) != self.count or len(now) != len(self.found) or not all(map(_alike, now, self.found)):
            raise InputError(OTHER_CONTROLS.format(t=self.t))
        return known


def _alike(x: Tensor, y: Tensor) -> bool:
    """Return True if two results are equal up to rounding."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if torch.equal(x, y):
        return True
    if not x.is_floating_point():
        return False
    tolerance = REMEMBERED * torch.finfo(x.dtype).eps
    return torch.allclose(x, y, rtol=tolerance, atol=tolerance * float(y.abs().max()))
