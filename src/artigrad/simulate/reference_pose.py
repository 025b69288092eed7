"""Bodies, joints and sites in the reference pose for several sets of parameters at once, and the adjoint.

All vectors are in world axes. A joint has one column per degree of freedom: its angular velocity `w`, and the velocity `v`
of the point at the world's origin, both for unit joint velocity. The adjoint accumulates a torque and a force per body: the
cotangents of a rotation about the origin of its frame, and of that origin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.params import Params
from ..physics.joints.table import JOINTS

AXES = np.eye(3)


def matrices(q: np.ndarray) -> np.ndarray:
    """Return rotation matrices (..., 3, 3) of quaternions (..., 4) with any norm."""
    w, x, y, z = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, -1) for row in rows], -2)


def matrices_vjp(q: np.ndarray, turn_bar: np.ndarray) -> np.ndarray:
    """Return the cotangent of q from that of a rotation vector, in the axes of the frame that R maps to."""
    length = np.linalg.norm(q, axis=-1, keepdims=True)
    w, v = q[..., :1] / length, q[..., 1:] / length
    first = -2 * np.sum(turn_bar * v, -1, keepdims=True)
    return np.concatenate([first, 2 * (w * turn_bar - np.cross(v, turn_bar))], -1) / length


def apply(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    """R x"""
    return np.einsum("...ij,...j->...i", R, x)


def back(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    """R^T x"""
    return np.einsum("...ij,...i->...j", R, x)


class ReferencePose:
    """Kinematics in the reference pose.

    Attributes:
      R: Rotations of bodies, (B, nb, 3, 3).
      r: Origins of body frames, m, (B, nb, 3).
      com: Centers of mass, m, (B, nb, 3).
      sites: Positions of sites, m, (B, ns, 3).
      w, v: Columns of joints, (B, 3, nv).
      moves: 1 where a degree of freedom moves a body, (nb, nv).
    """

    def __init__(self, params: Params):
        model = self.model = params.model
        flat = params.flat.reshape(-1, params.flat.shape[-1])
        self.p = Params(model, flat)
        count, p = len(flat), self.p
        self.own, self.R = (np.empty((count, model.nb, 3, 3)) for _ in range(2))
        self.place, self.r = (np.empty((count, model.nb, 3)) for _ in range(2))
        self.axis = p.axis / np.maximum(np.linalg.norm(p.axis, axis=-1, keepdims=True), 1e-300)
        self.w, self.v = np.zeros((count, 3, model.nv)), np.zeros((count, 3, model.nv))
        self.moves = np.zeros((model.nb, model.nv))
        self.Q = matrices(p.rotation)
        for i, above in enumerate(model.parent):
            self.own[:, i], self.place[:, i] = self._placed(i)
            if above < 0:
                self.R[:, i], self.r[:, i] = self.own[:, i], self.place[:, i]
            else:
                self.moves[i] = self.moves[above]
                self.R[:, i] = self.R[:, above] @ self.own[:, i]
                self.r[:, i] = self.r[:, above] + apply(self.R[:, above], self.place[:, i])
            self._move(i)
        self.com = self.r + apply(self.R, p.com)
        self.sites = self._on(p.site_position)

    def _at(self, i: int) -> float:
        """Return the coordinate of the joint of body i in the reference pose; 0 for joints with several axes."""
        return float(self.model.reference[self.model.joint_q[i]]) if self.model.joint_kind(i).axial else 0.0

    def _turned(self, i: int, x: float) -> np.ndarray:
        half = np.full((len(self.axis), 1), x / 2)
        return matrices(np.concatenate([np.cos(half), np.sin(half) * self.axis[:, i]], -1))

    def _placed(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rotation and position of body i in the frame of its parent."""
        p, x, Q = self.p, self._at(i), self.Q[:, i]
        if not x:
            return Q, p.position[:, i]
        if not self.model.joint_kind(i).angular:
            return Q, p.position[:, i] + x * apply(Q, self.axis[:, i])
        T, anchor, along = self._turned(i, x), p.anchor[:, i], x * self._travel(i) * self.axis[:, i]
        return Q @ T, p.position[:, i] + apply(Q, along + (anchor - apply(T, anchor)))

    def _travel(self, i: int) -> Any:
        """Travel of joint i (B, 1), or of all sets."""
        return np.asarray(self.model.joint_kind(i).travel_of(self.p, i))[..., None]

    def _move(self, i: int) -> None:
        """Write the columns of the joint of body i."""
        joint, k, R = self.model.joint_kind(i), self.model.joint_v[i], self.R[:, i]
        self.moves[i, k : k + joint.nv] = 1.0
        if joint.floating:
            self.v[:, :, k : k + 3] = AXES
            k += 3
        if joint.quaternion or joint.angular:
            own = R if joint.quaternion else apply(R, self.axis[:, i])[..., None]
            n = own.shape[-1]
            self.w[:, :, k : k + n] = own
            self.v[:, :, k : k + n] = np.cross(self._pivot(i)[..., None], own, axis=1)
        if joint.axial:
            self.v[:, :, k] += self._travel(i) * apply(R, self.axis[:, i])

    def _pivot(self, i: int) -> np.ndarray:
        """Return a point on the axis of joint i."""
        own = 0.0 if self.model.joint_kind(i).floating else apply(self.R[:, i], self.p.anchor[:, i])
        return self.r[:, i] + own

    def _on(self, x: np.ndarray) -> np.ndarray:
        """Return world positions of sites (B, ns, 3) from those in body frames."""
        out = np.array(x)
        for s, b in enumerate(self.model.site_body):
            if b >= 0:
                out[:, s] = self.r[:, b] + apply(self.R[:, b], x[:, s])
        return out


