"""Actuators of a compiled file. Unsupported ones keep their index in u and have no effect."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..build.builder import ModelBuilder
from ..build.validate import number, vector
from ..errors import InputError
from ..model.findings import Finding
from ..model.model import DYNAMICS
from ..physics.joints.table import JOINTS
from .mujoco_api import HINGE_OR_SLIDE, DynType, GainType, JointType, TrnType, member, mujoco
from .names import Names

TOP_VOLTAGE = 7  # entries of gainprm
IDLE = "keeps its place in u and does nothing"


class Motors(NamedTuple):
    """Actuators for the joints of a file without actuators. kind: "torque", "position", "velocity" or "servo"; gains as
    of
    `ag.load`."""

    kind: str
    stiffness: float
    damping: float

    @classmethod
    def of(cls, given: Any, gains: Any) -> Motors | None:
        """Return the motors requested by the arguments of `ag.load`."""
        if given is False or given is None:
            return None
        kind = "torque" if given is True else given
        if kind not in ("torque", "position", "velocity", "servo"):
            raise InputError(f"motors is True, 'torque', 'position', 'velocity' or 'servo', not {given!r}")
        if (gains is None) != (kind == "torque"):
            raise InputError(
                "gains=(stiffness, damping) are of motors='position' or 'velocity', which need them; of 'servo' one number"
            )
        if kind == "servo":
            return cls(kind, number(gains, "gains of motors='servo', one number in 1/s,"), 0.0)
        stiffness, damping = (0.0, 0.0) if gains is None else vector(gains, 2, "gains")
        return cls(kind, float(stiffness), float(damping))

    def add(self, b: ModelBuilder, m: Any, name: str, j: int, speed: float) -> None:
        """Add a motor on joint j.

        Torques and torque commands are within its effort limit; positions within its range; servo motors also within
        its velocity limit.
        """
        effort = m.jnt_actfrcrange[j] if m.jnt_actfrclimited[j] else None
        reach = m.jnt_range[j] if m.jnt_limited[j] else None
        if self.kind == "torque":
            b.add_actuator(name, name, control_range=effort, force_range=effort)
        elif self.kind == "servo":
            own: dict[str, Any] = {"control_range": reach, "force_range": effort, "max_velocity": speed}
            b.add_actuator(name, name, kind="servo", gain=self.stiffness, **own)
        elif self.kind == "position":
            bias = (0.0, 0.0, -self.damping)
            b.add_actuator(
                name, name, kind="position", gain=self.stiffness, bias=bias, control_range=reach, force_range=effort
            )
        else:
            b.add_actuator(name, name, kind="velocity", gain=self.damping, force_range=effort)


VELOCITY_LIMIT = "velocity_limit:"  # of a joint by name, a custom number of a saved file


def add_velocity_limits(b: ModelBuilder, m: Any, speeds: dict[str, float]) -> None:
    """Add the velocity limits of a URDF's joints, or of a saved file's."""
    names = (m.numeric(k) for k in range(m.nnumeric))
    given = {x.name.removeprefix(VELOCITY_LIMIT): float(x.data[0]) for x in names if x.name.startswith(VELOCITY_LIMIT)}
    for own in b._bodies.values():
        limit = (speeds | given).get(own["joint_name"], 0.0)
        if limit > 0 and JOINTS[own["joint"]].nv:
            own["velocity_limit"] = limit


def add_motors(b: ModelBuilder, m: Any, names: Names, motors: Motors | None, speeds: dict[str, float]) -> None:
    """Add `motors` to the joints of a file without actuators; speeds: its velocity limits."""
    if speeds and (motors is None or motors.kind != "servo"):
        b.notes.append(
            Finding("limit of velocity", tuple(speeds), "kept in params.velocity_limit; nothing enforces it")
        )
    if motors is not None and not m.nactuator:
        for j in range(m.njnt):
            if m.jnt_type[j] in HINGE_OR_SLIDE:
                motors.add(b, m, names.joint[j], j, speeds.get(names.joint[j], np.inf))


def add_actuators(b: ModelBuilder, m: Any, names: Names) -> None:
    """Add all actuators in the file's order."""
    beyond: dict[str, list[str]] = {}
    for a in range(m.nactuator):
        problem, name = _problem(b, m, names, a), names.actuator[a]
        controls = [name, *(f"{name}:{k}" for k in range(1, int(m.actuator_ctrlnum[a])))][: int(m.actuator_ctrlnum[a])]
        for k, control in enumerate(controls):
            if problem:
                b.add_idle_actuator(control)
            else:
                _add(b, m, names, a, k, control)
        if problem:
            beyond.setdefault(problem, []).append(name)
    b.unsupported += [Finding(what, tuple(where), IDLE) for what, where in beyond.items()]


