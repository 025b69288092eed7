"""The physics on PyTorch tensors, with autograd, on the CPU and on a GPU; as a layer; with a policy in the loop."""

from ..errors import need

need("torch", "artigrad.torch needs PyTorch", "torch")


from .closed_loop import closed_loop
from .layer import LearnableParams, PhysicsLayer
from .loop_memory import Loop
from .recorded_loop import RecordedLoop
from .tensor_functions import (
    contacts,
    forward_dynamics,
    inverse_dynamics,
    linearize,
    mass_matrix,
    outputs,
    reweighted,
    rollout,
    sensors,
    sites,
    step,
)

__all__ = [
    "LearnableParams",
    "Loop",
    "PhysicsLayer",
    "RecordedLoop",
    "closed_loop",
    "contacts",
    "forward_dynamics",
    "inverse_dynamics",
    "linearize",
    "mass_matrix",
    "outputs",
    "reweighted",
    "rollout",
    "sensors",
    "sites",
    "step",
]
