"""Rangefinders, which look along z of their site, past its own body; and whether a frame is inside a zone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import ModelError
from ..model.model import HEIGHT_FIELD, POINTS, Model, Sensor
from ..model.quaternions import matrix
from .rays import NEVER, Hit, inside, meet, meet_field, meet_surface
from .sensor_kind import At, SensorKind, hat, outer, turn, turn_back

NONE = -1.0  # what a rangefinder reads where nothing is
RANGE_DATA = {"dist": 1, "dir": 3, "origin": 3, "point": 3, "depth": 1}


# -- where shapes are ----------------------------------------------------------------------------------------------------
class ShapePose(NamedTuple):
    """Of shape k in the world, (B, 3) and (B, 3, 3), and of its body and on it, which it is made of."""

    x: np.ndarray
    R: np.ndarray
    body_R: np.ndarray
    own_x: np.ndarray
    own_R: np.ndarray


def shape_pose(at: At, k: int) -> ShapePose:
    """x = x_b + R_b x_k,  R = R_b R_k"""
    B, body = len(at.q), at.model.shapes.body[k]
    own_x = np.broadcast_to(at.params["shape_position"][:, k], (B, 3))
    own_R = np.broadcast_to([matrix(q) for q in at.params["shape_rotation"][:, k]], (B, 3, 3))
    if body < 0:
        return ShapePose(own_x, own_R, np.broadcast_to(np.eye(3), (B, 3, 3)), own_x, own_R)
    R = at.now.body_rotation[:, body]
    return ShapePose(at.now.body_position[:, body] + turn(R, own_x), R @ own_R, R, own_x, own_R)


def _unit(q: np.ndarray) -> np.ndarray:
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def add_shape_pose(at: At, k: int, X: ShapePose, x_bar: np.ndarray, R_bar: np.ndarray, bars: At) -> None:
    """To the pose of the body of shape k, and to where the shape is on it."""
    body = at.model.shapes.body[k]
    if body >= 0:
        bars.now.body_position[:, body] += x_bar
        bars.now.body_rotation[:, body] += outer(x_bar, X.own_x) + R_bar @ np.swapaxes(X.own_R, -1, -2)
    bars.params["shape_position"][:, k] += turn_back(X.body_R, x_bar)
    own_bar = np.swapaxes(X.body_R, -1, -2) @ R_bar
    bars.params["shape_rotation"][:, k] += _quaternion_bar(at.params["shape_rotation"][:, k], X.own_R, own_bar)


def _quaternion_bar(q: np.ndarray, R: np.ndarray, R_bar: np.ndarray) -> np.ndarray:
    """Of R(q/|q|): a turn w does dR = [w] R, and w = 2 vec(dq q*)"""
    M = R_bar @ np.swapaxes(R, -1, -2)
    g = np.stack([M[..., 2, 1] - M[..., 1, 2], M[..., 0, 2] - M[..., 2, 0], M[..., 1, 0] - M[..., 0, 1]], -1)
    unit = np.broadcast_to(_unit(q), (*g.shape[:-1], 4))
    w, v = unit[..., :1], unit[..., 1:]
    bar = 2 * np.concatenate([-(v * g).sum(-1, keepdims=True), w * g + np.cross(g, v)], -1)
    return bar / np.linalg.norm(q, axis=-1, keepdims=True)


def rotation_bar(q: np.ndarray, R: np.ndarray, q_bar: np.ndarray) -> np.ndarray:
    """The cotangent of R(q) for that of a unit quaternion: the other way round."""
    w, v = q[..., :1], q[..., 1:]
    g = 0.5 * (w * q_bar[..., 1:] - q_bar[..., :1] * v - np.cross(q_bar[..., 1:], v))
    return 0.5 * hat(g) @ R


# -- rangefinders --------------------------------------------------------------------------------------------------------
def seen_shapes(model: Model, site: int) -> list[int]:
    """The shapes that a rangefinder may see: not those of its own body."""
    shapes = model.shapes
    return [k for k, body in enumerate(shapes.body) if body != model.site_body[site] and k not in shapes.unseen]


def check_seen(model: Model) -> None:
    """Refuse convex hulls without a surface where a rangefinder looks."""
    for s in model.sensors:
        for k in seen_shapes(model, s.on) if s.kind == "rangefinder" else ():
            if model.shapes.kind[k] == POINTS and model.shapes.surfaces[k] is None:
                name = model.shapes.names[k]
                raise ModelError(
                    f"rangefinder '{s.name}' looks at '{name}', corners without a surface: give it one, or seen=False"
                )


def _hit(at: At, k: int, x: np.ndarray, d: np.ndarray) -> tuple[Hit, ShapePose, np.ndarray]:
    """Of a ray in the world with shape k; the shape's pose, and the ray's direction in its axes."""
    X, shapes, size = shape_pose(at, k), at.model.shapes, at.params["shape_size"][:, k]
    start, ray = turn_back(X.R, x - X.x), turn_back(X.R, d)
    surface = shapes.surfaces[k]
    if surface is not None:
        return meet_surface(surface, start, ray), X, ray
    if shapes.kind[k] == HEIGHT_FIELD:
        first, rows, cols = shapes.grids[k]
        heights = at.params["height"][:, first : first + rows * cols].reshape(-1, rows, cols)
        return meet_field(np.broadcast_to(heights, (len(x), rows, cols)), size, start, ray), X, ray
    return meet(shapes.kind[k], size, start, ray), X, ray


def _ray(at: At, s: Sensor) -> tuple[np.ndarray, np.ndarray]:
    """Where it begins, and its direction."""
    return at.now.site_position[:, s.on], at.now.site_rotation[:, s.on, :, 2]


def _distance(at: At, s: Sensor) -> tuple[np.ndarray, np.ndarray]:
    """How far the nearest shape is along the ray (`NEVER` if none is), and which it is."""
    x, d = _ray(at, s)
    best, which = np.full(len(x), NEVER), np.full(len(x), -1)
    for k in seen_shapes(at.model, s.on):
        found = _hit(at, k, x, d)[0].x
        which, best = np.where(found < best, k, which), np.minimum(best, found)
    return best, which


def _rangefinder(at: At, s: Sensor) -> np.ndarray:
    """Those of distance, direction, origin, point and depth that are asked for; nothing is met: -1, and zeros"""
    (x, d), (far, _) = _ray(at, s), _distance(at, s)
    met = np.isfinite(far)[:, None]
    length = np.where(met[:, 0], far, NONE)[:, None]
    point = np.where(met, x + np.where(met, length, 0.0) * d, 0.0)
    parts = {"dist": length, "dir": np.where(met, d, 0.0), "origin": x, "point": point, "depth": length}
    return np.concatenate([parts[name] for name in RANGE_DATA if name in s.data], 1)


def _rangefinder_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    (x, d), (far, which) = _ray(at, s), _distance(at, s)
    met = np.isfinite(far)
    names = [name for name in RANGE_DATA if name in s.data]
    cuts = np.cumsum([RANGE_DATA[name] for name in names])[:-1]
    given = dict(zip(names, np.split(y_bar, cuts, axis=1), strict=True))
    none = {name: np.zeros((len(x), n)) for name, n in RANGE_DATA.items()}
    own = none | {name: bar if name == "origin" else np.where(met[:, None], bar, 0.0) for name, bar in given.items()}
    length = np.where(met, far, 0.0)[:, None]
    far_bar = (own["dist"] + own["depth"])[:, 0] + (own["point"] * d).sum(-1)
    x_bar, d_bar = own["origin"] + own["point"], own["dir"] + length * own["point"]
    for k in sorted(set(which[met].tolist())):
        more_x, more_d = _hit_vjp(at, k, (x, d), np.where(which == k, far_bar, 0.0), bars)
        x_bar, d_bar = x_bar + more_x, d_bar + more_d
    bars.now.site_position[:, s.on] += x_bar
    bars.now.site_rotation[:, s.on, :, 2] += d_bar


def _hit_vjp(
    at: At, k: int, of: tuple[np.ndarray, np.ndarray], far_bar: np.ndarray, bars: At
) -> tuple[np.ndarray, np.ndarray]:
    """The cotangents of the ray, for that of how far shape k is; those of the shape are added."""
    hit, X, ray = _hit(at, k, *of)
    asked = (far_bar != 0) & np.isfinite(hit.x)
    g = np.where(asked, far_bar / np.where(asked, -(hit.n * ray).sum(-1), 1.0), 0.0)[:, None]
    start_bar, far = hit.n * g, np.where(asked, hit.x, 0.0)[:, None]
    ray_bar = far * start_bar
    # start = R^T (x - X),  ray = R^T d
    x_bar, d_bar = turn(X.R, start_bar), turn(X.R, ray_bar)
    R_bar = outer(of[0] - X.x, start_bar) + outer(of[1], ray_bar)
    add_shape_pose(at, k, X, -x_bar, R_bar, bars)
    bars.params["shape_size"][:, k] += hit.by_size * g
    if hit.heights is not None:
        assert hit.shares is not None
        first = at.model.shapes.grids[k][0]
        for b in range(len(g)):
            np.add.at(bars.params["height"][b], first + hit.heights[b], -hit.shares[b] * g[b])
    return x_bar, d_bar


# -- inside --------------------------------------------------------------------------------------------------------------
def _inside(at: At, s: Sensor) -> np.ndarray:
    """1 if the reference is in the zone of the site, else 0. Not differentiated."""
    assert s.zone is not None
    apart = at.now.site_position[:, s.ref] - at.now.site_position[:, s.on]
    return inside(s.zone, turn_back(at.now.site_rotation[:, s.on], apart)).astype(float)[:, None]


def _inside_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    """A step does not change with anything."""


RAYS: dict[str, SensorKind] = {
    "rangefinder": SensorKind("site", _rangefinder, _rangefinder_vjp),
    "insidesite": SensorKind("site", _inside, _inside_vjp, cut="above"),
}
