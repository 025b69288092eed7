"""Which bodies are one solid, and which carries which: what decides whether two bodies may touch, as in MuJoCo.

Bodies on fixed joints are one with what carries them. A body that is nothing but a joint of the next one (no mass, no shape,
one moving body on it) is passed over: in MuJoCo a body has several joints, here one each, and both have the same parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WORLD = -1


class Bond(NamedTuple):
    """Of one body. parent: index, or -1 for the world. moves: whether it has a joint that moves, or is a mocap body.
    bare: whether it has neither mass nor shapes nor a free joint."""

    parent: int
    moves: bool
    bare: bool


class Groups(NamedTuple):
    """By body. welded: the moving body that it is fixed to, itself if it moves, or -1 for the world. above: that of the body
    which carries this group, bodies that are nothing but a joint passed over."""

    welded: tuple[int, ...]
    above: tuple[int, ...]
    alone: tuple[bool, ...]  # whether a body is nothing but a joint

    def root(self, body: int) -> int:
        """Return what a body is welded to; the world is welded to itself."""
        return WORLD if body < 0 else self.welded[body]

    def carries(self, one: int, other: int) -> bool:
        """Return whether group `one` carries group `other`, neither being the world."""
        return self.above[other] == one


def groups(bonds: Sequence[Bond]) -> Groups:
    """Return the groups of bodies that come after their parents."""
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
