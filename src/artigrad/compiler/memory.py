"""Memory of a kernel: arrays of reals per robot, and tables of rows with typed, named fields.

    ws.link[i].v            loads a Motion
    ws.link[i].v = m        stores one
    ws.link[i].F += f       adds

Addresses depend on the kind of memory, not on the physics: `Lanes` (workspace and packed arrays: a SIMD vector per entry),
`Shared` (one value for all robots) or `Robots` (the user's arrays, with a stride between robots). The emitter defines the
size of an entry and of a pointer: for CUDA (`cuda/stage.py`) an entry is a row of 32 values, one per thread of a warp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from .control import loop
from .emit import Emitter
from .struct import Struct, checked, size_of
from .values import Int, Real, StagingError, change, dual, select, steady, to_real

SHORT = 4  # consecutive values loaded at once, per robot


class Memory(Protocol):
    """Indexed array of reals. `at` computes the address of an entry; `load` and `store` add constant offsets to it."""

    def at(self, index: Any) -> Any: ...
    def load(self, place: Any, offset: int) -> Any: ...
    def store(self, place: Any, offset: int, value: Any) -> None: ...
    def gather(self, start: Any, index: Any) -> Any: ...
    def scatter(self, start: Any, index: Any, value: Any) -> None: ...
    def scatter_add(self, start: Any, index: Any, value: Any) -> None: ...


class Reals:
    """Array of reals: `a[k]`, `a[k] = x`, and `a.struct(k, Vec3)` for consecutive entries."""

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

    def row(self, k: Any) -> Any:
        """Load consecutive shared entries, one per entry of a value (`Emitter.side_by_side`)."""
        memory: Any = self.memory
        return memory.load_row(self.start + k)

    def shifted(self, by: Any) -> Reals:
        return Reals(self.memory, self.start + by)

    def gather(self, index: Any, n: Any) -> Any:
        """Load entry `index` of the first n.

        The index is a real that may differ between robots; its integer part is used. It is clamped to 0 .. n - 1; NaN
        becomes 0.
        """
        return self.memory.gather(self.start, _bounded(index, n))

    def scatter_add(self, index: Any, n: Any, value: Any) -> None:
        """Add a value to entry `index` of the first n; the index as in `gather`."""
        self.memory.scatter_add(self.start, _bounded(index, n), checked(value, float, "an array of reals"))

    def gather_row(self, index: Any, n: Any, kind: type[Struct]) -> Any:
        """Load row `index` of the first n rows of structs; the index as in `gather`."""
        at, memory = _bounded(index, n) * float(kind.size), self.memory
        if isinstance(memory, Shared) and memory.by_rows(kind.size):
            return kind.from_leaves(memory.gather_row(self.start, at, kind.size))
        return kind.from_leaves(memory.gather(self.start + j, at) for j in range(kind.size))

    def scatter_add_row(self, index: Any, n: Any, value: Struct) -> None:
        """Add a struct to row `index` of the first n; the index as in `gather`."""
        at = _bounded(index, n) * float(value.size)
        for j, leaf in enumerate(value.leaves()):
            self.memory.scatter_add(self.start + j, at, leaf)


def _bounded(index: Any, n: Any) -> Any:
    """Clamp an index to 0 .. n - 1 in every lane, so that memory accesses stay within the array."""
    last = to_real(n) - 1.0
    return select(index > 0.0, select(index < last, index, last), 0.0)


class Layout:
    """Named fields of a row, in order: `Layout(R=Mat3, p=Vec3, mass=float)`."""

    def __init__(self, **fields: type):
        self.fields: dict[str, tuple[int, type]] = {}
        self.size = 0
        for name, kind in fields.items():
            self.fields[name] = (self.size, kind)
            self.size += size_of(kind)

    def views(self, rows: Any) -> dict[str, Any]:
        """Return the fields of rows as views of an array (..., size), by name; scalar fields have no further axis."""
        return {
            name: rows[..., start] if kind is float else rows[..., start : start + size_of(kind)]
            for name, (start, kind) in self.fields.items()
        }

    def overlay(self, field: str, **fields: type) -> Layout:
        """Return a layout with further fields in the memory of a field that is not used at the same time."""
        start, kind = self.fields[field]
        end = start + size_of(kind)
        for name, own in fields.items():
            self.fields[name] = (start, own)
            start += size_of(own)
        if start > end:
            raise StagingError(f"the fields {', '.join(fields)} do not fit in the place of '{field}'")
        return self


class Table:
    """Rows of a layout in a memory."""

    __slots__ = ("layout", "memory", "start")

    def __init__(self, memory: Memory, layout: Layout, start: Any = 0):
        self.memory, self.layout, self.start = memory, layout, start

    def __getitem__(self, i: Any) -> Row:
        return Row(self.memory, self.layout, self.memory.at(self.start + i * self.layout.size))

    def pick(self, name: str, index: Any, n: Any) -> Any:
        """Load a field of row `index` of the first n; the index may differ between robots, as in `Reals.gather`."""
        offset, kind = self.layout.fields[name]
        at = _bounded(index, n) * float(self.layout.size)
        leaves = [self.memory.gather(self.start + (offset + j), at) for j in range(size_of(kind))]
        return leaves[0] if kind is float else kind.from_leaves(leaves)  # type: ignore[attr-defined]

    def place(self, name: str, index: Any, n: Any, value: Any) -> None:
        """Store a field of row `index` of the first n; the index as in `pick`."""
        offset, kind = self.layout.fields[name]
        at = _bounded(index, n) * float(self.layout.size)
        for j, leaf in enumerate([value] if kind is float else value.leaves()):
            self.memory.scatter(self.start + (offset + j), at, leaf)


class Row:
    """Row of a table. Reading a field loads a value, assigning stores it."""

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
        if isinstance(self._memory, NumpyMemory):
            self._memory.see(name, self._place + offset, size_of(kind))
        if kind is float:
            return self._memory.load(self._place, offset)
        return kind.from_leaves(self._memory.load(self._place, offset + j) for j in range(kind.size))  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        offset, kind = self._field(name)
        checked(value, kind, f"field '{name}'")
        if isinstance(self._memory, NumpyMemory):
            self._memory.claim(name, self._place + offset, size_of(kind))
        for j, leaf in enumerate([value] if kind is float else value.leaves()):
            self._memory.store(self._place, offset + j, leaf)


# -- symbolic memory ---------------------------------------------------------------------------------------------------
class Integers:
    """Table of 32-bit integers of the model. `among`: the values that occur in it, for a kernel of one model."""

    def __init__(self, emitter: Emitter, pointer: str, among: frozenset[int] | None = None):
        self.e, self.pointer, self.among = emitter, pointer, among

    def __getitem__(self, i: Any) -> Any:
        e = self.e
        if self.among is not None and len(self.among) == 1:
            return min(self.among)
        place = e.pure(f"getelementptr inbounds i32, {e.pointer} {self.pointer}, {e.int} {e.int_ref(i)}")
        word = e.pure(f"load i32, {e.pointer} {place}, !invariant.load !0")
        return Int(word if e.int == "i32" else e.pure(f"sext i32 {word} to {e.int}"), e.scope, self.among)


class IntegerScratch:
    """Integer work array of a kernel, with one value for all lanes of a SIMD vector."""

    def __init__(self, emitter: Emitter, pointer: str):
        self.e, self.pointer = emitter, pointer

    def _place(self, i: Any) -> str:
        e = self.e
        return e.pure(f"getelementptr inbounds {e.int_row}, {e.pointer} {self.pointer}, {e.int} {e.int_ref(i)}")

    def __getitem__(self, i: Any) -> Int:
        e = self.e
        return Int(e.result(f"load {e.int}, {e.pointer} {self._place(i)}"), e.scope)

    def __setitem__(self, i: Any, value: Any) -> None:
        e = self.e
        e.line(f"store {e.int} {e.int_ref(value)}, {e.pointer} {self._place(i)}")


class Lanes:
    """Memory with one SIMD vector per entry: workspace and all arrays in internal layout."""

    def __init__(self, emitter: Emitter, pointer: str):
        self.e, self.pointer = emitter, pointer

    def at(self, index: Any) -> str:
        e = self.e
        return e.pure(f"getelementptr inbounds {e.row}, {e.pointer} {self.pointer}, {e.int} {e.int_ref(index)}")

    def _place(self, place: str, offset: int) -> str:
        e = self.e
        return e.pure(f"getelementptr inbounds {e.row}, {e.pointer} {place}, {e.int} {offset}") if offset else place

    def load(self, place: str, offset: int) -> Real:
        e = self.e
        text = f"load {e.type}, {e.pointer} {self._place(place, offset)}, align {e.row_align}"
        return Real(e.result(text), e.scope)

    def store(self, place: str, offset: int, value: Any) -> None:
        e = self.e
        e.line(f"store {e.type} {e.ref(value)}, {e.pointer} {self._place(place, offset)}, align {e.row_align}")

    def _spots(self, start: Any, index: Any) -> list[str]:
        """Return the address of the entry of each lane at its index."""
        e, rows = self.e, [self.at(start + k) for k in self.e.integers(index)]
        if e.lanes == 1:
            return rows
        return [e.pure(f"getelementptr inbounds {e.element}, {e.pointer} {r}, {e.int} {k}") for k, r in enumerate(rows)]

    def gather(self, start: Any, index: Any) -> Real:
        e = self.e
        return e.pack([e.result(f"load {e.element}, {e.pointer} {spot}") for spot in self._spots(start, index)])

    def scatter(self, start: Any, index: Any, value: Any) -> None:
        e = self.e
        for spot, word in zip(self._spots(start, index), e.unpack(value), strict=True):
            e.line(f"store {e.element} {word}, {e.pointer} {spot}")

    def scatter_add(self, start: Any, index: Any, value: Any) -> None:
        e, spots = self.e, self._spots(start, index)
        old = e.pack([e.result(f"load {e.element}, {e.pointer} {spot}") for spot in spots])
        for spot, word in zip(spots, e.unpack(e.add(old, value)), strict=True):
            e.line(f"store {e.element} {word}, {e.pointer} {spot}")


class Shared:
    """Read-only memory with one value for all robots."""

    def __init__(self, emitter: Emitter, pointer: str):
        self.e, self.pointer = emitter, pointer

    def at(self, index: Any) -> str:
        e = self.e
        return e.pure(f"getelementptr inbounds {e.element}, {e.pointer} {self.pointer}, {e.int} {e.int_ref(index)}")

    def load(self, place: str, offset: int) -> Real:
        e = self.e
        spot = e.pure(f"getelementptr inbounds {e.element}, {e.pointer} {place}, {e.int} {offset}") if offset else place
        return e.splat(e.pure(f"load {e.element}, {e.pointer} {spot}, !invariant.load !0"))

    def load_row(self, index: Any) -> Real:
        e = self.e
        return Real(e.pure(f"load {e.type}, {e.pointer} {self.at(index)}, align {e.element_bytes}"), e.scope)

    def store(self, place: str, offset: int, value: Any) -> None:
        raise StagingError("shared values are the same for every robot and read-only")

    def gather(self, start: Any, index: Any) -> Real:
        e = self.e
        return e.pack(
            [e.pure(f"load {e.element}, {e.pointer} {spot}, !invariant.load !0") for spot in self._spots(start, index)]
        )

    def _spots(self, start: Any, index: Any) -> list[str]:
        """Return the address of the shared entry at the index of each lane."""
        e, first = self.e, self.at(start)
        return [
            e.pure(f"getelementptr inbounds {e.element}, {e.pointer} {first}, {e.int} {e.int_ref(k)}")
            for k in e.integers(index)
        ]

    def by_rows(self, size: int) -> bool:
        """Return True if consecutive entries are gathered faster together."""
        return self.e.lanes >= SHORT and 1 < size <= SHORT

    def gather_row(self, start: Any, index: Any, size: int) -> list[Real]:
        """Load consecutive values from the index of each lane on.

        A vector is loaded per lane, then the vectors are transposed. Values after the last entry are not accessed.
        """
        e = self.e
        short, mask = f"<{SHORT} x {e.element}>", ", ".join(f"i1 {int(k < size)}" for k in range(SHORT))
        load = f"@llvm.masked.load.v{SHORT}f{8 * e.element_bytes}.p0"
        e.declared.add(f"declare {short} {load}(ptr, i32, <{SHORT} x i1>, {short})")
        rest = f"i32 {e.element_bytes}, <{SHORT} x i1> <{mask}>, {short} zeroinitializer"
        parts = [e.pure(f"call {short} {load}(ptr {spot}, {rest})") for spot in self._spots(start, index)]
        width = SHORT
        while width < e.lanes:  # a register of rows side by side, so that there are SHORT of them
            parts, width = _side_by_side(e, parts, width, range(2 * width)), 2 * width
        out = []
        for j in range(size):
            halves = _side_by_side(e, parts, width, range(j, 2 * width, SHORT))
            (pack,) = _side_by_side(e, halves, width // 2, range(width))
            out.append(Real(pack, e.scope))
        return out

    def scatter(self, start: Any, index: Any, value: Any) -> None:
        self.store("", 0, value)

    scatter_add = scatter


def _side_by_side(e: Emitter, parts: list[str], width: int, picks: range) -> list[str]:
    """Merge each two vectors of `width` entries into one with the entries `picks` of both."""
    kind, order = f"<{width} x {e.element}>", ", ".join(f"i32 {k}" for k in picks)
    return [
        e.pure(f"shufflevector {kind} {a}, {kind} {b}, <{len(picks)} x i32> <{order}>")
        for a, b in zip(parts[::2], parts[1::2], strict=True)
    ]


class Robots:
    """User's array: the entries of robot `b` begin at `b * stride`. Lanes are loaded one by one."""

    def __init__(self, emitter: Emitter, pointers: list[str]):
        self.e, self.pointers = emitter, pointers

    def at(self, index: Any) -> Any:
        return index

    def _spot(self, lane: int, index: Any) -> str:
        e = self.e
        pointer = f"{e.pointer} {self.pointers[lane]}"
        return e.pure(f"getelementptr inbounds {e.element}, {pointer}, {e.int} {e.int_ref(index)}")

    def load(self, place: Any, offset: int) -> Real:
        e = self.e
        index = place + offset
        return e.pack([e.result(f"load {e.element}, {e.pointer} {self._spot(lane, index)}") for lane in range(e.lanes)])

    def gather(self, start: Any, index: Any) -> Real:
        e = self.e
        spots = [self._spot(lane, start + k) for lane, k in enumerate(e.integers(index))]
        return e.pack([e.result(f"load {e.element}, {e.pointer} {spot}") for spot in spots])

    def scatter(self, start: Any, index: Any, value: Any) -> None:
        raise StagingError("robots of a pack may repeat one of the user's: write to scratch or to a pack array")

    scatter_add = scatter

    def load_row(self, lane: int, index: Any, inside: str) -> str:
        """Load `lanes` consecutive entries of one robot; zero where the mask is false."""
        e = self.e
        mask = f"<{e.lanes} x i1> {inside}"
        e.declared.add(f"declare {e.type} @llvm.masked.load.{e.suffix}.p0(ptr, i32, <{e.lanes} x i1>, {e.type})")
        where = f"ptr {self._spot(lane, index)}, i32 {e.element_bytes}"
        return e.result(f"call {e.type} @llvm.masked.load.{e.suffix}.p0({where}, {mask}, {e.type} zeroinitializer)")

    def store_row(self, lane: int, index: Any, inside: str, row: str) -> None:
        e = self.e
        e.declared.add(f"declare void @llvm.masked.store.{e.suffix}.p0({e.type}, ptr, i32, <{e.lanes} x i1>)")
        where = f"ptr {self._spot(lane, index)}, i32 {e.element_bytes}, <{e.lanes} x i1> {inside}"
        e.line(f"call void @llvm.masked.store.{e.suffix}.p0({e.type} {row}, {where})")

    def store(self, place: Any, offset: int, value: Any) -> None:
        e = self.e
        for lane, word in enumerate(e.unpack(value)):
            e.line(f"store {e.element} {word}, {e.pointer} {self._spot(lane, place + offset)}")


