"""One step of the physics of this library with other memory and number types: the source is called, not copied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import artigrad as ag
from artigrad.compiler import INT, INT_WORK, INTS, REAL, ROBOTS, ArgumentKind
from artigrad.kernels.key import KernelKey
from artigrad.physics.collision.candidates import routines_of
from artigrad.physics.features import Features
from artigrad.physics.step import step
from artigrad.physics.tables import Workspace, topology_arguments

Maker = Callable[[str, Any], Any]
STATE = ("q", "v", "u")


def staged_step(sim: ag.Simulator, sweeps: int, makers: dict[ArgumentKind, Maker]) -> None:
    """Replace (q, v) by the state one step later.

    `makers[kind](name, value)` makes the argument of a name: an integer, an integer table, constants, or scratch of a
    length; those of q, v and u get their length.
    """
    m, engine, options = sim.model, sim.engine, replace(sim.options, law=replace(sim.options.hard, sweeps=sweeps))
    work = Workspace.sizes(m, options, False, False)
    key = KernelKey(
        options, engine.device.target(1), tuple(work), contact=True, features=Features(m.features, routines_of(m))
    )
    values = {**topology_arguments(m), **engine.contact_arguments(False), **work}
    values |= {"dt": options.dt, "const": engine.constants(sim.params, 1).ravel()}
    values |= {"q": m.nq, "v": m.nv, "u": m.nu}
    signature = key.signature() | dict.fromkeys(STATE, ROBOTS)
    given = {name: makers[kind](name, values[name]) for name, kind in signature.items()}
    s = key.step(given)
    s.constraints.status[0], s.constraints.status[2] = 0.0, 0.0
    step(s.at(**{name: given[name] for name in STATE}))


def plain_integers() -> dict[ArgumentKind, Maker]:
    """Return makers of integers for a target that runs on Python integers."""
    return {
        INT: lambda name, value: int(value),
        REAL: lambda name, value: float(value),
        INTS: lambda name, value: [int(x) for x in value],
        INT_WORK: lambda name, size: [0] * size,
    }
