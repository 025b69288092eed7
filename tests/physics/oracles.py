"""Models in other engines: MuJoCo (by MJCF) and Pinocchio (built in code)."""

import mujoco
import numpy as np
import pinocchio as pin

from artigrad import Model


def numbers(x):
    return " ".join(repr(float(a)) for a in np.ravel(x))


def to_mujoco(model: Model, dt: float = 1e-3) -> mujoco.MjModel:
    """Compile a model by MuJoCo."""
    return mujoco.MjModel.from_xml_string(mjcf(model, dt))


def mjcf(model: Model, dt: float) -> str:
    """MJCF text of a model without its actuators and shapes, with damping, springs and armature."""
    p = model.params
    children = {i: [] for i in range(-1, model.nb)}
    for i, parent in enumerate(model.parent):
        children[parent].append(i)
    kinds = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball"}

    def body(i):
        joint, name = model.joint_type[i], model.joints[i]
        common = f'damping="{float(p.damping[i])!r}" armature="{float(p.armature[i])!r}"'
        if joint == "free":
            text = f'<joint type="free" name="{name}" {common}/>'
        elif joint == "fixed":
            text = ""
        else:
            text = f'<joint type="{kinds[joint]}" name="{name}" pos="{numbers(p.anchor[i])}" {common}'
            if joint != "spherical":
                text += f' axis="{numbers(p.axis[i])}" stiffness="{float(p.stiffness[i])!r}"'
                text += f' springref="{float(p.spring_reference[i])!r}"'
            text += "/>"
        inertial = (
            f'<inertial pos="{numbers(p.com[i])}" mass="{float(p.mass[i])!r}" fullinertia="{numbers(p.inertia[i])}"/>'
            if p.mass[i] > 0
            else ""
        )
        sites = "".join(
            f'<site name="{model.sites[s]}" pos="{numbers(p.site_position[s])}" quat="{numbers(p.site_rotation[s])}"/>'
            for s in range(model.ns)
            if model.site_body[s] == i
        )
        inner = "".join(body(c) for c in children[i])
        where = f'pos="{numbers(p.position[i])}" quat="{numbers(p.rotation[i])}"'
        return f'<body name="{model.bodies[i]}" {where}>{text}{inertial}{sites}{inner}</body>'

    flag = '<flag contact="disable" energy="enable"/>'
    return f"""<mujoco><compiler angle="radian" balanceinertia="false" boundmass="0" boundinertia="0"/>
    <option timestep="{dt!r}" gravity="{numbers(p.gravity)}">{flag}</option>
    <worldbody>{"".join(body(i) for i in children[-1])}</worldbody></mujoco>"""


class InMuJoCo:
    """A model in MuJoCo, with its order of joints mapped to ours."""

    def __init__(self, model: Model, dt: float = 1e-3):
        self.model, self.m = model, to_mujoco(model, dt)
        self.d = mujoco.MjData(self.m)
        moving = [i for i in range(model.nb) if model.joint_type[i] != "fixed"]
        ids = [mujoco.mj_name2id(self.m, mujoco.mjtObj.mjOBJ_JOINT, model.joints[i]) for i in moving]
        sizes = {"revolute": (1, 1), "prismatic": (1, 1), "spherical": (4, 3), "free": (7, 6)}
        self.q = np.concatenate(
            [self.m.jnt_qposadr[j] + np.arange(sizes[model.joint_type[i]][0]) for i, j in zip(moving, ids, strict=True)]
        )
        self.v = np.concatenate(
            [self.m.jnt_dofadr[j] + np.arange(sizes[model.joint_type[i]][1]) for i, j in zip(moving, ids, strict=True)]
        )
        self.sites = [mujoco.mj_name2id(self.m, mujoco.mjtObj.mjOBJ_SITE, s) for s in model.sites]
        self.bodies = [mujoco.mj_name2id(self.m, mujoco.mjtObj.mjOBJ_BODY, b) for b in model.bodies]

    def set(self, q, v):
        self.d.qpos[self.q], self.d.qvel[self.v] = q, v
        mujoco.mj_forward(self.m, self.d)

    def mass_matrix(self):
        M = np.zeros((self.m.nv, self.m.nv))
        mujoco.mj_fullM(self.m, M, self.d.qM) if hasattr(self.d, "qM") else mujoco.mj_fullM(self.m, self.d, M)
        return M[np.ix_(self.v, self.v)]

    def inverse_dynamics(self, a):
        self.d.qacc[self.v] = a
        out = np.zeros(self.m.nv)
        mujoco.mj_rne(self.m, self.d, 1, out)
        return out[self.v] + self.m.dof_armature[self.v] * a

    def site_velocity(self, k):
        out = np.zeros(6)
        mujoco.mj_objectVelocity(self.m, self.d, mujoco.mjtObj.mjOBJ_SITE, self.sites[k], out, 0)
        return out[3:], out[:3]  # linear, angular, world axes


