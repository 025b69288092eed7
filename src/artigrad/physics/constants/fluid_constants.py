"""Constants of gravity compensation and fluids: compensated masses of links, boxes in a fluid, and the fluid."""

from __future__ import annotations

from typing import Any

from ...compiler import loop
from ..spatial import Force, Quat, Transform, Vec3, compose_vjp, dot, pose, pose_vjp
from .constants_context import ConstantsContext

COEFFICIENTS = ("blunt", "slender", "angular", "kutta", "magnus")


def fluid_and_gravcomp(m: ConstantsContext) -> None:
    """m = sum of fraction mass,  h = sum of fraction mass c;  boxes in the frames of their links."""
    fields = m.fields
    if m.has("compensation"):
        for i in loop(m.model.nl):
            m.out.lifted[i].m, m.out.lifted[i].h = 0.0, Vec3.zero()
        for b in loop(m.model.nb):
            row, mass = m.out.lifted[m.model.link_of_body[b + 1]], _compensated_mass(m, b)
            row.m += mass
            row.h += m.out.body[b].com * mass
    if m.has("fluid"):
        medium = m.out.medium[0]
        medium.density, medium.viscosity = fields.real("density", 0), fields.real("viscosity", 0)
        medium.wind = fields.struct("wind", 0, Vec3)
        for n in loop(m.model.nfluid):
            b = m.model.fluid_body[n]
            axes, own = _axes(m, b)
            m.out.fluid[n].X = Transform((axes @ own).R, m.out.body[b - 1].com)
            m.out.fluid[n].box = fields.struct("fluid_box", b - 1, Vec3)
    if m.has("ellipsoid"):
        for n in loop(m.model.nwet):
            row = m.out.wet[n]
            for k, name in enumerate(COEFFICIENTS):
                setattr(row, name, fields.real("fluid_coefficients", n, 5, k))
            row.mass, row.inertia = (fields.struct(f"virtual_{x}", n, Vec3) for x in ("mass", "inertia"))


def fluid_and_gravcomp_vjp(m: ConstantsContext) -> None:
    """Add the cotangents of fluid and gravity compensation, of centers of mass and of body frames.

    Those of masses are added by `compensated_masses_vjp`.
    """
    fields, bars = m.fields, m.bars
    if m.has("compensation"):
        for b in loop(m.model.nb):
            bar = m.out_bar.lifted[m.model.link_of_body[b + 1]]
            m.out_bar.body[b].com += bar.h * _compensated_mass(m, b)
            bars.put_real("gravity_compensation", b, _compensated_mass_bar(m, b) * fields.real("mass", b))
    if m.has("fluid"):
        medium = m.out_bar.medium[0]
        bars.put_real("density", 0, medium.density)
        bars.put_real("viscosity", 0, medium.viscosity)
        bars.put("wind", 0, medium.wind)
        for n in loop(m.model.nfluid):
            b, bar, X = m.model.fluid_body[n], m.out_bar.fluid[n], m.out.fluid[n].X
            axes, own = _axes(m, b)
            B_bar, own_bar = compose_vjp(axes, own, Force(bar.X.n, Vec3.zero()))
            m.bodies[b].B_bar += B_bar
            m.out_bar.body[b - 1].com += X.R @ bar.X.f
            _, rotation_bar = pose_vjp(Vec3.zero(), fields.struct("fluid_rotation", b - 1, Quat), own_bar)
            bars.put("fluid_rotation", b - 1, rotation_bar)
            bars.put("fluid_box", b - 1, bar.box)
    if m.has("ellipsoid"):
        for n in loop(m.model.nwet):
            row = m.out_bar.wet[n]
            for k, name in enumerate(COEFFICIENTS):
                bars.put_real("fluid_coefficients", n, getattr(row, name), 5, k)
            bars.put("virtual_mass", n, row.mass)
            bars.put("virtual_inertia", n, row.inertia)


def compensated_masses_vjp(m: ConstantsContext) -> None:
    """Add to the cotangents of masses, after `bodies_vjp` has set them."""
    if m.has("compensation"):
        for b in loop(m.model.nb):
            more = _compensated_mass_bar(m, b) * m.fields.real("gravity_compensation", b)
            m.bars.put_real("mass", b, m.bars.real("mass", b) + more)


def _compensated_mass(m: ConstantsContext, b: Any) -> Any:
    """Compensated mass of body b."""
    return m.fields.real("mass", b) * m.fields.real("gravity_compensation", b)


def _compensated_mass_bar(m: ConstantsContext, b: Any) -> Any:
    """Cotangent of the compensated mass of body b."""
    bar = m.out_bar.lifted[m.model.link_of_body[b + 1]]
    return bar.m + dot(bar.h, m.out.body[b].com)


def _axes(m: ConstantsContext, b: Any) -> tuple[Transform, Transform]:
    """Axes of body b (counted from 1) in its link, and those of its box in the body."""
    own = pose(Vec3.zero(), m.fields.struct("fluid_rotation", b - 1, Quat))
    return Transform(m.bodies[b].B.R, Vec3.zero()), own
