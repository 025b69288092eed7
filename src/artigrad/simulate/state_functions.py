"""Functions of one state, for states with any leading axes: outputs, accelerations, inverse dynamics, mass matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..arguments import truth
from ..compiler.struct import size_of
from ..errors import InputError
from ..model.model import Model
from ..model.params import Params
from ..model.state import State
from ..physics.outputs import COM, FRAME, KINETIC, POTENTIAL, outputs_size
from ..physics.tables import dof_rows
from .checks import Checks, parts_of
from .device_boundary import presented
from .engine import Engine
from .results import Outputs, StateGradient


class StateQuery(NamedTuple):
    """A function of one state that is asked for many: rows of states, of what else it needs, and the parameters of each row.
    lead: the leading axes that were given."""

    name: str
    state: State
    x: Any
    params: Params
    lead: tuple[int, ...]

    @property
    def rows(self) -> int:
        return len(self.state.q)


class StateFunctions:
    """What a Simulator can say about a state, each with its adjoint, which leaves out the parameters with with_params=False."""

    model: Model
    engine: Engine
    checks: Checks

    @presented
    def outputs(self, state: State, *, params: Params | None = None) -> Outputs:
        """Poses and velocities of bodies and sites, centre of mass and energies, for states with any leading axes."""
        query = self._query("outputs", state, None, params)
        views = self._outputs_of(self._ask(query))
        return Outputs(**{k: x.reshape(query.lead + x.shape[1:]) for k, x in views.items()}).of(self.model)

    @presented
    def outputs_vjp(
        self, state: State, bars: Outputs, *, params: Params | None = None, with_params: bool = True
    ) -> StateGradient:
        """Gradients of a loss whose cotangents with respect to `outputs(state)` are `bars`; None there means zero."""
        query = self._query("outputs", state, None, params)
        if not isinstance(bars, Outputs):
            raise InputError(f"bars is an Outputs with the cotangents, not {type(bars).__name__}")
        given, lead = dict[str, Any](), query.lead
        for name, view in self._outputs_of(self.engine.device.empty((1, self._outputs_size))).items():
            bar = getattr(bars, name)
            if bar is not None:
                bar = given[name] = self.checks.numbers(name, bar if _shape(bar) else [bar]).reshape(_shape(bar))
                if bar.shape != lead + view.shape[1:]:
                    raise InputError(f"the cotangent of {name} is {lead + view.shape[1:]}, not {bar.shape}")
        return self._state_gradient(query, self._rows_of_outputs(given, query.rows), with_params)

    @property
    def _outputs_size(self) -> int:
        return outputs_size(self.model.nb, self.model.ns)

    def _rows_of_outputs(self, given: dict[str, Any], count: int) -> Any:
        """Outputs, or cotangents of them, of so many states as rows of the kernel; what is not given is zero."""
        flat = self.engine.device.zeros((count, self._outputs_size))
        for name, view in self._outputs_of(flat).items():
            if given.get(name) is not None:
                view[...] = given[name].reshape(view.shape)
        return flat

    def sites(self, state: State, *, params: Params | None = None) -> Any:
        """Positions of all sites in the world, (..., ns, 3)."""
        return self.outputs(state, params=params).site_position

    @presented
    def jacobian(self, state: State, of: str, *, params: Params | None = None) -> Any:
        """J (..., 6, nv) of a site, or else a body, by its name: J v is the velocity of the origin of its frame and the angular
        velocity, world axes."""
        if not isinstance(of, str):
            raise InputError(f"jacobian takes the name of a site or a body, not {type(of).__name__}")
        m, query = self.model, self._query("outputs", state, None, params)
        q, v = (x.reshape(*query.lead, x.shape[-1]) for x in query.state[:2])
        kind, k = ("site", m.site(of)) if of in m.sites else ("body", m.body(of))
        each = np.broadcast_to(np.eye(m.nv, dtype=self.engine.device.dtype), (*v.shape[:-1], m.nv, m.nv))
        q = np.broadcast_to(self.engine.device.host(q)[..., None, :], (*q.shape[:-1], m.nv, m.nq))
        out = self.outputs(State(q, each), params=params)
        parts = [getattr(out, f"{kind}_{what}")[..., k, :] for what in ("velocity", "angular_velocity")]
        J = np.concatenate([self.engine.device.host(x) for x in parts], -1)
        return self.engine.device.array(np.ascontiguousarray(np.moveaxis(J, -1, -2)))

    @presented
    def acceleration(self, state: State, u: Any = None, *, params: Params | None = None) -> Any:
        """Joint accelerations (..., nv) under controls u (..., nu): forward dynamics, all damping explicit. Contact, limits,
        dry friction and servo motors are left out; with them, (step(state, u).v - v) / dt is the mean over a step."""
        query = self._query("acceleration", state, self._like("u", u, state, self.model.nu), params)
        return self._ask(query).reshape(*query.lead, self.model.nv)

    @presented
    def acceleration_vjp(
        self, state: State, u: Any, bar: Any, *, params: Params | None = None, with_params: bool = True
    ) -> StateGradient:
        """Gradients of a loss whose cotangent with respect to `acceleration(state, u)` is `bar`."""
        query = self._query("acceleration", state, self._like("u", u, state, self.model.nu), params)
        return self._state_gradient(query, self._like("bar", bar, state, self.model.nv), with_params, "u")

    @presented
    def inverse_dynamics(self, state: State, a: Any, *, params: Params | None = None) -> Any:
        """Joint forces M a + c(q, v) (..., nv) for accelerations a: gravity, inertia and armature; no damping or springs.

        MuJoCo's `mj_inverse` has springs, damping, fluid, contact and limits too. Without the last two, it is
        `mass_matrix(state) @ (a - acceleration(state))` for motors without bias.
        """
        query = self._query("inverse_dynamics", state, self._like("a", a, state, self.model.nv), params)
        return self._ask(query).reshape(*query.lead, self.model.nv)

    @presented
    def inverse_dynamics_vjp(
        self, state: State, a: Any, bar: Any, *, params: Params | None = None, with_params: bool = True
    ) -> StateGradient:
        """Gradients of a loss whose cotangent with respect to `inverse_dynamics(state, a)` is `bar`."""
        query = self._query("inverse_dynamics", state, self._like("a", a, state, self.model.nv), params)
        return self._state_gradient(query, self._like("bar", bar, state, self.model.nv), with_params, "a")

    @presented
    def mass_matrix(self, state: State, *, params: Params | None = None) -> Any:
        """M(q) (..., nv, nv), armature included."""
        query = self._query("mass_matrix", state, None, params)
        return self._matrix_of(self._ask(query)).reshape(*query.lead, self.model.nv, self.model.nv)

    def _matrix_of(self, stored: Any) -> Any:
        """Matrices (n, nv, nv) whose stored entries are rows."""
        device, nv, (rows, columns) = self.engine.device, self.model.nv, self._matrix_entries()
        M = np.zeros((len(stored), nv, nv), device.dtype)
        M[:, rows, columns] = M[:, columns, rows] = device.host(stored)
        return device.array(M)

    @presented
    def mass_matrix_vjp(
        self, state: State, bar: Any, *, params: Params | None = None, with_params: bool = True
    ) -> StateGradient:
        """Gradients of a loss whose cotangent with respect to `mass_matrix(state)` is `bar` (..., nv, nv)."""
        query, nv = self._query("mass_matrix", state, None, params), self.model.nv
        bar = self.checks.numbers("bar", bar)
        if bar.shape != (*query.lead, nv, nv):
            raise InputError(f"bar, the cotangent of the mass matrix, is {(*query.lead, nv, nv)}, not {bar.shape}")
        return self._state_gradient(query, self._rows_of_matrix(bar, query.rows), with_params)

    def _rows_of_matrix(self, bar: Any, count: int) -> Any:
        """The cotangents of stored entries for those of whole matrices; None is zero."""
        device, nv, (rows, columns) = self.engine.device, self.model.nv, self._matrix_entries()
        full = np.zeros((count, nv, nv)) if bar is None else device.host(bar).reshape(count, nv, nv)
        return device.array(full[:, rows, columns] + np.where(rows == columns, 0, full[:, columns, rows]))

    @cached_property
    def _stored_entry_of(self) -> np.ndarray:
        """Which stored entry each entry of the mass matrix is, (nv, nv); one past the last where it is zero."""
        rows, columns = self._matrix_entries()
        found = np.full((self.model.nv, self.model.nv), len(rows))
        found[rows, columns] = found[columns, rows] = np.arange(len(rows))
        return found

    def _matrix_entries(self) -> tuple[np.ndarray, np.ndarray]:
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

    def _query(self, name: str, state: State, x: Any, params: Params | None) -> StateQuery:
        """A query with its inputs looked at."""
        q, v, act = parts_of(state)
        q, v = self.checks.numbers("q", q), self.checks.numbers("v", v)
        lead, m = q.shape[:-1], self.model
        if q.shape != (*lead, m.nq) or v.shape != (*lead, m.nv):
            raise InputError(f"'{m.name}' has q (..., {m.nq}) and v (..., {m.nv}); got {q.shape} and {v.shape}")
        rows = int(np.prod(lead))
        found = State(q, v, self.checks.activations(act, lead))
        flat, _ = self.checks.state(found.map(lambda x: x.reshape(rows, x.shape[-1])) if lead else found)
        params = self.checks.params(params, lead[0] if lead else 1)
        if params.batch is not None and len(lead) > 1:  # one set per robot, many states of each
            params = Params(self.model, np.repeat(params.flat, rows // params.batch, 0))
        return StateQuery(name, flat, x, params, lead)

    def _ask(self, query: StateQuery) -> Any:
        """One row per state."""
        return self.engine.query(query.name, query.state, query.x, query.params)

    def _like(self, name: str, x: Any, state: State, n: int) -> Any:
        """x (..., n) with the leading axes of the state, as rows; None is zero."""
        lead, device = _shape(parts_of(state)[0])[:-1], self.engine.device
        x = device.zeros((*lead, n)) if x is None else self.checks.numbers(name, x)
        if x.shape != (*lead, n):
            raise InputError(f"{name} is {(*lead, n)} for these states, not {x.shape}")
        return x.reshape(-1, n) if n else device.zeros((int(np.prod(lead)), 1))

    def _state_gradient(
        self, query: StateQuery, out_bar: Any, with_params: bool, x_name: str | None = None
    ) -> StateGradient:
        """x_name: which of its fields is the cotangent of what else the query needs."""
        with_params = truth("with_params", with_params)
        bars = self.engine.query_vjp(query.name, query.state, query.x, query.params, out_bar, with_params)
        self.checks.finite([*bars.state, bars.x], query.rows)
        lead, params = query.lead, bars.params
        if params is not None and params.batch is not None and len(lead) > 1:
            params = Params(self.model, params.flat.reshape(lead[0], -1, self.model.param_size).sum(1))
        state = bars.state.map(lambda x: x.reshape(*lead, x.shape[-1]))
        own = {x_name: bars.x.reshape(*lead, bars.x.shape[-1])} if x_name and bars.x.shape[-1] else {}
        return StateGradient(state.q, state.v, params, **own, act=state.act).of(self.model)

    def _outputs_of(self, flat: Any) -> dict[str, Any]:
        """Views of a flat array of outputs (n, size) by name."""
        m, n = self.model, len(flat)
        frames = flat[:, : (m.nb + m.ns) * FRAME.size].reshape(n, m.nb + m.ns, FRAME.size)
        totals = flat[:, (m.nb + m.ns) * FRAME.size :]
        names = (("position", "p"), ("rotation", "R"), ("velocity", "v"), ("angular_velocity", "w"))
        views = {}
        for what, part in (("body", frames[:, : m.nb]), ("site", frames[:, m.nb :])):
            for name, field_name in names:
                start, kind = FRAME.fields[field_name]
                view = part[..., start : start + size_of(kind)]
                views[f"{what}_{name}"] = view.reshape(*view.shape[:-1], 3, 3) if name == "rotation" else view
        views |= {"com": totals[:, COM : COM + 3]}
        views |= {"kinetic_energy": totals[:, KINETIC], "potential_energy": totals[:, POTENTIAL]}
        return views


def _shape(x: Any) -> tuple[int, ...]:
    """The shape of an array of any library, of a list or a number."""
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)
