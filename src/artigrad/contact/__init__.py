"""Stage 4: contact impulses, and their adjoint."""

from __future__ import annotations

from typing import NamedTuple

from ..dynamics import Method, articulated, forces
from ..staging import Reals, minimum
from ..tables import Constants, Topology, Workspace
from . import solver
from .gather import Law, gather
from .rows import apply_impulses, delassus, rows
from .tables import Contacts


class Touch(NamedTuple):
    """Contact of one kernel: its law, its solver, its scratch."""

    law: Law
    solver: str
    sweeps: int
    gradient: str
    contacts: Contacts


def find_impulses(
    topology: Topology,
    const: Constants,
    touch: Touch,
    q: Reals,
    v: Reals,
    ws: Workspace,
    tape: bool = False,
) -> None:
    """Impulses lam of all contacts; the factor and the inward half of the free motion's solve are in ws."""
    law, contacts = touch.law, touch.contacts
    ws.root = contacts.root
    gather(topology, const, law, q, ws, contacts)
    rows(topology, law, v, ws, contacts)
    delassus(law, contacts, topology.nl)
    if touch.solver == "hybrid":
        solver.hybrid(contacts, law.tolerance)
    else:
        solver.gauss_seidel(contacts, touch.sweeps, law.tolerance, tape, factored=touch.gradient == "implicit")


def accelerate_in_contact(
    topology: Topology, const: Constants, method: Method, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """ws.qdd = the accelerations over the next step, impulses of contact included."""
    touch = method.contact
    impulses_again(topology, const, method, q, v, u, ws)
    apply_impulses(topology, "lam", 1.0 / touch.law.dt, ws, touch.contacts)
    articulated.push(topology, ws, ws.qdd)


def impulses_again(
    topology: Topology, const: Constants, method: Method, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """The factor, the contacts and their impulses at (q, v, u): what the way back needs."""
    forces(topology, const, q, v, u, ws)
    articulated.factor_pull(topology, const, method.damping_dt, ws, ws.tau)
    find_impulses(topology, const, method.contact, q, v, ws)


def note_margin(contacts: Contacts) -> None:
    """Keep the least margin of all steps in status."""
    contacts.status[1] = minimum(contacts.status[1], solver.margin(contacts))
