"""Functions of one state, for states with any leading axes: outputs, accelerations, inverse dynamics, mass matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .door import Door
from .errors import InputError
from .outputs import COM, FRAME, KINETIC, POTENTIAL
from .params import Params
from .results import Outputs, StateGradient
from .run import QueryRun
from .staging.struct import size_of
from .state import State
from .tables import dof_rows

if TYPE_CHECKING:
    from .simulator import Simulator


class StateFunctions(Door):
    """What a Simulator can say about a state, each with its adjoint."""

    def outputs(self, state: State, *, params: Params | None = None) -> Outputs:
        """Poses and velocities of bodies and sites, centre of mass and energies, for states with any leading axes."""
        run, lead = self._query("outputs", state, None, params)
        return Outputs(**{k: x.reshape(lead + x.shape[1:]) for k, x in self._unpack(run.forward()).items()})

    def outputs_vjp(self, state: State, bars: Outputs, *, params: Params | None = None) -> StateGradient:
        """Gradients of a loss whose cotangents with respect to `outputs(state)` are `bars`; None there means zero."""
        run, lead = self._query("outputs", state, None, params)
        if not isinstance(bars, Outputs):
            raise InputError(f"bars is an Outputs with the cotangents, not {type(bars).__name__}")
        flat = self._place.zeros((run.count, run.size))
        for name, view in self._unpack(flat).items():
            bar = getattr(bars, name)
            if bar is not None:
                bar = self._numbers(name, bar if _shape(bar) else [bar]).reshape(_shape(bar))
                if bar.shape != lead + view.shape[1:]:
                    raise InputError(f"the cotangent of {name} is {lead + view.shape[1:]}, not {bar.shape}")
                view[...] = bar.reshape(view.shape)
        return self._state_gradient(run, flat, lead)

    def sites(self, state: State, *, params: Params | None = None) -> Any:
        """Positions of all sites in the world, (..., ns, 3)."""
        return self.outputs(state, params=params).site_position

    def acceleration(self, state: State, u: Any = None, *, params: Params | None = None) -> Any:
        """Joint accelerations (..., nv) under controls u (..., nu): forward dynamics, all damping explicit. Contact, limits
        and dry friction are left out; with them, (step(state, u).v - v) / dt is the mean over a step."""
        run, lead = self._query("acceleration", state, self._like("u", u, state, self.model.nu), params)
        return run.forward().reshape(*lead, self.model.nv)

    def acceleration_vjp(self, state: State, u: Any, bar: Any, *, params: Params | None = None) -> StateGradient:
        """Gradients of a loss whose cotangent with respect to `acceleration(state, u)` is `bar`."""
        run, lead = self._query("acceleration", state, self._like("u", u, state, self.model.nu), params)
        return self._state_gradient(run, self._like("bar", bar, state, self.model.nv), lead)

    def inverse_dynamics(self, state: State, a: Any, *, params: Params | None = None) -> Any:
        """Joint forces M a + c(q, v) (..., nv) for accelerations a: gravity, inertia and armature; no damping or springs."""
        run, lead = self._query("inverse_dynamics", state, self._like("a", a, state, self.model.nv), params)
        return run.forward().reshape(*lead, self.model.nv)

    def inverse_dynamics_vjp(self, state: State, a: Any, bar: Any, *, params: Params | None = None) -> StateGradient:
        """Gradients of a loss whose cotangent with respect to `inverse_dynamics(state, a)` is `bar`."""
        run, lead = self._query("inverse_dynamics", state, self._like("a", a, state, self.model.nv), params)
        return self._state_gradient(run, self._like("bar", bar, state, self.model.nv), lead)

    def mass_matrix(self, state: State, *, params: Params | None = None) -> Any:
        """M(q) (..., nv, nv), armature included."""
        run, lead = self._query("mass_matrix", state, None, params)
        nv, (rows, columns) = self.model.nv, self._matrix_entries()
        M = np.zeros((run.count, nv, nv), self._float)
        M[:, rows, columns] = M[:, columns, rows] = self._place.host(run.forward())
        return self._place.array(M.reshape(*lead, nv, nv))

    def mass_matrix_vjp(self, state: State, bar: Any, *, params: Params | None = None) -> StateGradient:
        """Gradients of a loss whose cotangent with respect to `mass_matrix(state)` is `bar` (..., nv, nv)."""
        run, lead = self._query("mass_matrix", state, None, params)
        nv, (rows, columns) = self.model.nv, self._matrix_entries()
        bar = self._numbers("bar", bar)
        if bar.shape != (*lead, nv, nv):
            raise InputError(f"the cotangent of the mass matrix is {(*lead, nv, nv)}, not {bar.shape}")
        full = self._place.host(bar).reshape(run.count, nv, nv)
        both = full[:, rows, columns] + np.where(rows == columns, 0, full[:, columns, rows])
        return self._state_gradient(run, self._place.array(both), lead)

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

    def _query(self, name: str, state: State, x: Any, params: Params | None) -> tuple[QueryRun, tuple[int, ...]]:
        """A query bound to its inputs, and the leading axes of the state."""
        q, v = (self._numbers(n, x) for n, x in zip("qv", self._two(state), strict=True))
        lead = q.shape[:-1]
        if v.shape[:-1] != lead:
            raise InputError(f"q and v of a state have the same leading axes, not {lead} and {v.shape[:-1]}")
        rows = int(np.prod(lead))
        flat = State(q.reshape(rows, q.shape[-1]), v.reshape(rows, v.shape[-1]))
        flat_q, flat_v, _ = self._check_state(flat)
        params = self._check_params(params, lead[0] if lead else 1)
        if params.batch is not None and len(lead) > 1:  # one set per robot, many states of each
            params = Params(self.model, np.repeat(params.flat, len(flat_q) // params.batch, 0))
        return QueryRun(cast("Simulator", self), name, State(flat_q, flat_v), x, params), lead

    def _like(self, name: str, x: Any, state: State, n: int) -> Any:
        """x (..., n) with the leading axes of the state, as rows; None is zero."""
        lead = _shape(self._two(state)[0])[:-1]
        x = self._place.zeros((*lead, n)) if x is None else self._numbers(name, x)
        if x.shape != (*lead, n):
            raise InputError(f"{name} is {(*lead, n)} for these states, not {x.shape}")
        return x.reshape(-1, n) if n else self._place.zeros((int(np.prod(lead)), 1))

    def _state_gradient(self, run: QueryRun, out_bar: Any, lead: tuple[int, ...]) -> StateGradient:
        bars = run.backward(out_bar)
        self._warn_if_not_finite([bars.q, bars.v, bars.x], run.count)
        x = bars.x.reshape(*lead, run.x_size) if run.x_size else None
        params = bars.params
        own = run.params.batch
        if own is not None and len(lead) > 1:
            params = Params(self.model, params.flat.reshape(lead[0], -1, self.model.param_size).sum(1))
        q, v = bars.q.reshape(*lead, self.model.nq), bars.v.reshape(*lead, self.model.nv)
        return StateGradient(q, v, x, params)

    def _unpack(self, flat: Any) -> dict[str, Any]:
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
