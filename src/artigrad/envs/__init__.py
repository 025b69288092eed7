"""Environments on the engine: in PyTorch, differentiable, on CPU and GPU; and as Gymnasium's, which importing this registers
where Gymnasium is installed.

`DifferentiableEnv("Ant", 256)` are many robots in PyTorch. gym.make("artigrad/Ant-v0") is one robot,
gym.make_vec("artigrad/Ant-v0", num_envs=256) many, stepped by one native call. `TASKS` has the names.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import need

need("torch", "artigrad.envs needs PyTorch", "gym")

from .batch import TASKS
from .differentiable_env import DifferentiableEnv, EnvStep
from .env_task import Draw, EnvTask, Moment

if TYPE_CHECKING:
    from .single import Env
    from .vector import VectorEnv

_ON_GYMNASIUM = {"Env": ".single", "VectorEnv": ".vector"}


def __getattr__(name: str) -> Any:
    """What needs Gymnasium, on demand."""
    if name not in _ON_GYMNASIUM:
        raise AttributeError(f"module 'artigrad.envs' has no attribute {name!r}")
    need("gymnasium", f"artigrad.envs.{name} needs Gymnasium", "gym")
    return getattr(importlib.import_module(_ON_GYMNASIUM[name], __name__), name)


if find_spec("gymnasium") is not None:
    import gymnasium

    for _name in TASKS:
        gymnasium.register(
            f"artigrad/{_name}-v0",
            entry_point="artigrad.envs:Env",
            vector_entry_point="artigrad.envs:VectorEnv",
            max_episode_steps=TASKS[_name].episode,
            kwargs={"task": _name},
        )

__all__ = ["TASKS", "DifferentiableEnv", "Draw", "Env", "EnvStep", "EnvTask", "Moment", "VectorEnv"]
