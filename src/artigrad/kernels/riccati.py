"""Kernel of the backward pass of iLQR: gains that minimize a quadratic cost of linear dynamics under control limits.

    Q = l + (A, B)^T V' (A, B),   k = argmin over the box of  Qu k + k Quu k / 2,   K = -Quu^-1 Qux on the free controls
    V = Qxx + K^T Quu K + K^T Qux + Qux^T K

mu adds mu (A, B)^T (A, B) to Quu and Qux in the computation of gains, which limits the deviation from the reference (Tassa
et al. 2012). Controls held at a limit have no gain (Tassa et al. 2014); they are determined by projected Gauss-Seidel.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..compiler import (
    INT,
    ROBOTS,
    SHARED,
    WORK,
    ArgumentKind,
    Kernel,
    Reals,
    Target,
    carry,
    clamp,
    loop,
    maximum,
    select,
    sqrt,
)

GIVEN = ("A", "B", "lx", "lu", "lxx", "lux", "luu", "u", "mu")
FOUND = (
    "push",
    "gain",
    "gains",
    "bad",
)  # k, K, what the cost changes by to first and second order, 1 where Quu is not positive
SCRATCH = ("V", "v", "VA", "VB", "Qux", "Quu", "H", "Hx", "Qu", "k", "free", "L", "y")


def riccati_work(n: int, m: int) -> dict[str, int]:
    """Return scratch sizes for n state entries and m controls."""
    sizes = {"V": n * n, "v": n, "VA": n * n, "VB": n * m, "Qux": m * n, "Quu": m * m, "H": m * m, "Hx": m * n}
    return {name: max(sizes.get(name, m * m if name == "L" else m), 1) for name in SCRATCH}


@cache
def riccati(target: Target) -> Kernel:
    """Kernel of `steps` steps from the last to the first; lx and lxx have one more row, for the last state."""

    def body(**a: Any) -> None:
        n, m = a["n"], a["m"]
        _start(a)
        for t in loop(a["steps"], inwards=True):
            part = {
                **{name: a[name].shifted(t * n * n) for name in ("A", "lxx")},
                **{name: a[name].shifted(t * m * n) for name in ("B", "lux", "gain")},
                **{name: a[name].shifted(t * m) for name in ("lu", "u", "push")},
                "lx": a["lx"].shifted(t * n),
                "luu": a["luu"].shifted(t * m * m),
            }
            _expand(a | part)
            _box(a | part)
            _gains(a | part)
            _value(a | part)

    signature: dict[str, ArgumentKind] = {
        **dict.fromkeys(("steps", "n", "m", "sweeps"), INT),
        **dict.fromkeys((*GIVEN, *FOUND), ROBOTS),
        **dict.fromkeys(("low", "high"), SHARED),
        **dict.fromkeys(SCRATCH, WORK),
    }
    return Kernel("riccati", body, signature, target)


def _start(a: dict[str, Any]) -> None:
    """Write V and v of the last state."""
    n, steps = a["n"], a["steps"]
    for i in loop(n):
        a["v"][i] = a["lx"][steps * n + i]
    for i in loop(n * n):
        a["V"][i] = a["lxx"][steps * n * n + i]
    a["gains"][0], a["gains"][1], a["bad"][0] = 0.0, 0.0, 0.0


def _dot(count: Any, x: Reals, x_at: Any, x_step: Any, y: Reals, y_at: Any, y_step: Any) -> Any:
    """Return the sum over i of x[x_at + i x_step] y[y_at + i y_step]."""
    total = carry(0.0)
    for i in loop(count):
        total.value = total.value + x[x_at + i * x_step] * y[y_at + i * y_step]
    return total.value


def _expand(a: dict[str, Any]) -> None:
    """Compute Qu, Quu and Qux, and with mu (H, Hx)."""
    n, m, A, B, V = (a[name] for name in ("n", "m", "A", "B", "V"))
    mu = a["mu"][0]
    for i in loop(n):
        for j in loop(n):
            a["VA"][i * n + j] = _dot(n, V, i * n, 1, A, j, n)
        for j in loop(m):
            a["VB"][i * m + j] = _dot(n, V, i * n, 1, B, j, m)
    for j in loop(m):
        a["Qu"][j] = a["lu"][j] + _dot(n, B, j, m, a["v"], 0, 1)
        for i in loop(n):
            at = j * n + i
            a["Qux"][at] = a["lux"][at] + _dot(n, B, j, m, a["VA"], i, n)
            a["Hx"][at] = a["Qux"][at] + mu * _dot(n, B, j, m, A, i, n)
        for i in loop(m):
            at = j * m + i
            a["Quu"][at] = a["luu"][at] + _dot(n, B, j, m, a["VB"], i, m)
            a["H"][at] = a["Quu"][at] + mu * _dot(n, B, j, m, B, i, m)


def _box(a: dict[str, Any]) -> None:
    """Compute k by projected Gauss-Seidel, and the set of free controls."""
    m, H, k = a["m"], a["H"], a["k"]
    for j in loop(m):
        k[j], a["free"][j] = 0.0, 1.0
    for _ in loop(a["sweeps"]):
        for j in loop(m):
            slope = a["Qu"][j] + _dot(m, H, j * m, 1, k, 0, 1)
            k[j] = clamp(k[j] - slope / maximum(H[j * m + j], 1e-30), a["low"][j] - a["u"][j], a["high"][j] - a["u"][j])
    for j in loop(m):
        slope = a["Qu"][j] + _dot(m, H, j * m, 1, k, 0, 1)
        low, high = a["low"][j] - a["u"][j], a["high"][j] - a["u"][j]
        beyond = ((k[j] <= low) & (slope > 0.0)) | ((k[j] >= high) & (slope < 0.0))
        a["free"][j] = select(beyond, 0.0, 1.0)


def _gains(a: dict[str, Any]) -> None:
    """Compute k and K of the free controls by the Cholesky factor of their part of H."""
    n, m, H, k, free = (a[name] for name in ("n", "m", "H", "k", "free"))
    _factor(a)
    for j in loop(m):  # -(Qu + H k of those at a limit)
        fixed = carry(a["Qu"][j])
        for i in loop(m):
            fixed.value = fixed.value + H[j * m + i] * k[i] * (1.0 - free[i])
        a["y"][j] = -(fixed.value * free[j])
    _solve(a)
    for j in loop(m):
        push = clamp(select(free[j] > 0.5, a["y"][j], k[j]), a["low"][j] - a["u"][j], a["high"][j] - a["u"][j])
        k[j] = push
        a["push"][j] = push
    for i in loop(n):
        for j in loop(m):
            a["y"][j] = -(a["Hx"][j * n + i] * free[j])
        _solve(a)
        for j in loop(m):
            a["gain"][j * n + i] = a["y"][j]


def _factor(a: dict[str, Any]) -> None:
    """Compute L with L L^T = H on the free controls and the identity on the others."""
    m, H, L, free = (a[name] for name in ("m", "H", "L", "free"))
    for j in loop(m):
        both = free[j]
        for i in loop(j, m):
            own = H[i * m + j] * both * free[i] - _dot(j, L, i * m, 1, L, j * m, 1)
            L[i * m + j] = own
        pivot = L[j * m + j] + 1.0 - both
        least = 1e-12 * maximum(abs(H[j * m + j]), 1e-12)
        wrong = pivot <= least
        a["bad"][0] = select(pivot > least, a["bad"][0], 1.0)  # NaN is bad, too
        root = sqrt(select(wrong, 1.0, pivot))
        L[j * m + j] = root
        for i in loop(j + 1, m):
            L[i * m + j] = L[i * m + j] / root


def _solve(a: dict[str, Any]) -> None:
    """Compute y <- (L L^T)^-1 y."""
    m, L, y = a["m"], a["L"], a["y"]
    for j in loop(m):
        y[j] = (y[j] - _dot(j, L, j * m, 1, y, 0, 1)) / L[j * m + j]
    for j in loop(m, inwards=True):
        y[j] = (y[j] - _dot(m - j - 1, L, (j + 1) * m + j, m, y, j + 1, 1)) / L[j * m + j]


def _value(a: dict[str, Any]) -> None:
    """Compute V and v of this state, and the change of cost under k."""
    n, m, A, k, K, Quu, Qux = (a[name] for name in ("n", "m", "A", "k", "gain", "Quu", "Qux"))
    first, second = a["gains"][0], a["gains"][1]
    for j in loop(m):
        a["y"][j] = _dot(m, Quu, j * m, 1, k, 0, 1)  # Quu k
    a["gains"][0] = first + _dot(m, k, 0, 1, a["Qu"], 0, 1)
    a["gains"][1] = second + 0.5 * _dot(m, k, 0, 1, a["y"], 0, 1)
    for i in loop(n):  # Quu K + Qux, in place of Hx
        for j in loop(m):
            a["Hx"][j * n + i] = Qux[j * n + i] + _dot(m, Quu, j * m, 1, K, i, n)
    # v' is read by the new v, so that it is made beside it, in the row that V does not need any more
    for i in loop(n):
        for j in loop(n):
            old = _dot(n, A, i, n, a["VA"], j, n)
            ours = _dot(m, K, i, n, a["Hx"], j, n) + _dot(m, Qux, i, n, K, j, n)
            a["V"][i * n + j] = a["lxx"][i * n + j] + old + ours
    for i in loop(n):
        feed = _dot(m, K, i, n, a["y"], 0, 1) + _dot(m, K, i, n, a["Qu"], 0, 1) + _dot(m, Qux, i, n, k, 0, 1)
        a["VA"][i] = a["lx"][i] + _dot(n, A, i, n, a["v"], 0, 1) + feed
    for i in loop(n):
        a["v"][i] = a["VA"][i]
        for j in loop(i):
            mean = 0.5 * (a["V"][i * n + j] + a["V"][j * n + i])
            a["V"][i * n + j] = mean
            a["V"][j * n + i] = mean
