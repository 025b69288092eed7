"""Preparation of URDF for MuJoCo's compiler: the tree is checked, meshes are located, visuals and fixed links are kept.

Many files violate the rules. Input with one possible meaning is accepted (commas between numbers); other violations
raise an error that names the link, or with strict=False are repaired and reported.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..build.validate import possible
from ..errors import ModelError
from ..model.findings import Finding
from ..model.quaternions import matrix, turn
from .mesh_files import Unreadable, remade
from .source import Source

SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}
# keep every link and visual; missing masses are computed from collision shapes
COMPILER = {"strippath": "false", "fusestatic": "false", "discardvisual": "false", "inertiagrouprange": "0 0"}
# elements read from a URDF, by parent element
READ = {
    "robot": {"link", "joint", "material", "mujoco"},
    "link": {"inertial", "visual", "collision"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
}
ONCE = {"joint": READ["joint"] - {"mimic"}, "link": {"inertial"}}  # elements that occur once in an element
PRODUCTS = ("ixy", "ixz", "iyz")
LISTS = ("xyz", "rpy", "size", "scale", "rgba")
TRIPLES = ("xyz", "rpy", "size", "scale")
VARIABLE = re.compile(r"\$\(optenv\s+\S+\s*([^)]*)\)")  # ROS variable: its name and default
POINT = re.compile(r"[-+]?\d+\.\d*\.")
WATER = "has the mass of its collision shapes at 1000 kg/m3"
AS_GIVEN = "simulated as given"
OF_SHAPES = "taken from its collision shapes, of equal density"
UNREADABLE, LEFT_OUT = "collision shape that cannot be read", "this collision shape is left out"
NO_LIMIT = "not limited, as this is how Bullet is told so"
FIRST = "the first counts"
NOTED = (
    "not drawn",
    "skipped",
    WATER,
    AS_GIVEN,
    FIRST,
    OF_SHAPES,
    NO_LIMIT,
)  # effects without consequence for the simulation
NOT_AXIAL = ("fixed", "floating", "planar", "spherical")  # types of joints
MIMIC = {"multiplier": 1.0, "offset": 0.0}


class Mimic(NamedTuple):
    """Mimic joint: its position is multiplier times the other's, plus offset; without another it is constant."""

    joint: str
    other: str
    multiplier: float
    offset: float


class LinkPlane(NamedTuple):
    """Unbounded collision plane: its link, position and normal in the link."""

    link: str
    position: np.ndarray
    normal: np.ndarray


class LinkMass(NamedTuple):
    """Stated mass of a link: kg; center of mass, m, and inertia about it, kg m^2, in its axes."""

    mass: float
    com: np.ndarray
    matrix: np.ndarray


