"""Values in staged physics code: reals, integers and masks, with operators.

A value is either symbolic (`Real`, `Int`, `Mask`: an operator emits an instruction) or, on the NumPy target, a NumPy array
over lanes. The functions at the end of the file (`select`, `sqrt`, ...) accept both. Python numbers mix with either and are
folded while staging, so that `0.0 * x` costs nothing. A `Dual` is a value with its tangent along a direction of the inputs:
code staged on duals computes tangents (`tangent_kernel`). A `Traced` is a value or a `Dual` with the operation that
computed it: code staged on those has an adjoint (`reverse_mode`).

Elsewhere: loops and branches (`control`), memory (`memory`), instructions (`emit`).
"""

from __future__ import annotations

import itertools
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .emit import Scope


# adding this number leaves the nearest integer in the low bits of the sum
ROUNDER = {"f64": 1.5 * 2.0**52, "f32": 1.5 * 2.0**23}


class StagingError(TypeError):
    """Error in staged code that cannot be compiled into a kernel. The message gives the replacement."""


class _Current(threading.local):
    target: Any = None


_current = _Current()


def target() -> Any:
    """Return the target of the code being staged on this thread: an `Emitter` or the NumPy target."""
    if _current.target is None:
        raise StagingError("staged code runs inside a kernel; call it through artigrad.compiler.Kernel")
    return _current.target


@contextmanager
def staging_on(new: Any) -> Iterator[None]:
    """Context in which code is staged for the target `new`."""
    previous, _current.target = _current.target, new
    try:
        yield
    finally:
        _current.target = previous


class Symbol:
    """Named result in the emitted code. It may be used while the scope in which it was created is open."""

    __slots__ = ("ref", "scope")

    def __init__(self, ref: str, scope: Scope):
        self.ref, self.scope = ref, scope

    def __bool__(self) -> bool:
        raise StagingError(
            "a symbolic value has no truth while staging: write select(mask, a, b) to choose between two values, "
            "switch(index, cases) for a branch on an integer of the model, minimum/maximum/clamp for bounds"
        )

    def __float__(self) -> float:
        raise StagingError(
            "a symbolic value has no numeric value while staging: keep it symbolic, or pass a Python float in"
        )

    def __index__(self) -> int:
        raise StagingError("range() and list indices need a Python int: write loop(n) for a length known at run time")

    def __iter__(self) -> Iterator[Any]:
        raise StagingError("a symbolic value is one number and cannot be unpacked or iterated")

    __hash__ = object.__hash__


class Real(Symbol):
    """Floating-point value per robot. A product records its factors, so that adding to it emits one fused multiply-add."""

    __slots__ = ("factors",)

    def __init__(self, ref: str, scope: Scope, factors: tuple[Any, Any] | None = None):
        super().__init__(ref, scope)
        self.factors = factors

    def __add__(self, other: Any) -> Any:
        return target().add(self, real(other))

    def __radd__(self, other: Any) -> Any:
        return target().add(real(other), self)

    def __sub__(self, other: Any) -> Any:
        return target().sub(self, real(other))

    def __rsub__(self, other: Any) -> Any:
        return target().sub(real(other), self)

    def __mul__(self, other: Any) -> Any:
        return target().mul(self, other) if is_real(other) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return target().div(self, real(other))

    def __rtruediv__(self, other: Any) -> Any:
        return target().div(real(other), self)

    def __neg__(self) -> Any:
        return target().neg(self)

    def __abs__(self) -> Any:
        return target().unary("fabs", self)

    def __lt__(self, other: Any) -> Mask:
        return target().compare("olt", self, real(other))

    def __le__(self, other: Any) -> Mask:
        return target().compare("ole", self, real(other))

    def __gt__(self, other: Any) -> Mask:
        return target().compare("ogt", self, real(other))

    def __ge__(self, other: Any) -> Mask:
        return target().compare("oge", self, real(other))

    def __pow__(self, other: Any) -> Any:
        raise StagingError("** is not staged: multiply, or use sqrt")


