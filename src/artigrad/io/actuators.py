"""Actuators of a compiled file. Those that are not supported keep their place in u and do nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.findings import Finding
from .builder import ModelBuilder
from .names import Names

HINGE_OR_SLIDE = (2, 3)  # mjtJoint
# mjtTrn and mjtDyn, mjtGain, mjtBias: what is beyond a joint's affine actuator
TRANSMISSIONS = {2: "slider-crank", 3: "tendon", 4: "site", 5: "body (adhesion)", 6: "rotation"}
DYNAMICS = {1: "integrator", 2: "filter", 3: "filterexact", 4: "muscle", 5: "dcmotor", 6: "pid", 7: "user"}
GAINS = {2: "muscle", 3: "dcmotor", 4: "so3", 5: "pid", 6: "user"}
IDLE = "keeps its place in u and does nothing"


def add_actuators(b: ModelBuilder, m: Any, names: Names, motors: bool) -> None:
    """All actuators in the file's order; with `motors`, torque motors on the joints of a file that has none."""
    beyond: dict[str, list[str]] = {}
    for a in range(m.nactuator):
        problem = _problem(m, a)
        if problem:
            b.idle(names.actuator[a])
            beyond.setdefault(problem, []).append(names.actuator[a])
        else:
            _add(b, m, names, a)
    b.unsupported += [Finding(what, tuple(where), IDLE) for what, where in beyond.items()]
    if motors and not m.nactuator:
        for j in range(m.njnt):
            if m.jnt_type[j] in HINGE_OR_SLIDE:
                limits = m.jnt_actfrcrange[j] if m.jnt_actfrclimited[j] else None
                b.actuator(names.joint[j], names.joint[j], force_range=limits)


def _problem(m: Any, a: int) -> str:
    """Why actuator a is not supported, or nothing."""
    if int(m.actuator_trntype[a]) in TRANSMISSIONS:
        return f"actuator on a {TRANSMISSIONS[int(m.actuator_trntype[a])]}"
    joint = int(m.actuator_trnid[a, 0])
    if m.jnt_type[joint] not in HINGE_OR_SLIDE:
        return "actuator on a ball or free joint"
    if int(m.actuator_dyntype[a]):
        return f"actuator with activation dynamics '{DYNAMICS[int(m.actuator_dyntype[a])]}'"
    if int(m.actuator_gaintype[a]) in GAINS or int(m.actuator_biastype[a]) > 1:
        return "actuator with a gain or bias that is not affine"
    if m.actuator_gaintype[a] == 1 and m.actuator_gainprm[a, 1:3].any():
        return "actuator whose gain depends on length or velocity"
    if int(m.actuator_ctrlnum[a]) != 1:
        return "actuator with several controls"
    if m.actuator_armature[a] or m.actuator_damping[a] or np.any(m.actuator_dampingpoly[a]):
        return "actuator with damping or armature of its own"
    if m.actuator_delay[a]:
        return "actuator with a delay"
    if _joint_range(m, a) is None:
        return "several actuators on a joint whose actuator force is limited"
    return ""


def _joint_range(m: Any, a: int) -> tuple[float, float] | None:
    """What the joint's own limit of actuator force leaves to actuator a; None if it shares the joint with others."""
    joint, gear = int(m.actuator_trnid[a, 0]), float(m.actuator_gear[a, 0])
    if not m.jnt_actfrclimited[joint] or gear == 0:
        return -np.inf, np.inf
    on_joint = [k for k in range(m.nactuator) if m.actuator_trntype[k] < 2 and m.actuator_trnid[k, 0] == joint]
    low, high = sorted(m.jnt_actfrcrange[joint] / gear)
    return (low, high) if on_joint == [a] else None


def _add(b: ModelBuilder, m: Any, names: Names, a: int) -> None:
    """force = gain u + bias . (1, length, velocity), recognised as a servo where it is one"""
    gain = float(m.actuator_gainprm[a, 0])
    b0, b1, b2 = (float(x) for x in m.actuator_biasprm[a, :3]) if m.actuator_biastype[a] else (0.0, 0.0, 0.0)
    kind = "force"
    if gain and b1 == -gain:
        kind, b1 = "position", 0.0
    elif gain and b2 == -gain:
        kind, b2 = "velocity", 0.0
    low, high = m.actuator_forcerange[a] if m.actuator_forcelimited[a] else (-np.inf, np.inf)
    joint_low, joint_high = _joint_range(m, a) or (-np.inf, np.inf)
    u = int(m.actuator_ctrladr[a])
    b.actuator(
        names.actuator[a],
        names.joint[int(m.actuator_trnid[a, 0])],
        kind=kind,
        gain=gain,
        bias=(b0, b1, b2),
        gear=float(m.actuator_gear[a, 0]),
        control_range=m.actuator_ctrlrange[u] if m.actuator_ctrllimited[u] else None,
        force_range=(max(low, joint_low), min(high, joint_high)),
    )
