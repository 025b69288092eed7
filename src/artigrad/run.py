"""One call's inputs, bound to kernels: a rollout, its way back, a query of states."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .contact.report import REPORT
from .contact.solver import FAR
from .errors import ContactError
from .jacobian import jacobian_kernel
from .params import Params
from .prepare import prepare_vjp
from .queries import QUERIES, query_kernel, query_vjp_kernel, query_work
from .rollout import Variant, contacts_kernel, rollout_kernel, rollout_vjp_kernel
from .staging import Kernel
from .state import State
from .tables import Workspace, constants_size

if TYPE_CHECKING:
    from .simulator import Simulator


class Run:
    """One rollout's inputs, bound to kernels: `states` keeps states on the way, `advance` only the last."""

    def __init__(self, sim: Simulator, batch: int, u: Any, wrench: Any, params: Params):
        self.sim, self.batch, self.u, self.wrench, self.params = sim, batch, u, wrench, params
        self.place = sim._place
        self.target = sim._target(batch)
        self.constants = sim._constants(params, self.target, batch)
        self.status = self.place.zeros((batch, 2))  # over all steps: worst violation, whether a contact found no place

    def bound(
        self, maker: Callable[[Variant, tuple[str, ...]], Kernel], *, backward: bool, scratch: Any = None, **flags: bool
    ) -> Any:
        """The kernel for inputs of this kind, with what does not change from call to call in place. flags: those of
        `Variant`; scratch: sizes of what this kernel needs beside the workspace."""
        sim, wrench, own = self.sim, self.wrench is not None, self.params.batch is not None
        key = (maker, self.target, own, wrench, *flags.items())
        found = sim._bound.get(key)
        if found is None:
            work = Workspace.sizes(sim.model, sim.options, backward, wrench)
            contact = sim.model.has_contact
            variant = Variant(sim.options, self.target, own, wrench, contact=contact, **flags)
            more = sim._contact_arguments(backward) if contact else {}
            arguments = {**sim._integers, "dt": sim.options.dt, **work, **more, **(scratch or {})}
            found = sim._bound[key] = maker(variant, tuple(work)).bind(**arguments)
        return found

    def inputs(self, first: int, end: int) -> dict[str, Any]:
        """Controls and wrenches of the steps first .. end, as (B, ...) arrays."""
        out = {"u": self.batch_first(self.u[..., first:end, :], 2)}
        if self.wrench is not None:
            out["wrench"] = self.batch_first(self.wrench[..., first:end, :, :], 3)
        return out

    def batch_first(self, x: Any, own: int) -> Any:
        if x.ndim > own:
            return x
        return x[None] if self.batch == 1 else self.place.broadcast(x, self.batch)

    def _call(self, q: Any, v: Any, first: int, stretches: int, length: int) -> None:
        """Rows 1 .. stretches of the states from row 0, at step `first`."""
        strided = length > 1
        self.bound(rollout_kernel, backward=False, strided=strided)(
            self.batch,
            self.sim.threads,
            stretches=stretches,
            **({"length": length} if strided else {}),
            const=self.constants,
            q=q,
            v=v,
            **self._status(),
            **self.inputs(first, first + stretches * length),
        )
        self._check_table()

    def _status(self) -> dict[str, Any]:
        return {"status": self.status} if self.sim.model.has_contact else {}

    def _check_table(self) -> None:
        """No contact is lost in silence. Looking means to wait for a GPU, so nobody looks where there is room for all."""
        if not self.sim._table_may_be_full:
            return
        full = np.flatnonzero(self.place.host(self.status[:, 1]))
        if len(full):
            lanes, most = self.target.lanes if self.sim.device == "cpu" else 1, self.sim.options.max_contacts
            beside = f", together with the others of its pack of {lanes} (lanes=1: alone)" if lanes > 1 else ""
            raise ContactError(
                f"robot {full[0]}{beside} has more points in or near contact than max_contacts={most} allows for; make the "
                "Simulator with a larger max_contacts, or fewer shapes that may touch"
            )

    def states(self, start: State, first: int, end: int, every: int = 1) -> State:
        """The states at steps first, first + every, ... and `end`: arrays (B, rows, n)."""
        m, (whole, rest) = self.sim.model, divmod(end - first, every)
        rows = 1 + whole + (rest > 0)
        q, v = self.place.empty((self.batch, rows, m.nq)), self.place.empty((self.batch, rows, m.nv))
        q[:, 0], v[:, 0] = start
        if whole:
            self._call(q, v, first, whole, every)
        if rest:
            self._call(q[:, whole:], v[:, whole:], end - rest, 1, rest)
        return State(q, v)

    def extend(self, states: State, t: int) -> None:
        """Fill row t+1 of the states (B, T+1, n) from row t."""
        self._call(states.q[:, t:], states.v[:, t:], t, 1, 1)

    def advance(self, start: State, first: int, end: int) -> State:
        """The state at step `end` from that at `first`."""
        q, v = self.states(start, first, end, max(1, end - first))
        return State(q[:, -1].copy(), v[:, -1].copy())

    def jacobian(self, state: State) -> tuple[Any, Any]:
        """A and B of the first step."""
        sim, n = self.sim, 2 * self.sim.model.nv
        A, B = (self.place.empty((self.batch, n, m)) for m in (n, sim.model.nu))
        kernel = self.bound(jacobian_kernel, backward=True, scratch={"direction": n, "q_next": sim.model.nq})
        kernel(
            self.batch,
            sim.threads,
            const=self.constants,
            q=state.q,
            v=state.v,
            A=A,
            B=B,
            **self._status(),
            **self.inputs(0, 1),
        )
        self._check_table()
        return A, B

    def contacts(self, states: State, steps: int) -> Any:
        """A row of REPORT for every point that may touch and every step, (B, T, points, 7)."""
        sim, points = self.sim, len(self.sim.contact_names)
        out = self.place.empty((self.batch, steps, points, REPORT.size))
        kernel = self.bound(contacts_kernel, backward=False, scratch={"row": points * REPORT.size})
        q, v = states.q[:, :steps], states.v[:, :steps]
        kernel(self.batch, sim.threads, steps=steps, const=self.constants, q=q, v=v, out=out, **self.inputs(0, steps))
        return out


