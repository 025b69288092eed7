"""Inverse weights of bodies, degrees of freedom and tendons (MuJoCo's invweight0) computed from parameters, and their adjoint.

    w = j M^-1 j^T        j: a row of the Jacobian of a translation, rotation or length, M: mass matrix, in the reference
    pose

The weight of a body is the mean over three directions at its center of mass; that of a ball or free joint is the mean over
its three rotations or translations. At fixed x = M^-1 j^T the derivative of w is that of 2 j x - x^T M x. As in MuJoCo, a
body whose joints only slide along its own axes, on a fixed parent, has the inverse of its mass without armature, where the
model was loaded with that value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compiler.numpy_target import NumpyTarget
from ..compiler.values import staging_on
from ..errors import InputError
from ..model.params import Params
from ..model.sliding_bodies import sliding_bodies
from ..model.transmissions import Piece
from ..physics.spatial import Vec3
from ..physics.transmissions.wrapping import Around, path_around
from .reference_pose import PoseBars, ReferencePose, back, matrices, matrices_vjp

NAMES = ("body_invweight0", "dof_invweight0", "tendon_invweight0")
SIX = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
CHUNK = 256  # sets of parameters at a time


def reweighted(params: Params) -> Params:
    """Return parameters with inverse weights computed from the other parameters."""
    found = [ReferenceWeights(part).values() for part in _parts(params)]
    values = {name: np.concatenate([x[name] for x in found]) for name in NAMES}
    if params.batch is None:
        values = {name: x[0] for name, x in values.items()}
    return params.replace(unchecked=not params.checked, **values)


def reweighted_vjp(params: Params, bar: Params) -> Params:
    """Return the cotangent of params from that of `reweighted(params)`.

    Cotangents of inverse weights are propagated to masses, frames, axes and armatures; those of the given weights are zero.
    """
    if bar.model is not params.model or bar.flat.ndim < params.flat.ndim:
        raise InputError("the gradient is of these params: of the same model, with as many sets")
    flat = np.array(bar.flat)
    sets = flat.reshape(-1, flat.shape[-1])
    given = np.broadcast_to(params.flat, flat.shape).reshape(sets.shape)
    for first in range(0, len(sets), CHUNK):
        part = slice(first, first + CHUNK)
        own = Params(params.model, sets[part])
        more = ReferenceWeights(Params(params.model, given[part])).vjp({name: np.array(own[name]) for name in NAMES})
        changed = own.replace(unchecked=True, **{name: own[name] + x for name, x in more.items()})
        sets[part] = changed.replace(unchecked=True, **{name: 0.0 * own[name] for name in NAMES}).flat
    return Params(params.model, flat)


def _parts(params: Params) -> list[Params]:
    flat = params.flat.reshape(-1, params.flat.shape[-1])
    return [Params(params.model, flat[k : k + CHUNK]) for k in range(0, len(flat), CHUNK)]


class Pull(NamedTuple):
    """Force per unit of tension at a point of a body, world axes.

    Attributes:
      point: Point of application (B, 3), m.
      body: Body, -1 for the world.
      force: Force (B, 3).
    """

    point: np.ndarray
    body: int
    force: np.ndarray


class ReferenceWeights:
    """Inverse weights in the reference pose, for several sets of parameters at once.

    Args:
      params: One set or several, (B, n).
    """

    def __init__(self, params: Params):
        self.pose = pose = ReferencePose(params)
        self.model, self.p = params.model, pose.p
        self.shift = pose.moves[:, None] * (pose.v[:, None] + np.cross(pose.w[:, None], pose.com[..., None], axis=2))
        self.turn = pose.moves[:, None] * pose.w[:, None]
        self.body_of = np.repeat(np.arange(self.model.nb), [self.model.joint_kind(i).nv for i in range(self.model.nb)])
        inertia = np.empty((len(pose.com), self.model.nb, 3, 3))
        for k, (a, b) in enumerate(SIX):
            inertia[..., a, b] = inertia[..., b, a] = self.p.inertia[..., k]
        self.inertia = pose.R @ inertia @ np.swapaxes(pose.R, -1, -2)
        M = _squared(self.shift, self.p.mass[..., None, None] * self.shift) + _squared(
            self.turn, self.inertia @ self.turn
        )
        M[:, range(self.model.nv), range(self.model.nv)] += self.p.armature[:, self.body_of]
        self.inverse = np.linalg.inv(M)
        self.sliding = sliding_bodies(self.model)
        self.paths = [[_PathPiece(pose, piece, at) for piece, at in own] for own in self._pieces()]
        self.moments = self._moments()

    def _pieces(self) -> list[list[tuple[Piece, int]]]:
        out, at = [], 0
        for tendon in self.model.tendons:
            out.append([(piece, at + k) for k, piece in enumerate(tendon.pieces)])
            at += len(tendon.pieces)
        return out

    def _groups(self) -> list[slice]:
        """Return slices of degrees of freedom that share a weight."""
        out = []
        for i in range(self.model.nb):
            joint, k = self.model.joint_kind(i), self.model.joint_v[i]
            step = 3 if joint.quaternion else 1
            out += [slice(a, a + step) for a in range(k, k + joint.nv, step)]
        return out

    def _moments(self) -> np.ndarray:
        """Return derivatives of tendon lengths with respect to joint positions, (B, tendons, nv)."""
        pose, out = self.pose, np.zeros((len(self.p.flat), len(self.model.tendons), self.model.nv))
        for t, own in enumerate(self.paths):
            for path in own:
                scale = self.p.piece_scale[:, path.at]
                if path.joint >= 0:
                    out[:, t, path.joint] += scale
                for x, b, f in path.pulls:
                    if b >= 0:
                        columns = pose.v + np.cross(pose.w, x[..., None], axis=1)
                        out[:, t] += scale[:, None] * pose.moves[b] * np.einsum("bi,bik->bk", f, columns)
        return out

    def values(self) -> dict[str, np.ndarray]:
        """Return inverse weights by field: body (B, nb, 2), dof (B, nv), tendon (B, tendons)."""
        inverse = self.inverse
        body = [np.sum(_times(J, inverse) * J, axis=(2, 3)) / 3 for J in (self.shift, self.turn)]
        dof = np.einsum("bkk->bk", inverse).copy()
        for group in self._groups():
            dof[:, group] = dof[:, group].mean(1, keepdims=True)
        weight = np.stack(body, -1)
        for i, own in self.sliding.items():
            weight[:, i] = np.stack([1.0 / self.p.mass[:, i], np.zeros(len(dof))], -1)
            dof[:, own] = 1.0 / self.p.mass[:, [i]]
        tendon = np.sum((self.moments @ inverse) * self.moments, -1)
        return dict(zip(NAMES, (weight, dof, tendon), strict=True))

    def vjp(self, bars: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return cotangents of the parameters that the weights depend on, by field, from those of the weights."""
        pose, model, p, inverse = self.pose, self.model, self.p, self.inverse
        out = PoseBars(pose)
        body, dof, tendon = (bars[name] for name in NAMES)
        for i, own in self.sliding.items():
            out.out["mass"][:, i] -= (body[:, i, 0] + dof[:, own].sum(1)) / p.mass[:, i] ** 2
            body[:, i], dof[:, own] = 0.0, 0.0
        for group in self._groups():
            dof[:, group] = dof[:, group].mean(1, keepdims=True)
        a, c = body[..., 0] / 3, body[..., 1] / 3
        K = _squared(self.shift, a[..., None, None] * self.shift) + _squared(self.turn, c[..., None, None] * self.turn)
        K += np.swapaxes(self.moments, 1, 2) @ (tendon[..., None] * self.moments)
        K[:, range(model.nv), range(model.nv)] += dof
        M_bar = -inverse @ K @ inverse
        for k, b in enumerate(self.body_of):
            out.out["armature"][:, b] += M_bar[:, k, k]
        shift_M, turn_M = (_times(J, M_bar) for J in (self.shift, self.turn))
        out.out["mass"] += np.einsum("bikm,bikm->bi", shift_M, self.shift)
        inertia_bar = np.einsum("bikm,bilm->bikl", turn_M, self.turn)
        self._inertia_vjp(out, inertia_bar)
        weighted = [_times(J, inverse) for J in (self.shift, self.turn)]
        shift_bar = 2 * (a[..., None, None] * weighted[0] + p.mass[..., None, None] * shift_M)
        turn_bar = 2 * (c[..., None, None] * weighted[1] + self.inertia @ turn_M)
        shift_bar, turn_bar = shift_bar * pose.moves[:, None], turn_bar * pose.moves[:, None]
        out.v += shift_bar.sum(1)
        out.w += (turn_bar + np.cross(pose.com[..., None], shift_bar, axis=2)).sum(1)
        out.com += np.cross(shift_bar, pose.w[:, None], axis=2).sum(-1)
        moment_bar = 2 * tendon[..., None] * (self.moments @ inverse)
        for t, own_paths in enumerate(self.paths):
            for path in own_paths:
                path.vjp(out, moment_bar[:, t])
        out.pull_back()
        return out.out

    def _inertia_vjp(self, out: PoseBars, bar: np.ndarray) -> None:
        """Add cotangents of inertias and rotations for those of inertias in world axes."""
        R = self.pose.R
        own = np.swapaxes(R, -1, -2) @ bar @ R
        for k, (a, b) in enumerate(SIX):
            out.out["inertia"][..., k] += own[..., a, b] * (1.0 if a == b else 2.0)
        A = self.inertia @ bar - bar @ self.inertia
        out.turn -= 2 * np.stack([A[..., 2, 1], A[..., 0, 2], A[..., 1, 0]], -1)


