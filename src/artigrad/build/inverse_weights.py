"""Inverse weights of bodies and degrees of freedom in the reference pose, which scale the rows of the soft law.

MuJoCo computes these once (invweight0). The inverse of the mass matrix is not formed: the inverse articulated inertia
of each link follows outwards from its parent's, in linear time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..compiler.numpy_target import NumpyTarget
from ..compiler.values import staging_on
from ..errors import ModelError
from ..model.model import Model
from ..model.quaternions import hat, matrix, turn
from ..model.transmissions import Piece
from ..physics.spatial import Vec3
from ..physics.transmissions.wrapping import Around, path_around


def poses(model: Model, q: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Rotations and positions of all bodies with every joint at zero; or axial joints at q."""
    p, R, r = model.params, np.empty((model.nb, 3, 3)), np.empty((model.nb, 3))
    for i, above in enumerate(model.parent):
        own, place, joint = matrix(p.rotation[i]), p.position[i], model.joint_kind(i)
        if q is not None and joint.axial:
            x = q[model.joint_q[i]]
            there = matrix(turn(p.axis[i], x)) if joint.angular else np.eye(3)
            shift = p.axis[i] * (x * joint.travel_of(p, i)) + (p.anchor[i] - there @ p.anchor[i])
            own, place = own @ there, place + own @ shift
        R[i], r[i] = (own, place) if above < 0 else (R[above] @ own, r[above] + R[above] @ place)
    return R, r


