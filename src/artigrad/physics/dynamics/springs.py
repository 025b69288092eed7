"""Springs of ball and free joints, and nonlinear springs and dampers; and the adjoint.

    hinge, slide   tau = -x (c1 x + c2 x^2)                     besides the linear part in `passive`,  x = q - reference
    ball           tau = -x (k + c1 |x| + c2 |x|^2)             x: the rotation vector
    free           the same, of its position and its rotation relative to the rest pose
    dampers        tau = -v (d1 |v| + d2 v^2)                   besides the linear part, on each velocity

A kernel is staged with these if its model has any.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...compiler import Reals, loop, maximum, select, sqrt, switch
from ..context import Step
from ..joints.joint import Joint
from ..joints.table import compiled
from ..spatial import Quat, Vec3, dot, quat_log, quat_matrix, quat_normalize
from ..spatial.rotations import quat_to_ambient, rotation_vector_rate_vjp

LEAST = 1e-30  # lower bound of a squared length


def springs(s: Step, tau: Reals) -> None:
    """Add to tau."""
    if not s.has("spring"):
        return
    for i in loop(1, s.model.nl):
        own, va = s.const.spring[i], s.model.link_v[i]
        for k in loop(va, va + s.model.link_nv[i]):
            v = s.v[k]
            tau[k] = tau[k] - v * (own.d1 * abs(v) + own.d2 * (v * v))
        _by_kind(s, i, partial(_spring, s, i, tau))


def springs_vjp(s: Step, tau_bar: Reals) -> None:
    """Add to the cotangents of q (tangent), v and constants."""
    if not s.has("spring"):
        return
    for i in loop(1, s.model.nl):
        va = s.model.link_v[i]
        for k in loop(va, va + s.model.link_nv[i]):
            v, t = s.v[k], tau_bar[k]
            s.bars.v[k] = s.bars.v[k] - curved_rate(s, i, v) * t
            if s.bars.const is not None:
                bar = s.bars.const.spring[i]
                bar.d1 -= v * abs(v) * t
                bar.d2 -= v * v * v * t
        _by_kind(s, i, partial(_spring_vjp, s, i, tau_bar))


def _by_kind(s: Step, i: Any, call: Callable[[Joint], None]) -> None:
    """Call with the joint of link i."""
    switch(s.model.kind[i], {k: partial(call, joint) for k, joint in compiled(s.has).items()})


# -- dampers at the end of the step --------------------------------------------------------------------------------------
def curved_rate(s: Step, i: Any, v: Any) -> Any:
    """Derivative of a nonlinear damper's force with respect to velocity: 2 d1 |v| + 3 d2 v^2."""
    own = s.const.spring[i]
    return 2.0 * own.d1 * abs(v) + 3.0 * own.d2 * (v * v)


def curved_rate_vjp(s: Step, i: Any, k: Any, rate_bar: Any) -> None:
    """Adjoint of `curved_rate`."""
    own, v = s.const.spring[i], s.v[k]
    s.bars.v[k] = s.bars.v[k] + rate_bar * (select(v < 0.0, -2.0, 2.0) * own.d1 + 6.0 * own.d2 * v)
    if s.bars.const is not None:
        bar = s.bars.const.spring[i]
        bar.d1 += 2.0 * abs(v) * rate_bar
        bar.d2 += 3.0 * (v * v) * rate_bar


# -- springs -------------------------------------------------------------------------------------------------------------
def _stretch(s: Step, i: Any) -> Any:
    """Deviation of an axial joint from its reference."""
    return s.q[s.model.link_q[i]] - s.const.link[i].reference


def _shift(s: Step, i: Any) -> Vec3:
    """Displacement of a free joint from its rest position."""
    return s.q.struct(s.model.link_q[i], Vec3) - s.const.spring[i].rest


def _turned(s: Step, i: Any, joint: Joint) -> Quat:
    """Rotation from the rest pose; that of a ball joint is the identity."""
    q = quat_normalize(s.q.struct(s.model.link_q[i] + joint.straight, Quat))
    return quat_normalize(s.const.spring[i].turn).conjugate @ q if joint.floating else q


def _length(x: Vec3) -> Any:
    """Length of a vector."""
    return sqrt(maximum(dot(x, x), LEAST))


def _pull(s: Step, i: Any, x: Vec3) -> Vec3:
    """Force of the spring at displacement x."""
    own, a = s.const.spring[i], _length(x)
    return x * -(own.k + own.c1 * a + own.c2 * (a * a))


def _pull_vjp(s: Step, i: Any, x: Vec3, bar: Vec3) -> Vec3:
    """Cotangent of x."""
    own, a, along = s.const.spring[i], _length(x), dot(x, bar)
    if s.bars.const is not None:
        const = s.bars.const.spring[i]
        const.k -= along
        const.c1 -= a * along
        const.c2 -= a * a * along
    return bar * -(own.k + own.c1 * a + own.c2 * (a * a)) - x * (along * (own.c1 / a + 2.0 * own.c2))


