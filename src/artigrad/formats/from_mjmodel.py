"""Conversion of a compiled mjModel to a Model: bodies, joints, sites, keyframes, options. q is qpos, v is qvel, u is
ctrl.

A body of the file with several joints becomes a chain of massless bodies with one joint each, which ends in the body
itself. A joint's `ref` is moved into the placement of its body, which in a Model is that at q = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build.builder import ModelBuilder
from ..build.lenient_builder import LenientBuilder
from ..build.validate import meaningful as reference
from ..errors import ModelError
from ..model.findings import Finding
from ..model.model import RESERVED, Model
from ..model.options import Integrator, Options, SoftOptions
from ..model.quaternions import inertia_in, product, rotate, turn
from ..physics.joints.table import BY_MJCF
from .actuators import Motors, add_actuators, add_motors, add_velocity_limits
from .compiler import Compiled
from .contacts import add_shapes
from .drawn_geoms import add_cameras, add_visuals
from .equalities import add_equalities
from .file_sensors import add_sensors
from .flags import Off, actuated, apply_flags, off
from .mujoco_api import JointType
from .names import Names
from .tendons import add_tendons
from .unsupported import FEATURES, NOTES, findings

JOINTS = tuple(BY_MJCF[kind.name.lower()] for kind in JointType)


class FileBuilder(LenientBuilder):
    """Builder for files: pairs without a collision routine are reported."""

    def _without_routine(self, missing: dict[str, list[str]]) -> None:
        for kinds, pairs in sorted(missing.items()):
            what = f"contact between {kinds.replace('points', 'mesh')}"
            finding = Finding(what, tuple(pairs), "these pairs do not touch")
            if finding not in self.unsupported:
                self.unsupported.append(finding)

    def of_bodies(self, values: dict[str, Any], default: Any) -> list[Any]:
        """Return a value for every body so far: that of its name, or the default for a body that only adds a joint."""
        return [values.get(name, default) for name in self._bodies]


def convert(read: Compiled, name: str, *, motors: Motors | None = None) -> Model:
    """Return the Model of a compiled file; features that were not converted are in its `unsupported` and `notes`."""
    m, names = read.m, Names(read.m)
    apply_flags(m)
    b = FileBuilder(name, gravity=m.opt.gravity)
    b.magnetic, b.parents_touch = m.opt.magnetic.copy(), off(m, Off.FILTERPARENT)
    b.set_fluid(density=m.opt.density, viscosity=m.opt.viscosity, wind=m.opt.wind)
    b.unsupported = read.unsupported + findings(FEATURES, m, names)
    b.notes = read.notes + findings(NOTES, m, names)
    for i in range(1, m.nbody):
        _add_body(b, m, names, i, driven=actuated(m) or motors is not None)
    add_velocity_limits(b, m, read.speeds)
    file_bodies = {names.body[i]: m.body_invweight0[i] for i in range(1, m.nbody)}
    b.weights = {"body_invweight0": b.of_bodies(file_bodies, np.zeros(2)), "dof_invweight0": m.dof_invweight0.copy()}
    for s in range(m.nsite):
        place = {"position": m.site_pos[s], "rotation": m.site_quat[s]}
        b.add_site(names.site[s], names.body[int(m.site_bodyid[s])], **place)
    add_tendons(b, m, names)
    add_actuators(b, m, names)
    add_motors(b, m, names, motors, read.speeds)
    add_shapes(b, m, names)
    add_equalities(b, m, names)
    add_visuals(b, m, names)
    add_cameras(b, m, names)
    add_sensors(b, m, names)
    for k in range(m.nkey):
        driven = [names.actuator.index(name) for name, a in b._actuators.items() if "activation" in a]
        act = [m.key_act[k][m.actuator_actadr[a]] for a in driven]
        _add_keyframe(b, names.keyframe[k], _unit(m, m.key_qpos[k]), m.key_qvel[k], m.key_ctrl[k], act, _mocap(m, k))
    b.options = _options(m, b)
    return b.build()


def _add_body(b: ModelBuilder, m: Any, names: Names, i: int, driven: bool) -> None:
    """Add body i of the file, after a massless body for each of its joints but the last. driven: there are actuators."""
    name, parent = names.body[i], names.body[int(m.body_parentid[i])]
    position, rotation = m.body_pos[i], m.body_quat[i]
    first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
    own = {
        "mass": m.body_mass[i],
        "com": m.body_ipos[i],
        "inertia": inertia_in(m.body_iquat[i], m.body_inertia[i]),
        "gravity_compensation": m.body_gravcomp[i],
        **_box(m, i),
    }
    if count == 0:
        b.add_body(name, parent, position=position, rotation=rotation, mocap=bool(m.body_mocapid[i] >= 0), **own)
    for j in range(first, first + count):
        last = j == first + count - 1
        own_name = names.joint[j].startswith(f"{name}:")  # of a saved model, such as "arm:1"
        link = name if last else names.joint[j] if own_name else f"{name}:{names.joint[j]}"
        position, rotation = _at_zero(m, j, position, rotation)
        options = _joint(m, j, driven)
        b.add_body(
            link,
            parent,
            joint=JOINTS[int(m.jnt_type[j])].name,
            joint_name=names.joint[j],
            position=position,
            rotation=rotation,
            **options,
            **(own if last else {}),
        )
        parent, position, rotation = link, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])


def _box(m: Any, i: int) -> dict[str, Any]:
    """Return the box with the inertia of body i, which represents it in a fluid, unless its geoms do."""
    moments, mass = m.body_inertia[i], float(m.body_mass[i])
    geoms = range(int(m.body_geomadr[i]), int(m.body_geomadr[i]) + int(m.body_geomnum[i]))
    if any(m.geom_fluid[g, 0] for g in geoms):  # its geoms are used instead
        return {}
    if mass < 1e-15 or not (m.opt.density or m.opt.viscosity):
        return {}
    edges = np.sqrt(np.maximum(moments.sum() - 2 * moments, 1e-15) / mass * 6.0)
    return {"fluid_box": edges, "fluid_rotation": m.body_iquat[i]}


def _at_zero(m: Any, j: int, position: np.ndarray, rotation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose of the body of joint j at q = 0, given that at the joint's reference."""
    joint, axis, anchor = JOINTS[int(m.jnt_type[j])], m.jnt_axis[j], m.jnt_pos[j]
    if not joint.axial:
        return position, rotation
    reference = float(m.qpos0[m.jnt_qposadr[j]])
    if not joint.angular:
        return position - rotate(rotation, axis * reference), rotation
    back = turn(axis, -reference)
    return position + rotate(rotation, anchor - rotate(back, anchor)), product(rotation, back)


