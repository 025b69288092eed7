"""Equality constraints of a compiled file: connect, weld, joint and tendon."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build.builder import ModelBuilder
from ..build.validate import meaningful as reference
from ..model.findings import Finding
from .mujoco_api import EqType, ObjType
from .names import Names


def add_equalities(b: ModelBuilder, m: Any, names: Names) -> None:
    """Add the active equalities; a site frame is converted to one of its body."""
    for e in range(m.neq):
        if not m.eq_active0[e]:
            continue
        kind, data = int(m.eq_type[e]), m.eq_data[e]
        one, other = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        soft: dict[str, Any] = {
            "name": names.equality[e],
            "solref": reference(m.eq_solref[e]),
            "solimp": m.eq_solimp[e],
        }
        if kind == EqType.JOINT:
            second = None if other < 0 else names.joint[other]
            refs = [0.0 if k < 0 else float(m.qpos0[m.jnt_qposadr[k]]) for k in (one, other)]
            b.add_joint_coupling(names.joint[one], second, polynomial=_polynomial(data, refs, other >= 0), **soft)
        elif kind == EqType.TENDON:
            tendons = [names.tendon[k] for k in (one, other) if k >= 0]
            if all(name in b._tendons for name in tendons):
                refs = [0.0 if k < 0 else float(m.tendon_length0[k]) for k in (one, other)]
                b.add_tendon_coupling(*tendons, polynomial=_polynomial(data, refs, other >= 0), **soft)
            else:
                b.unsupported.append(
                    Finding("equality of a tendon that is left out", (names.equality[e],), "not enforced")
                )
        elif kind in (EqType.CONNECT, EqType.WELD):
            sites = int(m.eq_objtype[e]) == ObjType.SITE
            one_body, other_body = (names.body[int(m.site_bodyid[k]) if sites else k] for k in (one, other))
            if sites:
                place: dict[str, Any] = {"anchor": m.site_pos[one], "other_anchor": m.site_pos[other]}
                turn: dict[str, Any] = {"rotation": m.site_quat[one], "other_rotation": m.site_quat[other]}
            else:  # data of a weld: the anchor in the second body, then in the first
                first, second = (data[3:6], data[:3]) if kind == EqType.WELD else (data[:3], data[3:6])
                place = {"anchor": first, "other_anchor": second}
                turn = {"rotation": data[6:10], "other_rotation": (1.0, 0.0, 0.0, 0.0)}
            if kind == EqType.CONNECT:
                b.add_connect(one_body, other_body, **place, **soft)
            else:
                b.add_weld(one_body, other_body, **place, **turn, torque_scale=float(data[10]), **soft)


def _polynomial(data: np.ndarray, refs: list[float], two: bool) -> np.ndarray:
    """Convert x1 - ref1 = P(x2 - ref2) to x1 = P'(x2)."""
    ref, other = refs
    if not two:
        return np.array([data[0] + ref, 0.0, 0.0, 0.0, 0.0])
    shifted = np.polynomial.Polynomial(data[:5])(np.polynomial.Polynomial([-other, 1.0]))
    out = np.zeros(5)
    out[: len(shifted.coef)] = shifted.coef
    out[0] += ref
    return out
