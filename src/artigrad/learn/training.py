"""Training from beginning to end: updates, progress, logs, checkpoints that a run goes on from."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from ..envs import TASKS, EnvTask
from ..errors import InputError, need
from ..files import as_path, replacing, write_text
from ..model.model import Model
from .bptt import Bptt
from .learner import Learner, Together
from .mbpo import Mbpo, SampleEnhancement
from .policy_enhancement import PolicyEnhancement
from .ppo import Ppo
from .sac import Sac
from .shac import Shac
from .sql import Sql
from .tuned import OPTIONS, TUNED

ALGORITHMS: dict[str, type[Learner]] = {
    "shac": Shac,
    "ppo": Ppo,
    "bptt": Bptt,
    "sac": Sac,
    "policy-enhancement": PolicyEnhancement,
    "mbpo": Mbpo,
    "sample-enhancement": SampleEnhancement,
    "sql": Sql,
}


class Training:
    """A learner and where its run is kept: `progress.csv`, `checkpoint.pt`, and TensorBoard's file if asked for.

    task: a name of `artigrad.envs.TASKS` with its `options`, or an `EnvTask` of your own. settings: fields of the
    algorithm's settings; those that are not told are what is known to work for the task, in `learn/tuned.py`, or else the
    algorithm's own. model: the robot, where its file is not at hand. workers: this process among those that train one policy
    (`learn.many.Share`). A training continues from the checkpoint in its folder. A checkpoint of
    another task, algorithm or seed, or with other settings, is an error.
    """

    def __init__(
        self,
        task: str | EnvTask,
        algorithm: str = "shac",
        folder: str | os.PathLike[str] | None = None,
        *,
        device: str = "cpu",
        threads: int | None = None,
        tensorboard: bool = False,
        options: dict[str, Any] | None = None,
        model: Model | None = None,
        workers: Together | None = None,
        **settings: Any,
    ):
        algorithm = named(algorithm, ALGORITHMS, "algorithms")
        if isinstance(task, str):
            task = name = named(task, TASKS, "tasks")
            options = OPTIONS.get(name, {}) | (options or {})
        else:
            name, options = name_of(type(task)), options or {}
        self.about: dict[str, Any] = {"task": name, "algorithm": algorithm, "options": options}
        kind = ALGORITHMS[algorithm]
        known = [field.name for field in fields(kind.Settings)]
        for told in settings:
            named(told, known, f"settings of {algorithm}")
        robot = {} if model is None else {"model": model}
        how: dict[str, Any] = {"device": device, "threads": threads, "workers": workers, **options, **robot}
        settings = TUNED.get((name, algorithm), {}) | settings
        self.learner = kind(task, kind.Settings(**settings), **how)
        self.seconds = 0.0
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.checkpoint.exists():
                self._take_up(read_checkpoint(self.checkpoint))
        self.board: Any = None
        if tensorboard:
            if self.folder is None:
                raise InputError("tensorboard writes into the folder of a run: pass folder=")
            need("tensorboard", "a log for TensorBoard needs it", "learn")
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(self.folder))

    @property
    def checkpoint(self) -> Path:
        assert self.folder is not None
        return self.folder / "checkpoint.pt"

    @property
    def _progress(self) -> Path:
        assert self.folder is not None
        return self.folder / "progress.csv"

    def _take_up(self, saved: dict[str, Any]) -> None:
        if saved["about"] != self.about:
            raise InputError(f"{self.folder} holds another training, {saved['about']}: choose another folder")
        ours, its = (_comparable(x) for x in (asdict(self.learner.settings), saved["learner"]["settings"]))
        if other := [name for name in sorted({*ours, *its}) if ours.get(name) != its.get(name)]:
            differing = ", ".join(f"{name}={its.get(name)!r} and not {ours.get(name)!r}" for name in other)
            raise InputError(
                f"{self.folder} holds a training with {differing}: give it the same settings, or choose another folder"
            )
        self.learner.load_state_dict(saved["learner"])
        self.seconds = saved["seconds"]
        self._forget_later_rows()

    def _forget_later_rows(self) -> None:
        """Rows of `progress.csv` that were written after the checkpoint are done again, and written again."""
        path = self._progress
        if path.exists():
            head, *rows = path.read_text().splitlines(keepends=True)
            at = next(csv.reader([head])).index("steps")
            kept = [row for row in rows if row.endswith("\n") and float(row.split(",")[at]) <= self.learner.steps]
            write_text(path, "".join([head, *kept]))

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """All that is needed to go on, and to play the policy. A run that is stopped while writing keeps the one before."""
        path = self.checkpoint if path is None else as_path(path)
        whole = {"about": self.about, "seconds": self.seconds, "learner": self.learner.state_dict()}
        with replacing(path) as unfinished:
            torch.save(whole, unfinished)

    def run(
        self,
        steps: int | None = None,
        *,
        seconds: float | None = None,
        watch: Callable[[dict[str, float]], None] | None = None,
        every: float = 30.0,
    ) -> dict[str, float]:
        """Updates until so many steps of the environment or seconds are reached, those of earlier runs included. watch: called
        with the figures after each. every: seconds between two checkpoints. The last figures."""
        if steps is None and seconds is None:
            raise InputError("pass steps= or seconds=, or nothing ends the training")
        found: dict[str, float] = {}
        began, saved = time.perf_counter() - self.seconds, time.perf_counter()
        while (steps is None or self.learner.steps < steps) and (seconds is None or self.seconds < seconds):
            figures = self.learner.update()
            self.learner.follow()
            self.learner.check()
            self.seconds = time.perf_counter() - began
            found = {"steps": float(self.learner.steps), "seconds": self.seconds, **figures}
            self._log(found)
            if watch is not None:
                watch(found)
            if self.folder is not None and time.perf_counter() - saved > every:
                self.save()
                saved = time.perf_counter()
        if self.folder is not None:
            self.save()
        return found

    def _log(self, found: dict[str, float]) -> None:
        if self.folder is None:
            return
        path = self._progress
        fresh = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(found))
            if fresh:
                writer.writeheader()
            writer.writerow(found)
        if self.board is not None:
            for name, value in found.items():
                self.board.add_scalar(name, value, int(found["steps"]))


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the contents of a checkpoint that `Training.save` or `Workers.save` wrote."""
    try:
        saved = torch.load(path, weights_only=True, map_location="cpu")
        found = {"about", "seconds", "learner"} <= set(saved) and {"settings", "parts"} <= set(saved["learner"])
    except (OSError, RuntimeError, ValueError, EOFError, KeyError, TypeError, UnpicklingError):
        found = False
    if not found:
        raise InputError(f"{path} is not the checkpoint of a training, or a damaged one: pass another, or remove it")
    return dict(saved)


def _comparable(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with lists as tuples, so that they compare equal."""
    return {name: tuple(x) if isinstance(x, list) else x for name, x in settings.items()}


def name_of(kind: type[EnvTask]) -> str:
    """What a kind of task is called; with its module, where one of `TASKS` has the same name."""
    name = kind.__name__
    return name if TASKS.get(name, kind) is kind else f"{kind.__module__}.{name}"


def named(name: str, known: Any, what: str) -> str:
    """A name that is known, however it is spelt."""
    for one in known:
        if str(one).lower() == name.lower():
            return str(one)
    raise InputError(f"{what} are {', '.join(map(str, known))}; not '{name}'")
