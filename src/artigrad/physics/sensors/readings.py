"""Readings of all sensors of a model in one state under controls, and their adjoint."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...compiler import Reals, clamp, loop, select, steady, switch
from ..actuator_outputs import actuator_outputs, actuator_outputs_size_of, actuator_outputs_vjp
from ..constraints.report import REPORT
from ..context import Step
from ..frame_accelerations import acceleration_data, acceleration_data_offsets, solved_acceleration_data_vjp
from ..kinematics import clear_pose_bars
from ..outputs import outputs, outputs_and_poses_vjp, outputs_size
from ..transmissions.transmission import kinematics
from .sensor_inputs import SensorBuffers, SensorInputs
from .sensor_table import ABOVE, BOTH, KINDS, READINGS

NO_BOUND = 1e30


def readings(s: Step, out: Reals, time: Any, after: Reals | None) -> None:
    """Compute the readings of all sensors, concatenated in `out`.

    Args:
        s: The step, at the state and controls that are read.
        out: Readings.
        time: Time of the state, s.
        after: Velocities of sites after the coming step, if sensors read them.
    """
    c, features = SensorInputs(s, _fill(s), None, out, time, after), s.sensors.features
    for n in loop(s.sensors.count):
        _each(c, n, "read", features.kinds)
        if features.cut:
            _bound(c, n)


def readings_vjp(s: Step, out_bar: Reals, time: Any, after: Reals | None) -> None:
    """Add to the cotangents of q (tangent and ambient), v, act, u and constants; overwrite `out_bar`."""
    values, features = _fill(s), s.sensors.features
    bars = SensorBuffers(s.ws.frames_bar, s.ws.acceleration_data_bar, s.ws.actuator_outputs_bar)
    _clear(s, bars)
    found = SensorInputs(s, values, None, s.ws.readings, time, after)
    clear_pose_bars(s)
    c = SensorInputs(s, values, bars, out_bar, time, after)
    for n in loop(s.sensors.count):
        if features.cut:
            _bound_vjp(c, found, n)
        _each(c, n, "vjp", features.kinds)
    outputs_and_poses_vjp(s, bars.frames)
    if features.actuator_outputs:
        actuator_outputs_vjp(s, bars.actuator_outputs)
    if features.acceleration_data:
        for k in loop(s.model.nv):  # found by `_fill`
            s.ws.qdd[k] = values.acceleration_data[k]
        solved_acceleration_data_vjp(s, bars.acceleration_data)


def _fill(s: Step) -> SensorBuffers:
    """Compute the quantities that readings depend on; the workspace has the kinematics of the state."""
    values, features = SensorBuffers(s.ws.frames, s.ws.acceleration_data, s.ws.actuator_outputs), s.sensors.features
    if features.acceleration_data:
        acceleration_data(s, values.acceleration_data)
    if features.actuator_outputs:
        actuator_outputs(s, values.actuator_outputs)
    else:
        kinematics(s)
    outputs(s, values.frames)
    return values


def _clear(s: Step, bars: SensorBuffers) -> None:
    m, features = s.model, s.sensors.features
    sizes = [(bars.frames, outputs_size(m.nb, m.ns))]
    sizes += [(bars.actuator_outputs, actuator_outputs_size_of(m))] if features.actuator_outputs else []
    if features.acceleration_data:
        points = 0 if s.constraints is None else s.constraints.all_points * REPORT.size
        sizes.append((bars.acceleration_data, acceleration_data_offsets(m).contacts + points))
    for array, n in sizes:
        for k in loop(n):
            array[k] = 0.0


def _each(c: SensorInputs, n: Any, what: str, kinds: frozenset[str]) -> None:
    """Call the reading of sensor n, or its adjoint, by its kind."""
    readings = {READINGS.index(KINDS[kind].reading) for kind in kinds}
    cases = {k: partial(getattr(READINGS[k], what), c, n) for k in sorted(readings)}
    if len(cases) > 1:
        switch(c.table.reading[n], cases)
    for only in cases.values() if len(cases) == 1 else ():  # none of a model without sensors
        only()


# -- cutoffs ---------------------------------------------------------------------------------------------------------------
def _bounds(c: SensorInputs, n: Any) -> tuple[Any, Any]:
    """Return the lower and upper bound of a reading with a cutoff."""
    top = c.table.number(n, 0)
    return switch(c.table.cut[n], {ABOVE: lambda: (-NO_BOUND, top), BOTH: lambda: (-top, top)})


def _bound(c: SensorInputs, n: Any) -> None:
    """Clamp a reading to the cutoff of its sensor."""
    first = c.table.first[n]
    for _ in loop(c.table.is_cut[n]):
        low, high = _bounds(c, n)
        for k in loop(c.table.size[n]):
            c.out[first + k] = clamp(c.out[first + k], low, high)


def _bound_vjp(c: SensorInputs, found: SensorInputs, n: Any) -> None:
    """Set the cotangent of a clamped reading to zero."""
    first = c.table.first[n]
    for _ in loop(c.table.is_cut[n]):
        _each(found, n, "read", c.table.features.cut)
        low, high = _bounds(c, n)
        for k in loop(c.table.size[n]):
            y = steady(found.out[first + k])
            c.out[first + k] = select((y >= low) & (y <= high), c.out[first + k], 0.0)
