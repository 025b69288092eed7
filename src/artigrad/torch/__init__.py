"""The physics on PyTorch tensors, with autograd: `step`, `rollout`, `sites`; as a layer; with a policy in the loop."""

from .closed_loop import Loop, closed_loop
from .layer import LearnableParams, PhysicsLayer
from .tensor_functions import rollout, sites, step

__all__ = ["LearnableParams", "Loop", "PhysicsLayer", "closed_loop", "rollout", "sites", "step"]
