"""Scene of the comparison: standing Laikagos, two fixed tangents, 50 sweeps of Gauss-Seidel, joint PD inside the step.

The loss is a fixed random linear function of the last state; its gradient is with respect to the first state and all
controls.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import artigrad as ag

DT, SWEEPS = 1e-3, 50
OPTIONS: dict[str, Any] = {"error_reduction": 0.01, "softness": 0.0, "absolute_softness": 1e-5}  # of the hard law
SWEPT: dict[str, Any] = {"solver": "gauss_seidel", "sweeps": SWEEPS, "tolerance": 0.0, "gradient": "reverse"}
APART = 2.0  # m


class Inputs(NamedTuple):
    """First state, controls (T, nu), and the cotangents of the last state."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    q_bar: np.ndarray
    v_bar: np.ndarray


class Result(NamedTuple):
    """Last state, and the cotangents of the first one and of the controls."""

    q: np.ndarray
    v: np.ndarray
    q0_bar: np.ndarray
    v0_bar: np.ndarray
    u_bar: np.ndarray

    @property
    def state(self) -> np.ndarray:
        return np.concatenate([self.q, self.v])

    @property
    def gradient(self) -> np.ndarray:
        return np.concatenate([self.q0_bar, self.v0_bar, self.u_bar.ravel()])


def model(robots: int) -> ag.Model:
    """Return one Laikago, or several in one scene, too far apart to touch."""
    if robots == 1:
        return ag.robots.laikago()
    places = [(0.0, APART * k, 0.0) for k in range(robots)]
    return ag.scene([ag.robots.laikago() for _ in range(robots)], positions=places)


def inputs(robot: ag.Model, steps: int) -> Inputs:
    """Return a standing state, and controls with a small difference from step to step, so that each has its own gradient."""
    rng = np.random.default_rng(0)
    q, v = robot.keyframe()
    home = robot.keyframe_control()
    u = home + 1e-3 * np.sin(np.arange(steps)[:, None] * 0.05 + np.arange(robot.nu))
    q_bar, v_bar = rng.normal(size=robot.nq), 0.1 * rng.normal(size=robot.nv)
    return Inputs(np.array(q, float), np.array(v, float), u, q_bar, v_bar)


def tangential(robot: ag.Model, q: np.ndarray, q_bar: np.ndarray) -> np.ndarray:
    """Return a cotangent of q without its component along quaternions.

    That component depends on how a tool extends its functions to quaternions of other norms.
    """
    out = q_bar.copy()
    for i, joint in enumerate(robot.joint_type):
        if joint == "free":
            at = slice(robot.joint_q[i] + 3, robot.joint_q[i] + 7)
            out[at] -= q[at] * (q[at] @ out[at]) / (q[at] @ q[at])
    return out
