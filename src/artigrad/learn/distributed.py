"""Distributed training of one policy: processes with a common group, and Ray workers.

Each process simulates and differentiates its own environments. Gradients are averaged, so that all processes have equal weights
after every update. `Workers` keeps the states of all workers at regular updates. When a worker dies, all are restarted from the
last kept states and repeat the lost updates: the trained policy is the same to the bit.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
import torch.distributed
from torch import Tensor

from ..deprecation import renamed, renamed_arguments
from ..envs import EnvTask
from ..errors import InputError
from ..files import replacing
from ..jobs import cluster
from .learner import Learner, ProcessGroup
from .training import ALGORITHMS, Training

DISTRIBUTED = ("shac", "ppo", "bptt")  # algorithms that need no common replay buffer


@renamed(leave="close")
class GlooProcessGroup(ProcessGroup):
    """Several processes that train one policy, by PyTorch's gloo backend.

    Args:
      rank: Index of this process.
      world_size: Number of processes.
      address: Address of the process of rank 0, as "tcp://host:port".
    """

    @renamed_arguments(count="world_size")
    def __init__(self, rank: int, world_size: int, address: str | None = None):
        self.rank, self.world_size = rank, world_size
        self.all_reduce_sum: Callable[[Tensor], Tensor] = self._sum
        self.all_reduce_mean: Callable[[Tensor], Tensor] = lambda x: self._sum(x) / world_size
        if world_size > 1:
            torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)

    def close(self) -> None:
        """Leave the group."""
        if self.world_size > 1:
            torch.distributed.destroy_process_group()

    def _sum(self, x: Tensor) -> Tensor:
        if self.world_size > 1:
            x = x.clone()
            torch.distributed.all_reduce(x)
        return x


def free_port() -> int:
    """Return an unused port of this machine."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


class Worker:
    """A learner in a Ray actor."""

    def __init__(self, rank: int, world_size: int, address: str, task: str | EnvTask, about: dict[str, Any]):
        torch.set_num_threads(1)
        kind = ALGORITHMS[about["algorithm"]]
        group = GlooProcessGroup(rank, world_size, address)
        self.learner: Learner = kind(
            task, kind.Settings(**about["settings"]), threads=1, process_group=group, **about["options"]
        )

    def update(self, times: int) -> list[dict[str, float]]:
        """Update the learner several times and return the metrics of each update."""
        metrics = []
        for _ in range(times):
            metrics.append(self.learner.update())
            self.learner.update_ema()
        return metrics

    def state(self) -> dict[str, Any]:
        """Return the state of the learner."""
        return self.learner.state_dict()

    def load(self, state: dict[str, Any]) -> None:
        """Restore a state of the learner."""
        self.learner.load_state_dict(state)

    def process(self) -> int:
        """Return the process id."""
        return os.getpid()


@renamed(count="num_workers", every="keep_every", lost="restarts", figures="metrics", processes="process_ids")
class Workers:
    """Ray workers that train one policy. `run` trains; `save` writes a checkpoint for `Player`.

    Args:
      task: Name in `artigrad.envs.TASKS`, or an EnvTask.
      algorithm: "shac", "ppo" or "bptt".
      num_workers: Number of workers.
      address: Address of a Ray cluster; None: start one on this machine.
      options: Options of a task given by name.
      keep_every: Updates between two kept states.
      settings: Settings of the algorithm, for each worker.

    Attributes:
      steps: Environment steps so far, of all workers.
      restarts: Number of restarts after a worker died.
      metrics: Metrics of every update, means over workers.
      states: Last kept states of the learners.
    """

    @renamed_arguments(count="num_workers", every="keep_every")
    def __init__(
        self,
        task: str | EnvTask,
        algorithm: str = "shac",
        num_workers: int = 2,
        *,
        address: str | None = None,
        options: dict[str, Any] | None = None,
        keep_every: int = 10,
        **settings: Any,
    ):
        if algorithm not in DISTRIBUTED:
            raise InputError(f"workers train by {', '.join(DISTRIBUTED)}; not by {algorithm}")
        if not isinstance(num_workers, int) or num_workers < 1:
            raise InputError(f"num_workers is an integer of at least 1, not {num_workers!r}")
        self.ray, self.num_workers, self.keep_every = cluster(address), num_workers, keep_every
        probe = Training(task, algorithm, options=options, threads=1, **settings)  # checks the arguments
        self.task = probe.about["task"] if isinstance(task, str) else task
        self.about = {**probe.about, "settings": asdict(probe.learner.settings)}
        self.steps, self.restarts, self.metrics = 0, 0, list[dict[str, float]]()
        self._start(None)

    def _start(self, states: list[dict[str, Any]] | None) -> None:
        address = f"tcp://{self.ray.util.get_node_ip_address()}:{free_port()}"
        actor, n = self.ray.remote(num_cpus=1)(Worker), self.num_workers
        self.actors = [actor.remote(rank, n, address, self.task, self.about) for rank in range(n)]
        if states is not None:
            self.ray.get([a.load.remote(s) for a, s in zip(self.actors, states, strict=True)])
        self.states = self.ray.get([a.state.remote() for a in self.actors])

    def run(self, updates: int) -> list[dict[str, float]]:
        """Update `updates` times and return the metrics of each update, means over workers."""
        done, metrics = 0, list[dict[str, float]]()
        while done < updates:
            times = min(self.keep_every, updates - done)
            try:
                parts = self.ray.get([a.update.remote(times) for a in self.actors])
                states = self.ray.get([a.state.remote() for a in self.actors])
            except self.ray.exceptions.RayError:  # a worker died; the others have lost their group
                self.restarts += 1
                for a in self.actors:
                    self.ray.kill(a)
                time.sleep(0.1)
                self._start(self.states)
                continue
            self.states, done = states, done + times
            for row in zip(*parts, strict=True):
                metrics.append({name: sum(x[name] for x in row) / self.num_workers for name in row[0]})
        self.steps = self.states[0]["steps"]
        self.metrics += metrics
        return metrics

    def process_ids(self) -> list[int]:
        """Return the process ids of the workers."""
        return self.ray.get([a.process.remote() for a in self.actors])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint with the policy, as `Training.save`."""
        about = {name: self.about[name] for name in ("task", "algorithm", "options")}
        with replacing(path) as unfinished:
            torch.save({"about": about, "seconds": 0.0, "learner": self.states[0]}, unfinished)

    def close(self) -> None:
        """End the workers."""
        for a in self.actors:
            self.ray.kill(a)
