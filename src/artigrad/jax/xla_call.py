"""A kernel as a native call from XLA's own threads, without Python: the same code, the same bits.

A `NativeCall` describes one to the handler (`xla_handler`) in a block of memory, whose address is part of the compiled program.
Calls belong to their simulator and to the programs that were compiled with them. After both are gone, the resources of the
latest calls are kept until programs that JAX dispatched before have run; memory of blocks is used again but never unmapped, and
its serial number is checked by the handler.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import count
from math import inf, prod
from threading import local
from typing import Any, TypeVar

import jax
import numpy as np

from ..simulate.arrays import Axes
from ..simulate.checks import UNIT_TOLERANCE
from ..simulate.simulator import Simulator
from .xla_frame import PROCESS
from .xla_handler import BEFORE, NO_SIMULATOR, TARGET, Ask, CallBlock

ENDING = 256  # calls whose resources are kept after them: JAX has at most 32 programs under way on a device
_ending: deque[tuple[CallBlock, list[Any]]] = deque()
_free_blocks: list[CallBlock] = []
_serials = count(1)
_no_simulator = ctypes.create_string_buffer(NO_SIMULATOR.encode())
_collected = local()
F = TypeVar("F", bound=Callable[..., Any])


def kept_by_simulator(make: F) -> F:
    """Cache on the simulator, which is the first argument."""

    @wraps(make)
    def get(sim: Simulator, *about: Any) -> Any:
        known, key = sim.engine.native_calls, (make, *about)
        found = known.get(key)
        return known.setdefault(key, make(sim, *about)) if found is None else found

    return get  # type: ignore[return-value]


@contextmanager
def collecting() -> Iterator[list[Any]]:
    """Collect the native calls of what is traced."""
    outer, found = getattr(_collected, "calls", None), list[Any]()
    _collected.calls = found
    try:
        yield found
    finally:
        _collected.calls = outer


def _new_block() -> CallBlock:
    """An empty block with a new serial number."""
    try:
        block = _free_blocks.pop()
        ctypes.memset(ctypes.addressof(block), 0, ctypes.sizeof(block))
    except IndexError:
        block = CallBlock()
    block.serial = next(_serials)
    return block


def _end(block: CallBlock, resources: list[Any]) -> None:
    """Keep the resources of a call for a while, and free the oldest."""
    _ending.append((block, resources))
    while len(_ending) > ENDING:
        old, _ = _ending.popleft()
        old.serial = 0
        _free_blocks.append(old)


@dataclass(frozen=True)
class Place:
    """An operand or result of a call: the shape of a row for a number of steps, and its use by the handler."""

    name: str
    shape: Callable[[int], Axes]
    slot: str | None = None  # the kernel's argument that it is
    other_slot: str | None = None  # another that may lie there too
    copy_to: str | None = None  # the result to whose front it is copied
    finite: bool = False
    limits: tuple[float, float] | None = None  # of the two numbers of a row, beyond which Python is called
    whole: bool = False  # not one row per robot; `shape` is a function of the number of robots
    cleared: bool = False  # the kernel adds to it
    checked: bool = False  # Python is called whenever it has changed


class NativeCall:
    """A kernel of a simulator with its operands and results. bound(batch): the kernel, for one robot or for packs.
    fixed(batch): arguments that stay. steps: its argument for the number of steps, if it has one. check(when, rows): checks
    rows by name, and raises or warns. real: of all arrays, by default the simulator's."""

    target = TARGET

    def __init__(
        self,
        sim: Simulator,
        bound: Callable[[int], Any],
        places: tuple[list[Place], list[Place]],
        steps: str | None,
        fixed: Callable[[int], dict[str, Any]],
        check: Callable[[int, dict[str, np.ndarray]], None],
        real: np.dtype | None = None,
    ):
        self.sim, self.places, self._check, self.real = sim, places, check, real or sim.real
        self._keep: list[Any] = []
        self._texts: deque[Any] = deque(maxlen=64)
        self._describe(bound, steps, fixed)

    def _describe(self, bound: Callable[[int], Any], steps: str | None, fixed: Callable[[int], dict[str, Any]]) -> None:
        """Write the block."""
        block: Any = _new_block()
        block.threads = self.sim.engine.threads
        self._block, self._serial = block, block.serial
        for k, batch in enumerate((1, 2)):
            found, arguments = bound(batch), fixed(batch)
            kernel = found.kernel
            table = (ctypes.c_int64 * (len(found.words) + 1))(*found.words)  # the last is for what no kernel reads
            for name, value in arguments.items():
                kernel.put(table, name, value)
            self._write_packs(table, kernel.slot)
            variant = block.variants[k]
            variant.entry, variant.scratch, variant.lanes = kernel.address, found.scratch, kernel.target.lanes
            variant.table = ctypes.addressof(table)
            self._keep += [found, arguments, table]
        self._describe_arrays(block, kernel.slot)
        block.words = len(table)
        block.steps_slot = len(table) - 1 if steps is None else kernel.slot(steps)
        this = weakref.ref(self)

        def answer(*about: Any) -> int:
            call = this()
            return ctypes.addressof(_no_simulator) if call is None else call._answer(*about)

        ask = Ask(answer)
        block.ask = ctypes.cast(ask, ctypes.c_void_p).value or 0
        self._keep += [ask, self._texts]
        weakref.finalize(self, _end, block, self._keep).atexit = False

    @property
    def _every(self) -> tuple[Place, ...]:
        return (*self.places[0], *self.places[1])

    def _write_packs(self, table: Any, slot: Callable[[str], int]) -> None:
        """Write the number of values per pack of arrays in packs."""
        for place in self._every:
            if place.whole and place.slot is not None and len(place.shape(1)) == 3:
                table[slot(place.slot) + 1] = place.shape(1)[1]

    def _describe_arrays(self, block: Any, slot: Callable[[str], int]) -> None:
        block.operands, block.results, block.item = len(self.places[0]), len(self.places[1]), self.real.itemsize
        names = [place.name for place in self._every]
        for k, place in enumerate(self._every):
            row = block.arrays[k]
            row.own, row.finite, row.limited = len(place.shape(1)), place.finite, place.limits is not None
            row.limits[:] = place.limits or (inf, inf)
            row.slot, row.other_slot = (-1 if s is None else slot(s) for s in (place.slot, place.other_slot))
            row.copy_to = -1 if place.copy_to is None else names.index(place.copy_to, len(self.places[0]))
            row.whole, row.cleared, row.checked = place.whole, place.cleared, place.checked

    def check_quaternions(self) -> None:
        """Have the quaternions of the first operand checked for unit length."""
        starts = [a for a, _ in self.sim.checks.quaternions]
        self._starts = (ctypes.c_int64 * len(starts))(*starts)
        self._keep.append(self._starts)
        self._block.quaternions, self._block.quaternion_starts = len(starts), ctypes.addressof(self._starts)
        self._block.lengths[:] = [(1.0 - UNIT_TOLERANCE) ** 2, (1.0 + UNIT_TOLERANCE) ** 2]

    def __call__(self, lead: Axes, steps: int, *operands: jax.Array) -> list[jax.Array]:
        """Results with these leading axes."""
        return self._run(lead, steps, operands, {"serial": self._serial})

    def _run(self, lead: Axes, steps: int, operands: tuple[jax.Array, ...], more: dict[str, int]) -> list[jax.Array]:
        """Run the call; more: other attributes of the handler."""
        like = [
            jax.ShapeDtypeStruct(p.shape(prod(lead)) if p.whole else (*lead, *p.shape(steps)), self.real)
            for p in self.places[1]
        ]
        if getattr(_collected, "calls", None) is not None:
            _collected.calls.append(self)
        about = {"block": ctypes.addressof(self._block), "process": PROCESS, "steps": steps} | more
        run = jax.ffi.ffi_call(self.target, like, vmap_method="broadcast_all")
        return list(run(*operands, **{name: np.int64(x) for name, x in about.items()}))

    def _answer(self, when: int, batch: int, steps: int, data: Any) -> int:
        """Return the address of an error message if the call has to fail, else 0; called by the handler."""
        try:
            rows = {}
            for k, place in enumerate(self._every):
                if (k < len(self.places[0])) == (when == BEFORE) and not place.whole:
                    rows[place.name] = _view(data[k], (batch, *place.shape(steps)), self.real)
            self._check(when, rows)
        except Exception as e:
            return self._text(str(e))
        return 0

    def _text(self, sentence: str) -> int:
        """The address of a sentence, which stays until XLA has copied it."""
        text = ctypes.create_string_buffer(sentence.encode())
        self._texts.append(text)
        return ctypes.addressof(text)


def _view(address: int, shape: Axes, dtype: np.dtype) -> np.ndarray:
    """An array on memory of XLA."""
    size = int(np.prod(shape)) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memory)
