"""Environments: batched and differentiable in PyTorch on CPU and GPU, and as Gymnasium environments.

`DifferentiableEnv("Ant", 256)` is a batch of 256 environments in PyTorch. `gym.make("artigrad/Ant-v0")` is one Gymnasium
environment, `gym.make_vec("artigrad/Ant-v0", num_envs=256)` a vector environment whose step is one native call. Importing
this package registers them if Gymnasium is installed. `TASKS` lists the names.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..deprecation import module_getattr
from ..errors import need

need("torch", "artigrad.envs needs PyTorch", "gym")

from .batch import TASKS
from .differentiable_env import DifferentiableEnv, EnvStep
from .env_task import EnvState, EnvTask, RandomSource

if TYPE_CHECKING:
    from .gym_env import Env
    from .gym_vector_env import VectorEnv

_NEED_GYMNASIUM = {"Env": ".gym_env", "VectorEnv": ".gym_vector_env"}
_deprecated = module_getattr(__name__, {"Moment": "EnvState", "Draw": "RandomSource"})


def __getattr__(name: str) -> Any:
    """Import classes that need Gymnasium on demand, and resolve deprecated names."""
    if name not in _NEED_GYMNASIUM:
        return _deprecated(name)
    need("gymnasium", f"artigrad.envs.{name} needs Gymnasium", "gym")
    return getattr(importlib.import_module(_NEED_GYMNASIUM[name], __name__), name)


if find_spec("gymnasium") is not None:
    import gymnasium

    for _name in TASKS:
        gymnasium.register(
            f"artigrad/{_name}-v0",
            entry_point="artigrad.envs.gym_env:RegisteredEnv",
            vector_entry_point="artigrad.envs:VectorEnv",
            max_episode_steps=TASKS[_name].max_episode_steps,
            kwargs={"task": _name},
        )

__all__ = ["TASKS", "DifferentiableEnv", "Env", "EnvState", "EnvStep", "EnvTask", "RandomSource", "VectorEnv"]
