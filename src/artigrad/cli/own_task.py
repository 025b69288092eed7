"""A task named on the command line: one of artigrad's, or a class in a file of the user's."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..envs import EnvTask


def open_task(text: str) -> str | EnvTask:
    """A name of `artigrad.envs.TASKS` as it is; of FILE.py:NAME the task that is made by calling NAME there without arguments,
    of FILE.py that of the only `EnvTask` in it."""
    file, _, name = text.partition(":")
    if not file.endswith(".py"):
        return text
    from ..envs import EnvTask

    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise InputError(f"there is no file {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    own = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, EnvTask) and value.__module__ == module.__name__
    ]
    if not name and len(own) != 1:
        raise InputError(f"{file} has {len(own)} tasks: name one, as {file}:{(own or ['MyTask'])[0]}")
    if name and not hasattr(module, name):
        raise InputError(f"{file} has no '{name}'; its tasks are {', '.join(own) or 'none'}")
    task = getattr(module, name or own[0])()
    if not isinstance(task, EnvTask):
        raise InputError(f"{text} makes a {type(task).__name__}, not an artigrad.envs.EnvTask")
    return task
