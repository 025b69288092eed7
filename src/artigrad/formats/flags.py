"""Disabled features of a compiled file: their values are set to zero in the compiled model, so that later code needs no
flags."""

from __future__ import annotations

from enum import IntFlag
from typing import Any

from .mujoco_api import HINGE_OR_SLIDE, DynType, TrnType, WrapType

OVERRIDE = 1  # bit of mjOption.enableflags


class Off(IntFlag):
    """Bits of mjOption.disableflags."""

    CONSTRAINT = 1 << 0
    EQUALITY = 1 << 1
    FRICTIONLOSS = 1 << 2
    LIMIT = 1 << 3
    CONTACT = 1 << 4
    SPRING = 1 << 5
    DAMPER = 1 << 6
    GRAVITY = 1 << 7
    CLAMPCTRL = 1 << 8
    FILTERPARENT = 1 << 10
    ACTUATION = 1 << 11
    REFSAFE = 1 << 12
    EULERDAMP = 1 << 15
    NATIVECCD = 1 << 17
    MULTICCD = 1 << 19


# arrays that a flag sets to zero
ARRAYS: dict[Off, tuple[str, ...]] = {
    Off.EQUALITY | Off.CONSTRAINT: ("eq_active0",),
    Off.FRICTIONLOSS | Off.CONSTRAINT: ("dof_frictionloss", "tendon_frictionloss"),
    Off.LIMIT | Off.CONSTRAINT: ("jnt_limited", "tendon_limited"),
    Off.CONTACT | Off.CONSTRAINT: ("geom_contype", "geom_conaffinity"),
    Off.SPRING: ("jnt_stiffness", "jnt_stiffnesspoly", "tendon_stiffness", "tendon_stiffnesspoly"),
    Off.DAMPER: ("dof_damping", "dof_dampingpoly", "tendon_damping", "tendon_dampingpoly"),
    Off.CLAMPCTRL: ("actuator_ctrllimited",),
}


def off(m: Any, flags: Off) -> bool:
    """Return True if one of these features is disabled."""
    return bool(int(m.opt.disableflags) & flags)


def actuated(m: Any) -> bool:
    """Return True if there are actuators and actuator forces are enabled."""
    return bool(m.nactuator) and not off(m, Off.ACTUATION)


def to_joints_and_tendons(m: Any) -> None:
    """Move damping and armature of actuators to their joint or tendon, times the gear squared, even if these are
    disabled."""
    for a in range(m.nactuator):
        kind, on = int(m.actuator_trntype[a]), int(m.actuator_trnid[a, 0])
        square = float(m.actuator_gear[m.actuator_outadr[a], 0]) ** 2
        if kind in (TrnType.JOINT, TrnType.JOINTINPARENT) and m.jnt_type[on] in HINGE_OR_SLIDE:
            part, k = "dof", int(m.jnt_dofadr[on])
        elif kind == TrnType.TENDON:
            part, k = "tendon", on
        else:
            continue
        for name in ("damping", "dampingpoly", "armature"):
            own = getattr(m, f"actuator_{name}")
            getattr(m, f"{part}_{name}")[k] += square * own[a]
            own[a] = 0


def to_joints(m: Any) -> None:
    """Move the armature of a sum of joints, none an ancestor of another, to these: MuJoCo omits couplings of branches."""
    for t in range(m.ntendon):
        path = range(int(m.tendon_adr[t]), int(m.tendon_adr[t] + m.tendon_num[t]))
        if not m.tendon_armature[t] or m.wrap_type[path[0]] != WrapType.JOINT:
            continue
        scale: dict[int, float] = {}
        for w in path:
            k = int(m.jnt_dofadr[m.wrap_objid[w]])
            scale[k] = scale.get(k, 0.0) + float(m.wrap_prm[w])
        if not any(_carriers(m, k) & scale.keys() for k in scale):
            for k, c in scale.items():
                m.dof_armature[k] += m.tendon_armature[t] * c * c
            m.tendon_armature[t] = 0


def _carriers(m: Any, k: int) -> set[int]:
    """Return the degrees of freedom that carry k."""
    found: set[int] = set()
    while (k := int(m.dof_parentid[k])) >= 0:
        found.add(k)
    return found


def override_contacts(m: Any) -> None:
    """Set the contact parameters of the options for all contacts. Margins of two shapes add up."""
    o = m.opt
    m.geom_margin[:], m.pair_margin[:] = o.o_margin / 2, o.o_margin
    m.geom_friction[:], m.pair_friction[:] = o.o_friction[[0, 2, 3]], o.o_friction
    m.pair_solreffriction[:] = 0
    for own in ("geom", "pair"):
        getattr(m, f"{own}_solref")[:], getattr(m, f"{own}_solimp")[:] = o.o_solref, o.o_solimp


def apply_flags(m: Any) -> None:
    to_joints_and_tendons(m)
    to_joints(m)
    if m.opt.enableflags & OVERRIDE:
        override_contacts(m)
    for flags, arrays in ARRAYS.items():
        if off(m, flags):
            for name in arrays:
                getattr(m, name)[:] = 0
    if off(m, Off.GRAVITY):
        m.opt.gravity[:] = 0
    if off(m, Off.SPRING) and off(m, Off.DAMPER):  # MuJoCo then computes no passive forces
        m.body_gravcomp[:] = 0
        m.opt.density = m.opt.viscosity = 0
    for a in range(m.nactuator):
        group = int(m.actuator_group[a])
        if off(m, Off.ACTUATION) or (0 <= group < 31 and m.opt.disableactuator & (1 << group)):
            _disable(m, a)


def _disable(m: Any, a: int) -> None:
    """Remove the force of actuator a, and make its activation constant: the integral of a control limited to zero."""
    for name in ("gainprm", "biasprm", "gaintype", "biastype"):
        getattr(m, f"actuator_{name}")[a] = 0
    if m.actuator_dyntype[a]:
        u = int(m.actuator_ctrladr[a])
        m.actuator_dyntype[a], m.actuator_ctrllimited[u], m.actuator_ctrlrange[u] = DynType.INTEGRATOR, True, 0.0


def contact_enabled(m: Any) -> bool:
    """Return True if contact is enabled; otherwise set masks to zero. Explicit pairs must be checked separately."""
    return not off(m, Off.CONTACT | Off.CONSTRAINT)
