"""The physics on JAX arrays: `step`, `rollout` and `sites` under `jit`, `grad`, `vmap` and `lax.scan`."""

from .array_functions import rollout, sites, step

__all__ = ["rollout", "sites", "step"]
