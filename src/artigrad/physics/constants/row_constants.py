"""Constants of constraint rows: dry friction, contact parameters of pairs, pair groups and equalities."""

from __future__ import annotations

from typing import Any

from ...compiler import carry, loop, maximum, minimum, select, switch, target
from ..collision.contact_geometry import FAR
from ..constraints.soft.impedance import (
    LEAST,
    Soft,
    SolImp,
    SolRef,
    impedance,
    impedance_vjp,
    mix_ref,
    mix_ref_vjp,
    mix_share,
    mix_share_vjp,
    soften,
    soften_vjp,
)
from ..constraints.soft.pair_parameters import PairParameters, PairSoft, pair_soft, pair_soft_vjp
from ..spatial import Quat, Vec3, compose_vjp, pose, pose_vjp
from ..tables import Polynomial
from .constants_context import ConstantsContext, add_invweight_bar
from .transmission_constants import add_tendon_invweight_bar, tendon_invweight


def _dry_soft(m: ConstantsContext, i: Any) -> tuple[SolRef, SolImp]:
    """Reference and impedance parameters of dry friction."""
    return m.fields.struct("dry_solref", i, SolRef), m.fields.struct("dry_solimp", i, SolImp)


def dry_friction(m: ConstantsContext) -> None:
    """Bound, damping and stiffness D = d/(1 - d)/w of the dry friction of every degree of freedom; d is that at r = 0."""
    for i in loop(1, m.model.nb + 1):
        soft = soften(*_dry_soft(m, i - 1), m.numbers.least)
        d = impedance(soft, 0.0, True).d
        for k in loop(m.structure.body_v[i], m.structure.body_v[i] + m.structure.body_nv[i]):
            row = m.out.dof[k]
            row.dry, row.b = m.fields.real("dry_friction", i - 1), soft.b
            row.D = d / ((1.0 - d) * maximum(m.fields.real("dof_invweight0", k), LEAST))


def dry_friction_vjp(m: ConstantsContext) -> None:
    """Adjoint of `dry_friction`."""
    for i in loop(1, m.model.nb + 1):
        ref, imp = _dry_soft(m, i - 1)
        soft = soften(ref, imp, m.numbers.least)
        d = impedance(soft, 0.0, True).d
        dry, b_bar, d_bar = carry(0.0), carry(0.0), carry(0.0)
        for k in loop(m.structure.body_v[i], m.structure.body_v[i] + m.structure.body_nv[i]):
            bar, D = m.out_bar.dof[k], m.out.dof[k].D
            dry.value, b_bar.value = dry.value + bar.dry, b_bar.value + bar.b
            d_bar.value = d_bar.value + bar.D * D / (d * (1.0 - d))
            g = 1.0 / maximum(m.fields.real("dof_invweight0", k), LEAST)
            add_invweight_bar(m, "dof_invweight0", k, g, bar.D * D / g)
        soft_bar = impedance_vjp(soft, 0.0, True, d_bar.value) + Soft(0.0, b_bar.value, 0.0, 0.0, 0.0, 0.0, 0.0)
        ref_bar, imp_bar, _ = soften_vjp(ref, imp, m.numbers.least, soft_bar)
        m.bars.put_real("dry_friction", i - 1, dry.value)
        m.bars.put("dry_solref", i - 1, ref_bar)
        m.bars.put("dry_solimp", i - 1, imp_bar)


_SHAPE_FRICTION = ("friction", "torsional_friction", "rolling_friction")


def _shape_parameters(m: ConstantsContext, s: Any) -> PairParameters:
    """Contact parameters of one shape: friction, solref, solimp, adhesion, margin, restitution."""
    slide, turn, roll = (m.fields.real(name, s) for name in _SHAPE_FRICTION)
    ref, imp = m.fields.struct("solref", s, SolRef), m.fields.struct("solimp", s, SolImp)
    pull, margin, e = (m.fields.real(name, s) for name in ("adhesion", "margin", "restitution"))
    return PairParameters(slide, slide, turn, roll, roll, ref, SolRef.zero(), imp, pull, margin, e)


