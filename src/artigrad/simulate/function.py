"""Record of a differentiable function of a simulator, and its evaluation on arrays with any leading axes.

A `FunctionRecord` names its inputs and outputs with their shapes, and holds four callables: the function, its adjoint (vjp),
its forward mode (jvp) and the forward mode of its adjoint (vjp_jvp). They take rows: arrays by name with one axis for the
batch, validated, on the simulator's device; parameters are a `Params`. The records are in `state_functions` and
`step_functions`; methods of `Simulator`, `artigrad.torch` and `artigrad.jax` follow from them.

`evaluate`, `pull_back`, `push_forward` and `push_pull_back` apply the four to arrays of a framework. A cotangent or tangent
that is None is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..kernels.devices import all_finite, finite_rows
from ..model.params import Params
from ..model.state import State
from .arrays import Axes, in_rows, leading, params_bar, params_of, spread_params
from .checkpoints import Checkpoints
from .cotangents import GradientOptions
from .engine import Direction
from .results import device_boundary

if TYPE_CHECKING:
    from .simulator import Simulator

Rows = dict[str, Any]
Shape = tuple[Any, ...]  # sizes: integers, or names resolved by `Call.size`

STATE: dict[str, Shape] = {"q": ("nq",), "v": ("nv",), "act": ("na",)}
CONTROL: dict[str, Shape] = {"u": ("nu",)}
PARAMS: dict[str, Shape] = {"params": ("param_size",)}


@dataclass(frozen=True, eq=False)
class FunctionRecord:
    """Record of a differentiable function.

    Attributes:
      inputs: Shape of each input of one batch element, by name; parameters are the last.
      outputs: Shape of each output, or a function of the call that returns them.
      kept: Names of the inputs and outputs that the adjoint reads.
      forward: forward(call, x) returns the outputs for rows of inputs.
      vjp: vjp(call, x, bars, with_params) returns cotangents of the inputs by name; x: rows of what is kept.
      jvp: jvp(call, x, d) returns tangents of the outputs; d: tangents of inputs.
      vjp_jvp: vjp_jvp(call, x, bars, d, d_bars, with_params) returns tangents of the cotangents. None: not available.
      query: Name of the kernel of a function of one state (`kernels.queries`), if it has one.
      argument: Input of that kernel beside the state.
    """

    name: str
    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape] | Callable[[Call], Mapping[str, Shape]]
    kept: tuple[str, ...]
    forward: Callable[[Call, Rows], tuple[Any, ...]]
    vjp: Callable[[Call, Rows, Rows, bool], Rows]
    jvp: Callable[[Call, Rows, Rows], tuple[Any, ...]] | None = None
    vjp_jvp: Callable[[Call, Rows, Rows, Rows, Rows, bool], Rows] | None = None
    query: str | None = None
    argument: str | None = None


@dataclass(frozen=True)
class Call:
    """A function of one simulator, with its static arguments.

    Attributes:
      steps: Number of steps of a rollout.
      checkpoints: States that the rollout keeps.
      options: Conditioning of the backward pass, before each control step of `hold` steps.
    """

    function: FunctionRecord
    sim: Simulator
    steps: int = 1
    checkpoints: Checkpoints | None = None
    options: GradientOptions | None = None
    hold: int = 1

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.function.name

    def size(self, name: Any) -> int:
        """Return a size by name.

        Names are fields of the model, T (steps), T+1, n (dimension of the tangent space) and points (candidate contact
        points).
        """
        m = self.sim.model
        if name in ("T", "T+1"):
            return self.steps + (name == "T+1")
        if name == "n":
            return 2 * m.nv + m.na
        if name == "points":
            return len(self.sim.contact_names)
        return name if isinstance(name, int) else getattr(m, name)

    def _shapes(self, given: Mapping[str, Shape]) -> dict[str, Axes]:
        """Return shapes as integers, without activations for a model that has none."""
        there = {name: shape for name, shape in given.items() if self.sim.model.na or "na" not in shape}
        return {name: tuple(map(self.size, shape)) for name, shape in there.items()}

    @cached_property
    def input_shapes(self) -> dict[str, Axes]:
        """Shape of each input of one batch element."""
        return self._shapes(self.function.inputs)

    @cached_property
    def outputs(self) -> dict[str, Axes]:
        """Shape of each output of one batch element."""
        given = self.function.outputs
        return self._shapes(given(self) if callable(given) else given)

    @cached_property
    def inputs(self) -> dict[str, int]:
        """Number of axes of each input of one batch element."""
        return {name: len(shape) for name, shape in self.input_shapes.items()}

    @cached_property
    def bar_axes(self) -> dict[str, int]:
        """Number of axes of each output, and of its cotangent."""
        return {name: len(shape) for name, shape in self.outputs.items()}

    @cached_property
    def kept_axes(self) -> dict[str, int]:
        """Number of axes of each array that the adjoint reads."""
        known = self.bar_axes | self.inputs
        return {name: known[name] for name in self.function.kept if name in known}

    def kept(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
        """Arrays that the adjoint reads."""
        known = dict(zip(self.outputs, outputs, strict=True)) | dict(zip(self.inputs, inputs, strict=True))
        return tuple(known[name] for name in self.kept_axes)

    def check_second(self) -> None:
        """Refuse forward mode of an adjoint that has none."""
        if self.options is not None:
            raise InputError("gradients with decay, clip or truncate are not those of the rollout, and have no Hessian")
        if self.function.vjp_jvp is None:
            name = "a rollout with checkpoints" if self.name == "last" else self.name
            raise InputError(f"{name} has first derivatives only: take differences of its gradient for second ones")


CALLS = 256  # cached calls per simulator: constructing one takes as long as a short step


def call_of(function: FunctionRecord, sim: Simulator, *static: Any) -> Call:
    """Return a call with these static arguments, the same object each time."""
    known, key = sim.engine.calls, (function, *static)
    try:
        found = known.get(key)
    except TypeError:  # a checkpoint policy that is not hashable
        return Call(function, sim, *static)
    if found is None:
        if len(known) >= CALLS:
            known.clear()
        found = known[key] = Call(function, sim, *static)
    return found


# -- arrays with any leading axes ----------------------------------------------------------------------------------------
def evaluate(call: Call, given: Sequence[Any]) -> tuple[Any, ...]:
    """Return the outputs for inputs with any leading axes; None is an absent input."""
    axes = call.inputs
    lead = leading(*zip(given, axes.values(), strict=True))
    rows = _rows(given, axes, lead) | {"params": params_of(call.sim, given[-1], lead)}
    return tuple(x.reshape((*lead, *x.shape[1:])) for x in _evaluate(call.sim, call, rows))


def pull_back(call: Call, kept: Sequence[Any], bars: Sequence[Any], with_params: bool) -> tuple[Any, ...]:
    """Return the cotangents of the inputs for those of the outputs.

    Inputs have all leading axes; parameters have their own leading axes.
    """
    axes = call.kept_axes
    lead = leading(*zip((*kept, *bars), (*axes.values(), *call.bar_axes.values()), strict=True))
    flat = dict(zip(axes, kept, strict=True))["params"]
    own = with_params and flat is not None and prod(lead[: flat.ndim - 1]) > 1
    rows = _rows(kept, axes, lead) | {"params": params_of(call.sim, flat, lead, own)}
    bar_rows = _rows(bars, call.bar_axes, lead)
    bad = _diverged(call, bar_rows)
    if bad is not None:
        bar_rows = {name: None if x is None else _filled(x, bad, 0.0) for name, x in bar_rows.items()}
    found = _pull_back(call.sim, call, rows, bar_rows, with_params)
    if bad is not None:
        found = _with_nan(call, found, bad)
    return _with_lead(call, found, flat, lead)


def push_forward(call: Call, kept: Sequence[Any], d_inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the tangents of the outputs, with all leading axes.

    Args:
      call: The function.
      kept: Arrays that the adjoint reads.
      d_inputs: Tangents of the inputs.
    """
    axes = call.kept_axes | call.inputs
    known, moved = dict(zip(call.kept_axes, kept, strict=True)), dict(zip(call.inputs, d_inputs, strict=True))
    lead = leading(*((x, axes[name]) for given in (known, moved) for name, x in given.items()))
    rows, d_rows = _rows_along(call, known, moved, lead, False)
    return tuple(x.reshape((*lead, *x.shape[1:])) for x in _push_forward(call.sim, call, rows, d_rows))


