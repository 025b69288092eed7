"""Friction cones: the force of a contact's rows as a function of their acceleration  (theory 9.3, 9.4).

    y = J a - aref in the frame of the contact: the normal, then its directions of friction
    f = -s'(y),   K = s''(y),   and since s is homogeneous of degree two  f = -K y,  so that K determines everything

Directions of friction are two tangents, or these and three rotations (about the normal, about the tangents), each with
a coefficient mu_k. A coefficient of zero is a direction without friction; without any, the contact has its normal only.

    pyramidal   edges y_n +- mu_k y_k, each a one-sided spring of stiffness D
    elliptic    with U = (mu y_n, mu_k y_k), N = U_n, T = |U_k|, c = D/mu^2:
                separated where N >= mu T;  sticking where mu N + T <= 0,  s = c |U|^2/2;  sliding between,
                s = c/(1 + mu^2) (N - mu T)^2/2

mu is the first coefficient over the root of impratio. `FrictionRow` holds the parameters of a contact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....compiler import maximum, select, sqrt, target

Vector = Sequence[Any]
Matrix = list[list[Any]]


class FrictionRow(NamedTuple):
    """Stiffness D of an edge (pyramidal) or of the normal (elliptic), friction coefficients, and the regularized
    coefficient."""

    D: Any
    mu: Vector
    reg: Any


class FrictionBars(NamedTuple):
    """Cotangents of a FrictionRow except D: f is linear in D, so that of D is multiplier . f / D."""

    mu: list[Any]
    reg: Any


def _zeros(n: int) -> Matrix:
    """Matrix of zeros."""
    return [[0.0] * n for _ in range(n)]


def _frictionless(y: Vector, friction: FrictionRow, K: Matrix) -> Matrix:
    """Return K where the contact has friction, the normal only where its first coefficient is zero."""
    has_friction = friction.mu[0] > 0.0
    alone = select(y[0] < 0.0, friction.D, 0.0)
    for i, row in enumerate(K):
        for j in range(len(row)):
            row[j] = select(has_friction, row[j], alone if i == j == 0 else 0.0)
    return K


# -- pyramidal ---------------------------------------------------------------------------------------------------------
def pyramidal(y: Vector, friction: FrictionRow) -> Matrix:
    """Return K = D sum of e e^T over the edges in compression."""
    K = _zeros(len(y))
    for k, mu in enumerate(friction.mu, start=1):
        slip = mu * y[k]
        plus, minus = (select(e < 0.0, friction.D, 0.0) for e in (y[0] + slip, y[0] - slip))
        if k > 2:  # a rotation can be without friction
            plus, minus = select(mu > 0.0, plus, 0.0), select(mu > 0.0, minus, 0.0)
        both, across = plus + minus, mu * (plus - minus)
        K[0][0] = K[0][0] + both
        K[0][k] = K[k][0] = across
        K[k][k] = mu * mu * both
    return _frictionless(y, friction, K)


def pressed_edges(y: Vector, friction: FrictionRow) -> list[Any]:
    """Return N_k, the total pressure of the two edges along each direction of friction."""
    out = []
    for k, mu in enumerate(friction.mu, start=1):
        edges = [maximum(-(y[0] + mu * y[k] * s), 0.0) for s in (1.0, -1.0)]
        out.append(friction.D * (edges[0] + edges[1]))
    return out


def pressed_edges_kappa(y: Vector, friction: FrictionRow, N_bar: Vector) -> Vector:
    """Return -(dN/dy)^T N_bar."""
    out: list[Any] = [0.0] * len(y)
    for k, mu in enumerate(friction.mu, start=1):
        plus, minus = (select(y[0] + mu * y[k] * s < 0.0, friction.D * N_bar[k - 1], 0.0) for s in (1.0, -1.0))
        out[0] = out[0] + plus + minus
        out[k] = mu * (plus - minus)
    return out


def pyramidal_bars(y: Vector, friction: FrictionRow, multiplier: Vector, N_bar: Vector | None = None) -> FrictionBars:
    """Return multiplier . df/dmu at constant D: an edge e = y_n +- mu y_k presses with -D e along (1, +-mu).

    N_bar: cotangents of the pressure of the two edges along each direction.
    """
    bars = []
    for k, mu in enumerate(friction.mu, start=1):
        bar: Any = 0.0
        normal = multiplier[0] if N_bar is None else multiplier[0] + N_bar[k - 1]
        for s in (1.0, -1.0):
            e = y[0] + mu * y[k] * s
            press = -(select(e < 0.0, friction.D, 0.0) * e)
            pressed = select(e < 0.0, friction.D, 0.0)
            bar = bar + press * multiplier[k] * s - pressed * y[k] * s * (normal + mu * multiplier[k] * s)
        bars.append(select(mu > 0.0, bar, 0.0))
    return FrictionBars(bars, 0.0)


def pyramidal_margin(y: Vector, friction: FrictionRow) -> Any:
    """Distance of the nearest edge to the start or end of compression, m/s^2."""
    least = abs(y[0])
    for k, mu in enumerate(friction.mu, start=1):
        slip = mu * y[k]
        near = _smaller(abs(y[0] + slip), abs(y[0] - slip))
        least = select(mu > 0.0, near if k == 1 else _smaller(least, near), least)
    return least


def _smaller(a: Any, b: Any) -> Any:
    """Smaller of two values."""
    return select(a < b, a, b)


# -- elliptic ----------------------------------------------------------------------------------------------------------
class _Zone(NamedTuple):
    """Regime of y: scales, U, |U_t|, direction of slip, c = D/mu^2, and whether the contact sticks or slides."""

    scale: list[Any]
    U: list[Any]
    T: Any
    t: list[Any]
    c: Any
    sticks: Any
    slides: Any


def _zone(y: Vector, friction: FrictionRow) -> _Zone:
    """Compute the regime of y."""
    mu = friction.reg
    scale = [mu, *friction.mu]
    U = [s * x for s, x in zip(scale, y, strict=True)]
    square: Any = 1e-60 if target().dtype == "f64" else 1e-30  # bounded away from zero
    for x in U[1:]:
        square = square + x * x
    T = sqrt(square)
    presses = U[0] < mu * T
    sticks = presses & (mu * U[0] + T <= 0.0)
    slides = presses & (mu * U[0] + T > 0.0)
    c = friction.D / maximum(mu * mu, 1e-30)
    return _Zone(scale, U, T, [x / T for x in U[1:]], c, sticks, slides)


def elliptic(y: Vector, friction: FrictionRow) -> Matrix:
    """Return K = scale s''(U) scale."""
    z, mu, n = _zone(y, friction), friction.reg, len(y)
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
    return _frictionless(y, friction, K)


def elliptic_bars(y: Vector, friction: FrictionRow, multiplier: Vector) -> FrictionBars:
    """Return multiplier . df/d(mu_k, mu) at constant D:  f = -scale s'(U),  so with g = scale multiplier

    of scale_k  -multiplier_k s_k - y_k (s'' g)_k,      of mu itself  -g . ds'/dmu,      of c = D/mu^2  multiplier .
    f / c
    """
    z, mu, n = _zone(y, friction), friction.reg, len(y)
    g = [s * x for s, x in zip(z.scale, multiplier, strict=True)]
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
        scale_bars.append(-(multiplier[k] * slope) - y[k] * curve)
        reg_bar = reg_bar - g[k] * select(z.slides, by_mu, 0.0)
        power = power - g[k] * slope  # multiplier . f
    reg_bar = reg_bar + scale_bars[0] - 2.0 * power / maximum(mu, 1e-15)
    has_friction = friction.mu[0] > 0.0
    return FrictionBars(
        [select(m > 0.0, b, 0.0) for m, b in zip(friction.mu, scale_bars[1:], strict=True)],
        select(has_friction, reg_bar, 0.0),
    )


def elliptic_margin(y: Vector, friction: FrictionRow) -> Any:
    """Distance of the contact to the next change between separated, sliding and sticking, m/s^2."""
    z, mu = _zone(y, friction), friction.reg
    scale = 1.0 / maximum(mu, 1e-15)
    near = _smaller(abs(z.U[0] - mu * z.T), abs(mu * z.U[0] + z.T)) * scale
    return select(friction.mu[0] > 0.0, near, abs(y[0]))


class ConeLaw(NamedTuple):
    """Functions of a friction cone: stiffness K(y, friction); cotangents of its coefficients; distance to the next
    regime."""

    stiffness: Callable[[Vector, FrictionRow], Matrix]
    bars: Callable[[Vector, FrictionRow, Vector], FrictionBars]
    margin: Callable[[Vector, FrictionRow], Any]


CONES = {
    "pyramidal": ConeLaw(pyramidal, pyramidal_bars, pyramidal_margin),
    "elliptic": ConeLaw(elliptic, elliptic_bars, elliptic_margin),
}
