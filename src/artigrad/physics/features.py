"""Features of a model: the parts of the physics that its kernels are compiled with. All others are not staged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Features:
    """Features that a kernel is compiled for.

    Attributes:
        names: Forces and transmissions (`Model.features`), kinds of constraint rows (`Law.features`), and properties of
            parameters (`Params.features`).
        routines: Collision routines of the pairs of shapes (`candidates.routines_of`).
        solids: Kinds of solids in pairs of a general routine (`candidates.solids_of`).
    """

    names: frozenset[str] = frozenset()
    routines: frozenset[int] = frozenset()
    solids: frozenset[int] = frozenset()

    def has(self, *names: str) -> bool:
        """Return whether there is any of these."""
        return not self.names.isdisjoint(names)


NO_FEATURES = Features()
