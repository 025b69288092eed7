"""Robot files as XML: existence, encoding, well-formedness and type. Each problem raises a one-sentence error."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import ModelError

KINDS: dict[str, Literal["mjcf", "urdf"]] = {"mujoco": "mjcf", "mujocoinclude": "mjcf", "robot": "urdf"}
HEAD = 4096  # bytes checked before parsing
WIDE = (b"\xff\xfe", b"\xfe\xff")  # UTF-16
DECLARATION = re.compile(rb"""\s*(?:\xef\xbb\xbf)?<\?xml[^>]*encoding\s*=\s*["']([^"']+)["']""")


@dataclass(frozen=True)
class Source:
    """A description: its XML tree, and its origin. `path` is None for text given in place of a file."""

    kind: Literal["mjcf", "urdf"]
    root: ET.Element
    path: Path | None
    label: str  # for messages
    utf8: bool = True  # True if other programs can read the file unchanged

    @property
    def text(self) -> str:
        try:
            return ET.tostring(self.root, encoding="unicode")
        except RecursionError:
            raise ModelError(f"{self.label} has elements within elements too deep to be read") from None

    @property
    def name(self) -> str:
        """Name of the robot, given by itself or by its file."""
        own = self.root.get("model") or self.root.get("name")
        return own or (self.path.stem if self.path else "robot")


def open_source(given: str | Path) -> Source:
    """Return the description at a path, or in a text that begins with "<"."""
    if isinstance(given, str) and given.lstrip("\ufeff \t\r\n").startswith("<"):
        return _source(_parse(given.lstrip("\ufeff \t\r\n"), "this text"), None, "this text")
    if not isinstance(given, str | Path) or not str(given).strip():
        raise ModelError(f"ag.load takes the path of a robot's file, or its XML as text, not {given!r:.60}")
    path = Path(given).expanduser()
    label = f"'{' '.join(str(path).split())[:200]}'"
    try:
        if path.is_dir():
            raise ModelError(f"{label} is a folder; name the robot's file in it")
        if path.exists() and not path.is_file():
            raise ModelError(f"{label} is a pipe or a device, not a file")
        data = path.read_bytes()
        _check_head(data[:HEAD], label)
        return _source(_parse(_decoded(data, label), label), path.resolve(), label, _is_utf8(data))
    except FileNotFoundError:
        raise ModelError(f"there is no file {label}; a text in its place begins with '<'") from None
    except (OSError, ValueError) as problem:
        if isinstance(problem, ModelError):
            raise
        raise ModelError(f"{label} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not data.startswith(WIDE)


def _decoded(data: bytes, label: str) -> str:
    """Return the text of a file, decoded by its byte order mark or declaration, else as UTF-8, else as Latin-1.

    The declaration is removed, since it no longer applies.
    """
    declared = DECLARATION.match(data)
    name = "utf-16" if data.startswith(WIDE) else declared[1].decode("ascii", "replace") if declared else "utf-8-sig"
    try:
        text = data.decode(name)
    except LookupError:
        raise ModelError(f"{label} is in an unknown encoding, '{name}': save it as UTF-8") from None
    except UnicodeDecodeError as problem:
        if declared or name == "utf-16":
            raise ModelError(f"{label} is not in its declared encoding, '{name}': {problem.reason}") from None
        text = data.decode("latin-1")
    return re.sub(r"^\s*<\?xml.*?\?>", "", text.strip("\ufeff\0 \t\r\n"), count=1, flags=re.DOTALL)


def _check_head(head: bytes, label: str) -> None:
    """Refuse files that are not text before a parser reads all of them."""
    if not head.strip():
        raise ModelError(f"{label} is empty")
    if not head.startswith(WIDE) and not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        kind = "is binary" if b"\0" in head or not head.isascii() else "is no XML"
        raise ModelError(f"{label} {kind}; ag.load reads MJCF (<mujoco>) and URDF (<robot>) files")


def _parse(text: str, label: str) -> ET.Element:
    try:
        return ET.fromstring(text)
    except ET.ParseError as problem:
        if "unbound prefix" in str(problem):
            with suppress(ET.ParseError):
                return ET.fromstring(_declared(text))
        raise ModelError(f"{label} is not well-formed XML: {problem}") from None


def _declared(text: str) -> str:
    """Declare the prefixes of names in the first element: extensions of other programs, which are skipped."""
    prefixes = sorted(set(re.findall(r"(?:</?|\s)([A-Za-z_][\w.-]*):[\w.-]+", text)) - {"xml", "xmlns"})
    known = set(re.findall(r"xmlns:([\w.-]+)", text))
    names = "".join(f' xmlns:{prefix}="{prefix}"' for prefix in prefixes if prefix not in known)
    return re.sub(r"<(robot|mujoco)\b", rf"<\1{names}", text, count=1)


def _source(root: ET.Element, path: Path | None, label: str, utf8: bool = True) -> Source:
    if root.tag.startswith("{"):  # a namespace for all unprefixed elements
        own = root.tag[: root.tag.index("}") + 1]
        for element in root.iter():
            element.tag = element.tag.removeprefix(own)
    kind = KINDS.get(root.tag)
    if kind is None:
        raise ModelError(f"{label} is a <{root.tag}>; ag.load reads MJCF (<mujoco>) and URDF (<robot>) files")
    return Source(kind, root, path, label, utf8)
