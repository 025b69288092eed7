"""The physics on JAX arrays, under `jit`, `grad`, `vmap` and `lax.scan`."""

from ..errors import need

need("jax", "artigrad.jax needs JAX", "jax")


from .array_functions import (
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
