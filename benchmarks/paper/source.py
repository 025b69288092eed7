"""One step of the library's own physics with memory and numbers of another kind: the source is called, not copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import artigrad as ag
from artigrad.contact.tables import contact_signature
from artigrad.rollout import Variant, contact_of
from artigrad.staging import INT, INT_WORK, INTS, REAL, ROBOTS, SHARED, WORK
from artigrad.staging.kernel import Kind
from artigrad.step import step
from artigrad.tables import TOPOLOGY, Constants, Topology, Workspace

Maker = Callable[[str, Any], Any]
STATE = ("q", "v", "u")


def staged_step(sim: ag.Simulator, sweeps: int, makers: dict[Kind, Maker]) -> None:
    """(q, v) <- the state one step later. `makers[kind](name, value)` makes the argument of a name: an integer, a table
    of integers, constants, or scratch of a length; those of q, v and u get their length."""
    m, options = sim.model, sim.options
    target = sim._target(1)
    work = Workspace.sizes(m, options, False, False)
    values = {**sim._integers, **sim._contact_arguments(False), **work}
    values |= {"dt": options.dt, "const": sim._constants(sim.params, target, 1).ravel()}
    values |= {"q": m.nq, "v": m.nv, "u": m.nu}
    signature: dict[str, Kind] = {
        **TOPOLOGY,
        "dt": REAL,
        "const": SHARED,
        **dict.fromkeys(STATE, ROBOTS),
        **contact_signature(),
        "law": SHARED,
        **dict.fromkeys(work, WORK),
    }
    given = {name: makers[kind](name, values[name]) for name, kind in signature.items()}
    dt, q, v, u = (given.pop(name) for name in ("dt", *STATE))
    topology, ws = Topology.take(given), Workspace(given, False)
    touch = contact_of(Variant(options, target, contact=True), dt, given)
    assert touch is not None
    touch.contacts.status[0], touch.contacts.status[2] = 0.0, 0.0
    constants = Constants(topology, given["const"])
    step(topology, constants, options, dt, q, v, u, ws, touch._replace(sweeps=sweeps))


def plain_integers() -> dict[Kind, Maker]:
    """Makers of integers for a target that runs on Python's own."""
    return {
        INT: lambda name, value: int(value),
        REAL: lambda name, value: float(value),
        INTS: lambda name, value: [int(x) for x in value],
        INT_WORK: lambda name, size: [0] * size,
    }
