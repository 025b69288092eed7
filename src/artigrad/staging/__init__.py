"""Staging: physics written once in Python, run on NumPy or compiled to native code for one robot or a pack of robots."""

from .control import carry, climb, loop, switch
from .elementary import half_angle, sincos
from .kernel import INT, INTS, PACKED, REAL, ROBOTS, SHARED, WORK, Kernel, Target, widest
from .memory import Layout, Reals, Table, copy, local
from .pairs import PAIRS, Pair, vjp_of
from .struct import Linear, Struct
from .values import StagingError, clamp, maximum, minimum, select, sqrt, target

__all__ = [
    "INT",
    "INTS",
    "PACKED",
    "PAIRS",
    "REAL",
    "ROBOTS",
    "SHARED",
    "WORK",
    "Kernel",
    "Layout",
    "Linear",
    "Pair",
    "Reals",
    "StagingError",
    "Struct",
    "Table",
    "Target",
    "carry",
    "clamp",
    "climb",
    "copy",
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
    "vjp_of",
    "widest",
]
