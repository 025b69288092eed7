"""Sine, cosine and the functions of a rotation angle that stay smooth through zero, from additions and products alone.

Written out rather than called, so that every target and every lane gives the same bits.
"""

from __future__ import annotations

from math import factorial
from typing import Any

from .values import ROUNDER, select, sqrt, target

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
    """Horner's rule, highest power first."""
    y: Any = coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


def sincos(x: Any) -> tuple[Any, Any]:
    """(sin x, cos x), to rounding for |x| up to about 1e5."""
    kind = target().dtype
    turns = x * 0.6366197723675814 + ROUNDER[kind]  # the nearest integer stands in the low bits
    k = turns - ROUNDER[kind]
    r = x
    for part in _HALF_PI[kind]:
        r = r - k * part
    z = r * r
    s = r + r * (z * _polynomial(_SIN[kind], z))
    c = (1.0 - 0.5 * z) + (z * z) * _polynomial(_COS[kind], z)
    return target().quarter_turns(turns, s, c)


def half_angle(s: Any) -> tuple[Any, Any, Any]:
    """(cos(t/2), k, kappa) of the quaternion exponential, with s = t^2, k = sin(t/2)/t and kappa = (cos(t/2)/2 - k)/s.

    All three are entire in s (theory 1.23): the series below s = 1/4, the closed forms above; no division by t is left.
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
