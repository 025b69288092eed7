"""Arguments of the kernels that precompute constants from Params, and of their adjoints."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compiler import Layout, Reals, Table, select
from ..constraints.soft.impedance import LEAST
from ..constraints.soft.pair_parameters import SoftOptionValues
from ..features import Features
from ..spatial import Force, Transform
from ..tables import FIELD_INDEX, Constants, Topology

# scratch, one row per body, the world first: the body frame in its link, and its cotangent
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
    """Arguments of the computation of constants.

    Attributes:
        model: Integers of the model.
        structure: Further integers, for this computation only.
        fields: Parameters.
        bodies: Frames of bodies in their links.
        out: Constants.
        numbers: Options of the soft law.
        features: Features that the kernel is compiled for.
        out_bar: Cotangents of the constants, in an adjoint.
        bars: Cotangents of the parameters, in an adjoint.
    """

    model: Topology
    structure: Any
    fields: Fields
    bodies: Table
    out: Constants
    numbers: SoftOptionValues
    features: Features
    out_bar: Constants = None  # type: ignore[assignment]  # of an adjoint
    bars: Fields = None  # type: ignore[assignment]

    def has(self, *names: str) -> bool:
        """Return whether the kernel is compiled with any of these features."""
        return self.features.has(*names)


def add_invweight_bar(m: ConstantsContext, name: str, at: Any, g: Any, g_bar: Any) -> None:
    """Add to the cotangent of an inverse weight w, given that of g = 1/w."""
    w = m.fields.real(name, at)
    bar = select(w > LEAST, -(g * g) * g_bar, 0.0)
    m.bars.put_real(name, at, m.bars.real(name, at) + bar)