def _add_shape_bars(m: ConstantsContext, s: Any, bar: PairParameters) -> None:
    """Add to the cotangents of a shape's contact parameters."""
    frictions = (bar.slide + bar.slide2, bar.torsion, bar.roll + bar.roll2)
    reals = dict(zip(_SHAPE_FRICTION, frictions, strict=True))
    reals |= {"adhesion": bar.adhesion, "margin": bar.margin, "restitution": bar.restitution}
    for name, more in reals.items():
        m.bars.put_real(name, s, m.bars.real(name, s) + more)
    m.bars.put("solref", s, m.bars.struct("solref", s, SolRef) + bar.ref)
    m.bars.put("solimp", s, m.bars.struct("solimp", s, SolImp) + bar.imp)


def _pair_parameters(m: ConstantsContext, k: Any) -> PairParameters:
    """Contact parameters of pair k: its own, those of the shape of higher priority, or the mix of both."""
    a, b = m.structure.pair_a[k], m.structure.pair_b[k]

    def own() -> PairParameters:
        n, fields = m.structure.pair_own[k] - 1, m.fields
        mu = [fields.real("pair_friction", n, 5, j) for j in range(5)]
        refs = [fields.struct(name, n, SolRef) for name in ("pair_solref", "pair_solref_friction")]
        e = _larger(fields.real("restitution", a), fields.real("restitution", b))
        pull, margin = (fields.real(f"pair_{name}", n) for name in ("adhesion", "margin"))
        return PairParameters(*mu, *refs, fields.struct("pair_solimp", n, SolImp), pull, margin, e)

    def mixed() -> PairParameters:
        x, y = _shape_parameters(m, a), _shape_parameters(m, b)
        share = mix_share(m.fields.real("solmix", a), m.fields.real("solmix", b))
        larger = [_larger(p, q) for p, q in zip(x.leaves()[:5], y.leaves()[:5], strict=True)]
        imp = x.imp * share + y.imp * (1.0 - share)
        both = (x.adhesion + y.adhesion, x.margin + y.margin, _larger(x.restitution, y.restitution))
        return PairParameters(*larger, mix_ref(x.ref, y.ref, share), SolRef.zero(), imp, *both)

    def decided(s: Any) -> PairParameters:
        x, y = _shape_parameters(m, a), _shape_parameters(m, b)
        both = (x.margin + y.margin, _larger(x.restitution, y.restitution))
        return PairParameters.from_leaves([*_shape_parameters(m, s).leaves()[: PairParameters.size - 2], *both])

    by_rank = {0: mixed, 1: lambda: decided(a), 2: lambda: decided(b)}
    return switch(_is_own(m, k), {1: own, 0: lambda: switch(m.structure.pair_rank[k], by_rank)})


def _is_own(m: ConstantsContext, k: Any) -> Any:
    """Return 1 for an explicit pair, else 0."""
    return m.structure.pair_explicit[k]


def _larger(x: Any, y: Any) -> Any:
    """max(x, y); for equal values its derivative is half of each."""
    if not target().tangents:
        return maximum(x, y)
    share = _share_of(x, y)
    return x * share + y * (1.0 - share)


def _share_of(x: Any, y: Any) -> Any:
    """Weight of x in max(x, y): 1, 0, or 1/2 if they are equal."""
    return select(x > y, 1.0, select(x < y, 0.0, 0.5))