# -- NumPy memory ------------------------------------------------------------------------------------------------------
class NumpyMemory:
    """Values in an array whose axis `axis` counts entries; the other axis, if any, is the lanes.

    Fields of a table may share memory (`Layout.overlay`): the field that wrote an entry last is recorded, and reading
    another one raises.
    """

    def __init__(self, array: np.ndarray, axis: int):
        self.array, self.axis = array, axis
        self.writers: dict[int, str] = {}

    def claim(self, field: str, place: int, size: int) -> None:
        """Record that a field of a table wrote entries."""
        self.writers.update(dict.fromkeys(range(place, place + size), field))

    def see(self, field: str, place: int, size: int) -> None:
        """Check that a field of a table reads entries that it wrote."""
        for k in range(place, place + size):
            writer = self.writers.get(k, field)
            if writer != field:
                raise StagingError(
                    f"'{field}' is read, but '{writer}' was written over it: they share their place, so that only one of "
                    "them is there at a time"
                )

    def at(self, index: Any) -> int:
        return int(index)

    def load(self, place: int, offset: int) -> Any:
        value = self.array[place + offset] if self.axis == 0 else self.array[:, place + offset]
        return value.copy() if isinstance(value, np.ndarray) else value

    def store(self, place: int, offset: int, value: Any) -> None:
        if self.axis == 0:
            self.array[place + offset] = steady(value)
        else:
            self.array[:, place + offset] = steady(value)

    def _spots(self, start: Any, index: Any) -> Any:
        """Return the index of each robot's entry in the array."""
        entry = int(start) + np.floor(steady(index)).astype(int)
        if self.array.ndim == 1:
            return entry
        robots = np.arange(self.array.shape[1 - self.axis])
        return (entry, robots) if self.axis == 0 else (robots, entry)

    def gather(self, start: Any, index: Any) -> Any:
        return self.array[self._spots(start, index)]

    def scatter(self, start: Any, index: Any, value: Any) -> None:
        self.array[self._spots(start, index)] = steady(value)

    def scatter_add(self, start: Any, index: Any, value: Any) -> None:
        self.array[self._spots(start, index)] += steady(value)