def _columns(model: Model, i: int, R: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Motion subspace S of joint i in world axes about the root of its tree, at the origin; r is from there."""
    joint, p = model.joint_kind(i), model.params
    own = joint.motions(p.axis[i], p.anchor[i], joint.travel_of(p, i))
    if joint.floating:  # translations along the world's axes, then rotations
        own = np.concatenate([own[:, 3:], own[:, :3]], 1)
        own[3:, :3] = R.T
    w, v = R @ own[:3], R @ own[3:]
    return np.concatenate([w, v + hat(r) @ w])


class _Factor(NamedTuple):
    """Articulated-body factor, joint by joint.

    Attributes:
        S: Columns of each joint, (6, n).
        U: IA S.
        D: Inverse of S^T IA S.

    Spatial vectors are in world axes, about the root of the tree.
    """

    R: np.ndarray
    r: np.ndarray
    com: np.ndarray
    S: list[np.ndarray]
    U: list[np.ndarray]
    D: list[np.ndarray]


def _factor(model: Model, q: np.ndarray) -> _Factor:
    p, nb = model.params, model.nb
    R, r = poses(model, q)
    root = np.arange(nb)
    for i, above in enumerate(model.parent):
        root[i] = i if above < 0 else root[above]
    r = r - r[root]
    com = r + np.einsum("bij,bj->bi", R, p.com)
    xx, yy, zz, xy, xz, yz = p.inertia.T
    own = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], 1).reshape(nb, 3, 3)
    C, m = np.array([hat(x) for x in com]).reshape(nb, 3, 3), p.mass[:, None, None]
    IA = np.zeros((nb, 6, 6))
    IA[:, :3, :3] = R @ own @ R.transpose(0, 2, 1) - m * C @ C
    IA[:, :3, 3:], IA[:, 3:, :3], IA[:, 3:, 3:] = m * C, -m * C, m * np.eye(3)
    S, U, D = [_columns(model, i, R[i], r[i]) for i in range(nb)], [np.zeros((6, 0))] * nb, [np.zeros((0, 0))] * nb
    for i in reversed(range(nb)):
        left, n = IA[i], S[i].shape[1]
        if n:
            U[i] = IA[i] @ S[i]
            D[i] = _inverse(model, i, S[i].T @ U[i] + p.armature[i] * np.eye(n))
            left = IA[i] - U[i] @ D[i] @ U[i].T
        if model.parent[i] >= 0:
            IA[model.parent[i]] += left
    return _Factor(R, r, com, S, U, D)


def weights(model: Model, q: np.ndarray | None = None) -> dict[str, Any]:
    """Return the inverse weights of bodies and degrees of freedom in the reference pose.

    Args:
        model: Model.
        q: Positions of axial joints, (nq,), m or rad; by default `model.reference`.

    Returns:
        body_invweight0 (nb, 2), of translation (1/kg) and rotation (1/(kg m^2)) at the center of mass, and dof_invweight0
        (nv,), equal within a joint.
    """
    f, nb = _factor(model, model.reference if q is None else q), model.nb
    inverse = np.zeros((nb, 6, 6))
    dof = np.zeros(model.nv)
    for i, above in enumerate(model.parent):
        before, (S, U, D) = (inverse[above] if above >= 0 else np.zeros((6, 6))), (f.S[i], f.U[i], f.D[i])
        P = np.eye(6) - S @ D @ U.T
        inverse[i] = P @ before @ P.T + S @ D @ S.T
        own = np.diag(D + D @ U.T @ before @ U @ D)
        for a in range(0, len(own), 3 if len(own) > 1 else 1):
            k = model.joint_v[i] + a
            dof[k : k + 3 if len(own) > 1 else k + 1] = own[a : a + 3].mean()
    to_com = np.tile(np.eye(6), (nb, 1, 1))
    to_com[:, 3:, :3] = -np.array([hat(x) for x in f.com]).reshape(nb, 3, 3)
    A = to_com @ inverse @ to_com.transpose(0, 2, 1)
    body = np.stack([np.trace(A[:, 3:, 3:], axis1=1, axis2=2) / 3, np.trace(A[:, :3, :3], axis1=1, axis2=2) / 3], 1)
    return {"body_invweight0": body, "dof_invweight0": dof}


def _inverse(model: Model, i: int, D: np.ndarray) -> np.ndarray:
    """Inverse inertia at the joint of body i with all joints beyond it free."""
    try:
        return np.linalg.inv(D)
    except np.linalg.LinAlgError:
        raise ModelError(
            f"joint '{model.joints[i]}' and those it carries can move together without moving mass: give body "
            f"'{model.bodies[i]}' mass and inertia, or the joint an armature"
        ) from None


def tendon_lengths(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the lengths of tendons with axial joints at q, others at zero."""
    return _Pulls(model, q).lengths


def tendon_weights(model: Model) -> np.ndarray:
    """Return moment M^-1 moment of each tendon in the reference pose, along the joints that move it."""
    f, pulls = _factor(model, model.reference), _Pulls(model, model.reference)
    out = np.zeros(len(model.tendons))
    for t, moments in enumerate(pulls.moments(f)):
        below: dict[int, Any] = {}  # force on each body of its subtree
        while moments or below:
            i = max(*moments, *below, -1)
            e = moments.pop(i, np.zeros(f.S[i].shape[1])) - f.S[i].T @ (p := below.pop(i, np.zeros(6)))
            out[t] += e @ f.D[i] @ e
            if model.parent[i] >= 0:
                below[model.parent[i]] = below.get(model.parent[i], 0.0) + p + f.U[i] @ (f.D[i] @ e)
    return out


class _Pulls:
    """Lengths of tendons with axial joints at q, others at zero, and the forces of a unit pull along each."""

    def __init__(self, model: Model, q: np.ndarray):
        self.model, self.q = model, q
        p, (self.R, self.r) = model.params, poses(model, q)
        self.pieces = [piece for tendon in model.tendons for piece in tendon.pieces]
        self.of = np.repeat(np.arange(len(model.tendons)), [len(tendon.pieces) for tendon in model.tendons])
        self.at = {k: self._place(s) for s in range(model.ns) for k in (s,)} if self.pieces else {}
        self.scale = p.piece_scale[: len(self.pieces)]
        self.forces: list[list[tuple[np.ndarray, int, np.ndarray]]] = [[] for _ in self.pieces]
        long = np.zeros(len(self.pieces))
        wrapped = self._wrapped()
        for n, piece in enumerate(self.pieces):
            if piece.kind == "joint":
                long[n] = q[model.joint_q[piece.a]]
            elif n in wrapped:
                long[n], self.forces[n] = wrapped[n]
            else:
                long[n], self.forces[n] = self._straight(piece)
        self.lengths = np.zeros(len(model.tendons))
        np.add.at(self.lengths, self.of, self.scale * long)

    def _place(self, site: int) -> tuple[np.ndarray, int]:
        """Position of a site, and its body."""
        x, b = self.model.params.site_position[site], self.model.site_body[site]
        return (x if b < 0 else self.r[b] + self.R[b] @ x), b

    def _straight(self, piece: Piece) -> tuple[float, list[Any]]:
        (a, body_a), (b, body_b) = self.at[piece.a], self.at[piece.b]
        long = float(np.linalg.norm(b - a))
        d = (b - a) / long if long > 1e-15 else np.array([1.0, 0.0, 0.0])  # as in a step
        return long, [(a, body_a, -d), (b, body_b, d)]

    def _wrapped(self) -> dict[int, tuple[float, list[Any]]]:
        """Length and forces of all segments that wrap around a shape, of one kind at once."""
        out: dict[int, tuple[float, list[Any]]] = {}
        for kind in ("sphere", "cylinder"):
            own = [n for n, piece in enumerate(self.pieces) if piece.kind == kind and piece.around >= 0]
            if not own:
                continue
            pieces, radius = [self.pieces[n] for n in own], self.model.params.piece_radius[own]
            a, b, c = (np.array([self.at[getattr(p, end)][0] for p in pieces]) for end in ("a", "b", "around"))
            side = np.array([self.at[p.side][0] if p.side >= 0 else self.at[p.around][0] for p in pieces]) - c
            turn = np.array([self._axes(p.around) for p in pieces])
            with staging_on(NumpyTarget("f64", len(own))):
                u, v, s, *axes = (Vec3(*x.T) for x in (a - c, b - c, side, *turn.transpose(2, 0, 1)))
                sided = np.array([float(p.side >= 0) for p in pieces])
                path = path_around(Around(kind == "cylinder", (axes[0], axes[1], axes[2]), radius, s, sided), u, v)
                touch, ways = path.touch(), path.directions()
            first, last, d0, d1 = (np.stack(x.leaves(), 1) for x in (touch.first, touch.last, *ways))
            for k in np.flatnonzero(np.broadcast_to(touch.on, len(own))).tolist():
                bodies = [self.at[getattr(pieces[k], end)][1] for end in ("a", "around", "around", "b")]
                places, pulls = (a[k], first[k] + c[k], last[k] + c[k], b[k]), (-d0[k], d0[k], -d1[k], d1[k])
                out[own[k]] = float(touch.long[k]), list(zip(places, bodies, pulls, strict=True))
        return out

    def _axes(self, site: int) -> np.ndarray:
        turn, body = matrix(self.model.params.site_rotation[site]), self.model.site_body[site]
        return turn if body < 0 else self.R[body] @ turn

    def moments(self, f: _Factor) -> Iterator[dict[int, np.ndarray]]:
        """Moments of each tendon, by the bodies of the joints that it moves."""
        start, ends = self.r - f.r, np.searchsorted(self.of, np.arange(len(self.model.tendons) + 1))
        for t in range(len(self.model.tendons)):
            out: dict[int, np.ndarray] = {}
            for n in range(ends[t], ends[t + 1]):
                piece, scale = self.pieces[n], self.scale[n]
                if piece.kind == "joint":
                    out[piece.a] = out.get(piece.a, 0.0) + scale
                for x, b, pull in self.forces[n]:
                    while b >= 0:
                        S = f.S[b]
                        own = scale * (pull @ S[3:] + np.cross(x - start[b], pull) @ S[:3])
                        out[b] = out.get(b, 0.0) + own
                        b = self.model.parent[b]
            yield {b: np.atleast_1d(x) for b, x in out.items()}


def _world_columns(model: Model, i: int, R: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Motion subspace S of joint i in world axes about the world's origin."""
    S = _columns(model, i, R, r)
    if model.joint_kind(
        i
    ).floating:  # its translations do not depend on the position; its rotations are about its origin
        S[3:, 3:] = hat(r) @ S[:3, 3:]
    return S


def mean_inertia(model: Model, q: np.ndarray) -> float:
    """Mean diagonal entry of the mass matrix with axial joints at q, others at zero."""
    p, (R, r) = model.params, poses(model, q)
    I, total = np.zeros((model.nb, 6, 6)), 0.0
    for i in reversed(range(model.nb)):
        xx, yy, zz, xy, xz, yz = p.inertia[i]
        C, m = hat(r[i] + R[i] @ p.com[i]), p.mass[i]
        J = R[i] @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R[i].T - m * C @ C
        I[i] += np.block([[J, m * C], [-m * C, m * np.eye(3)]])
        S = _world_columns(model, i, R[i], r[i])
        total += np.sum(S * (I[i] @ S)) + p.armature[i] * S.shape[1]
        if model.parent[i] >= 0:
            I[model.parent[i]] += I[i]
    return float(total / model.nv)