class Backward:
    """The cotangents on their way from the last state to the first. stretch: of so many steps the first state is given,
    and the others are run again."""

    def __init__(
        self, run: Run, q_bars: Any, v_bars: Any, force_bars: Any, steps: int, with_params: bool, stretch: int = 1
    ):
        self.run, self.place, self.stretch, batch = run, run.place, stretch, run.batch
        m = run.sim.model
        self.every = int(any(x is not None and x.ndim == 3 for x in (q_bars, v_bars)))
        self.q_bar, self.q_bars = self._split(q_bars, batch, steps, m.nq)
        self.v_bar, self.v_bars = self._split(v_bars, batch, steps, m.nv)
        self.u_bar = self.place.empty((batch, steps, m.nu))
        self.wrench_bar = None if run.wrench is None else self.place.empty((batch, steps, m.nb, 6))
        self.force_bars = force_bars
        self.kernel = run.bound(
            rollout_vjp_kernel,
            backward=True,
            scratch=None if force_bars is None else {"force_bar": force_bars.shape[2] * 3},
            with_params=with_params,
            force_bars=force_bars is not None,
            strided=stretch > 1,
        )
        self.health = self.place.rows((0.0, FAR), batch)  # worst violation, least margin
        self.extra: dict[str, Any] = {"health": self.health} if m.has_contact else {}
        self.const_bar: Any = None
        if with_params:
            shape = self.kernel.kernel.packed_shape(batch, constants_size(m, bars=True))
            self.const_bar = self.extra["const_bar"] = self.place.packed_zeros(shape)

    def _split(self, bars: Any, batch: int, steps: int, n: int) -> tuple[Any, Any]:
        """The cotangent of the last state, and those of all; if none has those of all, they are not looked at."""
        if bars is not None and bars.ndim == 3:
            return bars[:, -1].copy(), bars
        last = self.place.zeros((batch, n)) if bars is None else bars.copy()
        if not self.every:
            return last, last[:, None]
        every = self.place.zeros((batch, steps + 1, n))
        every[:, -1] = last
        return last, every

    def segment(self, states: State, first: int, end: int) -> None:
        """Differentiate the steps first .. end, whose states are given, or the first of every stretch."""
        if self.stretch == 1:
            self._call(first, end, length=end - first, q=states.q, v=states.v)
            return
        m, (whole, rest) = self.run.sim.model, divmod(end - first, self.stretch)
        room = {k: self.place.empty((self.run.batch, self.stretch + 1, n)) for k, n in (("q", m.nq), ("v", m.nv))}
        if rest:
            last = {"q_kept": states.q[:, whole:], "v_kept": states.v[:, whole:]}
            self._call(end - rest, end, stretches=1, length=rest, **room, **last)
        if whole:
            kept = {"q_kept": states.q, "v_kept": states.v}
            self._call(first, end - rest, stretches=whole, length=self.stretch, **room, **kept)

    def _call(self, first: int, end: int, **states: Any) -> None:
        run = self.run
        if self.wrench_bar is not None:
            self.extra["wrench_bar"] = self.wrench_bar[:, first:end]
        if self.force_bars is not None:
            self.extra["force_bars"] = self.force_bars[:, first:end]
        self.kernel(
            run.batch,
            run.sim.threads,
            every=self.every,
            const=run.constants,
            q_bars=self.q_bars[:, first:end],
            v_bars=self.v_bars[:, first:end],
            q_bar=self.q_bar,
            v_bar=self.v_bar,
            u_bar=self.u_bar[:, first:end],
            **states,
            **run.inputs(first, end),
            **self.extra,
        )

    def warn_if_unsolved(self) -> None:
        """For callers who hand out no `health`. Sweeps are not asked to solve anything."""
        violation = self.place.host(self.health[:, 0])
        if self.run.sim.options.solver == "hybrid" and not (violation == 0.0).all():
            worst = int(np.argmax(np.nan_to_num(violation, nan=np.inf)))
            warnings.warn(
                f"contact was not solved in some step of robot {worst} (by {violation[worst]:.1e} m/s), so that its gradient "
                "is not exact there; a larger softness solves more, and health of sim.vjp has the figures of all robots",
                RuntimeWarning,
                stacklevel=3,
            )

    def params_gradient(self) -> Params | None:
        if self.const_bar is None:
            return None
        run = self.run
        sim = run.sim
        return prepare_vjp(sim.model, run.params, run.target, run.batch, sim.threads, run.place, self.const_bar)