def _problem(b: ModelBuilder, m: Any, names: Names, a: int) -> str:
    """Return the reason why actuator a is not supported, or an empty string."""
    transmission, on = int(m.actuator_trntype[a]), int(m.actuator_trnid[a, 0])
    if transmission not in tuple(TrnType):
        return f"actuator on a {member('mjtTrn', transmission)}"
    if transmission == TrnType.TENDON and names.tendon[on] not in b._tendons:
        return "actuator on a tendon that is left out"
    if transmission == TrnType.BODY and (
        m.actuator_biasprm[a, 1:3].any() or m.actuator_gainprm[a, 1:3].any() or not on
    ):
        return "actuator on a body (adhesion) whose force is not its gain times control"
    if transmission == TrnType.BODY and m.jnt_actfrclimited.any():
        return "actuator on a body (adhesion) beside joints whose actuator force is limited"
    if int(m.actuator_plugin[a]) >= 0:
        return "actuator of a plugin"
    if int(m.actuator_dyntype[a]) not in tuple(DynType) and _plain(m, a) is None:
        return f"actuator with activation dynamics '{member('mjtDyn', m.actuator_dyntype[a])}'"
    if max(int(m.actuator_gaintype[a]), int(m.actuator_biastype[a])) > GainType.MUSCLE and _plain(m, a) is None:
        return "actuator with a gain or bias that is neither affine nor a muscle's"
    if int(m.actuator_actnum[a]) > 1:
        return "actuator with several activations"
    if int(m.actuator_ctrlnum[a]) == 0:
        return "actuator without a control"
    if int(m.actuator_ctrlnum[a]) > 1 and (_plain(m, a) is None or m.actuator_forcelimited[a] or _is_sensed(m, a)):
        return "actuator with several controls, and a limit or a sensor of its force"
    if m.actuator_armature[a] or m.actuator_damping[a] or np.any(m.actuator_dampingpoly[a]):
        return "actuator with damping or armature of its own"
    if m.actuator_delay[a]:
        return "actuator with a delay"
    if _range_left(m, a) is None:
        return "several actuators on a tendon whose actuator force is limited"
    return ""


def _plain(m: Any, a: int) -> tuple[list[float], list[float]] | None:
    """Return the gain of each control and the common bias of a PID controller or DC motor without states."""
    kind, spec, own = member("mjtGain", m.actuator_gaintype[a]), int(m.actuator_ctrlspec[a]), m.actuator_gainprm[a]
    if kind not in ("dcmotor", "pid") or m.actuator_actnum[a]:
        return None
    if kind == "pid":
        volt, (_, kp, kv) = 0.0, -m.actuator_biasprm[a, :3]
    elif m.actuator_biasprm[a, 0] or own[TOP_VOLTAGE]:  # cogging
        return None
    else:
        volt, kp, kv = own[1] / own[0], own[4], own[6]
    gains = [float(x) for bit, x in zip((1, 2, 4, 8), (kp, kv, 1.0, volt), strict=True) if spec & bit]
    controlled = spec & 7  # then the driver compensates the induced voltage
    return gains, [0.0, -float(kp), -float(kv)] if controlled else [0.0, 0.0, -float(volt * own[1])]


def _is_sensed(m: Any, a: int) -> bool:
    """Return True if a sensor reads the force of actuator a."""
    kind, on = mujoco().mjtSensor.mjSENS_ACTUATORFRC, zip(m.sensor_type, m.sensor_objid, strict=True)
    return any(sensor == kind and i == a for sensor, i in on)


def _range_left(m: Any, a: int) -> tuple[float, float] | None:
    """Return the force range of actuator a within the limit of its tendon's actuator force; None if it shares the tendon."""
    on = int(m.actuator_trnid[a, 0])
    if int(m.actuator_trntype[a]) != TrnType.TENDON or not m.tendon_actfrclimited[on]:
        return -np.inf, np.inf
    here = (m.actuator_trntype == TrnType.TENDON) & (m.actuator_trnid[:, 0] == on)
    low, high = (float(x) for x in m.tendon_actfrcrange[on])
    return (low, high) if here.sum() == 1 else None


