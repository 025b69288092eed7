"""Welded groups of bodies and their parents, which decide whether two bodies may collide, as in MuJoCo.

Bodies on fixed joints belong to the group of their parent. A body that only adds a joint to the next one (no mass, no
shape, one moving child) is skipped: in MuJoCo a body can have several joints, here one each, and both have the same
parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WORLD = -1


class Bond(NamedTuple):
    """Connection of a body.

    Attributes:
        parent: Index, or -1 for the world.
        moves: True if its joint moves, or it is a mocap body.
        bare: True if it has neither mass nor shapes nor a free joint.
    """

    parent: int
    moves: bool
    bare: bool


class Groups(NamedTuple):
    """Welded groups, by body.

    Attributes:
        welded: Moving body that it is fixed to, itself if it moves, or -1 for the world.
        above: The same of the parent of this group, skipping bodies that only add a joint.
    """

    welded: tuple[int, ...]
    above: tuple[int, ...]
    alone: tuple[bool, ...]  # True for a body that only adds a joint

    def root(self, body: int) -> int:
        """Return the body that a body is welded to; the world is welded to itself."""
        return WORLD if body < 0 else self.welded[body]

    def carries(self, one: int, other: int) -> bool:
        """Return True if group `one` is the parent of group `other`, neither being the world."""
        return self.above[other] == one


def groups(bonds: Sequence[Bond]) -> Groups:
    """Return the groups of bodies, which are sorted parents first."""
    children: list[list[int]] = [[] for _ in bonds]
    for i, b in enumerate(bonds):
        if b.parent >= 0:
            children[b.parent].append(i)
    alone = [b.moves and b.bare and len(c) == 1 and bonds[c[0]].moves for b, c in zip(bonds, children, strict=True)]
    welded, above = list[int](), list[int]()
    for i, b in enumerate(bonds):
        carrier = WORLD if b.parent < 0 else welded[b.parent]
        welded.append(i if b.moves else carrier)
        while carrier >= 0 and alone[carrier]:
            carrier = above[carrier]
        above.append(carrier if b.moves else WORLD if carrier < 0 else above[carrier])
    return Groups(tuple(welded), tuple(above), tuple(alone))
