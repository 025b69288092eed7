"""How easily bodies and degrees of freedom move in the reference pose: what the soft law scales its rows with.

MuJoCo derives these once from the pose at rest (invweight0). The inverse of the mass matrix is not formed: the inverse inertia
of each link, as felt by a force on it, follows outwards from its parent's, in linear time.
"""

from __future__ import annotations

from typing import Any

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
            shift = p.anchor[i] - there @ p.anchor[i] if joint.angular else p.axis[i] * x
            own, place = own @ there, place + own @ shift
        R[i], r[i] = (own, place) if above < 0 else (R[above] @ own, r[above] + R[above] @ place)
    return R, r


def _columns(model: Model, i: int, R: np.ndarray, r: np.ndarray) -> np.ndarray:
    """S of joint i in world axes about the root of its tree, which is at the origin; r is from there."""
    joint, p = model.joint_kind(i), model.params
    own = joint.motions(p.axis[i], p.anchor[i])
    if joint.floating:  # shifts along the world's axes, then turns
        own = np.concatenate([own[:, 3:], own[:, :3]], 1)
        own[3:, :3] = R.T
    w, v = R @ own[:3], R @ own[3:]
    return np.concatenate([w, v + hat(r) @ w])


def weights(model: Model, q: np.ndarray | None = None) -> dict[str, Any]:
    """body_weight (nb, 2): of translation and rotation at the centre of mass. dof_weight (nv,), equal within a joint. With
    every joint at zero, or axial joints at q."""
    p, nb = model.params, model.nb
    R, r = poses(model, model.reference if q is None else q)
    root = np.arange(nb)
    for i, above in enumerate(model.parent):
        root[i] = i if above < 0 else root[above]
    r = r - r[root]
    com = r + np.einsum("bij,bj->bi", R, p.com)
    IA, S, U, D = [], [], [np.zeros((6, 0))] * nb, [np.zeros((0, 0))] * nb
    for i in range(nb):
        xx, yy, zz, xy, xz, yz = p.inertia[i]
        C, m = hat(com[i]), p.mass[i]
        J = R[i] @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R[i].T - m * C @ C
        IA.append(np.block([[J, m * C], [-m * C, m * np.eye(3)]]))
        S.append(_columns(model, i, R[i], r[i]))
    for i in reversed(range(nb)):
        left, n = IA[i], S[i].shape[1]
        if n:
            U[i] = IA[i] @ S[i]
            D[i] = _inverse(model, i, S[i].T @ U[i] + p.armature[i] * np.eye(n))
            left = IA[i] - U[i] @ D[i] @ U[i].T
        if model.parent[i] >= 0:
            IA[model.parent[i]] = IA[model.parent[i]] + left
    inverse: list[np.ndarray] = []
    body, dof = np.zeros((nb, 2)), np.zeros(model.nv)
    for i, above in enumerate(model.parent):
        before = inverse[above] if above >= 0 else np.zeros((6, 6))
        P = np.eye(6) - S[i] @ D[i] @ U[i].T
        inverse.append(P @ before @ P.T + S[i] @ D[i] @ S[i].T)
        to_com = np.block([[np.eye(3), np.zeros((3, 3))], [-hat(com[i]), np.eye(3)]])
        A = to_com @ inverse[i] @ to_com.T
        body[i] = np.trace(A[3:, 3:]) / 3, np.trace(A[:3, :3]) / 3
        own = np.diag(D[i] + D[i] @ U[i].T @ before @ U[i] @ D[i])
        for a in range(0, len(own), 3 if len(own) > 1 else 1):
            k = model.joint_v[i] + a
            dof[k : k + 3 if len(own) > 1 else k + 1] = own[a : a + 3].mean()
    return {"body_weight": body, "dof_weight": dof}


def _inverse(model: Model, i: int, D: np.ndarray) -> np.ndarray:
    """Of what the joint of body i feels once all joints beyond it are free."""
    try:
        return np.linalg.inv(D)
    except np.linalg.LinAlgError:
        raise ModelError(
            f"joint '{model.joints[i]}' and those it carries can move together without moving mass: give body "
            f"'{model.bodies[i]}' mass and inertia, or the joint an armature"
        ) from None


