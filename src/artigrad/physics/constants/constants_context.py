"""What the making of constants knows."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compiler import Layout, Reals, Table, select
from ..constraints.soft.impedance import LEAST
from ..constraints.soft.pair_numbers import SoftNumbers
from ..spatial import Force, Transform
from ..tables import FIELD_INDEX, Constants, Topology

# scratch, one row per body with the world first: the body frame in its link, and its cotangent
BODY = Layout(B=Transform, B_bar=Force)
NO_LIMIT = 1e30


class Fields:
    """Typed access to the flat parameters by name."""

    def __init__(self, slots: Any, reals: Reals):
        self.slots, self.reals = slots, reals

    def at(self, name: str, index: Any, size: int) -> Any:
        return self.slots[FIELD_INDEX[name]] + index * size

    def real(self, name: str, index: Any, size: int = 1, k: int = 0) -> Any:
        return self.reals[self.at(name, index, size) + k]

    def struct(self, name: str, index: Any, kind: Any) -> Any:
        return self.reals.struct(self.at(name, index, kind.size), kind)

    def put(self, name: str, index: Any, value: Any) -> None:
        self.reals.put(self.at(name, index, value.size), value)

    def put_real(self, name: str, index: Any, value: Any, size: int = 1, k: int = 0) -> None:
        self.reals[self.at(name, index, size) + k] = value


class ConstantsContext(NamedTuple):
    """What the making of constants knows: integers of the model, the parameters, the frames of bodies, and the constants;
    backwards also the cotangents of the constants and of the parameters. lines: whether the model has any;
    extras: other forces that not every model has."""

    model: Topology
    structure: Any
    fields: Fields
    bodies: Table
    out: Constants
    numbers: SoftNumbers
    lines: bool
    extras: frozenset[str]
    out_bar: Constants = None  # type: ignore[assignment]  # of an adjoint
    bars: Fields = None  # type: ignore[assignment]


def add_invweight_bar(m: ConstantsContext, name: str, at: Any, g: Any, g_bar: Any) -> None:
    """To the cotangent of a weight w for that of g = 1/w."""
    w = m.fields.real(name, at)
    bar = select(w > LEAST, -(g * g) * g_bar, 0.0)
    m.bars.put_real(name, at, m.bars.real(name, at) + bar)
