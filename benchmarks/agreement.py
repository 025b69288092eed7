"""Contacts beside MuJoCo's: `python -m benchmarks.agreement [--count N] [--out FOLDER]`.

Every pair of kinds of shapes in many placements at random (apart, touching, deep; turned at random or nearly aligned). Of those
in which either finds a contact: the share in which gap, normal and points are the same, to 1e-6 for closed forms, to 1e-4 for
any two solids. Gap and normal are those of the deepest contact; points are all of them, with their gaps and normals, in any
order. MuJoCo's search is given more turns and a smaller tolerance than by default, so that this is not what is compared.
Shapes have a margin, so that those apart count too; capsules on meshes are also tried without, since with one MuJoCo's line of
a capsule lies elsewhere.
"""

from __future__ import annotations

import argparse
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
from rich.console import Console
from tests.physics.collision.beside_mujoco import KIND, Contact, Theirs, ours, placements, same
from tests.physics.collision.test_mujoco import SHAPES

from artigrad.physics.collision.routines import BY_SHAPES, ROUTINES

from .report import Sheet

KINDS = {"plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "hull 8", "hull 60", "many"}
MESHES = {"hull 8", "hull 60", "many"}
MARGIN, NEARLY = 0.02, 0.02  # m; rad
DEEP = 0.02  # m, beyond which an overlap is deep

HEAD = """# Contact points compared with MuJoCo

Made by `python -m benchmarks.agreement`. Each pair of shape types is placed at random: separated, in contact, or with
deep overlap; rotated at random or nearly aligned. For the placements in which either engine finds a contact
("contacts"), the table has the percentage with equal distance, normal and points, to the tolerance in the second
column. Distance and normal are those of the deepest contact; points are all of them, in any order.

"""


def both(a: str, b: str, count: int, margin: float = MARGIN) -> list[tuple[Contact, Contact]]:
    """(ours, MuJoCo's) of each placement in which either finds a contact; half turned at random, half nearly aligned."""
    out, one, other = list[tuple[Contact, Contact]](), SHAPES[a], SHAPES[b]
    theirs = Theirs(one, other, margin)
    theirs.m.opt.ccd_iterations, theirs.m.opt.ccd_tolerance = 500, 1e-12
    for seed, tilt in enumerate((None, NEARLY)):
        poses = placements(np.random.default_rng(seed), count // 2, 0.4, tilt)
        found = ours(*theirs.placed(one, other, poses), margin)
        pairs = [(mine, theirs.contacts(*(x[k] for x in poses))) for k, mine in enumerate(found)]
        out += [pair for pair in pairs if len(pair[0]) or len(pair[1])]
    return out


def deepest(contact: Contact) -> tuple[float, np.ndarray]:
    """Its gap and normal."""
    k = int(np.argmin(contact.gaps))
    return float(contact.gaps[k]), contact.normals[k]


def shares(pairs: list[tuple[Contact, Contact]], tolerance: float) -> tuple[float, float, float]:
    """Of gaps, normals and points that are the same."""
    gap = normal = points = 0
    for mine, theirs in pairs:
        if len(mine) and len(theirs):
            (phi, n), (phi2, n2) = deepest(mine), deepest(theirs)
            gap += abs(phi - phi2) < tolerance
            normal += bool(np.abs(n - n2).max() < tolerance)
        points += same(mine, theirs, tolerance)
    return tuple(x / max(len(pairs), 1) for x in (gap, normal, points))  # type: ignore[return-value]


def line(a: str, b: str, count: int, margin: float = MARGIN) -> list[str]:
    """A line of the table."""
    closed = ROUTINES[BY_SHAPES[KIND[SHAPES[a][0]], KIND[SHAPES[b][0]]]].forward is not None or (a, b) == ("box", "box")
    pairs, tolerance = both(a, b, count, margin), 1e-6 if closed else 1e-4
    shallow = [p for p in pairs if min((deepest(c)[0] for c in p if len(c)), default=0.0) > -DEEP]
    out = [f"{a}, {b}" + ("" if margin else ", no margin"), f"{tolerance:.0e}", str(len(pairs))]
    for some in (shallow, pairs):
        out += [f"{100 * x:.1f}" for x in shares(some, tolerance)]
    return out


def main() -> None:
    """Compare, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=1000, help="placements of each pair")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of agreement.md")
    arguments = parser.parse_args()
    names = [name for name in SHAPES if name in KINDS]
    pairs = [p for p in combinations_with_replacement(names, 2) if p != ("plane", "plane")]
    what = ("distance", "normal", "points")
    columns = ["", "tolerance", "contacts", *(f"{x}, overlap to 2 cm" for x in what), *(f"{x}, all" for x in what)]
    lines = [line(*p, arguments.count) for p in pairs]
    lines += [line("capsule", mesh, arguments.count, 0.0) for mesh in names if mesh in MESHES]
    sheet = Sheet("Percentage of placements with MuJoCo's contact", columns, lines)
    Console(width=160).print(sheet.rich())
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "agreement.md").write_text(HEAD + sheet.markdown())


if __name__ == "__main__":
    main()