class Preparation:
    """Changes the tree of a source in place, and collects findings for the user."""

    def __init__(self, source: Source, strict: bool):
        self.source, self.strict = source, strict
        self.unsupported: list[Finding] = []
        self.notes: list[Finding] = []
        self.inertias: dict[str, LinkMass] = {}  # links whose stated inertia the compiler refuses
        self.of_shapes: dict[str, LinkMass] = {}  # links whose inertia is computed from their shapes
        self.assets: dict[str, bytes] = {}  # converted meshes, by their name in the XML
        self.mimics: list[Mimic] = []
        self.planes: list[LinkPlane] = []
        self.speeds: dict[str, float] = {}  # velocity limits of joints
        self._names: dict[Path, str] = {}  # of meshes in the XML
        self._found: dict[tuple[str, str], list[str]] = {}
        self._fixed: set[str] = set()  # links fixed to their parent

    def run(self) -> Preparation:
        root = self.source.root
        if _is_template(root):
            raise ModelError(
                f"{self.source.label} is a template: run `xacro FILE > robot.urdf` and load what that makes"
            )
        links = {link.get("name") for link in root.findall("link")}
        if "world" not in links and any(p.get("link") == "world" for p in root.findall("joint/parent")):
            root.insert(0, ET.Element("link", name="world"))  # not reported
        check_tree(root, self.source.label)
        for element in root.iter():
            self._repair_numbers(element)
        fixed = [joint for joint in root.findall("joint") if joint.get("type") == "fixed"]
        self._fixed = {child.get("link", "") for joint in fixed for child in joint.findall("child")}
        for link in root.findall("link"):
            self._shapes(link)
            self._inertia(link)
        for joint in root.findall("joint"):
            self._limit(joint)
            self._mimic(joint)
        self._skipped()
        extension = root.find("mujoco")
        extension = ET.SubElement(root, "mujoco") if extension is None else extension
        compiler = extension.find("compiler")
        compiler = ET.SubElement(extension, "compiler") if compiler is None else compiler
        for key, value in COMPILER.items():
            compiler.set(key, value)
        for (what, effect), where in self._found.items():
            findings = self.notes if effect in NOTED else self.unsupported
            findings.append(Finding(what, tuple(where), effect))
        return self

    def _repair_numbers(self, element: ET.Element) -> None:
        """Repair numbers and elements with one possible meaning.

        These are commas between numbers, defaults of environment variables, a decimal point too many, more than three
        numbers, repeated elements, missing products of inertia.
        """
        for key, given in element.attrib.items():
            text = VARIABLE.sub(r"\1", given)
            text = text.replace(",", " ") if key in LISTS else text
            if key in TRIPLES and len(text.split()) > 3:
                text = " ".join(text.split()[:3])
                self._found.setdefault((f"more than three numbers of '{key}'", FIRST), []).append(given)
            if POINT.fullmatch(text):
                text = text[:-1]
                self._found.setdefault(("number with two points", FIRST), []).append(given)
            element.set(key, text)
        seen: set[str] = set()
        for child in list(element) if element.tag in ONCE else ():
            if child.tag in seen and child.tag in ONCE[element.tag]:
                element.remove(child)
                self._found.setdefault((f"element <{child.tag}> twice", FIRST), []).append(element.get("name", ""))
            seen.add(child.tag)
        if element.tag == "inertia":
            for key in PRODUCTS:
                element.set(key, element.get(key, "0"))

    def _mimic(self, joint: ET.Element) -> None:
        """Replace a mimic joint by an equality."""
        name = joint.get("name", "")
        for mimic in joint.findall("mimic"):
            joints = self.source.root.findall("joint")
            joint.remove(mimic)
            moving = {j.get("name", "") for j in joints if j.get("type") not in NOT_AXIAL}
            other = mimic.get("joint", "")
            fixed = {joint.get("name", "") for joint in joints if joint.get("type") == "fixed"}
            if name in fixed and other in moving | fixed:
                continue
            if name in moving and other in (moving | fixed) - {name}:
                multiplier, offset = (numbers(mimic, k, d)[0] for k, d in MIMIC.items())
                self.mimics.append(Mimic(name, "" if other in fixed else other, multiplier, offset))
            else:
                effect = "moves by itself: the coupling is not enforced"
                self._report_repair(
                    "mimic joint", name, effect, f"joint '{name}' mimics '{other}', which is no other joint,"
                )

    def _skipped(self) -> None:
        """Collect extensions of other simulators, and velocity limits."""
        for element in self.source.root.iter():
            for child in element if element.tag in READ else ():
                if child.tag not in READ[element.tag]:
                    self._found.setdefault((f"element <{child.tag}>", "skipped"), []).append(element.get("name", ""))
            limit = element.find("limit") if element.tag == "joint" else None
            if limit is not None and 0 < numbers(limit, "velocity", 0.0)[0] < 1e6:
                self.speeds[element.get("name", "")] = numbers(limit, "velocity")[0]

    def _report_repair(self, what: str, where: str, effect: str, sentence: str) -> None:
        """Raise an error if strict, else add a finding."""
        if self.strict:
            raise ModelError(f"{sentence} of {self.source.label}; correct it, or load with strict=False: {effect}")
        self._found.setdefault((what, effect), []).append(where)

    def _shapes(self, link: ET.Element) -> None:
        """Make paths of meshes absolute; remove unreadable shapes."""
        name = link.get("name", "")
        for element in (*link.findall("visual"), *link.findall("collision")):
            if element.tag == "collision" and element.find("geometry/plane") is not None:
                self._plane(link, element)
                continue
            problem = self._problem(element)
            if not problem:
                continue
            link.remove(element)
            if element.tag == "visual":
                self._found.setdefault(("unreadable visual", "not drawn"), []).append(f"{name}: {problem}")
            else:
                self._report_repair(UNREADABLE, f"{name}: {problem}", LEFT_OUT, f"{problem} of '{name}'")

    def without_flat(self, mesh: str) -> bool:
        """Remove collision shapes with a mesh without volume, by its name without extension; return True if there are
        any."""
        before = len(self.unsupported)
        for link in self.source.root.findall("link"):
            for element in link.findall("collision"):
                shape = element.find("geometry/mesh")
                if shape is not None and Path(shape.get("filename", "")).stem == mesh:
                    link.remove(element)
                    where = f"{link.get('name', '')}: mesh '{mesh}' (flat)"
                    self._report_repair(
                        UNREADABLE, where, LEFT_OUT, f"mesh '{mesh}' (flat) of '{link.get('name', '')}'"
                    )
                    self.unsupported.append(Finding(UNREADABLE, (where,), LEFT_OUT))
        return len(self.unsupported) > before

    def _plane(self, link: ET.Element, element: ET.Element) -> None:
        """Collect a plane, an extension of Bullet: the compiler does not support it in a URDF, so it is added later."""
        origin, shape = element.find("origin"), element.find("geometry/plane")
        assert shape is not None
        xyz, rpy = (numbers(origin, k, 0.0) if origin is not None else [0.0] for k in ("xyz", "rpy"))
        normal = np.array(numbers(shape, "normal", 0.0) if shape.get("normal") else [0.0, 0.0, 1.0])
        R = _rotation(*rpy) if len(rpy) == 3 else np.eye(3)
        if normal.shape != (3,) or not np.linalg.norm(normal) > 0:
            raise ModelError(f"the plane of link '{link.get('name')}' of {self.source.label} has no normal")
        self.planes.append(LinkPlane(link.get("name", ""), np.array(xyz) if len(xyz) == 3 else np.zeros(3), R @ normal))
        link.remove(element)

    def _problem(self, element: ET.Element) -> str:
        """Return the error of a visual or collision shape, or an empty string."""
        shape = element.find("geometry/*")
        if shape is None:
            return "a shape without geometry"
        if shape.tag == "mesh":
            file = shape.get("filename", "")
            found = next((p for p in places(file, self.source.path) if p.is_file()), None)
            if found is None:
                return f"mesh '{file}' (not found)"
            try:
                shape.set("filename", self._readable(found))
            except Unreadable as problem:
                return f"mesh '{file}' ({problem})"
            return ""
        if shape.tag not in SIZES:
            return f"geometry <{shape.tag}>"
        positive = all(x > 0 for key in SIZES[shape.tag] for x in numbers(shape, key))
        return "" if positive else f"a {shape.tag} whose size is not positive"

    def _readable(self, mesh: Path) -> str:
        """Return the name of a mesh in the XML: its path, or that of a converted one."""
        if mesh not in self._names:
            made = remade(mesh)
            self._names[mesh] = f"made{len(self.assets)}_{mesh.stem}{made[0]}" if made else str(mesh)
            self.assets |= {self._names[mesh]: made[1]} if made else {}
        return self._names[mesh]

    def _inertia(self, link: ET.Element) -> None:
        """Replace inertias that the compiler refuses.

        Links without mass and impossible inertias are simulated as they are if everything that moves together has a
        valid inertia. The compiler refuses them one by one: it gets others, and the stated ones are restored later. A
        link without inertia gets that of its shapes.
        """
        inertial, shaped, name = link.find("inertial"), link.find("collision") is not None, link.get("name", "")
        if inertial is not None and inertial.find("mass") is None:
            link.remove(inertial)
            inertial = None
        if inertial is not None and inertial.find("inertia") is None:  # point mass
            ET.SubElement(inertial, "inertia", dict.fromkeys(("ixx", "iyy", "izz", *PRODUCTS), "0"))
        if inertial is None and shaped:
            self._found.setdefault(("link without <inertial>", WATER), []).append(name)
            return
        given = _inertia_of(inertial)
        if given is None or (given.mass > 0 and _is_accepted(given.matrix)):
            return
        if inertial is not None:
            link.remove(inertial)
        if given.mass > 0 and shaped and not given.matrix.any() and name not in self._fixed:
            self._found.setdefault(("inertia of zero", OF_SHAPES), []).append(name)
            self.of_shapes[name] = given
            return
        self.inertias[name] = given
        inertial = ET.SubElement(link, "inertial")
        ET.SubElement(inertial, "mass", value="1")  # with its own axes, so that the compiler takes no shortcuts
        ET.SubElement(inertial, "inertia", ixx="1", iyy="2", izz="2", ixy="0.1", ixz="0.2", iyz="0.3")
        if given.mass > 0 and not possible(np.linalg.eigvalsh(given.matrix)):
            self._found.setdefault(("inertia that no body can have", AS_GIVEN), []).append(name)

    def _limit(self, joint: ET.Element) -> None:
        """Remove limits of spherical joints, which are not supported, and limits with the lower above the upper."""
        limit, name = joint.find("limit"), joint.get("name", "")
        if limit is None or not {"lower", "upper"} <= set(limit.attrib):
            return
        if joint.get("type") == "spherical":
            self._report_repair(
                "limit of a spherical joint", name, "not limited", f"the limit of spherical joint '{name}'"
            )
        elif numbers(limit, "lower")[0] > numbers(limit, "upper")[0]:
            self._found.setdefault(("limit with lower above upper", NO_LIMIT), []).append(name)
        else:
            return
        del limit.attrib["lower"], limit.attrib["upper"]
        if joint.get("type") == "revolute":
            joint.set("type", "continuous")


