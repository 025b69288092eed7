"""The disk cache of compiled code. Safe against two processes at once and against a damaged file.

`ARTIGRAD_CACHE` names another folder; `ARTIGRAD_CACHE=off` keeps everything in memory.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from ..errors import InputError
from ..files import replacing


def folder() -> Path | None:
    """Folder of the compiled code, or None."""
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
    """The stored bytes, or None if there are none or they are not what was written under this key."""
    if where is None:
        return None
    try:
        data = (where / key).read_bytes()
    except OSError:
        return None
    digest, payload = data[:32], data[32:]
    return payload if payload and _digest(key, payload) == digest else None


def _digest(key: str, payload: bytes) -> bytes:
    """Digest of the bytes and of their key, so that code stored under another key, or renamed, is never run."""
    return hashlib.sha256(key.encode() + payload).digest()


def write(where: Path | None, key: str, payload: bytes) -> None:
    """Store the bytes, whole or not at all. A folder that cannot be written is no error."""
    if where is None:
        return
    with suppress(OSError, InputError):
        where.mkdir(parents=True, exist_ok=True)
        with replacing(where / key) as unfinished:
            unfinished.write_bytes(_digest(key, payload) + payload)