class PoseBars:
    """Cotangents of the fields of a `ReferencePose`, and the resulting gradient of parameters, `out`."""

    def __init__(self, pose: ReferencePose):
        self.pose, self.out = pose, {name: np.zeros_like(x) for name, x in _floats(pose.p).items()}
        self.turn, self.shift = np.zeros_like(pose.r), np.zeros_like(pose.r)
        self.w, self.v = np.zeros_like(pose.w), np.zeros_like(pose.v)
        self.com, self.sites = np.zeros_like(pose.com), np.zeros_like(pose.sites)

    def pull_back(self) -> None:
        """Propagate cotangents of poses, joint columns, centers of mass and sites to parameters."""
        pose, p, out = self.pose, self.pose.p, self.out
        out["com"] += back(pose.R, self.com)
        self.shift += self.com
        self.turn += np.cross(apply(pose.R, p.com), self.com)
        for s, b in enumerate(pose.model.site_body):
            bar = self.sites[:, s]
            if b >= 0:
                self.shift[:, b] += bar
                self.turn[:, b] += np.cross(apply(pose.R[:, b], p.site_position[:, s]), bar)
                bar = back(pose.R[:, b], bar)
            out["site_position"][:, s] += bar
        axis_bar = np.zeros_like(pose.axis)
        for i in reversed(range(pose.model.nb)):
            self._motion(i, axis_bar)
            self._placement(i, axis_bar)
        along = np.sum(axis_bar * pose.axis, -1, keepdims=True)
        length = np.maximum(np.linalg.norm(p.axis, axis=-1, keepdims=True), 1e-300)
        out["axis"] += (axis_bar - along * pose.axis) / length

    def _motion(self, i: int, axis_bar: np.ndarray) -> None:
        """Propagate cotangents of the columns of joint i: the adjoint of `ReferencePose._move`."""
        pose, joint, k = self.pose, self.pose.model.joint_kind(i), self.pose.model.joint_v[i]
        R = pose.R[:, i]
        k += 3 if joint.floating else 0
        if joint.quaternion or joint.angular:
            n = 3 if joint.quaternion else 1
            w, v_bar, pivot = pose.w[:, :, k : k + n], self.v[:, :, k : k + n], pose._pivot(i)
            w_bar = self.w[:, :, k : k + n] + np.cross(v_bar, pivot[..., None], axis=1)
            pivot_bar = np.cross(w, v_bar, axis=1).sum(-1)
            self.turn[:, i] += np.cross(w, w_bar, axis=1).sum(-1) + np.cross(pivot - pose.r[:, i], pivot_bar)
            self.shift[:, i] += pivot_bar
            if not joint.floating:
                self.out["anchor"][:, i] += back(R, pivot_bar)
            if joint.axial:
                axis_bar[:, i] += back(R, w_bar[:, :, 0])
        if joint.axial:
            along, slid = apply(R, pose.axis[:, i]), self.v[:, :, k]
            self.turn[:, i] += pose._travel(i) * np.cross(along, slid)
            axis_bar[:, i] += pose._travel(i) * back(R, slid)
            self._add_travel(i, np.sum(along * slid, -1))

    def _add_travel(self, i: int, bar: np.ndarray) -> None:
        """Add to the cotangent of a travel that is a parameter."""
        if isinstance(name := self.pose.model.joint_kind(i).travel, str):
            self.out[name][:, i] += bar

    def _placement(self, i: int, axis_bar: np.ndarray) -> None:
        """Propagate cotangents of the pose of body i: the adjoint of `ReferencePose._placed`."""
        pose, above, x = self.pose, self.pose.model.parent[i], self.pose._at(i)
        turn_bar, place_bar, p = self.turn[:, i], self.shift[:, i], self.pose.p
        if above >= 0:
            R = pose.R[:, above]
            self.shift[:, above] += place_bar
            self.turn[:, above] += turn_bar + np.cross(apply(R, pose.place[:, i]), place_bar)
            turn_bar, place_bar = back(R, turn_bar), back(R, place_bar)
        self.out["position"][:, i] += place_bar
        Q, axis, anchor = pose.Q[:, i], pose.axis[:, i], p.anchor[:, i]
        offset = pose.place[:, i] - p.position[:, i]
        Q_bar = turn_bar + np.cross(offset, place_bar)
        if x and pose.model.joint_kind(i).angular:
            T, s_bar = pose._turned(i, x), back(Q, place_bar)
            axis_bar[:, i] += x * pose._travel(i) * s_bar
            self._add_travel(i, x * np.sum(axis * s_bar, -1))
            self.out["anchor"][:, i] += s_bar - back(T, s_bar)
            T_bar = back(Q, turn_bar) - np.cross(apply(T, anchor), s_bar)
            axis_bar[:, i] += np.sin(x) * T_bar + (1 - np.cos(x)) * np.cross(T_bar, axis)
        elif x:
            axis_bar[:, i] += x * back(Q, place_bar)
        self.out["rotation"][:, i] += matrices_vjp(p.rotation[:, i], Q_bar)


def _floats(p: Params) -> dict[str, Any]:
    """Return the fields that inverse weights depend on."""
    names = ("mass", "com", "inertia", "position", "rotation", "anchor", "axis", "armature")
    travels = {joint.travel for joint in JOINTS.values() if isinstance(joint.travel, str)}
    return {
        name: p[name] for name in (*names, *travels, "site_position", "site_rotation", "piece_scale", "piece_radius")
    }
