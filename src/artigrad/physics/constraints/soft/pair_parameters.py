"""Contact parameters of a pair, from those of two shapes or an explicit pair to those that a step uses  (theory 9.5).

    pyramidal   every edge has  R = 2 mu^2 R_n,  R_n = (1 - d)/d w (1 + mu_1^2)
    elliptic    the normal has R = (1 - d)/d w; friction rows follow by their coefficients (`cones`)

w is the sum of the translational inverse weights of the two bodies, mu = mu_1/sqrt(impratio). A step computes D = d/(1
- d) g.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....compiler import Linear, maximum, select, to_real
from .impedance import LEAST, Soft, SolImp, SolRef, soften, soften_vjp

LEAST_FRICTION = 1e-5


class PairParameters(Linear):
    """Given parameters: five friction coefficients, references, impedance, adhesion, margin, restitution."""

    slide: float
    slide2: float
    torsion: float
    roll: float
    roll2: float
    ref: SolRef
    ref_friction: SolRef
    imp: SolImp
    adhesion: float
    margin: float
    restitution: float


class PairSoft(Linear):
    """Parameters that a step uses.

    Attributes:
        friction: Given sliding friction, for the hard law.
        slide, slide2, torsion, roll, roll2: Friction coefficients in use; zero: no such direction.
        reg: Regularized coefficient.
        g, g_alone: Inverse weights with friction and without.
        soft: Stiffness, damping and impedance.
        b_friction: Damping in directions of friction.
        adhesion: Pull, N.
        margin: m.
        restitution: Coefficient of restitution.
    """

    friction: float
    slide: float
    slide2: float
    torsion: float
    roll: float
    roll2: float
    reg: float
    g: float
    g_alone: float
    soft: Soft
    b_friction: float
    adhesion: float
    margin: float
    restitution: float


class SoftOptionValues(NamedTuple):
    """Options: least time constant, s; 1/sqrt(impratio); and 1 for the pyramidal cone."""

    least: Any
    root: Any
    pyramid: Any


def _in_use(x: Any, condim: Any, needed: int) -> tuple[Any, Any]:
    """Return a friction coefficient, at least 1e-5, or zero if condim excludes its direction; and its slope."""
    used = to_real(condim) > needed - 0.5
    return select(used, maximum(x, LEAST_FRICTION), 0.0), select(used, select(x > LEAST_FRICTION, 1.0, 0.0), 0.0)


NEEDED = (3, 3, 4, 6, 6)  # least condim of each coefficient


def pair_soft(x: PairParameters, weight: Any, condim: Any, numbers: SoftOptionValues) -> PairSoft:
    """Compute the parameters that a step uses."""
    given = (x.slide, x.slide2, x.torsion, x.roll, x.roll2)
    mu = [_in_use(a, condim, n)[0] for a, n in zip(given, NEEDED, strict=True)]
    reg, w = mu[0] * numbers.root, maximum(weight, LEAST)
    soft, own = soften(x.ref, x.imp, numbers.least), _own_friction(x, numbers)
    edge = select(mu[0] > 0.0, 2.0 * (reg * reg) * (1.0 + mu[0] * mu[0]), 1.0)
    g = 1.0 / (w * select(numbers.pyramid > 0.5, edge, 1.0))
    rubbing = soften(x.ref_friction, x.imp, numbers.least)
    said_friction = select(to_real(condim) > 2.5, x.slide, 0.0)
    b_friction = select(own, rubbing.b, soft.b)
    return PairSoft(said_friction, *mu, reg, g, 1.0 / w, soft, b_friction, x.adhesion, x.margin, x.restitution)


def _own_friction(x: PairParameters, numbers: SoftOptionValues) -> Any:
    """Return True if directions of friction have a separate reference; edges of a pyramid have none."""
    return (abs(x.ref_friction.t) + abs(x.ref_friction.ratio)) * (1.0 - numbers.pyramid) > 0.0


def pair_soft_vjp(
    x: PairParameters, weight: Any, condim: Any, numbers: SoftOptionValues, y_bar: PairSoft
) -> tuple[PairParameters, Any]:
    """Cotangents of the given parameters and of the inverse weight."""
    given = (x.slide, x.slide2, x.torsion, x.roll, x.roll2)
    used = [_in_use(a, condim, n) for a, n in zip(given, NEEDED, strict=True)]
    mu, reg, own = used[0][0], used[0][0] * numbers.root, _own_friction(x, numbers)
    w = maximum(weight, LEAST)
    edge = select(mu > 0.0, 2.0 * (reg * reg) * (1.0 + mu * mu), 1.0)
    edge = select(numbers.pyramid > 0.5, edge, 1.0)
    g = 1.0 / (w * edge)
    # g ~ 1/(w mu^2 (1 + mu^2))
    steep = select(mu > 0.0, 2.0 / select(mu > 0.0, mu, 1.0) + 2.0 * mu / (1.0 + mu * mu), 0.0)
    slide_bar = y_bar.slide + y_bar.reg * numbers.root - select(numbers.pyramid > 0.5, g * steep, 0.0) * y_bar.g
    bars = [slide_bar, y_bar.slide2, y_bar.torsion, y_bar.roll, y_bar.roll2]
    normal_bar = y_bar.soft + Soft(0.0, select(own, 0.0, y_bar.b_friction), 0.0, 0.0, 0.0, 0.0, 0.0)
    ref_bar, imp_bar, _ = soften_vjp(x.ref, x.imp, numbers.least, normal_bar)
    rub_bar = Soft(0.0, select(own, y_bar.b_friction, 0.0), 0.0, 0.0, 0.0, 0.0, 0.0)
    friction_bar, more, _ = soften_vjp(x.ref_friction, x.imp, numbers.least, rub_bar)
    friction_bar = friction_bar.map(lambda a: select(own, a, 0.0))
    more = more.map(lambda a: select(own, a, 0.0))
    frictions = [bar * slope for bar, (_, slope) in zip(bars, used, strict=True)]
    frictions[0] = frictions[0] + select(to_real(condim) > 2.5, y_bar.friction, 0.0)
    out = PairParameters(
        *frictions,
        ref_bar,
        friction_bar,
        imp_bar + more,
        y_bar.adhesion,
        y_bar.margin,
        y_bar.restitution,
    )
    return out, select(weight > LEAST, -(g / w) * y_bar.g - y_bar.g_alone / (w * w), 0.0)
