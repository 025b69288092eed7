"""A kernel as a launch on XLA's stream of a GPU, and checks of its operands and results, which the host receives later."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite, prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import warn
from ..simulate.arrays import Axes
from ..simulate.simulator import Simulator
from .gpu_handler import CHECK, DRIVER, LAUNCH, CheckBlock, Checked, DriverCalls, LaunchBlock, Refused
from .xla_call import NativeCall, Place
from .xla_frame import PROCESS

_FLAG = np.dtype(np.int32)


_staying: list[Any] = []  # calls on a GPU are never freed: XLA does not report when a stream has run them


def call_on(sim: Simulator) -> type[NativeCall]:
    """The calls of the device of a simulator."""
    return NativeCall if sim.checks.on_host else GpuCall


class GpuCall(NativeCall):
    """A native call on a GPU. Scratch memory is one more result. XLA finds values that
    are not finite and steps that were not solved, and Python warns."""

    target = LAUNCH

    def _describe(self, bound: Callable[[int], Any], steps: str | None, fixed: Callable[[int], dict[str, Any]]) -> None:
        self._bound = found = bound(2)
        slots, item, self._told = found.slots, self.real.itemsize, len(self.places[1])
        if found.staged.chunk:
            scratch = Place("work", lambda robots: (-(-found.workspace(robots) // item),), "at.work", whole=True)
            self.places = self.places[0], [*self.places[1], scratch]
        with self.sim.engine.device.settled():
            words, arguments = found.words(fixed(2))
        table = (ctypes.c_int64 * (len(words) + 1))(*words.tolist())
        self._write_packs(table, slots.__getitem__)
        block = self._block = LaunchBlock(driver=_driver(found.device), words=len(table) - 1)
        self._describe_arrays(block, slots.__getitem__)
        block.table, block.function = ctypes.addressof(table), found.function.handle
        block.steps_slot = slots.get(steps, len(table) - 1)  # sizes that were given are compiled in
        self._refused = Refused(lambda result: self._text(found.device.sentence(result, "running a kernel for JAX")))
        block.refused = ctypes.cast(self._refused, ctypes.c_void_p).value or 0
        self._keep += [arguments, table]
        self._seen = _Flags(self)
        _staying.append(self)

    def check_quaternions(self) -> None:
        """Do nothing: quaternions are not checked on a GPU."""

    def __call__(self, lead: Axes, steps: int, *operands: jax.Array) -> list[jax.Array]:
        grid, threads = self._bound.threads(prod(lead))
        found = self._run(lead, steps, operands, {"grid": grid, "threads": threads})
        self._seen(prod(lead), (*operands, *found))
        return found[: self._told]


@dataclass
class _Flags:
    """Warns of robots with values that are not finite or beyond limits. Where the contact buffer may overflow it waits, and the
    call fails."""

    call: GpuCall
    asked: list[tuple[int, int | None]] = field(
        default_factory=list
    )  # which array, and which number of a row, if limited

    def __post_init__(self) -> None:
        every = self.call._every
        for k, place in enumerate(every):
            if place.finite:
                self.asked.append((k, None))
            if place.limits is not None:
                self.asked += [(k, i) for i in range(2) if isfinite(place.limits[i])]
        engine, device = self.call.sim.engine, self.call._bound.device
        size = max(1, len(self.asked)) * _FLAG.itemsize
        self._host = device.pinned(size)
        self._checked = Checked(self._answer)
        self._block = CheckBlock(driver=_driver(device), count=len(self.asked), host=self._host)
        self._block.waits = engine.buffer_may_overflow and any(i == 1 for _, i in self.asked)
        self._block.checked = ctypes.cast(self._checked, ctypes.c_void_p).value or 0
        self._block.refused = self.call._block.refused

    def __call__(self, robots: int, arrays: tuple[jax.Array, ...]) -> None:
        """Check the operands and results of a call."""
        if not self.asked:
            return
        seen, flags = jax.lax.optimization_barrier([arrays[k] for k, _ in self.asked]), []  # XLA would fold constants
        for (k, i), x in zip(self.asked, seen, strict=True):
            rows, limits = x.reshape(robots, -1), self.call._every[k].limits
            good = jnp.isfinite(rows).all(1) if i is None or limits is None else rows[:, i] <= limits[i]
            flags.append(jnp.where(good.all(), 0, 1 + jnp.argmin(good)).astype(_FLAG))
        check = jax.ffi.ffi_call(CHECK, (), has_side_effect=True)
        about = {"block": ctypes.addressof(self._block), "process": PROCESS}
        check(jnp.stack(flags), **{name: np.int64(x) for name, x in about.items()})

    def _answer(self) -> int:
        """Return the address of an error message if the call has to fail, else 0; called by the handler."""
        found = np.ctypeslib.as_array((ctypes.c_int32 * len(self.asked)).from_address(self._host)).tolist()
        checks, engine, names = self.call.sim.checks, self.call.sim.engine, [p.name for p in self.call._every]
        for (k, i), robot in zip(self.asked, found, strict=True):
            if robot and i is None:
                warn(f"{names[k]} of robot {robot - 1} is not finite, in a call of JAX on '{engine.device.name}'")
            elif robot and i == 0 and checks.inexact_if_unsolved:
                warn(checks.unsolved_message(f"robot {robot - 1}"))
            elif robot and i == 1:
                return self.call._text(engine.overflow_message(robot - 1, 1))
        return 0


def _driver(device: Any) -> DriverCalls:
    return DriverCalls(**{name: device.address(name) for name in DRIVER})
