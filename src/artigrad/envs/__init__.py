"""Gymnasium environments on the engine; importing this registers them.

gym.make("artigrad/Ant-v0") is one robot, gym.make_vec("artigrad/Ant-v0", num_envs=256) many, stepped by one native call.
Ids: artigrad/CartpoleSwingUp-v0 (poles=n), artigrad/PendulumReach-v0 (links=n), artigrad/Ant-v0, artigrad/Hopper-v0,
artigrad/QuadrupedWalk-v0.
"""

from ..errors import need

need("gymnasium", "artigrad.envs needs Gymnasium", "gym")

import gymnasium

from .batch import TASKS, DifferentiableStep
from .env_task import EnvTask, RewardBars, Transition
from .single import Env
from .vector import VectorEnv

for _name, _task in TASKS.items():
    gymnasium.register(
        f"artigrad/{_name}-v0",
        entry_point="artigrad.envs:Env",
        vector_entry_point="artigrad.envs:VectorEnv",
        max_episode_steps=_task().episode,
        kwargs={"task": _name},
    )

__all__ = ["TASKS", "DifferentiableStep", "Env", "RewardBars", "EnvTask", "Transition", "VectorEnv"]
