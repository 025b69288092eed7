"""Drake: discrete MultibodyPlant with TAMSI, which is differentiable. AutoDiffXd Jacobians of steps are chained."""

import importlib.metadata

import numpy as np
from common import DT, FOLDER, Q_BAR, V_BAR, Q, U, V, report
from pydrake.autodiffutils import ExtractGradient, ExtractValue, InitializeAutoDiff
from pydrake.geometry import HalfSpace
from pydrake.math import RigidTransform
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction, DiscreteContactApproximation
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import Adder, MatrixGain, Saturation, TrajectorySource
from pydrake.trajectories import PiecewisePolynomial

NAMES = [f"{leg}_{part}_joint" for leg in ("fr", "fl", "rr", "rl") for part in ("hip", "upper", "lower")]
NU = len(NAMES)


def robot(source=None):
    """Return the diagram of plant and joint PD with limits. Controls come from a source or are its input."""
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, DT)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kTamsi)
    Parser(plant).AddModels(str(FOLDER / "robot.urdf"))
    friction = CoulombFriction(1.0, 1.0)
    plant.RegisterCollisionGeometry(plant.world_body(), RigidTransform(), HalfSpace(), "floor", friction)
    plant.Finalize()
    at_q, at_v = places(plant)
    feedback, to_joints = np.zeros((NU, plant.num_multibody_states())), np.zeros((plant.num_velocities(), NU))
    feedback[range(NU), at_q[7:]], feedback[range(NU), at_v[6:]] = -100.0, -2.0
    to_joints[at_v[6:] - plant.num_positions(), range(NU)] = 1.0
    blocks = [MatrixGain(100.0 * np.eye(NU)), MatrixGain(feedback), Adder(2, NU)]
    blocks += [Saturation(np.full(NU, -50.0), np.full(NU, 50.0)), MatrixGain(to_joints)]
    wanted, felt, force, limited, torque = map(builder.AddSystem, blocks)
    builder.Connect(plant.get_state_output_port(), felt.get_input_port())
    builder.Connect(wanted.get_output_port(), force.get_input_port(0))
    builder.Connect(felt.get_output_port(), force.get_input_port(1))
    builder.Connect(force.get_output_port(), limited.get_input_port())
    builder.Connect(limited.get_output_port(), torque.get_input_port())
    builder.Connect(torque.get_output_port(), plant.get_applied_generalized_force_input_port())
    if source:
        builder.Connect(builder.AddSystem(source).get_output_port(), wanted.get_input_port())
    else:
        builder.ExportInput(wanted.get_input_port())
    return builder.Build(), plant


def places(plant):
    """Return the indices of q (x, y, z, quaternion, joints) and v (linear, angular, joints) in the state of Drake."""
    trunk, joints = plant.GetBodyByName("trunk"), [plant.GetJointByName(name) for name in NAMES]
    q, v = trunk.floating_positions_start(), plant.num_positions() + trunk.floating_velocities_start_in_v()
    at_q = [*range(q + 4, q + 7), *range(q, q + 4), *(joint.position_start() for joint in joints)]
    start = plant.num_positions()
    at_v = [*range(v + 3, v + 6), *range(v, v + 3), *(start + joint.velocity_start() for joint in joints)]
    return np.array(at_q), np.array(at_v)


times = DT * (np.arange(len(U) + 1) - 0.5)  # a control changes between two steps
diagram, plant = robot(TrajectorySource(PiecewisePolynomial.ZeroOrderHold(times, np.vstack([U, U[-1:]]).T)))
simulator = Simulator(diagram)
context = simulator.get_mutable_context()
own = plant.GetMyMutableContextFromRoot(context)
at_q, at_v = places(plant)
x0, last_bar = np.zeros(plant.num_multibody_states()), np.zeros(plant.num_multibody_states())
x0[at_q], x0[at_v], last_bar[at_q], last_bar[at_v] = Q, V, Q_BAR, V_BAR


def forward():
    context.SetTime(0.0)
    plant.SetPositionsAndVelocities(own, x0)
    simulator.Initialize()
    simulator.AdvanceTo(DT * (len(U) - 0.5))
    return plant.GetPositionsAndVelocities(own)[at_q[2]]


dual = robot()[0].ToAutoDiffXd()
dual_plant = dual.GetSubsystemByName("plant")
before, after = dual.CreateDefaultContext(), dual.CreateDefaultContext()
dual_own = dual_plant.GetMyMutableContextFromRoot(before)


def gradient():
    x, n, kept = x0, len(x0), []
    for u in U:
        z = InitializeAutoDiff(np.concatenate([x, u])).ravel()
        dual_plant.SetPositionsAndVelocities(dual_own, z[:n])
        dual.get_input_port().FixValue(before, z[n:])
        dual.CalcForcedUnrestrictedUpdate(before, after.get_mutable_state())
        y = after.get_discrete_state(0).CopyToVector().reshape(-1, 1)
        x = ExtractValue(y).ravel()
        kept.append(ExtractGradient(y))
    bar, u_bar = last_bar, np.empty_like(U)
    for t in reversed(range(len(U))):
        both = bar @ kept[t]
        bar, u_bar[t] = both[:n], both[n:]
    return u_bar


report(importlib.metadata.version("drake"), forward, gradient, "TAMSI; AutoDiffXd of every step, from Python")
