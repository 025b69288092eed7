"""Engine: runs one model on one device. It binds arrays to kernels, computes constants from parameters, and caches both.

Its arguments are validated (`checks`) and have a batch axis.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ..compiler import Kernel
from ..errors import ContactError, warn
from ..kernels.derived_constants import (
    derive_constants,
    derive_constants_jvp,
    derive_constants_vjp,
    derive_constants_vjp_jvp,
)
from ..kernels.devices import Device, Host
from ..kernels.forward_mode import TANGENTS, rollout_tangent_kernel
from ..kernels.jacobian import jacobian_kernel
from ..kernels.key import KernelKey
from ..kernels.queries import QUERIES, query_kernel, query_vjp_kernel, query_work
from ..kernels.rollout import contacts_kernel, rollout_kernel
from ..model.height_fields import check_windows
from ..model.model import Model
from ..model.options import Options
from ..model.param_checks import check_params, check_structure
from ..model.params import Params
from ..model.state import State
from ..physics.collision.candidates import candidates, contact_names, routines_of, solids_of
from ..physics.constraints.law import Law, law_of
from ..physics.constraints.narrowphase import LOST
from ..physics.constraints.report import REPORT
from ..physics.features import Features
from ..physics.sensors.distance_sensors import measured_pairs
from ..physics.sensors.sensor_table import sensor_arguments, sensor_features
from ..physics.tables import Workspace, constants_size, dof_rows, lone_links, topology_arguments
from .checkpoints import CheckpointPlan, forward_snapshots

SLICE = 0.05  # s, of native work between two checks for Ctrl-C
TOUCHED = 1 << 25  # bytes of new memory written between two checks for Ctrl-C
FIRST = 16  # steps of the first slice, which measures the time of a step
KEPT = 4  # cached sets of constants, for calls that alternate between several Params


class Inputs(NamedTuple):
    """Inputs of a rollout beside its first state.

    Attributes:
      batch: Number of batch elements B.
      u: Controls (T, nu), shared, or (B, T, nu).
      wrench: External wrenches (T, nb, 6) or (B, T, nb, 6); None without.
      params: One set, or one per batch element.
    """

    batch: int
    u: Any
    wrench: Any
    params: Params

    @property
    def steps(self) -> int:
        return self.u.shape[-2]


class Direction(NamedTuple):
    """Tangents of the inputs of a call, with a batch axis; None is zero.

    Attributes:
      q, v, act: Of the state, (B, n), or of rows of states, (B, rows, n).
      u, wrench: Of the inputs of all steps, (B, T, nu) and (B, T, nb, 6).
      params: Of flat parameters, (n,), or (B, n) where every batch element has its own.
      x: Of the input of a query, (B, n).
    """

    q: Any = None
    v: Any = None
    act: Any = None
    u: Any = None
    wrench: Any = None
    params: np.ndarray | None = None
    x: Any = None

    @property
    def flags(self) -> dict[str, Any]:
        """Flags of a kernel in forward mode along this direction."""
        return dict.fromkeys(("with_params", "moving_params"), self.params is not None)


class QueryBars(NamedTuple):
    """Cotangents of the inputs of a query, one row per state, and of the parameters."""

    state: State
    x: Any
    params: Params | None


class Engine:
    """Execution of a model on a device.

    Args:
      model: The model.
      options: Options of the method.
      device: CPU or GPU.
      threads: Number of threads that share a batch.
    """

    def __init__(self, model: Model, options: Options, device: Device, threads: int):
        self.model, self.options, self.device, self.threads = model, options, device, threads
        self.constrained = model.has_contact
        self._bound: dict[tuple[Any, ...], Any] = {}
        self._constants: OrderedDict[tuple[int, Any], tuple[Params, Any]] = OrderedDict()
        self.contact_capacity: int | None = None  # capacity of the contact buffer, once a rollout has enlarged it
        self.blocks_interrupts = isinstance(device, Host) and device.target(1).native  # native kernels block Ctrl-C
        self._pace: dict[str, float] = {}  # seconds per step and batch element, by kind of work
        self.calls: dict[tuple[Any, ...], Any] = {}  # cached `function.Call` objects
        self.native_calls: dict[tuple[Any, ...], Any] = {}  # buffers of native calls of JAX, freed with the simulator

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle and copy, without compiled code."""
        return self.__dict__ | {"_bound": {}, "_constants": OrderedDict(), "calls": {}, "native_calls": {}}

    @property
    def law(self) -> Law:
        """Contact law."""
        return law_of(self.options)

    # -- constants ---------------------------------------------------------------------------------------------------
    def constants(self, params: Params, batch: int) -> Any:
        """Return the constants that kernels read of `params`. The latest sets are cached, since Params are immutable."""
        key = (id(params), self.device.variant(batch))
        found = self._constants.get(key)  # read once: another thread may replace it
        if found is None:
            self.check(params)
            with self.device.settled():
                made = derive_constants(params, self.options, batch, self.threads, self.device)
            found = self._constants[key] = (params, made)  # the reference to params keeps its id unique
            while len(self._constants) > KEPT:
                self._constants.popitem(last=False)
        return found[1]

    def constants_with_tangents(self, params: Params, batch: int, d: Direction | None) -> dict[str, Any]:
        """Return constants as kernel arguments, with their tangents if the direction has parameters."""
        found = {"const": self.constants(params, batch)}
        if d is not None and d.params is not None:
            with self.device.settled():
                found["d_const"] = derive_constants_jvp(
                    params, d.params, self.options, batch, self.threads, self.device
                )
        return found

    def check(self, params: Params) -> None:
        """Raise InputError for parameters out of range, or for fields that the contact law does not support."""
        check_params(params)
        check_structure(params, restitution=self.law.restitution, shared_stops=self.law.shared_stops)
        check_windows(params, self.measured_pairs)

    @cached_property
    def measured_pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of shapes whose distances sensors read."""
        found = measured_pairs(self.model)
        return tuple(zip(found.a, found.b, strict=True))

    def cached_params(self, flat: np.ndarray) -> Params | None:
        """Return cached Params with the same values; None if there are none."""
        for params, _ in list(self._constants.values()):
            if params.flat.shape == flat.shape and np.array_equal(params.flat, flat):
                return params
        return None

    @cached_property
    def matrix_entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each stored entry of the mass matrix: a row has one entry per ancestor, root first."""
        parent = dof_rows(self.model)["dof_parent"]
        rows, columns = [], []
        for k in range(self.model.nv):
            chain = [k]
            while parent[chain[0] + 1]:
                chain.insert(0, int(parent[chain[0] + 1]) - 1)
            rows += [k] * len(chain)
            columns += chain
        return np.array(rows, int), np.array(columns, int)

    # -- kernels -----------------------------------------------------------------------------------------------------
    @cached_property
    def contact_names(self) -> tuple[tuple[str, str], ...]:
        """Names of the two shapes of every candidate contact point."""
        return contact_names(self.model)

    @cached_property
    def contact_integers(self) -> dict[str, Any]:
        """Integer arguments of all kernels with constraint rows."""
        room = self.contact_capacity
        options = self.options if room is None else replace(self.options, max_contacts=room)
        return self.law.integers(self.model, options, self.device.dtype)

    @cached_property
    def reports_static_contacts(self) -> bool:
        """True if steps report contacts that no joint can move apart; False on a GPU, where reading them would wait."""
        return self.constrained and isinstance(self.device, Host) and "stiff" in self.law.features(self.model)

    @cached_property
    def buffer_may_overflow(self) -> bool:
        """True if there can be more simultaneous contact points than the contact buffer holds."""
        if not self.constrained:
            return False
        room, points = self.law.room(self.contact_integers)
        return bool(room < points)

    def contact_arguments(self, backward: bool) -> dict[str, Any]:
        """Return the kernel arguments of constraint rows."""
        integers = self.contact_integers
        return integers | self.law.scratch(self.model, integers, self.options, self.device.dtype, backward)

    def features(self, params: Params, *, constrained: bool = True) -> Features:
        """Return the features of model and parameters that kernels are compiled for. constrained: with constraint rows."""
        model, names = self.model, self.model.features | params.features
        names |= {"actuators"} if model.nu else set()
        names |= {"lone_link"} if lone_links(model).any() else set()
        if not (constrained and self.constrained):
            return Features(names - {"powers"})
        names = names | self.law.features(model) if self.law.impedances else names - {"powers"}
        return Features(names, routines_of(model), solids_of(model))

    def key(self, inputs: Inputs, backward: bool, **flags: Any) -> tuple[KernelKey, dict[str, int]]:
        """Return the key that a kernel for such inputs is compiled for, and the sizes of its workspace."""
        wrench = inputs.wrench is not None
        work = Workspace.sizes(self.model, self.options, backward, wrench)
        target, own = self.device.target(inputs.batch), inputs.params.batch is not None
        features = self.features(inputs.params)
        if flags.get("with_params"):
            features = replace(features, names=features.names | {"damping"})
        flags |= {"wrench": wrench, "contact": self.constrained}
        return KernelKey(self.options, target, tuple(work), own, features=features, **flags).staged, work

    def bound_kernel(
        self,
        maker: Callable[[KernelKey], Kernel],
        inputs: Inputs,
        backward: bool,
        scratch: dict[str, int] | None = None,
        **flags: bool,
    ) -> Any:
        """Return a kernel bound to the arguments that are the same in every call.

        Args:
          maker: maker(key) returns the kernel.
          inputs: Inputs of the rollout.
          backward: Size the workspace for a backward pass.
          scratch: Sizes of work arrays beside the workspace, by name.
          flags: Flags of `KernelKey`.
        """
        variant = self.device.variant(inputs.batch)
        name = (
            maker,
            variant,
            inputs.params.features,
            inputs.params.batch is None,
            inputs.wrench is None,
            *flags.items(),
        )
        found = self._bound.get(name)
        if found is None:
            key, work = self.key(inputs, backward, **flags)
            more = self.contact_arguments(backward) if key.contact else {}
            integers = topology_arguments(self.model)
            arguments = {**integers, "dt": self.options.dt, **work, **more, **(scratch or {})}
            found = self._bound[name] = maker(key).bind(**arguments)
        return found

    def clear_kernels(self) -> None:
        """Drop all bound kernels, for benchmarks that measure the cost of binding."""
        self._bound.clear()

    @property
    def kernels(self) -> list[Any]:
        """All bound kernels."""
        return list(self._bound.values())

    def step_inputs(self, inputs: Inputs, first: int, end: int) -> dict[str, Any]:
        """Return controls and wrenches of steps first .. end, as (B, ...) arrays."""

        def batch_first(x: Any, own: int) -> Any:
            if x.ndim > own:
                return x
            return x[None] if inputs.batch == 1 else self.device.broadcast(x, inputs.batch)

        out = {"u": batch_first(inputs.u[..., first:end, :], 2)}
        if inputs.wrench is not None:
            out["wrench"] = batch_first(inputs.wrench[..., first:end, :, :], 3)
        return out

    def with_tangents(
        self, arguments: dict[str, Any], d: Direction | None, first: int = 0, end: int = 1
    ) -> dict[str, Any]:
        """Return kernel arguments of steps first .. end, with their tangents if there is a direction."""
        if d is None:
            return arguments
        found = dict(arguments)
        for name, x in arguments.items():
            own = getattr(d, name)
            if own is not None and name in ("u", "wrench"):
                own = own[:, first:end]
            found[f"d_{name}"] = self.device.zeros(x.shape) if own is None else own
        return found

    def empty_results(self, d: Direction | None, **shapes: tuple[int, ...]) -> dict[str, Any]:
        """Return uninitialized arrays for results, and for their tangents if there is a direction."""
        names = [*shapes] if d is None else [*shapes, *(f"d_{name}" for name in shapes)]
        return {name: self.device.empty(shapes[name.removeprefix("d_")]) for name in names}

    def run_in_slices(self, what: str, count: int, robot_steps: int, run: Callable[[int, int], None]) -> None:
        """Call run(a, b) over 0 .. count in slices of about SLICE seconds; Ctrl-C interrupts between slices.

        On a GPU, which is not waited for, and on the NumPy backend there is one slice.

        Args:
          what: Kind of work, for the measured time of a step.
          count: Number of units of work.
          robot_steps: Steps of all batch elements per unit.
          run: The work.
        """
        if not self.blocks_interrupts:
            if count:
                run(0, count)
            return
        done = 0
        while done < count:
            pace = self._pace.get(what)
            size = FIRST if pace is None else int(SLICE / (pace * robot_steps))
            end = min(count, done + max(1, size))
            began = perf_counter()
            run(done, end)
            self._pace[what] = max(perf_counter() - began, 1e-9) / ((end - done) * robot_steps)
            done = end

    # -- forward -----------------------------------------------------------------------------------------------------
    def new_status(self, batch: int) -> Any:
        """Return the status array (B, 2) of a rollout, zero.

        Its columns are the largest solver residual, and LOST where the contact buffer overflowed or else 1 + the number of
        a pair of shapes that touch where no joint can move them apart.
        """
        return self.device.zeros((batch, 2))

    def empty_states(self, *lead: int) -> State:
        """Return uninitialized states with these leading axes."""
        m = self.model
        return State(*(self.device.empty((*lead, n)) for n in (m.nq, m.nv, m.na)[: 3 if m.na else 2]))

    def states_from(self, start: State, rows: int) -> State:
        """Return uninitialized states (B, rows, n) with the first row written.

        Large arrays are written in slices of batch elements: the first write to new memory is slow, and blocks Ctrl-C.
        """
        states = self.empty_states(len(start.q), rows)
        for x, x0 in zip(states, start, strict=True):
            some = max(1, TOUCHED * len(x0) // max(1, x.nbytes)) if self.blocks_interrupts else len(x0)
            for k in range(0, len(x0), some):
                x[k : k + some, 0] = x0[k : k + some]
        return states

    def extend(self, inputs: Inputs, states: State, t: int, status: Any, steps: int = 1) -> None:
        """Simulate steps from row t of the states (B, T+1, n), and write the rows after it."""
        self._rollout(inputs, states.map(lambda x: x[:, t:]), t, (steps, 1), status)

    def states(self, inputs: Inputs, start: State, span: tuple[int, int], every: int, status: Any) -> State:
        """Return states (B, rows, n) at steps first, first + every, ... and end, where span = (first, end)."""
        first, end = span
        whole, rest = divmod(end - first, every)
        states = self.states_from(start, 1 + whole + (rest > 0))
        if whole:
            self._rollout(inputs, states, first, (whole, every), status)
        if rest:
            self._rollout(inputs, states.map(lambda x: x[:, whole:]), end - rest, (1, rest), status)
        return states

    def advance(self, inputs: Inputs, start: State, span: tuple[int, int], status: Any) -> State:
        """Return the state at the end of span = (first, end) from that at its beginning."""
        return self.states(inputs, start, span, max(1, span[1] - span[0]), status).map(lambda x: x[:, -1].copy())

    def rollout(
        self, inputs: Inputs, start: State, plan: CheckpointPlan, status: Any
    ) -> tuple[dict[int, State], State]:
        """Return the states that a plan keeps, by block, and a copy of the last state; see `Trajectory.kept`."""
        block, T, kept = plan.block, inputs.steps, dict[int, State]()
        if plan.keeps_all:
            kept[0] = self.states(inputs, start, (0, T), block, status)
            return kept, kept[0].map(lambda x: x[:, -1].copy())
        at, last = start, 0
        for b in forward_snapshots(plan.blocks, plan.snapshots):  # `advance` makes copies
            at, last = self.advance(inputs, at, (last * block, b * block), status), b
            kept[b] = at
        return kept, self.advance(inputs, at, (last * block, T), status)

    def _rollout(self, inputs: Inputs, states: State, first: int, stretches: tuple[int, int], status: Any) -> None:
        """Write all rows of the states after the first. A contact buffer that overflowed is enlarged if `buffer_grows`.

        Args:
          inputs: Inputs of the rollout.
          states: States (B, rows, n), the first row given.
          first: Step of the first row.
          stretches: Number of rows to write, and steps between two rows.
          status: See `new_status`.
        """
        before = status.copy() if self.buffer_grows else None
        self._run_rollout(inputs, states, first, stretches, status)
        while before is not None and self._enlarge_buffer(status):
            status[:] = before
            self._run_rollout(inputs, states, first, stretches, status)
        self.check_contact_buffer(status)

    def _run_rollout(self, inputs: Inputs, states: State, first: int, stretches: tuple[int, int], status: Any) -> None:
        """Write all rows of the states after the first, with the current contact buffer."""
        count, length = stretches
        strided = length > 1
        kernel = self.bound_kernel(rollout_kernel, inputs, False, strided=strided)

        def run(a: int, b: int) -> None:
            kernel(
                inputs.batch,
                self.threads,
                stretches=b - a,
                **({"length": length} if strided else {}),
                const=self.constants(inputs.params, inputs.batch),
                **states.map(lambda x: x[:, a:]).named(),
                **({"status": status} if self.constrained else {}),
                **self.step_inputs(inputs, first + a * length, first + b * length),
            )

        self.run_in_slices("forward", count, inputs.batch * length, run)

    @property
    def buffer_grows(self) -> bool:
        """True if a rollout with too many contacts runs again with a larger buffer: on the CPU, if max_contacts is None."""
        return self.options.max_contacts is None and isinstance(self.device, Host) and self.buffer_may_overflow

    def _enlarge_buffer(self, status: Any) -> bool:
        """Double the contact buffer and return True if it overflowed."""
        _, points = self.law.room(self.contact_integers)
        room = self.contact_capacity or self.options.contact_limit
        if not (status[:, 1] >= LOST).any() or room >= points:
            return False
        self.contact_capacity = 2 * room
        for name in ("contact_integers", "buffer_may_overflow"):
            self.__dict__.pop(name, None)
        self._bound.clear()
        return True

    def check_contact_buffer(self, status: Any) -> None:
        """Raise ContactError if the contact buffer overflowed; warn of contacts without effect.

        Nothing is read from a GPU where an overflow is impossible, to avoid a wait.
        """
        if not self.buffer_may_overflow and not self.reports_static_contacts:
            return
        codes = self.device.host(status[:, 1])
        full = np.flatnonzero(codes >= LOST)
        if len(full):
            raise ContactError(self.overflow_message(full[0], self.device.together(len(status))))
        for k in np.unique(codes[codes > 0.0]) if self.reports_static_contacts else ():
            warn(self.static_contact_message(int(k) - 1))

    def static_contact_message(self, k: int) -> str:
        """Text of the warning of a pair of shapes that touch where no joint can move them apart."""
        pairs, shapes = candidates(self.model), self.model.shapes
        names = [shapes.names[i] for i in (pairs.a[k], pairs.b[k])]
        bodies = [("world", *self.model.bodies)[shapes.body[i] + 1] for i in (pairs.a[k], pairs.b[k])]
        return (
            f"shapes '{names[0]}' and '{names[1]}' touch where no joint can move them apart: the contact has no effect, or "
            f'friction of an unbounded force; move one, or leave the pair out with <exclude body1="{bodies[0]}" '
            f'body2="{bodies[1]}"/> in <contact>'
        )

    def overflow_message(self, robot: int, lanes: int) -> str:
        """Text of the error of a contact buffer that overflowed. lanes: number of batch elements that share it."""
        beside = f", together with the others of its pack of {lanes} (lanes=1: alone)" if lanes > 1 else ""
        return (
            f"robot {robot}{beside} has more points in or near contact than max_contacts={self.options.contact_limit} allows "
            "for; make the Simulator with a larger max_contacts, or fewer shapes that may touch"
        )

    def rollout_jvp(self, inputs: Inputs, states: State, d: Direction) -> State:
        """Return tangents (B, T+1, n) of all states of a rollout."""
        batch, T = inputs.batch, inputs.steps
        moved = states.map(lambda x: self.device.zeros((batch, T + 1, x.shape[-1])))
        for first, whole in zip(d[:3], moved, strict=False):
            if first is not None:
                whole[:, 0] = first
        kernel = self.bound_kernel(rollout_tangent_kernel, inputs, False, **d.flags)
        const = self.constants_with_tangents(inputs.params, batch, d)

        def run(a: int, b: int) -> None:
            here = d._replace(**moved.map(lambda x: x[:, a:]).named())
            given = states.map(lambda x: x[:, a:]).named() | self.step_inputs(inputs, a, b)
            kernel(batch, self.threads, steps=b - a, **self.with_tangents(given, here, a, b), **const)

        self.run_in_slices("tangent", T, batch, run)
        return moved

    def jacobian(self, inputs: Inputs, state: State, d: Direction | None = None) -> tuple[Any, Any, Any]:
        """Return A and B of the first step, or their tangents along a direction, and the solver residual (B,)."""
        m, batch, status = self.model, inputs.batch, self.new_status(inputs.batch)
        n = 2 * m.nv + m.na
        scratch = {"direction": n, "q_next": m.nq} | ({"act_next": m.na} if m.na else {})
        found = self.empty_results(d, A=(batch, n, n), B=(batch, n, m.nu))
        self._bind_forward_mode(jacobian_kernel, inputs, True, scratch, d)(
            batch,
            self.threads,
            **self.with_tangents(state.named() | self.step_inputs(inputs, 0, 1), d),
            **self.constants_with_tangents(inputs.params, batch, d),
            **found,
            **({"status": status} if self.constrained else {}),
        )
        if d is not None:
            return found["d_A"], found["d_B"], status[:, 0]
        self.check_contact_buffer(status)
        return found["A"], found["B"], status[:, 0]

    def contacts(self, inputs: Inputs, states: State, d: Direction | None = None) -> Any:
        """Return contact records (B, T, points, REPORT.size) of every candidate contact point and step, or their tangents."""
        points, T, batch = len(self.contact_names), inputs.steps, inputs.batch
        found = self.empty_results(d, out=(batch, T, points, REPORT.size))
        self._bind_forward_mode(contacts_kernel, inputs, False, {"row": points * REPORT.size}, d)(
            batch,
            self.threads,
            steps=T,
            **self.with_tangents(states.map(lambda x: x[:, :T]).named() | self.step_inputs(inputs, 0, T), d, 0, T),
            **self.constants_with_tangents(inputs.params, batch, d),
            **found,
        )
        return found["out" if d is None else "d_out"]

    def _bind_forward_mode(
        self, maker: Any, inputs: Inputs, backward: bool, scratch: dict[str, int], d: Direction | None
    ) -> Any:
        """Return a bound kernel, or that of its forward mode if there is a direction."""
        if d is None:
            return self.bound_kernel(maker, inputs, backward, scratch)
        return self.bound_kernel(TANGENTS[maker], inputs, backward, scratch, **d.flags)

    # -- queries -----------------------------------------------------------------------------------------------------
    def query(self, name: str, state: State, x: Any, params: Params, d: Direction | None = None) -> Any:
        """Return a function of many states, (B, size), or its tangent along a direction."""
        count = len(state.q)
        found = self.empty_results(d, out=(count, QUERIES[name].size(self.model)))
        maker, flags = query_kernel, dict[str, Any]()
        if d is not None:
            maker, flags = TANGENTS[query_kernel], {"moving_params": d.params is not None}
        bound = self.query_kernel(maker, name, count, params, **flags)
        bound(count, self.threads, **self._query_arguments(state, x, params, d), **found)
        return found["out" if d is None else "d_out"]

    def query_vjp(
        self, name: str, state: State, x: Any, params: Params, out_bar: Any, with_params: bool = True
    ) -> QueryBars:
        """Return the cotangents of the inputs of a query for that of its output."""
        return self._query_vjp(name, (state, x, params), (out_bar,), None, with_params)

    def query_vjp_jvp(
        self, name: str, given: tuple[State, Any, Params], bars: tuple[Any, Any], d: Direction, with_params: bool
    ) -> QueryBars:
        """Return tangents of the cotangents of a query, along a direction of its inputs and of its cotangent.

        Args:
          name: Name of the query.
          given: State, input and parameters.
          bars: Cotangent of the output, and its tangent.
          d: Direction of the inputs.
          with_params: Compute the tangent of the gradient of parameters.
        """
        return self._query_vjp(name, given, bars, d, with_params)

    def _query_vjp(
        self,
        name: str,
        given: tuple[State, Any, Params],
        bars: tuple[Any, ...],
        d: Direction | None,
        with_params: bool,
    ) -> QueryBars:
        (state, x, params), m, device = given, self.model, self.device
        count, maker, flags = len(state.q), query_vjp_kernel, dict[str, Any]()
        if d is not None:
            maker, flags = TANGENTS[query_vjp_kernel], {"moving_params": d.params is not None}
        constant = with_params or d is not None  # tangents have no scratch for cotangents of constants
        bound = self.query_vjp_kernel(maker, name, count, params, with_params=constant, **flags)
        sizes = {f"{k}_bar": (count, y.shape[-1]) for k, y in state.named().items()}
        found = self.empty_results(d, **sizes, x_bar=(count, QUERIES[name].x_size(m)))
        arguments = dict(zip(("out_bar", "d_out_bar"), bars, strict=False))
        const_bars: list[Any] = []
        if constant:
            shape = bound.kernel.packed_shape(count, constants_size(m, bars=True))
            const_bars = [device.packed_zeros(shape) for _ in bars]
            arguments |= dict(zip(("const_bar", "d_const_bar"), const_bars, strict=False))
        bound(count, self.threads, **self._query_arguments(state, x, params, d), **arguments, **found)
        params_bar, setting = None, (self.options, count, self.threads, device)
        if with_params and d is None:
            params_bar = derive_constants_vjp(params, *setting, *const_bars)
        elif with_params and d is not None:
            params_bar = derive_constants_vjp_jvp(params, d.params, *setting, *const_bars)
        first = "" if d is None else "d_"
        return QueryBars(State(*(found[first + k] for k in sizes)), found[f"{first}x_bar"], params_bar)

    def query_vjp_kernel(
        self,
        maker: Callable[[KernelKey, str], Kernel],
        name: str,
        batch: int,
        params: Params,
        *,
        with_params: bool,
        **flags: bool,
    ) -> Any:
        """Return the bound adjoint of a query.

        Without the gradient of parameters the cotangent of constants is a work array.
        """
        scratch = {} if with_params else {"const_bar": constants_size(self.model, bars=True)}
        return self.query_kernel(maker, name, batch, params, scratch, with_params=with_params, **flags)

    def _query_arguments(self, state: State, x: Any, params: Params, d: Direction | None) -> dict[str, Any]:
        count = len(state.q)
        x = self.device.zeros((count, 1)) if x is None else x
        return self.with_tangents(state.named() | {"x": x}, d) | self.constants_with_tangents(params, count, d)

    def query_kernel(
        self,
        maker: Callable[[KernelKey, str], Kernel],
        name: str,
        batch: int,
        params: Params,
        scratch: dict[str, int] | None = None,
        **flags: bool,
    ) -> Any:
        """Return the kernel of a query bound to the arguments that are the same in every call."""
        query, own = QUERIES[name], params.batch is not None
        constrained = self.constrained and query.constrains(self.model, self.options)
        features = self.features(params, constrained=constrained)
        key = (maker, name, self.device.variant(batch), own, features, *flags.items())
        found = self._bound.get(key)
        if found is None:
            work = query_work(self.model, self.options, name)
            target = self.device.target(batch)
            integers = topology_arguments(self.model)
            given = dict[str, Any](flags) | {"contact": constrained, "features": features}
            if query.sensors:
                given |= {"sensors": sensor_features(self.model, self.law.impulses)}
                integers = integers | sensor_arguments(self.model, self.device.dtype)
            if constrained:
                integers = integers | self.contact_arguments(False)
            kernel = maker(KernelKey(self.options, target, tuple(work), own, **given).staged, name)
            sizes = {"size": query.size(self.model), "x_size": query.x_size(self.model)}
            found = self._bound[key] = kernel.bind(**integers, dt=self.options.dt, **sizes, **work, **(scratch or {}))
        return found