def tendon_weights(model: Model, q: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of tendons with all joints at zero, or axial ones at q; and their weights there: moment M^-1 moment. M is
    formed: O(nv^3)."""
    q = model.reference if q is None else q
    p, (R, r), n = model.params, poses(model, q), len(model.tendons)
    J, lengths, scales, radii = np.zeros((n, model.nv)), np.zeros(n), iter(p.piece_scale), iter(p.piece_radius)
    columns = [_world_columns(model, i, R[i], r[i]) for i in range(model.nb)]
    for t, tendon in enumerate(model.tendons):
        for piece, scale in zip(tendon.pieces, scales, strict=False):
            if piece.kind == "joint":
                J[t, model.joint_v[piece.a]] += scale
                lengths[t] += scale * q[model.joint_q[piece.a]]
                next(radii)
                continue
            long, pulls = _pulls(model, piece, float(next(radii)), R, r)
            lengths[t] += scale * long
            for x, b, pull in pulls:
                while b >= 0:
                    S, k = columns[b], model.joint_v[b]
                    J[t, k : k + S.shape[1]] += scale * pull @ (S[3:] - hat(x) @ S[:3])
                    b = model.parent[b]
    return lengths, np.einsum("tk,tk->t", J, np.linalg.solve(_mass_matrix(model, R, r, columns), J.T).T)


def _pulls(model: Model, piece: Piece, radius: float, R: np.ndarray, r: np.ndarray) -> tuple[float, list[Any]]:
    """The length of a piece of a path, and the forces of a pull along it: place, body, force."""

    def placed(s: int) -> tuple[np.ndarray, int]:
        x, b = model.params.site_position[s], model.site_body[s]
        return (x if b < 0 else r[b] + R[b] @ x), b

    (a, body_a), (b, body_b) = placed(piece.a), placed(piece.b)
    if piece.around >= 0:
        c, body_c = placed(piece.around)
        turn = matrix(model.params.site_rotation[piece.around])
        axes = turn if body_c < 0 else R[body_c] @ turn
        side = placed(piece.side)[0] - c if piece.side >= 0 else np.zeros(3)
        with staging_on(NumpyTarget("f64", 1)):
            u, v, s, x, y, z = (Vec3(*(np.array([e]) for e in w)) for w in (a - c, b - c, side, *axes.T))
            sided = np.array([float(piece.side >= 0)])
            shape = Around(piece.kind == "cylinder", (x, y, z), np.array([radius]), s, sided)
            path = path_around(shape, u, v)
            touch, ways = path.touch(), path.directions()
        if touch.on[0]:
            first, last, d0, d1 = (np.array([x[0] for x in y.leaves()]) for y in (touch.first, touch.last, *ways))
            first, last = first + c, last + c
            return float(touch.long[0]), [(a, body_a, -d0), (first, body_c, d0), (last, body_c, -d1), (b, body_b, d1)]
    long = float(np.linalg.norm(b - a))
    d = (b - a) / long if long > 1e-15 else np.array([1.0, 0.0, 0.0])  # as `lines` has it
    return long, [(a, body_a, -d), (b, body_b, d)]


def _world_columns(model: Model, i: int, R: np.ndarray, r: np.ndarray) -> np.ndarray:
    """S of joint i in world axes about the world's origin."""
    S = _columns(model, i, R, r)
    if model.joint_kind(i).floating:  # its shifts are free of the place; its turns are about its own origin
        S[3:, 3:] = hat(r) @ S[:3, 3:]
    return S


def mean_inertia(model: Model, q: np.ndarray) -> float:
    """The mean of the diagonal of the mass matrix with axial joints at q, others at zero."""
    R, r = poses(model, q)
    columns = [_world_columns(model, i, R[i], r[i]) for i in range(model.nb)]
    return float(np.diag(_mass_matrix(model, R, r, columns)).mean())


def _mass_matrix(model: Model, R: np.ndarray, r: np.ndarray, columns: list[np.ndarray]) -> np.ndarray:
    p, M = model.params, np.zeros((model.nv, model.nv))
    for i in range(model.nb):
        k, n = model.joint_v[i], columns[i].shape[1]
        M[k : k + n, k : k + n] += p.armature[i] * np.eye(n)
        xx, yy, zz, xy, xz, yz = p.inertia[i]
        C, m = hat(r[i] + R[i] @ p.com[i]), p.mass[i]
        J = R[i] @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R[i].T - m * C @ C
        I, S, b = np.block([[J, m * C], [-m * C, m * np.eye(3)]]), np.zeros((6, model.nv)), i
        while b >= 0:
            S[:, model.joint_v[b] : model.joint_v[b] + columns[b].shape[1]] = columns[b]
            b = model.parent[b]
        M += S.T @ I @ S
    return M
