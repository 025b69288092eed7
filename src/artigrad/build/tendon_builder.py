"""Tendons of `ModelBuilder`: sums of joint positions, or paths between sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arguments import checked_model
from ..deprecation import translate
from ..errors import ModelError
from ..model.model import Model
from ..model.transmissions import Piece, Tendon
from ..physics.joints.table import EITHER_AXIAL, JOINTS
from .inverse_weights import tendon_lengths, tendon_weights
from .shape_builder import SOLIMP, SOLREF
from .validate import bounds, number, soft_reference, vector

FIELDS = (
    *(
        "stiffness",
        "damping",
        "stiffness_curve",
        "damping_curve",
        "rest",
        "limit",
        "limit_margin",
        "limit_solref",
        "limit_solimp",
    ),
    *("dry_friction", "dry_solref", "dry_solimp", "invweight0"),
)


class TendonPart(NamedTuple):
    """Segment of a tendon: kind, joint or site, other site, scale; site of its wrapping shape, side site, and radius."""

    kind: str
    a: str
    b: str | None
    scale: float
    around: str | None = None
    side: str | None = None
    radius: float = 0.0


class TendonBuilder:
    """Methods of ModelBuilder for tendons."""

    _bodies: dict[str, dict[str, Any]]
    _joints: dict[str, int]
    _lenient: bool
    _sites: dict[str, dict[str, Any]]

    def __init__(self) -> None:
        super().__init__()
        self._tendons: dict[str, dict[str, Any]] = {}

    @checked_model
    def add_fixed_tendon(self, name: str, joints: Mapping[str, float], **options: Any) -> str:
        """Add a tendon whose length is a sum of joint positions, each times its coefficient: {"knee": 0.5, "hip": 1.0}.

        Args:
            name: Name.
            joints: Coefficients by joint.
            options: Options of all tendons, see below.

        Options of all tendons:

            stiffness, damping: Spring and damper.
            rest: Rest length of the spring, or an interval; by default the length with all joints at zero.
            stiffness_curve, damping_curve: Coefficients of x^2 and x^3 in the spring force, of v |v| and v^3 in the
            damping force.
            limit: (shortest, longest), with limit_margin, limit_solref and limit_solimp.
            dry_friction: Largest force, with dry_solref and dry_solimp.
            invweight0: Inverse weight in the reference pose; by default computed from the model.
        """
        for joint in joints:
            if joint not in self._joints:
                raise ModelError(f"tendon '{name}': there is no joint '{joint}'; there are: {', '.join(self._joints)}")
            kind = list(self._bodies.values())[self._joints[joint]]["joint"]
            if not JOINTS[kind].axial:
                raise ModelError(f"tendon '{name}': joint '{joint}' is {kind}; a tendon counts {EITHER_AXIAL} joints")
        return self._tendon(
            name,
            [
                TendonPart("joint", joint, None, number(c, f"coefficient of joint '{joint}' of tendon '{name}'"))
                for joint, c in joints.items()
            ],
            options,
        )

    @checked_model
    def add_spatial_tendon(self, name: str, path: Sequence[Any], **options: Any) -> str:
        """Add a tendon along straight lines between sites: ["shoulder", "elbow", "wrist"].

        Args:
            name: Name.
            path: Sites. A number is a pulley: the path ends before it and a new one begins after it, whose length is
                divided by that number. A tuple ("sphere" or "cylinder", site, radius), optionally with a second site,
                is a wrapping shape between two sites, centered at its site with axis z; the second site decides on
                which side to pass, or, if inside the shape, that the tendon stays inside.
            options: As of `fixed_tendon`.
        """
        if not isinstance(path, list | tuple):
            raise ModelError(
                f"path of tendon '{name}' is a list of sites, pulleys and shapes, not {type(path).__name__}"
            )
        pieces, last, divisor, shape = list[TendonPart](), None, 1.0, None
        for part in path:
            if isinstance(part, str):
                if part not in self._sites:
                    raise ModelError(f"tendon '{name}': there is no site '{part}'")
                if part == last:
                    raise ModelError(f"tendon '{name}': site '{part}' follows itself; a segment is between two sites")
                if last is not None:
                    pieces.append(TendonPart("straight", last, part, 1.0 / divisor)._replace(**(shape or {})))
                last, shape = part, None
            elif isinstance(part, tuple):
                shape = self._wrapped(name, part, last is not None and shape is None)
            else:
                last, divisor = None, number(part, f"divisor of a pulley of tendon '{name}'")
                if divisor <= 0:
                    raise ModelError(f"tendon '{name}': the divisor of a pulley is above zero, not {divisor:g}")
        if shape is not None:
            raise ModelError(f"tendon '{name}': a shape to wrap around is between two sites")
        return self._tendon(name, pieces, options)

    def _wrapped(self, name: str, given: tuple[Any, ...], between: bool) -> dict[str, Any]:
        """Parse a wrapping shape."""
        kind, around, radius, *side = given
        if kind not in ("sphere", "cylinder") or not between:
            raise ModelError(f"tendon '{name}': it wraps around a sphere or a cylinder, between two sites")
        for site in (around, *side):
            if site not in self._sites:
                raise ModelError(f"tendon '{name}': there is no site '{site}'")
        radius = number(radius, f"radius of what tendon '{name}' wraps around")
        if radius <= 0:
            raise ModelError(f"tendon '{name}' wraps around a radius of {radius:g}; it is above zero")
        return {"kind": kind, "around": around, "radius": radius, "side": side[0] if side else None}

    def _tendon(self, name: str, pieces: list[TendonPart], options: dict[str, Any]) -> str:
        self._new(name, self._tendons, "tendon")  # type: ignore[attr-defined]
        options = translate(options, {"weight": "invweight0"}, "tendon")
        if not pieces:
            raise ModelError(f"tendon '{name}' has no pieces: a path needs two sites, a sum of joints at least one")
        own = {key: options.pop(key, 0.0) for key in ("stiffness", "damping", "limit_margin", "dry_friction")}
        own = {key: number(x, f"{key} of tendon '{name}'") for key, x in own.items()}
        for key in ("stiffness", "damping", "dry_friction"):
            if own[key] < 0:
                raise ModelError(f"{key} of tendon '{name}' is {own[key]:g}; it cannot be negative")
        for key in ("stiffness_curve", "damping_curve"):
            own[key] = vector(options.pop(key, (0.0, 0.0)), 2, f"{key} of tendon '{name}'")
        rest, invweight0 = options.pop("rest", None), options.pop("invweight0", None)
        if rest is not None:
            rest = bounds((rest, rest) if np.isscalar(rest) else rest, f"rest of tendon '{name}'")
        if invweight0 is not None and number(invweight0, f"invweight0 of tendon '{name}'") < 0:
            raise ModelError(f"invweight0 of tendon '{name}' is {invweight0:g}; it cannot be negative")
        for kind in ("limit", "dry"):
            ref, imp = options.pop(f"{kind}_solref", SOLREF), options.pop(f"{kind}_solimp", SOLIMP)
            own[f"{kind}_solref"] = soft_reference(ref, f"tendon '{name}'", self._lenient)
            own[f"{kind}_solimp"] = vector(imp, 5, f"{kind}_solimp of tendon '{name}'")
        own["limit"] = bounds(options.pop("limit", None), f"limit of tendon '{name}'")
        if options:
            raise ModelError(f"a tendon has no option '{next(iter(options))}'; it has: {', '.join(FIELDS)}")
        self._tendons[name] = {"pieces": pieces, "rest": rest, "invweight0": invweight0, **own}
        return name

    def _add_tendons(self, robot: Model, prefix: str) -> None:
        """Add the tendons of another model behind a prefix."""
        at = 0
        for t, tendon in enumerate(robot.tendons):
            names, pieces = robot.joints if tendon.fixed else robot.sites, list[TendonPart]()
            for p in tendon.pieces:
                b, around, side = (None if k < 0 else prefix + names[k] for k in (p.b, p.around, p.side))
                scale, radius = float(robot.params.piece_scale[at]), float(robot.params.piece_radius[at])
                pieces.append(TendonPart(p.kind, prefix + names[p.a], b, scale, around, side, radius))
                at += 1
            own = {key: robot.params[f"tendon_{key}"][t] for key in FIELDS if key != "invweight0"}
            self._tendon(prefix + tendon.name, pieces, own)

    def _build_tendons(self) -> list[Tendon]:
        joints, sites = list(self._joints), list(self._sites)

        def piece(part: TendonPart) -> Piece:
            if part.b is None:
                return Piece(part.kind, joints.index(part.a))
            others = (-1 if x is None else sites.index(x) for x in (part.around, part.side))
            return Piece(part.kind, sites.index(part.a), sites.index(part.b), *others)

        return [Tendon(name, tuple(map(piece, t["pieces"]))) for name, t in self._tendons.items()]

    def _stopped_tendons(self) -> list[int]:
        """Return the tendons with a limit or dry friction."""
        return [
            k for k, t in enumerate(self._tendons.values()) if np.isfinite(t["limit"]).any() or t["dry_friction"] > 0
        ]

    def _tendon_values(self) -> dict[str, Any]:
        """Return the values of the tendons' fields of Params, except those that follow from the zero pose."""
        if not self._tendons:
            return {}
        own = list(self._tendons.values())
        keys = [key for key in FIELDS if key not in ("rest", "invweight0")]
        values = {f"tendon_{key}": [t[key] for t in own] for key in keys}
        pieces = [part for t in own for part in t["pieces"]]
        return values | {f"piece_{key}": [getattr(part, key) for part in pieces] for key in ("scale", "radius")}

    def _resting_tendons(self, model: Model) -> dict[str, Any]:
        """Return the rest lengths and inverse weights that were not given."""
        if not self._tendons:
            return {}
        own = list(self._tendons.values())
        found: dict[str, list[Any]] = {key: [t[key] for t in own] for key in ("rest", "invweight0")}
        if any(x is None for x in found["rest"]):
            lengths = tendon_lengths(model, np.zeros(model.nq))
            found["rest"] = [(x, x) if t is None else t for t, x in zip(found["rest"], lengths, strict=True)]
        if any(x is None for x in found["invweight0"]):
            weights = tendon_weights(model)
            found["invweight0"] = [x if t is None else t for t, x in zip(found["invweight0"], weights, strict=True)]
        return {f"tendon_{key}": x for key, x in found.items()}