class Paired:
    """Values and their tangents, in two memories with the same layout."""

    def __init__(self, primals: Memory, tangents: Memory):
        self.primals, self.tangents = primals, tangents

    def at(self, index: Any) -> tuple[Any, Any]:
        return self.primals.at(index), self.tangents.at(index)

    def load(self, place: tuple[Any, Any], offset: int) -> Any:
        return dual(self.primals.load(place[0], offset), self.tangents.load(place[1], offset))

    def store(self, place: tuple[Any, Any], offset: int, value: Any) -> None:
        self.primals.store(place[0], offset, steady(value))
        self.tangents.store(place[1], offset, change(value))

    def gather(self, start: Any, index: Any) -> Any:
        at = steady(index)
        return dual(self.primals.gather(start, at), self.tangents.gather(start, at))

    def scatter(self, start: Any, index: Any, value: Any) -> None:
        self.primals.scatter(start, steady(index), steady(value))
        self.tangents.scatter(start, steady(index), change(value))

    def scatter_add(self, start: Any, index: Any, value: Any) -> None:
        self.primals.scatter_add(start, steady(index), steady(value))
        self.tangents.scatter_add(start, steady(index), change(value))


def primals(array: Reals) -> Reals:
    """Return an array without its tangents."""
    return Reals(array.memory.primals, array.start) if isinstance(array.memory, Paired) else array


