"""Reading of files by MuJoCo's compiler, so that defaults, includes, fromto, inertia from geometry and meshes keep their
meaning."""

from __future__ import annotations

import copy
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import ModelError
from ..model.findings import Finding
from .mujoco_api import mujoco
from .source import Source
from .urdf import Preparation

DEEPEST = 1023  # bodies in a chain
ROTOR = 0.01  # kg m^2, or kg, rotor of a joint that moves no mass
HIDDEN = 3  # geoms of this group and above are not drawn


class Compiled(NamedTuple):
    """An mjModel, and the findings of its reader."""

    m: Any
    unsupported: list[Finding]
    notes: list[Finding]
    speeds: dict[str, float]  # velocity limits of a URDF's joints


def compiled(source: Source, *, floating: bool, strict: bool) -> Compiled:
    """Return the mjModel of a description."""
    mj = mujoco()
    _check_depth(source)
    prepared = Preparation(source, strict).run() if source.kind == "urdf" else None
    if any(not element.get("anchor", "0").strip() for element in source.root.iter("connect")):
        raise ModelError(f"{source.label}: the anchor of a <connect> is empty")  # MuJoCo's compiler crashes on it
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            m = _compiled(mj, source, prepared, floating)
    except (ValueError, RuntimeError, mj.FatalError) as problem:
        if isinstance(problem, ModelError):
            raise
        raise ModelError(f"{source.label}: {_sentence(str(problem), source)}") from None
    notes = [Finding("warning of MuJoCo's compiler", (), " ".join(str(w.message).split())) for w in said]
    if prepared is None:
        return Compiled(m, [], notes, {})
    unsupported = prepared.unsupported + _weigh(mj, m, prepared, strict)
    _hide_shapes_with_visuals(m)
    return Compiled(m, unsupported, prepared.notes + notes, prepared.speeds)


def _compiled(mj: Any, source: Source, prepared: Preparation | None, floating: bool) -> Any:
    """Compile; if the compiler refuses a shape that may be omitted, compile again without it."""
    spec = _parsed(mj, source, prepared.assets if prepared else {})
    if floating:
        _float(spec, source.label)
    if prepared is None:
        return spec.compile()
    _accept_flat_visuals(mj, spec)
    _couple(mj, spec, prepared)
    _add_planes(mj, spec, prepared)
    for name in prepared.of_shapes:
        spec.body(name).simple = 0  # its center of mass moves after compilation
    _mark_links(spec)
    try:
        return spec.compile()
    except ValueError as problem:
        flat = re.search(r"mesh '(.*)' has coplanar vertices", str(problem))
        if flat is None or not prepared.without_flat(flat[1]):
            raise
    return _compiled(mj, source, prepared, floating)


def _check_depth(source: Source) -> None:
    """Refuse chains too deep for MuJoCo, which takes long to do so."""
    level, behind = _links(source.root) if source.kind == "urdf" else _bodies(source.root)
    for _ in range(DEEPEST):
        level = [b for a in level for b in behind(a)]
    if level:
        raise ModelError(
            f"{source.label} has bodies more than {DEEPEST} deep behind each other, which MuJoCo does not compile"
        )


def _links(root: ET.Element) -> tuple[list[Any], Callable[[Any], list[Any]]]:
    """Return the root links of a URDF, and the children of each link."""
    behind: dict[Any, list[Any]] = {}
    for joint in root.findall("joint"):
        parent, child = joint.find("parent"), joint.find("child")
        if parent is not None and child is not None:
            behind.setdefault(parent.get("link"), []).append(child.get("link"))
    hanging = {link for links in behind.values() for link in links}
    return [link for link in behind if link not in hanging], lambda link: behind.get(link, [])


def _bodies(root: ET.Element) -> tuple[list[Any], Callable[[Any], list[Any]]]:
    """Return the root bodies of an MJCF, and the children of each body."""
    return [b for world in root.iter("worldbody") for b in world.findall("body")], lambda body: body.findall("body")


def of_mujoco(given: Any, *, floating: bool) -> tuple[Compiled, str, str]:
    """Return a copy of an MjSpec or MjModel, its name, and its description for messages."""
    mj = mujoco()
    if isinstance(given, mj.MjModel):
        name = given.names.split(b"\0", 1)[0].decode() or "robot"
        if floating:
            raise ModelError(f"floating=True frees the base of a file or an MjSpec; '{name}' is compiled already")
        return Compiled(copy.copy(given), [], [], {}), name, f"'{name}'"
    spec, name = given.copy(), given.modelname or "robot"
    label = f"'{name}'"
    try:
        if floating:
            _float(spec, label)
        return Compiled(spec.compile(), [], [], {}), name, label
    except (ValueError, RuntimeError, mj.FatalError) as problem:
        if isinstance(problem, ModelError):
            raise
        raise ModelError(f"{label}: {_sentence(str(problem))}") from None


def _parsed(mj: Any, source: Source, assets: dict[str, bytes]) -> Any:
    """Parse MJCF from its file, so that includes and meshes are found; changed text, or text not in UTF-8, from memory."""
    if source.kind == "mjcf" and source.path is not None and source.utf8:
        return mj.MjSpec.from_file(str(source.path))
    spec = mj.MjSpec.from_string(source.text, assets=assets)
    if source.path is not None and source.kind == "mjcf":
        spec.modelfiledir = str(source.path.parent)
    return spec


def _accept_flat_visuals(mj: Any, spec: Any) -> None:
    """Let the compiler accept flat visual meshes, as shells."""
    solid = {g.meshname for g in spec.geoms if g.contype or g.conaffinity}
    for mesh in spec.meshes:
        if mesh.name not in solid:
            mesh.inertia = mj.mjtMeshInertia.mjMESH_INERTIA_SHELL