class QueryBars(NamedTuple):
    """Cotangents of the inputs of a query, one row per state, and of the parameters."""

    q: Any
    v: Any
    x: Any
    params: Params


class QueryRun:
    """A query of many states at once: arrays (n, ...) with one row per state."""

    def __init__(self, sim: Simulator, name: str, state: State, x: Any, params: Params):
        self.sim, self.name, self.params = sim, name, params
        self.count = len(state.q)
        self.size, self.x_size = QUERIES[name].size(sim.model), QUERIES[name].x_size(sim.model)
        target = sim._target(self.count)
        self.variant = Variant(sim.options, target, params.batch is not None).staged
        self.work = query_work(sim.model, sim.options, name)
        x = sim._place.zeros((self.count, max(self.x_size, 1))) if x is None else x
        const = sim._constants(params, target, self.count)
        self.arguments: dict[str, Any] = {"const": const, "q": state.q, "v": state.v, "x": x}

    def bound(self, maker: Callable[[str, Variant, tuple[str, ...]], Kernel]) -> Any:
        """The kernel of this query, with what does not change from call to call in place."""
        sim, key = self.sim, (maker, self.name, self.variant)
        found = sim._bound.get(key)
        if found is None:
            kernel = maker(self.name, self.variant, tuple(self.work))
            found = kernel.bind(**sim._integers, size=self.size, x_size=self.x_size, **self.work)
            sim._bound[key] = found
        return found

    def forward(self) -> Any:
        out = self.sim._place.empty((self.count, self.size))
        self.bound(query_kernel)(self.count, self.sim.threads, **self.arguments, out=out)
        return out

    def backward(self, out_bar: Any) -> QueryBars:
        sim, m, place = self.sim, self.sim.model, self.sim._place
        bound = self.bound(query_vjp_kernel)
        bars = {f"{k}_bar": place.empty((self.count, n)) for k, n in (("q", m.nq), ("v", m.nv), ("x", self.x_size))}
        const_bar = place.packed_zeros(bound.kernel.packed_shape(self.count, constants_size(m, bars=True)))
        bound(self.count, sim.threads, **self.arguments, out_bar=out_bar, const_bar=const_bar, **bars)
        params = prepare_vjp(m, self.params, self.variant.target, self.count, sim.threads, place, const_bar)
        return QueryBars(bars["q_bar"], bars["v_bar"], bars["x_bar"], params)
