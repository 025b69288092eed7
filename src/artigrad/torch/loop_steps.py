"""The physics of a closed loop as nodes of PyTorch's graph: one per control step, on memory that all of them share.

Under a transformation of `torch.func`, in forward mode and for derivatives of gradients, a step is a described function
(`tensor_functions`) instead, which has all of these.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..simulate.cotangents import Cotangents, GradientOptions, LossBars
from ..simulate.function import call_of
from ..simulate.simulator import Simulator
from ..simulate.step_functions import ROLLOUT
from .loop_memory import Loop, bind, carried_bars, shared_memory
from .tensor_checks import aliases, is_batched
from .tensor_functions import apply_call

Parts = tuple[Tensor, ...]


class DescribedSteps:
    """Control steps as described functions."""

    def __init__(self, sim: Simulator, hold: int, options: GradientOptions | None, flat: Tensor | None, start: Parts):
        self.sim, self.flat = sim, flat
        self.call = call_of(ROLLOUT, sim, hold, None, options, hold)
        self.hold, self.rows, self.controls = hold, [[x.unsqueeze(-2)] for x in start], list[Tensor]()

    def __call__(self, t: int, state: Parts, u: Tensor) -> Parts:
        """The state after a control step."""
        held = u.unsqueeze(-2).expand(*u.shape[:-1], self.hold, u.shape[-1])
        named = dict(zip(("q", "v", "act"), state, strict=False)) | {"u": held, "params": self.flat}
        found = apply_call(self.call, tuple(named.get(name) for name in self.call.inputs))
        for rows, x in zip(self.rows, found, strict=True):
            rows.append(x[..., 1:, :])
        self.controls.append(held)
        return tuple(x[..., -1, :] for x in found)

    def finish(self) -> Loop:
        """All states and controls."""
        return Loop.of(*(torch.cat(rows, -2) for rows in self.rows), torch.cat(self.controls, -2))


class NativeSteps:
    """Control steps on shared memory: kernels are bound once, forward and back."""

    def __init__(
        self,
        sim: Simulator,
        steps: int,
        hold: int,
        options: GradientOptions | None,
        flat: Tensor | None,
        start: Parts,
    ):
        self.sim, self.hold, self.options = sim, hold, options
        lead = start[0].shape[:-1]
        states = [x.detach().new_empty(*lead, steps + 1, x.shape[-1]) for x in start]
        for x, x0 in zip(states, start, strict=True):
            x[..., 0, :] = x0.detach()
        self.loop = Loop.of(*states, states[0].new_empty(*lead, steps, sim.model.nu))
        self.back: Cotangents | None = None
        self.task = -1  # backward pass that `back` belongs to
        with sim.engine.device.working([self.loop.u]):
            self.inputs, self.rows = bind(sim, self.loop, flat)
            if sim.checks.on_host:
                sim.checks.state(self.rows.map(lambda x: x[:, 0]))
            self.status = sim.engine.new_status(self.inputs.batch)
        self.start = start
        self.flat = None if flat is None else _LoopParameters.apply(self, flat)
        self.found: list[Tensor] = []

    def __call__(self, t: int, state: Parts, u: Tensor) -> Parts:
        """The state after a control step."""
        rows = _Step.apply(self, t, self.flat, *state, u)
        self.found += [*rows, u]
        return rows if self.hold == 1 else tuple(x[..., -1, :] for x in rows)

    def finish(self) -> Loop:
        """All states and controls."""
        self.sim.checks.warn_if_rollout_unsolved(self.status[:, 0])
        found, self.found = self.found, []
        return Loop.of(*_Collected.apply(self, *self.start, *found))

    # -- the work ------------------------------------------------------------------------------------------------------
    def forward(self, t: int, u: Tensor) -> Parts:
        """Rows of the states after control step t; of one step without the axis of time."""
        end = t + self.hold
        with self.sim.engine.device.working([u]):
            self.loop.u[..., t:end, :] = u.detach()[..., None, :]
            self.sim.engine.extend(self.inputs, self.rows, t, self.status, self.hold)
            parts = self.loop.parts(self.sim)
            return tuple(
                x[..., end, :].clone() if self.hold == 1 else x[..., t + 1 : end + 1, :].clone() for x in parts
            )

    def backward(self, t: int, bars: tuple[Tensor | None, ...], with_params: bool) -> list[Tensor]:
        """Cotangents of the state and the controls of control step t."""
        end, lead = t + self.hold, self.loop.u.shape[:-2]
        with self.sim.engine.device.working([self.loop.u]):
            if self.back is None or self.task != torch._C._current_graph_task_id():
                self.back, self.task = self._cotangents(with_params), torch._C._current_graph_task_id()
            back = self.back
            carried = carried_bars(back)
            for k, (mine, bar) in enumerate(zip(carried, bars, strict=True)):
                if bar is None:
                    mine.zero_()
                    continue
                last = bar if self.hold == 1 else bar[..., -1, :]
                mine.copy_(last.reshape(mine.shape))
                if self.hold > 1:
                    rows = shared_memory(back.engine, back.state_bars[k])
                    rows[:, t + 1 : end] = bar[..., :-1, :].reshape(len(rows), self.hold - 1, bar.shape[-1])
            if not self.sim.checks.on_host or all(bool(x.isfinite().all()) for x in carried):
                back.segment(self.rows.map(lambda x: x[:, t : end + 1]), t, end)
            else:  # as everywhere, NaN in a cotangent is one in the gradient
                self._with_nan(back, carried, t, end)
            found = [x.reshape(*lead, x.shape[-1]).clone() for x in carried]
            u_bars = shared_memory(back.engine, back.u_bar).reshape(self.loop.u.shape)
            if t == 0:
                self._check(back)
            return [*found, u_bars[..., t:end, :].sum(-2)]

    def _with_nan(self, back: Cotangents, carried: list[Tensor], t: int, end: int) -> None:
        bad = ~torch.stack([x.isfinite().all(-1) for x in carried]).all(0)
        for x in carried:
            x[bad] = 0.0
        back.segment(self.rows.map(lambda x: x[:, t : end + 1]), t, end)
        for x in (*carried, shared_memory(back.engine, back.u_bar)[:, t:end]):
            x[bad] = torch.nan

    def _cotangents(self, with_params: bool) -> Cotangents:
        rows = LossBars()
        if self.hold > 1:  # cotangents of the states between controls
            rows = LossBars(*(self.sim.engine.device.zeros(tuple(x.shape)) for x in self.rows))
        return Cotangents(self.sim.engine, self.inputs, rows, with_params, options=self.options, hold=self.hold)

    def _check(self, back: Cotangents) -> None:
        """Warn of gradients that are not to be trusted, when the first step is reached."""
        if self.sim.checks.on_host:
            self.sim.checks.finite([*back.state_bar, back.u_bar], self.inputs.batch)
            if not self.sim.engine.law.reported_forward:
                self.sim.checks.warn_if_unsolved(self.status[:, 0])


class _LoopParameters(torch.autograd.Function):
    """Parameters of all steps, whose cotangents are accumulated over the steps and end here."""

    @staticmethod
    def forward(ctx: Any, steps: NativeSteps, flat: Tensor) -> Tensor:
        ctx.steps = steps
        ctx.set_materialize_grads(False)
        return flat.detach().view_as(flat)

    @staticmethod
    def backward(ctx: Any, bar: Tensor | None) -> Any:
        steps = ctx.steps
        if steps.back is None or steps.task != torch._C._current_graph_task_id():
            return None, bar  # steps were differentiated as described functions
        with steps.sim.engine.device.working([steps.loop.u]):
            params = steps.back.params_gradient()
        steps.back = None
        if params is None:
            return None, bar
        total = torch.tensor(params.flat).reshape(steps.flat.shape)
        return None, total if bar is None else total + bar  # of steps and of their second derivatives


class _Step(torch.autograd.Function):
    """One control step: states (..., n), or (..., hold, n) where controls are held. tensors: the state and the controls."""

    @staticmethod
    def forward(ctx: Any, steps: NativeSteps, t: int, flat: Tensor | None, *tensors: Tensor) -> Any:
        ctx.steps, ctx.t = steps, t
        ctx.save_for_backward(flat, *tensors)
        ctx.set_materialize_grads(False)
        return steps.forward(t, tensors[-1])

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> Any:
        steps: NativeSteps = ctx.steps
        needed = ctx.needs_input_grad[2:]
        flat, *tensors = ctx.saved_tensors
        if all(bar is None for bar in bars):
            return None, None, *(None for _ in needed)
        if torch.is_grad_enabled() or any(map(is_batched, bars)):
            found = _described(steps, flat, tensors, bars, needed)
        else:
            found = [None, *steps.backward(ctx.t, bars, needed[0])]
        return None, None, *(x if need else None for x, need in zip(found, needed, strict=True))


def _described(
    steps: NativeSteps, flat: Tensor | None, tensors: list[Tensor], bars: tuple[Any, ...], needed: tuple[bool, ...]
) -> list[Any]:
    """Return the cotangents as differentiable functions of all inputs, for derivatives of gradients."""
    create = torch.is_grad_enabled()
    with torch.enable_grad():
        flat, *tensors = aliases((flat, *tensors))
        again = DescribedSteps(steps.sim, steps.hold, steps.options, flat, tuple(tensors[:-1]))
        after = again(0, tuple(tensors[:-1]), tensors[-1])
        rows = after if steps.hold == 1 else tuple(x[1] for x in again.rows)
        inputs = [x for x, need in zip((flat, *tensors), needed, strict=True) if need and x is not None]
        pairs = [(x, bar) for x, bar in zip(rows, bars, strict=True) if bar is not None]
        outputs, given = (list(x) for x in zip(*pairs, strict=True))
        found = iter(torch.autograd.grad(outputs, inputs, given, create_graph=create, allow_unused=True))
    return [next(found) if need else None for need in needed]


class _Collected(torch.autograd.Function):
    """States and controls of all steps, as they lie in the loop's memory. tensors: the first state; states and controls of
    each control step."""

    @staticmethod
    def forward(ctx: Any, steps: NativeSteps, *tensors: Tensor) -> Any:
        ctx.steps = steps
        found = tuple(x.detach() for x in (*steps.loop.parts(steps.sim), steps.loop.u))
        ctx.save_for_backward(*found)
        ctx.set_materialize_grads(False)
        return found

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> Any:
        _ = ctx.saved_tensors  # raises where states were changed in place
        steps: NativeSteps = ctx.steps
        *states, u = bars
        hold, count = steps.hold, steps.loop.u.shape[-2]

        def rows(x: Tensor | None, t: int) -> Tensor | None:
            if x is None:
                return None
            return x[..., t + 1, :] if hold == 1 else x[..., t + 1 : t + 1 + hold, :]

        out: list[Tensor | None] = [None if x is None else x[..., 0, :] for x in states]
        for t in range(0, count, hold):
            out += [rows(x, t) for x in states]
            out.append(None if u is None else u[..., t : t + hold, :].sum(-2))
        return None, *out
