"""Staging: physics written once in Python, run on NumPy or compiled to native code for one robot or a pack of robots."""

from .control import carry, climb, counter, loop, switch, when_any
from .elementary import half_angle, sincos
from .kernel import (
    INT,
    INT_WORK,
    INTS,
    PACKED,
    REAL,
    ROBOTS,
    SHARED,
    WORK,
    ArgumentKind,
    Cuda,
    Kernel,
    Target,
    widest,
)
from .memory import Layout, Reals, Row, Table, copy, local
from .pairs import PAIRS, Pair, vjp_of
from .struct import Linear, Struct
from .values import StagingError, clamp, maximum, minimum, select, sqrt, target, to_real

__all__ = [
    "INT",
    "INT_WORK",
    "INTS",
    "PACKED",
    "PAIRS",
    "REAL",
    "ROBOTS",
    "SHARED",
    "WORK",
    "ArgumentKind",
    "Cuda",
    "Kernel",
    "Layout",
    "Linear",
    "Pair",
    "Reals",
    "Row",
    "StagingError",
    "Struct",
    "Table",
    "Target",
    "carry",
    "clamp",
    "climb",
    "copy",
    "counter",
    "half_angle",
    "local",
    "loop",
    "maximum",
    "minimum",
    "select",
    "sincos",
    "sqrt",
    "switch",
    "target",
    "to_real",
    "vjp_of",
    "when_any",
    "widest",
]