def _pair_parameters_vjp(m: ConstantsContext, k: Any, bar: PairParameters) -> None:
    """Adjoint of `_pair_parameters`."""
    a, b = m.structure.pair_a[k], m.structure.pair_b[k]
    x, y = _shape_parameters(m, a), _shape_parameters(m, b)
    zero = PairParameters.zero()
    bounce = _share_of(x.restitution, y.restitution)

    def common(own: PairParameters, margin: Any, e: Any) -> PairParameters:
        return PairParameters.from_leaves([*own.leaves()[: PairParameters.size - 2], margin, e])

    def own() -> None:
        n, bars = m.structure.pair_own[k] - 1, m.bars
        for j, more in enumerate(bar.leaves()[:5]):
            bars.put_real("pair_friction", n, more, 5, j)
        bars.put("pair_solref", n, bar.ref)
        bars.put("pair_solref_friction", n, bar.ref_friction)
        bars.put("pair_solimp", n, bar.imp)
        bars.put_real("pair_margin", n, bar.margin)
        bars.put_real("pair_adhesion", n, bar.adhesion)
        _add_shape_bars(m, a, common(zero, 0.0, bar.restitution * bounce))
        _add_shape_bars(m, b, common(zero, 0.0, bar.restitution * (1.0 - bounce)))

    def mixed() -> None:
        mix_a, mix_b = m.fields.real("solmix", a), m.fields.real("solmix", b)
        share = mix_share(mix_a, mix_b)
        ref_a, ref_b, share_bar = mix_ref_vjp(x.ref, y.ref, share, bar.ref)
        for g, p, q in zip(bar.imp.leaves(), x.imp.leaves(), y.imp.leaves(), strict=True):
            share_bar = share_bar + g * (p - q)
        first = [_share_of(p, q) for p, q in zip(x.leaves()[:5], y.leaves()[:5], strict=True)]
        mu_a = [g * f for g, f in zip(bar.leaves()[:5], first, strict=True)]
        mu_b = [g * (1.0 - f) for g, f in zip(bar.leaves()[:5], first, strict=True)]
        none = SolRef.zero()
        e = (bar.restitution * bounce, bar.restitution * (1.0 - bounce))
        _add_shape_bars(m, a, PairParameters(*mu_a, ref_a, none, bar.imp * share, bar.adhesion, bar.margin, e[0]))
        _add_shape_bars(
            m, b, PairParameters(*mu_b, ref_b, none, bar.imp * (1.0 - share), bar.adhesion, bar.margin, e[1])
        )
        for s, more in zip((a, b), mix_share_vjp(mix_a, mix_b, share_bar), strict=True):
            m.bars.put_real("solmix", s, m.bars.real("solmix", s) + more)

    def decided(first: bool) -> None:
        e = (bar.restitution * bounce, bar.restitution * (1.0 - bounce))
        _add_shape_bars(m, a, common(bar if first else zero, bar.margin, e[0]))
        _add_shape_bars(m, b, common(zero if first else bar, bar.margin, e[1]))

    by_rank = {0: mixed, 1: lambda: decided(True), 2: lambda: decided(False)}
    switch(_is_own(m, k), {1: own, 0: lambda: switch(m.structure.pair_rank[k], by_rank)})


def _pair_invweight(m: ConstantsContext, k: Any) -> Any:
    """Sum of the translational inverse weights of the two bodies."""
    total = 0.0
    for s in (m.structure.pair_a[k], m.structure.pair_b[k]):
        total = total + _body_invweight(m, m.structure.shape_body[s], 0)
    return total


def _body_invweight(m: ConstantsContext, body: Any, k: int) -> Any:
    """Inverse weight of a body, counted from 1; zero for the world."""
    return switch(
        m.structure.body_moves[body], {0: lambda: 0.0, 1: lambda: m.fields.real("body_invweight0", body - 1, 2, k)}
    )


def _add_body_invweight_bar(m: ConstantsContext, body: Any, k: int, bar: Any) -> None:
    """Adjoint of `_body_invweight`."""

    def add() -> None:
        m.bars.put_real("body_invweight0", body - 1, m.bars.real("body_invweight0", body - 1, 2, k) + bar, 2, k)

    switch(m.structure.body_moves[body], {0: lambda: None, 1: add})


