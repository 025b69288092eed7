"""Transmissions: scalar lengths L(q) with moment arms over the dofs.

Tendons have them, and actuators on ball and free joints, sites and slider-cranks (L = 0 for free joints and single
sites). Actuators on axial joints need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .model import Model


class Piece(NamedTuple):
    """Segment of a tendon.

    Attributes:
        kind: "joint" (adds the position of joint a), "straight" (between sites a and b), or "sphere" or "cylinder" (the
            same, around a shape if it is in the way).
        a, b: Joint or sites.
        around: Site of the shape's frame, or -1.
        side: Site that decides on which side to pass, or -1.
    """

    kind: str
    a: int
    b: int = -1
    around: int = -1
    side: int = -1


class Tendon(NamedTuple):
    """Tendon: its length is the sum of its segments, each times its `piece_scale`."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def fixed(self) -> bool:
        """True for a sum of joint positions, False for a path between sites."""
        return all(piece.kind == "joint" for piece in self.pieces)


class Transmission(NamedTuple):
    """Target of an actuator.

    Attributes:
        kind: "joint" or "jointinparent" (axes of the parent), "tendon", "site", "crank" (slider-crank), or "body"
            (adhesion).
        a: Joint, tendon, site, site of the crank, or body.
        b: Reference site, or site of the slider; -1: none.
    """

    kind: str
    a: int
    b: int = -1


PIECES = ("straight", "sphere", "cylinder")  # kinds of segments of a path
LINES = (  # kinds of transmissions with a length or moment
    *("fixed", "spatial", "ball", "ball_in_parent", "free", "free_in_parent", "site", "relative", "crank"),
    "adhesion",
)


class Line(NamedTuple):
    """Transmission with a length or a moment over several degrees of freedom.

    Attributes:
        kind: One of LINES.
        pieces: Segments of a tendon.
        at: First coordinate of the joint, or frame of the site (bodies first).
        dofs: Degrees of freedom that it moves.
        actuator: Actuator that it belongs to, or -1.
        other: Frame of a second site.
    """

    kind: str
    pieces: tuple[Piece, ...]
    at: int
    dofs: tuple[int, ...]
    actuator: int = -1  # of an actuator alone
    other: int = 0


def lines_of(model: Model) -> tuple[list[Line], list[int]]:
    """Return all transmissions, those of tendons first, and the index of each actuator's, from 1 (0: none)."""
    lines = [_of_tendon(model, tendon) for tendon in model.tendons]
    of_actuator = []
    for j, on in enumerate(model.transmissions):
        own = _of_actuator(model, on)
        if own is not None:
            lines.append(own._replace(actuator=j))
        of_actuator.append(len(lines) if own is not None else on.a + 1 if on.kind == "tendon" else 0)
    return lines, of_actuator


def _of_tendon(model: Model, tendon: Tendon) -> Line:
    """Transmission of a tendon."""
    if tendon.fixed:
        return Line("fixed", tendon.pieces, 0, tuple(model.joint_v[piece.a] for piece in tendon.pieces))
    dofs: set[int] = set()
    for piece in tendon.pieces:  # a joint that moves all ends of a segment alike does not change its length
        paths = [set(_path(model, model.site_body[k])) for k in (piece.a, piece.b, piece.around) if k >= 0]
        dofs |= paths[0].union(*paths) - paths[0].intersection(*paths)
    return Line("spatial", tendon.pieces, 0, tuple(sorted(dofs)))


def _of_actuator(model: Model, on: Transmission) -> Line | None:
    """Transmission of an actuator, if it needs one."""
    kind, a, b = on
    if kind == "body":
        return Line("adhesion", (), 0, ())  # its force acts at contacts of the body
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
    """Return the degrees of freedom that move any of these bodies."""
    found: set[int] = set()
    for body in bodies:
        while body >= 0:
            found |= set(range(model.joint_v[body], model.joint_v[body] + model.joint_kind(body).nv))
            body = model.parent[body]
    return tuple(sorted(found))


def line_feature(kind: str) -> str:
    """Return the feature of a model that has a transmission of this kind."""
    return f"{kind}_line"


def line_features(model: Model) -> frozenset[str]:
    """Return the features of the transmissions of a model.

    "lines": there are some; those of their kinds (`line_feature`); "sphere" and "cylinder": shapes that they wrap around;
    "tendon": some is a tendon; "pulled": an actuator acts on one.
    """
    lines, of_actuator = model.lines
    found = {line_feature(line.kind) for line in lines} | ({"lines"} if lines else set())
    found |= {piece.kind for line in lines for piece in line.pieces if piece.around >= 0}
    found |= {"tendon"} if model.tendons else set()
    return frozenset(found | ({"pulled"} if any(of_actuator) else set()))
