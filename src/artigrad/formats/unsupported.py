"""Unsimulated features of a compiled file: a table of features, and where each occurs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..model.findings import Finding
from .flags import OVERRIDE, Off, actuated, off
from .mujoco_api import BALL_OR_FREE, EqType, bit, field
from .names import Names

METHODS = ("sleep", "diagexact", "ipc", "speculative")  # mjtEnableBit


class Unsimulated(NamedTuple):
    """Unsimulated feature. where(m, names): names of the parts that use it, or [""] if the whole file does."""

    what: str
    effect: str
    where: Callable[[Any, Names], Sequence[str]]


def _used(names: Sequence[str], values: Any) -> list[str]:
    """Return the names whose row has a nonzero entry."""
    values = np.asarray(values)
    rows = values.reshape(len(values), -1) if values.size else np.zeros((len(names), 1))
    return [name for name, row in zip(names, rows, strict=True) if row.any()]


FEATURES = (
    Unsimulated("equality of distances or flexible bodies", "not enforced", lambda m, n: _other_equalities(m, n)),
    Unsimulated(
        "armature of a tendon along joints that carry each other",
        "left out",
        lambda m, n: _used(n.tendon, m.tendon_armature),
    ),
    Unsimulated(
        "spring of a tendon that yields",
        "it does not",
        lambda m, n: _used(n.tendon, field(m, "tendon_springyield", m.ntendon)),
    ),
    Unsimulated("flexible body", "left out", lambda m, n: [f"flex{k}" for k in range(m.nflex)]),
    Unsimulated("plugin", "left out", lambda m, n: [f"plugin{k}" for k in range(m.nplugin)]),
    Unsimulated(
        "gravity compensation by actuators of a ball or free joint, which are switched off",
        "weight is compensated",
        lambda m, n: [
            n.joint[j]
            for j in range(m.njnt)
            if m.jnt_actgravcomp[j]
            and m.jnt_type[j] in BALL_OR_FREE
            and m.body_gravcomp.any()
            and m.nactuator
            and not actuated(m)
        ],
    ),
    Unsimulated("spring that yields", "it does not", lambda m, n: _used(n.joint, field(m, "jnt_springyield", m.njnt))),
    Unsimulated(
        "adhesion of a geom or an explicit pair beside noslip",
        "left out",
        lambda m, n: (
            _used([*n.geom, *(f"pair{k}" for k in range(m.npair))], [*m.geom_adhesion, *m.pair_adhesion])
            if m.opt.noslip_iterations
            else []
        ),
    ),
    Unsimulated(
        "override of friction with different coefficients in two directions",
        "the first ones count in both, but for explicit pairs",
        lambda m, n: [""] if m.opt.enableflags & OVERRIDE and _lopsided(m.opt.o_friction) else [],
    ),
    Unsimulated("integrator discrete", "euler takes its place", lambda m, n: [""] if m.opt.integrator > 3 else []),
    Unsimulated(
        "one point for each pair of shapes (flag multiccd)",
        "flat ones touch at several",
        lambda m, n: [""] if off(m, Off.MULTICCD) else [],
    ),
    Unsimulated(
        "another method of constraints",
        "the flag is not regarded",
        lambda m, n: [x for x in METHODS if m.opt.enableflags & bit("mjtEnableBit", f"mjENBL_{x.upper()}")],
    ),
)
NOTES = (
    Unsimulated("nothing moves", "floating=True frees the base", lambda m, n: [] if m.nv else [""]),
    Unsimulated(
        "collision by libccd (flag nativeccd)",
        "solids touch as without the flag",
        lambda m, n: [""] if off(m, Off.NATIVECCD) else [],
    ),
)


def _lopsided(friction: Any) -> bool:
    """Return True if two coefficients of sliding, or of rolling, differ."""
    return bool(friction[0] != friction[1] or friction[3] != friction[4])


def _other_equalities(m: Any, names: Names) -> list[str]:
    return [names.equality[e] for e in range(m.neq) if m.eq_active0[e] and int(m.eq_type[e]) > EqType.TENDON]


def findings(features: Sequence[Unsimulated], m: Any, names: Names) -> list[Finding]:
    """Return the unsimulated features that a file uses."""
    found = [(f, tuple(f.where(m, names))) for f in features]
    return [Finding(f.what, tuple(w for w in where if w), f.effect) for f, where in found if where]