def tangents(array: Reals) -> Reals:
    """Return the tangents of an array that has them."""
    memory: Any = array.memory
    return Reals(memory.tangents, array.start)


def local(source: Reals, scratch: Reals, n: Any) -> Reals:
    """Return `source` in a form for many reads: copied to scratch if its lanes are strided, else itself."""
    far = primals(source).memory
    if isinstance(far, Robots) and not far.e.apart:
        return source
    copy(source, scratch, n)
    return scratch


def copy(source: Reals, destination: Reals, n: Any) -> None:
    """Copy destination[k] = source[k] for k < n.

    Between the user's layout and packs this transposes blocks of values; a packed destination needs room for a multiple of
    `lanes` entries.
    """
    if isinstance(source.memory, Paired) and isinstance(destination.memory, Paired):
        copy(primals(source), primals(destination), n)
        copy(tangents(source), tangents(destination), n)
        return
    far, near = source.memory, destination.memory
    if isinstance(far, Robots) and isinstance(near, Lanes) and far.e.lanes > 1:
        for first, inside in _blocks(far.e, n):
            rows = [far.load_row(lane, source.start + first, inside) for lane in range(far.e.lanes)]
            for k, pack in enumerate(_transposed(far.e, rows)):
                near.store(near.at(destination.start + first + k), 0, Real(pack, far.e.scope))
    elif isinstance(near, Robots) and isinstance(far, Lanes) and near.e.lanes > 1:
        for first, inside in _blocks(near.e, n):
            packs = [far.load(far.at(source.start + first + k), 0).ref for k in range(near.e.lanes)]
            for lane, row in enumerate(_transposed(near.e, packs)):
                near.store_row(lane, destination.start + first, inside, row)
    else:
        for k in loop(n):
            destination[k] = source[k]


