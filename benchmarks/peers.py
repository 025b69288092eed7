"""The same robot in MuJoCo and in Pinocchio, checked to have the same accelerations and, in MuJoCo, the same steps.

Joints: free, revolute and prismatic; actuators: plain motors. That is what the benchmark robots have.
"""

from __future__ import annotations

from xml.etree import ElementTree as xml

import mujoco
import numpy as np
import pinocchio as pin

import artigrad as ag

AGREE = (
    1e-9  # largest difference of accelerations (rad/s^2, m/s^2) and, after a second of motion, of positions (rad, m)
)
KEPT = ("GRAVITY", "ACTUATION")  # what MuJoCo must do; everything else that can be switched off is


# -- MuJoCo ------------------------------------------------------------------------------------------------------------
def mjcf(model: ag.Model, dt: float) -> str:
    """Our model as MJCF."""
    p = model.params
    root = xml.Element("mujoco", model=model.name)
    xml.SubElement(root, "compiler", angle="radian", autolimits="true")
    xml.SubElement(root, "option", timestep=repr(dt), gravity=_text(p.gravity), integrator="Euler")
    nodes = {-1: xml.SubElement(root, "worldbody")}
    for i, name in enumerate(model.bodies):
        node = nodes[i] = xml.SubElement(nodes[model.parent[i]], "body", name=name)
        node.attrib |= {"pos": _text(p.position[i]), "quat": _text(p.rotation[i])}
        kind = {"free": "free", "revolute": "hinge", "prismatic": "slide"}[model.joint_type[i]]
        joint = xml.SubElement(node, "joint", name=model.joints[i], type=kind)
        joint.attrib |= {"damping": repr(float(p.damping[i])), "armature": repr(float(p.armature[i]))}
        if kind != "free":
            joint.attrib |= {"axis": _text(p.axis[i]), "pos": _text(p.anchor[i])}
        # three moments where they will do: MuJoCo is faster when the axes of inertia are those of the body
        full = bool(p.inertia[i, 3:].any())
        moments = ("fullinertia", _text(p.inertia[i])) if full else ("diaginertia", _text(p.inertia[i, :3]))
        inertial = xml.SubElement(node, "inertial", pos=_text(p.com[i]), mass=repr(float(p.mass[i])))
        inertial.set(*moments)
    motors = xml.SubElement(root, "actuator")
    for k, name in enumerate(model.actuators):
        joint_name = model.joints[model.actuator_joint[k]]
        xml.SubElement(motors, "motor", name=name, joint=joint_name, gear=repr(float(p.gear[k])))
    return xml.tostring(root, encoding="unicode")


def mujoco_robot(model: ag.Model, dt: float) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """MuJoCo with its fastest settings: no contact, no constraints, no sensors, no energy."""
    m = mujoco.MjModel.from_xml_string(mjcf(model, dt))
    bits = mujoco.mjtDisableBit.__members__.items()
    switched_off = [bit for name, bit in bits if name.startswith("mjDSBL_") and name[7:] not in KEPT]
    m.opt.disableflags = int(np.bitwise_or.reduce([int(bit) for bit in switched_off]))
    m.opt.enableflags = 0
    return m, mujoco.MjData(m)


def _text(x: np.ndarray) -> str:
    return " ".join(repr(float(number)) for number in x)


# -- Pinocchio ---------------------------------------------------------------------------------------------------------
def pinocchio_robot(model: ag.Model) -> pin.Model:
    """Our model in Pinocchio, with its fast joint types where an axis is a coordinate axis."""
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
    """A revolute joint about x, y, z or any other axis."""
    for k, kind in enumerate((pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)):
        if axis[k] == 1.0:
            return kind()
    return pin.JointModelRevoluteUnaligned(np.array(axis))


def pinocchio_state(state: ag.State) -> tuple[np.ndarray, np.ndarray]:
    """q and v of a robot whose first joint is free: Pinocchio has x, y, z, w and all velocities in body axes."""
    q, v = state.q.copy(), state.v.copy()
    q[3:7] = q[[4, 5, 6, 3]]
    v[:3] = _rotation(state).T @ v[:3]
    return q, v


def pinocchio_torque(model: ag.Model, u: np.ndarray) -> np.ndarray:
    """Joint torques (nv,) of the motors."""
    torque = np.zeros(model.nv)
    for k, joint in enumerate(model.actuator_joint):
        torque[model.joint_v[joint]] += model.params.gear[k] * u[k]
    return torque


def _rotation(state: ag.State) -> np.ndarray:
    w, x, y, z = state.q[3:7]
    return np.array(pin.Quaternion(w, x, y, z).matrix())


# -- agreement ---------------------------------------------------------------------------------------------------------
def check_agreement(model: ag.Model, state: ag.State, u: np.ndarray, dt: float) -> dict[str, float]:
    """The largest differences of MuJoCo and Pinocchio from ours; raises if one is more than rounding."""
    sim = ag.Simulator(model, dt)
    ours = sim.acceleration(state, u)
    m, d = mujoco_robot(model, dt)
    d.qpos[:], d.qvel[:], d.ctrl[:] = state.q, state.v, u
    mujoco.mj_forward(m, d)
    robot = pinocchio_robot(model)
    q, v = pinocchio_state(state)
    theirs = np.array(pin.aba(robot, robot.createData(), q, v, pinocchio_torque(model, u)))
    theirs[:3] = _rotation(state) @ (theirs[:3] + np.cross(v[3:6], v[:3]))  # from the moving axes to the world's
    apart = {"acceleration of MuJoCo": _apart(d.qacc, ours), "acceleration of Pinocchio": _apart(theirs, ours)}
    mujoco.mj_step(m, d, nstep=1000)
    apart["MuJoCo after 1000 steps"] = _apart(d.qpos, sim.rollout(state, np.tile(u, (1000, 1))).final.q)
    for name, difference in apart.items():
        if not difference < AGREE:
            raise AssertionError(f"{name} differs from ours by {difference:.1e}: not the same robot")
    return apart


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())
