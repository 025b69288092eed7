"""Benchmark robots in MuJoCo and Pinocchio, checked to have the same accelerations and, in MuJoCo, the same steps.

Joints: free, revolute, prismatic and fixed; actuators: motors and position servos; shapes: spheres and planes, in MuJoCo
only.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as xml

import mujoco
import numpy as np
import pinocchio as pin

import artigrad as ag
from artigrad.model.model import POSITION, SHAPES

AGREE = (
    1e-9  # largest difference of accelerations (rad/s^2, m/s^2) and, after a second of motion, of positions (rad, m)
)
KEPT = ("GRAVITY", "ACTUATION")  # what MuJoCo must do; everything else that can be switched off is
KEPT_FOR_CONTACT = ("CONTACT", "CONSTRAINT", "WARMSTART")
JOINTS = {"free": "free", "revolute": "hinge", "prismatic": "slide"}


# -- MuJoCo ------------------------------------------------------------------------------------------------------------
def mjcf(model: ag.Model, dt: float, **options: str) -> str:
    """Return a model as MJCF, with MuJoCo's default contact parameters. options: attributes of the element <option>."""
    p = model.params
    root = xml.Element("mujoco", model=model.name)
    xml.SubElement(root, "compiler", angle="radian", autolimits="true", fusestatic="true")
    option = {"timestep": repr(dt), "gravity": _text(p.gravity), "integrator": "Euler"} | options
    xml.SubElement(root, "option", option)
    nodes = {-1: xml.SubElement(root, "worldbody")}
    for i, name in enumerate(model.bodies):
        node = nodes[i] = xml.SubElement(nodes[model.parent[i]], "body", name=name)
        node.attrib |= {"pos": _text(p.position[i]), "quat": _text(p.rotation[i])}
        if model.joint_type[i] != "fixed":
            joint = xml.SubElement(node, "joint", name=model.joints[i], type=JOINTS[model.joint_type[i]])
            joint.attrib |= {"damping": repr(float(p.damping[i])), "armature": repr(float(p.armature[i]))}
            if model.joint_type[i] != "free":
                joint.attrib |= {"axis": _text(p.axis[i]), "pos": _text(p.anchor[i])}
        # three moments if possible: MuJoCo is faster if the axes of inertia are those of the body
        full = bool(p.inertia[i, 3:].any())
        moments = ("fullinertia", _text(p.inertia[i])) if full else ("diaginertia", _text(p.inertia[i, :3]))
        inertial = xml.SubElement(node, "inertial", pos=_text(p.com[i]), mass=repr(float(p.mass[i])))
        inertial.set(*moments)
    _add_shapes(model, root, nodes)
    actuators = xml.SubElement(root, "actuator")
    for k, name in enumerate(model.actuators):
        servo = model.actuator_kind[k] == POSITION
        actuator = xml.SubElement(actuators, "position" if servo else "motor", name=name)
        actuator.attrib |= {"joint": model.joints[model.actuator_joint[k]], "gear": repr(float(p.gear[k]))}
        if servo:
            actuator.attrib |= {"kp": repr(float(p.gain[k])), "kv": repr(-float(p.bias[k, 2]))}
        if np.isfinite(p.force_range[k]).all():
            actuator.set("forcerange", _text(p.force_range[k]))
    return xml.tostring(root, encoding="unicode")


def _add_shapes(model: ag.Model, root: xml.Element, nodes: dict[int, xml.Element]) -> None:
    """Add shapes, and candidate pairs by name: 3 % faster than masks, which MuJoCo tests."""
    p, shapes = model.params, model.shapes
    for k, name in enumerate(shapes.names):
        kind = SHAPES[shapes.kind[k]]
        size = {"plane": "0 0 1", "sphere": repr(float(p.shape_size[k, 0]))}[kind]
        geom = xml.SubElement(nodes[shapes.body[k]], "geom", name=name, type=kind, size=size, mass="0")
        geom.attrib |= {"pos": _text(p.shape_position[k]), "quat": _text(p.shape_rotation[k])}
        geom.attrib |= {"contype": "0", "conaffinity": "0"}
    contact = xml.SubElement(root, "contact")
    for a, b in shapes.pairs:
        slide = max(p.friction[a], p.friction[b])
        pair = xml.SubElement(contact, "pair", geom1=shapes.names[a], geom2=shapes.names[b], condim="3")
        pair.set("friction", _text(np.array([slide, slide, 0.005, 0.0001, 0.0001])))


