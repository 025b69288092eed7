"""Tendons of a compiled file. One whose path is not supported is left out, with what acts on it."""

from __future__ import annotations

from typing import Any

from ..model.findings import Finding
from .builder import ModelBuilder
from .contacts import reference
from .names import Names

JOINT, PULLEY, SITE = 1, 2, 3  # mjtWrap; above: shapes to wrap around


def add_tendons(b: ModelBuilder, m: Any, names: Names) -> None:
    """All tendons in the file's order."""
    wrapped = []
    for t in range(m.ntendon):
        path = range(int(m.tendon_adr[t]), int(m.tendon_adr[t] + m.tendon_num[t]))
        if any(m.wrap_type[w] > SITE for w in path):
            wrapped.append(names.tendon[t])
        elif m.wrap_type[path[0]] == JOINT:
            joints: dict[str, float] = {}
            for w in path:
                joint = names.joint[int(m.wrap_objid[w])]
                joints[joint] = joints.get(joint, 0.0) + float(m.wrap_prm[w])
            b.fixed_tendon(names.tendon[t], joints, **_numbers(m, t))
        else:
            parts = [
                float(m.wrap_prm[w]) if m.wrap_type[w] == PULLEY else names.site[int(m.wrap_objid[w])] for w in path
            ]
            b.spatial_tendon(names.tendon[t], parts, **_numbers(m, t))
    if wrapped:
        b.unsupported.append(
            Finding("tendon that wraps around a shape", tuple(wrapped), "left out, with what acts on it")
        )


def _numbers(m: Any, t: int) -> dict[str, Any]:
    return {
        "stiffness": m.tendon_stiffness[t],
        "damping": m.tendon_damping[t],
        "rest": m.tendon_lengthspring[t],
        "limit": m.tendon_range[t] if m.tendon_limited[t] else None,
        "limit_margin": m.tendon_margin[t],
        "limit_solref": reference(m.tendon_solref_lim[t]),
        "limit_solimp": m.tendon_solimp_lim[t],
        "dry_friction": m.tendon_frictionloss[t],
        "dry_solref": reference(m.tendon_solref_fri[t]),
        "dry_solimp": m.tendon_solimp_fri[t],
        "weight": float(m.tendon_invweight0[t]),
    }
