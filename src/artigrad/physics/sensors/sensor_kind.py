"""Records of sensor kinds with readings and adjoints, and the integer tables that readings follow.

Most readings are  y = value(own inputs, sum of term(inputs of an entry)):  a function without loops of a few slots, and of
a sum over a list of entries (bodies, contact points, tendons). Their adjoints are derived while staging (`pullback`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from ...compiler import Reals, carry, loop, pullback, switch
from ...compiler.struct import Struct, leaves_of
from ...model.model import Model, Sensor
from .sensor_inputs import Input, SensorInputs

PLACES = 5  # integers of a sensor
LISTS = 6  # lists of entries of a sensor
WIDTH = 7  # integers of an entry
NUMBERS = 4  # reals of a sensor: its cutoff, the sizes of its zone

Entry = tuple[int, ...]
Own = Callable[[SensorInputs, Any], Sequence[Input]]
Term = tuple[Sequence[Input], Callable[..., Any]]
Terms = Callable[[SensorInputs, Any], Iterable[Term]]


class SensorFeatures(NamedTuple):
    """Settings that a kernel with sensors is compiled for.

    Attributes:
        kinds: Kinds of sensors that the model has.
        cut: Kinds that have a cutoff.
        cast: Kinds of shapes that rangefinders may see.
        zones: Kinds of zones.
        acceleration_data, actuator_outputs: True if a sensor reads outputs of `acceleration_data`, of `actuator_outputs`.
        after: True if a sensor reads velocities after the coming step.
        distances: Routines of pairs of shapes and kinds of solids, if a sensor measures distances.
    """

    kinds: frozenset[str]
    cut: frozenset[str] = frozenset()
    cast: frozenset[int] = frozenset()
    zones: frozenset[int] = frozenset()
    acceleration_data: bool = False
    actuator_outputs: bool = False
    after: bool = False
    distances: tuple[frozenset[int], frozenset[int]] | None = None


class SensorTable(SimpleNamespace):
    """Integers and parameters of all sensors, inside a kernel.

    Attributes:
        features: Settings that the kernel is compiled for.
        count: Number of sensors.
        numbers: Cutoffs and sizes of zones.
        measured: Narrow-phase tables of the pairs of distance sensors, if there are any.
    """

    features: SensorFeatures
    count: Any
    numbers: Reals
    measured: Any

    def place(self, n: Any, j: int = 0) -> Any:
        """Return integer j of sensor n."""
        return self.places[n * PLACES + j]

    def entries(self, n: Any, which: int = 0) -> Iterator[tuple[Any, ...]]:
        """Yield the entries of a list of sensor n, WIDTH integers each."""
        at = n * LISTS + which
        for e in loop(self.starts[at], self.starts[at + 1]):
            yield tuple(self.entry[e * WIDTH + j] for j in range(WIDTH))

    def number(self, n: Any, j: int) -> Any:
        return self.numbers[n * NUMBERS + j]


class Reading(NamedTuple):
    """Reading of a sensor kind, and its adjoint: read(c, n) writes the reading of sensor n, vjp(c, n) adds the cotangents."""

    read: Callable[[SensorInputs, Any], None]
    vjp: Callable[[SensorInputs, Any], None]


class SensorKind(NamedTuple):
    """Kind of sensor.

    Attributes:
        on: Part of the model that it reads: joint, site, body, tendon, actuator, model, or zone (a site or nothing).
        reading: Its reading.
        size: Number of its readings.
        cut: How a cutoff bounds it: "both" sides, "above", or "" for directions and contacts, which have none.
        acceleration_data: Reads accelerations, contacts or forces of constraints.
        timed: Reads the time.
        actuator_outputs: Reads tendons or actuators.
        place: Integers of a sensor, at most PLACES.
        lists: Lists of entries of a sensor, at most LISTS, each entry at most WIDTH integers.
    """

    on: str
    reading: Reading
    size: Callable[[Sensor], int] = lambda s: 1
    cut: str = "both"
    acceleration_data: bool = False
    timed: bool = False
    actuator_outputs: Callable[[Model], bool] = lambda m: False
    place: Callable[[Model, Sensor], Entry] = lambda m, s: (s.on,)
    lists: Callable[[Model, Sensor], Sequence[Sequence[Entry]]] = lambda m, s: ()


# -- readings from functions --------------------------------------------------------------------------------------------
def put(c: SensorInputs, n: Any, y: Any, at: Any = 0) -> None:
    """Write a value to the readings of sensor n, from index `at` on."""
    first = c.table.first[n] + at
    for k, leaf in enumerate(leaves_of(y)):
        c.out[first + k] = leaf


def taken(c: SensorInputs, n: Any, like: Any, at: Any = 0) -> Any:
    """Return the cotangent of a value with the structure of `like` from those of the readings of sensor n."""
    first = c.table.first[n] + at
    if isinstance(like, Struct):
        return c.out.struct(first, type(like))
    return c.out[first]


def function(own: Own, value: Callable[..., Any], terms: Terms | None = None, zero: Any = None) -> Reading:
    """Return the reading  y = value(*own)  or, with terms,  y = value(*own, sum of terms).

    Args:
        own: Returns the inputs of a sensor.
        value: Function of their values, and of the sum, without loops.
        terms: Yields inputs and function of each entry of a sensor.
        zero: Sum of no terms.
    """

    def inputs(c: SensorInputs, n: Any) -> tuple[list[Input], list[Any]]:
        slots = list(own(c, n))
        total = [] if terms is None else [_sum(terms(c, n), zero)]
        return slots, [*(x.load() for x in slots), *total]

    def read(c: SensorInputs, n: Any) -> None:
        put(c, n, value(*inputs(c, n)[1]))

    def vjp(c: SensorInputs, n: Any) -> None:
        slots, values = inputs(c, n)
        y, back = pullback(value, *values)
        bars = back(taken(c, n, y))
        add_all(slots, bars)
        for more, term in terms(c, n) if terms is not None else ():
            term_vjp(more, term, bars[-1])

    return Reading(read, vjp)


def _sum(terms: Iterable[Term], zero: Any) -> Any:
    total = carry(zero)
    for slots, term in terms:
        total.value = total.value + term(*(x.load() for x in slots))
    return total.value


def term_vjp(slots: Sequence[Input], term: Callable[..., Any], bar: Any) -> None:
    """Add the cotangents of the inputs of term(*inputs) for that of its value."""
    add_all(slots, pullback(term, *(x.load() for x in slots))[1](bar))


def add_all(slots: Sequence[Input], bars: Iterable[Any]) -> None:
    for slot, bar in zip(slots, bars, strict=False):
        slot.add(bar)


def by_place(j: int, cases: dict[int, Reading]) -> Reading:
    """Return the reading selected by integer j of a sensor."""

    def of(what: str) -> Callable[[SensorInputs, Any], None]:
        def run(c: SensorInputs, n: Any) -> None:
            switch(c.table.place(n, j), {k: partial(getattr(case, what), c, n) for k, case in cases.items()})

        return run

    return Reading(of("read"), of("vjp"))


# -- bodies ----------------------------------------------------------------------------------------------------------------
def subtree(model: Model, i: int) -> list[int]:
    """Return body i and its descendants; for -1, the world, all bodies."""
    inside = {i}
    for k, p in enumerate(model.parent):
        if p in inside:
            inside.add(k)
    return [k for k in range(model.nb) if k in inside]


def bodies_of(model: Model, s: Sensor) -> list[list[Entry]]:
    """Return one list: body s.on and its descendants."""
    return [[(b,) for b in subtree(model, s.on)]]
