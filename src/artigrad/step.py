"""One step, and the same step backwards. Read this first.

    stage           reads           writes                                 where
    1 kinematics    q, v            poses, axes, velocities, inertias      kinematics.py
    2 dynamics      q, v, u         factor of M, free accelerations        dynamics/
    3 collide       poses           gaps, points, frames                   collision/
    4 contact       factor, gaps    impulses                               contact/
    5 integrate     q, v, qdd       the next q and v                       integrate.py

A model that can touch nothing has no stages 3 and 4. A step updates q and v in place; its adjoint turns the cotangents of
the next state into those of the present one, in place. Only q, v and u of a step are kept: the adjoint runs stages 1 to
4 again.
"""

from __future__ import annotations

from typing import Any

from . import integrate
from .contact import Touch
from .dynamics import FACTOR, Method
from .options import Options
from .staging import Reals
from .tables import Bars, Constants, Topology, Workspace


def method_of(options: Options, dt: Any, touch: Touch | None) -> Method:
    """How accelerations of a step are found."""
    return Method(FACTOR[options.factor], integrate.damping_dt(options, dt), touch)


def step(
    topology: Topology,
    const: Constants,
    options: Options,
    dt: Any,
    q: Reals,
    v: Reals,
    u: Reals,
    ws: Workspace,
    touch: Touch | None = None,
) -> None:
    """(q, v) <- the state one dt later under control u"""
    method = method_of(options, dt, touch)
    integrate.FORWARD[options.integrator](topology, const, method, dt, q, v, u, ws)


def step_vjp(
    topology: Topology,
    const: Constants,
    options: Options,
    dt: Any,
    q: Reals,
    v: Reals,
    u: Reals,
    ws: Workspace,
    q_bar: Reals,
    bars: Bars,
    touch: Touch | None = None,
) -> None:
    """(q_bar, bars.v): those of the next state come in, those of the present one go out; adds to bars.u and bars.const.
    q_bar is ambient."""
    method = method_of(options, dt, touch)
    integrate.BACKWARD[options.integrator](topology, const, method, dt, q, v, u, ws, q_bar, bars)
