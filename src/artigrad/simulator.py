"""Simulator: states, steps, rollouts and their gradients."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Literal

import numpy as np

from . import sensors, tangent
from .collision.candidates import contact_names
from .contact.tables import contact_arguments, contact_work, reverse_work
from .errors import InputError
from .model import Model
from .params import Params, check_params
from .places import Host, Place
from .prepare import prepare
from .results import Contacts, Gradient, Health, StateGradient, Trajectory
from .rollout import Checkpoints, EveryStep, forward_snapshots, reverse
from .run import Backward, Run
from .staging import Target, widest
from .state import State
from .state_functions import StateFunctions
from .tables import topology_arguments

FIXED = ("model", "options", "dtype", "backend", "lanes")


class Simulator(StateFunctions):
    """Simulates one model. Arrays in and out are NumPy on the CPU, PyTorch's or `DeviceArray` on a GPU; one robot has no
    batch axis.

    dt: time step in seconds; by default what the model's file says, 1 ms if it says nothing. options: integrator, factor,
    and those of contact, see `Options`; those not given are `model.options`. dtype: "f64" or "f32".
    device: "cpu", or "cuda", "cuda:1", ... for an NVIDIA GPU (`artigrad.cuda`, `docs/design/cuda.md`).
    threads: how many to share a batch among (default: the cores this process may use). lanes: how many robots of a batch go
    through the code side by side: as many as a vector register holds (default), or fewer, 1, 2, 4, ..., which is faster
    where each touches something else, since a pack looks at all that any of its robots touches; the numbers are the same
    to the bit. backend: "native", or "numpy" to run the very same source uncompiled, slowly, for reading and debugging.
    """

    def __new__(cls, *arguments: Any, device: Any = "cpu", **options: Any) -> Simulator:
        if cls is Simulator and str(device).startswith("cuda"):
            from .cuda import CudaSimulator  # not loaded where nobody asks for it

            return object.__new__(CudaSimulator)
        return object.__new__(cls)

    def __init__(
        self,
        model: Model,
        dt: float | None = None,
        *,
        device: Any = "cpu",
        dtype: Literal["f64", "f32"] = "f64",
        threads: int | None = None,
        lanes: int | None = None,
        backend: Literal["native", "numpy"] = "native",
        **options: Any,
    ):
        if not isinstance(model, Model):
            raise InputError(f"Simulator takes a Model (ag.load, ag.robots, ModelBuilder), not {type(model).__name__}")
        if not isinstance(dtype, str) or dtype not in ("f64", "f32"):
            raise InputError(f"dtype is 'f64' or 'f32', not {dtype!r}")
        if backend not in ("native", "numpy"):
            raise InputError(f"backend is 'native' or 'numpy', not {backend!r}")
        if str(device) != "cpu":
            raise InputError(f"device is 'cpu', 'cuda' or 'cuda:1', not {device!r}")
        self.model, self.params, self.device = model, model.params, "cpu"
        self.options = model.options.changed(options if dt is None else {"dt": dt, **options})
        self._check_options()
        self.dtype, self.backend = dtype, backend
        if threads is not None and (not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads is a whole number, at least 1, not {threads!r}")
        self.threads = threads or _cores()
        allowed = [1 << k for k in range(widest(dtype).bit_length())]
        if lanes is not None and lanes not in allowed:
            raise InputError(f"lanes is one of {', '.join(map(str, allowed))} on this machine, not {lanes!r}")
        self.lanes = lanes or widest(dtype)
        self._integers = topology_arguments(model)
        self._prepared: tuple[Params, Target, Any] | None = None
        self._bound: dict[tuple[Any, ...], Any] = {}
        self._quaternions = tangent.quaternions(model)
        self._float = np.dtype(np.float64 if dtype == "f64" else np.float32)
        self._place: Place = Host(self._float)

    def __setattr__(self, name: str, value: Any) -> None:
        """Kernels are bound to these: a change would reach some and not others."""
        if name in FIXED and name in self.__dict__:
            raise AttributeError(f"{name} of a Simulator cannot be changed; make another one")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: without compiled code, which is found or made again."""
        return self.__dict__ | {"_prepared": None, "_bound": {}}

    # -- states ----------------------------------------------------------------------------------------------------
    def reset(self, keyframe: str | None = None, *, batch: int | None = None) -> State:
        """The named keyframe, once or `batch` times; without a name 'home' if the model has it, else how its file places it,
        else all joints at zero."""
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
        run, start, batched = self._run(state, u, None, wrench, params)
        after = run.advance(start, 0, 1)
        return after if batched else State(after.q[0], after.v[0])

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
        run, start, batched = self._run(state, u, steps, wrench, params)
        T = run.u.shape[-2]
        block, blocks, snapshots = self._plan(checkpoints, T, run.batch)
        kept: dict[int, State] = {}
        if snapshots >= blocks:
            kept[0] = run.states(start, 0, T, block)
            final = State(kept[0].q[:, -1], kept[0].v[:, -1])
        else:
            at, last = start, 0
            for b in forward_snapshots(blocks, snapshots):  # `advance` makes copies
                at, last = run.advance(at, last * block, b * block), b
                kept[b] = at
            final = run.advance(at, last * block, T)
        final = State(final.q.copy(), final.v.copy())
        final = final if batched else State(final.q[0], final.v[0])
        mark = self._mark(run.u, run.wrench)
        return Trajectory(
            self, final, run.u, run.wrench, run.params, T, checkpoints, kept, batched, run.status[:, 0], mark
        )

    def _run(
        self, state: State, u: Any, steps: int | None, wrench: Any, params: Params | None
    ) -> tuple[Run, State, bool]:
        """The inputs of a rollout, looked at; its first state with a batch axis, and whether it had one."""
        q, v, batched = self._check_state(state)
        batch = len(q)
        u = self._check_controls(u, steps, batch, batched)
        wrench = self._check_wrench(wrench, u.shape[-2], batch, batched)
        return Run(self, batch, u, wrench, self._check_params(params, batch)), State(q, v), batched

    def _plan(self, checkpoints: Checkpoints, steps: int, batch: int) -> tuple[int, int, int]:
        """Steps of a block, how many blocks there are, and the first states of how many are kept at a time."""
        block, snapshots = checkpoints.plan(steps, batch * (self.model.nq + self.model.nv) * self._float.itemsize)
        return block, -(-steps // block), snapshots

    @cached_property
    def contact_names(self) -> tuple[tuple[str, str], ...]:
        """The two shapes of every point that may touch: what the rows of `contacts` are."""
        return contact_names(self.model)

    def contacts(self, traj: Trajectory) -> Contacts:
        """Forces, places and gaps of all points that may touch, in every step of a rollout that kept its states."""
        self._check_trajectory(traj)
        if not self.contact_names:
            raise InputError(f"'{self.model.name}' has no shapes that may touch")
        rows = Run(self, traj.batch, traj.u, traj.wrench, traj.params).contacts(traj.every_state(), traj.steps)
        force, point, gap = rows[..., :3], rows[..., 3:6], rows[..., 6]
        return Contacts(force, point, gap) if traj.batched else Contacts(force[0], point[0], gap[0])

    # -- backward --------------------------------------------------------------------------------------------------
    def vjp(
        self,
        traj: Trajectory,
        q_bar: Any = None,
        v_bar: Any = None,
        force_bar: Any = None,
        *,
        with_params: bool = True,
    ) -> Gradient:
        """Gradients of a loss whose cotangents with respect to the states of `traj` are q_bar and v_bar.

        q_bar: (T+1, nq) for all states or (nq,) for the last alone, with a batch axis first if `traj` has one; ambient.
        v_bar: likewise with nv. force_bar: (T, points, 3), of the forces of `contacts(traj)`, with a batch axis first if
        `traj` has one. None means zero. with_params=False leaves out the gradient of the parameters, which
        makes the call faster.
        """
        self._check_trajectory(traj)
        batch, T = traj.batch, traj.steps
        q_bars = self._check_bar("q_bar", q_bar, self.model.nq, traj, batch)
        v_bars = self._check_bar("v_bar", v_bar, self.model.nv, traj, batch)
        run = Run(self, batch, traj.u, traj.wrench, traj.params)
        force_bars = self._check_force_bar(force_bar, len(self.contact_names), traj, batch)
        block, blocks, snapshots = self._plan(traj.checkpoints, T, batch)
        all_kept = snapshots >= blocks
        back = Backward(run, q_bars, v_bars, force_bars, T, with_params, stretch=block if all_kept else 1)
        if all_kept:
            back.segment(traj.kept[0], 0, T)
        else:

            def block_vjp(state: State, b: int) -> None:
                first, end = b * block, min((b + 1) * block, T)
                back.segment(run.states(state, first, end), first, end)

            def advance(state: State, a: int, b: int) -> State:
                return run.advance(state, a * block, b * block)

            kept = dict(traj.kept)
            for b in kept:  # used up on the way, to stay within memory; that of block 0 stays with the trajectory
                if b:
                    traj.kept.pop(b, None)
            reverse(blocks, snapshots, kept, advance, block_vjp)
        return self._gradient(traj, back, batch)

    def _gradient(self, traj: Trajectory, back: Backward, batch: int) -> Gradient:
        params = back.params_gradient()
        pieces = [back.q_bar, back.v_bar, back.u_bar] + ([] if params is None else [params.flat])
        finite = self._warn_if_not_finite(pieces, batch)
        health = Health(finite, back.health[:, 0], back.health[:, 1])
        u_bar = back.u_bar if traj.u.ndim == 3 else self._place.total(back.u_bar)
        wrench_bar = back.wrench_bar
        if wrench_bar is not None and traj.wrench is not None:
            wrench_bar = wrench_bar if traj.wrench.ndim == 4 else self._place.total(wrench_bar)
        if not traj.batched:
            return Gradient(back.q_bar[0], back.v_bar[0], u_bar, params, wrench_bar, health)
        return Gradient(back.q_bar, back.v_bar, u_bar, params, wrench_bar, health)

    def linearize(self, state: State, u: Any = None, *, params: Params | None = None) -> tuple[Any, Any]:
        """(A, B): Jacobians of one step on the tangent space, dx' = A dx + B du with x = (q, v), of size 2 nv.

        state and u (nu,) of one robot, or with a batch axis first, which A (2 nv, 2 nv) and B (2 nv, nu) then have too. No
        external wrenches.
        """
        q, v, batched = self._check_state(state)
        batch, m = len(q), self.model
        u = self._place.zeros((m.nu,)) if u is None else self._numbers("u", u)
        if u.shape != (m.nu,) and (not batched or u.shape != (batch, m.nu)):
            raise InputError(f"linearize takes u ({m.nu},){f' or ({batch}, {m.nu})' if batched else ''}, not {u.shape}")
        run = Run(self, batch, u[..., None, :], None, self._check_params(params, batch))
        A, B = run.jacobian(State(q, v))
        return (A, B) if batched else (A[0], B[0])

    # -- sensors ---------------------------------------------------------------------------------------------------
    def sensors(self, state: State, u: Any = None, *, params: Params | None = None) -> dict[str, np.ndarray]:
        """What the model's sensors read, by name: (n,), or (B, n) for a batch. u: the controls of the coming step, over
        which an accelerometer takes its mean."""
        return sensors.read(self, state, u, params)

    def sensors_vjp(
        self, state: State, bars: dict[str, Any], u: Any = None, *, params: Params | None = None
    ) -> StateGradient:
        """Gradients of a loss whose cotangents with respect to `sensors(state, u)` are `bars`, by name."""
        return sensors.read_vjp(self, state, bars, u, params)

    # -- kernels ---------------------------------------------------------------------------------------------------
    @cached_property
    def _table_may_be_full(self) -> bool:
        """Whether more points could be near at a time than there is room for."""
        if not self.model.has_contact:
            return False
        integers = self._contact_integers
        return bool(integers["c_most"].sum() < integers["c_point"][-1])

    @cached_property
    def _contact_integers(self) -> dict[str, Any]:
        """What all kernels with contact share."""
        return contact_arguments(self.model, self.options.max_contacts, self._float)

    def _contact_arguments(self, backward: bool) -> dict[str, Any]:
        """What contact adds to the arguments of a kernel."""
        integers = self._contact_integers
        work = contact_work(self.model, integers)
        if backward and self.options.gradient == "reverse":
            work |= reverse_work(self.model, integers, self.options.sweeps)
        return integers | work | {"law": np.array(self.options.law, self._float)}

    def _target(self, batch: int) -> Target:
        return self._targets[batch > 1]

    @cached_property
    def _targets(self) -> tuple[Target, Target]:
        """For one robot, and for a batch."""
        native = self.backend == "native"
        return Target(self.dtype, 1, native), Target(self.dtype, self.lanes if native else 1, native)

    def _constants(self, params: Params, target: Target, batch: int) -> Any:
        """Constants of the last params are kept: they do not change, since Params do not."""
        known = self._prepared  # read once: another thread may put its own there
        if known is None or known[0] is not params or known[1] != target:
            check_params(params)
            known = (params, target, prepare(self.model, params, target, batch, self.threads, self._place))
            self._prepared = known
        return known[2]


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