def pairs(m: ConstantsContext) -> None:
    """Contact parameters of every candidate pair of shapes."""
    for i in loop(m.model.nshape):
        m.out.shape[i].reach = 0.0
    for k in loop(m.model.npair):
        made = pair_soft(_pair_parameters(m, k), _pair_invweight(m, k), m.structure.pair_dim[k], m.numbers)
        for name in PairSoft.parts:
            setattr(m.out.pair[k], name, getattr(made, name))
        for i in (m.structure.pair_a[k], m.structure.pair_b[k]):
            shape = m.out.shape[i]
            shape.reach = maximum(shape.reach, 0.5 * made.margin)


def pair_groups(m: ConstantsContext) -> None:
    """Bounding boxes of both sides of each pair group."""
    for n in loop(m.model.npair_group):
        first, end = m.structure.pair_group_first[n], m.structure.pair_group_end[n]
        for side, shape in (("a", m.structure.pair_a), ("b", m.structure.pair_b)):
            low, high = carry(Vec3(FAR, FAR, FAR)), carry(Vec3(-FAR, -FAR, -FAR))
            for k in loop(first, end):
                own = m.out.shape[shape[k]]
                reach = own.radius + maximum(m.out.pair[k].margin, 0.0)
                around = Vec3(reach, reach, reach)
                low.value = low.value.map(minimum, own.X.r - around)
                high.value = high.value.map(maximum, own.X.r + around)
            setattr(m.out.pair_group[n], f"{side}_center", (low.value + high.value) * 0.5)
            setattr(m.out.pair_group[n], f"{side}_extent", (high.value - low.value) * 0.5)


def pairs_vjp(m: ConstantsContext) -> None:
    """Adjoint of `pairs`."""
    for k in loop(m.model.npair):
        given, weight, dim = _pair_parameters(m, k), _pair_invweight(m, k), m.structure.pair_dim[k]
        made_bar = PairSoft(*(getattr(m.out_bar.pair[k], name) for name in PairSoft.parts))
        given_bar, weight_bar = pair_soft_vjp(given, weight, dim, m.numbers, made_bar)
        _pair_parameters_vjp(m, k, given_bar)
        for s in (m.structure.pair_a[k], m.structure.pair_b[k]):
            _add_body_invweight_bar(m, m.structure.shape_body[s], 0, weight_bar)


def _held_frame(m: ConstantsContext, e: Any, side: Any) -> tuple[Vec3, Quat]:
    """Anchor and rotation of one side of an equality, in its body."""
    anchor = m.fields.reals.struct(m.fields.at("equality_anchor", e, 6) + side * 3, Vec3)
    return anchor, m.fields.reals.struct(m.fields.at("equality_rotation", e, 8) + side * 4, Quat)


def _sides(m: ConstantsContext, e: Any) -> tuple[tuple[str, Any, Any], ...]:
    """Name of the frame, body and side of the equality, for both ends."""
    it = m.structure
    return ("A", it.eq_a[e], it.eq_side_a[e]), ("B", it.eq_b[e], it.eq_side_b[e])


def _equality_invweights(m: ConstantsContext, e: Any) -> tuple[Any, Any]:
    """Inverse weights of translations (or joints) and of rotations, the sum of both sides."""
    a, b = m.structure.eq_a[e], m.structure.eq_b[e]

    def bodies() -> tuple[Any, Any]:
        shift, turn = (_body_invweight(m, a, k) + _body_invweight(m, b, k) for k in range(2))
        return shift, turn

    def joints() -> tuple[Any, Any]:
        return _dof_invweight(m, m.structure.eq_dof_a[e]) + _dof_invweight(m, m.structure.eq_dof_b[e]), 1.0

    def tendons() -> tuple[Any, Any]:
        return tendon_invweight(m, m.structure.eq_tendon_a[e]) + tendon_invweight(m, m.structure.eq_tendon_b[e]), 1.0

    cases = {0: bodies, 1: bodies, 2: joints} | ({3: tendons} if m.has("lines") else {})
    return switch(m.structure.eq_kind[e], cases)