def depth_first(model):
    """Order of bodies with contiguous subtrees, as Pinocchio's recursions require."""

    def walk(i):
        yield i
        for c in range(model.nb):
            if model.parent[c] == i:
                yield from walk(c)

    return [i for root in range(model.nb) if model.parent[root] < 0 for i in walk(root)]


class InPinocchio:
    """A model in Pinocchio. Its free-flyer velocities are in body axes and its quaternions end with w."""

    def __init__(self, model: Model):
        self.model, self.m = model, pin.Model()
        p = model.params
        self.m.gravity = pin.Motion(np.array(p.gravity), np.zeros(3))
        joint_of, place_of = {-1: 0}, {-1: pin.SE3.Identity()}
        self.q, self.v, self.frames = [], [], []
        for i in depth_first(model):
            X = pin.SE3(pin.Quaternion(*p.rotation[i]).normalized().matrix(), np.array(p.position[i]))
            parent, kind = model.parent[i], model.joint_type[i]
            placed = place_of[parent] * X
            if kind == "fixed":
                joint_of[i], place_of[i] = joint_of[parent], placed
            else:
                anchor = pin.SE3(np.eye(3), np.array(p.anchor[i]))
                made = {
                    "revolute": lambda a: pin.JointModelRevoluteUnaligned(a),
                    "prismatic": lambda a: pin.JointModelPrismaticUnaligned(a),
                    "spherical": lambda a: pin.JointModelSpherical(),
                    "free": lambda a: pin.JointModelFreeFlyer(),
                }[kind](np.array(p.axis[i]))
                where = pin.SE3.Identity() if kind == "free" else placed * anchor
                joint_of[i] = self.m.addJoint(joint_of[parent], made, where, model.joints[i])
                place_of[i] = pin.SE3.Identity() if kind == "free" else anchor.inverse()
                first, n = self.m.idx_vs[joint_of[i]], self.m.nvs[joint_of[i]]
                # the armature of a free joint would act on body-axes accelerations here
                self.m.armature[first : first + n] = 0.0 if kind == "free" else p.armature[i]
            xx, yy, zz, xy, xz, yz = p.inertia[i]
            I = pin.Inertia(p.mass[i], np.array(p.com[i]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
            self.m.appendBodyToJoint(joint_of[i], I, place_of[i])
        self.joint_of, self.place_of = joint_of, place_of
        self.d = self.m.createData()

    def _joints(self):
        for i, kind in enumerate(self.model.joint_type):
            if kind != "fixed":
                j = self.joint_of[i]
                yield kind, self.model.joint_q[i], self.model.joint_v[i], self.m.idx_qs[j], self.m.idx_vs[j]

    def to_q(self, q):
        out = np.zeros(self.m.nq)
        for kind, a, _, b, _ in self._joints():
            if kind == "free":
                out[b : b + 3], out[b + 3 : b + 7] = q[a : a + 3], q[a + 3 : a + 7][[1, 2, 3, 0]]
            elif kind == "spherical":
                out[b : b + 4] = q[a : a + 4][[1, 2, 3, 0]]
            else:
                out[b] = q[a]
        return out

    def change(self, q):
        """T with v_pinocchio = T v_ours: linear velocities of free joints turn into body axes."""
        T = np.zeros((self.m.nv, self.model.nv))
        sizes = {"free": 6, "spherical": 3, "revolute": 1, "prismatic": 1}
        for kind, a, k, _, j in self._joints():
            n = sizes[kind]
            T[j : j + n, k : k + n] = np.eye(n)
            if kind == "free":
                T[j : j + 3, k : k + 3] = pin.Quaternion(*q[a + 3 : a + 7]).matrix().T
        return T

    def bias_rate(self, q, v):
        """dT/dt v: body axes turn, so equal world accelerations differ by -w x v in them."""
        out = np.zeros(self.m.nv)
        for kind, a, k, _, j in self._joints():
            if kind == "free":
                R = pin.Quaternion(*q[a + 3 : a + 7]).matrix()
                out[j : j + 3] = -np.cross(v[k + 3 : k + 6], R.T @ v[k : k + 3])
        return out
