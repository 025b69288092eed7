"""A policy in the loop: policy and physics in turn, and back through both.

    u[t] = policy(q[t], v[t], t),   (q, v)[t+1] = step((q, v)[t], u[t])

of a model with activations policy(q[t], v[t], act[t], t) and (q, v, act). Both are nodes of one graph, so that gradients reach
all that the policy reads. States and controls are kept; by default the policy is evaluated again at each step of the backward
pass (`policy_call`), so that memory does not grow with the size of the network.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from ..arguments import checked
from ..deprecation import keyword_arguments, moved_arguments
from ..errors import InputError, is_whole, warn
from ..simulate.cotangents import GradientOptions, active_options
from ..simulate.simulator import Simulator
from .loop_memory import Loop, check_loop, controls
from .loop_steps import DescribedSteps, NativeSteps
from .policy_call import PolicyCall, policy_for
from .sequential import InsideLoop, layers_of
from .tensor_checks import is_traced, is_transformed, native
from .tensor_functions import functions


@native
@keyword_arguments("params")
@moved_arguments(gradient_options=GradientOptions)
@checked
def closed_loop(
    sim: Simulator,
    policy: nn.Module,
    state: tuple[Tensor, ...],
    steps: int,
    *,
    params: Any = None,
    hold: int = 1,
    context: Any = None,
    carry: Any = None,
    gradient_options: GradientOptions | None = None,
    keep: bool = False,
) -> Any:
    """Return states and controls of a rollout under a policy.

    They are differentiable with respect to the first state, `params`, `context`, `carry`, the weights of the policy and every
    other tensor that it reads.

    Args:
      policy: Module; policy(q, v, t), of a model with activations policy(q, v, act, t), returns the controls (..., nu) at
        step t. An `nn.Sequential` reads (q, v, act, context) in a row; on the CPU one of Linear, Tanh, ELU and ReLU without
        context runs inside the compiled loop.
      steps: Number of control steps T, as of `Simulator.rollout`; there are hold T + 1 states.
      params: As in `artigrad.torch.step`.
      hold: Number of time steps for which controls are held (frame skip).
      context: Inputs over time (commands, noise): a tensor (..., T, n), or a tuple or dict of such. The policy gets
        the keyword context, (..., n) of its control step.
      carry: What the policy remembers (a recurrent state, earlier observations): a tensor, or a tuple or dict of tensors. The
        policy gets the keyword carry and returns the pair of controls and its next carry.
      gradient_options: Conditioning of the cotangent of the state before each control step of the backward pass. `truncate`
        applies to `carry` too.
      keep: Keep what the policy computes for the backward pass, instead of evaluating it again: less time where its network
        is most of the work, and memory for all steps. Needed for a policy that remembers in its own attributes.

    Returns:
      Loop of states and controls; with `carry` the pair of that and the last carry.
    """
    given, options = functions.given(sim, state), active_options(gradient_options)
    check_loop(policy, steps)
    if not is_whole(hold, 1):
        raise InputError(f"hold is a whole number of time steps, at least 1, not {hold!r}")
    if hold > 1:
        warn(
            f"closed_loop(steps={steps}, hold={hold}) has {steps} control steps, as in Simulator.rollout; in version 0.2 "
            "`steps` were time steps",
            DeprecationWarning,
        )
    _check_context(context, steps)
    steps *= hold
    flat = functions.flat(sim, params, tuple(given["q"].shape[:-1]))
    start = tuple(given.values())
    if context is None and carry is None and not _is_described(start, flat):
        inside = layers_of(sim, policy)
        if inside is not None:
            every = [w for layer in inside[0] for w in (layer.weight, layer.bias)]
            return Loop.of(*InsideLoop.apply(sim, inside[1], (steps, hold), options, flat, *start, *every))
    named = tuple(name for name, x in (("context", context), ("carry", carry)) if x is not None)
    policy = policy_for(sim, policy, named)
    loop, last = run_loop(sim, policy, start, flat, (steps, hold), options, context=context, carry=carry, keep=keep)
    return loop if carry is None else (loop, last)


def run_loop(
    sim: Simulator,
    policy: nn.Module,
    start: tuple[Tensor, ...],
    flat: Tensor | None,
    length: tuple[int, int],
    options: GradientOptions | None,
    *,
    context: Any = None,
    carry: Any = None,
    keep: bool = False,
) -> tuple[Loop, Any]:
    """Return states and controls under a checked policy, and the last carry. length: steps, and steps of one control."""
    (steps, hold), described, remembers = length, _is_described(start, flat), carry is not None
    call = PolicyCall(policy, start[0], keep or described)
    truncate = None if options is None else options.truncate
    one = None if options is None else active_options(GradientOptions(options.decay, options.clip))
    physics = (
        DescribedSteps(sim, hold, one, flat, start) if described else NativeSteps(sim, steps, hold, one, flat, start)
    )
    now, lead = start, start[0].shape[:-1]
    for k, t in enumerate(range(0, steps, hold)):
        if truncate is not None and k and k % truncate == 0:
            now, carry = tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, (now, carry))
        keywords = {} if context is None else {"context": tree_map(lambda x, k=k: x[..., k, :], context)}
        found = call(t, *now, t, **keywords, **({"carry": carry} if remembers else {}))
        if remembers:
            if not isinstance(found, tuple) or len(found) != 2:
                raise InputError("a policy with carry= returns the pair of controls and its next carry")
            found, carry = found
        u = controls(sim, found, t)
        now = physics(t, now, u if u.shape[:-1] == lead else u.expand(*lead, u.shape[-1]))
    return physics.finish(), carry


def _check_context(context: Any, count: int) -> None:
    """Check that inputs over time have a row for each control step."""
    for x in [] if context is None else tree_leaves(context):
        if not isinstance(x, Tensor) or x.ndim < 2 or x.shape[-2] != count:
            shape = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise InputError(f"context has tensors (..., {count}, n), one row for each control step; not {shape}")


def _is_described(start: tuple[Tensor, ...], flat: Tensor | None) -> bool:
    """Return True if steps are described functions: under transformations, and for tensors that are traced."""
    return is_transformed() or is_traced((*start, *([] if flat is None else [flat])))
