"""Simulator: the checked public door. Every array that comes in is looked at here; the staged core trusts it."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from . import tangent
from .contact.tables import contact_arguments, contact_work
from .errors import InputError
from .model import Model
from .options import Options
from .outputs import COM, FRAME, KINETIC, POTENTIAL
from .params import Params, check_params
from .prepare import prepare
from .rollout import Checkpoints, EveryStep, forward_snapshots, reverse
from .run import Backward, QueryRun, Run
from .staging import Target, widest
from .staging.kernel import Bound
from .staging.struct import size_of
from .state import State
from .tables import dof_rows, topology_arguments

UNIT_TOLERANCE = 1e-3  # how far a quaternion's length may be from one


class Gradient(NamedTuple):
    """Cotangents of what went into a rollout, each shaped as it was passed. `q0` is ambient."""

    q0: np.ndarray
    v0: np.ndarray
    u: np.ndarray
    params: Params | None
    wrench: np.ndarray | None


class StateGradient(NamedTuple):
    """Cotangents of what a function of one state was given, each shaped as it was passed. `q` is ambient.

    x: of the controls (`acceleration`) or joint accelerations (`inverse_dynamics`), else None.
    """

    q: np.ndarray
    v: np.ndarray
    x: np.ndarray | None
    params: Params


class Outputs(NamedTuple):
    """Quantities to build losses on; world axes, SI units. Leading axes are those of the state.

    body_*, site_*: one row per body or site. position (3,) and rotation (3, 3) of its frame, velocity (3,) of the
    frame's origin, angular_velocity (3,). com: centre of mass (3,) of the whole model. Energies: joules.
    """

    body_position: Any = None
    body_rotation: Any = None
    body_velocity: Any = None
    body_angular_velocity: Any = None
    site_position: Any = None
    site_rotation: Any = None
    site_velocity: Any = None
    site_angular_velocity: Any = None
    com: Any = None
    kinetic_energy: Any = None
    potential_energy: Any = None


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A rollout: states, and what made them. Batch axis first, then time.

    violation: (B,), how far the contact problem of some step was from solved, m/s; 0 where every step was solved to the
    tolerance. Gradients of such steps are those of the active set that was found.

    `q` (T+1, nq) and `v` (T+1, nv), or with a batch (B, T+1, ...), are there if every step was kept; `final` always is.
    """

    simulator: Simulator = field(repr=False)
    final: State
    u: np.ndarray
    wrench: np.ndarray | None
    params: Params
    steps: int
    checkpoints: Checkpoints
    kept: dict[int, State] = field(repr=False)
    batched: bool
    violation: np.ndarray
    fingerprint: tuple[float, ...] = field(repr=False)

    @property
    def q(self) -> np.ndarray:
        """Positions of every step."""
        return self._states().q

    @property
    def v(self) -> np.ndarray:
        """Velocities of every step."""
        return self._states().v

    def _states(self) -> State:
        if not isinstance(self.checkpoints, EveryStep):
            raise InputError(f"this rollout kept {self.checkpoints}; pass checkpoints=EveryStep() to read every state")
        q, v = (x.view() for x in self.kept[0])
        q.flags.writeable = v.flags.writeable = False
        return State(q, v) if self.batched else State(q[0], v[0])


