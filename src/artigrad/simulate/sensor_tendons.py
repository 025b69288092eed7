"""What spatial tendons press on bodies with: their forces along their paths, for sensors of forces; and the adjoint.

A force f along a tendon acts at every end of its pieces: on the far end of a straight piece  scale f d,  d the direction of
the piece, on the near one the opposite; around a shape also on the shape, where the string touches it. f is that of its
spring, damper and actuators, and of its rows: limits, dry friction, couplings. As in MuJoCo, tendons that are sums of joint
positions press on nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..compiler.numpy_target import NumpyTarget
from ..compiler.values import staging_on
from ..model.transmissions import Piece
from ..physics.spatial import Vec3
from ..physics.transmissions.wrapping import Around, path_around
from .sensor_kind import At

NO_LENGTH = 1e-15


class Press(NamedTuple):
    """A force on a body at a place, both in the world, (B, 3)."""

    body: int
    force: np.ndarray
    place: np.ndarray


def presses(at: At) -> list[Press]:
    """What all spatial tendons press with."""
    return [press for t, n in _pieces(at) for press in _Piece(at, n, _force(at, t)).presses()]


def presses_vjp(at: At, bars_of: Callable[[Press], tuple[np.ndarray, np.ndarray]], bars: At) -> None:
    """From the cotangents of force and place of each, as `bars_of` gives them."""
    for t, n in _pieces(at):
        piece = _Piece(at, n, _force(at, t))
        _add_force_bar(at, t, piece.vjp([bars_of(press) for press in piece.presses()], bars), bars)


def paths(model: Any) -> list[int]:
    """The spatial tendons of a model."""
    return [t for t, tendon in enumerate(model.tendons) if not tendon.fixed]


def _pieces(at: At) -> list[tuple[int, int]]:
    """(tendon, number of the piece among all) of the pieces of spatial tendons."""
    firsts = np.cumsum([0, *(len(tendon.pieces) for tendon in at.model.tendons)])
    return [(t, n) for t in paths(at.model) for n in range(firsts[t], firsts[t + 1])]


# -- forces along tendons ----------------------------------------------------------------------------------------------------
def _actuators(at: At, t: int) -> list[int]:
    return [j for j, on in enumerate(at.model.transmissions) if on.kind == "tendon" and on.a == t]


def _force(at: At, t: int) -> np.ndarray:
    """All along tendon t, (B,)"""
    assert at.felt is not None and at.driving is not None
    j = _actuators(at, t)
    pulled = (at.driving.force[:, j] * at.params["gear"][:, j]).sum(1)
    return at.felt.pulled[:, t] + at.driving.tendon_force[:, t] + pulled


def _add_force_bar(at: At, t: int, bar: np.ndarray, bars: At) -> None:
    assert bars.felt is not None and bars.driving is not None and at.driving is not None
    j = _actuators(at, t)
    bars.felt.pulled[:, t] += bar
    bars.driving.tendon_force[:, t] += bar
    bars.driving.force[:, j] += bar[:, None] * at.params["gear"][:, j]
    bars.params["gear"][:, j] += bar[:, None] * at.driving.force[:, j]


# -- pieces of paths ---------------------------------------------------------------------------------------------------------
class _Piece:
    """A piece of a path with a force along it: its legs, from one place to another on two bodies, (B, ...) each."""

    def __init__(self, at: At, n: int, force: np.ndarray):
        self.at, self.n, self.force = at, n, force
        self.of: Piece = [piece for tendon in at.model.tendons for piece in tendon.pieces][n]
        self.pull = (at.params["piece_scale"][:, n] * force)[:, None]
        x = at.now.site_position
        self.a, self.b, self.wraps = x[:, self.of.a], x[:, self.of.b], np.zeros(len(force), bool)
        if self.of.around >= 0:
            self._wrap(x)

    def _wrap(self, x: np.ndarray) -> None:
        at, of = self.at, self.of
        self.centre, R = x[:, of.around], at.now.site_rotation[:, of.around]
        side = x[:, of.side] - self.centre if of.side >= 0 else 0.0 * self.centre
        sided, radius = (
            np.full(len(x), float(of.side >= 0)),
            np.broadcast_to(at.params["piece_radius"][:, self.n], len(x)),
        )
        with staging_on(NumpyTarget("f64", len(x))):
            axes = _vec(R[..., 0]), _vec(R[..., 1]), _vec(R[..., 2])
            shape = Around(of.kind == "cylinder", axes, radius.astype(float), _vec(side), sided)
            self.path = path_around(shape, _vec(self.a - self.centre), _vec(self.b - self.centre))
            touch = self.path.touch()
        self.wraps = np.broadcast_to(np.asarray(touch.on), len(x))
        self.first, self.last = (self.centre + _array(p, len(x)) for p in (touch.first, touch.last))

    def _legs(self) -> list[tuple[int, int, np.ndarray, np.ndarray, Any]]:
        """(body, body, place, place, where it counts)"""
        body, of = (*self.at.model.site_body, -1), self.of
        a, b, shape = body[of.a], body[of.b], body[of.around]
        straight = (a, b, self.a, self.b, ~self.wraps[:, None])
        if of.around < 0:
            return [straight]
        on = self.wraps[:, None]
        return [straight, (a, shape, self.a, self.first, on), (shape, b, self.last, self.b, on)]

    def presses(self) -> list[Press]:
        out = []
        for one, two, start, end, on in self._legs():
            d, _ = _direction(start, end)
            F = np.where(on, self.pull * d, 0.0)
            out += [Press(one, -F, start), Press(two, F, end)]
        return out

    def vjp(self, of_presses: list[tuple[np.ndarray, np.ndarray]], bars: At) -> np.ndarray:
        """The cotangent of the force along the tendon, for those of all presses."""
        pull_bar, ends_bar = 0.0, []
        for k, (_, _, start, end, on) in enumerate(self._legs()):
            (F0, p0), (F1, p1) = of_presses[2 * k : 2 * k + 2]
            d, size = _direction(start, end)
            d_bar = np.where(on, self.pull * (F1 - F0), 0.0)
            pull_bar = pull_bar + np.where(on, d * (F1 - F0), 0.0).sum(1)
            turn_bar = np.where(size > NO_LENGTH, d_bar - d * (d * d_bar).sum(1, keepdims=True), 0.0)
            along = turn_bar / np.maximum(size, NO_LENGTH)
            ends_bar.append((np.where(on, p0, 0.0) - along, np.where(on, p1, 0.0) + along))
        a_bar, b_bar = ends_bar[0]
        x_bar, n, of = bars.now.site_position, self.n, self.of
        if of.around >= 0:
            (a1, first_bar), (last_bar, b1) = ends_bar[1:]
            with staging_on(NumpyTarget("f64", len(self.force))):
                found = self.path.vjp(_vec(first_bar), _vec(last_bar))
            u_bar, v_bar, axis_bar = (_array(y, len(self.force)) for y in (found.u, found.v, found.axis))
            a_bar, b_bar = a_bar + a1 + u_bar, b_bar + b1 + v_bar
            x_bar[:, of.around] += first_bar + last_bar - u_bar - v_bar
            bars.now.site_rotation[:, of.around, :, 2] += axis_bar
            bars.params["piece_radius"][:, n] += np.broadcast_to(found.radius, len(self.force))
        x_bar[:, of.a] += a_bar
        x_bar[:, of.b] += b_bar
        bars.params["piece_scale"][:, n] += pull_bar * self.force
        return pull_bar * self.at.params["piece_scale"][:, n]


def _direction(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Direction and length (B, 1); no length counts as along x."""
    d = end - start
    size = np.linalg.norm(d, axis=1, keepdims=True)
    return np.where(size > NO_LENGTH, d / np.maximum(size, NO_LENGTH), [1.0, 0.0, 0.0]), size


def _vec(x: np.ndarray) -> Vec3:
    return Vec3(*np.ascontiguousarray(x.T, float))


def _array(x: Vec3, size: int) -> np.ndarray:
    return np.stack([np.broadcast_to(y, size) for y in x.leaves()], 1)
