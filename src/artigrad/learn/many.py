"""One policy trained by many workers (Ray): each simulates and differentiates its share of robots, gradients are averaged, so
that all have the same weights after every update.

What all workers were at some moment is kept. When one dies, all are made anew from there and do again what was lost: the
policy that comes out is the same to the bit, and only time has passed.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
import torch.distributed as group
from torch import Tensor

from ..envs import EnvTask
from ..errors import InputError
from ..files import replacing
from ..jobs import cluster
from .learner import Learner, Together
from .training import ALGORITHMS, Training

SHARED = ("shac", "ppo", "bptt")  # whose workers need not share what they have seen


class Share(Together):
    """A process's place among those that train one policy. address: where the first of them is met, as tcp://host:port."""

    def __init__(self, rank: int, count: int, address: str | None = None):
        self.rank, self.count = rank, count
        self.total: Callable[[Tensor], Tensor] = self._add
        self.mean: Callable[[Tensor], Tensor] = lambda x: self._add(x) / count
        if count > 1:
            group.init_process_group("gloo", init_method=address, rank=rank, world_size=count)

    def leave(self) -> None:
        """This process trains alone again, or nothing."""
        if self.count > 1:
            group.destroy_process_group()

    def _add(self, x: Tensor) -> Tensor:
        if self.count > 1:
            x = x.clone()
            group.all_reduce(x)
        return x


def free_port() -> int:
    """A port of this machine that nobody listens to."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


class Worker:
    """A learner in a process of its own."""

    def __init__(self, rank: int, count: int, address: str, task: str | EnvTask, about: dict[str, Any]):
        torch.set_num_threads(1)
        kind = ALGORITHMS[about["algorithm"]]
        how: dict[str, Any] = {"threads": 1, "workers": Share(rank, count, address), **about["options"]}
        self.learner: Learner = kind(task, kind.Settings(**about["settings"]), **how)

    def update(self, times: int) -> list[dict[str, float]]:
        found = []
        for _ in range(times):
            found.append(self.learner.update())
            self.learner.follow()
        return found

    def state(self) -> dict[str, Any]:
        return self.learner.state_dict()

    def load(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state)

    def process(self) -> int:
        return os.getpid()


class Workers:
    """`count` workers at one training; settings are those of each of them. `run` trains, `save` writes a checkpoint that
    `Player` takes. address: of a Ray cluster, else one of this machine is started."""

    def __init__(
        self,
        task: str | EnvTask,
        algorithm: str = "shac",
        count: int = 2,
        *,
        address: str | None = None,
        options: dict[str, Any] | None = None,
        every: int = 10,
        **settings: Any,
    ):
        if algorithm not in SHARED:
            raise InputError(f"workers train by {', '.join(SHARED)}; not by {algorithm}")
        if not isinstance(count, int) or count < 1:
            raise InputError(f"count is a whole number of workers, at least 1, not {count!r}")
        self.ray, self.count, self.every = cluster(address), count, every
        probe = Training(task, algorithm, options=options, threads=1, **settings)  # checks what was asked for
        self.task = probe.about["task"] if isinstance(task, str) else task
        self.about = {**probe.about, "settings": asdict(probe.learner.settings)}
        self.steps, self.lost, self.figures = 0, 0, list[dict[str, float]]()
        self._start(None)

    def _start(self, states: list[dict[str, Any]] | None) -> None:
        address = f"tcp://{self.ray.util.get_node_ip_address()}:{free_port()}"
        actor = self.ray.remote(num_cpus=1)(Worker)
        self.actors = [actor.remote(rank, self.count, address, self.task, self.about) for rank in range(self.count)]
        if states is not None:
            self.ray.get([a.load.remote(s) for a, s in zip(self.actors, states, strict=True)])
        self.states = self.ray.get([a.state.remote() for a in self.actors])

    def run(self, updates: int) -> list[dict[str, float]]:
        """So many updates more; the figures of each, means over workers."""
        done, found = 0, list[dict[str, float]]()
        while done < updates:
            times = min(self.every, updates - done)
            try:
                parts = self.ray.get([a.update.remote(times) for a in self.actors])
                states = self.ray.get([a.state.remote() for a in self.actors])
            except self.ray.exceptions.RayError:  # one died, and with it what the others did with it
                self.lost += 1
                for a in self.actors:
                    self.ray.kill(a)
                time.sleep(0.1)
                self._start(self.states)
                continue
            self.states, done = states, done + times
            for row in zip(*parts, strict=True):
                found.append({name: sum(x[name] for x in row) / self.count for name in row[0]})
        self.steps = self.states[0]["steps"]
        self.figures += found
        return found

    def processes(self) -> list[int]:
        """The numbers of the workers' processes."""
        return self.ray.get([a.process.remote() for a in self.actors])

    def save(self, path: str | os.PathLike[str]) -> None:
        """A checkpoint with the policy, as of a training alone."""
        about = {name: self.about[name] for name in ("task", "algorithm", "options")}
        with replacing(path) as unfinished:
            torch.save({"about": about, "seconds": 0.0, "learner": self.states[0]}, unfinished)

    def close(self) -> None:
        for a in self.actors:
            self.ray.kill(a)
