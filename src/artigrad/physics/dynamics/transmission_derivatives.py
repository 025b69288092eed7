"""Velocity derivatives of forces along transmissions: B has  rate moment moment^T  of each, on the entries of the tree.

Entries between different branches are left out, as in MuJoCo.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...compiler import Reals, carry, climb, loop
from ..context import Step
from ..transmissions.attachment import entries


def _spread(s: Step, t: Any) -> None:
    """Set ws.dense to the moment of transmission t over its degrees of freedom and their ancestors."""
    _clear(s, t, s.ws.dense)
    for e, k in entries(s, t):
        s.ws.dense[k] = s.ws.dense[k] + s.ws.moment[e]


def _clear(s: Step, t: Any, x: Reals) -> None:
    """Set x to zero for the degrees of freedom of transmission t and their ancestors."""
    for _, k in entries(s, t):
        for j in climb(s.model.dof_parent, k + 1):
            x[j - 1] = 0.0


def _pairs(s: Step, t: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (degree of freedom k of transmission t, an ancestor j of it): the stored off-diagonal entries."""
    for _, k in entries(s, t):
        for j in climb(s.model.dof_parent, s.model.dof_parent[k + 1]):
            yield k, j - 1


def add_transmission_derivatives(s: Step) -> None:
    """Add h rate moment moment^T to ws.M and ws.upper."""
    m, M, upper, dense = s.model, s.ws.M, s.ws.upper, s.ws.dense
    for t in loop(m.nline):
        _spread(s, t)
        h = s.dt * s.ws.line_rate[t]
        for _, k in entries(s, t):
            at = m.dof_row[k] + m.dof_depth[k]
            M[at] = M[at] + h * dense[k] * dense[k]
        for k, j in _pairs(s, t):
            at, more = m.dof_row[k] + m.dof_depth[j], h * dense[k] * dense[j]
            M[at], upper[at] = M[at] + more, upper[at] + more


def transmission_derivatives_vjp(s: Step, w: Reals, mu: Reals) -> None:
    """Add the cotangents of  -h mu . B w  to those of moments; those of rates go to ws.line_rate."""
    m, c, bar = s.model, s.ws.dense, s.ws.dense_bar
    for t in loop(m.nline):
        _spread(s, t)
        rate, rate_bar = s.ws.line_rate[t], carry(0.0)
        _clear(s, t, bar)
        for _, k in entries(s, t):
            x = -(s.dt * mu[k] * w[k])
            rate_bar.value = rate_bar.value + x * c[k] * c[k]
            bar[k] = bar[k] + 2.0 * rate * x * c[k]
        for k, j in _pairs(s, t):
            x = -(s.dt * (mu[k] * w[j] + mu[j] * w[k]))
            rate_bar.value = rate_bar.value + x * c[k] * c[j]
            bar[k] = bar[k] + rate * x * c[j]
            bar[j] = bar[j] + rate * x * c[k]
        s.ws.line_rate[t] = rate_bar.value
        for e, k in entries(s, t):
            s.ws.moment_bar[e] = s.ws.moment_bar[e] + bar[k]
