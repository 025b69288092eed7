"""Equality constraints of `ModelBuilder`: between bodies, joints or tendons, for closed loops and couplings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import checked_model
from ..errors import ModelError
from ..model.model import Equality, Model
from ..model.quaternions import matrix, of_matrix
from ..physics.joints.table import EITHER_AXIAL, JOINTS
from .inverse_weights import poses
from .shape_builder import SOLIMP, SOLREF, WORLD
from .validate import number, quaternion, soft_reference, vector

IDENTITY = (1.0, 0.0, 0.0, 0.0)
FIELDS = ("anchor", "rotation", "torque_scale", "polynomial", "solref", "solimp")


class EqualityBuilder:
    """Methods of ModelBuilder for equality constraints."""

    _bodies: dict[str, dict[str, Any]]
    _joints: dict[str, int]
    _lenient: bool
    _tendons: dict[str, dict[str, Any]]

    def __init__(self) -> None:
        super().__init__()
        self._equalities: dict[str, dict[str, Any]] = {}

    @checked_model
    def add_connect(
        self,
        body: str,
        other: str = WORLD,
        *,
        anchor: Any = (0.0, 0.0, 0.0),
        other_anchor: Any = None,
        name: str | None = None,
        solref: Any = SOLREF,
        solimp: Any = SOLIMP,
    ) -> str:
        """Constrain a point of a body to a point of another body or the world: a ball joint that closes a loop.

        Args:
            body, other: Bodies; `other` may be "world".
            anchor: Point of the body, m, in its frame.
            other_anchor: Point of the other body, m; by default coincident with all joints at zero.
            name: Name.
            solref, solimp: Compliance (`docs/contact-models.md`).
        """
        return self._equality("connect", body, other, name, (anchor, other_anchor), (solref, solimp))

    @checked_model
    def add_weld(
        self,
        body: str,
        other: str = WORLD,
        *,
        anchor: Any = (0.0, 0.0, 0.0),
        other_anchor: Any = None,
        rotation: Any = IDENTITY,
        other_rotation: Any = None,
        torque_scale: float = 1.0,
        name: str | None = None,
        solref: Any = SOLREF,
        solimp: Any = SOLIMP,
    ) -> str:
        """Constrain a frame of a body to one of another body or the world; by default aligned with all joints at zero.

        anchor, rotation: frame of the body, in its frame. torque_scale: weight of rotation relative to translation, m.
        """
        name = self._equality("weld", body, other, name, (anchor, other_anchor), (solref, solimp))
        own, what = self._equalities[name], f"weld '{name}'"
        other_turn = None if other_rotation is None else quaternion(other_rotation, f"other_rotation of {what}")
        own["rotation"] = (quaternion(rotation, f"rotation of {what}"), other_turn)
        own["torque_scale"] = number(torque_scale, f"torque_scale of {what}")
        return name

    @checked_model
    def add_joint_coupling(
        self,
        joint: str,
        other: str | None = None,
        *,
        polynomial: Any = (0.0, 1.0, 0.0, 0.0, 0.0),
        name: str | None = None,
        solref: Any = SOLREF,
        solimp: Any = SOLIMP,
    ) -> str:
        """Constrain the position of a joint to a polynomial of another joint's, c0 + c1 q + .. + c4 q^4: gears, mimic
        joints.

        Without another joint the position is c0.
        """
        name = name or f"{joint}:{other or 'held'}"
        what = f"coupling '{name}'"
        self._new(name, self._equalities, "equality")  # type: ignore[attr-defined]
        for one in (joint, other) if other is not None else (joint,):
            if one not in self._joints:
                raise ModelError(f"{what}: there is no joint '{one}'; there are: {', '.join(self._joints) or 'none'}")
            kind = list(self._bodies.values())[self._joints[one]]["joint"]
            if not JOINTS[kind].axial:
                raise ModelError(f"{what}: joint '{one}' is {kind}; only {EITHER_AXIAL} joints can be coupled")
        return self._coupling("joint", name, (joint, other), polynomial, (solref, solimp))

    @checked_model
    def add_tendon_coupling(
        self,
        tendon: str,
        other: str | None = None,
        *,
        polynomial: Any = (0.0, 1.0, 0.0, 0.0, 0.0),
        name: str | None = None,
        solref: Any = SOLREF,
        solimp: Any = SOLIMP,
    ) -> str:
        """Constrain the length of a tendon to a polynomial of another tendon's, or to c0 without another."""
        name = name or f"{tendon}:{other or 'held'}"
        self._new(name, self._equalities, "equality")  # type: ignore[attr-defined]
        for one in (tendon, other) if other is not None else (tendon,):
            if one not in self._tendons:
                known = ", ".join(self._tendons) or "none"
                raise ModelError(f"coupling '{name}': there is no tendon '{one}'; there are: {known}")
        return self._coupling("tendon", name, (tendon, other), polynomial, (solref, solimp))

    def _coupling(
        self, kind: str, name: str, parts: tuple[str, str | None], polynomial: Any, soft: tuple[Any, Any]
    ) -> str:
        what = f"coupling '{name}'"
        if parts[0] == parts[1]:
            raise ModelError(f"{what} couples {kind} '{parts[0]}' to itself")
        self._equalities[name] = {
            "kind": kind,
            "parts": parts,
            "anchor": (np.zeros(3), np.zeros(3)),
            "rotation": (np.array(IDENTITY), np.array(IDENTITY)),
            "torque_scale": 0.0,
            "polynomial": vector(polynomial, 5, f"polynomial of {what}"),
            "solref": soft_reference(soft[0], what, self._lenient),
            "solimp": vector(soft[1], 5, f"solimp of {what}"),
        }
        return name

    def _equality(
        self, kind: str, body: str, other: str, name: str | None, anchors: tuple[Any, Any], soft: tuple[Any, Any]
    ) -> str:
        name = name or f"{kind}:{body}-{other}"
        what = f"{kind} '{name}'"
        self._new(name, self._equalities, "equality")  # type: ignore[attr-defined]
        for one in (body, other):
            if one != WORLD and one not in self._bodies:
                raise ModelError(f"{what} holds body '{one}', which does not exist")
        if body == other:
            raise ModelError(f"{what} holds body '{body}' at itself")
        anchor, other_anchor = anchors
        self._equalities[name] = {
            "kind": kind,
            "parts": (body, other),
            "anchor": (
                vector(anchor, 3, f"anchor of {what}"),
                None if other_anchor is None else vector(other_anchor, 3, f"other_anchor of {what}"),
            ),
            "rotation": (np.array(IDENTITY), np.array(IDENTITY)),
            "torque_scale": 0.0,
            "polynomial": np.zeros(5),
            "solref": soft_reference(soft[0], what, self._lenient),
            "solimp": vector(soft[1], 5, f"solimp of {what}"),
        }
        return name

    def _add_equalities(self, robot: Model, prefix: str, body: Callable[[int], str], pose: Callable[..., Any]) -> None:
        """Add the equalities of another model behind a prefix.

        body(i) is the name of its body i here, and pose(i, position, rotation) the pose of something on it.
        """
        for k, (name, kind, a, b) in enumerate(robot.equalities):
            own = {key: robot.params[f"equality_{key}"][k] for key in FIELDS}
            soft = {"name": prefix + name, "solref": own["solref"], "solimp": own["solimp"]}
            if kind == "joint":
                other = None if b < 0 else prefix + robot.joints[b]
                self.add_joint_coupling(prefix + robot.joints[a], other, polynomial=own["polynomial"], **soft)
                continue
            if kind == "tendon":
                other = None if b < 0 else prefix + robot.tendons[b].name
                self.add_tendon_coupling(prefix + robot.tendons[a].name, other, polynomial=own["polynomial"], **soft)
                continue
            one, two = (
                pose(i, *x) for i, x in zip((a, b), zip(own["anchor"], own["rotation"], strict=True), strict=True)
            )
            soft |= {"anchor": one["position"], "other_anchor": two["position"]}
            if kind == "connect":
                self.add_connect(body(a), body(b), **soft)
            else:
                turns = {"rotation": one["rotation"], "other_rotation": two["rotation"]}
                self.add_weld(body(a), body(b), **turns, torque_scale=own["torque_scale"], **soft)

    def _build_equalities(self, bodies: list[str]) -> list[Equality]:
        def index(name: str | None, kind: str) -> int:
            if kind == "joint":
                return -1 if name is None else self._joints[name]
            if kind == "tendon":
                return -1 if name is None else list(self._tendons).index(name)
            return -1 if name == WORLD else bodies.index(str(name))

        return [
            Equality(name, e["kind"], index(e["parts"][0], e["kind"]), index(e["parts"][1], e["kind"]))
            for name, e in self._equalities.items()
        ]

    def _equality_values(self, model: Model) -> dict[str, Any]:
        """Return the values of the equalities' fields of Params; defaults follow from the zero pose."""
        if not self._equalities:
            return {}
        R, r = poses(model)

        def pose(b: int) -> tuple[np.ndarray, np.ndarray]:
            return (np.eye(3), np.zeros(3)) if b < 0 else (R[b], r[b])

        rows: dict[str, list[Any]] = {key: [] for key in FIELDS}
        for (_, kind, a, b), e in zip(model.equalities, self._equalities.values(), strict=True):
            (anchor, other_anchor), (turn, other_turn) = e["anchor"], e["rotation"]
            if kind not in ("joint", "tendon"):
                (R_a, r_a), (R_b, r_b) = pose(a), pose(b)
                if other_anchor is None:
                    other_anchor = R_b.T @ (r_a + R_a @ anchor - r_b)
                if other_turn is None:
                    other_turn = of_matrix(R_b.T @ R_a @ matrix(turn))
            rows["anchor"].append([anchor, other_anchor])
            rows["rotation"].append([turn, other_turn])
            for key in FIELDS[2:]:
                rows[key].append(e[key])
        return {f"equality_{key}": np.array(x) for key, x in rows.items()}
