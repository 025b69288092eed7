"""The law of a contact: the force that its rows answer an acceleration with  (theory 9.3, 9.4).

    y = J a - aref in the frame of the contact: the normal, then its directions of friction
    f = -s'(y),   K = s''(y),   and since s is homogeneous of degree two  f = -K y,  so that K is all there is to know

Directions of friction are two tangents, or these and three turns (about the normal, about the tangents), each with its
coefficient mu_k; a coefficient of zero is a direction without friction, and without any the contact is its normal alone.

    pyramidal   edges y_n +- mu_k y_k, each a one-sided spring of stiffness D
    elliptic    with U = (mu y_n, mu_k y_k), N = U_n, T = |U_k|, c = D/mu^2:
                free where N >= mu T;  sticks where mu N + T <= 0,  s = c |U|^2/2;  slides between,
                s = c/(1 + mu^2) (N - mu T)^2/2

mu is the first coefficient over the root of impratio. `Rub` holds what the law reads of a contact beside y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....compiler import maximum, select, sqrt, target

Vector = Sequence[Any]
Matrix = list[list[Any]]


class Rub(NamedTuple):
    """Stiffness D of an edge (pyramidal) or of the normal (elliptic), coefficients of friction, and the regularised one."""

    D: Any
    mu: Vector
    reg: Any


class RubBars(NamedTuple):
    """Cotangents of a Rub: that of D is not here, since f is linear in it: felt . f / D."""

    mu: list[Any]
    reg: Any


def _zeros(n: int) -> Matrix:
    return [[0.0] * n for _ in range(n)]


def _frictionless(y: Vector, rub: Rub, K: Matrix) -> Matrix:
    """K where the contact rubs, the normal alone where its first coefficient is zero."""
    rubs = rub.mu[0] > 0.0
    alone = select(y[0] < 0.0, rub.D, 0.0)
    for i, row in enumerate(K):
        for j in range(len(row)):
            row[j] = select(rubs, row[j], alone if i == j == 0 else 0.0)
    return K


# -- pyramidal ---------------------------------------------------------------------------------------------------------
def pyramidal(y: Vector, rub: Rub) -> Matrix:
    """K = D sum over the edges that press of e e^T"""
    K = _zeros(len(y))
    for k, mu in enumerate(rub.mu, start=1):
        slip = mu * y[k]
        plus, minus = (select(e < 0.0, rub.D, 0.0) for e in (y[0] + slip, y[0] - slip))
        if k > 2:  # a turn may be free of friction
            plus, minus = select(mu > 0.0, plus, 0.0), select(mu > 0.0, minus, 0.0)
        both, across = plus + minus, mu * (plus - minus)
        K[0][0] = K[0][0] + both
        K[0][k] = K[k][0] = across
        K[k][k] = mu * mu * both
    return _frictionless(y, rub, K)


def pressed_edges(y: Vector, rub: Rub) -> list[Any]:
    """N_k: what the two edges along each direction of friction press with together"""
    out = []
    for k, mu in enumerate(rub.mu, start=1):
        edges = [maximum(-(y[0] + mu * y[k] * s), 0.0) for s in (1.0, -1.0)]
        out.append(rub.D * (edges[0] + edges[1]))
    return out


def pressed_edges_kappa(y: Vector, rub: Rub, N_bar: Vector) -> Vector:
    """-(dN/dy)^T N_bar"""
    out: list[Any] = [0.0] * len(y)
    for k, mu in enumerate(rub.mu, start=1):
        plus, minus = (select(y[0] + mu * y[k] * s < 0.0, rub.D * N_bar[k - 1], 0.0) for s in (1.0, -1.0))
        out[0] = out[0] + plus + minus
        out[k] = mu * (plus - minus)
    return out


def pyramidal_bars(y: Vector, rub: Rub, felt: Vector, N_bar: Vector | None = None) -> RubBars:
    """felt . df/dmu at constant D: an edge e = y_n +- mu y_k presses with -D e along (1, +-mu). N_bar: cotangents of what the
    two edges along each direction press with."""
    bars = []
    for k, mu in enumerate(rub.mu, start=1):
        bar: Any = 0.0
        normal = felt[0] if N_bar is None else felt[0] + N_bar[k - 1]
        for s in (1.0, -1.0):
            e = y[0] + mu * y[k] * s
            press = -(select(e < 0.0, rub.D, 0.0) * e)
            pressed = select(e < 0.0, rub.D, 0.0)
            bar = bar + press * felt[k] * s - pressed * y[k] * s * (normal + mu * felt[k] * s)
        bars.append(select(mu > 0.0, bar, 0.0))
    return RubBars(bars, 0.0)


def pyramidal_margin(y: Vector, rub: Rub) -> Any:
    """How far the nearest edge is from beginning or ceasing to press, m/s^2."""
    least = abs(y[0])
    for k, mu in enumerate(rub.mu, start=1):
        slip = mu * y[k]
        near = _smaller(abs(y[0] + slip), abs(y[0] - slip))
        least = select(mu > 0.0, near if k == 1 else _smaller(least, near), least)
    return least


def _smaller(a: Any, b: Any) -> Any:
    return select(a < b, a, b)


# -- elliptic ----------------------------------------------------------------------------------------------------------
class _Zone(NamedTuple):
    """Where y is: U, |U_t|, the direction of slip, c = D/mu^2, and whether the contact sticks or slides."""

    scale: list[Any]
    U: list[Any]
    T: Any
    t: list[Any]
    c: Any
    sticks: Any
    slides: Any


def _zone(y: Vector, rub: Rub) -> _Zone:
    mu = rub.reg
    scale = [mu, *rub.mu]
    U = [s * x for s, x in zip(scale, y, strict=True)]
    square: Any = 1e-60 if target().dtype == "f64" else 1e-30  # not quite zero
    for x in U[1:]:
        square = square + x * x
    T = sqrt(square)
    presses = U[0] < mu * T
    sticks = presses & (mu * U[0] + T <= 0.0)
    slides = presses & (mu * U[0] + T > 0.0)
    c = rub.D / maximum(mu * mu, 1e-30)
    return _Zone(scale, U, T, [x / T for x in U[1:]], c, sticks, slides)


def elliptic(y: Vector, rub: Rub) -> Matrix:
    """K = scale s''(U) scale"""
    z, mu, n = _zone(y, rub), rub.reg, len(y)
    A = z.c / (1.0 + mu * mu)
    ratio = z.U[0] / z.T
    across = A * mu * (mu - ratio)
    K = _zeros(n)
    for i in range(n):
        for j in range(i + 1):
            if j == 0:
                slide = A if i == 0 else -(A * mu) * z.t[i - 1]
            else:
                slide = A * mu * ratio * z.t[i - 1] * z.t[j - 1] + (across if i == j else 0.0)
            stick = z.c if i == j else 0.0
            K[i][j] = K[j][i] = z.scale[i] * z.scale[j] * select(z.sticks, stick, select(z.slides, slide, 0.0))
    return _frictionless(y, rub, K)


def elliptic_bars(y: Vector, rub: Rub, felt: Vector) -> RubBars:
    """felt . df/d(mu_k, mu) at constant D:  f = -scale s'(U),  so with g = scale felt

    of scale_k  -felt_k s_k - y_k (s'' g)_k,      of mu itself  -g . ds'/dmu,      of c = D/mu^2  felt . f / c
    """
    z, mu, n = _zone(y, rub), rub.reg, len(y)
    g = [s * x for s, x in zip(z.scale, felt, strict=True)]
    A, e, ratio = z.c / (1.0 + mu * mu), z.U[0] - mu * z.T, z.U[0] / z.T
    along: Any = 0.0
    for a, b in zip(z.t, g[1:], strict=True):
        along = along + a * b
    shrink = -2.0 * mu / (1.0 + mu * mu)  # dA/dmu over A
    scale_bars, reg_bar, power = [], 0.0, 0.0
    for k in range(n):
        if k == 0:
            slope, curve = A * e, A * (g[0] - mu * along)
            by_mu = A * (e * shrink - z.T)
        else:
            slope = -(A * mu * e) * z.t[k - 1]
            curve = A * mu * ((mu - ratio) * g[k] + z.t[k - 1] * (ratio * along - g[0]))
            by_mu = A * z.t[k - 1] * (mu * z.T - e - mu * e * shrink)
        slope = select(z.sticks, z.c * z.U[k], select(z.slides, slope, 0.0))
        curve = select(z.sticks, z.c * g[k], select(z.slides, curve, 0.0))
        scale_bars.append(-(felt[k] * slope) - y[k] * curve)
        reg_bar = reg_bar - g[k] * select(z.slides, by_mu, 0.0)
        power = power - g[k] * slope  # felt . f
    reg_bar = reg_bar + scale_bars[0] - 2.0 * power / maximum(mu, 1e-15)
    rubs = rub.mu[0] > 0.0
    return RubBars(
        [select(m > 0.0, b, 0.0) for m, b in zip(rub.mu, scale_bars[1:], strict=True)], select(rubs, reg_bar, 0.0)
    )


def elliptic_margin(y: Vector, rub: Rub) -> Any:
    """How far the contact is from closing or letting go, sticking or sliding, m/s^2."""
    z, mu = _zone(y, rub), rub.reg
    scale = 1.0 / maximum(mu, 1e-15)
    near = _smaller(abs(z.U[0] - mu * z.T), abs(mu * z.U[0] + z.T)) * scale
    return select(rub.mu[0] > 0.0, near, abs(y[0]))


class ConeLaw(NamedTuple):
    """K(y, rub); felt . df/d(coefficients) (y, rub, felt); distance to the nearest change of zone."""

    stiffness: Callable[[Vector, Rub], Matrix]
    bars: Callable[[Vector, Rub, Vector], RubBars]
    margin: Callable[[Vector, Rub], Any]


CONES = {
    "pyramidal": ConeLaw(pyramidal, pyramidal_bars, pyramidal_margin),
    "elliptic": ConeLaw(elliptic, elliptic_bars, elliptic_margin),
}