def push_pull_back(
    call: Call,
    kept: Sequence[Any],
    bars: Sequence[Any],
    d_kept: Sequence[Any],
    d_bars: Sequence[Any],
    with_params: bool,
) -> tuple[Any, ...]:
    """Return the tangents of the cotangents of the inputs, with all leading axes; parameters have their own."""
    call.check_second()
    known, moved = (dict(zip(call.kept_axes, x, strict=True)) for x in (kept, d_kept))
    axes = (*call.kept_axes.values(), *call.bar_axes.values())
    lead = leading(*zip((*kept, *bars, *d_kept, *d_bars), (*axes, *axes), strict=True))
    rows, d_rows = _rows_along(call, known, moved, lead, with_params)
    bar_rows, d_bar_rows = (_rows(x, call.bar_axes, lead) for x in (bars, d_bars))
    found = _push_pull_back(call.sim, call, (rows, bar_rows, d_rows, d_bar_rows), with_params)
    return _with_lead(call, found, known["params"], lead)


@device_boundary
def _evaluate(sim: Simulator, call: Call, x: Rows) -> tuple[Any, ...]:
    return call.function.forward(call, check_rows(call, x))


@device_boundary
def _pull_back(sim: Simulator, call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    return call.function.vjp(call, here(sim, x), here(sim, bars), with_params)


@device_boundary
def _push_forward(sim: Simulator, call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    assert call.function.jvp is not None
    return call.function.jvp(call, here(sim, x), here(sim, d))


@device_boundary
def _push_pull_back(sim: Simulator, call: Call, given: tuple[Rows, Rows, Rows, Rows], with_params: bool) -> Rows:
    assert call.function.vjp_jvp is not None
    x, bars, d, d_bars = (here(sim, rows) for rows in given)
    return call.function.vjp_jvp(call, x, bars, d, d_bars, with_params)


def check_rows(call: Call, x: Rows) -> Rows:
    """Return validated rows on the simulator's device."""
    checks = call.sim.checks
    state = checks.state(state_of(x))[0].named() if "q" in x else {}
    others = {k: y for k, y in x.items() if y is not None and k not in ("params", *state)}
    return x | state | {k: checks.array(k, y) for k, y in others.items()}


def here(sim: Simulator, x: Rows) -> Rows:
    """Return rows on the simulator's device."""
    if sim.checks.on_host:
        return x
    array = sim.checks.array
    return {k: y if y is None or k == "params" else array(k, y) for k, y in x.items()}


def state_of(x: Rows, suffix: str = "") -> State:
    """Return the state among rows, or the arrays whose names have a suffix."""
    return State(*(x[name + suffix] for name in State._fields if name + suffix in x))


def direction_of(d: Rows, **more: Any) -> Direction:
    """Return tangents of inputs as a direction."""
    named = {k: d[k] for k in ("q", "v", "act", "u", "wrench", "params") if k in d}
    return Direction(**(named | more))


# -- rows ----------------------------------------------------------------------------------------------------------------
def _rows(arrays: Iterable[Any], axes: dict[str, int], lead: Axes) -> Rows:
    """Return arrays by name as rows, without parameters."""
    named = zip(axes.items(), arrays, strict=True)
    return {name: None if x is None else in_rows(x, lead, own) for (name, own), x in named if name != "params"}


def _rows_along(call: Call, x: Rows, d: Rows, lead: Axes, own: bool) -> tuple[Rows, Rows]:
    """Return arrays and their tangents as rows.

    Parameters of both are one set; or one per batch element if there are several sets or `own` is True.
    """
    flat, d_flat = x["params"], d["params"]
    sets = [prod(lead[: y.ndim - 1]) if own else prod(y.shape[:-1]) for y in (flat, d_flat) if y is not None]
    several = any(n > 1 for n in sets)
    axes = call.kept_axes | call.inputs
    rows, moved = (_rows(z.values(), {k: axes[k] for k in z}, lead) for z in (x, d))
    rows["params"] = params_of(call.sim, flat, lead, several)
    moved["params"] = None if d_flat is None else spread_params(np.asarray(d_flat, float), lead, several)
    return rows, moved


def _with_lead(call: Call, found: Rows, flat: Any, lead: Axes) -> tuple[Any, ...]:
    """Return cotangents of the inputs in their order, with leading axes."""
    out = {name: x.reshape((*lead, *x.shape[1:])) for name, x in found.items() if x is not None and name != "params"}
    if found.get("params") is not None:
        out["params"] = params_bar(found["params"].flat, flat, lead)
    return tuple(out.get(name) for name in call.inputs)


def _diverged(call: Call, bars: Rows) -> Any:
    """Return a mask (batch,) of batch elements with a cotangent that is not finite, or None if there are none.

    On a GPU return None, to avoid a wait.
    """
    given = [x for x in bars.values() if x is not None]
    if not given or not call.sim.checks.on_host:
        return None
    given = [np.asarray(x) for x in given]
    if all(map(all_finite, given)):
        return None
    return ~finite_rows([x.reshape(len(x), -1) for x in given], len(given[0]))


def _filled(x: Any, which: Any, value: float) -> Any:
    """Return a copy with a value in the rows of some batch elements."""
    out = np.array(x)
    out[which] = value
    return out


def _with_nan(call: Call, found: Rows, bad: Any) -> Rows:
    """Return cotangents with NaN for batch elements in `bad`.

    Sums over batch elements that share parameters are NaN too.
    """
    known = {name: np.asarray(x) for name, x in found.items() if x is not None and name != "params"}
    warned = not all(map(all_finite, known.values()))
    out: Rows = {**found, **{name: _filled(x, bad, np.nan) for name, x in known.items()}}
    params = found.get("params")
    if params is not None:
        flat = _filled(params.flat, bad, np.nan) if params.flat.ndim > 1 else np.full_like(params.flat, np.nan)
        out["params"] = Params.of(call.sim.model, flat)
    if not warned:
        call.sim.checks.finite([out[name] for name in known], len(bad))
    return out
