"""Constants of springs of ball and free joints, and of nonlinear springs and dampers: a row for every link."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...compiler import loop, switch
from ..joints.joint import Joint
from ..joints.table import JOINTS, compiled
from ..spatial import Quat, Vec3
from .constants_context import ConstantsContext

_CURVES = {
    "c1": ("stiffness_curve", 0),
    "c2": ("stiffness_curve", 1),
    "d1": ("damping_curve", 0),
    "d2": ("damping_curve", 1),
}


def springs(m: ConstantsContext) -> None:
    """Springs and dampers of all joints."""
    if not m.has("spring"):
        return
    for i in loop(m.model.nl):
        row = m.out.spring[i]
        row.k, row.c1, row.c2, row.d1, row.d2 = 0.0, 0.0, 0.0, 0.0, 0.0
        row.rest, row.turn = Vec3.zero(), Quat(1.0, 0.0, 0.0, 0.0)
    for i in loop(1, m.model.nb + 1):
        switch(
            m.structure.body_joint[i],
            {k: partial(_spring, m, i, joint) for k, joint in compiled(m.has, JOINTS.values()).items()},
        )


def _spring(m: ConstantsContext, i: Any, joint: Joint) -> None:
    if not joint.nv:
        return
    row = m.out.spring[m.model.link_of_body[i]]
    for name, (field, k) in _CURVES.items():
        setattr(row, name, m.fields.real(field, i - 1, 2, k))
    if not joint.axial:
        row.k = m.fields.real("stiffness", i - 1)
    if joint.floating:
        row.rest, row.turn = m.fields.struct("position", i - 1, Vec3), m.fields.struct("rotation", i - 1, Quat)


def springs_vjp(m: ConstantsContext) -> None:
    """Add to the cotangents of bodies, after `bodies_vjp` has set them."""
    if not m.has("spring"):
        return
    for i in loop(1, m.model.nb + 1):
        switch(
            m.structure.body_joint[i],
            {k: partial(_spring_vjp, m, i, joint) for k, joint in compiled(m.has, JOINTS.values()).items()},
        )


def _spring_vjp(m: ConstantsContext, i: Any, joint: Joint) -> None:
    bar, bars = m.out_bar.spring[m.model.link_of_body[i]], m.bars
    for name, (field, k) in _CURVES.items():
        bars.put_real(field, i - 1, getattr(bar, name) if joint.nv else 0.0, 2, k)
    if joint.nv and not joint.axial:
        bars.put_real("stiffness", i - 1, bar.k)
    if joint.floating:
        bars.put("position", i - 1, bars.struct("position", i - 1, Vec3) + bar.rest)
        bars.put("rotation", i - 1, bars.struct("rotation", i - 1, Quat) + bar.turn)
