"""Minimum of f . A f/2 + b . f in an ellipse, sum of (f_k/mu_k)^2 <= r^2, and its adjoint.

With f = mu v the ellipse is a ball, and on its boundary (mu A mu + lam) v = -mu b for the lam that makes |v| = r, found
by Newton's method from below; MuJoCo's ends slightly earlier. A coefficient of zero is a direction without friction.
If A is singular, as where several directions move the same joints, f is zero, as in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....compiler import carry, loop, maximum, minimum, select, sqrt, steady, target, when_any

Vector = list[Any]
Matrix = list[list[Any]]
STEPS = 60  # largest number of Newton iterations
FINE = {"f64": 1e-14, "f32": 1e-6}  # v|^2| tolerance of |v|^2 above r^2, relative to r^2
TINY = 1e-30  # lower bound of denominators
FLAT = 1e-10  # least determinant of two or three directions, MuJoCo's
LEAST = 1e-15  # least pivot of more directions, MuJoCo's
ROUND = {"f64": 1e-14, "f32": 1e-5}  # the same, relative to the diagonal


class InEllipse(NamedTuple):
    """Solution f; and v, lam and the matrix mu A mu, in the coordinates in which the ellipse is a ball.

    singular: 1 if A is singular, else 0.
    """

    f: Vector
    v: Vector
    lam: Any
    A: Matrix
    singular: Any


def inner(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """Return a . b."""
    total: Any = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def solve(A: Matrix, lam: Any, b: Vector) -> tuple[Vector, Any, Any]:
    """Return x with (A + lam) x = b, the determinant, and a number above zero if A + lam is positive definite.

    Elimination without pivoting.
    """
    n, fine = len(b), ROUND[target().dtype]
    M = [[A[i][j] + (lam if i == j else 0.0) for j in range(n)] for i in range(n)]
    x, det, room = list(b), 1.0, 1.0
    for k in range(n):
        det = det * M[k][k]
        room = minimum(room, M[k][k] - maximum(LEAST, fine * (A[k][k] + lam)))
        inverse = 1.0 / select(abs(M[k][k]) > TINY, M[k][k], TINY)
        for i in range(k + 1, n):
            share = M[i][k] * inverse
            x[i] = x[i] - share * x[k]
            for j in range(k, n):
                M[i][j] = M[i][j] - share * M[k][j]
        M[k][k] = inverse
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - M[k][j] * x[j]
        x[k] = x[k] * M[k][k]
    return x, det, room


def in_ellipse(A: Matrix, b: Vector, mu: Vector, r: Any) -> InEllipse:
    """Return f = argmin f . A f/2 + b . f in the ellipse."""
    n = len(b)
    scaled = [[A[i][j] * mu[i] * mu[j] for j in range(n)] for i in range(n)]
    for i in range(n):
        scaled[i][i] = select(mu[i] > 0.0, scaled[i][i], 1.0)
    push = [-(x * m) for x, m in zip(b, mu, strict=True)]
    fine = FINE[target().dtype]
    lam, v, going, singular = carry(0.0), carry(tuple(0.0 for _ in b)), carry(1.0), carry(0.0)
    for _ in loop(STEPS):
        for _ in when_any(going.value > 0.5):
            here = going.value > 0.5
            x, det, room = solve(scaled, lam.value, push)
            flat = det < FLAT if n == 2 else select(mu[3] > 0.0, room, det - FLAT) <= 0.0
            singular.value = select(here & flat, 1.0, singular.value)
            v.value = tuple(select(here, select(flat, 0.0, a), c) for a, c in zip(x, v.value, strict=True))
            more, above = _more(scaled, lam.value, x, r)
            going.value = select(flat, 0.0, select(above > fine * (r * r), going.value, 0.0))
            lam.value = select(going.value > 0.5, lam.value + more, select(here & flat, 0.0, lam.value))
    if target().tangents:  # tangents of one additional step, which returns to the same lam
        start = steady(lam.value)
        x, _, _ = solve(scaled, start, push)
        lam.value = select(lam.value > 0.0, start + _more(scaled, start, x, r)[0], lam.value)
        x, _, _ = solve(scaled, lam.value, push)
        v.value = tuple(select(lam.value > 0.0, a, c) for a, c in zip(x, v.value, strict=True))
    size = sqrt(maximum(inner(v.value, v.value), TINY))
    share = select(lam.value > 0.0, r / size, 1.0)
    rim = [select(r < 1e-15, 0.0, x * share) for x in v.value]
    return InEllipse([x * m for x, m in zip(rim, mu, strict=True)], rim, lam.value, scaled, singular.value)


def _more(A: Matrix, lam: Any, v: Vector, r: Any) -> tuple[Any, Any]:
    """Return the Newton step of lam, and |v|^2 - r^2."""
    above = inner(v, v) - r * r
    return above / maximum(2.0 * inner(v, solve(A, lam, v)[0]), TINY), above


class EllipseBars(NamedTuple):
    """Vector x with b_bar = -x and A_bar = -x f^T, and the cotangents of mu and r."""

    x: Vector
    mu: Vector
    r: Any


def in_ellipse_vjp(found: InEllipse, mu: Vector, r: Any, f_bar: Vector) -> EllipseBars:
    """Adjoint of `in_ellipse`. On the boundary  H x + s v = mu f_bar  with  v . x = 0,  H = mu A mu + lam;  inside s = 0."""
    v, rim = found.v, found.lam > 0.0
    z, _, _ = solve(found.A, found.lam, [x * m for x, m in zip(f_bar, mu, strict=True)])
    w, _, _ = solve(found.A, found.lam, v)
    s = select(rim, inner(v, z) / maximum(inner(v, w), TINY), 0.0)
    pressed = (r >= 1e-15) & (found.singular < 0.5)  # else f is zero
    x = [select(pressed, a - s * b, 0.0) for a, b in zip(z, w, strict=True)]
    mu_bar = [
        select(pressed & (m > 0.0), (2.0 * found.lam * a * b + s * b * b) / maximum(m, TINY), 0.0)
        for m, a, b in zip(mu, x, v, strict=True)
    ]
    return EllipseBars([a * m for a, m in zip(x, mu, strict=True)], mu_bar, select(pressed, s * r, 0.0))