def mujoco_robot(model: ag.Model, dt: float, **options: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return MuJoCo with its fastest settings: no sensors, no energy, no islands; no constraints if nothing can touch."""
    m = mujoco.MjModel.from_xml_string(mjcf(model, dt, **options))
    kept = KEPT + (KEPT_FOR_CONTACT if model.has_contact else ())
    bits = mujoco.mjtDisableBit.__members__.items()
    switched_off = [bit for name, bit in bits if name.startswith("mjDSBL_") and name[7:] not in kept]
    m.opt.disableflags = int(np.bitwise_or.reduce([int(bit) for bit in switched_off]))
    m.opt.enableflags = 0
    return m, mujoco.MjData(m)


def mujoco_scene(model: ag.Model, dt: float, solver: str, cone: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return the model as written by `ag.save`, in MuJoCo, with all constraints; without sensors and islands."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.xml"
        ag.save(model, file)
        m = mujoco.MjModel.from_xml_path(str(file))
    m.opt.timestep = dt
    m.opt.solver = mujoco.mjtSolver.__members__[f"mjSOL_{solver.upper()}"]
    m.opt.cone = mujoco.mjtCone.__members__[f"mjCONE_{cone.upper()}"]
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_SENSOR) | int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    return m, mujoco.MjData(m)


def _text(x: np.ndarray) -> str:
    return " ".join(repr(float(number)) for number in x)


# -- Pinocchio ---------------------------------------------------------------------------------------------------------
def pinocchio_robot(model: ag.Model) -> pin.Model:
    """Return the model in Pinocchio, with its fast joint types where an axis is a coordinate axis."""
    p = model.params
    out = pin.Model()
    out.gravity.linear = np.array(p.gravity)
    for i, name in enumerate(model.bodies):
        free = model.joint_type[i] == "free"
        assert not p.anchor[i].any() and not p.armature[i].any(), "not needed by the benchmark robots"
        joint = pin.JointModelFreeFlyer() if free else _revolute(p.axis[i])
        w, x, y, z = p.rotation[i]
        placed = pin.SE3.Identity() if free else pin.SE3(pin.Quaternion(w, x, y, z).matrix(), np.array(p.position[i]))
        index = out.addJoint(model.parent[i] + 1, joint, placed, name)
        xx, yy, zz, xy, xz, yz = p.inertia[i]
        moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        body = pin.Inertia(float(p.mass[i]), np.array(p.com[i]), moments)
        out.appendBodyToJoint(index, body, pin.SE3.Identity())
    return out


def _revolute(axis: np.ndarray) -> pin.JointModel:
    """Return a revolute joint about x, y, z or any other axis."""
    for k, kind in enumerate((pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)):
        if axis[k] == 1.0:
            return kind()
    return pin.JointModelRevoluteUnaligned(np.array(axis))


def pinocchio_state(state: ag.State) -> tuple[np.ndarray, np.ndarray]:
    """Return q and v in the convention of Pinocchio: quaternion x, y, z, w, all velocities in body axes."""
    q, v = state.q.copy(), state.v.copy()
    q[3:7] = q[[4, 5, 6, 3]]
    v[:3] = _rotation(state).T @ v[:3]
    return q, v


def pinocchio_torque(model: ag.Model, u: np.ndarray) -> np.ndarray:
    """Return joint torques (nv,) of the motors."""
    torque = np.zeros(model.nv)
    for k, joint in enumerate(model.actuator_joint):
        torque[model.joint_v[joint]] += model.params.gear[k] * u[k]
    return torque


def _rotation(state: ag.State) -> np.ndarray:
    w, x, y, z = state.q[3:7]
    return np.array(pin.Quaternion(w, x, y, z).matrix())


# -- agreement ---------------------------------------------------------------------------------------------------------
def check_agreement(model: ag.Model, state: ag.State, u: np.ndarray, dt: float) -> dict[str, float]:
    """Return the largest differences of MuJoCo and Pinocchio; raise if one is more than rounding."""
    return check_mujoco(model, state, u, dt) | _check_pinocchio(model, state, u, dt)


def check_mujoco(model: ag.Model, state: ag.State, u: np.ndarray, dt: float) -> dict[str, float]:
    """Return the largest differences of MuJoCo alone. `state` has no contacts: the engines have different contact models."""
    sim = ag.Simulator(model, dt)
    m, d = mujoco_robot(model, dt)
    d.qpos[:], d.qvel[:], d.ctrl[:] = state.q, state.v, u
    mujoco.mj_forward(m, d)
    apart = {"acceleration of MuJoCo": _apart(d.qacc, sim.forward_dynamics(state, u))}
    mujoco.mj_step(m, d, nstep=1000)
    apart["MuJoCo after 1000 steps"] = _apart(d.qpos, sim.rollout(state, np.tile(u, (1000, 1))).final.q)
    return _only_rounding(apart)


def _check_pinocchio(model: ag.Model, state: ag.State, u: np.ndarray, dt: float) -> dict[str, float]:
    robot = pinocchio_robot(model)
    q, v = pinocchio_state(state)
    theirs = np.array(pin.aba(robot, robot.createData(), q, v, pinocchio_torque(model, u)))
    theirs[:3] = _rotation(state) @ (theirs[:3] + np.cross(v[3:6], v[:3]))  # from the moving axes to the world's
    ours = ag.Simulator(model, dt).forward_dynamics(state, u)
    return _only_rounding({"acceleration of Pinocchio": _apart(theirs, ours)})


def _only_rounding(apart: dict[str, float]) -> dict[str, float]:
    for name, difference in apart.items():
        if not difference < AGREE:
            raise AssertionError(f"{name} differs from ours by {difference:.1e}: not the same robot")
    return apart


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())
