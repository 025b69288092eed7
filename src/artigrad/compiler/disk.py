"""Disk cache of compiled code, safe for concurrent processes and against damaged files.

`ARTIGRAD_CACHE` sets the folder; `ARTIGRAD_CACHE=off` keeps code in memory only. Above LIMIT the least recently used files
are removed.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from ..errors import InputError
from ..files import replacing

LIMIT = 2_000_000_000  # bytes
DIGITS = set("0123456789abcdef")


def folder() -> Path | None:
    """Return the folder of compiled code, or None."""
    chosen = os.environ.get("ARTIGRAD_CACHE")
    if chosen == "off":
        return None
    try:
        if chosen:
            return Path(chosen).expanduser()
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "artigrad"
    except RuntimeError:  # the home folder is unknown
        return None


def read(where: Path | None, key: str) -> bytes | None:
    """Return the stored bytes; None if there are none or they are damaged."""
    if where is None:
        return None
    try:
        data = (where / key).read_bytes()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(where / key)  # in use: removed last
    digest, payload = data[:32], data[32:]
    return payload if payload and _digest(key, payload) == digest else None


def _digest(key: str, payload: bytes) -> bytes:
    """Return a digest of the bytes and their key, so that code stored under another key is never run."""
    return hashlib.sha256(key.encode() + payload).digest()


def write(where: Path | None, key: str, payload: bytes) -> None:
    """Store bytes atomically. Failures are ignored."""
    if where is None:
        return
    with suppress(OSError, InputError):
        where.mkdir(parents=True, exist_ok=True)
        with replacing(where / key) as unfinished:
            unfinished.write_bytes(_digest(key, payload) + payload)
        _remove_oldest(where)


def _files(where: Path) -> list[tuple[float, int, Path]]:
    """Return time of last use, size and path of all compiled code in a folder; other files are ignored."""
    found = []
    with suppress(OSError), os.scandir(where) as entries:
        for entry in entries:
            if len(entry.name) >= 32 and set(entry.name) <= DIGITS:
                with suppress(OSError):
                    about = entry.stat()
                    found.append((about.st_mtime, about.st_size, Path(entry.path)))
    return found


def _remove_oldest(where: Path) -> None:
    """Remove least recently used files until the size is 10 % below LIMIT, if it is above."""
    found = _files(where)
    left = sum(size for _, size, _ in found)
    if left <= LIMIT:
        return
    for _, size, path in sorted(found):
        with suppress(OSError):
            path.unlink()
        left -= size
        if left <= 0.9 * LIMIT:
            return


def usage(where: Path) -> tuple[int, int]:
    """Return the number of files of compiled code in a folder and their size in bytes."""
    found = _files(where)
    return len(found), sum(size for _, size, _ in found)


def clear(where: Path) -> None:
    """Remove all compiled code from a folder."""
    for _, _, path in _files(where):
        with suppress(OSError):
            path.unlink()
