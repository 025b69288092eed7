"""Step: inputs, constants, workspace and cotangent buffers of one simulation step; the first argument of every physics
function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from ..compiler import Reals, Table
from ..model.options import Options
from .features import NO_FEATURES, Features
from .tables import Bars, Constants, Topology, Workspace


@dataclass(frozen=True, eq=False)
class Step:
    """A step of one robot, or of one per SIMD lane, while it is staged.

    Attributes:
        model: Integers of the model.
        const: Constants computed from Params.
        options: Options of the simulator.
        dt: Step size, s.
        damping_dt: Step size by which damping enters the factor of the mass matrix, s.
        implicit_terms: Forces that the integrator evaluates at the end of the step (`implicit_forces`).
        ws: Scratch.
        q, v, act, u: State (act: of models with activations) and control.
        wrench: External wrenches on bodies, if any.
        constraints: Constraint rows, for models that can have some.
        features: Features that the kernel is compiled for.
        bars: Buffers of cotangents, in backward passes.
        v_next: Velocities after the step, in backward passes.
        filled: True if ws already holds what the adjoint reads of this step.
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
    features: Features = NO_FEATURES
    sensors: Any = None  # SensorTable, of kernels that read sensors
    bars: Bars = None  # type: ignore[assignment]  # of steps that are differentiated
    v_next: Reals = None  # type: ignore[assignment]
    filled: bool = False

    def at(self, **changes: Any) -> Self:
        """Return a copy of the step with other fields, such as another state or other cotangent buffers."""
        return replace(self, **changes)

    def has(self, *names: str) -> bool:
        """Return whether the kernel is compiled with any of these features."""
        return self.features.has(*names)

    @property
    def state(self) -> list[tuple[str, Reals, Any]]:
        """Parts of the state: name, memory, size."""
        parts = [("q", self.q, self.model.nq), ("v", self.v, self.model.nv)]
        return [*parts, ("act", self.act, self.model.na)] if self.has("activation") else parts

    @property
    def state_bars(self) -> list[tuple[str, Reals, Any]]:
        """Cotangents of the state: name, memory, size."""
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
        """Rows of links in backward passes: cotangents of poses, and a second motion field."""
        return self.ws.field

    @property
    def tree(self) -> Table:
        """Rows of trees in backward passes: cotangents of their origins."""
        return self.ws.tree
