"""Activations: actuator states that follow the control, and the input of an actuator's gain.

    integrator   a' = u
    filter       a' = (u - a)/tau
    muscle       a' = (u - a)/tau,  tau between rise and fall times, which depend on a

u is the control within its range. After a step  a+ = a + dt a',  for filterexact  a + tau (1 - exp(-dt/tau)) a',
within its range. Neither depends on the motion, except for the full turns by which that of an angular servo is wrapped
(`circle`).
"""

from __future__ import annotations

from typing import Any

from ...compiler import clamp, exp, loop, maximum, select, switch
from ..context import Step
from ..spatial import bounded_vjp
from ..tables import ACTIVATION, CONTROL, EARLY
from .circle import wrap_angle, wrap_angle_vjp

LEAST = 1e-15
INTEGRATOR, FILTER, FILTEREXACT, MUSCLE = range(4)  # of DYNAMICS


def control(s: Step, j: Any) -> Any:
    """Control of actuator j, within its range."""
    row = s.const.actuator[j]
    return clamp(s.u[j], row.low, row.high)


def control_vjp(s: Step, j: Any, bar: Any) -> None:
    """Adjoint of `control`."""
    row = s.const.actuator[j]
    u_bar, low_bar, high_bar = bounded_vjp(s.u[j], row.low, row.high, bar)
    s.bars.u[j] = s.bars.u[j] + u_bar
    if s.bars.const is not None:
        s.bars.const.actuator[j].low += low_bar
        s.bars.const.actuator[j].high += high_bar


# -- input of the gain
# -------------------------------------------------------------------------------------------------------
def gain_input(s: Step, j: Any) -> Any:
    """Input of the gain of actuator j: its control, or its activation."""
    if not s.has("activation"):
        return control(s, j)
    k = s.model.act_state[j]
    cases = {
        CONTROL: lambda: control(s, j),
        ACTIVATION: lambda: s.act[k],
        EARLY: lambda: advanced(s, k, rate(s, k)),
    }
    return switch(s.model.act_input[j], cases)


def gain_input_vjp(s: Step, j: Any, bar: Any) -> None:
    """Adjoint of `gain_input`."""
    if not s.has("activation"):
        return control_vjp(s, j, bar)
    k = s.model.act_state[j]

    def activation() -> None:
        s.bars.act[k] = s.bars.act[k] + bar

    def early() -> None:
        a_bar, rate_bar = advanced_vjp(s, k, rate(s, k), bar)
        s.bars.act[k] = s.bars.act[k] + a_bar
        rate_vjp(s, k, rate_bar)

    switch(s.model.act_input[j], {CONTROL: lambda: control_vjp(s, j, bar), ACTIVATION: activation, EARLY: early})


# -- rates -----------------------------------------------------------------------------------------------------------------
def rate(s: Step, k: Any) -> Any:
    """Derivative a' of activation k."""
    u, a = control(s, s.model.state_actuator[k]), s.act[k]

    def filtered() -> Any:
        return (wrap_angle(s, s.model.state_actuator[k], u, a) - a) / maximum(LEAST, s.const.activation[k].rise)

    def muscle() -> Any:
        m = _Muscle(s, k, u, a)
        return m.d / m.tau

    cases = {INTEGRATOR: lambda: u, FILTER: filtered, FILTEREXACT: filtered, MUSCLE: muscle}
    return switch(s.model.state_dynamics[k], cases)


