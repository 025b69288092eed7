"""Accelerations with or without contact: which forward and which way back a kernel takes is decided here, while staging."""

from __future__ import annotations

from ..dynamics import Method, accelerate, accelerate_again, accelerate_vjp
from ..staging import Reals
from ..tables import Bars, Constants, Topology, Workspace
from . import accelerate_in_contact, impulses_again, note_margin
from .implicit import accelerate_in_contact_vjp
from .reverse import accelerate_in_contact_reverse, impulses_taped

AGAIN = {"implicit": impulses_again, "reverse": impulses_taped}
BACK = {"implicit": accelerate_in_contact_vjp, "reverse": accelerate_in_contact_reverse}


def total_acceleration(
    topology: Topology, const: Constants, method: Method, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """ws.qdd over the next step"""
    forward = accelerate_in_contact if method.contact else accelerate
    forward(topology, const, method, q, v, u, ws)


def total_acceleration_vjp(
    topology: Topology,
    const: Constants,
    method: Method,
    q: Reals,
    v: Reals,
    u: Reals,
    ws: Workspace,
    qdd_bar: Reals,
    bars: Bars,
) -> None:
    """ws.qdd and ws.v_next are known. Adds to the cotangents of v, u and constants; sets that of q."""
    touch = method.contact
    again, back = (AGAIN[touch.gradient], BACK[touch.gradient]) if touch else (accelerate_again, accelerate_vjp)
    if not method.filled:
        again(topology, const, method, q, v, u, ws)
        if touch:
            note_margin(touch.contacts)
    back(topology, const, method, q, v, u, ws, qdd_bar, bars)