def _mark_links(spec: Any) -> None:
    """Add a site at the frame of every link, with its name."""
    for body in spec.bodies[1:]:
        body.add_site(name=body.name)


def _couple(mj: Any, spec: Any, prepared: Preparation) -> None:
    """Add equalities for mimic joints."""
    for mimic in prepared.mimics:
        data = np.zeros(mj.mjNEQDATA)
        data[:2] = mimic.offset, mimic.multiplier
        spec.add_equality(
            name=f"{mimic.joint}:{mimic.other or 'fixed'}",
            type=mj.mjtEq.mjEQ_JOINT,
            objtype=mj.mjtObj.mjOBJ_JOINT,
            name1=mimic.joint,
            name2=mimic.other,
            data=data,
        )


def _add_planes(mj: Any, spec: Any, prepared: Preparation) -> None:
    """Add planes that collide; their links must not move."""
    for plane in prepared.planes:
        quat = np.zeros(4)
        mj.mju_quatZ2Vec(quat, plane.normal)
        spec.body(plane.link).add_geom(type=mj.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], pos=plane.position, quat=quat)


def _weigh(mj: Any, m: Any, prepared: Preparation, strict: bool) -> list[Finding]:
    """Give links the masses that they state where the compiler refuses them.

    A joint that then moves no mass is an error, or with strict=False gets a rotor: a file for kinematics may have no
    masses at all.
    """
    if not (prepared.inertias or prepared.of_shapes):
        return []
    for name, given in prepared.of_shapes.items():  # of uniform density, with the given mass and center
        body = m.body(name)
        body.inertia[:] *= given.mass / body.mass
        body.mass[:], body.ipos[:] = given.mass, given.com
    for name, given in prepared.inertias.items():
        body, quat = m.body(name), np.zeros(4)
        moments, axes = np.linalg.eigh(given.matrix)
        mj.mju_mat2Quat(quat, (axes * np.sign(np.linalg.det(axes))).ravel())
        body.mass[:], body.ipos[:], body.inertia[:], body.iquat[:] = given.mass, given.com, moments, quat
    light = np.flatnonzero(_moved(mj, m) < 1e-12)
    if len(light) and strict:
        raise ModelError(
            f"joint '{m.joint(m.dof_jntid[light[0]]).name}' of {prepared.source.label} moves no mass: give what it moves "
            f"a mass and an inertia, or load with strict=False: it has an armature of {ROTOR}"
        )
    found: dict[tuple[str, str], dict[str, None]] = {}
    for k in light:
        body, joint = m.body(m.dof_bodyid[k]), m.joint(m.dof_jntid[k])
        if body.inertia.any():
            body.inertia[:] = body.inertia.mean()
            found.setdefault(("inertia of zero about an axis", "the mean of the moments about all"), {})[body.name] = (
                None
            )
        else:
            m.dof_armature[k] = ROTOR
            found.setdefault(("joint that moves no mass", f"has an armature of {ROTOR}"), {})[joint.name] = None
    mj.mj_setConst(m, mj.MjData(m))  # inverse weights of constraints, for these masses
    return [Finding(what, tuple(where), effect) for (what, effect), where in found.items()]


def _moved(mj: Any, m: Any) -> np.ndarray:
    """Diagonal of the mass matrix in the initial pose."""
    d, column, out = mj.MjData(m), np.zeros(m.nv), np.zeros(m.nv)
    for stage in (mj.mj_kinematics, mj.mj_comPos, mj.mj_makeM):
        stage(m, d)
    for k, unit in enumerate(np.eye(m.nv)):
        mj.mj_mulM(m, d, column, unit)
        out[k] = column[k]
    return out


def _hide_shapes_with_visuals(m: Any) -> None:
    """Hide collision shapes of a URDF's links that have visual shapes."""
    looks = (m.geom_contype == 0) & (m.geom_conaffinity == 0)
    m.geom_group[~looks & np.isin(m.geom_bodyid, m.geom_bodyid[looks])] = HIDDEN


def _float(spec: Any, label: str) -> None:
    """Add a free joint to the only body on the world."""
    roots = list(spec.worldbody.bodies)
    if len(roots) != 1:
        raise ModelError(f"floating=True frees the body on the world; {label} has {len(roots)} bodies on the world")
    if list(roots[0].joints):
        raise ModelError(f"floating=True: '{roots[0].name}' of {label} has joints to the world already")
    roots[0].add_freejoint(name=f"{roots[0].name or 'root'}_free")


# MuJoCo's message -> remedy
HINTS = {
    "mass and inertia of moving bodies": "give it a mass and an inertia larger than zero",
    "balanceinertia": "or correct it: the largest principal moment is more than the sum of the others",
}


def _sentence(message: str, source: Source | None = None) -> str:
    """Return MuJoCo's message in one line, without its prefixes, with the remedy.

    A line number in changed text is meaningless to the author, so the line itself is shown instead.
    """
    if "unknown exception" in message:
        return "MuJoCo's compiler does not say what is wrong; look for attributes that are empty"
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    text = ", ".join(line.removeprefix("XML Error:").strip().removeprefix("Error:").strip() for line in lines)
    number = re.search(r", line (\d+)$", text)
    if number and source is not None and source.kind == "urdf":
        text = text[: number.start()] + f": {source.text.splitlines()[int(number[1]) - 1].strip():.120}"
    hint = next((advice for sign, advice in HINTS.items() if sign in message), None)
    return f"{text}; {hint}" if hint else text
