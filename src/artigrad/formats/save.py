"""ag.save: a model as MJCF, which MuJoCo loads with the same dynamics.

A chain of massless bodies that ends in one with mass is written as the several joints of that body, which is how
`ag.load` reads it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import checked_model
from ..build.edit import parts_by_name, side_name
from ..build.inverse_weights import mean_inertia, poses, tendon_lengths
from ..build.pair_filter import Bond, Groups, groups
from ..build.validate import possible
from ..errors import ModelError, warn
from ..files import as_path, to_write, write_text
from ..model.findings import Finding, Report
from ..model.model import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HEIGHT_FIELD,
    PLANE,
    POINTS,
    POSITION,
    RESERVED,
    SPHERE,
    VELOCITY,
    Model,
    Sensor,
)
from ..model.param_checks import check_params
from ..model.params import Params
from ..model.quaternions import matrix, of_matrix, product, rotate
from ..model.quaternions import turn as axis_turn
from ..model.sliding_bodies import sliding_bodies
from ..model.transmissions import Piece
from ..physics.constraints.law import law_of
from ..physics.sensors.distance_sensors import DISTANCE_SENSORS
from ..physics.sensors.sensor_table import KINDS
from . import height_record, hull_record
from .actuators import VELOCITY_LIMIT
from .mujoco_api import mujoco

# shape: type of geom, and number of entries of its size
GEOMS = {
    PLANE: ("plane", 2),
    SPHERE: ("sphere", 1),
    CAPSULE: ("capsule", 2),
    ELLIPSOID: ("ellipsoid", 3),
    BOX: ("box", 3),
    CYLINDER: ("cylinder", 2),
}
SENSORS = {"jointactfrc": "jointactuatorfrc", "tendonactfrc": "tendonactuatorfrc"}  # name in MJCF
SENSORS |= {"geomdist": "distance", "geomnormal": "normal", "geomfromto": "fromto"}
INTEGRATORS = {"euler": "Euler", "implicitfast": "implicitfast", "implicit": "implicit", "rk4": "RK4"}
COMPILER = {"angle": "radian", "inertiafromgeom": "false", "fusestatic": "false", "discardvisual": "false"}
DRAWN, HIDDEN = "1", "3"  # groups of geoms
GLASS = "glass"  # a material transparent to rays; geoms with it have their own colors
GREY = np.array([0.5, 0.5, 0.5, 1.0])
SIDE_NAMES = {"shape": "geom", "body": "body", "subtree": "subtree"}
IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
NEXT_AXES = np.array([0.5, 0.5, 0.5, 0.5])  # x to y, y to z, z to x
# attribute of a tendon: field of Params
TENDON_NUMBERS = {"springlength": "rest", "margin": "limit_margin"}
TENDON_NUMBERS |= {"solreflimit": "limit_solref", "solimplimit": "limit_solimp", "frictionloss": "dry_friction"}
TENDON_NUMBERS |= {"solreffriction": "dry_solref", "solimpfriction": "dry_solimp"}


@checked_model
def save(model: Model, path: str | Path, *, params: Params | None = None, strict: bool = True) -> None:
    """Write a model as an MJCF file.

    Features without counterpart in MJCF (restitution, servo motors, speed limits of servos, impossible inertias) raise
    an error that lists them, or with strict=False are omitted. A file has joints in the order of its tree, each body
    before its children and these before the next body; if that differs from the model's order, and so from its q and v,
    a warning is issued.

    Args:
        model: Robot.
        path: File to write.
        params: Parameters to write in place of the model's, such as estimated ones.
        strict: Raise an error for features without counterpart.
    """
    path = as_path(path)
    if path.suffix.lower() not in ("", ".xml", ".mjcf"):
        hint = (
            "URDF holds no actuators, sites, tendons or softness of contact"
            if path.suffix == ".urdf"
            else "name it .xml"
        )
        raise ModelError(f"ag.save writes MJCF, not '{path.suffix}': {hint}")
    to_write(path)
    write_text(path, _written(model, params, strict))


@checked_model
def spec(model: Model, *, params: Params | None = None, strict: bool = True) -> Any:
    """Return a model as MuJoCo's `MjSpec`, as `save` writes it; `ag.load` reads it back."""
    return mujoco().MjSpec.from_string(_written(model, params, strict))


def _written(model: Model, params: Params | None, strict: bool) -> str:
    """Return the MJCF of a model."""
    if not isinstance(model, Model):
        raise ModelError(f"ag.save writes a Model, not {type(model).__name__}")
    writer = Writer(model, model.params if params is None else params)
    check_params(writer.p)
    text = writer.text()
    writer.check_ellipsoids(text)
    if writer.lost and strict:
        raise ModelError(
            f"MJCF cannot hold all of '{model.name}'; save it with strict=False to omit it:\n"
            + str(Report(writer.lost))
        )
    if writer.order != sorted(writer.order):
        names = ", ".join(model.joints[i] for i in writer.order)
        warn(f"the file has the joints of '{model.name}', and so q and v, in the order of its tree: {names}")
    return text


def numbers(x: Any) -> str:
    return " ".join(repr(float(a)) for a in np.ravel(x))