def rate_vjp(s: Step, k: Any, bar: Any) -> None:
    """Add to the cotangents of act, u and constants."""
    j = s.model.state_actuator[k]
    u, a, own = control(s, j), s.act[k], s.const.activation[k]

    def add(a_bar: Any, u_bar: Any) -> None:
        s.bars.act[k] = s.bars.act[k] + a_bar
        control_vjp(s, j, u_bar)

    def filtered() -> None:
        tau = maximum(LEAST, own.rise)
        add(-(bar / tau), bar / tau)
        wrap_angle_vjp(s, j, u, bar / tau, a)
        if s.bars.const is not None:
            d = wrap_angle(s, j, u, a) - a
            s.bars.const.activation[k].rise += select(own.rise > LEAST, -(d * bar) / (tau * tau), 0.0)

    def muscle() -> None:
        m = _Muscle(s, k, u, a)
        d_bar, tau_bar = bar / m.tau, select(m.tau > LEAST, -(bar * m.d) / (m.tau * m.tau), 0.0)
        up_bar, down_bar = m.share * tau_bar, (1.0 - m.share) * tau_bar
        x_bar = 30.0 * (m.x * m.x) * ((1.0 - m.x) * (1.0 - m.x)) * ((m.up - m.down) * tau_bar)
        d_bar = d_bar + x_bar / m.width
        slow_bar = up_bar * own.rise - down_bar * own.fall / (m.slow * m.slow)
        add(select((a > 0.0) & (a < 1.0), 1.5 * slow_bar, 0.0) - d_bar, select((u > 0.0) & (u < 1.0), d_bar, 0.0))
        if s.bars.const is not None:
            const = s.bars.const.activation[k]
            const.rise += up_bar * m.slow
            const.fall += down_bar / m.slow
            const.width += select(own.width > LEAST, -(x_bar * m.d) / (m.width * m.width), 0.0)

    cases = {INTEGRATOR: lambda: add(0.0, bar), FILTER: filtered, FILTEREXACT: filtered, MUSCLE: muscle}
    switch(s.model.state_dynamics[k], cases)


class _Muscle:
    """Time constant of a muscle.

    The higher the activation, the slower it rises and the faster it falls. Between rise and fall the time constant is
    interpolated smoothly over a range of u - a, or switches if the range is zero.
    """

    def __init__(self, s: Step, k: Any, u: Any, a: Any):
        own = s.const.activation[k]
        self.slow = 0.5 + 1.5 * clamp(a, 0.0, 1.0)
        self.up, self.down = own.rise * self.slow, own.fall / self.slow
        self.d, self.width = clamp(u, 0.0, 1.0) - a, maximum(LEAST, own.width)
        x = self.x = clamp(self.d / self.width + 0.5, 0.0, 1.0)
        self.share = x * x * x * (x * (6.0 * x - 15.0) + 10.0)
        self.tau = maximum(LEAST, self.down + (self.up - self.down) * self.share)


# -- steps -----------------------------------------------------------------------------------------------------------------
def _reach(s: Step, k: Any) -> tuple[Any, Any]:
    """Return the factor of a rate over a step, and its derivative with respect to the time constant."""
    rise = s.const.activation[k].rise

    def exact() -> tuple[Any, Any]:
        tau = maximum(LEAST, rise)
        left = exp(-(s.dt / tau))
        return tau * (1.0 - left), select(rise > LEAST, 1.0 - left - s.dt / tau * left, 0.0)

    def euler() -> tuple[Any, Any]:
        return s.dt, 0.0

    return switch(s.model.state_dynamics[k], {INTEGRATOR: euler, FILTER: euler, FILTEREXACT: exact, MUSCLE: euler})


def advanced(s: Step, k: Any, rate: Any) -> Any:
    """Activation k after the step, a+."""
    own = s.const.activation[k]
    return wrap_angle(s, s.model.state_actuator[k], clamp(s.act[k] + _reach(s, k)[0] * rate, own.low, own.high))


def advanced_vjp(s: Step, k: Any, rate: Any, bar: Any) -> tuple[Any, Any]:
    """Return the cotangents of a and of its rate; add to those of constants."""
    own, (reach, slope) = s.const.activation[k], _reach(s, k)
    reached = s.act[k] + reach * rate
    wrap_angle_vjp(s, s.model.state_actuator[k], clamp(reached, own.low, own.high), bar)
    a_bar, low_bar, high_bar = bounded_vjp(reached, own.low, own.high, bar)
    if s.bars.const is not None:
        const = s.bars.const.activation[k]
        const.low += low_bar
        const.high += high_bar
        const.rise += slope * rate * a_bar
    return a_bar, reach * a_bar


def advance(s: Step) -> None:
    """Advance the activations s.act to the end of the step."""
    if s.has("activation"):
        for k in loop(s.model.na):
            s.act[k] = advanced(s, k, rate(s, k))


def advance_vjp(s: Step) -> None:
    """Replace bars.act of the next state by that of the present one."""
    if s.has("activation"):
        for k in loop(s.model.na):
            s.bars.act[k], rate_bar = advanced_vjp(s, k, rate(s, k), s.bars.act[k])
            rate_vjp(s, k, rate_bar)
