"""A policy in the loop on a GPU, recorded: the launches of all steps, of physics and network, become one CUDA graph forward
and one backward, so that no Python runs between two steps.

A graph works on the memory it was recorded with. Weights are read from their memory (optimizers change them in place), states
are copied in and out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..arguments import checked
from ..deprecation import moved_arguments
from ..errors import InputError
from ..simulate.cotangents import Cotangents, GradientOptions, LossBars, active_options
from ..simulate.simulator import Simulator
from .loop_memory import Loop, PolicyAdjoint, bind, carried_bars, check_loop, through_loop, unroll, weights_of
from .sequential import OfState
from .tensor_checks import DTYPES, device_of, first_only
from .tensor_functions import functions

WARM_UP = 3  # runs before recording, in which PyTorch's libraries make what they keep


class RecordedLoop:
    """`closed_loop` for `batch` robots and `steps` steps on a GPU, recorded once. Calling it with a state (batch, n) gives the
    Loop, differentiable with respect to the weights of the policy and the state.

    The policy must launch the same kernels in each call, without reading values in Python. No other call is allowed between a
    call and its backward pass. While it is recorded no other loss of these weights may live: PyTorch would have to
    wait for the stream on which that was computed, which cannot be recorded. gradient_options: as in `closed_loop`.
    """

    @moved_arguments(gradient_options=GradientOptions)
    @checked
    def __init__(
        self,
        sim: Simulator,
        policy: nn.Module,
        batch: int,
        steps: int,
        *,
        gradient_options: GradientOptions | None = None,
    ):
        if sim.checks.on_host:
            raise InputError("a loop is recorded on a GPU: make a Simulator(device='cuda'), or call closed_loop")
        if sim.engine.buffer_may_overflow:
            raise InputError(
                "a CUDA graph cannot check the contact buffer for overflow: make the Simulator with max_contacts large enough "
                "for all candidate contact points"
            )
        policy = OfState(policy) if isinstance(policy, nn.Sequential) else policy
        self.sim, self.policy, self.calls = sim, policy, 0
        m = sim.model
        check_loop(policy, steps)
        self.weights = weights_of(policy)
        self._places = [w.data_ptr() for w in self.weights]

        def empty(rows: int, n: int) -> Tensor:
            return torch.zeros(batch, rows, n, dtype=DTYPES[sim.dtype], device=device_of(sim))

        self.loop = Loop(
            *(empty(rows, n) for rows, n in ((steps + 1, m.nq), (steps + 1, m.nv), (steps, m.nu), (steps + 1, m.na)))
        )
        self.bars = Loop(*map(torch.zeros_like, self.loop))
        start = sim.model.keyframe()
        for whole, first in zip(self.loop.parts(sim), start, strict=False):
            whole[:, 0] = torch.tensor(first, dtype=whole.dtype, device=whole.device)
        with sim.engine.device.working([self.loop.q]):
            inputs, states = bind(sim, self.loop, None)
            self._constants = sim.engine.constants(sim.params, batch)  # stays while the graphs read it
            direct = [sim.checks.array("a cotangent", x) for x in self.bars.parts(sim)]
            back = Cotangents(sim.engine, inputs, LossBars(*direct), False, options=active_options(gradient_options))
            self.first_bars = carried_bars(back)
        self.adjoint = PolicyAdjoint(sim, policy, self.weights, self.loop.u)

        def forward() -> None:
            with torch.no_grad(), sim.engine.device.working([self.loop.q]):
                unroll(sim, policy, self.loop, inputs, states)

        def backward() -> None:
            with sim.engine.device.working([self.loop.q]), torch.no_grad():
                for mine, bars in zip(self.first_bars, self.bars.parts(sim), strict=True):
                    mine.copy_(bars[:, -1])
                for bar in self.adjoint.weight_bars:
                    bar.zero_()
                through_loop(back, states, self.adjoint, self.loop, self.bars.u)

        self._work = forward, backward  # whose arrays the graphs write to as long as they play
        self.play = record(forward)
        self.play_backward = record(backward)

    def __call__(self, state: tuple[Tensor, ...]) -> Loop:
        given = list(functions.given(self.sim, state).values())
        wanted = [tuple(x[:, 0].shape) for x in self.loop.parts(self.sim)]
        if [tuple(x.shape) for x in given] != wanted:
            raise InputError(
                f"this loop was recorded for states {wanted[0]} and {wanted[1]}: record another for others"
            )
        if [w.data_ptr() for w in self.weights] != self._places:
            raise InputError("the weights of the policy lie elsewhere than when the loop was recorded: record it again")
        return Loop(*_Played.apply(self, *given, *self.weights))


class _Played(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, recorded: RecordedLoop, *tensors: Tensor) -> Any:
        parts = recorded.loop.parts(recorded.sim)
        for x, x0 in zip(parts, tensors, strict=False):
            x[:, 0] = x0
        weights = tensors[len(parts) :]
        recorded.play()
        recorded.calls += 1
        ctx.recorded, ctx.call = recorded, recorded.calls
        ctx.save_for_backward(*weights)  # so that a change before the backward pass is noticed
        return tuple(x.clone() for x in recorded.loop)

    @staticmethod
    def backward(ctx: Any, *bars: Tensor) -> Any:
        recorded, weights = ctx.recorded, ctx.saved_tensors
        if recorded.calls != ctx.call:
            raise InputError("this loop was called again before its backward pass, and keeps the states of one call")
        for mine, bar in zip(recorded.bars, bars, strict=True):
            mine.copy_(bar)
        recorded.play_backward()
        recorded.adjoint.check()
        found = tuple(x.clone() for x in (*recorded.first_bars, *recorded.adjoint.weight_bars))
        return None, *first_only(found, ctx.needs_input_grad[1:], weights)


def record(work: Callable[[], None]) -> Callable[[], None]:
    """Record what `work` launches; what comes back plays it."""
    now, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(now)
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            work()
    now.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay
