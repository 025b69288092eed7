"""The simulator on a GPU: `Simulator(model, device="cuda")`. One robot per thread, whole rollouts in one launch.

Arrays that are on the GPU already (PyTorch tensors, DeviceArrays, whatever speaks `__cuda_array_interface__`) are used
where they lie; arrays of the host are checked as on the CPU and copied. Results are PyTorch tensors if any array given was
one, else DeviceArrays. With tensors, all work goes to PyTorch's current stream, else to `sim.stream` (0, the default
stream). Nothing waits for the GPU, except what ends on the host: gradients of Params, `mass_matrix`.

Not looked at, since it would mean to wait: whether numbers on the GPU are finite and quaternions of length one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from .door import all_finite, finite_rows
from .errors import InputError
from .params import Params
from .places import Gpu
from .results import Contacts, Gradient, Outputs, StateGradient, Trajectory
from .rollout import Checkpoints
from .simulator import Simulator
from .staging import INT, ROBOTS, Cuda, Kernel, Reals, Target, carry, loop, select
from .staging.cuda import array, driver
from .staging.cuda.array import DeviceArray
from .staging.kernel import Kind
from .state import State

_WARP = 32
ON_THE_HOST = "sensors are read on the CPU: make a Simulator(model) and pass it the state as arrays of the host"


class CudaSimulator(Simulator):
    """What `Simulator(..., device="cuda")` makes. `launch` says how kernels are launched (`staging.Cuda`); it may be set."""

    def __init__(self, model: Any, dt: float | None = None, *, device: Any = "cuda", **options: Any):
        match = re.fullmatch(r"cuda(?::(\d+))?", str(device))
        if match is None:
            raise InputError(f"device is 'cpu', 'cuda' or 'cuda:1', not {device!r}")
        if options.get("backend", "native") != "native":
            raise InputError("backend='numpy' runs on the CPU; leave device out")
        super().__init__(model, dt, **options)
        self.launch, self.stream = Cuda(int(match[1] or 0)), 0
        self.device = f"cuda:{self.launch.device}"
        self._open()

    def _open(self) -> None:
        self._gpu = driver.device(self.launch.device)
        self._place = Gpu(self._gpu, self._float)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k not in ("_gpu", "_place")} | {"stream": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def synchronize(self) -> None:
        """Wait until the GPU has done all that was asked for on `stream`."""
        self._gpu.synchronize(self.stream)

    # -- states, forward and backward --------------------------------------------------------------------------------
    def reset(self, keyframe: str | None = None, *, batch: int | None = None) -> State:
        one = super().reset(keyframe)
        with self._working():
            if batch is None:
                return State(*(self._place.array(x) for x in one))
            super().reset(keyframe, batch=1 if isinstance(batch, int | np.integer) and batch > 0 else batch)  # checks
            return State(*(self._place.rows(tuple(x), int(batch)) for x in one))

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
        with self._working(*self._two(state), u, wrench):
            traj = super().rollout(state, u, steps=steps, params=params, wrench=wrench, checkpoints=checkpoints)
            return replace(traj, final=_given(traj.final), violation=_given(traj.violation))

    def step(self, state: State, u: Any = None, *, params: Params | None = None, wrench: Any = None) -> State:
        with self._working(*self._two(state), u, wrench):
            return _given(super().step(state, u, params=params, wrench=wrench))

    def contacts(self, traj: Trajectory) -> Contacts:
        with self._working_on(traj):
            return _given(super().contacts(traj))

    def vjp(
        self,
        traj: Trajectory,
        q_bar: Any = None,
        v_bar: Any = None,
        force_bar: Any = None,
        *,
        with_params: bool = True,
    ) -> Gradient:
        with self._working_on(traj, q_bar, v_bar, force_bar):
            return _given(super().vjp(traj, q_bar, v_bar, force_bar, with_params=with_params))

    def linearize(self, state: State, u: Any = None, *, params: Params | None = None) -> tuple[Any, Any]:
        with self._working(*self._two(state), u):
            return _given(super().linearize(state, u, params=params))

    # -- functions of a state ----------------------------------------------------------------------------------------
    def outputs(self, state: State, *, params: Params | None = None) -> Outputs:
        with self._working(*self._two(state)):
            return _given(super().outputs(state, params=params))

    def outputs_vjp(self, state: State, bars: Outputs, *, params: Params | None = None) -> StateGradient:
        with self._working(*self._two(state), *(bars if isinstance(bars, Outputs) else ())):
            return _given(super().outputs_vjp(state, bars, params=params))

    def acceleration(self, state: State, u: Any = None, *, params: Params | None = None) -> Any:
        with self._working(*self._two(state), u):
            return _given(super().acceleration(state, u, params=params))

    def acceleration_vjp(self, state: State, u: Any, bar: Any, *, params: Params | None = None) -> StateGradient:
        with self._working(*self._two(state), u, bar):
            return _given(super().acceleration_vjp(state, u, bar, params=params))

    def inverse_dynamics(self, state: State, a: Any, *, params: Params | None = None) -> Any:
        with self._working(*self._two(state), a):
            return _given(super().inverse_dynamics(state, a, params=params))

    def inverse_dynamics_vjp(self, state: State, a: Any, bar: Any, *, params: Params | None = None) -> StateGradient:
        with self._working(*self._two(state), a, bar):
            return _given(super().inverse_dynamics_vjp(state, a, bar, params=params))

    def mass_matrix(self, state: State, *, params: Params | None = None) -> Any:
        with self._working(*self._two(state)):
            return _given(super().mass_matrix(state, params=params))

    def mass_matrix_vjp(self, state: State, bar: Any, *, params: Params | None = None) -> StateGradient:
        with self._working(*self._two(state), bar):
            return _given(super().mass_matrix_vjp(state, bar, params=params))

    def sensors(self, state: State, u: Any = None, *, params: Params | None = None) -> Any:
        raise InputError(ON_THE_HOST)

    def sensors_vjp(self, state: State, bars: Any, u: Any = None, *, params: Params | None = None) -> Any:
        raise InputError(ON_THE_HOST)

    # -- what the CPU does otherwise ---------------------------------------------------------------------------------
    @contextmanager
    def _working(self, *arrays: Any) -> Iterator[None]:
        with self._gpu.current(), array.working(self._gpu, self.stream, arrays):
            yield

    @contextmanager
    def _working_on(self, traj: Trajectory, *arrays: Any) -> Iterator[None]:
        """`_working`, with what a trajectory has kept; that may have been made on another stream."""
        self._check_trajectory(traj)
        with self._working(*traj.kept[0], *arrays):
            kept: list[Any] = [x for state in traj.kept.values() for x in state]
            for x in (traj.u, traj.wrench, *kept):
                if x is not None:
                    array.wait_for(self._gpu, x)
            yield

    def _numbers(self, name: str, value: Any) -> Any:
        found = array.foreign(self._gpu, name, value, self._float)
        return self._place.array(super()._numbers(name, value)) if found is None else found

    def _check_state(self, state: Any) -> tuple[Any, Any, bool]:
        q, v = self._two(state)
        if not array.on_gpu(q):
            host = super()._numbers("q", q)
            if host.ndim in (1, 2) and host.shape[-1] == self.model.nq:
                super()._check_quaternions(np.atleast_2d(host), host.ndim == 2)
        return super()._check_state(State(q, v))

    def _check_quaternions(self, q: Any, batched: bool) -> None:
        """Those of the host were looked at before they were copied."""

    def _mark(self, u: Any, wrench: Any) -> tuple[float, ...]:
        """PyTorch counts changes of its tensors; those of other arrays go unseen."""
        return tuple(_version(x.owner) for x in (u, wrench) if x is not None)

    def _warn_if_not_finite(self, pieces: list[Any], batch: int) -> Any:
        """Which robots' cotangents are finite; a warning would have to wait for the GPU."""
        params = [x for x in pieces if isinstance(x, np.ndarray)]  # on the host already
        pieces = [x for x in pieces if isinstance(x, DeviceArray) and len(x) == batch and x.size]
        found = self._place.empty((batch, 1))
        self._finite(self._target(batch), len(pieces))(
            batch,
            1,
            finite=found,
            **{f"x{k}": x for k, x in enumerate(pieces)},
            **{f"n{k}": x.size // batch for k, x in enumerate(pieces)},
        )
        if not all(map(all_finite, params)):
            found = self._place.array(finite_rows([found.numpy() > 0.5, *params], batch).astype(self._float)[:, None])
        found = found[:, 0]
        return found.given() > 0.5 if array.is_torch(found) else found

    def _finite(self, target: Target, count: int) -> Any:
        key = (_finite_kernel, target, count)
        if key not in self._bound:
            self._bound[key] = _finite_kernel(target, count).bind()
        return self._bound[key]

    def _target(self, batch: int) -> Target:
        return Target(self.dtype, _WARP, cuda=self.launch)

    def _constants(self, params: Params, target: Target, batch: int) -> Any:
        known = self._prepared
        if known is not None and known[0] is params and known[1] == target:
            return known[2]
        with array.settled(self._gpu):
            return super()._constants(params, target, batch)


def _given(x: Any) -> Any:
    """As it goes to the user, also inside tuples."""
    if isinstance(x, DeviceArray):
        return x.given()
    if isinstance(x, tuple):
        return type(x)(*map(_given, x)) if hasattr(x, "_fields") else tuple(map(_given, x))
    return x


def _version(owner: Any) -> float:
    try:
        return float(owner._version)
    except (AttributeError, RuntimeError):  # not PyTorch's, or of its inference mode
        return 0.0


@cache
def _finite_kernel(target: Target, count: int) -> Kernel:
    """Kernel: 1 for robots all of whose numbers are finite, else 0."""

    def body(finite: Reals, **rest: Any) -> None:
        total = carry(0.0)
        for j in range(count):
            x = rest[f"x{j}"]
            for k in loop(rest[f"n{j}"]):
                number = x[k]
                total.value = total.value + (number - number)  # NaN for what is not finite
        finite[0] = select(total.value >= 0.0, 1.0, 0.0)

    signature: dict[str, Kind] = {"finite": ROBOTS}
    signature |= {f"x{k}": ROBOTS for k in range(count)} | {f"n{k}": INT for k in range(count)}
    return Kernel("finite", body, signature, target)
