"""Inputs of readings (frames, accelerations, contacts, tendons, actuators, parameters), and the buffers of their cotangents.

A `Slot` is one value that a reading depends on, with the address of its cotangent. A reading is a function of slots, so
that its adjoint is derived from it (`sensor_kind`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ...compiler import Linear, Reals, Table, loop, switch
from ...compiler.struct import leaves_of, size_of
from ..actuator_outputs import actuator_output_offsets
from ..context import Step
from ..frame_accelerations import acceleration_data_offsets
from ..outputs import COM, FRAME
from ..spatial import Force, Mat3, Vec3, cross, force_to_child
from ..spatial.vectors import axial


class FrameRow(Linear):
    """Row of FRAME: position, axes and velocities of a body or site in the world."""

    p: Vec3
    R: Mat3
    v: Vec3
    w: Vec3


class AccelerationRow(Linear):
    """Row of FRAME_MOTION: proper acceleration of a frame and its angular acceleration, world axes."""

    linear: Vec3
    angular: Vec3


class ContactRow(Linear):
    """Row of REPORT."""

    force: Vec3
    point: Vec3
    gap: float
    along: Vec3
    normal: Vec3
    torque: Vec3
    tangent: Vec3


class HeldRow(Linear):
    """Row of HELD_REPORT."""

    force: Vec3
    torque: Vec3
    a: Vec3
    b: Vec3


class Placed(Linear):
    """Position and axes of a shape in the world."""

    p: Vec3
    R: Mat3


class Input(Protocol):
    """Value that a reading depends on, with the address of its cotangent."""

    def load(self) -> Any: ...

    def add(self, bar: Any) -> None:
        """Add to its cotangent."""


class Slot(NamedTuple):
    """Value in memory: entry `at` of `values`, with its cotangent in entry `bar_at` of `bars`."""

    values: Reals
    bars: Reals | None
    kind: type
    at: Any = 0
    bar_at: Any = 0

    def load(self) -> Any:
        return self.values[self.at] if self.kind is float else self.values.struct(self.at, self.kind)

    def add(self, bar: Any) -> None:
        if self.bars is None:
            return
        for k, leaf in enumerate(leaves_of(bar)):
            if not _is_nothing(leaf):
                self.bars[self.bar_at + k] = self.bars[self.bar_at + k] + leaf


def _is_nothing(x: Any) -> bool:
    """Return True for the number zero, the cotangent of a value that a reading does not depend on."""
    return isinstance(x, int | float) and x == 0


class OrWorld(NamedTuple):
    """Row of a body, or zeros for the world. moves: 1 for a body, 0 for the world."""

    slot: Slot
    moves: Any

    def load(self) -> Any:
        return switch(self.moves, {0: self.slot.kind.zero, 1: self.slot.load})  # type: ignore[attr-defined]

    def add(self, bar: Any) -> None:
        for _ in loop(self.moves):
            self.slot.add(bar)


def field(table: Table, bars: Table | None, i: Any, name: str) -> Slot:
    """Return the slot of a field of row i of a table."""
    offset, kind = table.layout.fields[name]
    at = i * table.layout.size + offset
    if bars is None:
        return Slot(Reals(table.memory, table.start), None, kind, at)
    bar_at = i * bars.layout.size + bars.layout.fields[name][0]
    return Slot(Reals(table.memory, table.start), Reals(bars.memory, bars.start), kind, at, bar_at)


class ShapePlace(NamedTuple):
    """World pose of shape k. Its cotangent is added to that of its link (`zeta`, `o_bar`) and of its pose on the link."""

    s: Step
    k: Any

    def load(self) -> Placed:
        from ..kinematics import origin

        i = self.s.model.shape_link[self.k]
        X = self.s.link[i].X @ self.s.const.shape[self.k].X
        return Placed(X.r + origin(self.s, self.s.model.tree[i]), X.R)

    def add(self, bar: Placed) -> None:
        s, k = self.s, self.k
        i = s.model.shape_link[k]
        X = s.link[i].X @ s.const.shape[k].X
        moved = Force(cross(X.r, bar.p) + axial(bar.R @ X.R.T), bar.p)
        s.field[i].zeta += moved
        s.tree[s.model.tree[i]].o_bar += bar.p
        if s.bars.const is not None:
            s.bars.const.shape[k].X += force_to_child(X, moved)


class SensorBuffers(NamedTuple):
    """Outputs of `outputs`, `acceleration_data` and `actuator_outputs`, or their cotangents."""

    frames: Reals
    acceleration_data: Reals
    actuator_outputs: Reals


class SensorInputs:
    """Values that readings of one robot depend on, as slots.

    Attributes:
        s: The step, after its kinematics.
        time: Time of the state, s.
        after: Under the hard law, velocities of sites after the coming step, three numbers each; where they are read.
        out: Readings; backwards their cotangents.
    """

    def __init__(self, s: Step, values: SensorBuffers, bars: SensorBuffers | None, out: Reals, time: Any, after: Any):
        self.s, self.table, self.out, self.time = s, s.sensors, out, time
        self._values, self._bars, self._after = values, bars, after

    def _of(self, name: str, at: Any, kind: type) -> Slot:
        bars = None if self._bars is None else getattr(self._bars, name)
        return Slot(getattr(self._values, name), bars, kind, at, at)

    # -- coordinates -------------------------------------------------------------------------------------------------
    def q(self, k: Any, kind: type = float) -> Slot:
        return Slot(self.s.q, None if self._bars is None else self.s.bars.q, kind, k, k)

    def v(self, k: Any, kind: type = float) -> Slot:
        return Slot(self.s.v, None if self._bars is None else self.s.bars.v, kind, k, k)

    # -- outputs -----------------------------------------------------------------------------------------------------
    def frame(self, k: Any) -> Slot:
        """Frame of body k, or of site k - nb."""
        return self._of("frames", k * FRAME.size, FrameRow)

    def frame_or_world(self, k: Any, moves: Any) -> OrWorld:
        return OrWorld(self.frame(k), moves)

    def total(self, k: int) -> Slot:
        """Energies: see `outputs`."""
        m = self.s.model
        return self._of("frames", (m.nb + m.ns) * FRAME.size + k, Vec3 if k == COM else float)

    def shape(self, k: Any) -> ShapePlace:
        return ShapePlace(self.s, k)

    # -- accelerations, forces of constraints, contacts --------------------------------------------------------------------
    def _sensing(self, part: str, k: Any, kind: type) -> Slot:
        start = getattr(acceleration_data_offsets(self.s.model), part)
        return self._of("acceleration_data", start + k * size_of(kind), kind)

    def acceleration(self, k: Any) -> Slot:
        """Acceleration of body k, or of site k - nb."""
        return self._sensing("frames", k, AccelerationRow)

    def limit_force(self, k: Any) -> Slot:
        """Force of the limit of link k, or of tendon k - nl."""
        return self._sensing("limits", k, float)

    def row_force(self, t: Any) -> Slot:
        """Force of all constraint rows along tendon t."""
        m = self.s.model
        return self._sensing("limits", m.nl + m.ntendon + t, float)

    def held(self, e: Any) -> Slot:
        return self._sensing("held", e, HeldRow)

    def contact(self, k: Any) -> Slot:
        return self._sensing("contacts", k, ContactRow)

    @property
    def impulsive(self) -> bool:
        """True under the hard law, where accelerometers read the mean over the coming step."""
        return self._after is not None

    def velocity_after(self, site: Any) -> Slot:
        """Velocity of a site after the coming step."""
        bars = None if self._bars is None else self._after_bars()
        return Slot(self._after, bars, Vec3, site * 3, site * 3)

    def _after_bars(self) -> Reals:
        assert self.s.bars is not None
        return self.s.bars.u.shifted(self._after.start - self.s.u.start)

    # -- tendons and actuators -------------------------------------------------------------------------------------------
    def actuator_outputs(self, part: str, k: Any) -> Slot:
        start = getattr(actuator_output_offsets(self.s.model), part)
        return self._of("actuator_outputs", start + k, float)

    # -- parameters --------------------------------------------------------------------------------------------------
    def constant(self, table: str, i: Any, name: str) -> Slot:
        """Field of a row of the constants."""
        bars = None if self._bars is None or self.s.bars.const is None else getattr(self.s.bars.const, table)
        return field(getattr(self.s.const, table), bars, i, name)

    @property
    def gravity(self) -> Slot:
        bars = None if self._bars is None or self.s.bars.const is None else self.s.bars.const.reals
        return Slot(self.s.const.reals, bars, Vec3)
