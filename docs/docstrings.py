"""Docstrings on the site. Sections in Google's style are left to mkdocstrings. In other docstrings, "name: meaning" explains an
argument or a field; here each such name begins an item of a list."""

import re
from typing import Any

import griffe

SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields|Examples):\n")
# an entry of a section for several names, "position, rotation: Pose.", with its further lines
GROUP = re.compile(r"^( +)(\w+(?:, \w+)+):( .*(?:\n\1 +\S.*)*)", re.MULTILINE)


class Names(griffe.Extension):
    """Changes the text of docstrings of functions and classes as they are read."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        _itemise(func, {p.name for p in func.parameters})

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        init = cls.members.get("__init__")
        names = set(_fields(cls))
        if isinstance(init, griffe.Function):
            names |= {p.name for p in init.parameters}
        _itemise(cls, names)
        if cls.docstring and any(str(base) == "NamedTuple" or str(base).endswith("Fields") for base in cls.bases):
            fields = [f"`{name}`" for name in _fields(cls)]
            cls.docstring.value += f"\n\nA named tuple of {', '.join(fields)}."


def _fields(cls: griffe.Class) -> list[str]:
    """Attributes of a class, and those of the named tuple it is made of."""
    tuples = [cls.parent.members[str(base)] for base in cls.bases if str(base).endswith("Fields") and cls.parent]
    return [name for c in (*tuples, cls) for name, member in c.members.items() if member.is_attribute]


def _itemise(thing: griffe.Function | griffe.Class, names: set[str]) -> None:
    if thing.docstring is None:
        return
    if not names:
        thing.docstring.value = GROUP.sub(_separate, thing.docstring.value)
        return
    word = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    one = rf"(?:{word})(?:\s+\([^)]*\))?"  # "v (..., nv)" too
    group = rf"{one}(?:(?:,|\s+and)\s+{one})*"
    start = re.compile(rf"(?:^|(?<=[.;])\s+|\n)\s*({group}):\s", re.MULTILINE)
    paragraphs = []
    for paragraph in thing.docstring.value.split("\n\n"):
        if paragraph.startswith("    ") or SECTION.match(paragraph):  # code, or a section
            paragraphs.append(GROUP.sub(_separate, paragraph))
            continue
        first, *items = _pieces(start, paragraph)
        paragraphs += [part for part in (first, "\n".join(items)) if part.strip()]
    thing.docstring.value = "\n\n".join(paragraphs).replace("_*", r"_\*")  # "body_*" is no emphasis


def _separate(entry: re.Match[str]) -> str:
    """An entry for each name, with the same text."""
    return "\n".join(f"{entry[1]}{name}:{entry[3]}" for name in entry[2].split(", "))


def _pieces(start: re.Pattern[str], text: str) -> list[str]:
    """What stands before the first name, and one item per name."""
    found = list(start.finditer(text))
    starts = [*(m.start() for m in found), len(text)]
    pieces = [text[: starts[0]].rstrip().rstrip(";")]
    for m, end in zip(found, starts[1:], strict=True):
        meaning = " ".join(text[m.end() : end].split()).rstrip(";")
        pieces.append(f"- **`{' '.join(m[1].split())}`**: {meaning}")
    return pieces