def _on(m: Any, names: Names, a: int) -> dict[str, Any]:
    """Return the target of actuator a, and its gear."""
    transmission, on = int(m.actuator_trntype[a]), int(m.actuator_trnid[a, 0])
    gear = m.actuator_gear[m.actuator_outadr[a]]
    if transmission == TrnType.TENDON:
        return {"tendon": names.tendon[on], "gear": float(gear[0])}
    if transmission == TrnType.BODY:
        return {"body": names.body[on]}  # MuJoCo ignores its gear
    other = int(m.actuator_trnid[a, 1])
    if transmission == TrnType.SITE:
        return {"site": names.site[on], "refsite": None if other < 0 else names.site[other], "gear": gear}
    if transmission == TrnType.SLIDERCRANK:
        rod = float(m.actuator_cranklength[a])
        return {"crank": names.site[on], "slider": names.site[other], "crank_length": rod, "gear": float(gear[0])}
    counts: dict[int, int] = {JointType.FREE: 6, JointType.BALL: 3}
    count = counts.get(int(m.jnt_type[on]), 1)
    in_parent = transmission == TrnType.JOINTINPARENT
    return {"joint": names.joint[on], "gear": gear[:count] if count > 1 else float(gear[0]), "in_parent": in_parent}


def _add(b: ModelBuilder, m: Any, names: Names, a: int, k: int, name: str) -> None:
    """Add control k of actuator a: force = gain u + bias . (1, length, velocity), as a servo if it is one."""
    gain = 0.0 if m.actuator_gaintype[a] == GainType.MUSCLE else float(m.actuator_gainprm[a, 0])
    affine = m.actuator_biastype[a] == GainType.AFFINE
    b0, b1, b2 = (float(x) for x in m.actuator_biasprm[a, :3]) if affine else (0.0, 0.0, 0.0)
    plain = _plain(m, a)
    if plain is not None:
        gain, (b0, b1, b2) = plain[0][k], plain[1] if k == 0 else (0.0, 0.0, 0.0)
    kind = "force"
    if gain and b1 == -gain:
        kind, b1 = "position", 0.0
    elif gain and b2 == -gain:
        kind, b2 = "velocity", 0.0
    low, high = m.actuator_forcerange[a] if m.actuator_forcelimited[a] else (-np.inf, np.inf)
    left_low, left_high = _range_left(m, a) or (-np.inf, np.inf)
    u = int(m.actuator_ctrladr[a]) + k
    b.add_actuator(
        name,
        kind=kind,
        gain=gain,
        gain_slope=m.actuator_gainprm[a, 1:3] if m.actuator_gaintype[a] == GainType.AFFINE else (0.0, 0.0),
        bias=(b0, b1, b2),
        control_range=m.actuator_ctrlrange[u] if m.actuator_ctrllimited[u] else None,
        force_range=(max(low, left_low), min(high, left_high)),
        **_activation(m, a),
        **_muscle(m, a),
        **_on(m, names, a),
    )


def _activation(m: Any, a: int) -> dict[str, Any]:
    if not m.actuator_dyntype[a] or _plain(m, a) is not None:
        return {}
    return {
        "dynamics": DYNAMICS[int(m.actuator_dyntype[a]) - 1],
        "activation_time": m.actuator_dynprm[a, :3],
        "activation_range": m.actuator_actrange[a] if m.actuator_actlimited[a] else None,
        "actearly": bool(m.actuator_actearly[a]),
    }


def _muscle(m: Any, a: int) -> dict[str, Any]:
    """Return the parameters of muscle actuator a. A negative force in a file is computed from a scale and the inertia."""
    out = m.actuator_outadr[a]
    found: dict[str, Any] = {}
    for what, kinds, numbers in (
        ("gain", m.actuator_gaintype, m.actuator_gainprm),
        ("bias", m.actuator_biastype, m.actuator_biasprm),
    ):
        if kinds[a] == GainType.MUSCLE:
            low, high, force, scale, *rest = (float(x) for x in numbers[a, :9])
            force = scale / max(1e-15, float(m.actuator_acc0[out])) if force < 0 else force
            found[f"muscle_{what}"] = (low, high, force, *rest)
    return found | {"muscle_length_range": m.actuator_lengthrange[out]} if found else {}
