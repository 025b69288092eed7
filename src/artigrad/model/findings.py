"""Differences between a robot's file and its simulation, as a printable list of findings."""

from __future__ import annotations

from typing import NamedTuple

SHOWN = 4  # names listed per finding


class Finding(NamedTuple):
    """Feature of a file that is simulated differently or not at all.

    Attributes:
        what: The feature.
        where: Names of the parts that use it.
        effect: The behavior instead.
    """

    what: str
    where: tuple[str, ...]
    effect: str

    def __str__(self) -> str:
        more = f" and {len(self.where) - SHOWN} more" if len(self.where) > SHOWN else ""
        names = ", ".join(f"'{name}'" for name in self.where[:SHOWN]) + more
        return f"{self.what} ({names}): {self.effect}" if self.where else f"{self.what}: {self.effect}"


class Report(tuple[Finding, ...]):
    """Findings, printed one per line."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(f"- {finding}" for finding in self) or "nothing"
