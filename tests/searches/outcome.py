"""Result of a random search, and one part of a search that runs in several processes."""

import importlib
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """Counts and findings of a search.

    Attributes:
        counts: Number of cases per outcome, for instance {"equal to MuJoCo": 990, "MuJoCo itself is unstable": 10}.
        findings: One text per failed case, enough to repeat it (seed, index, numbers).
    """

    counts: Counter = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """Add the cases of another search of the same kind."""
        self.counts.update(other.counts)
        self.findings.extend(other.findings)


def run(name, count, seed):
    """Run one part of a search. In this module because a spawned process cannot import `__main__`."""
    return importlib.import_module(f"{__package__}.{name}").search(count, seed)
