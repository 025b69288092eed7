"""Experiment: base class of experiments with more than one minimization, such as training networks from several seeds. One
file each; they can be interrupted and resumed."""

from __future__ import annotations

import json
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from artigrad import __version__
from artigrad.errors import need
from artigrad.files import replacing, write_text

Watch = Callable[[int, int, str], None]  # iterations done, total, and a text


@dataclass
class RunOptions:
    """Options of a run of an experiment.

    Attributes:
      folder: Folder of the results.
      seeds: Number of seeds.
      iterations: Iterations of a training; None: the experiment's default.
      seconds: Time limit of trainings, s; their state is saved.
      resume: Continue from saved states.
      device: "cpu" or "cuda".
      watch: Called after every iteration.
      first_seed: First seed.
    """

    folder: Path
    seeds: int = 5
    iterations: int | None = None
    seconds: float = float("inf")
    resume: bool = False
    device: str = "cpu"
    watch: Watch = field(default=lambda done, total, text: None)
    first_seed: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def each_seed(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() - self.began > self.seconds


class Experiment(ABC):
    """An experiment.

    Attributes:
      name: Name on the command line.
      summary: One line.
    """

    name: str
    summary: str
    torch = True  # needs PyTorch

    @abstractmethod
    def run(self, how: RunOptions) -> dict[str, Any]:
        """Run the experiment and return its results by name."""

    @abstractmethod
    def draw(self, numbers: dict[str, Any], folder: Path) -> list[Path]:
        """Write figures and videos of the results."""

    def __call__(self, how: RunOptions) -> tuple[dict[str, Any], list[Path]]:
        """Run the experiment and write results and figures."""
        if self.torch:
            need("torch", f"the experiment '{self.name}' needs PyTorch", "torch")
        how.folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        numbers = {"experiment": self.name, "summary": self.summary, "seeds": how.seeds, **self.run(how)}
        numbers["seconds"] = round(time.monotonic() - began, 1)
        numbers |= {"device": how.device, "artigrad": __version__, "python": platform.python_version()}
        file = how.folder / "result.json"
        write_text(file, json.dumps(numbers, indent=2) + "\n")
        return numbers, [file, *self.draw(numbers, how.folder)]


class Resumable:
    """Iterations of a training whose modules and recorded metrics are saved in a file."""

    def __init__(self, how: RunOptions, name: str, parts: dict[str, Any]):
        self.how, self.parts, self.file = how, parts, how.folder / f"{name}.pt"
        self.record: list[list[float]] = []
        if how.resume and self.file.exists():
            import torch

            kept = torch.load(self.file, map_location=how.device, weights_only=True)
            self.record = kept.pop("record")
            for key, state in kept.items():
                parts[key].load_state_dict(state)

    def iterations(self, total: int) -> Iterator[int]:
        """Yield the indices of the remaining iterations, until the time limit."""
        total = total if self.how.iterations is None else self.how.iterations
        saved = time.monotonic()
        while len(self.record) < total and not self.how.out_of_time:
            before = len(self.record)
            yield before
            if len(self.record) != before + 1:
                raise RuntimeError("an iteration adds one row to the record")
            if time.monotonic() - saved > 60:
                self.save()
                saved = time.monotonic()
        self.save()

    def note(self, text: str, *numbers: Any) -> None:
        """Record the metrics of one iteration, with a text for the progress bar."""
        self.record.append([float(x) for x in np.ravel(np.concatenate([np.ravel(n) for n in numbers]))])
        self.how.watch(len(self.record), self.how.iterations or 0, text)

    def save(self) -> None:
        import torch

        kept = {key: part.state_dict() for key, part in self.parts.items()}
        with replacing(self.file) as unfinished:
            torch.save(kept | {"record": self.record}, unfinished)


def save_video(traj: Any, folder: Path, name: str = "motion", **options: Any) -> list[Path]:
    """A trajectory as a page and, where Pillow is installed, as a GIF."""
    files = [folder / f"{name}.html"]
    traj.save(files[0])
    try:
        traj.save(folder / f"{name}.gif", **({"size": (480, 300), "fps": 12} | options))
    except ImportError:
        return files
    return [*files, folder / f"{name}.gif"]
