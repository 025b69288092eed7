"""Constants of transmissions: tendons, their segments, and gears of actuators."""

from __future__ import annotations

from typing import Any

from ...compiler import loop, maximum, switch
from ..constraints.soft.impedance import LEAST, Soft, SolImp, SolRef, impedance, impedance_vjp, soften, soften_vjp
from ..spatial import Vec3
from .constants_context import NO_LIMIT, ConstantsContext, add_invweight_bar

_NUMBERS = {"stiffness": "tendon_stiffness", "damping": "tendon_damping", "dry": "tendon_dry_friction"}
_NUMBERS |= {"margin": "tendon_limit_margin"}
_CURVES = {("c1", "c2"): "tendon_stiffness_curve", ("d1", "d2"): "tendon_damping_curve"}
_RANGES = _CURVES | {("rest_low", "rest_high"): "tendon_rest", ("low", "high"): "tendon_limit"}


def _softness(m: ConstantsContext, t: Any, name: str) -> tuple[SolRef, SolImp]:
    """Reference and impedance parameters of the limit or dry friction of a tendon."""
    return m.fields.struct(f"tendon_{name}_solref", t, SolRef), m.fields.struct(f"tendon_{name}_solimp", t, SolImp)


def lines(m: ConstantsContext) -> None:
    """Constants of tendons, of segments, and of the gears of actuators with a transmission."""
    for t in loop(m.model.nline):
        row = m.out.line[t]
        for name in (*_NUMBERS, "g", "b", "D", "rest_low", "rest_high", "rod", "c1", "c2", "d1", "d2"):
            setattr(row, name, 0.0)
        row.low, row.high, row.limit, row.force, row.torque = -NO_LIMIT, NO_LIMIT, Soft.zero(), Vec3.zero(), Vec3.zero()
    for t in loop(m.model.ntendon):
        row = m.out.line[t]
        for name, field in _NUMBERS.items():
            setattr(row, name, m.fields.real(field, t))
        for names, field in _RANGES.items():
            for k, name in enumerate(names):
                setattr(row, name, m.fields.real(field, t, 2, k))
        row.limit = soften(*_softness(m, t, "limit"), m.numbers.least)
        row.g = 1.0 / maximum(m.fields.real("tendon_invweight0", t), LEAST)
        soft = soften(*_softness(m, t, "dry"), m.numbers.least)
        d = impedance(soft, 0.0, True).d
        row.b, row.D = soft.b, d / (1.0 - d) * row.g
    for n in loop(m.model.npiece):
        m.out.piece[n].scale, m.out.piece[n].radius = (m.fields.real(f"piece_{k}", n) for k in ("scale", "radius"))
    for t in loop(m.model.ntendon, m.model.nline):
        row, at = m.out.line[t], m.fields.at("gear_axes", m.structure.line_actuator[t], 6)
        row.force, row.torque = m.fields.reals.struct(at, Vec3), m.fields.reals.struct(at + 3, Vec3)
        row.rod = m.fields.real("crank_length", m.structure.line_actuator[t])


def lines_vjp(m: ConstantsContext) -> None:
    """Adjoint of `lines`."""
    bars = m.bars
    for t in loop(m.model.ntendon):
        row, bar = m.out.line[t], m.out_bar.line[t]
        for name, field in _NUMBERS.items():
            bars.put_real(field, t, getattr(bar, name))
        for names, field in _RANGES.items():
            for k, name in enumerate(names):
                bars.put_real(field, t, getattr(bar, name), 2, k)
        ref, imp = _softness(m, t, "limit")
        ref_bar, imp_bar, _ = soften_vjp(ref, imp, m.numbers.least, bar.limit)
        bars.put("tendon_limit_solref", t, ref_bar)
        bars.put("tendon_limit_solimp", t, imp_bar)
        ref, imp = _softness(m, t, "dry")
        soft = soften(ref, imp, m.numbers.least)
        d = impedance(soft, 0.0, True).d
        soft_bar = impedance_vjp(soft, 0.0, True, bar.D * row.D / (d * (1.0 - d)))
        ref_bar, imp_bar, _ = soften_vjp(
            ref, imp, m.numbers.least, soft_bar + Soft(0.0, bar.b, 0.0, 0.0, 0.0, 0.0, 0.0)
        )
        bars.put("tendon_dry_solref", t, ref_bar)
        bars.put("tendon_dry_solimp", t, imp_bar)
        add_invweight_bar(m, "tendon_invweight0", t, row.g, bar.g + bar.D * row.D / row.g)
    for n in loop(m.model.npiece):
        bars.put_real("piece_scale", n, m.out_bar.piece[n].scale)
        bars.put_real("piece_radius", n, m.out_bar.piece[n].radius)
    for t in loop(m.model.ntendon, m.model.nline):
        bar, at = m.out_bar.line[t], bars.at("gear_axes", m.structure.line_actuator[t], 6)
        bars.reals.put(at, bar.force)
        bars.reals.put(at + 3, bar.torque)
        bars.put_real("crank_length", m.structure.line_actuator[t], bar.rod)


def tendon_invweight(m: ConstantsContext, t: Any) -> Any:
    """Inverse weight of a tendon, counted from 1; zero for 0."""
    return switch(m.structure.tendon_counts[t], {0: lambda: 0.0, 1: lambda: m.fields.real("tendon_invweight0", t - 1)})


def add_tendon_invweight_bar(m: ConstantsContext, t: Any, bar: Any) -> None:
    """Adjoint of `tendon_invweight`."""

    def add() -> None:
        m.bars.put_real("tendon_invweight0", t - 1, m.bars.real("tendon_invweight0", t - 1) + bar)

    switch(m.structure.tendon_counts[t], {0: lambda: None, 1: add})
