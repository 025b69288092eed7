"""What of a robot's file is not simulated as it says: one finding a line, for people to read."""

from __future__ import annotations

from typing import NamedTuple

SHOWN = 4  # names written out per finding


class Finding(NamedTuple):
    """what: the feature of the file. where: the names of the parts that use it. effect: what happens instead."""

    what: str
    where: tuple[str, ...]
    effect: str

    def __str__(self) -> str:
        more = f" and {len(self.where) - SHOWN} more" if len(self.where) > SHOWN else ""
        names = ", ".join(f"'{name}'" for name in self.where[:SHOWN]) + more
        return f"{self.what} ({names}): {self.effect}" if self.where else f"{self.what}: {self.effect}"


class Report(tuple[Finding, ...]):
    """Findings, printed one a line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(f"- {finding}" for finding in self) or "nothing"
