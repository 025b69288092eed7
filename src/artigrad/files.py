"""Validation of paths, and atomic writing of files: a file is replaced as a whole, or unchanged if writing fails."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError


def as_path(path: object, name: str = "path") -> Path:
    """Return a path given by a user, validated.

    Args:
        path: The path, a str or an os.PathLike of str.
        name: Name of the argument, for errors.
    """
    try:
        given = os.fspath(path)  # type: ignore[call-overload]
    except TypeError:
        given = None
    if not isinstance(given, str):
        raise InputError(f"{name} is the name of a file, a str or a Path, not {type(path).__name__}")
    if not given or "\0" in given:
        raise InputError(f"{name} is the name of a file, not {given!r}")
    return Path(given)


def existing(path: object, name: str = "path") -> Path:
    """Return the path of an existing file."""
    found = as_path(path, name)
    try:
        is_file = found.is_file()
    except OSError:
        is_file = False
    if not is_file:
        raise InputError(f"there is no file '{found}'")
    return found


def to_write(path: object, name: str = "path") -> Path:
    """Return the path of a file to write, whose folder exists."""
    found = as_path(path, name)
    try:
        folder, taken = found.absolute().parent, found.is_dir()
        there = folder.is_dir()
    except OSError as error:
        raise InputError(f"{name} '{found}' cannot be written: {error.strerror}") from None
    if not there:
        raise InputError(f"there is no folder {folder} to save '{found.name}' in: make it first")
    if taken:
        raise InputError(f"{name} '{found}' is a folder: add the name of a file")
    return found


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` when the block ends without an exception.

    The temporary file is in the same folder, so that one rename replaces the target. If the block raises (disk full,
    Ctrl-C), it is removed and `path` is unchanged. Symbolic links and permissions are preserved. A device such as
    /dev/stdout is written directly.
    """
    target = Path(os.path.realpath(to_write(path)))
    if target.exists() and not target.is_file():
        yield target
        return
    unfinished = target.with_name(f".artigrad-{secrets.token_hex(6)}.part")
    try:
        yield unfinished
        if target.exists():
            unfinished.chmod(target.stat().st_mode & 0o7777)
        os.replace(unfinished, target)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_array(path: str | os.PathLike[str], array: np.ndarray) -> None:
    """Write an .npy file atomically."""
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Any], *, compressed: bool = False) -> None:
    """Write arrays by name to an .npz file atomically."""
    save = np.savez_compressed if compressed else np.savez
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        try:
            save(file, allow_pickle=False, **arrays)
        except ValueError as error:  # zipfile raises it if its file could not be written
            raise (error.__context__ if isinstance(error.__context__, OSError) else error) from None