def _joint(m: Any, j: int, driven: bool) -> dict[str, Any]:
    """Return the parameters of joint j of the file."""
    joint, k = JOINTS[int(m.jnt_type[j])], int(m.jnt_dofadr[j])
    actuator_gravcomp = bool(m.jnt_actgravcomp[j]) and bool(m.body_gravcomp.any())
    out: dict[str, Any] = {
        "damping": m.dof_damping[k],
        "armature": m.dof_armature[k],
        "actuator_gravcomp": actuator_gravcomp,
    }
    if not joint.floating:
        out["anchor"] = m.jnt_pos[j]
    out["stiffness"], out["stiffness_curve"] = m.jnt_stiffness[j], m.jnt_stiffnesspoly[j]
    out["damping_curve"] = m.dof_dampingpoly[k]
    if joint.axial:
        out["reference"] = m.qpos0[m.jnt_qposadr[j]]
        out["axis"], out["spring_reference"] = m.jnt_axis[j], m.qpos_spring[m.jnt_qposadr[j]]
        out["effort_limit"] = m.jnt_actfrcrange[j] if m.jnt_actfrclimited[j] and m.nactuator else None
        if actuator_gravcomp and m.nactuator and not driven:  # MuJoCo then compensates nothing there
            out["effort_limit"] = (0.0, 0.0)
    if joint.limitable:
        out["limit"] = m.jnt_range[j] if m.jnt_limited[j] else None
        out["limit_margin"], out["limit_solimp"] = m.jnt_margin[j], m.jnt_solimp[j]
        out["limit_solref"] = reference(m.jnt_solref[j])
    out["dry_friction"], out["dry_solimp"] = m.dof_frictionloss[k], m.dof_solimp[k]
    out["dry_solref"] = reference(m.dof_solref[k])
    return out


def _mocap(m: Any, k: int) -> np.ndarray:
    """Poses of mocap bodies in keyframe k, in the order of bodies."""
    order = [int(n) for n in m.body_mocapid if n >= 0]
    places = np.c_[m.key_mpos[k].reshape(-1, 3), m.key_mquat[k].reshape(-1, 4)]
    return places[order].ravel()


def _unit(m: Any, q: np.ndarray) -> np.ndarray:
    """Return q with unit quaternions."""
    q = np.array(q)
    for j in range(m.njnt):
        joint = JOINTS[int(m.jnt_type[j])]
        if joint.quaternion:
            a = int(m.jnt_qposadr[j]) + joint.straight
            length = np.linalg.norm(q[a : a + 4])
            q[a : a + 4] = q[a : a + 4] / length if length > 1e-15 else (1.0, 0.0, 0.0, 0.0)
    return q


def _add_keyframe(b: FileBuilder, name: str, *parts: Any) -> None:
    """Add a keyframe of the file; one with a reserved name is renamed."""
    if name in RESERVED:
        other, k = f"{name}_2", 3
        while other in b._keyframes:
            other, k = f"{name}_{k}", k + 1
        b.notes.append(Finding(f"keyframe '{name}', which every model has by itself", (), f"is '{other}'"))
        name = other
    b.add_keyframe(name, *parts)


# mjtIntegrator
INTEGRATORS: tuple[Integrator, ...] = ("euler", "rk4", "implicit", "implicitfast")


def _options(m: Any, b: FileBuilder) -> Options:
    """Return the simulation options of the file."""
    if not m.opt.timestep > 0:
        raise ModelError(f"timestep of '{b.name}' is {m.opt.timestep:g}; it must be above zero, in seconds")
    known, sweeps = m.opt.integrator < len(INTEGRATORS), int(m.opt.noslip_iterations)
    least_gain = m.opt.noslip_tolerance * m.stat.meaninertia * max(1, m.nv) if sweeps else 0.0
    return Options(
        dt=float(m.opt.timestep),
        integrator=INTEGRATORS[m.opt.integrator if known else 0],
        implicit_damping=not off(m, Off.EULERDAMP),
        cone="elliptic" if m.opt.cone else "pyramidal",
        law=SoftOptions(
            impratio=float(m.opt.impratio),
            refsafe=not off(m, Off.REFSAFE),
            noslip=sweeps,
            noslip_tolerance=float(f"{least_gain:.12g}"),  # unchanged by saving
        ),
    )
