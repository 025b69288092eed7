"""Backward pass of a rollout: cotangents of states, inputs and parameters, from the last step to the first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from ..arguments import is_number
from ..errors import InputError, is_whole
from ..kernels.derived_constants import derive_constants_vjp, derive_constants_vjp_jvp
from ..kernels.forward_mode import TANGENTS
from ..kernels.rollout import rollout_vjp_kernel
from ..model.params import Params
from ..model.state import State
from ..physics.collision.contact_geometry import FAR
from ..physics.tables import constants_size
from .checkpoints import CheckpointPlan, reverse
from .engine import Direction, Engine, Inputs


@dataclass(frozen=True)
class GradientOptions:
    """Conditioning of the cotangent of the state in a backward pass through many steps.

    It keeps gradients of long rollouts from growing. It applies to the state (q, v, act) of each batch element separately,
    before each control step of the backward pass: a control step is as many steps as a control is held for. The gradient
    is then not that of the loss, and has no Hessian.

    Attributes:
      decay: Factor of the cotangent, between 0 and 1.
      clip: Maximum Euclidean norm of the cotangent, applied before `decay`. None: no limit.
      truncate: Number of control steps, at multiples of which the cotangent of later steps is dropped. None: never.
    """

    decay: float = 1.0
    clip: float | None = None
    truncate: int | None = None

    def __post_init__(self) -> None:
        if self.truncate is not None and not is_whole(self.truncate, 1):
            raise InputError(f"truncate is a whole number, at least 1, not {self.truncate!r}")
        if not is_number(self.decay) or not 0.0 <= self.decay <= 1.0:
            raise InputError(f"decay is between 0 and 1, not {self.decay!r}")
        if self.clip is not None and not (is_number(self.clip) and self.clip > 0.0):
            raise InputError(f"clip is a norm above zero, not {self.clip!r}")

    @property
    def kernel_arguments(self) -> dict[str, Any]:
        """Arguments of `condition_cotangent`."""
        return {"decay": self.decay, "clipped": int(self.clip is not None), "clip": self.clip or 0.0}

    def truncations(self, end: int) -> list[int]:
        """Control steps between the first and `end` at which cotangents of later steps are dropped."""
        return [] if self.truncate is None else [*range(self.truncate, end, self.truncate)]


def active_options(given: GradientOptions | None) -> GradientOptions | None:
    """Return gradient options that change the gradient; None for those that do not."""
    if given is None:
        return None
    if not isinstance(given, GradientOptions):
        raise InputError(f"gradient_options is a GradientOptions(decay, clip, truncate), not {type(given).__name__}")
    return None if given == GradientOptions() else given


class LossBars(NamedTuple):
    """Cotangents of a loss; None is zero.

    Attributes:
      q, v, act: Of the last state (B, n), or of all states (B, T+1, n). q: ambient.
      force: Of contact forces, world axes, (B, T, points, 3).
    """

    q: Any = None
    v: Any = None
    act: Any = None
    force: Any = None


class StepsGradient(NamedTuple):
    """Cotangents of the inputs of steps, with a batch axis.

    Attributes:
      state: Of the first state, (B, n); q is ambient.
      u: Of controls, (B, T, nu).
      wrench: Of external wrenches, (B, T, nb, 6); None without wrenches.
      params: Of parameters; None if not computed.
    """

    state: State
    u: Any
    wrench: Any
    params: Params | None

    def named(self) -> dict[str, Any]:
        """Return cotangents by the names of the inputs."""
        return self.state.named() | {"u": self.u, "wrench": self.wrench, "params": self.params}


class Cotangents:
    """State of the backward pass of a rollout: the cotangent of the current state and those of the inputs so far.

    Args:
      engine: Engine of the simulator.
      inputs: Inputs of the rollout.
      bars: Cotangents of the loss.
      with_params: Compute the gradient of parameters.
      stretch: Number of steps between two given states; those between are recomputed.
      options: Conditioning of the cotangent of the state, before each control step.
      hold: Number of steps of a control step.

    Attributes:
      state_bar: Cotangent of the current state, (B, n), overwritten by each step.
      health: Largest solver residual and smallest switch margin of each batch element, (B, 2).
    """

    def __init__(
        self,
        engine: Engine,
        inputs: Inputs,
        bars: LossBars,
        with_params: bool,
        *,
        stretch: int = 1,
        options: GradientOptions | None = None,
        hold: int = 1,
    ):
        self.engine, self.inputs, self.stretch, self.device = engine, inputs, stretch, engine.device
        self.options, self.hold = options, hold
        m, batch, steps = engine.model, inputs.batch, inputs.steps
        self.every = int(any(x is not None and x.ndim == 3 for x in bars[:3]))
        split = [self._split(x, n) for x, n in zip(bars[:3], (m.nq, m.nv, m.na), strict=True)]
        self.state_bar, self.state_bars = State(*(x for x, _ in split)), State(*(x for _, x in split))
        self.u_bar = self.device.empty((batch, steps, m.nu))
        self.wrench_bar = None if inputs.wrench is None else self.device.empty((batch, steps, m.nb, 6))
        self.force_bars = bars.force
        self.kernel = self._bound(with_params)
        self.health = self.device.rows((0.0, FAR), batch)  # largest residual, smallest margin
        self.const_bar: Any = None
        if with_params:
            shape = self.kernel.kernel.packed_shape(batch, constants_size(m, bars=True))
            self.const_bar = self.device.packed_zeros(shape)

    def _bound(self, with_params: bool) -> Any:
        """Return the bound kernel of the backward pass."""
        return self.engine.bound_kernel(
            rollout_vjp_kernel,
            self.inputs,
            True,
            self.scratch,
            **self.flags(with_params),
            strided=self.stretch > 1,
            **({} if self.options is None else {"conditioned": True}),
        )

    @property
    def scratch(self) -> dict[str, int] | None:
        """Sizes of work arrays beside the workspace, by name."""
        return None if self.force_bars is None else {"force_bar": self.force_bars.shape[2] * 3}

    def flags(self, with_params: bool) -> dict[str, bool]:
        """Flags of the kernel."""
        return {"with_params": with_params, "force_bars": self.force_bars is not None}

    def _split(self, bars: Any, n: int) -> tuple[Any, Any]:
        """Return the cotangent of the last state (B, n), and those of all states (B, T+1, n).

        If no part of the state has cotangents of all states, the second one is a placeholder that is not read.
        """
        batch, steps = self.inputs.batch, self.inputs.steps
        if bars is not None and bars.ndim == 3:
            return bars[:, -1].copy(), bars
        last = self.device.zeros((batch, n)) if bars is None else bars.copy()
        if not self.every:
            return last, last[:, None]
        every = self.device.zeros((batch, steps + 1, n))
        every[:, -1] = last
        return last, every

    def segment(self, states: State, first: int, end: int) -> None:
        """Differentiate steps first .. end, given their states, or the first state of every stretch."""
        if self.options is not None:
            self._conditioned(states, first, end, self.options)
        elif self.stretch > 1:
            self._strided(states, first, end)
        else:
            batch = self.inputs.batch

            def steps(a: int, b: int) -> None:  # counted from the end
                rows = states.map(lambda x: x[:, end - first - b :]).named()
                self._call(end - b, end - a, length=b - a, **rows)

            self.engine.run_in_slices("backward", end - first, batch, steps)

    def _conditioned(self, states: State, first: int, end: int, options: GradientOptions) -> None:
        """Differentiate whole control steps, with the cotangent of the state conditioned before each."""
        hold, arguments = self.hold, options.kernel_arguments
        truncations = [t * hold for t in options.truncations(self.inputs.steps // hold)]
        edges = [first, *(t for t in truncations if first < t < end), end]
        for start, stop in reversed([*pairwise(edges)]):
            if stop in truncations:  # only the cotangent of the loss remains
                for bar, bars in zip(self.state_bar, self.state_bars, strict=True):
                    bar[:] = bars[:, stop] if self.every else 0.0

            def run(a: int, b: int, stop: int = stop) -> None:  # control steps, counted from the end
                begin = stop - b * hold
                rows = states.map(lambda x: x[:, begin - first :]).named()
                self._call(begin, stop - a * hold, stretches=b - a, length=hold, **rows, **arguments)

            self.engine.run_in_slices("backward", (stop - start) // hold, self.inputs.batch * hold, run)

    def _strided(self, states: State, first: int, end: int) -> None:
        """Differentiate stretches of steps, given the first state of each."""
        whole, rest = divmod(end - first, self.stretch)
        room = self.engine.empty_states(self.inputs.batch, self.stretch + 1).named()
        if rest:
            last = states.map(lambda x: x[:, whole:]).named("_kept")
            self._call(end - rest, end, stretches=1, length=rest, **room, **last)
        stop = end - rest

        def stretches(a: int, b: int) -> None:
            kept = states.map(lambda x: x[:, whole - b :]).named("_kept")
            span = stop - b * self.stretch, stop - a * self.stretch
            self._call(span[0], span[1], stretches=b - a, length=self.stretch, **room, **kept)

        self.engine.run_in_slices("strided", whole, self.inputs.batch * self.stretch, stretches)

    def rollout(self, kept: dict[int, State], plan: CheckpointPlan) -> None:
        """Differentiate all steps of a rollout, from the states that its plan kept.

        Kept states are dropped from `kept` except the first, to stay within the memory limit.
        """
        engine, inputs, (block, blocks, snapshots), T = self.engine, self.inputs, plan, self.inputs.steps
        if plan.keeps_all:
            self.segment(kept[0], 0, T)
            return
        status = engine.new_status(inputs.batch)

        def block_vjp(state: State, b: int) -> None:
            first, end = b * block, min((b + 1) * block, T)
            self.segment(engine.states(inputs, state, (first, end), 1, status), first, end)

        def advance(state: State, a: int, b: int) -> State:
            return engine.advance(inputs, state, (a * block, b * block), status)

        left = dict(kept)
        for b in left:
            if b:
                kept.pop(b, None)
        reverse(blocks, snapshots, left, advance, block_vjp)

    def _call(self, first: int, end: int, **states: Any) -> None:
        engine, inputs = self.engine, self.inputs
        self.kernel(
            inputs.batch,
            engine.threads,
            every=self.every,
            const=engine.constants(inputs.params, inputs.batch),
            **states,
            **engine.step_inputs(inputs, first, end),
            **self.bars(first, end),
            **({"health": self.health} if engine.constrained else {}),
        )

    def bars(self, first: int, end: int) -> dict[str, Any]:
        """Return cotangents as kernel arguments, for steps first .. end."""
        found = self.state_bars.map(lambda x: x[:, first:end]).named("_bars") | self.state_bar.named("_bar")
        found["u_bar"] = self.u_bar[:, first:end]
        if self.wrench_bar is not None:
            found["wrench_bar"] = self.wrench_bar[:, first:end]
        if self.force_bars is not None:
            found["force_bars"] = self.force_bars[:, first:end]
        if self.const_bar is not None:
            found["const_bar"] = self.const_bar
        return found

    def params_gradient(self) -> Params | None:
        """Return the gradient of parameters; None if it is not computed."""
        if self.const_bar is None:
            return None
        engine, inputs = self.engine, self.inputs
        return derive_constants_vjp(
            inputs.params, engine.options, inputs.batch, engine.threads, self.device, self.const_bar
        )

    def gradient(self) -> StepsGradient:
        """Return the gradient of all inputs."""
        return StepsGradient(self.state_bar, self.u_bar, self.wrench_bar, self.params_gradient())


def vjp_tangent(
    engine: Engine,
    inputs: Inputs,
    states: tuple[State, State],
    bars: tuple[LossBars, LossBars],
    d: Direction,
    with_params: bool,
) -> tuple[StepsGradient, Any]:
    """Return the tangent of the gradient of a rollout, and its smallest switch margin.

    Args:
      engine: Engine of the simulator.
      inputs: Inputs of the rollout.
      states: States and their tangents; q may lack the last row.
      bars: Cotangents of the loss, and their tangents.
      d: Direction of the inputs.
      with_params: Compute the tangent of the gradient of parameters.
    """
    batch, T = inputs.batch, inputs.steps
    back, d_back = (Cotangents(engine, inputs, x, with_params) for x in _same_form(engine, inputs, bars))
    flags = back.flags(with_params)
    flags["with_params"] |= d.params is not None
    moving = d.params is not None
    maker = TANGENTS[rollout_vjp_kernel]
    kernel = engine.bound_kernel(maker, inputs, True, back.scratch, **flags, moving_params=moving)
    more = engine.constants_with_tangents(inputs.params, batch, d)
    if engine.constrained:
        more["health"] = back.health
    if flags["with_params"] and not with_params:
        shape = kernel.kernel.packed_shape(batch, constants_size(engine.model, bars=True))
        more |= {name: engine.device.packed_zeros(shape) for name in ("const_bar", "d_const_bar")}

    def run(a: int, b: int) -> None:  # counted from the end
        first, end = T - b, T - a
        rows, d_rows = (x.map(lambda y: y[:, first:]).named() for x in states)
        given = engine.with_tangents(rows | engine.step_inputs(inputs, first, end), d._replace(**d_rows), first, end)
        d_bars = {f"d_{name}": x for name, x in d_back.bars(first, end).items()}
        kernel(
            batch, engine.threads, every=back.every, length=b - a, **given, **back.bars(first, end), **d_bars, **more
        )

    engine.run_in_slices("tangent backward", T, batch, run)
    params = None
    if with_params:
        setting = (engine.options, batch, engine.threads, engine.device)
        params = derive_constants_vjp_jvp(inputs.params, d.params, *setting, back.const_bar, d_back.const_bar)
    return StepsGradient(d_back.state_bar, d_back.u_bar, d_back.wrench_bar, params), back.health[:, 1]


def _same_form(engine: Engine, inputs: Inputs, bars: tuple[LossBars, LossBars]) -> list[LossBars]:
    """Return cotangents and their tangents in one form: both of all states or both of the last, with forces if one has some."""
    m, batch, rows = engine.model, inputs.batch, inputs.steps + 1
    every = any(x is not None and x.ndim == 3 for own in bars for x in own[:3])
    force = next((x.shape for own in bars if (x := own.force) is not None), None)

    def spread(x: Any, n: int) -> Any:
        if x is None:
            return engine.device.zeros((batch, rows, n) if every else (batch, n))
        if not every or x.ndim == 3:
            return x
        whole = engine.device.zeros((batch, rows, n))
        whole[:, -1] = x
        return whole

    return [
        LossBars(
            spread(own.q, m.nq),
            spread(own.v, m.nv),
            spread(own.act, m.na),
            own.force if force is None or own.force is not None else engine.device.zeros(force),
        )
        for own in bars
    ]
