"""Elementary functions: trigonometric, exponential, logarithm, and functions of a rotation angle that are smooth at zero.

They are written in additions, products and divisions, so that every target and lane computes the same bits.
"""

from __future__ import annotations

from math import factorial
from typing import Any

from .values import ROUNDER, Dual, Traced, change, clamp, dual, select, sqrt, steady, target, untraced

# pi/2 in parts whose products with a small integer are exact, and minimax polynomials on [-pi/4, pi/4]
_HALF_PI = {
    "f64": (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
    "f32": (1.5703125, 4.837512969970703125e-4, 7.549789954891882e-8),
}
_SIN = {
    "f64": (
        1.58962301576546568060e-10,
        -2.50507477628578072866e-8,
        2.75573136213857245213e-6,
        -1.98412698295895385996e-4,
        8.33333333332211858878e-3,
        -1.66666666666666307295e-1,
    ),
    "f32": (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
}
_COS = {
    "f64": (
        -1.13585365213876817300e-11,
        2.08757008419747316778e-9,
        -2.75573141792967388112e-7,
        2.48015872888517045348e-5,
        -1.38888888888730564116e-3,
        4.16666666666665929218e-2,
    ),
    "f32": (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
}


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    """Evaluate a polynomial by Horner's rule, highest power first."""
    y: Any = coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


def sincos(x: Any) -> tuple[Any, Any]:
    """Return (sin x, cos x), to rounding for |x| up to about 1e5."""
    if isinstance(x, Traced):
        s, c = sincos(x.x)
        return Traced(s, (x, lambda g: g * c)), Traced(c, (x, lambda g: -(g * s)))
    kind = target().dtype
    turns = steady(x) * 0.6366197723675814 + ROUNDER[kind]  # the nearest integer stands in the low bits
    k = turns - ROUNDER[kind]
    r = x
    for part in _HALF_PI[kind]:
        r = r - k * part
    z = r * r
    s = r + r * (z * _polynomial(_SIN[kind], z))
    c = (1.0 - 0.5 * z) + (z * z) * _polynomial(_COS[kind], z)
    y = target().quarter_turns(turns, steady(s), steady(c))
    if not isinstance(x, Dual):
        return y
    dy = target().quarter_turns(turns, change(s), change(c))
    return dual(y[0], dy[0]), dual(y[1], dy[1])


def floor(x: Any) -> Any:
    """Return the largest integer not above x, for |x| within the exactly represented integers."""
    x = steady(x)
    near = (x + ROUNDER[target().dtype]) - ROUNDER[target().dtype]
    return near - select(near > x, 1.0, 0.0)


def half_angle(s: Any) -> tuple[Any, Any, Any]:
    """Return (cos(t/2), k, kappa) of the quaternion exponential.

    s = t^2, k = sin(t/2)/t, kappa = (cos(t/2)/2 - k)/s. All three are entire in s (theory 1.23): series below s = 1/4,
    closed forms above, so that there is no division by zero.
    """
    small = s < 0.25
    safe = select(small, 1.0, s)
    t = sqrt(safe)
    sine, cosine = sincos(0.5 * t)
    x = s * 0.25
    # c = sum (-x)^j/(2j)! ; k = 1/2 sum (-x)^j/(2j+1)! ; kappa = -1/4 sum (j+1) (-x)^j/(2j+3)!
    c = _polynomial(tuple((-1.0) ** j / factorial(2 * j) for j in range(8, -1, -1)), x)
    k = _polynomial(tuple(0.5 * (-1.0) ** j / factorial(2 * j + 1) for j in range(8, -1, -1)), x)
    kappa = _polynomial(tuple(-0.25 * (-1.0) ** j * (j + 1) / factorial(2 * j + 3) for j in range(8, -1, -1)), x)
    k_far = sine / t
    return (
        select(small, c, cosine),
        select(small, k, k_far),
        select(small, kappa, (0.5 * cosine - k_far) / safe),
    )


def cotangent_excess(s: Any) -> tuple[Any, Any]:
    """Return (1 - (t/2) cot(t/2))/s with s = t^2, and its derivative with respect to s.

    They belong to the inverse of the exponential (theory 7.4). Series below s = 1/4, closed forms above.
    """
    small = s < 0.25
    safe = select(small, 1.0, s)
    c, k, kappa = half_angle(s)
    far = (1.0 - 0.5 * c / k) / safe
    far_rate = (0.125 + 0.25 * c * kappa / (k * k) - far) / safe
    near = _polynomial(_COTANGENT, s)
    near_rate = _polynomial(tuple(x * (len(_COTANGENT) - 1 - j) for j, x in enumerate(_COTANGENT[:-1])), s)
    return select(small, near, far), select(small, near_rate, far_rate)


# |Bernoulli number 2j| / (2j)!, of x/2 cot(x/2), highest first
_COTANGENT = (691 / 1307674368000, 1 / 47900160, 1 / 1209600, 1 / 30240, 1 / 720, 1 / 12)
_LN2 = {"f64": (0.6931471803691238, 1.9082149292705877e-10), "f32": (0.693145751953125, 1.428606765330187e-6)}
_EXP_TERMS, _LOG_TERMS = {"f64": 14, "f32": 8}, {"f64": 11, "f32": 5}
_EXP_MOST = {"f64": 700.0, "f32": 87.0}


def _reduced(x: Any) -> tuple[Any, Any]:
    """Return (r, turns) with x = r + k log 2 and |r| <= log(2)/2, for x clamped to the range of e^x.

    The low bits of `turns` contain k.
    """
    kind = target().dtype
    x = clamp(x, -_EXP_MOST[kind], _EXP_MOST[kind])
    turns = steady(x) * 1.4426950408889634 + ROUNDER[kind]
    k, (high, low) = turns - ROUNDER[kind], _LN2[kind]
    return (x - k * high) - k * low, turns


def _exp_series(r: Any, first: int) -> Any:
    """Return 1/first! + r/(first + 1)! + ..."""
    terms = range(_EXP_TERMS[target().dtype], first - 1, -1)
    return _polynomial(tuple(1.0 / factorial(j) for j in terms), r)


def exp(x: Any) -> Any:
    """Return e^x, with x clamped to +-700 (f32: +-87)."""
    if isinstance(x, Traced):
        y = exp(x.x)
        return Traced(y, (x, lambda g: g * y))
    r, turns = _reduced(x)
    return _exp_series(r, 0) * target().power_of_two(turns)


def expm1(x: Any) -> Any:
    """Return e^x - 1, to rounding also near zero, with x clamped to +-700 (f32: +-87)."""
    if isinstance(x, Traced):
        y = expm1(x.x)
        return Traced(y, (x, lambda g: g * (y + 1.0)))
    r, turns = _reduced(x)
    series = _exp_series(r, 2)
    power = target().power_of_two(turns)
    return (r + (r * r) * series) * power + (power - 1.0)


def tanh(x: Any) -> Any:
    """Return tanh x: -e/(e + 2)  with  e = exp(-2 |x|) - 1,  and the sign of x."""
    e = expm1(-2.0 * abs(x))
    t = e / (e + 2.0)
    return select(x < 0.0, t, -t)


def log(x: Any) -> Any:
    """Return the natural logarithm of x > 0: x = m 2^n,  log m = 2 artanh s  with  s = (m - 1)/(m + 1)."""
    if isinstance(x, Traced):
        return Traced(log(x.x), (x, lambda g: g / x.x))
    kind = target().dtype
    m, n = target().split_exponent(steady(x))
    if isinstance(x, Dual):
        m = dual(m, x.d * (m / x.x))
    s, (high, low) = (m - 1.0) / (m + 1.0), _LN2[kind]
    z = s * s
    series = _polynomial(tuple(1.0 / (2 * j + 1) for j in range(_LOG_TERMS[kind], -1, -1)), z)
    return n * high + (n * low + 2.0 * (s * series))


_ATAN = (  # numerator and denominator of (atan(t)/t - 1)/t^2 for t^2 below 0.4356, highest power first
    (
        -8.750608600031904122785e-1,
        -1.615753718733365076637e1,
        -7.500855792314704667340e1,
        -1.228866684490136173410e2,
        -6.485021904942025371773e1,
    ),
    (
        1.0,
        2.485846490142306297962e1,
        1.650270098316988542046e2,
        4.328810604912902668951e2,
        4.853903996359136964868e2,
        1.945506571482613964425e2,
    ),
)


def arctan2(y: Any, x: Any) -> Any:
    """Return the angle of the point (x, y) for x, y >= 0, not both zero."""
    if isinstance(x, Traced) or isinstance(y, Traced):
        a, b = untraced(x), untraced(y)
        squared = a * a + b * b
        return Traced(arctan2(b, a), (y, lambda g: g * a / squared), (x, lambda g: -(g * b / squared)))
    swapped = y > x
    top, bottom = select(swapped, x, y), select(swapped, y, x)
    t = top / bottom  # at most 1; beyond 0.66 its angle is taken from pi/4
    far = t > 0.66
    u = select(far, (t - 1.0) / (t + 1.0), t)
    z = u * u
    a = u + u * (z * (_polynomial(_ATAN[0], z) / _polynomial(_ATAN[1], z)))
    a = select(far, a + 0.7853981633974483, a)
    return select(swapped, 1.5707963267948966 - a, a)
