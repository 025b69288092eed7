"""What of a compiled file is not simulated: a table of features, and where each is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..report import Finding
from .names import Names

BALL_OR_FREE = (0, 1)  # mjtJoint


class Feature(NamedTuple):
    """where(m, names): the names of the parts that use it, or [""] if the file as a whole does."""

    what: str
    effect: str
    where: Callable[[Any, Names], Sequence[str]]


def _used(names: Sequence[str], values: Any) -> list[str]:
    """The names whose row has an entry that is not zero."""
    values = np.asarray(values)
    rows = values.reshape(len(values), -1) if values.size else np.zeros((len(names), 1))
    return [name for name, row in zip(names, rows, strict=True) if row.any()]


def _joints_of(m: Any, names: Names, dof_values: Any) -> list[str]:
    """Joints with a degree of freedom whose value is not zero."""
    return [names.joint[j] for j in range(m.njnt) if np.any(np.asarray(dof_values)[m.dof_jntid == j])]


def _round(m: Any, names: Names, values: Any) -> list[str]:
    """Ball and free joints with a value that is not zero."""
    return [names.joint[j] for j in range(m.njnt) if m.jnt_type[j] in BALL_OR_FREE and np.any(values[j])]


FEATURES = (
    Feature("equality constraint", "not enforced", lambda m, n: _used(n.equality, m.eq_active0)),
    Feature("tendon", "its limits and forces are left out", lambda m, n: _forceful_tendons(m, n)),
    Feature("flexible body", "left out", lambda m, n: [f"flex{k}" for k in range(m.nflex)]),
    Feature("plugin", "left out", lambda m, n: [f"plugin{k}" for k in range(m.nplugin)]),
    Feature("gravity compensation", "left out", lambda m, n: _used(n.body, m.body_gravcomp)),
    Feature("forces of a fluid", "left out", lambda m, n: [""] if m.opt.density or m.opt.viscosity else []),
    Feature(
        "spring that is not linear",
        "its linear part is kept",
        lambda m, n: _used(n.joint, m.jnt_stiffnesspoly) + _used(n.joint, m.jnt_springyield),
    ),
    Feature("damping that is not linear", "its linear part is kept", lambda m, n: _joints_of(m, n, m.dof_dampingpoly)),
    Feature("spring of a ball or free joint", "left out", lambda m, n: _round(m, n, m.jnt_stiffness)),
    Feature("limit of a ball joint", "not limited", lambda m, n: _round(m, n, m.jnt_limited)),
    Feature(
        "dry friction of a ball or free joint",
        "left out",
        lambda m, n: _round(m, n, [m.dof_frictionloss[m.dof_jntid == j] for j in range(m.njnt)]),
    ),
    Feature("adhesion of a geom", "left out", lambda m, n: _used(n.geom, m.geom_adhesion)),
    Feature("moving surface of a geom", "left out", lambda m, n: _used(n.geom, m.geom_surfacevel)),
    Feature(
        "contact of bodies with their parents",
        "they do not touch",
        lambda m, n: [""] if m.opt.disableflags & (1 << 10) else [],
    ),
)
NOTES = (
    Feature(
        "solver of contacts and limits (solref, solimp, margin, cone)",
        "contacts and limits are hard, friction is a pyramid; see Options",
        lambda m, n: [""] if m.jnt_limited.any() or m.geom_contype.any() or m.npair else [],
    ),
    Feature("nothing moves", "floating=True frees the base", lambda m, n: [] if m.nv else [""]),
    Feature(
        "mocap body",
        "fixed where the file places it",
        lambda m, n: [n.body[i] for i in range(m.nbody) if m.body_mocapid[i] >= 0],
    ),
)


def _forceful_tendons(m: Any, names: Names) -> list[str]:
    """Tendons that do something by themselves; one that only an actuator or sensor reads is reported there."""
    values = (m.tendon_stiffness, m.tendon_damping, m.tendon_frictionloss, m.tendon_limited, m.tendon_armature)
    return [names.tendon[t] for t in range(m.ntendon) if any(np.any(v[t]) for v in values)]


def findings(features: Sequence[Feature], m: Any, names: Names) -> list[Finding]:
    """Those features that a file uses."""
    found = [(f, tuple(f.where(m, names))) for f in features]
    return [Finding(f.what, tuple(w for w in where if w), f.effect) for f, where in found if where]


# -- flags -----------------------------------------------------------------------------------------------------------------
# bit of disableflags: the arrays that it makes zero
CONSTRAINT, EQUALITY, DRY, LIMIT, CONTACT, SPRING, DAMPER, GRAVITY, CLAMP, ACTUATION = (0, 1, 2, 3, 4, 5, 6, 7, 8, 11)
FRICTION, TOUCH = ("dof_frictionloss", "tendon_frictionloss"), ("geom_contype", "geom_conaffinity")
STOPS = ("jnt_limited", "tendon_limited")
DISABLED: dict[int, tuple[str, ...]] = {
    CONSTRAINT: ("eq_active0", *FRICTION, *STOPS, *TOUCH),
    EQUALITY: ("eq_active0",),
    DRY: FRICTION,
    LIMIT: STOPS,
    CONTACT: TOUCH,
    SPRING: ("jnt_stiffness", "tendon_stiffness"),
    DAMPER: ("dof_damping", "tendon_damping"),
    CLAMP: ("actuator_ctrllimited",),
    ACTUATION: ("actuator_gainprm", "actuator_biasprm"),
}


def apply_flags(m: Any) -> None:
    """Make zero what the file's flags switch off, so that nothing later has to look at them."""
    for bit, arrays in DISABLED.items():
        if m.opt.disableflags & (1 << bit):
            for name in arrays:
                getattr(m, name)[:] = 0
    if m.opt.disableflags & (1 << GRAVITY):
        m.opt.gravity[:] = 0
    for a in range(m.nactuator):
        group = int(m.actuator_group[a])
        if 0 <= group < 31 and m.opt.disableactuator & (1 << group):
            m.actuator_gainprm[a], m.actuator_biasprm[a] = 0, 0


def contact_enabled(m: Any) -> bool:
    """Whether anything may touch: masks are made zero if not, explicit pairs have to be looked at."""
    return not m.opt.disableflags & (1 << CONSTRAINT | 1 << CONTACT)
