"""Lines: numbers of a pose that a force acts along. Tendons are lines, and so is what an actuator on a ball joint, a free
joint, sites or a slider-crank pulls; an actuator on a joint with one axis needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .model import Model


class Piece(NamedTuple):
    """A piece of a tendon. kind: "joint" (its position counts; a is the joint), "straight" (between sites a and b), or "sphere"
    or "cylinder" (the same, around a shape where that is in the way: `around` is the site of its frame, `side` that on whose
    side to go, or -1)."""

    kind: str
    a: int
    b: int = -1
    around: int = -1
    side: int = -1


class Tendon(NamedTuple):
    """A tendon: its length is the sum of its pieces, each times its `piece_scale`."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def fixed(self) -> bool:
        """Whether it is a sum of joint positions, not a path between sites."""
        return all(piece.kind == "joint" for piece in self.pieces)


class Transmission(NamedTuple):
    """What an actuator acts on. kind: "joint" or "jointinparent" (axes of the parent) with a the joint, "tendon" with a the
    tendon, "site" with a the site and b the one that it is seen from (-1: none), "crank" with a the site of the crank and b
    that of the slider, or "body" with a the body that it pulls to whatever it touches."""

    kind: str
    a: int
    b: int = -1


PIECES = ("straight", "sphere", "cylinder")  # kinds of pieces of a path
LINES = (  # kinds of lines
    *("fixed", "spatial", "ball", "ball_in_parent", "free", "free_in_parent", "site", "relative", "crank"),
    "adhesion",
)


class Line(NamedTuple):
    """kind: one of LINES. at: first coordinate of the joint, or frame of the site (bodies first). dofs: what it moves.
    other: frame of another site."""

    kind: str
    pieces: tuple[Piece, ...]
    at: int
    dofs: tuple[int, ...]
    actuator: int = -1  # whose own line it is
    other: int = 0


def lines_of(model: Model) -> tuple[list[Line], list[int]]:
    """All lines, those of tendons first, and of each actuator the number of its line from 1 (0: it has none)."""
    lines = [_of_tendon(model, tendon) for tendon in model.tendons]
    of_actuator = []
    for j, on in enumerate(model.transmissions):
        own = _of_actuator(model, on)
        if own is not None:
            lines.append(own._replace(actuator=j))
        of_actuator.append(len(lines) if own is not None else on.a + 1 if on.kind == "tendon" else 0)
    return lines, of_actuator


def _of_tendon(model: Model, tendon: Tendon) -> Line:
    if tendon.fixed:
        return Line("fixed", tendon.pieces, 0, tuple(model.joint_v[piece.a] for piece in tendon.pieces))
    dofs: set[int] = set()
    for piece in tendon.pieces:  # what moves all ends of a piece alike does not change its length
        paths = [set(_path(model, model.site_body[k])) for k in (piece.a, piece.b, piece.around) if k >= 0]
        dofs |= paths[0].union(*paths) - paths[0].intersection(*paths)
    return Line("spatial", tendon.pieces, 0, tuple(sorted(dofs)))


def _of_actuator(model: Model, on: Transmission) -> Line | None:
    """The own line of an actuator, if it needs one."""
    kind, a, b = on
    if kind == "body":
        return Line("adhesion", (), 0, ())  # its force acts where the body touches
    if kind == "site" and b < 0:
        return Line("site", (), model.nb + a, _path(model, model.site_body[a]))
    if kind in ("site", "crank"):
        one, two = (set(_path(model, model.site_body[k])) for k in (a, b))
        dofs = one ^ two if kind == "site" else one | two
        name = "relative" if kind == "site" else "crank"
        return Line(name, (), model.nb + a, tuple(sorted(dofs)), other=model.nb + b)
    if kind not in ("joint", "jointinparent") or model.joint_kind(a).axial:
        return None
    joint, va = model.joint_kind(a), model.joint_v[a]
    name = ("free" if joint.floating else "ball") + ("_in_parent" if kind == "jointinparent" else "")
    return Line(name, (), model.joint_q[a] + joint.straight, tuple(range(va, va + joint.nv)))


def _path(model: Model, *bodies: int) -> tuple[int, ...]:
    """The degrees of freedom that move any of these bodies."""
    found: set[int] = set()
    for body in bodies:
        while body >= 0:
            found |= set(range(model.joint_v[body], model.joint_v[body] + model.joint_kind(body).nv))
            body = model.parent[body]
    return tuple(sorted(found))