def _dof_invweight(m: ConstantsContext, k: Any) -> Any:
    """Inverse weight of a degree of freedom, counted from 1; zero for 0."""
    return switch(m.structure.dof_counts[k], {0: lambda: 0.0, 1: lambda: m.fields.real("dof_invweight0", k - 1)})


def equalities(m: ConstantsContext) -> None:
    """Frames of equalities in their links, and their parameters."""
    for e in loop(m.model.nequality):
        row = m.out.equality[e]
        for name, body, side in _sides(m, e):
            setattr(row, name, m.bodies[body].B @ pose(*_held_frame(m, e, side)))
        ref, imp = m.fields.struct("equality_solref", e, SolRef), m.fields.struct("equality_solimp", e, SolImp)
        row.soft = soften(ref, imp, m.numbers.least)
        row.torque_scale = m.fields.real("equality_torque_scale", e)
        row.polynomial = m.fields.struct("equality_polynomial", e, Polynomial)
        shift, turn = _equality_invweights(m, e)
        row.g, row.g_turn = 1.0 / maximum(shift, LEAST), 1.0 / maximum(turn, LEAST)


def equalities_vjp(m: ConstantsContext) -> None:
    """Adjoint of `equalities`."""
    bars = m.bars
    for e in loop(m.model.nequality):
        row, bar = m.out.equality[e], m.out_bar.equality[e]
        for name, body, side in _sides(m, e):
            anchor, turn = _held_frame(m, e, side)
            own = m.bodies[body]
            B_bar, X_bar = compose_vjp(own.B, pose(anchor, turn), getattr(bar, name))
            own.B_bar += B_bar
            anchor_bar, turn_bar = pose_vjp(anchor, turn, X_bar)
            bars.reals.put(bars.at("equality_anchor", e, 6) + side * 3, anchor_bar)
            bars.reals.put(bars.at("equality_rotation", e, 8) + side * 4, turn_bar)
        ref, imp = m.fields.struct("equality_solref", e, SolRef), m.fields.struct("equality_solimp", e, SolImp)
        ref_bar, imp_bar, _ = soften_vjp(ref, imp, m.numbers.least, bar.soft)
        bars.put("equality_solref", e, ref_bar)
        bars.put("equality_solimp", e, imp_bar)
        bars.put_real("equality_torque_scale", e, bar.torque_scale)
        bars.put("equality_polynomial", e, bar.polynomial)
        shift, turn_weight = _equality_invweights(m, e)
        shift_bar = select(shift > LEAST, -(row.g * row.g) * bar.g, 0.0)
        turn_bar_ = select(turn_weight > LEAST, -(row.g_turn * row.g_turn) * bar.g_turn, 0.0)
        _add_equality_invweight_bars(m, e, shift_bar, turn_bar_)


def _add_equality_invweight_bars(m: ConstantsContext, e: Any, shift_bar: Any, turn_bar: Any) -> None:
    """Adjoint of `_equality_invweights`."""

    def bodies() -> None:
        for body in (m.structure.eq_a[e], m.structure.eq_b[e]):
            _add_body_invweight_bar(m, body, 0, shift_bar)
            _add_body_invweight_bar(m, body, 1, turn_bar)

    def joints() -> None:
        for k in (m.structure.eq_dof_a[e], m.structure.eq_dof_b[e]):

            def add(k: Any = k) -> None:
                m.bars.put_real("dof_invweight0", k - 1, m.bars.real("dof_invweight0", k - 1) + shift_bar)

            switch(m.structure.dof_counts[k], {0: lambda: None, 1: add})

    def tendons() -> None:
        for t in (m.structure.eq_tendon_a[e], m.structure.eq_tendon_b[e]):
            add_tendon_invweight_bar(m, t, shift_bar)

    switch(m.structure.eq_kind[e], {0: bodies, 1: bodies, 2: joints} | ({3: tendons} if m.has("lines") else {}))