class Simulator:
    """Simulates one model. Arrays in and out are NumPy; one robot has no batch axis.

    dt: time step in seconds. options: integrator, factor, and those of contact, see `Options`. dtype: "f64" or "f32".
    threads: how many to share a batch among (default: the cores this process may use). backend: "native", or "numpy" to
    run the very same source uncompiled, slowly, for reading and debugging.
    """

    def __init__(
        self,
        model: Model,
        dt: float = 1e-3,
        *,
        dtype: Literal["f64", "f32"] = "f64",
        threads: int | None = None,
        backend: Literal["native", "numpy"] = "native",
        **options: Any,
    ):
        if not isinstance(model, Model):
            raise InputError(f"Simulator takes a Model (ag.robots, ModelBuilder), not {type(model).__name__}")
        if not isinstance(dtype, str) or dtype not in ("f64", "f32"):
            raise InputError(f"dtype is 'f64' or 'f32', not {dtype!r}")
        if backend not in ("native", "numpy"):
            raise InputError(f"backend is 'native' or 'numpy', not {backend!r}")
        self.model, self.params = model, model.params
        self.options = Options.of(dt, options)
        self._check_options()
        self.dtype, self.backend = dtype, backend
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads is a whole number, at least 1, not {threads!r}")
        self.threads = threads or _cores()
        self._integers = topology_arguments(model)
        self._prepared: tuple[Params, Target, np.ndarray] | None = None
        self._bound: dict[tuple[Any, ...], Bound] = {}
        self._quaternions = tangent.quaternions(model)
        self._float = np.dtype(np.float64 if dtype == "f64" else np.float32)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: without compiled code, which is found or made again."""
        return self.__dict__ | {"_prepared": None, "_bound": {}}

    # -- states ----------------------------------------------------------------------------------------------------
    def reset(self, keyframe: str | None = None, *, batch: int | None = None) -> State:
        """The named keyframe ('home' if the model has one, else all joints at zero), once or `batch` times."""
        q, v = (x.astype(self._float) for x in self.model.keyframe(keyframe))
        if batch is None:
            return State(q, v)
        if not isinstance(batch, int | np.integer) or batch < 1:
            raise InputError(f"a batch is a whole number of robots, at least one, not {batch!r}")
        return State(np.repeat(q[None], batch, 0), np.repeat(v[None], batch, 0))

    # -- forward ---------------------------------------------------------------------------------------------------
    def step(self, state: State, u: Any = None, *, params: Params | None = None, wrench: Any = None) -> State:
        """The state one dt later. u: (nu,), or (B, nu) for a batch; wrench: (nb, 6) or (B, nb, 6)."""
        u = np.zeros((1, self.model.nu)) if u is None else self._one_step("u", u, 1)
        if wrench is not None:
            wrench = self._one_step("wrench", wrench, 2)
        return self.rollout(state, u, params=params, wrench=wrench).final

    def rollout(
        self,
        state: State,
        u: Any = None,
        *,
        steps: int | None = None,
        params: Params | None = None,
        wrench: Any = None,
        checkpoints: Checkpoints | None = None,
    ) -> Trajectory:
        """T steps from `state` under the controls u (T, nu), or (B, T, nu) for a batch; (T, nu) with a batch is shared.

        steps: in place of u, for zero control. params: one set, or one per robot. wrench: external wrenches on bodies
        (T, nb, 6) or (B, T, nb, 6): force then torque, world axes, at the centre of mass. checkpoints: which states to
        keep for the way back: EveryStep() (default), EveryKth(k) or Binomial(memory="64MB").
        """
        checkpoints = EveryStep() if checkpoints is None else checkpoints
        if isinstance(checkpoints, type) or not hasattr(checkpoints, "plan"):
            raise InputError("checkpoints is EveryStep(), EveryKth(k) or Binomial(memory=...)")
        q, v, batched = self._check_state(state)
        batch = len(q)
        u = self._check_controls(u, steps, batch, batched)
        T = u.shape[-2]
        wrench = self._check_wrench(wrench, T, batch, batched)
        params = self._check_params(params, batch)
        state_bytes = batch * (self.model.nq + self.model.nv) * self._float.itemsize
        block, snapshots = checkpoints.plan(T, state_bytes)
        blocks = max(1, -(-T // block))
        run = Run(self, batch, u, wrench, params)
        kept: dict[int, State] = {}
        if blocks == 1:
            states = run.states(State(q, v), 0, T)
            kept[0] = states if isinstance(checkpoints, EveryStep) else State(q.copy(), v.copy())
            final = State(states.q[:, -1], states.v[:, -1])
        else:
            at, last = State(q, v), 0
            for b in forward_snapshots(blocks, snapshots):  # `advance` makes copies
                at, last = run.advance(at, last * block, b * block), b
                kept[b] = at
            final = run.advance(at, last * block, T)
        final = State(final.q.copy(), final.v.copy())
        final = final if batched else State(final.q[0], final.v[0])
        return Trajectory(
            self, final, u, wrench, params, T, checkpoints, kept, batched, run.violation[:, 0], _fingerprint(u, wrench)
        )

    # -- backward --------------------------------------------------------------------------------------------------
    def vjp(self, traj: Trajectory, q_bar: Any = None, v_bar: Any = None, *, with_params: bool = True) -> Gradient:
        """Gradients of a loss whose cotangents with respect to the states of `traj` are q_bar and v_bar.

        q_bar: (T+1, nq) for all states or (nq,) for the last alone, with a batch axis first if `traj` has one; ambient.
        v_bar: likewise with nv. None means zero. with_params=False leaves out the gradient of the parameters, which
        makes the call faster.
        """
        self._check_trajectory(traj)
        batch, T = len(np.atleast_2d(traj.final.q)), traj.steps
        q_bars = self._check_bar("q_bar", q_bar, self.model.nq, traj, batch)
        v_bars = self._check_bar("v_bar", v_bar, self.model.nv, traj, batch)
        run = Run(self, batch, traj.u, traj.wrench, traj.params)
        back = run.backward(q_bars, v_bars, T, with_params)

        block, snapshots = traj.checkpoints.plan(T, batch * (self.model.nq + self.model.nv) * self._float.itemsize)
        blocks = max(1, -(-T // block))
        if isinstance(traj.checkpoints, EveryStep):
            back.segment(traj.kept[0], 0, T)
        else:

            def block_vjp(state: State, b: int) -> None:
                first, end = b * block, min((b + 1) * block, T)
                back.segment(run.states(state, first, end), first, end)

            def advance(state: State, a: int, b: int) -> State:
                return run.advance(state, a * block, b * block)

            first = traj.kept[0]
            reverse(blocks, snapshots, traj.kept, advance, block_vjp)  # uses the snapshots up, to stay within memory
            traj.kept[0] = first
        return self._gradient(traj, back, batch)

    def _gradient(self, traj: Trajectory, back: Backward, batch: int) -> Gradient:
        params = back.params_gradient()
        pieces = [back.q_bar, back.v_bar, back.u_bar] + ([] if params is None else [params.flat])
        self._warn_if_not_finite(pieces, batch)
        u_bar = back.u_bar if traj.u.ndim == 3 else _total(back.u_bar)
        wrench_bar = back.wrench_bar
        if wrench_bar is not None and traj.wrench is not None:
            wrench_bar = wrench_bar.reshape(batch, traj.steps, self.model.nb, 6)
            wrench_bar = wrench_bar if traj.wrench.ndim == 4 else _total(wrench_bar)
        if not traj.batched:
            return Gradient(back.q_bar[0], back.v_bar[0], u_bar, params, wrench_bar)
        return Gradient(back.q_bar, back.v_bar, u_bar, params, wrench_bar)

    @staticmethod
    def _warn_if_not_finite(pieces: list[np.ndarray], batch: int) -> None:
        if all(map(_all_finite, pieces)):
            return
        bad = np.zeros(batch, bool)
        for x in pieces:
            if x.shape[0] == batch:
                bad |= ~np.isfinite(x).reshape(batch, -1).all(1)
            elif not np.isfinite(x).all():
                bad[:] = True
        if bad.any():
            which = ", ".join(map(str, np.flatnonzero(bad)[:8]))
            warnings.warn(
                f"the gradient of {bad.sum()} of {batch} robots is not finite (robot {which}): the motion or a "
                "cotangent overflowed; look at the states, shorten dt or the horizon",
                RuntimeWarning,
                stacklevel=4,
            )

    def linearize(self, state: State, u: Any = None, *, params: Params | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(A, B): Jacobians of one step of one robot, on the tangent space. dx' = A dx + B du with x = (q, v), (2 nv,)."""
        q, v, batched = self._check_state(state)
        if batched:
            raise InputError("linearize takes one robot: a state without batch axis")
        u = np.zeros(self.model.nu) if u is None else self._numbers("u", u)
        if u.shape != (self.model.nu,):
            raise InputError(f"linearize takes u ({self.model.nu},), not {u.shape}")
        nv, n = self.model.nv, 2 * self.model.nv
        copies = State(np.repeat(q, n, 0), np.repeat(v, n, 0))
        controls = np.repeat(np.asarray(u, self._float).reshape(1, 1, self.model.nu), n, 0)
        if params is not None and params.batch == 1:
            params = Params(self.model, params.flat[0])
        traj = self.rollout(copies, controls, params=params)
        one = np.eye(n, dtype=self._float)
        q_bar = tangent.to_ambient(self.model, traj.final.q, one[:, :nv])
        grad = self.vjp(traj, q_bar, one[:, nv:], with_params=False)
        A = np.concatenate([tangent.to_tangent(self.model, copies.q, grad.q0), grad.v0], axis=1)
        return A, grad.u[:, 0]

    # -- functions of a state ----------------------------------------------------------------------------------------
    def outputs(self, state: State, *, params: Params | None = None) -> Outputs:
        """Poses and velocities of bodies and sites, centre of mass and energies, for states with any leading axes."""
        run, lead = self._query("outputs", state, None, params)
        return Outputs(**{k: x.reshape(lead + x.shape[1:]) for k, x in self._unpack(run.forward()).items()})

    def outputs_vjp(self, state: State, bars: Outputs, *, params: Params | None = None) -> StateGradient:
        """Gradients of a loss whose cotangents with respect to `outputs(state)` are `bars`; None there means zero."""
        run, lead = self._query("outputs", state, None, params)
        if not isinstance(bars, Outputs):
            raise InputError(f"bars is an Outputs with the cotangents, not {type(bars).__name__}")
        flat = np.zeros((run.count, run.size), self._float)
        for name, view in self._unpack(flat).items():
            bar = getattr(bars, name)
            if bar is not None:
                bar = self._numbers(name, np.atleast_1d(bar)).reshape(np.shape(bar))
                if bar.shape != lead + view.shape[1:]:
                    raise InputError(f"the cotangent of {name} is {lead + view.shape[1:]}, not {bar.shape}")
                view[...] = bar.reshape(view.shape)
        return self._state_gradient(run, flat, lead)

    def sites(self, state: State, *, params: Params | None = None) -> np.ndarray:
        """Positions of all sites in the world, (..., ns, 3)."""
        return self.outputs(state, params=params).site_position

    def acceleration(self, state: State, u: Any = None, *, params: Params | None = None) -> np.ndarray:
        """Joint accelerations (..., nv) under controls u (..., nu): forward dynamics, all damping explicit."""
        run, lead = self._query("acceleration", state, self._like("u", u, state, self.model.nu), params)
        return run.forward().reshape(*lead, self.model.nv)

    def acceleration_vjp(self, state: State, u: Any, bar: Any, *, params: Params | None = None) -> StateGradient:
        """Gradients of a loss whose cotangent with respect to `acceleration(state, u)` is `bar`."""
        run, lead = self._query("acceleration", state, self._like("u", u, state, self.model.nu), params)
        return self._state_gradient(run, self._like("bar", bar, state, self.model.nv), lead)

    def inverse_dynamics(self, state: State, a: Any, *, params: Params | None = None) -> np.ndarray:
        """Joint forces M a + c(q, v) (..., nv) for accelerations a: gravity, inertia and armature; no damping or springs."""
        run, lead = self._query("inverse_dynamics", state, self._like("a", a, state, self.model.nv), params)
        return run.forward().reshape(*lead, self.model.nv)

    def inverse_dynamics_vjp(self, state: State, a: Any, bar: Any, *, params: Params | None = None) -> StateGradient:
        """Gradients of a loss whose cotangent with respect to `inverse_dynamics(state, a)` is `bar`."""
        run, lead = self._query("inverse_dynamics", state, self._like("a", a, state, self.model.nv), params)
        return self._state_gradient(run, self._like("bar", bar, state, self.model.nv), lead)

    def mass_matrix(self, state: State, *, params: Params | None = None) -> np.ndarray:
        """M(q) (..., nv, nv), armature included."""
        run, lead = self._query("mass_matrix", state, None, params)
        nv, (rows, columns) = self.model.nv, self._matrix_entries()
        M = np.zeros((run.count, nv, nv), self._float)
        M[:, rows, columns] = M[:, columns, rows] = run.forward()
        return M.reshape(*lead, nv, nv)

    def mass_matrix_vjp(self, state: State, bar: Any, *, params: Params | None = None) -> StateGradient:
        """Gradients of a loss whose cotangent with respect to `mass_matrix(state)` is `bar` (..., nv, nv)."""
        run, lead = self._query("mass_matrix", state, None, params)
        nv, (rows, columns) = self.model.nv, self._matrix_entries()
        bar = self._numbers("bar", bar)
        if bar.shape != (*lead, nv, nv):
            raise InputError(f"the cotangent of the mass matrix is {(*lead, nv, nv)}, not {bar.shape}")
        full = bar.reshape(run.count, nv, nv)
        both = full[:, rows, columns] + np.where(rows == columns, 0, full[:, columns, rows])
        return self._state_gradient(run, np.ascontiguousarray(both), lead)

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

    def _query(
        self, name: str, state: State, x: np.ndarray | None, params: Params | None
    ) -> tuple[QueryRun, tuple[int, ...]]:
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
        return QueryRun(self, name, State(flat_q, flat_v), x, params), lead

    def _like(self, name: str, x: Any, state: State, n: int) -> np.ndarray:
        """x (..., n) with the leading axes of the state, as rows; None is zero."""
        lead = np.shape(self._two(state)[0])[:-1]
        x = np.zeros((*lead, n), self._float) if x is None else self._numbers(name, x)
        if x.shape != (*lead, n):
            raise InputError(f"{name} is {(*lead, n)} for these states, not {x.shape}")
        return x.reshape(-1, n) if n else np.zeros((int(np.prod(lead)), 1), self._float)

    def _state_gradient(self, run: QueryRun, out_bar: np.ndarray, lead: tuple[int, ...]) -> StateGradient:
        bars = run.backward(out_bar)
        self._warn_if_not_finite([bars.q, bars.v, bars.x], run.count)
        x = bars.x.reshape(*lead, run.x_size) if run.x_size else None
        params = bars.params
        own = run.params.batch
        if own is not None and len(lead) > 1:
            params = Params(self.model, params.flat.reshape(lead[0], -1, self.model.param_size).sum(1))
        q, v = bars.q.reshape(*lead, self.model.nq), bars.v.reshape(*lead, self.model.nv)
        return StateGradient(q, v, x, params)

    def _unpack(self, flat: np.ndarray) -> dict[str, np.ndarray]:
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
                views[f"{what}_{name}"] = _square(view) if name == "rotation" else view
        views |= {"com": totals[:, COM : COM + 3]}
        views |= {"kinetic_energy": totals[:, KINETIC], "potential_energy": totals[:, POTENTIAL]}
        return views

    # -- the door --------------------------------------------------------------------------------------------------
    def _check_options(self) -> None:
        if self.model.has_contact:
            for name, needed in (("integrator", "semi_implicit"), ("factor", "articulated")):
                if getattr(self.options, name) != needed:
                    raise InputError(f"'{self.model.name}' has contact or limits, which need {name}='{needed}'")

    def _check_state(self, state: Any) -> tuple[np.ndarray, np.ndarray, bool]:
        m = self.model
        q, v = self._two(state)
        q, v = self._numbers("q", q), self._numbers("v", v)
        if q.ndim not in (1, 2) or q.shape[-1] != m.nq or v.shape != (*q.shape[:-1], m.nv):
            raise InputError(
                f"'{m.name}' has q ({m.nq},) and v ({m.nv},), or (batch, {m.nq}) and (batch, {m.nv}); "
                f"got {q.shape} and {v.shape}"
            )
        batched = q.ndim == 2
        q, v = np.atleast_2d(q), np.atleast_2d(v)
        if len(q) == 0:
            raise InputError("the batch is empty")
        for a, _ in self._quaternions:
            length = np.sqrt(np.square(q[:, a : a + 4]).sum(1))
            off = np.abs(length - 1)
            if off.max() > UNIT_TOLERANCE:
                bad = np.flatnonzero(off > UNIT_TOLERANCE)
                raise InputError(
                    f"q[{a}:{a + 4}] is a quaternion w x y z and must have length 1, not {length[bad[0]]:.4g}"
                    f"{f' (robot {bad[0]})' if batched else ''}: divide it by its norm"
                )
        return q, v, batched

    @staticmethod
    def _two(state: Any) -> tuple[Any, Any]:
        try:
            q, v = state
        except (TypeError, ValueError):
            raise InputError("a state is State(q, v): two arrays") from None
        return q, v

    def _one_step(self, name: str, x: Any, own: int) -> np.ndarray:
        """The input of a single step, with a time axis of length one before its own axes."""
        x = self._numbers(name, x)
        if x.ndim < own:
            raise InputError(f"{name} of a step has {own} axes, or {own + 1} with a batch; got shape {x.shape}")
        return np.expand_dims(x, -1 - own)

    def _numbers(self, name: str, value: Any) -> np.ndarray:
        """A contiguous array of this simulator's dtype; an error for what is no number."""
        try:
            given = np.asarray(value)
            if given.dtype.kind not in "fiubO":
                raise TypeError
            out = np.ascontiguousarray(given, dtype=self._float)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name} must be an array of numbers, not {type(value).__name__}") from None
        if np.ndim(value) == 0:
            raise InputError(f"{name} must be an array, not a single number")
        if not _all_finite(out):
            where = np.argwhere(~np.isfinite(out))[0]
            raise InputError(f"{name}[{', '.join(map(str, where))}] is {out[tuple(where)]}: all numbers must be finite")
        return out

    def _check_controls(self, u: Any, steps: int | None, batch: int, batched: bool) -> np.ndarray:
        nu = self.model.nu
        if u is None:
            if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 0:
                raise InputError("pass the controls u (T, nu), or steps=T for zero control")
            return np.zeros((steps, nu), self._float)
        if steps is not None:
            raise InputError("pass u or steps, not both: the length of u is the number of steps")
        u = self._numbers("u", u)
        if u.ndim == 2 and u.shape[1] == nu:
            return u
        if u.ndim == 3 and u.shape[2] == nu and batched and len(u) == batch:
            return u
        wanted = f"(T, {nu})" + (f" or ({batch}, T, {nu})" if batched else "")
        raise InputError(f"controls of '{self.model.name}' are {wanted}, not {u.shape}")

    def _check_wrench(self, wrench: Any, T: int, batch: int, batched: bool) -> np.ndarray | None:
        if wrench is None:
            return None
        wrench = self._numbers("wrench", wrench)
        one = (T, self.model.nb, 6)
        if wrench.shape == one or (batched and wrench.shape == (batch, *one)):
            return wrench
        raise InputError(f"wrenches are {one}{f' or {(batch, *one)}' if batched else ''}, not {wrench.shape}")

    def _check_params(self, params: Params | None, batch: int) -> Params:
        params = self.params if params is None else params
        if not isinstance(params, Params):
            raise InputError(f"params is a Params (model.params.replace(...)), not {type(params).__name__}")
        if params.model is not self.model:
            raise InputError(f"these params belong to '{params.model.name}'; this simulator runs '{self.model.name}'")
        if params.batch not in (None, batch):
            raise InputError(f"params have {params.batch} sets, but the batch has {batch} robots")
        return params

    def _check_trajectory(self, traj: Any) -> None:
        if not isinstance(traj, Trajectory):
            raise InputError(f"vjp takes what rollout returned, a Trajectory, not {type(traj).__name__}")
        other = traj.simulator
        if other.model is not self.model:
            raise InputError("this trajectory was made with another model")
        for name in ("options", "dtype", "backend"):
            if getattr(other, name) != getattr(self, name):
                raise InputError(f"this trajectory was made by a simulator with other {name}: {getattr(other, name)}")
        if traj.fingerprint != _fingerprint(traj.u, traj.wrench):
            raise InputError(
                "the controls or wrenches of this trajectory were changed after the rollout; pass a copy to it"
            )

    def _check_bar(self, name: str, bar: Any, n: int, traj: Trajectory, batch: int) -> np.ndarray | None:
        """(B, n) for the last state, (B, T+1, n) for all, None for zero."""
        if bar is None:
            return None
        bar = self._numbers(name, bar)
        lead = (batch,) if traj.batched else ()
        if bar.shape == (*lead, n):
            return bar.reshape(batch, n)
        if bar.shape == (*lead, traj.steps + 1, n):
            return bar.reshape(batch, traj.steps + 1, n)
        raise InputError(
            f"{name} is {(*lead, traj.steps + 1, n)} for all states or {(*lead, n)} for the last, not {bar.shape}"
        )

    def _contact_arguments(self) -> dict[str, Any]:
        """What contact adds to the arguments of a kernel."""
        integers = contact_arguments(self.model, self._float)
        return integers | contact_work(self.model, integers) | {"law": np.array(self.options.law, self._float)}

    # -- kernels ---------------------------------------------------------------------------------------------------
    def _target(self, batch: int) -> Target:
        if self.backend == "numpy":
            return Target(self.dtype, 1, native=False)
        return Target(self.dtype, 1 if batch == 1 else widest(self.dtype))

    def _constants(self, params: Params, target: Target, batch: int) -> np.ndarray:
        """Constants of the last params are kept: they do not change, since Params do not."""
        known = self._prepared  # read once: another thread may put its own there
        if known is None or known[0] is not params or known[1] != target:
            check_params(params)
            known = (params, target, prepare(self.model, params, target, batch, self.threads))
            self._prepared = known
        return known[2]


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _square(view: np.ndarray) -> np.ndarray:
    """(..., 9) as (..., 3, 3), without a copy: the last axis has stride one."""
    step = view.strides[-1]
    shape, strides = (*view.shape[:-1], 3, 3), (*view.strides[:-1], 3 * step, step)
    return np.lib.stride_tricks.as_strided(view, shape, strides)


def _all_finite(x: np.ndarray) -> bool:
    """Whether no entry is NaN or infinite; a sum tells, without an array of answers, unless it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(x.sum())) or bool(np.isfinite(x).all())


def _total(x: np.ndarray) -> np.ndarray:
    """The sum over the batch, which for one robot is that robot's own."""
    return x[0] if len(x) == 1 else x.sum(0)


def _fingerprint(u: np.ndarray, wrench: np.ndarray | None) -> tuple[float, ...]:
    """Tells whether arrays that belong to the caller are still what they were; no copy is made of long controls."""
    arrays = [u] if wrench is None else [u, wrench]
    return tuple(float(f) for x in arrays for f in (x.sum(), np.vdot(x, x)))
