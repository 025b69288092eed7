"""What one step knows. Every function of the physics takes a Step first, then only what it adds to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from ..compiler import Reals, Table
from ..model.options import Options
from .tables import Bars, Constants, Topology, Workspace


@dataclass(frozen=True, eq=False)
class Step:
    """A step of one robot (or of a pack of them) while it is staged.

    model: integers of the model. const: what a step reads of Params. options: the method. dt: of the step; damping_dt: over
    which damping acts in the factor of the mass matrix; slows: what the integrator takes at the end of the step (`rates`).
    q, v, act, u: state (act: of models with activations) and control. ws: scratch. wrench: on bodies, if there are any.
    constraints: rows of contacts, limits and the like, for a model that can have some. lines: what of lines (`lines`) the model
    has; extras: forces that not every model has (`Model.extras`).

    Backwards: bars, where cotangents are added; v_next, the velocities the step led to; filled, whether ws holds what the
    adjoint reads of this step already.
    """

    model: Topology
    const: Constants
    options: Options
    dt: Any
    damping_dt: Any
    implicit_terms: str | None
    ws: Workspace
    q: Reals
    v: Reals
    u: Reals
    wrench: Reals | None = None
    act: Reals = None  # type: ignore[assignment]
    constraints: Any = None  # ContactProblem or SoftProblem, of models that can have rows
    lines: frozenset[str] = frozenset()
    extras: frozenset[str] = frozenset()
    bars: Bars = None  # type: ignore[assignment]  # of steps that are differentiated
    v_next: Reals = None  # type: ignore[assignment]
    filled: bool = False

    def at(self, **changes: Any) -> Self:
        """The same step with something in another place: another state, another place for cotangents."""
        return replace(self, **changes)

    @property
    def state(self) -> list[tuple[str, Reals, Any]]:
        """The parts of the state: name, where it is, size."""
        parts = [("q", self.q, self.model.nq), ("v", self.v, self.model.nv)]
        return [*parts, ("act", self.act, self.model.na)] if "activation" in self.extras else parts

    @property
    def state_bars(self) -> list[tuple[str, Reals, Any]]:
        """The same of their cotangents."""
        return [(name, getattr(self.bars, name), n) for name, _, n in self.state]

    @property
    def link(self) -> Table:
        """Rows of links: poses, velocities, forces."""
        return self.ws.link

    @property
    def dof(self) -> Table:
        """Rows of degrees of freedom: axes and the factor."""
        return self.ws.dof

    @property
    def field(self) -> Table:
        """Rows of links, backwards: cotangents of poses, and another field of motions."""
        return self.ws.field

    @property
    def tree(self) -> Table:
        """Rows of trees, backwards: cotangents of their origins."""
        return self.ws.tree
