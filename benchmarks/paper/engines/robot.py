"""Files of the robot for other engines."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as xml

import numpy as np

import artigrad as ag
from artigrad.model.model import SHAPES

from ...peers import mjcf

FLOOR, FOOT = {"contype": "2", "conaffinity": "1"}, {"contype": "1", "conaffinity": "2"}


def write_robot(model: ag.Model, dt: float, folder: Path) -> None:
    """Write robot.xml, masked.xml and robot.urdf."""
    text = mjcf(model, dt)
    (folder / "robot.xml").write_text(text)
    (folder / "masked.xml").write_text(masked(text))
    (folder / "robot.urdf").write_text(urdf(model))


def masked(text: str) -> str:
    """Return MJCF with contact masks, for engines that do not read contact pairs."""
    root = xml.fromstring(text)
    for pairs in root.findall("contact"):
        root.remove(pairs)
    for geom in root.iter("geom"):
        geom.attrib |= FLOOR if geom.get("type") == "plane" else FOOT
    return xml.tostring(root, encoding="unicode")


def _text(x: np.ndarray) -> str:
    return " ".join(repr(float(v)) for v in x)


def _rpy(q: np.ndarray) -> np.ndarray:
    """Return roll, pitch and yaw of a quaternion w, x, y, z."""
    w, x, y, z = q / np.linalg.norm(q)
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1.0, 1.0))
    if abs(pitch) > np.pi / 2 - 1e-6:  # roll and yaw turn about one axis: all of it is yaw
        return np.array([0.0, pitch, -2 * np.sign(pitch) * np.arctan2(x, w)])
    roll, yaw = (
        np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
        np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
    )
    return np.array([roll, pitch, yaw])


def urdf(model: ag.Model) -> str:
    """Return bodies, joints and balls as URDF, without the floor and without the free joint, which is implicit for the root."""
    p, root = model.params, xml.Element("robot", name=model.name)
    for i, name in enumerate(model.bodies):
        link = xml.SubElement(root, "link", name=name)
        inertial = xml.SubElement(link, "inertial")
        xml.SubElement(inertial, "origin", xyz=_text(p.com[i]), rpy="0 0 0")
        xml.SubElement(inertial, "mass", value=repr(float(p.mass[i])))
        names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        xml.SubElement(inertial, "inertia", {k: repr(float(x)) for k, x in zip(names, p.inertia[i], strict=True)})
        for k, body in enumerate(model.shapes.body):
            if body == i and SHAPES[model.shapes.kind[k]] == "sphere":
                collision = xml.SubElement(link, "collision")
                xml.SubElement(collision, "origin", xyz=_text(p.shape_position[k]), rpy="0 0 0")
                shape = xml.SubElement(collision, "geometry")
                xml.SubElement(shape, "sphere", radius=repr(float(p.shape_size[k, 0])))
        if model.parent[i] < 0:
            continue
        kind = "fixed" if model.joint_type[i] == "fixed" else "continuous"
        joint = xml.SubElement(root, "joint", name=f"{name}_joint", type=kind)
        xml.SubElement(joint, "parent", link=model.bodies[model.parent[i]])
        xml.SubElement(joint, "child", link=name)
        xml.SubElement(joint, "origin", xyz=_text(p.position[i]), rpy=_text(_rpy(p.rotation[i])))
        xml.SubElement(joint, "axis", xyz=_text(p.axis[i]))
    return xml.tostring(root, encoding="unicode")
