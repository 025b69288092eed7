"""Tendons of a compiled file. Wrapping shapes become sites with a radius."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build.builder import ModelBuilder
from ..build.validate import meaningful as reference
from .mujoco_api import WrapType
from .names import Names


def add_tendons(b: ModelBuilder, m: Any, names: Names) -> None:
    """Add all tendons in the file's order."""
    sites: dict[int, str] = {}  # sites of wrapping geoms
    for t in range(m.ntendon):
        path = range(int(m.tendon_adr[t]), int(m.tendon_adr[t] + m.tendon_num[t]))
        if m.wrap_type[path[0]] == WrapType.JOINT:
            joints: dict[str, float] = {}
            for w in path:
                joint = names.joint[int(m.wrap_objid[w])]
                joints[joint] = joints.get(joint, 0.0) + float(m.wrap_prm[w])
            b.add_fixed_tendon(names.tendon[t], joints, **_numbers(m, t))
        else:
            b.add_spatial_tendon(names.tendon[t], [_part(b, m, names, w, sites) for w in path], **_numbers(m, t))


def _part(b: ModelBuilder, m: Any, names: Names, w: int, sites: dict[int, str]) -> Any:
    """Return a site, a pulley, or a wrapping shape."""
    kind, i = int(m.wrap_type[w]), int(m.wrap_objid[w])
    if kind == WrapType.PULLEY:
        return float(m.wrap_prm[w])
    if kind == WrapType.SITE:
        return names.site[i]
    side = round(float(m.wrap_prm[w]))
    if i not in sites:
        sites[i] = _site_of(b, m, names, i)
    shape = ("sphere" if kind == WrapType.SPHERE else "cylinder", sites[i], float(m.geom_size[i, 0]))
    return (*shape, names.site[side]) if side >= 0 else shape


def _site_of(b: ModelBuilder, m: Any, names: Names, geom: int) -> str:
    """Return a site at the pose of a geom; an existing one is reused."""
    body, place, turn = names.body[int(m.geom_bodyid[geom])], m.geom_pos[geom], m.geom_quat[geom]
    for name, site in b._sites.items():
        if site["body"] == body:
            apart = np.abs(np.concatenate([site["position"] - place, site["rotation"] - turn])).max()
            if apart < 1e-12:
                return name
    name = names.geom[geom]
    return b.add_site(name if name not in b._sites else f"{name}:wrapped", body, position=place, rotation=turn)


def _numbers(m: Any, t: int) -> dict[str, Any]:
    return {
        "stiffness": m.tendon_stiffness[t],
        "damping": m.tendon_damping[t],
        "stiffness_curve": m.tendon_stiffnesspoly[t],
        "damping_curve": m.tendon_dampingpoly[t],
        "rest": m.tendon_lengthspring[t],
        "limit": m.tendon_range[t] if m.tendon_limited[t] else None,
        "limit_margin": m.tendon_margin[t],
        "limit_solref": reference(m.tendon_solref_lim[t]),
        "limit_solimp": m.tendon_solimp_lim[t],
        "dry_friction": m.tendon_frictionloss[t],
        "dry_solref": reference(m.tendon_solref_fri[t]),
        "dry_solimp": m.tendon_solimp_fri[t],
        "invweight0": float(m.tendon_invweight0[t]),
    }
