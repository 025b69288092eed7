"""Nimble: its LCP with analytic gradients through the contact, as a layer of PyTorch."""

import importlib.metadata

import nimblephysics as nimble
import numpy as np
import torch
from common import DT, FOLDER, Q_BAR, V_BAR, Q, U, report

torch.set_num_threads(1)
world = nimble.simulation.World()
world.setGravity([0.0, 0.0, -9.81])
world.setTimeStep(DT)
robot = world.loadSkeleton(str(FOLDER / "robot.urdf"))
floor = nimble.dynamics.Skeleton()
_, body = floor.createWeldJointAndBodyNodePair()
shape = body.createShapeNode(nimble.dynamics.BoxShape([20.0, 20.0, 1.0]))
shape.setRelativeTranslation([0.0, 0.0, -0.5])
shape.createCollisionAspect()
shape.createDynamicsAspect()
world.addSkeleton(floor)
for k in range(robot.getNumBodyNodes()):
    robot.getBodyNode(k).setFrictionCoeff(1.0)
body.setFrictionCoeff(1.0)

names = [robot.getDofByIndex(k).getName() for k in range(robot.getNumDofs())]
order = [f"{leg}_{part}_joint" for leg in ("fr", "fl", "rr", "rl") for part in ("hip", "upper", "lower")]
joints = [names.index(name) for name in order]
n = len(names)
x0 = np.zeros(2 * n)
x0[3:6], x0[joints] = Q[:3], Q[7:]
bar = torch.tensor(np.concatenate([Q_BAR[:n], V_BAR]))  # of its own coordinates: any weights cost the same


def rollout(x, controls):
    for u in controls:
        force = torch.clamp(100.0 * (u - x[joints]) - 2.0 * x[[n + k for k in joints]], -50.0, 50.0)
        action = torch.zeros(n, dtype=torch.float64).index_put((torch.tensor(joints),), force)
        x = nimble.timestep(world, x, action)
    return x


def forward():
    with torch.no_grad():
        return float(rollout(torch.tensor(x0), torch.tensor(U))[5])


def gradient():
    x, u = torch.tensor(x0, requires_grad=True), torch.tensor(U, requires_grad=True)
    (rollout(x, u) @ bar).backward()
    return x.grad, u.grad


version = importlib.metadata.version("nimblephysics")
report(version, forward, gradient, "LCP; gradient of every step through PyTorch (it warns of friction on level ground)")
