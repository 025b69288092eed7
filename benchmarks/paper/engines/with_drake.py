"""Drake: discrete MultibodyPlant with TAMSI, which can be differentiated; AutoDiffXd gives each step's Jacobian, chained."""

import importlib.metadata

import numpy as np
from common import DT, FOLDER, Q_BAR, V_BAR, Q, U, report
from pydrake.autodiffutils import AutoDiffXd, ExtractGradient, ExtractValue, InitializeAutoDiff
from pydrake.geometry import HalfSpace
from pydrake.math import RigidTransform
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction, DiscreteContactApproximation
from pydrake.systems.framework import DiagramBuilder

builder = DiagramBuilder()
plant, _ = AddMultibodyPlantSceneGraph(builder, DT)
plant.set_discrete_contact_approximation(DiscreteContactApproximation.kTamsi)
Parser(plant).AddModels(str(FOLDER / "robot.urdf"))
plant.RegisterCollisionGeometry(plant.world_body(), RigidTransform(), HalfSpace(), "floor", CoulombFriction(1.0, 1.0))
plant.Finalize()
diagram = builder.Build()
trunk = plant.GetBodyByName("trunk")
names = [f"{leg}_{part}_joint" for leg in ("fr", "fl", "rr", "rl") for part in ("hip", "upper", "lower")]
at_q = [plant.GetJointByName(name).position_start() for name in names]
at_v = [plant.GetJointByName(name).velocity_start() for name in names]
nq, nv, nu = plant.num_positions(), plant.num_velocities(), len(names)
base = trunk.floating_positions_start()
x0 = np.zeros(nq + nv)
x0[base : base + 7] = np.concatenate([Q[3:7], Q[:3]])
x0[at_q] = Q[7:]


def torques(x, u, zero):
    """Joint PD with limits, inside the step."""
    tau = np.full(nv, zero)
    for k in range(nu):
        force = 100.0 * (u[k] - x[at_q[k]]) - 2.0 * x[nq + at_v[k]]
        tau[at_v[k]] = min(max(force, zero - 50.0), zero + 50.0)
    return tau


class Stepper:
    """One step of a diagram of some number type."""

    def __init__(self, diagram, zero):
        self.diagram, self.zero = diagram, zero
        self.context, self.after = diagram.CreateDefaultContext(), diagram.CreateDefaultContext()
        self.plant = diagram.GetSubsystemByName("plant")
        self.own = self.plant.GetMyMutableContextFromRoot(self.context)
        self.port = self.plant.get_applied_generalized_force_input_port()

    def __call__(self, x, u):
        self.plant.SetPositionsAndVelocities(self.own, x)
        self.port.FixValue(self.own, torques(x, u, self.zero))
        self.diagram.CalcForcedUnrestrictedUpdate(self.context, self.after.get_mutable_state())
        return self.after.get_discrete_state(0).CopyToVector()


plain, dual = Stepper(diagram, 0.0), Stepper(diagram.ToAutoDiffXd(), AutoDiffXd(0.0))


def forward():
    x = x0
    for u in U:
        x = plain(x, u)
    return x[base + 6]


def gradient():
    x, kept = x0, []
    for u in U:
        z = InitializeAutoDiff(np.concatenate([x, u])).ravel()
        y = dual(z[: nq + nv], z[nq + nv :]).reshape(-1, 1)
        x = ExtractValue(y).ravel()
        kept.append(ExtractGradient(y))
    bar = np.concatenate([Q_BAR, V_BAR])
    for J in reversed(kept):
        bar = (bar @ J)[: nq + nv]
    return bar


report(importlib.metadata.version("drake"), forward, gradient, "TAMSI; AutoDiffXd of every step, from Python")
