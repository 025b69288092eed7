"""What a kind of sensor is, and where sensors are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..model.model import Model, Sensor
from ..physics.actuator_outputs import Driving
from .results import Outputs

if TYPE_CHECKING:
    from .simulator import Simulator

# parameters that readings depend on beside what the outputs know of them
FIELDS = (
    *("mass", "com", "inertia", "gravity", "magnetic", "shape_position", "shape_rotation", "shape_size"),
    *(
        "rotation",
        "gear",
        "piece_scale",
        "piece_radius",
        "axis",
        "site_rotation",
        "vertex",
        "height",
        "limit",
        "limit_margin",
        "tendon_limit",
        "tendon_limit_margin",
    ),
)


class Felt(NamedTuple):
    """Accelerations of frames, (B, n, 3), gravity taken away; forces of limits, (B, links and tendons); what rows of tendons
    pull along them, (B, tendons); what equalities do, (B,
    equalities, 3): force and torque on B of `held_bodies` at held_b, the opposite on A at held_a; and contacts, (B, points,
    3), as of `Contacts`, gap (B, points)."""

    body_linear: np.ndarray
    body_angular: np.ndarray
    site_linear: np.ndarray
    site_angular: np.ndarray
    limit_force: np.ndarray
    pulled: np.ndarray
    held_force: np.ndarray
    held_torque: np.ndarray
    held_a: np.ndarray
    held_b: np.ndarray
    force: np.ndarray
    point: np.ndarray
    gap: np.ndarray
    along: np.ndarray
    normal: np.ndarray
    torque: np.ndarray
    tangent: np.ndarray


@dataclass(frozen=True)
class At:
    """Where sensors are read: arrays with a leading batch axis. The same type holds the cotangents of all of it."""

    model: Model
    params: dict[str, np.ndarray]
    q: np.ndarray
    v: np.ndarray
    now: Outputs
    felt: Felt | None  # if a sensor needs it
    driving: Driving | None  # likewise
    later: Outputs | None  # after the coming step, if a sensor needs it
    dt: float
    pairs: tuple[tuple[int, int], ...]  # the shapes of every point that may touch
    time: np.ndarray  # (B,), s
    stages: Mapping[str, Simulator]  # where distances are measured, by sensor

    @property
    def body_pairs(self) -> list[tuple[int, int]]:
        """The bodies of every point that may touch; -1 is the world."""
        body = self.model.shapes.body
        return [(body[a], body[b]) for a, b in self.pairs]

    def zeros(self) -> At:
        def like(of: Any) -> Any:
            return None if of is None else type(of)(*(np.zeros_like(x) for x in of))

        params = {k: np.zeros((len(self.q), *x.shape[1:])) for k, x in self.params.items()}
        q, v = np.zeros_like(self.q), np.zeros_like(self.v)
        now, felt, driving, later = (like(of) for of in (self.now, self.felt, self.driving, self.later))
        return At(self.model, params, q, v, now, felt, driving, later, self.dt, self.pairs, self.time, self.stages)


class SensorKind(NamedTuple):
    """on: what it reads, a joint, site, body, tendon, actuator or the model, or a zone: a site or nothing. read(at, sensor) ->
    (B, n); add(at, sensor, y_bar, bars) is its adjoint. cut: how a cutoff bounds it: "both" sides, "above", or "" for
    directions and contacts, which have none. felt: whether it reads accelerations, contacts or forces of limits. drives:
    whether it reads tendons or actuators. presses: whether it does if the model has spatial tendons."""

    on: str
    read: Callable[[At, Sensor], np.ndarray]
    add: Callable[[At, Sensor, np.ndarray, At], None]
    cut: str = "both"
    felt: bool = False
    drives: bool = False
    presses: bool = False


# -- small algebra -----------------------------------------------------------------------------------------------------------
def turn(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", R, x)


def turn_back(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ji,...j->...i", R, x)


def outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., :, None] * b[..., None, :]


def hat(g: np.ndarray) -> np.ndarray:
    x, y, z = g.T
    o = np.zeros_like(x)
    return np.array([[o, -z, y], [z, o, -x], [-y, x, o]]).transpose(2, 0, 1)


def subtree(model: Model, i: int) -> list[int]:
    """Body i and all it carries; -1 is the world, which carries everything."""
    inside = {i}
    for k, p in enumerate(model.parent):
        if p in inside:
            inside.add(k)
    return [k for k in range(model.nb) if k in inside]
