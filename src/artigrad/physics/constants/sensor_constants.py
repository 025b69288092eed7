"""Parameters that only sensors read: masses, inertias and axes of bodies, quaternions of sites, the magnetic field."""

from __future__ import annotations

from ...compiler import loop
from ..spatial import Quat, Sym3, Vec3
from .constants_context import ConstantsContext


def sensed(m: ConstantsContext) -> None:
    """Copy the rows of parameters."""
    fields = m.fields
    for b in loop(m.model.nsensed):
        row = m.out.sensed[b]
        row.mass, row.com = fields.real("mass", b), fields.struct("com", b, Vec3)
        row.I = fields.struct("inertia", b, Sym3)
        row.rotation, row.axis = fields.struct("rotation", b, Quat), fields.struct("axis", b, Vec3)
    for k in loop(m.model.nturned):
        m.out.site_turn[k].rotation = fields.struct("site_rotation", k, Quat)
    for k in loop(m.model.nmagnetic):
        m.out.magnetic[k].field = fields.struct("magnetic", k, Vec3)


def sensed_vjp(m: ConstantsContext) -> None:
    """Add to the cotangents of masses, centers of mass and inertias, after `bodies_vjp`; set that of the magnetic field.

    Rotations and axes select a sign, which is not differentiated.
    """
    bars = m.bars
    for b in loop(m.model.nsensed):
        row = m.out_bar.sensed[b]
        bars.put_real("mass", b, bars.real("mass", b) + row.mass)
        bars.put("com", b, bars.struct("com", b, Vec3) + row.com)
        bars.put("inertia", b, bars.struct("inertia", b, Sym3) + row.I)
    for k in loop(m.model.nmagnetic):
        bars.put("magnetic", k, m.out_bar.magnetic[k].field)