def interval(limits: np.ndarray) -> tuple[float, float]:
    """Return limits in MJCF's form: finite, the second above the first."""
    low, high = np.clip(limits, -1e10, 1e10)
    return float(low), float(high if high > low else np.nextafter(low, np.inf))


class Writer:
    """Conversion of one model to XML; `lost` lists features without counterpart in MJCF."""

    def __init__(self, model: Model, params: Params):
        if params.model is not model or params.batch is not None:
            raise ModelError("params are one set of this model's")
        self.model, self.p = model, params
        self.lost: list[Finding] = []
        self.root = ET.Element("mujoco", model=model.name)
        self.meshes = 0
        self.texts: dict[str, str] = {}  # custom texts by name
        self.impossible: list[str] = []  # bodies whose inertia MuJoCo refuses
        self.order: list[int] = []  # of joints, as written
        self.written: dict[int, ET.Element] = {}  # bodies
        self.anchors: set[str] = set()  # names of sites that equalities need
        self.sees = any(s.kind == "rangefinder" for s in model.sensors)
        self.reference = model.reference
        self.groups, self.sliding = self._groups(), self._keeps_inertia_axes()
        self.absorbed = {i for i in range(model.nb) if self._absorbs(i)}

    def text(self) -> str:
        ET.SubElement(self.root, "compiler", COMPILER)
        self._options()
        self.assets = ET.SubElement(self.root, "asset")
        if self.sees:  # visual shapes are transparent to rays, collision shapes are not
            ET.SubElement(self.assets, "material", name=GLASS, rgba="1 1 1 0")
        world = ET.SubElement(self.root, "worldbody")
        self._on(world, -1)
        for i in self._children(-1):
            self._body(world, i, np.zeros(3), IDENTITY, [])
        self._contacts()
        self._tendons()
        self._equalities(world)
        self._actuators()
        self._sensors()
        self._keyframes()
        self._custom()
        self._check()
        ET.indent(self.root)
        return ET.tostring(self.root, encoding="unicode") + "\n"

    def _options(self) -> None:
        own = self.model.options
        option = ET.SubElement(self.root, "option", gravity=numbers(self.p.gravity), magnetic=numbers(self.p.magnetic))
        for key in ("density", "viscosity", "wind"):
            option.set(key, numbers(self.p[key]))
        option.set("timestep", repr(float(own.dt)))
        option.set("integrator", INTEGRATORS.get(own.integrator, "Euler"))
        option.set("cone", own.cone)
        law = own.soft
        option.set("impratio", repr(float(law.impratio)))
        if law.noslip:
            option.set("noslip_iterations", str(law.noslip))
            scale = mean_inertia(self.model, self.reference) * self.model.nv
            option.set("noslip_tolerance", repr(law.noslip_tolerance / scale))
        off = {"refsafe": not law.refsafe, "eulerdamp": not own.implicit_damping}
        off["filterparent"] = bool(self.model.shapes.touching_parents)
        ET.SubElement(option, "flag", {name: "disable" for name, is_off in off.items() if is_off})

    # -- bodies ----------------------------------------------------------------------------------------------------------
    def _groups(self) -> Groups:
        """Groups of welded bodies, as for the model's own pairs."""
        m, p = self.model, self.model.params
        bonds = []
        for i, parent in enumerate(m.parent):
            bare = not (p.mass[i] or p.inertia[i].any() or m.joint_kind(i).floating or i in m.shapes.body)
            bonds.append(Bond(parent, bool(m.joint_kind(i).nv) or i in m.mocap, bare))
        return groups(bonds)

    def _keeps_inertia_axes(self) -> set[int]:
        """Return the bodies that may keep their axes of inertia.

        These are all but those that only slide and whose inverse weights differ from those that MuJoCo computes in
        these axes.
        """
        m, known = self.model, sliding_bodies(self.model)
        kinds = [m.joint_kind(i) for i in range(m.nb)]
        return {i for i, kind in enumerate(kinds) if i in known or not kind.axial or kind.angular}

    def _children(self, i: int) -> list[int]:
        return [k for k, parent in enumerate(self.model.parent) if parent == i]

    def _massless(self, i: int) -> bool:
        return self.p.mass[i] == 0 and not self.p.inertia[i].any()

    def _moves(self, i: int) -> bool:
        """Return True if body i is connected to the world by a joint."""
        return i >= 0 and bool(self.model.links.of_body[i + 1])

    def _absorbs(self, i: int) -> bool:
        """Return True if body i only adds a joint to its child."""
        m, children = self.model, self._children(i)
        joint = m.joint_kind(i)
        used = {*m.site_body, *m.shapes.body, *(v.body for v in m.visuals), *(c.body for c in m.cameras)}
        used |= {s.on for s in m.sensors if KINDS[s.kind].on == "body"}
        used |= {side.which for s in m.sensors for side in s.between if side.what in ("body", "subtree")}
        used |= {body for e in m.equalities if e.kind in ("connect", "weld") for body in (e.a, e.b)}
        used |= {on.a for on in m.transmissions if on.kind == "body"}
        if not joint.nv or joint.floating or not self._massless(i) or len(children) != 1 or i in used:
            return False
        if m.joint_kind(children[0]).nv and not self.groups.alone[i]:
            return False
        return joint.axial or np.array_equal(self.p.rotation[children[0]], IDENTITY)

    def _body(self, above: ET.Element, i: int, position: np.ndarray, rotation: np.ndarray, joints: list[Any]) -> None:
        """Write body i, placed in a frame, after the joints of massless bodies before it: (index, anchor, axis) in that
        frame.

        X_i J_i X_c = (X_i X_c) (X_c^-1 J_i X_c): a joint commutes with a placement that transforms its anchor and axis.
        """
        r, turn = self._placed(i)
        R = matrix(turn)
        joints = [(k, R.T @ (anchor - r), R.T @ axis) for k, anchor, axis in joints]
        position, rotation = position + rotate(rotation, r), product(rotation, turn)
        if self.model.joint_kind(i).nv:
            joints.append((i, self.p.anchor[i], self.p.axis[i]))
        if i in self.absorbed:
            return self._body(above, self._children(i)[0], position, rotation, joints)
        own = ET.SubElement(above, "body", name=self.model.bodies[i], pos=numbers(position), quat=numbers(rotation))
        self.written[i] = own
        if i in self.model.mocap:
            own.set("mocap", "true")
        if self.p.gravity_compensation[i]:
            own.set("gravcomp", numbers(self.p.gravity_compensation[i]))
        for k, anchor, axis in joints:
            self._joint(own, k, anchor, axis)
        self._inertial(own, i, moving=bool(joints))
        self._on(own, i)
        for k in self._children(i):
            self._body(own, k, np.zeros(3), IDENTITY, [])

    def _placed(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Pose of body i in its parent's frame with its joint at the file's reference."""
        p, kind = self.p, self.model.joint_kind(i)
        r, turn = p.position[i], p.rotation[i]
        if not kind.axial:
            return r, turn
        q = self.reference[self.model.joint_q[i]]
        if not kind.angular:
            return r + rotate(turn, p.axis[i] * q), turn
        there = axis_turn(p.axis[i], q)
        return r + rotate(turn, p.anchor[i] - rotate(there, p.anchor[i])), product(turn, there)

    def _inertial(self, own: ET.Element, i: int, moving: bool) -> None:
        """Write mass and inertia in principal axes.

        MuJoCo requires more than 1e-15 for moving bodies, so zeros become 1e-14, which is below the rounding error of
        any robot. Without an element, MuJoCo takes the inverse weights of a massless body elsewhere than at its frame.
        """
        least = 1e-14 if moving else 0.0
        xx, yy, zz, xy, xz, yz = self.p.inertia[i]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        moments, Q = np.linalg.eigh(inertia)
        Q[:, 2] *= np.sign(np.linalg.det(Q))
        if not possible(moments):
            self.impossible.append(self.model.bodies[i])
            moments = np.full(3, moments.mean())
        turn = of_matrix(Q)
        if not inertia[~np.eye(3, dtype=bool)].any() and possible(np.sort(np.diag(inertia))):
            moments, turn = np.diag(inertia), IDENTITY
        if self._is_fluid_box(i) and self._is_inertia_box(i):  # whose axes are not unique if two moments are equal
            R, turn = matrix(self.p.fluid_rotation[i]), self.p.fluid_rotation[i]
            moments = np.diag(R.T @ inertia @ R)
        if (
            i not in self.sliding
        ):  # with its own axes, MuJoCo omits armature in the inverse weights of a body that only slides
            moments, turn = moments[[1, 2, 0]], product(turn, NEXT_AXES)
        inertial = ET.SubElement(own, "inertial", mass=numbers(max(self.p.mass[i], least)), pos=numbers(self.p.com[i]))
        inertial.set("diaginertia", numbers(np.maximum(moments, least)))
        inertial.set("quat", numbers(turn))

    def _joint(self, own: ET.Element, i: int, anchor: np.ndarray, axis: np.ndarray) -> None:
        p, kind = self.p, self.model.joint_kind(i)
        if kind.mjcf is None:
            raise ModelError(f"MJCF has no {kind.name} joints, and so '{self.model.joints[i]}' cannot be saved")
        self.order.append(i)
        joint = ET.SubElement(own, "joint", name=self.model.joints[i], type=str(kind.mjcf))
        joint.set("damping", numbers([p.damping[i], *p.damping_curve[i]]))
        joint.set("armature", numbers(p.armature[i]))
        if not kind.floating:
            joint.set("pos", numbers(anchor))
        if kind.axial:
            joint.set("axis", numbers(axis))
            joint.set("springref", numbers(p.spring_reference[i]))
            joint.set("ref", numbers(self.reference[self.model.joint_q[i]]))
        joint.set("stiffness", numbers([p.stiffness[i], *p.stiffness_curve[i]]))
        joint.set("frictionloss", numbers(p.dry_friction[i]))
        joint.set("solreffriction", numbers(p.dry_solref[i]))
        joint.set("solimpfriction", numbers(p.dry_solimp[i]))
        if np.isfinite(p.effort_limit[i]).any():
            joint.set("actuatorfrclimited", "true")
            joint.set("actuatorfrcrange", numbers(interval(p.effort_limit[i])))
        if i in self.model.actuator_gravcomp:
            joint.set("actuatorgravcomp", "true")
        if np.isfinite(p.limit[i]).any():
            joint.set("limited", "true")
            joint.set("range", numbers(interval(p.limit[i])))
        if kind.limitable:
            joint.set("margin", numbers(p.limit_margin[i]))
            joint.set("solreflimit", numbers(p.limit_solref[i]))
            joint.set("solimplimit", numbers(p.limit_solimp[i]))

    # -- what bodies carry -------------------------------------------------------------------------------------------------
    def _on(self, own: ET.Element, i: int) -> None:
        """Write shapes, visuals, cameras and sites of body i."""
        m, p = self.model, self.p
        for s in (s for s, body in enumerate(m.shapes.body) if body == i):
            geom = ET.SubElement(own, "geom", name=m.shapes.names[s], group=HIDDEN if m.visuals else "0")
            geom.set("pos", numbers(p.shape_position[s]))
            geom.set("quat", numbers(p.shape_rotation[s]))
            if s in m.shapes.wet:
                geom.set("fluidshape", "ellipsoid")
                geom.set("fluidcoef", numbers(p.fluid_coefficients[m.shapes.wet.index(s)]))
            if s in m.shapes.unseen:
                geom.set("rgba", "0 0 0 0")
            geom.set("contype", str(m.shapes.masks[s][0]))
            geom.set("conaffinity", str(m.shapes.masks[s][1]))
            geom.set("condim", str(m.shapes.condim[s]))
            geom.set("priority", str(m.shapes.priority[s]))
            geom.set("gap", repr(m.shapes.gap[s]))
            geom.set("friction", numbers([p.friction[s], p.torsional_friction[s], p.rolling_friction[s]]))
            for key in ("solref", "solimp", "solmix", "margin"):
                geom.set(key, numbers(p[key][s]))
            if p.adhesion[s]:
                geom.set("adhesion", numbers(p.adhesion[s]))
            if p.surface_velocity[s].any():
                geom.set("surfacevel", numbers(p.surface_velocity[s]))
            if m.shapes.kind[s] == POINTS:
                first, count = m.shapes.vertices[s]
                surface = m.shapes.surfaces[s]
                drawn = (
                    (p.vertex[first : first + count], None) if surface is None else (surface.vertices, surface.faces)
                )
                self._mesh(geom, *drawn)
                self.texts[hull_record.PREFIX + m.shapes.names[s]] = hull_record.write(m, p, s)
            elif m.shapes.kind[s] == HEIGHT_FIELD:
                self._height_field(geom, s)
            else:
                kind, count = GEOMS[m.shapes.kind[s]]
                geom.set("type", kind)
                geom.set("size", numbers(p.shape_size[s][:count]) + (" 1" if kind == "plane" else ""))
        for look in (v for v in m.visuals if v.body == i):
            if look.kind == "plane" and self._moves(i):
                continue  # refused by MuJoCo, and reported
            geom = ET.SubElement(own, "geom", group=DRAWN, contype="0", conaffinity="0", rgba=numbers(look.rgba))
            geom.set("pos", numbers(look.position))
            geom.set("quat", numbers(look.quaternion))
            if self.sees:
                geom.set("material", GLASS)
                if np.allclose(look.rgba, GREY):  # which MuJoCo treats as no material, and would draw glass
                    geom.set("rgba", numbers(GREY + np.array([1e-3, 0.0, 0.0, 0.0])))
            if look.mesh is not None:
                self._mesh(geom, *look.mesh)
            else:
                geom.set("type", look.kind)
                geom.set("size", numbers(look.size) + (" 1" if look.kind == "plane" else ""))
        for eye in (c for c in m.cameras if c.body == i):
            place = {"pos": numbers(eye.position), "quat": numbers(eye.quaternion), "fovy": numbers([eye.fov])}
            ET.SubElement(own, "camera", {"name": eye.name, **place})
        self._wrapped(own, i)
        for s in (s for s, body in enumerate(m.site_body) if body == i):
            place = {"pos": numbers(p.site_position[s]), "quat": numbers(p.site_rotation[s])}
            zone = next((sensor.zone for sensor in m.sensors if sensor.zone is not None and sensor.on == s), None)
            if zone is not None:
                place |= {"type": zone.shape, "size": numbers(zone.size)}
            ET.SubElement(own, "site", {"name": m.sites[s], **place})

    def _wrapped_name(self, piece: Piece, radius: float) -> str:
        name = f"{self.model.sites[piece.around]}:{piece.kind}:{float(radius)!r}"
        while name in self.model.shapes.names:
            name += "'"
        return name

    def _wrapped(self, own: ET.Element, i: int) -> None:
        """Write the wrapping shapes of tendons on body i, each once; they neither collide nor are drawn or met by rays."""
        m, p = self.model, self.p
        pieces = [piece for tendon in m.tendons for piece in tendon.pieces]
        shapes = {
            self._wrapped_name(x, r): (x, r) for x, r in zip(pieces, p.piece_radius, strict=True) if x.around >= 0
        }
        for name, (piece, radius) in shapes.items():
            if m.site_body[piece.around] == i:
                size = [radius] if piece.kind == "sphere" else [radius, radius]
                place = {"pos": p.site_position[piece.around], "quat": p.site_rotation[piece.around], "size": size}
                own_place = {key: numbers(x) for key, x in place.items()}
                calm = {"contype": "0", "conaffinity": "0", "group": "4"} | ({"rgba": "0 0 0 0"} if self.sees else {})
                ET.SubElement(own, "geom", {"name": name, "type": piece.kind} | calm | own_place)

    def _mesh(self, geom: ET.Element, vertices: np.ndarray, faces: np.ndarray | None) -> None:
        name = f"mesh{self.meshes}"
        self.meshes += 1
        mesh = ET.SubElement(self.assets, "mesh", name=name, vertex=numbers(vertices))
        if faces is not None:
            mesh.set("face", " ".join(str(int(k)) for k in np.ravel(faces)))
            mesh.set("inertia", "shell")
        geom.set("type", "mesh")
        geom.set("mesh", name)

    def _height_field(self, geom: ET.Element, s: int) -> None:
        """Write a height field. Heights of a file begin at zero, and its first row is the last along y, so the geom is
        offset."""
        p, (first, rows, cols) = self.p, self.model.shapes.grids[s]
        heights, (x, y, base) = p.height[first : first + rows * cols], p.shape_size[s]
        low, span = heights.min(), np.ptp(heights)
        name = f"field{len(self.assets)}"
        field = ET.SubElement(self.assets, "hfield", name=name, nrow=str(rows), ncol=str(cols))
        field.set("size", numbers([x, y, span or 1.0, base + low]))
        field.set("elevation", numbers((heights - low).reshape(rows, cols)[::-1]))
        self.texts[height_record.PREFIX + self.model.shapes.names[s]] = height_record.write(
            (heights - low).reshape(rows, cols)
        )
        up = matrix(p.shape_rotation[s] / np.linalg.norm(p.shape_rotation[s]))[:, 2]
        geom.set("pos", numbers(p.shape_position[s] + low * up))
        if p.surface_velocity[s].any():  # about the origin of the geom
            v, w = p.surface_velocity[s, :3], p.surface_velocity[s, 3:]
            geom.set("surfacevel", numbers([*(v + np.cross(w, (0.0, 0.0, low))), *w]))
        geom.set("type", "hfield")
        geom.set("hfield", name)

    # -- the rest ----------------------------------------------------------------------------------------------------------
    def _contacts(self) -> None:
        m = self.model
        contact = ET.SubElement(self.root, "contact")
        for a, b in m.shapes.excluded:
            if {a, b} & self.absorbed:
                continue  # without shapes
            one, other = ("world" if i < 0 else m.bodies[i] for i in (a, b))
            ET.SubElement(contact, "exclude", body1=one, body2=other)
        for a, b in self._family():
            ET.SubElement(contact, "exclude", body1=m.bodies[a], body2=m.bodies[b])
        for k, (a, b, condim) in enumerate(m.shapes.included):
            pair = ET.SubElement(contact, "pair", geom1=m.shapes.names[a], geom2=m.shapes.names[b], condim=str(condim))
            for key in ("friction", "solref", "solimp", "margin", "adhesion"):
                pair.set(key, numbers(self.p[f"pair_{key}"][k]))
            pair.set("solreffriction", numbers(self.p.pair_solref_friction[k]))
            pair.set("gap", repr(m.shapes.included_gap[k]))

    def _family(self) -> list[tuple[int, int]]:
        """Write exclusions between a body and its parent where MuJoCo's own filter would let them collide.

        The filter is off for other bodies, or a body that remains in the file is between them.
        """
        m, own, pairs = self.model, self.groups, []
        members = [[i for i in sorted({*m.shapes.body} - {-1}) if own.root(i) == root] for root in range(m.nb)]
        for root, above in enumerate(own.above):
            if own.welded[root] != root or above < 0 or root in m.shapes.touching_parents:
                continue
            carrier = own.root(m.parent[root])
            while carrier in self.absorbed:
                carrier = own.root(m.parent[carrier])
            if m.shapes.touching_parents or carrier != above:
                pairs += [(min(a, b), max(a, b)) for a in members[above] for b in members[root]]
        return [pair for pair in pairs if pair not in m.shapes.excluded]

    def _equalities(self, world: ET.Element) -> None:
        """Write equalities. Connect is between bodies if its second anchor follows from the reference pose, else between
        sites."""
        m, p = self.model, self.p
        equality = ET.SubElement(self.root, "equality")
        for k, (name, kind, a, b) in enumerate(m.equalities):
            own = ET.SubElement(equality, kind, name=name)
            own.set("solref", numbers(p.equality_solref[k]))
            own.set("solimp", numbers(p.equality_solimp[k]))
            one, other = p.equality_anchor[k]
            if kind in ("joint", "tendon"):
                self._coupling(own, k)
                continue
            if kind == "connect" and not self._at_rest(k):
                for number, body, anchor in ((1, a, one), (2, b, other)):
                    own.set(f"site{number}", self._site_at(world, body, anchor, f"{name}:{number}"))
                continue
            own.set("body1", "world" if a < 0 else m.bodies[a])
            own.set("body2", "world" if b < 0 else m.bodies[b])
            own.set("anchor", numbers(one if kind == "connect" else other))
            if kind == "weld":
                turn, other_turn = p.equality_rotation[k]
                own.set("relpose", numbers([*one, *product(turn, other_turn * (1, -1, -1, -1))]))
                own.set("torquescale", numbers(p.equality_torque_scale[k]))

    def _site_at(self, world: ET.Element, body: int, point: np.ndarray, name: str) -> str:
        """Return the name of a site at a point of a body: one of the model's, or a new one."""
        m = self.model
        for s, site in enumerate(m.sites):
            if m.site_body[s] == body and np.array_equal(self.p.site_position[s], point):
                return site
        while name in m.sites or name in self.anchors:
            name += "'"
        self.anchors.add(name)
        above = world if body < 0 else self.written[body]
        ET.SubElement(above, "site", name=name, pos=numbers(point))
        return name

    def _coupling(self, own: ET.Element, k: int) -> None:
        """Write a coupling. MuJoCo's polynomial is relative to the reference: x1 - r1 = P(x2 - r2)."""
        m, (_, kind, a, b) = self.model, self.model.equalities[k]
        P = np.polynomial.Polynomial(self.p.equality_polynomial[k])
        names = m.joints if kind == "joint" else [t.name for t in m.tendons]
        own.set(f"{kind}1", names[a])
        shift = 0.0
        if b >= 0:
            own.set(f"{kind}2", names[b])
            shift = self._reference_of(kind, b)
        out = np.zeros(5)
        shifted = P(np.polynomial.Polynomial([shift, 1.0])).coef if b >= 0 else P.coef[:1]
        out[: len(shifted)] = shifted
        out[0] -= self._reference_of(kind, a)
        own.set("polycoef", numbers(out))

    def _reference_of(self, kind: str, k: int) -> float:
        """Position of a joint, or length of a tendon, in the reference pose."""
        if kind == "joint":
            return float(self.reference[self.model.joint_q[k]])
        return float(tendon_lengths(self.model, self.reference)[k])

    def _tendons(self) -> None:
        m, p, at = self.model, self.p, 0
        tendons = ET.SubElement(self.root, "tendon")
        for t, tendon in enumerate(m.tendons):
            own = ET.SubElement(tendons, "fixed" if tendon.fixed else "spatial", name=tendon.name)
            for key, name in TENDON_NUMBERS.items():
                own.set(key, numbers(p[f"tendon_{name}"][t]))
            for key in ("stiffness", "damping"):
                own.set(key, numbers([p[f"tendon_{key}"][t], *p[f"tendon_{key}_curve"][t]]))
            if np.isfinite(p.tendon_limit[t]).any():
                own.set("limited", "true")
                own.set("range", numbers(interval(p.tendon_limit[t])))
            last, divisor = -1, 1.0
            pieces = slice(at, at + len(tendon.pieces))
            for piece, scale, radius in zip(tendon.pieces, p.piece_scale[pieces], p.piece_radius[pieces], strict=True):
                if piece.kind == "joint":
                    ET.SubElement(own, "joint", joint=m.joints[piece.a], coef=numbers(scale))
                    continue
                if piece.a != last or 1.0 / scale != divisor:
                    if last >= 0 or scale != 1.0:
                        ET.SubElement(own, "pulley", divisor=numbers(1.0 / scale))
                    ET.SubElement(own, "site", site=m.sites[piece.a])
                if piece.around >= 0:
                    side = {} if piece.side < 0 else {"sidesite": m.sites[piece.side]}
                    ET.SubElement(own, "geom", {"geom": self._wrapped_name(piece, radius)} | side)
                ET.SubElement(own, "site", site=m.sites[piece.b])
                last, divisor = piece.b, 1.0 / scale
            at += len(tendon.pieces)

    def _at_rest(self, k: int) -> bool:
        """Return True if both anchors of an equality coincide in the reference pose."""
        R, r = poses(self.model, self.reference)
        ends = [
            anchor if body < 0 else r[body] + R[body] @ anchor
            for anchor, body in zip(self.p.equality_anchor[k], self.model.equalities[k][2:], strict=True)
        ]
        return bool(np.abs(ends[0] - ends[1]).max() < 1e-12)

    def _actuators(self) -> None:
        m, p = self.model, self.p
        actuators = ET.SubElement(self.root, "actuator")
        for a, name in enumerate(m.actuators):
            gain, bias = 0.0 if a in m.servos else p.gain[a], np.array(p.bias[a])
            bias[1] -= gain * (m.actuator_kind[a] == POSITION)
            bias[2] -= gain * (m.actuator_kind[a] == VELOCITY)
            general = ET.SubElement(actuators, "general", {"name": name} | self._acted_on(a))
            wide = m.transmissions[a].kind not in ("crank", "body") and any(line.actuator == a for line in m.lines[0])
            general.set("gear", numbers(p.gear_axes[a] if wide else p.gear[a]))
            general.set("gaintype", "affine" if p.gain_slope[a].any() else "fixed")
            general.set("gainprm", numbers([gain, *p.gain_slope[a]]))
            general.set("biastype", "affine")
            general.set("biasprm", numbers(bias))
            ranges = [("ctrl", p.control_range[a]), ("force", p.force_range[a])]
            self._muscle(general, a)
            for k, activation in enumerate(m.activations):
                if activation.actuator == a:
                    general.set("dyntype", activation.dynamics)
                    general.set("dynprm", numbers(p.activation_time[k]))
                    general.set("actearly", str(activation.actearly).lower())
                    ranges.append(("act", p.activation_range[k]))
            for key, limits in ranges:
                if np.isfinite(limits).any():
                    general.set(f"{key}limited", "true")
                    general.set(f"{key}range", numbers(interval(limits)))

    def _acted_on(self, a: int) -> dict[str, str]:
        """Target of actuator a."""
        m, (kind, one, other) = self.model, self.model.transmissions[a]
        if kind == "crank":
            rod = numbers(self.p.crank_length[a])
            return {"cranksite": m.sites[one], "slidersite": m.sites[other], "cranklength": rod}
        parts = {"tendon": [t.name for t in m.tendons], "site": m.sites, "body": m.bodies}
        names: Any = parts.get(kind, m.joints)
        return {kind: names[one]} | ({} if other < 0 else {"refsite": m.sites[other]})

    def _muscle(self, general: ET.Element, a: int) -> None:
        """Muscle parameters of actuator a, in place of affine ones; MJCF has one or the other."""
        if a not in self.model.muscles:
            return
        p, k = self.p, self.model.muscles.index(a)
        general.set("lengthrange", numbers(p.muscle_length_range[k]))
        affine = {"gain": bool(p.gain[a] or p.gain_slope[a].any()), "bias": bool(p.bias[a].any())}
        for what, (low, high, force, *rest) in (("gain", p.muscle_gain[k]), ("bias", p.muscle_bias[k])):
            if not force:
                continue
            if affine[what]:
                name = self.model.actuators[a]
                self.lost.append(Finding(f"affine {what} beside that of a muscle", (name,), "left out"))
            general.set(f"{what}type", "muscle")
            general.set(f"{what}prm", numbers([low, high, force, 1.0, *rest]))

    def _is_fluid_box(self, b: int) -> bool:
        """Return True if body b is represented by a box in a fluid, not by its shapes."""
        felt = {self.model.shapes.body[k] for k in self.model.shapes.wet}
        return "fluid" in self.model.features and self._moves(b) and b not in felt

    def _is_inertia_box(self, b: int) -> bool:
        """Return True if the fluid box of body b has its inertia, as in MuJoCo."""
        xx, yy, zz, xy, xz, yz = self.p.inertia[b]
        if self.p.mass[b] < 1e-15:
            return not self.p.fluid_box[b].any() and (b in self.absorbed or not self.model.joint_kind(b).nv)
        R = matrix(self.p.fluid_rotation[b])
        turned = R.T @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R
        moments = np.diag(turned)
        edges = np.sqrt(np.maximum(moments.sum() - 2 * moments, 1e-15) / self.p.mass[b] * 6.0)
        level = np.abs(turned - np.diag(moments)).max() <= 1e-9 * np.abs(moments).max()
        return bool(level and np.allclose(edges, self.p.fluid_box[b], rtol=1e-9))

    def _sensors(self) -> None:
        m = self.model
        sensors = ET.SubElement(self.root, "sensor")
        for s in m.sensors:
            kind = SENSORS.get(s.kind, s.kind)
            ET.SubElement(sensors, kind, {"name": s.name, **self._sensor(s)} | self._cut(s))

    @staticmethod
    def _cut(s: Sensor) -> dict[str, str]:
        return {"cutoff": numbers(s.cutoff)} if s.cutoff > 0 else {}

    def _sensor(self, s: Sensor) -> dict[str, str]:
        """Write the object of a sensor."""
        m, on = self.model, KINDS[s.kind].on
        sides = {f"{SIDE_NAMES[x.what]}{k + 1}": side_name(m, x) for k, x in enumerate(s.between) if x.what}
        if s.kind == "contact":
            own = {"site": m.sites[s.on]} if s.on >= 0 else {}
            return own | sides | {"data": " ".join(s.data), "reduce": s.reduce, "num": str(s.num)}
        if s.kind in DISTANCE_SENSORS:
            return sides
        if s.kind == "insidesite":
            return {"site": m.sites[s.on], "objtype": "site", "objname": m.sites[s.ref]}
        if on == "model":
            return {}
        name = parts_by_name(m)[on][s.on]
        where = {"objtype": "site", "objname": name} if s.kind.startswith("frame") else {on: name}
        where |= {"reftype": "site", "refname": m.sites[s.ref]} if s.ref >= 0 else {}
        return where | ({"data": " ".join(s.data)} if s.data else {})

    def _keyframes(self) -> None:
        keys = ET.SubElement(self.root, "keyframe")
        for name, (q, v, u, act, mocap) in self.model.keyframes.items():
            if name not in RESERVED:
                q, v = self._written(q, "nq"), self._written(v, "nv")
                key = ET.SubElement(keys, "key", name=name, qpos=numbers(q), qvel=numbers(v), ctrl=numbers(u))
                if len(act):
                    key.set("act", numbers(act))
                if len(mocap):
                    places = mocap.reshape(-1, 7)
                    key.set("mpos", numbers(places[:, :3]))
                    key.set("mquat", numbers(places[:, 3:]))

    def _custom(self) -> None:
        """Write numbers without attribute in MJCF."""
        m, p = self.model, self.p
        custom = ET.SubElement(self.root, "custom")
        for name, data in self.texts.items():
            ET.SubElement(custom, "text", name=name, data=data)
        for i in np.flatnonzero(np.isfinite(p.velocity_limit)):
            name = f"{VELOCITY_LIMIT}{m.joints[i]}"
            ET.SubElement(custom, "numeric", name=name, data=numbers(p.velocity_limit[i]))

    def _written(self, x: np.ndarray, size: str) -> np.ndarray:
        """Coordinates in the order of the file's joints."""
        starts = self.model.joint_q if size == "nq" else self.model.joint_v
        parts = [x[starts[i] : starts[i] + getattr(self.model.joint_kind(i), size)] for i in self.order]
        return np.concatenate([np.zeros(0), *parts])

    def _other_weights(self) -> list[str]:
        """Return the fields of inverse weights in use that differ from those MuJoCo computes from the file."""
        m, p = self.model, self.p
        ends: dict[str, set[int]] = {"body": set(), "joint": set(), "tendon": set()}
        for _, kind, a, b in m.equalities:
            ends[kind if kind in ends else "body"] |= {a, b}
        bodies = sorted(({*m.shapes.body} | ends["body"]) - {-1})
        joints = sorted(({*m.shapes.limited} | ends["joint"]) - {-1})
        dofs = [k for i in joints for k in range(m.joint_v[i], m.joint_v[i] + m.joint_kind(i).nv)]
        tendons = sorted(({*m.stopped_tendons} | ends["tendon"]) - {-1})
        made = p.reweighted()
        rows = {"body_invweight0": bodies, "dof_invweight0": dofs, "tendon_invweight0": tendons}
        # MuJoCo finds where a tendon inside a shape touches it by iteration
        hollow = any(piece.side >= 0 for tendon in m.tendons for piece in tendon.pieces)
        close = {"tendon_invweight0": 1e-6 if hollow else 1e-9}
        return [
            key
            for key, own in rows.items()
            if not np.allclose(p[key][own], made[key][own], rtol=close.get(key, 1e-9), atol=1e-12)
        ]

    def check_ellipsoids(self, text: str) -> None:
        """List the shapes whose virtual mass and inertia in a fluid are not those of their ellipsoid.

        The ellipsoid of a mesh is that of its volume, and the file has its hull: they agree for convex meshes, to the single
        precision of MuJoCo's vertices.
        """
        m, p = self.model, self.p
        if not m.shapes.wet or "fluid" not in m.features or self.lost:
            return
        compiled = mujoco().MjModel.from_xml_string(text)
        own: list[str] = []
        meshes: list[str] = []
        for n, s in enumerate(m.shapes.wet):
            name, mesh = m.shapes.names[s], m.shapes.kind[s] == POINTS
            given = np.concatenate([p.virtual_mass[n], p.virtual_inertia[n]])
            made = compiled.geom_fluid[compiled.geom(name).id, 6:]
            if not np.allclose(given, made, rtol=1e-6 if mesh else 1e-9, atol=1e-14):
                (meshes if mesh else own).append(name)
        if own:
            self.lost.append(Finding("virtual mass other than that of the ellipsoid", tuple(own), "recomputed"))
        if meshes:
            self.lost.append(Finding("fluid ellipsoid of a mesh", tuple(meshes), "recomputed from the saved points"))

    def _check(self) -> None:
        """List the features that were lost."""
        m, p = self.model, self.p

        def lose(what: str, where: list[str], effect: str) -> None:
            if where:
                self.lost.append(Finding(what, tuple(where), effect))

        bounces = [m.shapes.names[s] for s in range(len(m.shapes.names)) if p.restitution[s] > 0]
        lose("restitution", bounces, "contacts do not bounce")
        lose("inertia that no body can have", self.impossible, "replaced by the mean of its moments")
        lose("servo motor", [m.actuators[a] for a in m.servos], "becomes an actuator without force")
        slow = [m.actuators[a] for a in range(m.nu) if np.isfinite(p.max_velocity[a]) and a not in m.servos]
        lose("speed limit of a servo", slow, "not limited")
        flat = [m.shapes.names[s] for s, (_, n) in enumerate(m.shapes.vertices) if 0 < n < 4]
        lose("convex set of fewer than four points", flat, "MuJoCo refuses the file")
        planes = [s for s, kind in enumerate(m.shapes.kind) if kind == PLANE and self._moves(m.shapes.body[s])]
        lose("plane on a body that moves", [m.shapes.names[s] for s in planes], "MuJoCo refuses the file")
        drawn = [m.bodies[v.body] for v in m.visuals if v.kind == "plane" and self._moves(v.body)]
        lose("visual plane on a body that moves", drawn, "not drawn: use a box")
        boxes = [m.bodies[b] for b in range(m.nb) if self._is_fluid_box(b) and not self._is_inertia_box(b)]
        lose("fluid box other than that of the inertia", boxes, "recomputed from the inertia")
        felt = {m.shapes.body[k] for k in m.shapes.wet} - {-1} if "fluid" in m.features else set()
        both = [m.bodies[b] for b in sorted(felt) if p.fluid_box[b].any()]
        lose("fluid box of a body whose shapes are ellipsoids in the fluid", both, "MuJoCo has one or the other")
        lose(
            "inverse weights of constraints",
            self._other_weights(),
            "recomputed: save params.reweighted(), which moves as the file",
        )
        if not law_of(m.options).in_mujoco:
            lose("law", [m.options.law.name], "MuJoCo has the soft law only")
        if m.options.integrator not in INTEGRATORS:
            lose("integrator", [m.options.integrator], "stepped by MuJoCo's Euler")