def _spring(s: Step, i: Any, tau: Reals, joint: Joint) -> None:
    """Add the spring of the joint of link i."""
    va, own = s.model.link_v[i], s.const.spring[i]
    if joint.axial:
        x = _stretch(s, i)
        tau[va] = tau[va] - x * (x * (own.c1 + own.c2 * x))
        return
    if joint.floating:
        tau.put(va, tau.struct(va, Vec3) + _pull(s, i, _shift(s, i)))
    at = va + joint.straight
    tau.put(at, tau.struct(at, Vec3) + _pull(s, i, quat_log(_turned(s, i, joint))))


def _spring_vjp(s: Step, i: Any, tau_bar: Reals, joint: Joint) -> None:
    """Adjoint of `_spring`."""
    va, own = s.model.link_v[i], s.const.spring[i]
    if joint.axial:
        x, t = _stretch(s, i), tau_bar[va]
        if s.bars.const is not None:
            s.bars.const.spring[i].c1 -= x * x * t
            s.bars.const.spring[i].c2 -= x * x * x * t
        _add_stretch_bar(s, i, -(x * (2.0 * own.c1 + 3.0 * own.c2 * x)) * t)
        return
    if joint.floating:
        x = _shift(s, i)
        _add_shift_bar(s, i, _pull_vjp(s, i, x, tau_bar.struct(va, Vec3)))
    phi = quat_log(_turned(s, i, joint))
    _add_turn_bar(s, i, joint, phi, _pull_vjp(s, i, phi, tau_bar.struct(va + joint.straight, Vec3)))


def _add_stretch_bar(s: Step, i: Any, bar: Any) -> None:
    va = s.model.link_v[i]
    s.bars.tangent[va] = s.bars.tangent[va] + bar
    if s.bars.const is not None:
        s.bars.const.link[i].reference -= bar


def _add_shift_bar(s: Step, i: Any, bar: Vec3) -> None:
    va = s.model.link_v[i]
    s.bars.tangent.put(va, s.bars.tangent.struct(va, Vec3) + bar)
    if s.bars.const is not None:
        s.bars.const.spring[i].rest -= bar


def _add_turn_bar(s: Step, i: Any, joint: Joint, phi: Vec3, phi_bar: Vec3) -> None:
    """Add to the cotangents of rotations. A rotation of the rest pose by th equals one of the joint by -R^T th."""
    at = s.model.link_v[i] + joint.straight
    _, turn_bar = rotation_vector_rate_vjp(phi, Vec3.zero(), phi_bar)
    s.bars.tangent.put(at, s.bars.tangent.struct(at, Vec3) + turn_bar)
    if s.bars.const is not None and joint.floating:
        R = quat_matrix(_turned(s, i, joint))
        s.bars.const.spring[i].turn += quat_to_ambient(s.const.spring[i].turn, -(R @ turn_bar))


# -- energies ------------------------------------------------------------------------------------------------------------
def spring_energy(s: Step, i: Any) -> Any:
    """Energy of the springs of the joint of link i, besides k x^2/2 of a hinge or slide."""
    own = s.const.spring[i]

    def of(joint: Joint) -> Any:
        if joint.axial:
            x = _stretch(s, i)
            return x * x * x * (own.c1 / 3.0 + own.c2 * x / 4.0)
        turn = _round_energy(s, i, quat_log(_turned(s, i, joint)))
        return turn + _round_energy(s, i, _shift(s, i)) if joint.floating else turn

    return switch(s.model.kind[i], {k: partial(of, joint) for k, joint in compiled(s.has).items()})


def _round_energy(s: Step, i: Any, x: Vec3) -> Any:
    own, a = s.const.spring[i], _length(x)
    return a * a * (0.5 * own.k + a * (own.c1 / 3.0 + own.c2 * a / 4.0))


def spring_energy_vjp(s: Step, i: Any, bar: Any) -> None:
    """Adjoint of `spring_energy`: the cotangent of a position is minus the force there."""

    def of(joint: Joint) -> None:
        if joint.axial:
            x, own = _stretch(s, i), s.const.spring[i]
            _add_energy_bars(s, i, x, 0.0, bar)
            _add_stretch_bar(s, i, x * x * (own.c1 + own.c2 * x) * bar)
            return
        phi = quat_log(_turned(s, i, joint))
        _add_energy_bars(s, i, _length(phi), 1.0, bar)
        _add_turn_bar(s, i, joint, phi, _pull(s, i, phi) * -bar)
        if joint.floating:
            x = _shift(s, i)
            _add_energy_bars(s, i, _length(x), 1.0, bar)
            _add_shift_bar(s, i, _pull(s, i, x) * -bar)

    _by_kind(s, i, of)


def _add_energy_bars(s: Step, i: Any, a: Any, linear: float, bar: Any) -> None:
    if s.bars.const is not None:
        const = s.bars.const.spring[i]
        const.k += (0.5 * linear) * (a * a) * bar
        const.c1 += a * a * a / 3.0 * bar
        const.c2 += a * a * a * a / 4.0 * bar
