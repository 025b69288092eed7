"""User-defined tasks on the command line: a class in a Python file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..envs import EnvTask


def open_task(text: str) -> str | EnvTask:
    """Return a task for `Training`.

    Args:
      text: Name in `artigrad.envs.TASKS`, which is returned; FILE.py:NAME for NAME() of that file; or FILE.py for its only
        EnvTask.
    """
    file, _, name = text.partition(":")
    if not file.endswith(".py"):
        return text
    from ..envs import EnvTask

    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise InputError(f"there is no file {file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tasks = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, EnvTask) and value.__module__ == module.__name__
    ]
    if not name and len(tasks) != 1:
        raise InputError(f"{file} has {len(tasks)} tasks: name one, as {file}:{(tasks or ['MyTask'])[0]}")
    if name and not hasattr(module, name):
        raise InputError(f"{file} has no '{name}'; its tasks are {', '.join(tasks) or 'none'}")
    task = getattr(module, name or tasks[0])()
    if not isinstance(task, EnvTask):
        raise InputError(f"{text} makes a {type(task).__name__}, not an artigrad.envs.EnvTask")
    return task