class Int(Symbol):
    """Integer of the model, the same for every robot of the kernel: indices, counts, kinds.

    Attributes:
        among: Possible values, if known while staging; a switch then has only these cases.
    """

    __slots__ = ("among",)

    def __init__(self, ref: str, scope: Scope, among: frozenset[int] | None = None):
        super().__init__(ref, scope)
        self.among = among

    def __add__(self, other: Any) -> Int:
        return target().int_op("add", self, integer(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Int:
        return target().int_op("sub", self, integer(other))

    def __rsub__(self, other: Any) -> Int:
        return target().int_op("sub", integer(other), self)

    def __mul__(self, other: Any) -> Int:
        if not isinstance(other, int | Int):
            return NotImplemented
        return target().int_op("mul", self, other)

    __rmul__ = __mul__

    def __neg__(self) -> Int:
        return target().int_op("sub", 0, self)


class Mask(Symbol):
    """Boolean per robot, the result of comparing reals; an argument of `select`."""

    __slots__ = ()

    def __and__(self, other: Mask) -> Mask:
        return target().mask_op("and", self, other)

    def __or__(self, other: Mask) -> Mask:
        return target().mask_op("or", self, other)

    __rand__, __ror__ = __and__, __or__  # with a comparison of Python numbers


class Dual(Real):
    """Value x and its tangent d. Each part may be symbolic, an array or a Python number."""

    __slots__ = ("d", "x")
    __array_ufunc__ = None  # so that NumPy leaves operators to this class

    def __init__(self, x: Any, d: Any):
        self.x, self.d = x, d

    @property
    def ref(self) -> str:  # type: ignore[override]
        return self.x.ref

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.x.scope

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Traced):
            return NotImplemented
        return dual(self.x + steady(other), _sum(self.d, change(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Traced):
            return NotImplemented
        return dual(self.x - steady(other), _sum(self.d, -change(other)))

    def __rsub__(self, other: Any) -> Any:
        return dual(steady(other) - self.x, _sum(change(other), -self.d))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Traced) or not is_real(other):
            return NotImplemented
        y = steady(other)
        return dual(self.x * y, _sum(_product(self.d, y), _product(self.x, change(other))))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, Traced) else _quotient(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _quotient(other, self)

    def __neg__(self) -> Any:
        return dual(-self.x, -self.d)

    def __abs__(self) -> Any:
        return dual(abs(self.x), select(self.x < 0.0, -self.d, self.d))

    def __lt__(self, other: Any) -> Any:
        return self.x < steady(other)

    def __le__(self, other: Any) -> Any:
        return self.x <= steady(other)

    def __gt__(self, other: Any) -> Any:
        return self.x > steady(other)

    def __ge__(self, other: Any) -> Any:
        return self.x >= steady(other)


class Traced(Real):
    """Value x and its operands, each with the rule that computes its cotangent from that of this value.

    Operands have a smaller `order` than their result, so that decreasing `order` visits every value before its operands.
    """

    __slots__ = ("operands", "order", "x")
    __array_ufunc__ = None  # so that NumPy leaves operators to this class
    _orders = itertools.count()

    def __init__(self, x: Any, *operands: tuple[Any, Callable[[Any], Any]]):
        self.x, self.order = x, next(Traced._orders)
        self.operands = tuple((v, rule) for v, rule in operands if isinstance(v, Traced))

    @property
    def ref(self) -> str:  # type: ignore[override]
        return self.x.ref

    @property
    def scope(self) -> Scope:  # type: ignore[override]
        return self.x.scope

    def __add__(self, other: Any) -> Any:
        return Traced(self.x + untraced(other), (self, lambda g: g), (other, lambda g: g))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return Traced(self.x - untraced(other), (self, lambda g: g), (other, lambda g: -g))

    def __rsub__(self, other: Any) -> Any:
        return Traced(untraced(other) - self.x, (self, lambda g: -g), (other, lambda g: g))

    def __mul__(self, other: Any) -> Any:
        if not is_real(other):
            return NotImplemented
        x, y = self.x, untraced(other)
        return Traced(x * y, (self, lambda g: g * y), (other, lambda g: g * x))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _traced_quotient(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _traced_quotient(other, self)

    def __neg__(self) -> Any:
        return Traced(-self.x, (self, lambda g: -g))

    def __abs__(self) -> Any:
        x = self.x
        return Traced(abs(x), (self, lambda g: select(x < 0.0, -g, g)))

    def __lt__(self, other: Any) -> Any:
        return self.x < untraced(other)

    def __le__(self, other: Any) -> Any:
        return self.x <= untraced(other)

    def __gt__(self, other: Any) -> Any:
        return self.x > untraced(other)

    def __ge__(self, other: Any) -> Any:
        return self.x >= untraced(other)


def untraced(x: Any) -> Any:
    """Return x without the operations that computed it."""
    return x.x if isinstance(x, Traced) else x


def _traced_quotient(a: Any, b: Any) -> Traced:
    x, y = untraced(a), untraced(b)
    z = x / y
    return Traced(z, (a, lambda g: g / y), (b, lambda g: -(z * (g / y))))


def varies(x: Any) -> bool:
    """Return True while a derivative with respect to x is staged."""
    return isinstance(x, Dual | Traced)


def dual(x: Any, d: Any) -> Any:
    """Return x with tangent d, or x alone if d is the number 0."""
    return x if _is_zero(d) else Dual(x, d)


def steady(x: Any) -> Any:
    """Value of x without its tangent or operands."""
    x = untraced(x)
    return x.x if isinstance(x, Dual) else x


def change(x: Any) -> Any:
    """Tangent of x: 0.0 for constants."""
    return x.d if isinstance(x, Dual) else 0.0


def _is_zero(x: Any) -> bool:
    return isinstance(x, int | float) and x == 0


def _sum(a: Any, b: Any) -> Any:
    return b if _is_zero(a) else a if _is_zero(b) else a + b


def _product(a: Any, b: Any) -> Any:
    return 0.0 if _is_zero(a) or _is_zero(b) else a * b


def _quotient(a: Any, b: Any) -> Any:
    """(a/b)' = (a' - (a/b) b')/b"""
    x, y = steady(a), steady(b)
    z = x / y
    top = _sum(change(a), -_product(z, change(b)))
    return dual(z, 0.0 if _is_zero(top) else top / y)


def is_real(x: Any) -> bool:
    return isinstance(x, Real | float | int | np.ndarray | np.floating) and not isinstance(x, bool)


def real(x: Any) -> Any:
    """Return `x` as an operand of arithmetic with reals; raise StagingError for other types."""
    if not is_real(x):
        raise StagingError(f"a real number is needed here, not {type(x).__name__}")
    return x


def integer(x: Any) -> Any:
    if not isinstance(x, int | Int | np.integer):
        raise StagingError(f"an integer of the model is needed here, not {type(x).__name__}")
    return x


def select(mask: Any, a: Any, b: Any) -> Any:
    """Return `a` where the mask is true, else `b`, per robot. Both are computed; they are reals or structs."""
    if hasattr(a, "leaves"):
        if type(a) is not type(b):
            raise StagingError(f"select needs two values of one type, not {type(a).__name__} and {type(b).__name__}")
        return type(a).from_leaves(select(mask, x, y) for x, y in zip(a.leaves(), b.leaves(), strict=True))
    if isinstance(a, Traced) or isinstance(b, Traced):
        from_a, from_b = (lambda g: select(mask, g, 0.0)), (lambda g: select(mask, 0.0, g))
        return Traced(select(mask, untraced(a), untraced(b)), (a, from_a), (b, from_b))
    if isinstance(a, Dual) or isinstance(b, Dual):
        return dual(select(mask, steady(a), steady(b)), select(mask, change(a), change(b)))
    return target().select(mask, real(a), real(b))


def to_real(x: Any) -> Any:
    """Convert an integer of the model to a real."""
    return target().to_real(x)


def to_int(x: Any) -> Any:
    """Return the integer part of a nonnegative real, in a kernel with one lane."""
    if target().lanes > 1:
        raise StagingError("an integer is the same for all robots of a pack: to_int is for kernels of one lane")
    return target().integers(steady(x))[0]


def sqrt(x: Any) -> Any:
    """Return the square root; its derivative at zero is zero."""
    if isinstance(x, Traced):
        root = sqrt(x.x)
        return Traced(root, (x, lambda g: select(root > 0.0, 0.5 * g / select(root > 0.0, root, 1.0), 0.0)))
    y = target().unary("sqrt", steady(x))
    if not isinstance(x, Dual):
        return y
    above = y > 0.0
    return dual(y, select(above, 0.5 * x.d / select(above, y, 1.0), 0.0))


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller value; NaN in `a` is propagated."""
    return select(a > b, b, a)


def maximum(a: Any, b: Any) -> Any:
    """Return the larger value; NaN in `a` is propagated."""
    return select(a < b, b, a)


def clamp(x: Any, lo: Any, hi: Any) -> Any:
    """Return `x` clamped to [lo, hi]; NaN is propagated."""
    return minimum(maximum(x, lo), hi)
