"""Memory of a kernel: arrays of reals per robot, and tables of rows with typed, named fields.

    ws.link[i].v            loads a Motion
    ws.link[i].v = m        stores one
    ws.link[i].F += f       adds

Where a number lies is decided by the kind of memory, never by the physics: `Lanes` (workspace and pack arrays: one pack
per entry), `Shared` (one number for all robots) or `Robots` (the user's own arrays, a robot every `stride` entries).
A CUDA target adds a fourth kind; rows and tables stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from .emit import Emitter
from .struct import Struct, checked, size_of
from .values import Int, Real, StagingError


class Memory(Protocol):
    """Numbered reals. `at` names a place once; `load` and `store` add small fixed offsets to it."""

    def at(self, index: Any) -> Any: ...
    def load(self, place: Any, offset: int) -> Any: ...
    def store(self, place: Any, offset: int, value: Any) -> None: ...


class Reals:
    """A plain array of reals: `a[k]`, `a[k] = x`, and `a.struct(k, Vec3)` for a few in a row."""

    __slots__ = ("memory", "start")

    def __init__(self, memory: Memory, start: Any = 0):
        self.memory, self.start = memory, start

    def __getitem__(self, k: Any) -> Any:
        return self.memory.load(self.memory.at(self.start + k), 0)

    def __setitem__(self, k: Any, value: Any) -> None:
        self.memory.store(self.memory.at(self.start + k), 0, checked(value, float, "an array of reals"))

    def struct(self, k: Any, kind: type[Struct]) -> Any:
        place = self.memory.at(self.start + k)
        return kind.from_leaves(self.memory.load(place, j) for j in range(kind.size))

    def put(self, k: Any, value: Struct) -> None:
        place = self.memory.at(self.start + k)
        for j, leaf in enumerate(value.leaves()):
            self.memory.store(place, j, leaf)

    def shifted(self, by: Any) -> Reals:
        return Reals(self.memory, self.start + by)


class Layout:
    """The fields of one row, in order: `Layout(R=Mat3, p=Vec3, mass=float)`."""

    def __init__(self, **fields: type):
        self.fields: dict[str, tuple[int, type]] = {}
        self.size = 0
        for name, kind in fields.items():
            self.fields[name] = (self.size, kind)
            self.size += size_of(kind)

    def overlay(self, field: str, **fields: type) -> Layout:
        """More fields in the place of one that is no longer needed when they are."""
        start, kind = self.fields[field]
        end = start + size_of(kind)
        for name, own in fields.items():
            self.fields[name] = (start, own)
            start += size_of(own)
        if start > end:
            raise StagingError(f"the fields {', '.join(fields)} do not fit in the place of '{field}'")
        return self


class Table:
    """Rows of one layout in one memory."""

    __slots__ = ("layout", "memory", "start")

    def __init__(self, memory: Memory, layout: Layout, start: Any = 0):
        self.memory, self.layout, self.start = memory, layout, start

    def __getitem__(self, i: Any) -> Row:
        return Row(self.memory, self.layout, self.memory.at(self.start + i * self.layout.size))


class Row:
    """One row of a table. Reading a field loads a value, assigning stores it."""

    __slots__ = ("_layout", "_memory", "_place")

    def __init__(self, memory: Memory, layout: Layout, place: Any):
        for name, value in (("_memory", memory), ("_layout", layout), ("_place", place)):
            object.__setattr__(self, name, value)

    def _field(self, name: str) -> tuple[int, type]:
        try:
            return self._layout.fields[name]
        except KeyError:
            raise StagingError(f"rows of this table have {', '.join(self._layout.fields)}; not '{name}'") from None

    def __getattr__(self, name: str) -> Any:
        offset, kind = self._field(name)
        if kind is float:
            return self._memory.load(self._place, offset)
        return kind.from_leaves(self._memory.load(self._place, offset + j) for j in range(kind.size))  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        offset, kind = self._field(name)
        checked(value, kind, f"field '{name}'")
        for j, leaf in enumerate([value] if kind is float else value.leaves()):
            self._memory.store(self._place, offset + j, leaf)


# -- symbolic memory ---------------------------------------------------------------------------------------------------
class Integers:
    """A table of 32-bit integers of the model."""

    def __init__(self, emitter: Emitter, pointer: str):
        self.e, self.pointer = emitter, pointer

    def __getitem__(self, i: Any) -> Int:
        e = self.e
        place = e.pure(f"getelementptr inbounds i32, ptr {self.pointer}, i64 {e.int_ref(i)}")
        word = e.pure(f"load i32, ptr {place}, !invariant.load !0")
        return Int(e.pure(f"sext i32 {word} to i64"), e.scope)


class Lanes:
    """One pack per entry (one number, for one robot): workspace and everything the library lays out itself."""

    def __init__(self, emitter: Emitter, pointer: str, constant: bool = False):
        self.e, self.pointer = emitter, pointer
        self.note = ", !invariant.load !0" if constant else ""
        self.align = emitter.element_bytes * emitter.lanes

    def at(self, index: Any) -> str:
        e = self.e
        return e.pure(f"getelementptr inbounds {e.type}, ptr {self.pointer}, i64 {e.int_ref(index)}")

    def _place(self, place: str, offset: int) -> str:
        e = self.e
        return e.pure(f"getelementptr inbounds {e.type}, ptr {place}, i64 {offset}") if offset else place

    def load(self, place: str, offset: int) -> Real:
        e = self.e
        text = f"load {e.type}, ptr {self._place(place, offset)}, align {self.align}{self.note}"
        return Real(e.pure(text) if self.note else e.result(text), e.scope)

    def store(self, place: str, offset: int, value: Any) -> None:
        e = self.e
        e.line(f"store {e.type} {e.ref(value)}, ptr {self._place(place, offset)}, align {self.align}")


class Shared:
    """One number for all robots, read only."""

    def __init__(self, emitter: Emitter, pointer: str):
        self.e, self.pointer = emitter, pointer

    def at(self, index: Any) -> str:
        e = self.e
        return e.pure(f"getelementptr inbounds {e.element}, ptr {self.pointer}, i64 {e.int_ref(index)}")

    def load(self, place: str, offset: int) -> Real:
        e = self.e
        spot = e.pure(f"getelementptr inbounds {e.element}, ptr {place}, i64 {offset}") if offset else place
        return e.splat(e.pure(f"load {e.element}, ptr {spot}, !invariant.load !0"))

    def store(self, place: str, offset: int, value: Any) -> None:
        raise StagingError("shared numbers are the same for every robot and cannot be written by one")


class Robots:
    """The user's own array: robot `b` of lane `l` has its entries at `b * stride`. Lanes are read one by one."""

    def __init__(self, emitter: Emitter, pointers: list[str]):
        self.e, self.pointers = emitter, pointers

    def at(self, index: Any) -> Any:
        return index

    def _spot(self, lane: int, index: Any) -> str:
        e = self.e
        return e.pure(f"getelementptr inbounds {e.element}, ptr {self.pointers[lane]}, i64 {e.int_ref(index)}")

    def load(self, place: Any, offset: int) -> Real:
        e = self.e
        index = place + offset
        words = [e.result(f"load {e.element}, ptr {self._spot(lane, index)}") for lane in range(e.lanes)]
        if e.lanes == 1:
            return Real(words[0], e.scope)
        pack = "poison"
        for lane, word in enumerate(words):
            pack = e.result(f"insertelement {e.type} {pack}, {e.element} {word}, i32 {lane}")
        return Real(pack, e.scope)

    def store(self, place: Any, offset: int, value: Any) -> None:
        e = self.e
        ref, index = e.ref(value), place + offset
        for lane in range(e.lanes):
            word = ref if e.lanes == 1 else e.result(f"extractelement {e.type} {ref}, i32 {lane}")
            e.line(f"store {e.element} {word}, ptr {self._spot(lane, index)}")


# -- NumPy memory ------------------------------------------------------------------------------------------------------
class NumpyMemory:
    """Numbers in an array whose axis `axis` counts entries; the other axis, if any, is the lanes."""

    def __init__(self, array: np.ndarray, axis: int):
        self.array, self.axis = array, axis

    def at(self, index: Any) -> int:
        return int(index)

    def load(self, place: int, offset: int) -> Any:
        value = self.array[place + offset] if self.axis == 0 else self.array[:, place + offset]
        return value.copy() if isinstance(value, np.ndarray) else value

    def store(self, place: int, offset: int, value: Any) -> None:
        if self.axis == 0:
            self.array[place + offset] = value
        else:
            self.array[:, place + offset] = value


def local(source: Reals, scratch: Reals, indices: Iterator[Any]) -> Reals:
    """`source` to be read many times: copied to scratch if its lanes lie apart, else itself."""
    if isinstance(source.memory, Robots) and source.memory.e.lanes == 1:
        return source
    copy(source, scratch, indices)
    return scratch


def copy(source: Reals, destination: Reals, indices: Iterator[Any]) -> None:
    """destination[k] = source[k] for every k of a loop."""
    for k in indices:
        destination[k] = source[k]
