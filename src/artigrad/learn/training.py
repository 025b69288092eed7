"""Training: a learner with its updates, progress file, logs and checkpoints."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from ..arguments import check_fields, checked, shown
from ..deprecation import renamed_arguments, translate
from ..envs import TASKS, EnvTask
from ..errors import InputError, need
from ..files import as_path, replacing, write_text
from ..model.model import Model
from .bptt import Bptt
from .learner import Learner, ProcessGroup
from .mbpo import Mbpo, SampleEnhancement
from .policy_enhancement import PolicyEnhancement
from .ppo import Ppo
from .presets import PRESETS, TASK_OPTIONS
from .sac import Sac
from .shac import Shac
from .sql import Sql

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
    """A learner and the folder of its run, with `progress.csv`, `checkpoint.pt` and TensorBoard's log.

    A training continues from the checkpoint in its folder. A checkpoint of another task, algorithm or seed, or with other
    settings, is an error.

    Args:
      task: Name in `artigrad.envs.TASKS`, or an EnvTask.
      algorithm: Name in `ALGORITHMS`.
      folder: Folder of the run; None: nothing is written.
      device: "cpu" or "cuda".
      threads: Number of CPU threads of the simulator; None: all cores.
      tensorboard: Write a log for TensorBoard.
      options: Options of a task given by name.
      model: Robot in place of the task's file.
      process_group: Processes that train one policy together, see `learn.distributed`; None: this one alone.
      settings: Settings of the algorithm. Defaults are those of `learn/presets.py` for the task, then the algorithm's.

    Attributes:
      learner: The Learner.
      seconds: Wall-clock time of all updates so far.
    """

    @renamed_arguments(workers="process_group")
    @checked
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
        process_group: ProcessGroup | None = None,
        **settings: Any,
    ):
        algorithm = match_name(algorithm, ALGORITHMS, "algorithms")
        if not all(isinstance(option, str) for option in options or {}):
            raise InputError(f"options are given by name, not {shown(options)}")
        if isinstance(task, str):
            task = name = match_name(task, TASKS, "tasks")
            options = TASK_OPTIONS.get(name, {}) | (options or {})
        else:
            name, options = task_name(type(task)), options or {}
        given = task if isinstance(task, EnvTask) else None
        self.about: dict[str, Any] = {"task": name, "algorithm": algorithm, "options": options}
        if given is not None:
            self.about["attributes"] = simple_attributes(given)
        kind = ALGORITHMS[algorithm]
        settings = translate(settings, kind.Settings._renamed, kind.Settings.__name__)  # type: ignore[attr-defined]
        known = [field.name for field in fields(kind.Settings)]
        for setting in settings:
            match_name(setting, known, f"settings of {algorithm}")
        robot: dict[str, Any] = {} if model is None else {"model": model}
        arguments: dict[str, Any] = {"device": device, "threads": threads, "process_group": process_group}
        settings = PRESETS.get((name, algorithm), {}) | settings
        chosen = kind.Settings(**settings)
        check_fields(chosen)
        self.learner = kind(task, chosen, **arguments, **options, **robot)
        self.seconds = 0.0
        self.folder = None if folder is None else as_path(folder, "folder")
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.checkpoint.exists():
                self._resume(read_checkpoint(self.checkpoint))
        self.board: Any = None
        if tensorboard:
            if self.folder is None:
                raise InputError("tensorboard writes into the folder of a run: pass folder=")
            need("tensorboard", "a log for TensorBoard needs it", "learn")
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(str(self.folder))

    @property
    def checkpoint(self) -> Path:
        """Path of the checkpoint."""
        assert self.folder is not None
        return self.folder / "checkpoint.pt"

    @property
    def _progress(self) -> Path:
        assert self.folder is not None
        return self.folder / "progress.csv"

    def _resume(self, saved: dict[str, Any]) -> None:
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
        self._drop_later_rows()

    def _drop_later_rows(self) -> None:
        """Remove rows of `progress.csv` after the checkpoint; their updates are repeated."""
        path = self._progress
        if path.exists():
            head, *rows = path.read_text().splitlines(keepends=True)
            at = next(csv.reader([head])).index("steps")
            kept = [row for row in rows if row.endswith("\n") and float(row.split(",")[at]) <= self.learner.steps]
            write_text(path, "".join([head, *kept]))

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write a checkpoint. An interruption while writing keeps the previous one."""
        if path is None and self.folder is None:
            raise InputError("this training has no folder: pass the path of the file to save")
        path = self.checkpoint if path is None else as_path(path)
        contents = {"about": self.about, "seconds": self.seconds, "learner": self.learner.state_dict()}
        with replacing(path) as unfinished:
            torch.save(contents, unfinished)

    @checked
    def run(
        self,
        steps: int | None = None,
        *,
        seconds: float | None = None,
        watch: Callable[[dict[str, float]], None] | None = None,
        every: float = 30.0,
    ) -> dict[str, float]:
        """Update until a number of environment steps or seconds is reached, with those of earlier runs.

        Args:
          steps: Environment steps; None: no limit.
          seconds: Wall-clock time, s; None: no limit.
          watch: Called with the metrics after each update.
          every: Time between two checkpoints, s.

        Returns:
          The metrics of the last update.
        """
        if steps is None and seconds is None:
            raise InputError("pass steps= or seconds=, or nothing ends the training")
        metrics: dict[str, float] = {}
        began, saved = time.perf_counter() - self.seconds, time.perf_counter()
        while (steps is None or self.learner.steps < steps) and (seconds is None or self.seconds < seconds):
            update = self.learner.update()
            self.learner.update_ema()
            self.learner.check_finite()
            self.seconds = time.perf_counter() - began
            metrics = {"steps": float(self.learner.steps), "seconds": self.seconds, **update}
            self._log(metrics)
            if watch is not None:
                watch(metrics)
            if self.folder is not None and time.perf_counter() - saved > every:
                self.save()
                saved = time.perf_counter()
        if self.folder is not None:
            self.save()
        return metrics

    def _log(self, metrics: dict[str, float]) -> None:
        if self.folder is None:
            return
        path = self._progress
        fresh = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(metrics))
            if fresh:
                writer.writeheader()
            writer.writerow(metrics)
        if self.board is not None:
            for name, value in metrics.items():
                self.board.add_scalar(name, value, int(metrics["steps"]))


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the contents of a checkpoint that `Training.save` or `Workers.save` wrote."""
    try:
        saved = torch.load(path, weights_only=True, map_location="cpu")
        found = {"about", "seconds", "learner"} <= set(saved) and {"settings", "modules"} <= set(saved["learner"])
    except Exception:  # whatever the unpickler meets among damaged bytes
        found = False
    if not found:
        raise InputError(
            f"{path} is not the checkpoint of a training, or a damaged one or one of an earlier version: pass another, "
            "or remove it"
        )
    return dict(saved)


def _comparable(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with lists as tuples, so that they compare equal."""
    return {name: tuple(x) if isinstance(x, list) else x for name, x in settings.items()}


def simple_attributes(task: EnvTask) -> dict[str, Any]:
    """Return the numbers, names and truths among the attributes of a task, which distinguish it from others of its class."""
    kinds = (bool, int, float, str)
    found = {**vars(task), **task.options}
    return {name: x for name, x in sorted(found.items()) if isinstance(x, kinds)} | {"frame_skip": task.frame_skip}


def task_name(kind: type[EnvTask]) -> str:
    """Return the name of a task class, with its module if another one in `TASKS` has the same name."""
    name = kind.__name__
    return name if TASKS.get(name, kind) is kind else f"{kind.__module__}.{name}"


def match_name(name: str, known: Any, what: str) -> str:
    """Return the known name that equals `name` up to case."""
    for one in known:
        if str(one).lower() == name.lower():
            return str(one)
    raise InputError(f"{what} are {', '.join(map(str, known))}; not '{name}'")