def _is_template(root: ET.Element) -> bool:
    """Return True for an unexpanded xacro file, which contains arguments and properties."""
    left = [element.tag for element in root.iter() if "xacro" in element.tag]
    unread = any("${" in x or "$(arg" in x for element in root.iter() for x in element.attrib.values())
    return bool(left) and (unread or any(tag.rpartition("}")[2] not in ("arg", "property") for tag in left))


def numbers(element: ET.Element, key: str, default: float = float("nan")) -> list[float]:
    """Return the numbers of an attribute; invalid ones are left for the compiler to refuse."""
    try:
        return [float(x) for x in element.get(key, "").split()] or [default]
    except ValueError:
        return [default]


def _inertia_of(inertial: ET.Element | None) -> LinkMass | None:
    """Return the inertia of a link; None if a number is invalid or missing, which the compiler reports."""
    if inertial is None:
        return LinkMass(0.0, np.zeros(3), np.zeros((3, 3)))
    mass, inertia, origin = (inertial.find(tag) for tag in ("mass", "inertia", "origin"))
    if mass is None or inertia is None:
        return None
    xx, yy, zz, xy, xz, yz = (numbers(inertia, k, 0.0)[0] for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    com, turned = (numbers(origin, k, 0.0) if origin is not None else [0.0] for k in ("xyz", "rpy"))
    R = _rotation(*turned) if len(turned) == 3 else np.eye(3)
    found = LinkMass(
        numbers(mass, "value")[0],
        np.array(com) if len(com) == 3 else np.zeros(3),
        R @ [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]] @ R.T,
    )
    return found if all(np.isfinite(x).all() for x in found) else None


