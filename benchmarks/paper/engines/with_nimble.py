"""Nimble: LCP with analytic gradients through contact, as a PyTorch layer."""

import importlib.metadata

import nimblephysics as nimble
import numpy as np
import torch
from common import DT, FOLDER, Q_BAR, V_BAR, Q, U, V, report

torch.set_num_threads(1)
world = nimble.simulation.World()
world.setGravity([0.0, -9.81, 0.0])  # up is y: it warns that its gradients have a singularity where z is
world.setTimeStep(DT)
robot = world.loadSkeleton(str(FOLDER / "robot.urdf"))
upright = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
robot.getRootJoint().setTransformFromParentBodyNode(nimble.math.Isometry3(upright, np.zeros(3)))
floor = nimble.dynamics.Skeleton()
_, body = floor.createWeldJointAndBodyNodePair()
shape = body.createShapeNode(nimble.dynamics.BoxShape([20.0, 1.0, 20.0]))
shape.setRelativeTranslation([0.0, -0.5, 0.0])
shape.createCollisionAspect()
shape.createDynamicsAspect()
world.addSkeleton(floor)
for k in range(robot.getNumBodyNodes()):
    robot.getBodyNode(k).setFrictionCoeff(1.0)
body.setFrictionCoeff(1.0)

names = [robot.getDofByIndex(k).getName() for k in range(robot.getNumDofs())]
order = [f"{leg}_{part}_joint" for leg in ("fr", "fl", "rr", "rl") for part in ("hip", "upper", "lower")]
n = len(names)
at_q = np.array([3, 4, 5, 0, 1, 2, *(names.index(name) for name in order)])  # its free joint: rotation vector, position
at_v = n + at_q
x0, bar = np.zeros(2 * n), np.zeros(2 * n)
x0[at_q], x0[at_v] = np.concatenate([Q[:3], np.zeros(3), Q[7:]]), V
bar[at_q], bar[at_v] = np.concatenate([Q_BAR[:3], 0.5 * Q_BAR[4:7], Q_BAR[7:]]), V_BAR  # the robot is all but upright
joint_q, joint_v = at_q[6:], at_v[6:]


def forward():
    world.setState(x0)
    force = np.zeros(n)
    for u in U:
        x = world.getState()
        force[joint_q] = np.clip(100.0 * (u - x[joint_q]) - 2.0 * x[joint_v], -50.0, 50.0)
        world.setControlForces(force)
        world.step()
    return world.getState()[5]


def gradient():
    x, controls = torch.tensor(x0), torch.tensor(U, requires_grad=True)
    at_q, at_v = torch.tensor(joint_q), torch.tensor(joint_v)
    for u in controls:
        force = torch.clamp(100.0 * (u - x[at_q]) - 2.0 * x[at_v], -50.0, 50.0)
        x = nimble.timestep(world, x, torch.zeros(n, dtype=torch.float64).index_put((at_q,), force))
    (x @ torch.tensor(bar)).backward()
    return controls.grad.numpy()


version = importlib.metadata.version("nimblephysics")
report(version, forward, gradient, "LCP; gradient of every step through PyTorch")