def _blocks(e: Emitter, n: Any) -> Iterator[tuple[Int, str]]:
    """Yield the first index of each block of `lanes` entries below n, and a mask of the entries below n."""
    count = e.result(f"sdiv i64 {e.int_ref(n + (e.lanes - 1))}, {e.lanes}")
    for block in e.loop(0, Int(count, e.scope), False):
        first = block * e.lanes
        wide = f"<{e.lanes} x i64>"
        ramp = ", ".join(f"i64 {k}" for k in range(e.lanes))
        left = e.splat_int(n - first)
        yield first, e.pure(f"icmp slt {wide} <{ramp}>, {left}")


def _transposed(e: Emitter, rows: list[str]) -> list[str]:
    """Transpose a square of `lanes` x `lanes` values by log2(lanes) rounds of shuffles."""
    lanes, step = e.lanes, 1
    while step < lanes:
        new = list(rows)
        for r in range(lanes):
            if r & step:
                continue
            for into, shift in ((r, 0), (r + step, step)):
                picks = [k + shift if not k & step else lanes + k - step + shift for k in range(lanes)]
                order = ", ".join(f"i32 {p}" for p in picks)
                new[into] = e.result(
                    f"shufflevector {e.type} {rows[r]}, {e.type} {rows[r + step]}, <{lanes} x i32> <{order}>"
                )
        rows, step = new, step * 2
    return rows
