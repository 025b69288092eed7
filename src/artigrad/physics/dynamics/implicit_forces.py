"""Velocity-dependent forces evaluated at the end of the step, for integrators that request them  (theory 7.6).

    (M + h B) w = M a,       B = -d(forces)/dv

a are the accelerations of the step, w those that are integrated. B contains joint damping (`damping`); joint damping
and actuators (`fast`), both on the diagonal; or also transmissions, a fluid, and gyroscopic and Coriolis forces of lone
free bodies (`lone`) or of all (`full`), which make it a matrix (`velocity_matrix`).
"""

from __future__ import annotations

from typing import Any

from ...compiler import Reals, copy, loop
from ..context import Step
from ..joints.joint import Extra
from ..transmissions.transmission import along, clear_line_bars, lines_vjp
from . import articulated, velocity_matrix
from .actuation import by_transmission, depends_on_velocity, drive_of, efforts, velocity_gain, velocity_gain_vjp
from .articulated import clear_forces
from .fluid_derivatives import fluid_derivatives_vjp
from .momentum import mass_times, mass_times_vjp
from .passive import tendon_rate, tendon_rate_vjp
from .springs import curved_rate, curved_rate_vjp
from .transmission_derivatives import transmission_derivatives_vjp

MATRIX = ("lone", "full")


def apply_implicit_forces(s: Step) -> None:
    """Replace ws.qdd = a by w;  with a diagonal B  w = a - (M + h B)^-1 h B a."""
    ws, nv = s.ws, s.model.nv
    velocity_derivatives(s, ws.rate)
    if s.implicit_terms in MATRIX:
        velocity_matrix.fill(s, ws.rate)
        velocity_matrix.factor(s)
        mass_times(s, ws.qdd, ws.implicit_accel)
        velocity_matrix.solve(s, ws.implicit_accel)
        copy(ws.implicit_accel, ws.qdd, nv)
    else:
        for k in loop(nv):
            ws.implicit_accel[k] = s.dt * ws.rate[k] * ws.qdd[k]
        _factor_solve(s, _implicit_diagonal, ws.implicit_accel)
        for k in loop(nv):
            ws.qdd[k] = ws.qdd[k] - ws.implicit_accel[k]


def apply_implicit_forces_vjp(s: Step, w_bar: Reals) -> None:
    """Replace ws.qdd = w by a = w + M^-1 h B w, and w_bar by a_bar = M mu, where (M + h B)^T mu = w_bar.

    ws.implicit_accel keeps w and ws.implicit_mu mu, for `implicit_force_bars`.
    """
    ws, nv, mu = s.ws, s.model.nv, s.ws.implicit_mu
    velocity_derivatives(s, ws.rate)
    copy(ws.qdd, ws.implicit_accel, nv)
    if s.implicit_terms in MATRIX:
        velocity_matrix.fill(s, ws.rate)
        velocity_matrix.times(s, ws.implicit_accel, ws.qdd)  # (M + h B) w = M a
        _factor_solve(s, _plain_diagonal, ws.qdd)
        copy(w_bar, mu, nv)
        velocity_matrix.factor(s)
        velocity_matrix.solve_transposed(s, mu)
        mass_times(s, mu, w_bar)
        return
    for k in loop(nv):
        ws.qdd[k] = s.dt * ws.rate[k] * ws.implicit_accel[k]
    _factor_solve(s, _plain_diagonal, ws.qdd)
    for k in loop(nv):
        ws.qdd[k] = ws.implicit_accel[k] + ws.qdd[k]
        mu[k] = w_bar[k]
    _factor_solve(s, _implicit_diagonal, mu)
    for k in loop(nv):
        w_bar[k] = w_bar[k] - s.dt * ws.rate[k] * mu[k]


