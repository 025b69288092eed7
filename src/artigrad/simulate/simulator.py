"""Simulator: states, steps, rollouts and their gradients. It validates inputs, calls the Engine, and converts results."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal

import numpy as np

from ..arguments import shown, truth
from ..compiler import Cuda, widest
from ..deprecation import keyword_arguments, moved_arguments, renamed, renamed_arguments
from ..errors import InputError, is_whole
from ..files import as_path
from ..kernels.devices import Device, Gpu, Host, Real
from ..model.model import Model
from ..model.options import HardOptions, Integrator, Options, SoftOptions, law_keywords
from ..model.params import Params
from ..model.sealed import Sealed
from ..model.state import State
from ..physics.constraints.law import law_of
from . import sensors
from .checkpoints import CheckpointPlan, Checkpoints, EveryStep, check_checkpoints, plan_of
from .checks import Checks, check_options
from .cotangents import Cotangents, GradientOptions, LossBars, StepsGradient, active_options, vjp_tangent
from .engine import Direction, Engine, Inputs
from .kinks import parameter_kinks
from .policy_loop import Network, policy_backward, policy_forward
from .results import Contacts, Gradient, Health, StateGradient, Trajectory, device_boundary
from .state_functions import StateFunctions
from .trajectory_files import read

OPTIONS = tuple(f.name for f in fields(Options))
DTYPES: dict[Any, Real] = {"f64": "f64", "float64": "f64", "f32": "f32", "float32": "f32"}


@renamed(acceleration="forward_dynamics", acceleration_vjp="forward_dynamics_vjp")
class Simulator(StateFunctions, Sealed):
    """Simulator of one model. Arrays are NumPy on the CPU, PyTorch tensors or `DeviceArray` on a GPU.

    All calls take one state, or a batch of states with a batch axis first; a batch element is one robot.

    Args:
      model: The model.
      dt: Time step, s. None: that of the model's file, or 1 ms.
      device: "cpu", or "cuda", "cuda:1", ... for an NVIDIA GPU (`docs/design/cuda.md`). There `launch` configures kernel
        launches and `stream` is the CUDA stream used where no PyTorch tensor is passed; both are settable.
      dtype: "f64" or "f32", also "float64", np.float32 and the like.
      threads: Number of threads that share a batch, settable. None: the cores available to this process.
      lanes: Number of batch elements per SIMD vector, 1, 2, 4, .... None: the width of a vector register. All lanes of a
        vector process the contacts of each of them, so that fewer lanes are faster where contacts differ. Results are the
        same to the bit.
      backend: "native", or "numpy" to run the same source uncompiled, slowly, for debugging.
      nonfinite: "warn" of a trajectory or gradient that is not finite (it is NaN for this batch element only), or "raise"
        FloatingPointError. A GPU does neither, to avoid a wait.
      law: "soft", "hard", or the options of a law, such as `ag.SoftOptions(noslip=3)` or `ag.HardOptions(slop=1e-3)`.
      integrator, implicit_damping, factor, cone, max_contacts: Fields of `Options`. None: those of `model.options`.

    Attributes other than `threads`, `launch` and `stream` cannot be set: pass `params` to each call, and other options to a
    new Simulator.
    """

    CALLED = "a Simulator"

    @law_keywords
    def __init__(
        self,
        model: Model,
        dt: float | None = None,
        *,
        device: Any = "cpu",
        dtype: Any = "f64",
        threads: int | None = None,
        lanes: int | None = None,
        backend: Literal["native", "numpy"] = "native",
        nonfinite: Literal["warn", "raise"] = "warn",
        law: Literal["soft", "hard"] | SoftOptions | HardOptions | None = None,
        integrator: Integrator | None = None,
        implicit_damping: bool | None = None,
        factor: Literal["articulated", "sparse"] | None = None,
        cone: Literal["pyramidal", "elliptic"] | None = None,
        max_contacts: int | None = None,
    ):
        if not isinstance(model, Model):
            raise InputError(f"Simulator takes a Model (ag.load, ag.robots, ModelBuilder), not {type(model).__name__}")
        given = {
            "dt": dt,
            "law": law,
            "integrator": integrator,
            "implicit_damping": implicit_damping,
            "factor": factor,
            "cone": cone,
            "max_contacts": max_contacts,
        }
        options = model.options.changed({name: x for name, x in given.items() if x is not None})
        check_options(model, options)
        self.model, self.params, self.options = model, model.params, options
        self.dtype: Real = _real(dtype)
        if not isinstance(backend, str) or backend not in ("native", "numpy"):
            raise InputError(f"backend is 'native' or 'numpy', not {backend!r}")
        self.backend = backend
        if threads is not None:
            _check_threads(threads)
        allowed = [1 << k for k in range(widest(self.dtype).bit_length())]
        if lanes is not None and not (is_whole(lanes, 1) and lanes in allowed):
            raise InputError(f"lanes is one of {', '.join(map(str, allowed))} on this machine, not {lanes!r}")
        alone = model.has_contact and "many_trees" in law_of(options).features(model)
        if alone and (lanes or 1) > 1:
            raise InputError(
                f"'{model.name}' has many bodies that may touch each other, which need lanes=1: leave lanes out"
            )
        self.lanes = 1 if alone else int(lanes or widest(self.dtype))
        self.engine = Engine(model, options, self._open(device), int(threads or _cores()))
        if nonfinite not in ("warn", "raise"):
            raise InputError(f"nonfinite is 'warn' or 'raise', not {nonfinite!r}")
        self.checks = Checks(self.engine, self.params, nonfinite == "raise")
        self._seal()

    def _open(self, device: Any) -> Device:
        match = re.fullmatch(r"cpu|cuda(?::(\d+))?", str(device))
        if match is None:
            raise InputError(f"device is 'cpu', 'cuda' or 'cuda:1', not {device!r}")
        if match[0] == "cpu":
            return Host(self.dtype, self.lanes, self.backend == "native")
        if self.backend != "native":
            raise InputError("backend='numpy' runs on the CPU; leave device out")
        return Gpu(self.dtype, int(match[1] or 0))

    def _remedy(self, name: str) -> str:
        """Remedy for setting an attribute, which kernels and constants bound before would not follow."""
        if name == "params":
            return "pass params= to rollout, step and the other calls, or make another one of model.replace(params=...)"
        if name in OPTIONS:
            return f"make another one, Simulator(model, {name}=...)"
        return "make another one" if hasattr(type(self), name) or name in self.__dict__ else ""

    def __repr__(self) -> str:
        o = self.options
        how = f"dt={o.dt:g}, law={o.law.name!r}, integrator={o.integrator!r}, {self.dtype}, {self.device!r}"
        return f"Simulator({self.model.name!r}, {how})"

    @property
    def dt(self) -> float:
        """Time step, s."""
        return self.options.dt

    @property
    def threads(self) -> int:
        """Number of threads that share a batch."""
        return self.engine.threads

    @threads.setter
    def threads(self, value: int) -> None:
        _check_threads(value)
        self.engine.threads = int(value)

    # -- the device --------------------------------------------------------------------------------------------------
    @property
    def device(self) -> str:
        """Device: "cpu", "cuda:0", ..."""
        return self.engine.device.name

    @property
    def real(self) -> np.dtype:
        """dtype of arrays."""
        return self.engine.device.dtype

    def _gpu(self) -> Gpu:
        if not isinstance(self.engine.device, Gpu):
            raise AttributeError("launch, stream and synchronize belong to simulators on a GPU: device='cuda'")
        return self.engine.device

    @property
    def launch(self) -> Cuda:
        """Configuration of kernel launches on a GPU."""
        return self._gpu().launch

    @launch.setter
    def launch(self, value: Cuda) -> None:
        self._gpu().launch = value

    @property
    def stream(self) -> int:
        """CUDA stream for calls without PyTorch tensors."""
        return self._gpu().stream

    @stream.setter
    def stream(self, value: int) -> None:
        self._gpu().stream = value

    def synchronize(self) -> None:
        """Wait until all work on `stream` is done."""
        self._gpu().synchronize()

    # -- states ------------------------------------------------------------------------------------------------------
    @device_boundary
    def state(self, keyframe: str | None = None, *, batch: int | None = None) -> State:
        """Return a keyframe as a state.

        Args:
          keyframe: Name of the keyframe. None: "home" if the model has it, else the initial pose of its file, else all
            joints at zero.
          batch: Number of copies along a batch axis. None: no batch axis.
        """
        found, device = self.model.keyframe(keyframe), self.engine.device
        if batch is None:
            return found.map(device.array)
        if not is_whole(batch, 1):
            raise InputError(f"a batch is a whole number, at least one, not {batch!r}")
        return found.map(lambda x: device.rows(x, int(batch)))

    def reset(self, keyframe: str | None = None, *, batch: int | None = None) -> State:
        """Return `state(keyframe, batch=batch)`, under the name of environments. A Simulator itself has no state."""
        return self.state(keyframe, batch=batch)

    # -- forward -----------------------------------------------------------------------------------------------------
    @device_boundary
    def step(self, state: State, u: Any = None, *, params: Params | None = None, wrench: Any = None) -> State:
        """Return the state one time step later.

        Args:
          state: Current state, or a batch of states.
          u: Controls (nu,) or (B, nu). None: zero.
          params: One set, or one per batch element. None: those of the model.
          wrench: External wrenches (nb, 6) or (B, nb, 6): force, then torque, world axes, at the center of mass. None:
            zero.
        """
        checks, m = self.checks, self.model
        start, batched = checks.state(state)
        batch = len(start.q)
        lead = (batch,) if batched else ()
        u = self.engine.device.zeros((1, m.nu)) if u is None else checks.one_step("u", u, lead, (m.nu,))
        wrench = None if wrench is None else checks.one_step("wrench", wrench, lead, (m.nb, 6))
        inputs = Inputs(batch, u, wrench, checks.params(params, batch))
        status = self.engine.new_status(inputs.batch)
        after = self.engine.advance(inputs, start, (0, 1), status)
        checks.rollout(after, batched, status)
        return after if batched else after.map(_first)

    @device_boundary
    def rollout(
        self,
        state: State,
        u: Any = None,
        *,
        steps: int | None = None,
        params: Params | None = None,
        wrench: Any = None,
        checkpoints: Checkpoints | None = None,
        policy: Network | None = None,
        hold: int = 1,
        sensors: bool = False,
    ) -> Trajectory:
        """Simulate T control steps.

        Args:
          state: First state, or a batch of states.
          u: Controls (T, nu), shared by a batch, or (B, T, nu).
          steps: T, for zero control or a policy, in place of u.
          params: One set, or one per batch element. None: those of the model.
          wrench: External wrenches (T, nb, 6) or (B, T, nb, 6): force, then torque, world axes, at the center of mass.
          checkpoints: States to keep for the backward pass: EveryStep() (default), EveryKth(k) or Binomial(memory="64MB").
          policy: A `Network` that computes the controls inside the compiled loop, in place of u; on the CPU.
          hold: Number of simulator steps for which each control and wrench is held (frame skip), hold T in all. Gradients
            are those of the T controls.
          sensors: Read all sensors at the beginning of every step: `traj.sensors`. Their cotangents are `sensor_bars` of
            `vjp`.
        """
        if sensors is not False and truth("sensors", sensors):
            given: dict[str, Any] = {"steps": steps, "params": params, "wrench": wrench, "checkpoints": checkpoints}
            traj = self.rollout(state, u, **given, policy=policy, hold=hold)
            traj.sensors  # noqa: B018  read now, not when first used
            return traj
        if not is_whole(hold, 1):
            raise InputError(f"hold is a whole number of steps, at least 1, not {hold!r}")
        if policy is not None:
            return self._rollout_under(policy, state, u, steps, params, wrench, checkpoints, hold)
        checkpoints = EveryStep() if checkpoints is None else checkpoints
        check_checkpoints(checkpoints)
        inputs, start, batched = self._inputs(state, u, steps, wrench, params)
        if hold > 1:
            inputs = self._held(inputs, hold)
        status, T = self.engine.new_status(inputs.batch), inputs.steps
        plan = self._plan(checkpoints, T, inputs.batch)
        kept, final = self.engine.rollout(inputs, start, plan, status)
        self.checks.rollout(final, batched, status, kept[0], plan.block)
        final = final if batched else final.map(_first)
        mark = self.checks.fingerprint(inputs.u, inputs.wrench)
        return Trajectory(
            self,
            final,
            inputs.u,
            inputs.wrench,
            inputs.params,
            T,
            checkpoints,
            kept,
            batched,
            status[:, 0],
            mark,
            hold=hold,
        )

    def _rollout_under(
        self,
        policy: Network,
        state: State,
        u: Any,
        steps: int | None,
        params: Any,
        wrench: Any,
        checkpoints: Any,
        hold: int,
    ) -> Trajectory:
        """Simulate under the controls of a policy."""
        if not isinstance(policy, Network):
            raise InputError(
                f"policy is an ag.Network, not {type(policy).__name__}; modules of PyTorch: artigrad.torch.closed_loop"
            )
        if not self.checks.on_host:
            raise InputError("a policy runs inside the loop on the CPU; on a GPU use artigrad.torch.RecordedLoop")
        if any(x is not None for x in (u, wrench, checkpoints)):
            raise InputError("under a policy there are no u, wrench and checkpoints: leave them out")
        policy.check(self.engine)
        inputs, start, batched = self._inputs(state, None, steps, None, params)
        length = inputs.steps * hold
        states, u, violation = policy_forward(self.engine, policy, start, length, inputs.params, hold)
        final = states.map(lambda x: x[:, -1].copy())
        self.checks.rollout(final, batched, violation[:, None], states)
        final = final if batched else final.map(_first)
        u = u if batched else u[0]
        mark, kept = self.checks.fingerprint(u, None), {0: states}
        about = (inputs.params, length, EveryStep(), kept, batched, violation, mark, policy)
        return Trajectory(self, final, u, None, *about, hold=hold)

    def read(self, path: str | os.PathLike[str]) -> Trajectory:
        """Return a trajectory of this model that was saved as a .npz or .csv file.

        A .npz file of a simulator with other options is refused. A .csv file has no options, parameters and wrenches: those
        of this simulator apply, and each control is held for one step. A warning reports states of a file that differ from
        the steps of this simulator.
        """
        return read(self, as_path(path))

    def _inputs(
        self, state: State, u: Any, steps: int | None, wrench: Any, params: Params | None
    ) -> tuple[Inputs, State, bool]:
        """Return the validated inputs of a rollout, its first state with a batch axis, and True if it had one."""
        checks = self.checks
        start, batched = checks.state(state)
        batch = len(start.q)
        u = checks.controls(u, steps, batch, batched)
        wrench = checks.wrench(wrench, u.shape[-2], batch, batched)
        return Inputs(batch, u, wrench, checks.params(params, batch)), start, batched

    def _held(self, inputs: Inputs, hold: int) -> Inputs:
        """Return inputs with every control and wrench repeated for `hold` steps."""
        device = self.engine.device

        def repeat(x: Any, axis: int) -> Any:
            return None if x is None else device.array(np.repeat(device.host(x), hold, axis))

        return inputs._replace(u=repeat(inputs.u, -2), wrench=repeat(inputs.wrench, -3))

    def _plan(self, checkpoints: Checkpoints, steps: int, batch: int) -> CheckpointPlan:
        size = batch * (self.model.nq + self.model.nv + self.model.na) * self.real.itemsize
        return plan_of(checkpoints, steps, size)

    @property
    def contact_names(self) -> tuple[tuple[str, str], ...]:
        """Names of the two shapes of every candidate contact point: the rows of `contacts`."""
        return self.engine.contact_names

    @keyword_arguments("params")
    def parameter_kinks(self, *, params: Params | None = None) -> dict[str, np.ndarray]:
        """Return parameters whose values make gradients one-sided in every state, as masks by field.

        These are time constants of `solref` at two steps (`refsafe`); impedances, widths and powers of `solimp` at the ends
        of their ranges; ranges with equal ends; gains and gears of servos on ball joints and between sites, which wrap their
        error to within half a turn for exactly these values; and equal frictions (under the hard law: restitutions) of the
        two shapes of a pair, which has the larger one. Equal values get half of the gradient each, which is right if both
        change together. Kinks that depend on the state are in `Health.switch_margin`.
        """
        return parameter_kinks(self.model, self.options, self.params if params is None else params)

    @renamed_arguments(traj="state")
    @device_boundary
    def contacts(
        self, state: State | Trajectory, u: Any = None, *, params: Params | None = None, wrench: Any = None
    ) -> Contacts:
        """Return forces, positions and distances of all candidate contact points in a step, or in every step of a rollout.

        Args:
          state: State at the beginning of the step, or a rollout that kept its states.
          u: Controls (nu,) or (B, nu) of the step; None: zero.
          params: One set, or one per batch element.
          wrench: External wrenches (nb, 6) or (B, nb, 6).

        Returns:
          Contacts with a row for each of `contact_names`, (points, n); of batches (B, points, n); of rollouts with an axis of
          steps before the points.
        """
        if not isinstance(state, Trajectory):
            given = {}
            for name, x in (("u", u), ("wrench", wrench)):
                if x is not None:
                    x = self.checks.array(name, x)
                    own = 1 if name == "u" else 2
                    given[name] = x.reshape(*x.shape[:-own], 1, *x.shape[-own:])
            traj = self.rollout(state, **given, steps=1 if u is None else None, params=params)
            found = self.contacts(traj)
            return Contacts(*(x[:, 0] if traj.batched else x[0] for x in found))
        if u is not None or params is not None or wrench is not None:
            raise InputError("contacts of a rollout are those under its own u, params and wrench: leave them out")
        traj = state
        self.checks.trajectory(traj)
        if not self.contact_names:
            raise InputError(f"'{self.model.name}' has no shapes that may touch")
        found = Contacts.of_report(self.engine.contacts(_inputs_of(traj), traj.every_state()))
        return found if traj.batched else Contacts(*(x[0] for x in found))

    # -- backward ----------------------------------------------------------------------------------------------------
    @keyword_arguments("q_bar", "v_bar", "force_bar")
    @moved_arguments(gradient_options=GradientOptions)
    @device_boundary
    def vjp(
        self,
        traj: Trajectory,
        *,
        q_bar: Any = None,
        v_bar: Any = None,
        force_bar: Any = None,
        act_bar: Any = None,
        u_bar: Any = None,
        sensor_bars: Mapping[str, Any] | None = None,
        with_params: bool = True,
        gradient_options: GradientOptions | None = None,
    ) -> Gradient:
        """Return the gradient of a loss with respect to all inputs of a rollout.

        All cotangents have a batch axis first if `traj` has one. None is zero.

        Args:
          traj: The rollout.
          q_bar: Cotangents of q, (T+1, nq) of all states or (nq,) of the last; ambient.
          v_bar: Cotangents of v, (T+1, nv) or (nv,).
          force_bar: Cotangents of `contacts(traj).force`, (T, points, 3).
          act_bar: Cotangents of activations, (T+1, na) or (na,).
          u_bar: Cotangents of the controls of a policy, (T, nu).
          sensor_bars: Cotangents of `traj.sensors` by name, (T, n).
          with_params: False leaves out the gradient of parameters, which is faster.
          gradient_options: Conditioning of the cotangent of the state, which limits gradients of long rollouts. It needs a
            rollout that kept every state.
        """
        checks, engine, options = self.checks, self.engine, active_options(gradient_options)
        with_params = with_params is True or truth("with_params", with_params)
        checks.trajectory(traj)
        if all(bar is None for bar in (q_bar, v_bar, force_bar, act_bar, u_bar, sensor_bars)):
            raise InputError(
                "vjp needs the cotangent of something: pass q_bar, v_bar, act_bar, force_bar, u_bar or sensor_bars"
            )
        if traj.policy is not None:
            if sensor_bars is not None:
                raise InputError("a rollout under a policy has no gradients of sensors: leave sensor_bars out")
            given = (q_bar, v_bar, act_bar), u_bar
            return self._vjp_under(traj, traj.policy, given, force_bar, with_params, options)
        if u_bar is not None:
            raise InputError(
                "u_bar belongs to rollouts under a policy: the controls of others are inputs, add it to their gradient"
            )
        q_bar, v_bar, act_bar = self._state_bars(traj, q_bar, v_bar, act_bar)
        read = None if sensor_bars is None else sensors.rollout_vjp(traj, sensor_bars, with_params)
        if read is not None:
            q_bar, v_bar, act_bar = sensors.added_bars(traj, read.state, (q_bar, v_bar, act_bar))
        bars = LossBars(q_bar, v_bar, act_bar, checks.force_bar(force_bar, len(self.contact_names), traj))
        inputs = _inputs_of(traj)
        if options is not None:
            back = Cotangents(engine, inputs, bars, with_params, options=options, hold=traj.hold)
            back.segment(traj.every_state(), 0, traj.steps)
            found = back.gradient() if read is None else sensors.added_inputs(self, back.gradient(), read)
            return self._gradient(traj, found, back.health[:, 1])
        plan = self._plan(traj.checkpoints, traj.steps, traj.batch)
        stretch = plan.block if plan.keeps_all else 1
        back = Cotangents(engine, inputs, bars, with_params, stretch=stretch)
        back.rollout(traj.kept, plan)
        found = back.gradient() if read is None else sensors.added_inputs(self, back.gradient(), read)
        return self._gradient(traj, found, back.health[:, 1])

    def _state_bars(self, traj: Trajectory, q_bar: Any, v_bar: Any, act_bar: Any) -> list[Any]:
        """Return validated cotangents of q, v and act."""
        given = (("q_bar", q_bar, self.model.nq), ("v_bar", v_bar, self.model.nv), ("act_bar", act_bar, self.model.na))
        return [self.checks.bar(name, bar, n, traj) for name, bar, n in given]

    def _vjp_under(
        self,
        traj: Trajectory,
        policy: Network,
        bars: Any,
        force_bar: Any,
        with_params: bool,
        options: GradientOptions | None,
    ) -> Gradient:
        """Return the gradient of a rollout under a policy."""
        if force_bar is not None:
            raise InputError("a rollout under a policy has no gradients of contact forces: leave force_bar out")
        checks, m = self.checks, self.model

        def every(bar: Any, rows: int, n: int) -> Any:
            """Return cotangents of all rows, zero except the last one if only that is given."""
            if bar is not None and bar.ndim == 3:
                return bar
            whole = np.zeros((traj.batch, rows, n), self.real)
            if bar is not None:
                whole[:, -1] = bar
            return whole

        state_bars, u_bar = bars
        of_states = zip(self._state_bars(traj, *state_bars), (m.nq, m.nv, m.na), strict=True)
        given = (
            State(*(every(bar, traj.steps + 1, n) for bar, n in of_states)),
            every(checks.control_bar(u_bar, traj), traj.steps, m.nu),
        )
        u = traj.u.reshape(traj.batch, traj.steps, m.nu)
        back = policy_backward(
            self.engine, policy, traj.every_state(), u, traj.params, given, options, with_params, hold=traj.hold
        )
        pieces = [*back.state, back.u, *([] if back.params is None else [back.params.flat])]
        health = Health(checks.finite(pieces, traj.batch), traj.violation, back.health[:, 1])
        checks.warn_if_unsolved(traj.violation)
        u_bars = _of_held(back.u, traj.hold, 2)
        first, u_bar = (back.state, u_bars) if traj.batched else (back.state.map(_first), u_bars[0])
        return Gradient(first.q, first.v, u_bar, back.params, None, health, back.layers, first.act).of(m)

    def _gradient(self, traj: Trajectory, found: StepsGradient, margin: Any) -> Gradient:
        """Return cotangents in the shapes of the user's inputs, with diagnostics."""
        state_bar, u_bar, wrench_bar, params = found
        total, pieces = self.engine.device.total, [*state_bar, u_bar] + ([] if params is None else [params.flat])
        health = Health(self.checks.finite(pieces, traj.batch), traj.violation, margin)
        self.checks.warn_if_unsolved(traj.violation)
        u_bar, wrench_bar = _of_held(u_bar, traj.hold, 2), _of_held(wrench_bar, traj.hold, 3)
        if traj.u.ndim == 2:
            u_bar = total(u_bar)
        if wrench_bar is not None and traj.wrench is not None and traj.wrench.ndim == 3:
            wrench_bar = total(wrench_bar)
        first = state_bar if traj.batched else state_bar.map(_first)
        return Gradient(first.q, first.v, u_bar, params, wrench_bar, health, None, first.act).of(self.model)

    # -- forward mode --------------------------------------------------------------------------------------------------
    @keyword_arguments("dq", "dv", "du")
    @device_boundary
    def jvp(
        self,
        traj: Trajectory,
        *,
        dq: Any = None,
        dv: Any = None,
        du: Any = None,
        dact: Any = None,
        dwrench: Any = None,
        dparams: Mapping[str, Any] | None = None,
    ) -> State:
        """Return tangents of all states of a rollout: q (T+1, nq), v (T+1, nv) and act (T+1, na).

        All arrays have a batch axis first if `traj` has one. Inputs without a tangent are constant.

        Args:
          traj: A rollout that kept its states.
          dq: Tangent of the first q, (nq,), ambient.
          dv: Tangent of the first v, (nv,).
          du: Tangent of the controls, shaped as they were passed.
          dact: Tangent of the first activations, (na,).
          dwrench: Tangent of the wrenches, shaped as they were passed.
          dparams: Tangents of parameters, by field name.
        """
        direction = self._direction(traj, (dq, dv, dact), du, dwrench, dparams)
        found = self.engine.rollout_jvp(_inputs_for(traj, direction), traj.every_state(), direction)
        self.checks.finite([*found], traj.batch)
        self.checks.warn_if_unsolved(traj.violation)
        return found if traj.batched else found.map(_first)

    @keyword_arguments("q_bar", "v_bar")
    @device_boundary
    def hvp(
        self,
        traj: Trajectory,
        *,
        q_bar: Any = None,
        v_bar: Any = None,
        act_bar: Any = None,
        dq: Any = None,
        dv: Any = None,
        dact: Any = None,
        du: Any = None,
        dwrench: Any = None,
        dparams: Mapping[str, Any] | None = None,
        dq_bar: Any = None,
        dv_bar: Any = None,
        dact_bar: Any = None,
        with_params: bool = True,
    ) -> Gradient:
        """Return the derivative of the gradient `vjp(traj, q_bar, v_bar)` along a direction: an exact Hessian-vector product.

        Args:
          traj: A rollout that kept its states.
          q_bar, v_bar, act_bar: Cotangents of the states, as in `vjp`.
          dq, dv, dact, du, dwrench, dparams: Direction of the inputs, as in `jvp`.
          dq_bar, dv_bar, dact_bar: Tangents of the cotangents: second derivatives of the loss times `jvp(traj, ...)`. None
            for a loss that is linear in the states.
          with_params: False leaves out parameters.
        """
        direction = self._direction(traj, (dq, dv, dact), du, dwrench, dparams)
        inputs, states = _inputs_for(traj, direction), traj.every_state()
        checks, m, with_params = self.checks, self.model, truth("with_params", with_params)
        bars = [
            LossBars(
                *(
                    checks.bar(f"{d}{k}_bar", x, n, traj)
                    for k, x, n in zip(("q", "v", "act"), given, (m.nq, m.nv, m.na), strict=True)
                )
            )
            for d, given in (("", (q_bar, v_bar, act_bar)), ("d", (dq_bar, dv_bar, dact_bar)))
        ]
        moved = self.engine.rollout_jvp(inputs, states, direction)
        back = vjp_tangent(self.engine, inputs, (states, moved), (bars[0], bars[1]), direction, with_params)
        return self._gradient(traj, *back)

    def _direction(
        self,
        traj: Trajectory,
        dstate: tuple[Any, Any, Any],
        du: Any,
        dwrench: Any,
        dparams: Mapping[str, Any] | None,
    ) -> Direction:
        """Return validated tangents with a batch axis."""
        self.checks.trajectory(traj)
        if all(change is None for change in (*dstate, du, dwrench, dparams)):
            raise InputError("a direction changes something: pass dq, dv, dact, du, dwrench or dparams")
        if traj.policy is not None:
            raise InputError("forward mode takes rollouts under given controls: pass u in place of policy")
        m, T = self.model, traj.steps // traj.hold
        if dwrench is not None and traj.wrench is None:
            raise InputError("this rollout had no wrenches, so there are none to change: pass wrench=zeros to it")
        flat = None
        if dparams is not None:
            if not isinstance(dparams, Mapping) or not all(isinstance(name, str) for name in dparams):
                raise InputError(f"dparams are tangents of parameters by field name, not {shown(dparams)}")
            own = np.zeros_like(traj.params.flat)
            flat = Params(m, own, checked=False).replace(unchecked=True, **dparams).flat
            if flat.ndim == 2 and len(flat) != traj.batch:
                raise InputError(f"dparams have {len(flat)} sets, but the batch has {traj.batch} robots")
        own_axes = {"dq": (m.nq,), "dv": (m.nv,), "dact": (m.na,), "du": (T, m.nu), "dwrench": (T, m.nb, 6)}
        given = zip(own_axes.items(), (*dstate, du, dwrench), strict=True)
        q, v, act, u, wrench = (self.checks.change(name, x, own, traj) for (name, own), x in given)
        if traj.hold > 1:
            held = self._held(Inputs(traj.batch, u, wrench, traj.params), traj.hold)
            u, wrench = held.u, held.wrench
        return Direction(q, v, act, u, wrench, flat)

    @device_boundary
    def linearize(self, state: State, u: Any = None, *, params: Params | None = None) -> tuple[Any, Any]:
        """Return (A, B), the Jacobians of one step on the tangent space: dx' = A dx + B du with x = (q, v, act).

        Args:
          state: State, or a batch of states. There are no external wrenches.
          u: Controls (nu,) or (B, nu). None: zero.
          params: One set, or one per batch element.

        Returns:
          A (n, n) and B (n, nu), n = 2 nv + na, with a batch axis first if the state has one.
        """
        start, batched = self.checks.state(state)
        batch, nu = len(start.q), self.model.nu
        u = self.engine.device.zeros((nu,)) if u is None else self.checks.array("u", u)
        if u.shape != (nu,) and (not batched or u.shape != (batch, nu)):
            raise InputError(f"linearize takes u ({nu},){f' or ({batch}, {nu})' if batched else ''}, not {u.shape}")
        inputs = Inputs(batch, u[..., None, :], None, self.checks.params(params, batch))
        A, B, violation = self.engine.jacobian(inputs, start)
        self.checks.warn_if_unsolved(violation)
        return (A, B) if batched else (A[0], B[0])

    # -- sensors -----------------------------------------------------------------------------------------------------
    @device_boundary
    def sensors(self, state: State, u: Any = None, *, params: Params | None = None, time: Any = 0.0) -> dict[str, Any]:
        """Return readings of all sensors by name.

        Args:
          state: One state or a batch of them.
          u: Controls of the coming step, (nu,) or (B, nu), which accelerations and forces depend on. None: zero.
          params: One set, or one per batch element.
          time: Time for clock sensors, s; one, or one per state.

        Returns:
          Readings (n,), or (B, n) for a batch, as MuJoCo defines them. Under the hard law accelerometers read the mean over
          the coming step.
        """
        return sensors.read(self, state, u, params, time)

    @device_boundary
    def sensors_vjp(
        self, state: State, bars: dict[str, Any], u: Any = None, *, params: Params | None = None
    ) -> StateGradient:
        """Return the gradient of a loss from its cotangents with respect to `sensors(state, u)`.

        Args:
          state: As in `sensors`.
          bars: Cotangents by sensor name, (n,) or (B, n).
          u: As in `sensors`.
          params: As in `sensors`.
        """
        return sensors.read_vjp(self, state, bars, u, params)


