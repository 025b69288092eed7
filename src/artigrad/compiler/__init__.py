"""Staging compiler: runs physics written in Python on NumPy, or compiles it to native code or PTX for a batch of robots."""

from .control import carry, climb, counter, loop, switch, when_any
from .elementary import arctan2, cotangent_excess, exp, expm1, floor, half_angle, log, sincos, tanh
from .kernel import INT, INT_WORK, INTS, PACKED, REAL, ROBOTS, SHARED, WORK, ArgumentKind, Cuda, Kernel, Target, widest
from .memory import Layout, Reals, Row, Table, copy, local, tangents
from .reverse_mode import derived_vjp, pullback
from .struct import Linear, Struct
from .tangent_kernel import TangentKernel
from .values import Dual, StagingError, change, clamp, maximum, minimum, select, sqrt, steady, target, to_int, to_real
from .vjp_rules import VJP_RULES, VjpRule, vjp_of

__all__ = [
    "INT",
    "INT_WORK",
    "INTS",
    "PACKED",
    "VJP_RULES",
    "REAL",
    "ROBOTS",
    "SHARED",
    "WORK",
    "ArgumentKind",
    "Cuda",
    "Dual",
    "Kernel",
    "Layout",
    "Linear",
    "VjpRule",
    "Reals",
    "Row",
    "StagingError",
    "Struct",
    "Table",
    "TangentKernel",
    "Target",
    "arctan2",
    "carry",
    "tangents",
    "change",
    "clamp",
    "climb",
    "copy",
    "counter",
    "exp",
    "expm1",
    "cotangent_excess",
    "derived_vjp",
    "floor",
    "half_angle",
    "local",
    "log",
    "loop",
    "maximum",
    "minimum",
    "select",
    "pullback",
    "sincos",
    "sqrt",
    "steady",
    "tanh",
    "switch",
    "target",
    "to_int",
    "to_real",
    "vjp_of",
    "when_any",
    "widest",
]
