"""Optional packages of the viewer, imported on demand."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str) -> Any:
    """Import a module; the error for a missing one gives the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"this needs {module.split('.')[0]}, which is not here: pip install 'artigrad[view]'"
        ) from error
