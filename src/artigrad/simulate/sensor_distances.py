"""Sensors of how far two shapes or bodies are apart: the distance, its direction, and the segment from one to the other.

A sensor has a stage: a model of the shapes of both sides and nothing else, those of one fixed to the world and those of the
other on one body, which touch as far apart as the cutoff. The shapes are put there as they are in the robot's world, so that
gaps, points and normals, and their adjoint, are those of contacts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..model.model import Model, Sensor
from ..model.options import SoftOptions
from ..model.params import Params
from ..model.quaternions import of_matrix
from ..model.state import State
from ..physics.collision.candidates import candidates
from ..physics.collision.contact_geometry import FAR
from ..physics.constraints.report import REPORT
from ..physics.frame_accelerations import sensing_size
from .sensor_kind import At, SensorKind
from .sensor_rays import add_shape_pose, rotation_bar, shape_pose

if TYPE_CHECKING:
    from .simulator import Simulator

SECOND = "second:"  # before the names of shapes of the second side
OWN = ("shape_size", "vertex", "height")  # of a shape, beside where it is


class Apart(NamedTuple):
    """Of each robot: the nearest point of all that are looked at, whether it is within the cutoff, gap, middle and normal
    from the first side to the second, (B,), (B,), (B,), (B, 3), (B, 3); and +1 or -1: whether that is the report's."""

    which: np.ndarray
    within: np.ndarray
    gap: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    sign: np.ndarray


def stage_options(stage: Model) -> dict[str, Any]:
    """Options of the simulator of a stage: room for all points, which may all be within the cutoff at a time; one iteration,
    since nobody reads their forces."""
    return {"max_contacts": max(1, int(candidates(stage).first[-1])), "law": SoftOptions(iterations=1)}


def _staged(at: At, s: Sensor) -> tuple[Simulator, State, Params]:
    """The stage of a sensor, its state, and its parameters: shapes where they are in the world."""
    stage, B = at.stages[s.name], len(at.q)
    poses = [shape_pose(at, k) for k in _shapes(s)]
    values = {key: np.concatenate(parts, 1) for key, parts in _own(at, s, at.params).items() if parts}
    values["shape_position"] = np.stack([X.x for X in poses], 1)
    values["shape_rotation"] = np.stack([of_matrix(X.R) for X in poses], 1)
    values = {key: np.broadcast_to(x, (B, *x.shape[1:])) for key, x in values.items()}
    state = stage.state().map(lambda x: np.repeat(x[None], B, 0))
    return stage, state, stage.model.params.replace(unchecked=True, **values)


def _shapes(s: Sensor) -> tuple[int, ...]:
    """Of the robot, in the order of the stage."""
    assert s.stage is not None
    return s.stage.shapes


def _own(at: At, s: Sensor, params: dict[str, np.ndarray]) -> dict[str, list[np.ndarray]]:
    """Parts of parameters that the shapes of a sensor have, shape after shape; views, to be added to."""
    shapes = at.model.shapes
    out: dict[str, list[np.ndarray]] = {key: [] for key in OWN}
    for k in _shapes(s):
        (vertex, count), (height, rows, cols) = shapes.vertices[k], shapes.grids[k]
        out["shape_size"].append(params["shape_size"][:, k : k + 1])
        out["vertex"] += [params["vertex"][:, vertex : vertex + count]] if count else []
        out["height"] += [params["height"][:, height : height + rows * cols]] if rows else []
    return out


def _closest(at: At, s: Sensor) -> Apart:
    stage, state, params = _staged(at, s)
    points = _points(stage, stage.engine.query("sensing", state, np.zeros((len(at.q), 0)), params))
    which = REPORT.views(points)["gap"].argmin(1)
    row = REPORT.views(np.take_along_axis(points, which[:, None, None], 1)[:, 0])
    flipped = [name.startswith(SECOND) for name, _ in stage.contact_names]
    sign = np.where(np.array(flipped)[which], -1.0, 1.0)
    return Apart(which, row["gap"] < FAR, row["gap"], row["point"], row["normal"] * sign[:, None], sign)


def _points(stage: Simulator, rows: np.ndarray) -> np.ndarray:
    """The part of what `sensing` gives that contacts have."""
    count = len(stage.contact_names) * REPORT.size
    return rows[:, -count:].reshape(len(rows), -1, REPORT.size)


def _add(at: At, s: Sensor, near: Apart, of: tuple[np.ndarray, np.ndarray, np.ndarray], bars: At) -> None:
    """From the cotangents of gap, point and normal of the nearest point to poses and shapes."""
    stage, state, params = _staged(at, s)
    bar = np.zeros((len(at.q), sensing_size(stage.model)))
    points, every = REPORT.views(_points(stage, bar)), np.arange(len(at.q))
    gap, point, normal = (np.where(near.within[(...,) + (None,) * (x.ndim - 1)], x, 0.0) for x in of)
    points["gap"][every, near.which] = gap
    points["point"][every, near.which] = point
    points["normal"][every, near.which] = normal * near.sign[:, None]
    found = stage.engine.query_vjp("sensing", state, np.zeros((len(at.q), 0)), params, bar)
    assert found.params is not None
    for n, k in enumerate(_shapes(s)):
        X = shape_pose(at, k)
        R_bar = rotation_bar(params.shape_rotation[:, n], X.R, found.params.shape_rotation[:, n])
        add_shape_pose(at, k, X, found.params.shape_position[:, n], R_bar, bars)
    for key, parts in _own(at, s, bars.params).items():
        starts = np.cumsum([0, *(x.shape[1] for x in parts)])
        for first, end, part in zip(starts, starts[1:], parts, strict=False):
            part += found.params[key][:, first:end]


# -- readings ----------------------------------------------------------------------------------------------------------------
def _distance(at: At, s: Sensor) -> np.ndarray:
    """The gap, at most the cutoff."""
    near = _closest(at, s)
    return np.where(near.within, near.gap, s.cutoff)[:, None]


def _distance_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    nothing = np.zeros((len(at.q), 3))
    _add(at, s, _closest(at, s), (y_bar[:, 0], nothing, nothing), bars)


def _normal(at: At, s: Sensor) -> np.ndarray:
    """From the surface of the first side to that of the second: against the normal where they overlap. Zero beyond the
    cutoff."""
    near = _closest(at, s)
    return np.where(near.within[:, None], near.normal * np.where(near.gap < 0, -1.0, 1.0)[:, None], 0.0)


def _normal_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    near = _closest(at, s)
    turned = y_bar * np.where(near.gap < 0, -1.0, 1.0)[:, None]
    _add(at, s, near, (np.zeros(len(at.q)), np.zeros_like(y_bar), turned), bars)


def _segment(at: At, s: Sensor) -> np.ndarray:
    """point -+ gap/2 normal; zeros beyond the cutoff"""
    near = _closest(at, s)
    half = 0.5 * near.gap[:, None] * near.normal
    return np.where(near.within[:, None], np.concatenate([near.point - half, near.point + half], 1), 0.0)


def _segment_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    near = _closest(at, s)
    apart = 0.5 * (y_bar[:, 3:] - y_bar[:, :3])
    gap_bar = (apart * near.normal).sum(-1)
    _add(at, s, near, (gap_bar, y_bar[:, :3] + y_bar[:, 3:], near.gap[:, None] * apart), bars)


DISTANCES: dict[str, SensorKind] = {
    "geomdist": SensorKind("model", _distance, _distance_vjp, cut=""),
    "geomnormal": SensorKind("model", _normal, _normal_vjp, cut=""),
    "geomfromto": SensorKind("model", _segment, _segment_vjp, cut=""),
}
