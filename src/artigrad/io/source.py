"""A robot's file as XML: found, readable, well-formed, and of a kind we know. What is not gets one sentence."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import ModelError

KINDS: dict[str, Literal["mjcf", "urdf"]] = {"mujoco": "mjcf", "mujocoinclude": "mjcf", "robot": "urdf"}
HEAD = 4096  # bytes looked at before anything is parsed


@dataclass(frozen=True)
class Source:
    """A description: its XML tree, and where it came from. `path` is None for text given in place of a file."""

    kind: Literal["mjcf", "urdf"]
    root: ET.Element
    path: Path | None
    label: str  # for messages

    @property
    def text(self) -> str:
        return ET.tostring(self.root, encoding="unicode")

    @property
    def name(self) -> str:
        """What the robot is called: by itself, or by its file."""
        own = self.root.get("model") or self.root.get("name")
        return own or (self.path.stem if self.path else "robot")


def open_source(given: str | Path) -> Source:
    """The description behind a path, or in a text that begins with "<"."""
    if isinstance(given, str) and given.lstrip("\ufeff \t\r\n").startswith("<"):
        return _source(_parse(given.lstrip("\ufeff \t\r\n"), "this text"), None, "this text")
    if not isinstance(given, str | Path) or not str(given).strip():
        raise ModelError(f"ag.load takes the path of a robot's file, or its XML as text, not {given!r:.60}")
    path = Path(given).expanduser()
    label = f"'{path}'"
    try:
        if path.is_dir():
            raise ModelError(f"{label} is a folder; name the robot's file in it")
        with path.open("rb") as file:
            _check_head(file.read(HEAD), label)
            file.seek(0)
            data = file.read()
        return _source(_parse(data.strip(b"\0 \t\r\n"), label), path.resolve(), label)
    except FileNotFoundError:
        raise ModelError(f"there is no file {label:.200}; a text in its place begins with '<'") from None
    except (OSError, ValueError) as problem:
        if isinstance(problem, ModelError):
            raise
        raise ModelError(f"{label:.200} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def _check_head(head: bytes, label: str) -> None:
    """Refuse what is not text before a parser reads all of it."""
    if not head.strip():
        raise ModelError(f"{label} is empty")
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))  # UTF-16
    if not wide and not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        kind = "is binary" if b"\0" in head or not head.isascii() else "is no XML"
        raise ModelError(f"{label} {kind}; ag.load reads MJCF (<mujoco>) and URDF (<robot>) files")


def _parse(text: str | bytes, label: str) -> ET.Element:
    try:
        return ET.fromstring(text)
    except ET.ParseError as problem:
        raise ModelError(f"{label} is not well-formed XML: {problem}") from None


def _source(root: ET.Element, path: Path | None, label: str) -> Source:
    kind = KINDS.get(root.tag)
    if kind is None:
        raise ModelError(f"{label} is a <{root.tag}>; ag.load reads MJCF (<mujoco>) and URDF (<robot>) files")
    return Source(kind, root, path, label)