def implicit_force_bars(s: Step) -> None:
    """Remaining part of the adjoint: that of  mu . (M (a - w) - h B w)  at fixed a, w and mu."""
    ws, mu = s.ws, s.ws.implicit_mu
    for k in loop(s.model.nv):
        ws.rate[k] = -(s.dt * mu[k] * ws.implicit_accel[k])
        ws.qdd[k] = ws.qdd[k] - ws.implicit_accel[k]
    lines = s.has("lines") and s.implicit_terms in MATRIX
    if lines:
        clear_line_bars(s)
        transmission_derivatives_vjp(s, ws.implicit_accel, mu)
        for t in loop(s.model.nline):
            tendon_rate_vjp(s, t, ws.line_rate[t])
    velocity_derivatives_vjp(s, ws.rate)
    if lines:
        lines_vjp(s)
    if s.has("fluid") and s.implicit_terms in MATRIX:
        fluid_derivatives_vjp(s, ws.implicit_accel, mu)
    mass_times_vjp(s, ws.qdd, mu)
    if s.implicit_terms in MATRIX:
        velocity_matrix.bias_derivatives_vjp(s, ws.implicit_accel, mu)


# -- the diagonal of B -----------------------------------------------------------------------------------------------------
def velocity_derivatives(s: Step, rate: Reals) -> None:
    """Diagonal of B: joint damping; for `fast` and `full` also velocity gains of actuators not at a limit of their force."""
    for i in loop(1, s.model.nl):
        va, damping = s.model.link_v[i], s.const.link[i].damping
        for k in loop(va, va + s.model.link_nv[i]):
            rate[k] = damping + curved_rate(s, i, s.v[k]) if s.has("spring") else damping
    if s.implicit_terms == "damping":
        return
    if s.has("lines"):
        _transmission_damping(s)
    if s.has("effort"):
        efforts(s)
    for j in loop(s.model.nu):
        row, k, d = s.const.actuator[j], s.model.act_v[j], drive_of(s, j)
        slow = depends_on_velocity(s, j, d) * (row.gear * row.gear * velocity_gain(s, j, d))

        def on_joint(k: Any = k, slow: Any = slow) -> None:
            rate[k] = rate[k] - slow

        def on_line(t: Any, slow: Any = slow) -> None:
            s.ws.line_rate[t] = s.ws.line_rate[t] - slow

        by_transmission(s, j, on_joint, on_line)


def _transmission_damping(s: Step) -> None:
    """Compute ws.line_rate, the damping of tendons; other transmissions have none."""
    for t in loop(s.model.nline):
        s.ws.line_rate[t] = tendon_rate(s, t, along(s, t, s.v) if s.has("curve") else 0.0)


def velocity_derivatives_vjp(s: Step, rate_bar: Reals) -> None:
    """Add to the cotangents of constants, and of q, v, act and u if gains depend on the motion.

    Those of the rates of transmissions are in ws.line_rate. Whether an actuator is at its limit is not differentiated.
    """
    if s.bars.const is not None:
        for i in loop(1, s.model.nl):
            va, bar = s.model.link_v[i], s.bars.const.link[i]
            for k in loop(va, va + s.model.link_nv[i]):
                bar.damping = bar.damping + rate_bar[k]
    if s.has("spring"):
        for i in loop(1, s.model.nl):
            va = s.model.link_v[i]
            for k in loop(va, va + s.model.link_nv[i]):
                curved_rate_vjp(s, i, k, rate_bar[k])
    if s.implicit_terms == "damping" or (s.bars.const is None and not s.has("slope", "muscle")):
        return
    if s.has("effort"):
        efforts(s)
    for j in loop(s.model.nu):
        row, d = s.const.actuator[j], drive_of(s, j)
        gain_input = depends_on_velocity(s, j, d) * (_rate_bar(s, j, rate_bar) * row.gear)
        if s.bars.const is not None:
            s.bars.const.actuator[j].gear -= 2.0 * gain_input * velocity_gain(s, j, d)
        velocity_gain_vjp(s, j, d, -(gain_input * row.gear))


def _rate_bar(s: Step, j: Any, rate_bar: Reals) -> Any:
    return by_transmission(s, j, lambda: rate_bar[s.model.act_v[j]], lambda t: s.ws.line_rate[t])


def _implicit_diagonal(s: Step, i: Any) -> Extra:
    own, va = s.const.link[i], s.model.link_v[i]
    return lambda k: own.armature + s.dt * s.ws.rate[va + k]


def _plain_diagonal(s: Step, i: Any) -> Extra:
    own = s.const.link[i]
    return lambda k: own.armature


def _factor_solve(s: Step, diagonal: articulated.Diagonal, x: Reals) -> None:
    """Compute x <- (M + diagonal)^-1 x."""
    clear_forces(s)
    articulated.factor(s, diagonal)
    articulated.solve(s, x, x)