def _first(x: Any) -> Any:
    """Return the first batch element."""
    return x[0]


def _of_held(bar: Any, hold: int, own: int) -> Any:
    """Return cotangents of held inputs: sums over `hold` steps of those of every step. own: number of axes from time on."""
    if bar is None or hold == 1:
        return bar
    lead, (steps, *rest) = bar.shape[: bar.ndim - own], bar.shape[bar.ndim - own :]
    parts = bar.reshape(*lead, steps // hold, hold, *rest)
    return sum(parts[(slice(None),) * (len(lead) + 1) + (k,)] for k in range(hold))


def _inputs_of(traj: Trajectory) -> Inputs:
    return Inputs(traj.batch, traj.u, traj.wrench, traj.params)


def _inputs_for(traj: Trajectory, direction: Direction) -> Inputs:
    """Return the inputs of a rollout for a direction, with parameters repeated per batch element if their tangents are."""
    inputs, d_flat = _inputs_of(traj), direction.params
    if d_flat is None or d_flat.ndim == traj.params.flat.ndim:
        return inputs
    flat = np.repeat(traj.params.flat[None], traj.batch, 0)
    return inputs._replace(params=Params(traj.params.model, flat, checked=traj.params.checked))


def _real(dtype: Any) -> Real:
    """Return 'f64' or 'f32' for any name of the dtype."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise InputError(f"dtype is 'f64' or 'f32' (also 'float32', np.float32, ...), not {dtype!r}")
    return DTYPES[name]


def _check_threads(threads: Any) -> None:
    if not is_whole(threads, 1):
        raise InputError(f"threads is a whole number, at least 1, not {threads!r}")


def _cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
