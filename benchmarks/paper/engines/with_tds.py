"""Tiny Differentiable Simulator: its Python wheel, in f64. The wheel has no differentiable number type."""

import importlib.metadata

import numpy as np
import pytinydiffsim as tds
from common import DT, FOLDER, Q, U, V, report

world = tds.TinyWorld()
world.gravity, world.friction = tds.Vector3(0.0, 0.0, -9.81), 1.0


def body(description, floating):
    out = tds.TinyMultiBody(floating)
    tds.UrdfToMultiBody2().convert2(description, world, out)
    out.initialize()
    return out


plane, link, ground = tds.TinyUrdfCollision(), tds.TinyUrdfLink(), tds.TinyUrdfStructures()
plane.geometry.geom_type = tds.PLANE_TYPE
link.link_name, link.urdf_collision_shapes, ground.base_links = "floor", [plane], [link]
floor = body(ground, False)
robot = body(tds.TinyUrdfParser().load_urdf(str(FOLDER / "robot.urdf"), False), True)
q, v, tau = robot.q, robot.qd, robot.tau
solver, dispatcher = tds.TinyMultiBodyConstraintSolver(), world.get_collision_dispatcher()
first = np.concatenate([Q[4:7], Q[3:4], Q[:3], Q[7:]]).tolist(), np.concatenate([V[3:6], V[:3], V[6:]]).tolist()
controls = U.tolist()


def forward():
    for target, values in zip((q, v), first, strict=True):
        for k, value in enumerate(values):
            target[k] = value
    for u in controls:
        for k, wanted in enumerate(u):  # joint PD with limits
            tau[k] = min(max(100.0 * (wanted - q[7 + k]) - 2.0 * v[6 + k], -50.0), 50.0)
        tds.forward_kinematics(robot, q, v)
        tds.forward_dynamics(robot, world.gravity)
        tds.integrate_euler_qdd(robot, DT)
        for touching in world.compute_contacts_multi_body([floor, robot], dispatcher):
            solver.resolve_collision(touching, DT)
        tds.integrate_euler(robot, DT)
    return q[6]


what = "one sweep of PGS, its default, from Python; the wheel supports doubles only: no gradient"
report(importlib.metadata.version("pytinydiffsim"), forward, None, what)
