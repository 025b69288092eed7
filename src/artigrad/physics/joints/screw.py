"""Screw: a turn about the z axis of the joint frame, with a shift along it of `pitch` per radian."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..spatial import Force, Motion, Transform, dot
from .joint import Pairs
from .revolute import Revolute

if TYPE_CHECKING:
    from ..context import Step


class Screw(Revolute):
    name, mjcf, travel, feature = "screw", None, "pitch", "screw"

    def kinematics(self, s: Step, i: Any, X: Transform) -> tuple[Transform, Motion]:
        """X' = X Rz(q) shifted by p q z,  S = [z ; r x z + p z]"""
        own, (q, v), p = (
            s.dof[s.model.link_v[i]],
            (s.q[s.model.link_q[i]], s.v[s.model.link_v[i]]),
            s.const.link[i].pitch,
        )
        turned, _ = super().kinematics(s, i, X)
        S = Motion(own.S.w, own.S.v + own.S.w * p)
        own.S = S
        return Transform(turned.R, turned.r + S.w * (p * q)), S * v

    def add_parameter_bars(self, s: Step, i: Any, xi: Force, pairs: Pairs) -> None:
        """p_bar += q z . xi + sum of x z . bar for each S x: the pose is shifted by q z dp, and dS = [0 ; z] dp"""
        assert s.bars.const is not None
        z = s.dof[s.model.link_v[i]].S.w
        bar = dot(z, xi.f) * s.q[s.model.link_q[i]]
        for before, beyond, x_bar in pairs:
            bar = bar + dot(z, beyond.w - before.w) * dot(z, x_bar.f)
        s.bars.const.link[i].pitch += bar
