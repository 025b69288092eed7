"""Agreement of contacts with MuJoCo: `python -m benchmarks.agreement [--count N] [--out FOLDER]`.

Every pair of shape types is placed many times at random (separated, touching, deep; rotated at random or nearly aligned).
Of the placements in which either engine finds a contact, the table has the fraction in which distance, normal and points
agree, to 1e-6 for closed forms, to 1e-4 for general convex solids. Distance and normal are those of the deepest contact;
points are compared with their distances and normals, in any order. MuJoCo runs with more iterations and a smaller tolerance
than by default, so that its convergence has no influence. Shapes have a margin, so that separated shapes count too.
Capsules on meshes are also compared without a margin, because with one MuJoCo places the contact line of a capsule
elsewhere.
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
    """Return (own, MuJoCo) contacts of each placement in which either finds a contact.

    Half of the placements are rotated at random, half nearly aligned.
    """
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
    """Return distance and normal of the deepest contact."""
    k = int(np.argmin(contact.gaps))
    return float(contact.gaps[k]), contact.normals[k]


def shares(pairs: list[tuple[Contact, Contact]], tolerance: float) -> tuple[float, float, float]:
    """Return the fractions of equal distances, normals and points."""
    gap = normal = points = 0
    for mine, theirs in pairs:
        if len(mine) and len(theirs):
            (phi, n), (phi2, n2) = deepest(mine), deepest(theirs)
            gap += abs(phi - phi2) < tolerance
            normal += bool(np.abs(n - n2).max() < tolerance)
        points += same(mine, theirs, tolerance)
    return tuple(x / max(len(pairs), 1) for x in (gap, normal, points))  # type: ignore[return-value]


def line(a: str, b: str, count: int, margin: float = MARGIN) -> list[str]:
    """Return a row of the table."""
    closed = ROUTINES[BY_SHAPES[KIND[SHAPES[a][0]], KIND[SHAPES[b][0]]]].forward is not None or (a, b) == ("box", "box")
    pairs, tolerance = both(a, b, count, margin), 1e-6 if closed else 1e-4
    shallow = [p for p in pairs if min((deepest(c)[0] for c in p if len(c)), default=0.0) > -DEEP]
    out = [f"{a}, {b}" + ("" if margin else ", no margin"), f"{tolerance:.0e}", str(len(pairs))]
    for some in (shallow, pairs):
        out += [f"{100 * x:.1f}" for x in shares(some, tolerance)]
    return out


def main() -> None:
    """Compare, print and save."""
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
