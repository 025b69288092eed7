"""Records of the functions of a state, and the methods of Simulator derived from them.

Outputs, accelerations, inverse dynamics and the mass matrix are queries: one kernel computes rows of values. `unpack`
converts rows to outputs, and `pack` converts cotangents of outputs to rows. Constraint weights depend on parameters alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import truth
from ..compiler.struct import size_of
from ..errors import InputError
from ..model.model import Model
from ..model.params import Params
from ..model.state import State
from ..physics.outputs import COM, FRAME, KINETIC, POTENTIAL, outputs_size
from ..physics.sensors.sensor_table import sensor_sizes
from .arrays import Axes
from .checks import Checks, parts_of
from .engine import Direction, Engine, Inputs
from .function import CONTROL, PARAMS, STATE, Call, FunctionRecord, Rows, Shape, call_of, direction_of, state_of
from .results import Outputs, StateGradient, device_boundary
from .sensors import SensorQuery, by_name, sensor_query

Unpack = Callable[[Call, Any], tuple[Any, ...]]
Pack = Callable[[Call, Rows, int], Any]


# -- queries -------------------------------------------------------------------------------------------------------------
def _query(
    function: str,
    kernel: str,
    argument: dict[str, Shape],
    outputs: dict[str, Shape],
    unpack: Unpack | None = None,
    pack: Pack | None = None,
) -> FunctionRecord:
    """Return the record of a query.

    Args:
      function: Name of the function.
      kernel: Name of the query in `kernels.queries`.
      argument: Shape of its input beside the state, by name, if it has one.
      outputs: Shapes of the outputs.
      unpack: unpack(call, rows) returns the outputs; without it they are the rows.
      pack: pack(call, bars, count) returns rows of cotangents.
    """
    name = next(iter(argument), None)

    def own(call: Call, x: Rows) -> Any:
        """Return the input beside the state; one value per state if it has no entries."""
        if name is None or x[name] is None:
            return None
        return x[name] if x[name].shape[-1] else call.sim.engine.device.zeros((len(x[name]), 1))

    def rows_of(call: Call, bars: Rows, count: int) -> Any:
        if pack is not None:
            return pack(call, bars, count)
        (bar,) = bars.values()
        return call.sim.engine.device.zeros((count, call.sim.model.nv)) if bar is None else bar

    def named(x: Rows, found: Any) -> Rows:
        """Return cotangents by name; that of an input without entries is empty."""
        empty = {} if name is None else {name: found.x if found.x.shape[-1] else x[name]}
        return found.state.named() | {"params": found.params} | empty

    def forward(call: Call, x: Rows) -> tuple[Any, ...]:
        rows = call.sim.engine.query(kernel, state_of(x), own(call, x), x["params"])
        return (rows,) if unpack is None else unpack(call, rows)

    def vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
        bar, engine = rows_of(call, bars, len(x["q"])), call.sim.engine
        found = engine.query_vjp(kernel, state_of(x), own(call, x), x["params"], bar, with_params)
        call.sim.checks.finite([*found.state, found.x], len(x["q"]))
        return named(x, found)

    def jvp(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
        along = direction_of(d, x=own(call, d))
        rows = call.sim.engine.query(kernel, state_of(x), own(call, x), x["params"], along)
        return (rows,) if unpack is None else unpack(call, rows)

    def vjp_jvp(call: Call, x: Rows, bars: Rows, d: Rows, d_bars: Rows, with_params: bool) -> Rows:
        both = rows_of(call, bars, len(x["q"])), rows_of(call, d_bars, len(x["q"]))
        along = direction_of(d, x=own(call, d))
        given = state_of(x), own(call, x), x["params"]
        return named(x, call.sim.engine.query_vjp_jvp(kernel, given, both, along, with_params))

    inputs = STATE | argument | PARAMS
    return FunctionRecord(function, inputs, outputs, tuple(inputs), forward, vjp, jvp, vjp_jvp, kernel, name)


FRAMES: dict[str, tuple[str, Shape]] = {
    "position": ("p", (3,)),
    "rotation": ("R", (3, 3)),
    "velocity": ("v", (3,)),
    "angular_velocity": ("w", (3,)),
}
OUTPUT_SHAPES: dict[str, Shape] = {
    **{f"{what}_{k}": (n, *shape) for what, n in (("body", "nb"), ("site", "ns")) for k, (_, shape) in FRAMES.items()},
    "com": (3,),
    "kinetic_energy": (),
    "potential_energy": (),
}


def output_views(model: Model, rows: Any) -> dict[str, Any]:
    """Return views of rows of outputs (n, size) by name."""
    nb, ns, n = model.nb, model.ns, len(rows)
    frames = rows[:, : (nb + ns) * FRAME.size].reshape(n, nb + ns, FRAME.size)
    totals = rows[:, (nb + ns) * FRAME.size :]
    views = {}
    for what, part in (("body", frames[:, :nb]), ("site", frames[:, nb:])):
        for name, (field_name, shape) in FRAMES.items():
            start, kind = FRAME.fields[field_name]
            view = part[..., start : start + size_of(kind)]
            views[f"{what}_{name}"] = view.reshape(*view.shape[:-1], *shape) if len(shape) > 1 else view
    energies = {"kinetic_energy": totals[:, KINETIC], "potential_energy": totals[:, POTENTIAL]}
    return views | {"com": totals[:, COM : COM + 3]} | energies


def _unpack_outputs(call: Call, rows: Any) -> tuple[Any, ...]:
    return tuple(output_views(call.sim.model, rows).values())


def _pack_outputs(call: Call, bars: Rows, count: int) -> Any:
    m = call.sim.model
    rows = call.sim.engine.device.zeros((count, outputs_size(m.nb, m.ns)))
    for name, view in output_views(m, rows).items():
        if bars.get(name) is not None:
            view[...] = bars[name].reshape(view.shape)
    return rows


def stored_entry_of(engine: Engine) -> np.ndarray:
    """Index of the stored entry of each entry of the mass matrix, (nv, nv); one past the last where it is zero."""
    (rows, columns), nv = engine.matrix_entries, engine.model.nv
    found = np.full((nv, nv), len(rows))
    found[rows, columns] = found[columns, rows] = np.arange(len(rows))
    return found


def _unpack_matrix(call: Call, stored: Any) -> tuple[Any, ...]:
    device, nv, (rows, columns) = call.sim.engine.device, call.sim.model.nv, call.sim.engine.matrix_entries
    M = np.zeros((len(stored), nv, nv), device.dtype)
    M[:, rows, columns] = M[:, columns, rows] = device.host(stored)
    return (device.array(M),)


def _pack_matrix(call: Call, bars: Rows, count: int) -> Any:
    """Return cotangents of stored entries for those of whole matrices."""
    device, nv, (rows, columns) = call.sim.engine.device, call.sim.model.nv, call.sim.engine.matrix_entries
    bar = bars["M"]
    full = np.zeros((count, nv, nv)) if bar is None else device.host(bar).reshape(count, nv, nv)
    return device.array(full[:, rows, columns] + np.where(rows == columns, 0, full[:, columns, rows]))


# -- sensors -------------------------------------------------------------------------------------------------------------
def _sensor_shapes(call: Call) -> dict[str, Axes]:
    model = call.sim.model
    return {s.name: (n,) for s, n in zip(model.sensors, sensor_sizes(model), strict=True)}


def _sensors(call: Call, x: Rows) -> tuple[Any, ...]:
    return tuple(call.sim.sensors(state_of(x), x["u"], params=x["params"]).values())


def _sensors_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    given = {name: bar for name, bar in bars.items() if bar is not None}
    found = call.sim.sensors_vjp(state_of(x), given, x["u"], params=x["params"])._asdict()
    return {name: found[name] for name in (*state_of(x).named(), "u", "params")}


def _sensors_jvp(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    model, u = call.sim.model, x["u"] if call.sim.model.nu else None
    rows = _sensors_tangent(call.sim, sensor_query(call.sim, state_of(x), u, x["params"]), direction_of(d), d["u"])
    return tuple(by_name(model, rows).values())


def _sensors_tangent(sim: Any, query: SensorQuery, d: Direction, d_u: Any) -> Any:
    """Return tangents of all readings (B, n), along tangents of states, parameters and controls (B, nu)."""
    nu, x = sim.model.nu, sim.engine.device.zeros(query.x.shape)
    if nu and d_u is not None:
        x[:, :nu] = d_u
    if query.after is not None:
        u = x[:, :nu].reshape(len(x), 1, nu)
        inputs = Inputs(len(x), query.after.u, None, query.params)
        states = query.after.every_state()
        along = sim.engine.rollout_jvp(inputs, states, d._replace(u=u))
        last, d_last = (y.map(lambda z: z[:, -1].copy()) for y in (states, along))
        after = Direction(q=d_last.q, v=d_last.v, act=d_last.act, params=d.params)
        rows = sim.engine.query("outputs", last, None, query.params, after)
        x[:, nu + 1 :] = output_views(sim.model, rows)["site_velocity"].reshape(len(x), -1)
    return sim.engine.query("sensors", query.state, query.x, query.params, d._replace(u=None, x=x))


# -- inverse weights ------------------------------------------------------------------------------------------------
def _weights(call: Call, x: Rows) -> tuple[Any, ...]:
    made, rows, device = x["params"].reweighted(), len(x["batch"]), call.sim.engine.device
    return tuple(
        device.array(np.broadcast_to(made[name], (rows, *shape)).copy()) for name, shape in call.outputs.items()
    )


def _weights_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    p, host = x["params"], call.sim.engine.device.host
    zero = Params(p.model, np.zeros_like(p.flat))
    given = {name: np.asarray(host(bar), float) for name, bar in bars.items() if bar is not None}
    given = {name: bar.sum(0) if p.batch is None else bar for name, bar in given.items()}
    return {"params": p.reweighted_vjp(zero.replace(unchecked=True, **given))} if with_params else {}


def _weight_shapes(call: Call) -> dict[str, Axes]:
    m = call.sim.model
    return {"body_invweight0": (m.nb, 2), "dof_invweight0": (m.nv,), "tendon_invweight0": (len(m.tendons),)}


# -- records -------------------------------------------------------------------------------------------------------------
OUTPUTS = _query("outputs", "outputs", {}, OUTPUT_SHAPES, _unpack_outputs, _pack_outputs)
MASS_MATRIX = _query("mass_matrix", "mass_matrix", {}, {"M": ("nv", "nv")}, _unpack_matrix, _pack_matrix)
INVERSE_DYNAMICS = _query("inverse_dynamics", "inverse_dynamics", {"a": ("nv",)}, {"force": ("nv",)})
FORWARD_DYNAMICS = _query("forward_dynamics", "acceleration", CONTROL, {"a": ("nv",)})
SENSED = STATE | CONTROL | PARAMS
SENSORS = FunctionRecord("sensors", SENSED, _sensor_shapes, tuple(SENSED), _sensors, _sensors_vjp, _sensors_jvp)
WEIGHTS = FunctionRecord("weights", {"batch": ()} | PARAMS, _weight_shapes, ("batch", "params"), _weights, _weights_vjp)


# -- methods of Simulator --------------------------------------------------------------------------------------------------
class StateFunctions:
    """Functions of a state as methods of a Simulator, for states with any leading axes.

    `f_vjp` returns the gradients of a loss from its cotangent with respect to `f`; None there is zero. with_params=False leaves
    out the gradient of the parameters.
    """

    model: Model
    engine: Engine
    checks: Checks

    @device_boundary
    def outputs(self, state: State, *, params: Params | None = None) -> Outputs:
        """Return poses and velocities of bodies and sites, center of mass and energies.

        Args:
          state: q (..., nq), v (..., nv), act (..., na).
          params: One set, or one for each entry of the first leading axis.
        """
        return Outputs(*self._evaluate(OUTPUTS, state, None, params)).of(self.model)

    @device_boundary
    def outputs_vjp(
        self, state: State, bars: Outputs, *, params: Params | None = None, with_params: bool = True
    ) -> StateGradient:
        """Return gradients of a loss from its cotangents with respect to `outputs(state)`.

        Args:
          state: As in `outputs`.
          bars: Cotangents, each shaped as the output; None is zero.
          params: As in `outputs`.
          with_params: False leaves out the gradient of the parameters.
        """
        if not isinstance(bars, Outputs):
            raise InputError(f"bars is an Outputs with the cotangents, not {type(bars).__name__}")
        return self._pull_back(OUTPUTS, state, None, bars._asdict(), params, with_params)

    def sites(self, state: State, *, params: Params | None = None) -> Any:
        """Return positions of all sites, m, world frame, (..., ns, 3)."""
        return self.outputs(state, params=params).site_position

    @device_boundary
    def jacobian(self, state: State, of: str, *, params: Params | None = None) -> Any:
        """Return the Jacobian J (..., 6, nv) of a site, or else a body, by name.

        J v is the velocity of the origin of its frame, then its angular velocity, in world axes.
        """
        if not isinstance(of, str):
            raise InputError(f"jacobian takes the name of a site or a body, not {type(of).__name__}")
        m, (_, rows, lead) = self.model, self._given(OUTPUTS, state, None, params)
        q, v = (rows[name].reshape(*lead, rows[name].shape[-1]) for name in ("q", "v"))
        kind, k = ("site", m.site(of)) if of in m.sites else ("body", m.body(of))
        each = np.broadcast_to(np.eye(m.nv, dtype=self.engine.device.dtype), (*v.shape[:-1], m.nv, m.nv))
        q = np.broadcast_to(self.engine.device.host(q)[..., None, :], (*q.shape[:-1], m.nv, m.nq))
        out = self.outputs(State(q, each), params=params)
        parts = [getattr(out, f"{kind}_{what}")[..., k, :] for what in ("velocity", "angular_velocity")]
        J = np.concatenate([self.engine.device.host(x) for x in parts], -1)
        return self.engine.device.array(np.ascontiguousarray(np.moveaxis(J, -1, -2)))

    @device_boundary
    def forward_dynamics(self, state: State, u: Any = None, *, params: Params | None = None) -> Any:
        """Return joint accelerations (..., nv) under controls u (..., nu): forward dynamics, with all damping explicit.

        Contact, limits, dry friction and servo motors are left out. With them, (step(state, u).v - v) / dt is the mean
        acceleration over a step.
        """
        return self._evaluate(FORWARD_DYNAMICS, state, u, params)[0]

    @device_boundary
    def forward_dynamics_vjp(
        self, state: State, u: Any, bar: Any, *, params: Params | None = None, with_params: bool = True
    ) -> StateGradient:
        """Return gradients of a loss from its cotangent `bar` (..., nv) with respect to `forward_dynamics(state, u)`."""
        return self._pull_back(FORWARD_DYNAMICS, state, u, {"a": bar}, params, with_params)

    @device_boundary
    def inverse_dynamics(self, state: State, a: Any, *, params: Params | None = None) -> Any:
        """Return joint forces M a + c(q, v) (..., nv) for accelerations a (..., nv): gravity, inertia and armature.

        MuJoCo's `mj_inverse` has springs, damping, fluid, contact and limits too. Without the last two, it is
        `mass_matrix(state) @ (a - forward_dynamics(state))` for motors without bias.
        """
        return self._evaluate(INVERSE_DYNAMICS, state, a, params)[0]

    @device_boundary
    def inverse_dynamics_vjp(
        self, state: State, a: Any, bar: Any, *, params: Params | None = None, with_params: bool = True
    ) -> StateGradient:
        """Return gradients of a loss from its cotangent `bar` (..., nv) with respect to `inverse_dynamics(state, a)`."""
        return self._pull_back(INVERSE_DYNAMICS, state, a, {"force": bar}, params, with_params)

    @device_boundary
    def mass_matrix(self, state: State, *, params: Params | None = None) -> Any:
        """Return the mass matrix M(q) (..., nv, nv), with armature."""
        return self._evaluate(MASS_MATRIX, state, None, params)[0]

    @device_boundary
    def mass_matrix_vjp(
        self, state: State, bar: Any, *, params: Params | None = None, with_params: bool = True
    ) -> StateGradient:
        """Return gradients of a loss from its cotangent `bar` (..., nv, nv) with respect to `mass_matrix(state)`."""
        return self._pull_back(MASS_MATRIX, state, None, {"M": bar}, params, with_params)

    def _evaluate(self, function: FunctionRecord, state: State, x: Any, params: Params | None) -> tuple[Any, ...]:
        """Return the outputs of a function of a state."""
        call, rows, lead = self._given(function, state, x, params)
        return tuple(y.reshape(lead + y.shape[1:]) for y in call.function.forward(call, rows))

    def _pull_back(
        self,
        function: FunctionRecord,
        state: State,
        x: Any,
        bars: dict[str, Any],
        params: Params | None,
        with_params: bool,
    ) -> StateGradient:
        """Return the gradient of a function of a state, from cotangents of its outputs."""
        call, rows, lead = self._given(function, state, x, params)
        count = len(rows["q"])
        only = "the " + function.name.replace("_", " ") if len(bars) == 1 else ""
        flat = {
            k: self._array(f"bar (cotangent of {only})" if only else f"the cotangent of {k}", bars[k], lead + n)
            for k, n in call.outputs.items()
        }
        bar_rows = {k: None if y is None else y.reshape(count, *y.shape[len(lead) :]) for k, y in flat.items()}
        found = call.function.vjp(call, rows, bar_rows, truth("with_params", with_params))
        params_bar = found.pop("params")
        if params_bar is not None and params_bar.batch is not None and len(lead) > 1:
            params_bar = Params(self.model, params_bar.flat.reshape(lead[0], -1, self.model.param_size).sum(1))
        own = {k: y.reshape(*lead, y.shape[-1]) for k, y in found.items() if y.shape[-1] or k in State._fields}
        return StateGradient(params=params_bar, **own).of(self.model)

    def _given(self, function: FunctionRecord, state: State, x: Any, params: Params | None) -> tuple[Call, Rows, Axes]:
        """Return the call of a function of a state, its validated inputs as rows, and their leading axes."""
        (q, v, act), m, checks = parts_of(state), self.model, self.checks
        call: Call = call_of(function, self)  # type: ignore[arg-type]
        q, v = checks.array("q", q), checks.array("v", v)
        lead = q.shape[:-1]
        if q.shape != (*lead, m.nq) or v.shape != (*lead, m.nv):
            raise InputError(f"'{m.name}' has q (..., {m.nq}) and v (..., {m.nv}); got {q.shape} and {v.shape}")
        count = int(np.prod(lead))
        found = State(q, v, checks.activations(act, lead))
        flat, _ = checks.state(found.map(lambda y: y.reshape(count, y.shape[-1])) if lead else found)
        rows = flat.named()
        if call.function.argument is not None:
            n = call.input_shapes[call.function.argument]
            given = self._array(call.function.argument, x, lead + n)
            rows[call.function.argument] = (
                self.engine.device.zeros((count, *n)) if given is None else given.reshape(count, *n)
            )
        params = checks.params(params, lead[0] if lead else 1)
        if params.batch is not None and len(lead) > 1:  # one set for each entry of the first axis
            params = Params(self.model, np.repeat(params.flat, count // params.batch, 0))
        return call, rows | {"params": params}, lead

    def _array(self, name: str, x: Any, shape: Axes) -> Any:
        """Return a validated array of this shape; None is zero."""
        if x is None:
            return None
        given = tuple(x.shape) if hasattr(x, "shape") else np.shape(x)
        x = self.checks.array(name, x if given else [x]).reshape(given)
        if x.shape != shape:
            raise InputError(f"{name} is {shape} for these states, not {x.shape}")
        return x