def _rotation(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Rotation about the fixed axes x, y and z in turn."""
    R = [matrix(turn(axis, angle)) for axis, angle in zip(np.eye(3), (roll, pitch, yaw), strict=True)]
    return R[2] @ R[1] @ R[0]


def _is_accepted(inertia: np.ndarray) -> bool:
    """Return True if the compiler accepts it: three positive moments, none more than the sum of the others."""
    a, b, c = np.linalg.eigvalsh(inertia)
    return bool(a > 0 and a + b >= c)


def check_tree(root: ET.Element, label: str) -> None:
    """Refuse several roots, cycles, links with two parents and missing links."""
    links = [link.get("name") or "" for link in root.findall("link")]
    if not links:
        raise ModelError(f"{label} has no links")
    known: set[str] = set()
    for name in links:
        if not name or name in known:
            raise ModelError(f"{label} has two links named '{name}'" if name else f"{label} has a link without a name")
        known.add(name)
    parent: dict[str, str] = {}
    for joint in root.findall("joint"):
        name, ends = joint.get("name", ""), [joint.find(end) for end in ("parent", "child")]
        above, below = ("" if end is None else end.get("link", "") for end in ends)
        for link in (above, below):
            if link not in known:
                raise ModelError(f"joint '{name}' of {label} connects link '{link}', which does not exist")
        if below in parent:
            raise ModelError(f"link '{below}' of {label} hangs on two joints; a URDF is a tree, without loops")
        parent[below] = above
    rooted: set[str] = set()  # links connected to a root
    for link in links:
        path = {link: None}  # in the order of traversal
        while link in parent and link not in rooted:
            link = parent[link]
            if link in path:
                walk = list(path)
                cycle = [*walk[walk.index(link) :], link]
                raise ModelError(f"the links of {label} form a cycle: {' -> '.join(reversed(cycle))}")
            path[link] = None
        rooted |= set(path)
    roots = [link for link in links if link not in parent]
    if len(roots) > 1:
        raise ModelError(f"{label} has {len(roots)} roots ({', '.join(roots[:4])}); connect them by joints")


def places(file: str, path: Path | None) -> Iterator[Path]:
    """Return candidate locations of a mesh: beside the URDF; of a package, in a folder of its name above the URDF, or
    that
    folder itself."""
    folder = path.parent if path else Path.cwd()
    if file.startswith("package://"):
        package, _, rest = file.removeprefix("package://").partition("/")
        for above in (folder, *folder.parents):
            if above.name == package:
                yield above / rest
            yield above / package / rest
        yield folder / rest
    else:
        file = file.removeprefix("file://")
        yield Path(file) if Path(file).is_absolute() else folder / file
