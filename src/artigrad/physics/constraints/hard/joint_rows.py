"""The rows of a joint that has limits or dry friction: a contact of the joint with itself.

The first row is the limit that is nearer where the step leads to, one-sided; the second the dry friction, boxed. The third has
no use.
"""

from __future__ import annotations

from typing import Any

from ....compiler import carry, counter, loop, minimum, select, when_any
from ...collision.contact_geometry import FAR
from ...context import Step
from ...spatial import Mat3, Vec3
from ..paths import put_entries, put_path
from .contact import reach, within
from .contact_problem import B_SIDE
from .target_velocity import rest_velocity


def gather(s: Step, g: Any, count: counter, kind: int) -> None:
    """The joints of group g that are near a limit or have dry friction."""
    problem = s.constraints
    for k in loop(problem.joint_first[g], problem.joint_first[g + 1]):
        i = problem.joint[k]
        own, x, v = s.const.link[i], s.q[s.model.link_q[i]], s.v[s.model.link_v[i]]
        dry = s.const.dof[s.model.link_v[i]].dry
        below, above = x - own.low, own.high - x
        low_ahead = below + s.dt * v < above - s.dt * v  # the limit that is nearer where the step leads to
        phi, closing = minimum(select(low_ahead, below, above), FAR), select(low_ahead, -v, v)
        near = phi < reach(s, closing)
        wanted = select(near, 1.0, select(dry > 0.0, 1.0, 0.0))
        for _ in when_any(wanted > 0.5):
            n = count.value
            row = problem.row[n]
            sign = select(low_ahead, 1.0, -1.0)
            row.p = row.p_a = Vec3.zero()
            row.phi, row.R = within(near, phi), Mat3(sign, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
            row.mu, row.e, row.bound = 0.0, 0.0, dry * s.dt
            problem.link_a[n], problem.link_b[n] = 0, i
            problem.pair[n], problem.source[n], problem.kind[n] = 0, k, kind
            problem.in_group[n] = g
            count.value = n + 1


def rows(s: Step, c: Any) -> tuple[Vec3, Vec3]:
    """J v, and J of the free accelerations; leaves Z. The first row sees +-v, the second v."""
    problem = s.constraints
    R, i = problem.row[c].R, problem.link_b[c]
    k, free = s.model.link_v[i], carry(Vec3.zero())
    entries = (R.xx, 1.0, 0.0)
    dof = s.dof[k]
    put_entries(s, c, B_SIDE, k, [x * problem.root[k] for x in entries], free)
    forces = tuple(-(dof.U * (dof.dinv * x)) for x in entries)
    put_path(s, c, B_SIDE, s.model.parent[i], forces, free)
    return Vec3(R.xx * s.v[k], s.v[k], 0.0), free.value


def inverse_mass(s: Step, c: Any) -> Any:
    """The inverse mass that the model gives the degree of freedom."""
    return 1.0 / s.const.link[s.constraints.link_b[c]].limit_g


def inverse_mass_bar(s: Step, c: Any, bar: Any) -> None:
    """The adjoint of `inverse_mass`."""
    i = s.constraints.link_b[c]
    g = s.const.link[i].limit_g
    assert s.bars.const is not None
    s.bars.const.link[i].limit_g -= bar / (g * g)


def bars(s: Step, c: Any) -> None:
    """phi = +-(q - limit);  row 0 sees +-v, row 1 sees v"""
    problem = s.constraints
    row = problem.row[c]
    k, sign, nu = s.model.link_v[problem.link_b[c]], row.R.xx, row.nu * (1.0 / s.dt)
    _, slope = rest_velocity(s, row.phi)
    both = nu + row.lam * (row.eta / s.dt)  # paired with v+ and, for the work of impulses, with v
    s.bars.v[k] = s.bars.v[k] - (sign * both.x + both.y)
    dry_bar = row.slide_sign.y * (s.ws.mu[k] - row.eta * row.change.y)  # bound = dt dry, and J y = mu/dt
    _limit_bars(s, c, nu.x * slope, dry_bar)


def jacobian_bars(s: Step, c: Any) -> None:
    """Add the cotangents of the target and of the bound, for the adjoint of the sweeps."""
    row = s.constraints.row[c]
    k, b_bar = s.model.link_v[s.constraints.link_b[c]], row.b_bar
    s.bars.v[k] = s.bars.v[k] + row.R.xx * b_bar.x + b_bar.y
    _, slope = rest_velocity(s, row.phi)
    phi_bar = -(b_bar.x * slope)
    _limit_bars(s, c, phi_bar, row.bound_bar * s.dt)


def _limit_bars(s: Step, c: Any, phi_bar: Any, dry_bar: Any) -> None:
    """Add the cotangents of a joint's gap and dry friction to its position and parameters."""
    i, sign = s.constraints.link_b[c], s.constraints.row[c].R.xx
    k = s.model.link_v[i]
    s.bars.tangent[k] = s.bars.tangent[k] + sign * phi_bar
    if s.bars.const is not None:
        bar = s.bars.const.link[i]
        low = select(sign > 0.0, 1.0, 0.0)
        bar.low -= phi_bar * low
        bar.high += phi_bar * (1.0 - low)
        s.bars.const.dof[k].dry += dry_bar