class _PathPiece:
    """One segment of a tendon path: a joint with a coefficient, or a line between sites, possibly around a wrapping geometry.

    Attributes:
      joint: Degree of freedom of a joint segment, -1 for a line.
      pulls: Forces of unit tension of a line.
    """

    def __init__(self, pose: ReferencePose, piece: Piece, at: int):
        self.pose, self.piece, self.at, self.joint = pose, piece, at, -1
        self.pulls: list[Pull] = []
        if piece.kind == "joint":
            self.joint = pose.model.joint_v[piece.a]
            return
        body, x = pose.model.site_body, pose.sites
        (a, b), (self.body_a, self.body_b) = (x[:, piece.a], x[:, piece.b]), (body[piece.a], body[piece.b])
        straight = b - a
        self.length = np.maximum(np.linalg.norm(straight, axis=1, keepdims=True), 1e-15)
        d = straight / self.length
        self.wraps = np.zeros(len(d), bool)
        if piece.around >= 0:
            self._wrap(a, b, d)
        else:
            self.pulls = [Pull(a, self.body_a, -d), Pull(b, self.body_b, d)]

    def _wrap(self, a: np.ndarray, b: np.ndarray, d: np.ndarray) -> None:
        pose, piece = self.pose, self.piece
        self.body_c = pose.model.site_body[piece.around]
        turn = matrices(pose.p.site_rotation[:, piece.around])
        self.axes = turn if self.body_c < 0 else pose.R[:, self.body_c] @ turn
        c = pose.sites[:, piece.around]
        side = pose.sites[:, piece.side] - c if piece.side >= 0 else np.zeros_like(c)
        with staging_on(NumpyTarget("f64", len(c))):
            u, v, s, *axes = (Vec3(*w.T) for w in (a - c, b - c, side, *np.moveaxis(self.axes, -1, 0)))
            sided = np.full(len(c), float(piece.side >= 0))
            shape = Around(
                piece.kind == "cylinder", (axes[0], axes[1], axes[2]), pose.p.piece_radius[:, self.at].copy(), s, sided
            )
            self.path = path_around(shape, u, v)
            touch = self.path.touch()
        self.wraps = np.broadcast_to(np.asarray(touch.on, bool), len(c))
        first, last = (c + np.stack(np.broadcast_arrays(*x.leaves()), -1) for x in (touch.first, touch.last))
        self.first, self.last = first, last
        self.near, self.far = (
            np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-15) for x in (first - a, b - last)
        )
        d0, d1 = (first - a) / self.near, (b - last) / self.far
        on = self.wraps[:, None]
        self.d0, self.d1 = np.where(on, d0, d), np.where(on, d1, d)
        none = np.where(on, 1.0, 0.0)
        self.pulls = [Pull(a, self.body_a, -self.d0), Pull(first, self.body_c, none * d0)]
        self.pulls += [Pull(last, self.body_c, -none * d1), Pull(b, self.body_b, self.d1)]

    def vjp(self, out: PoseBars, bar: np.ndarray) -> None:
        """Add cotangents of poses and parameters for the cotangent (B, nv) of the moment of the tendon."""
        pose, scale = self.pose, self.pose.p.piece_scale[:, self.at, None]
        if self.joint >= 0:
            out.out["piece_scale"][:, self.at] += bar[:, self.joint]
            return
        points, forces = [], []
        for x, b, f in self.pulls:
            own = bar * pose.moves[b] if b >= 0 else np.zeros_like(bar)
            w, v = (np.einsum("bik,bk->bi", y, own) for y in (pose.w, pose.v))
            forces.append(v + np.cross(w, x))
            points.append(scale * np.cross(f, w))
            out.out["piece_scale"][:, self.at] += np.sum(f * forces[-1], 1)
            out.v += scale[..., None] * f[..., None] * own[:, None]
            out.w += scale[..., None] * np.cross(x, f)[..., None] * own[:, None]
            forces[-1] = scale * forces[-1]
        a_bar, b_bar = points[0], points[-1]
        if len(self.pulls) == 2:
            e = _normalized_vjp(self.pulls[1].force, self.length, forces[1] - forces[0])
            a_bar, b_bar = a_bar - e, b_bar + e
        else:
            a_more, b_more = self._wrapped_vjp(out, points, forces)
            a_bar, b_bar = a_bar + a_more, b_bar + b_more
        out.sites[:, self.piece.a] += a_bar
        out.sites[:, self.piece.b] += b_bar

    def _wrapped_vjp(self, out: PoseBars, points: Any, forces: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts of the cotangents of both end sites that come from the directions of the segments."""
        pose, on = self.pose, self.wraps[:, None]
        e0 = np.where(on, _normalized_vjp(self.d0, self.near, forces[1] - forces[0]), 0.0)
        e1 = np.where(on, _normalized_vjp(self.d1, self.far, forces[3] - forces[2]), 0.0)
        free = np.where(on, 0.0, _normalized_vjp(self.d0, self.length, forces[3] - forces[0]))
        first_bar, last_bar = (np.where(on, x, 0.0) for x in (points[1] + e0, points[2] - e1))
        with staging_on(NumpyTarget("f64", len(e0))):
            found = self.path.vjp(Vec3(*first_bar.T), Vec3(*last_bar.T))
            u, v, axis = (np.stack(np.broadcast_arrays(*x.leaves(), e0[:, 0])[:3], -1) for x in found[:3])
            radius = np.broadcast_to(found.radius, len(e0))
        u, v, axis = (np.where(on, x, 0.0) for x in (u, v, axis))
        out.sites[:, self.piece.around] += first_bar + last_bar - u - v
        out.out["piece_radius"][:, self.at] += np.where(self.wraps, radius, 0.0)
        turn = np.cross(self.axes[..., 2], axis)
        if self.body_c >= 0:
            out.turn[:, self.body_c] += turn
            turn = back(pose.R[:, self.body_c], turn)
        around = self.piece.around
        out.out["site_rotation"][:, around] += matrices_vjp(pose.p.site_rotation[:, around], turn)
        return u - e0 - free, v + e1 + free


def _squared(J: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return sum_i J_i^T K_i (B, nv, nv) of arrays (B, nb, 3, nv)."""
    rows = len(J), 3 * J.shape[1], J.shape[-1]
    return np.swapaxes(J.reshape(rows), 1, 2) @ K.reshape(rows)


def _times(J: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return J_i M (B, nb, 3, nv) of arrays (B, nb, 3, nv) and (B, nv, nv)."""
    return (J.reshape(len(J), 3 * J.shape[1], J.shape[-1]) @ M).reshape(J.shape)


def _normalized_vjp(d: np.ndarray, length: np.ndarray, bar: np.ndarray) -> np.ndarray:
    """Return the cotangent of x from that of d = x/|x|."""
    return (bar - d * np.sum(d * bar, 1, keepdims=True)) / length
