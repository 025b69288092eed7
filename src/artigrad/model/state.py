"""State: what is carried from one step to the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class State(NamedTuple):
    """Positions and velocities of one robot, or of a batch (batch axis first).

    q: (nq,) in MuJoCo's order: free joint = position (world, m) and unit quaternion w x y z; ball = quaternion; others
       one angle (rad) or length (m).
    v: (nv,) free joint = linear velocity (world axes, m/s), then angular velocity (body axes, rad/s); ball = angular
       velocity (body axes); others the rate of q.
    """

    q: np.ndarray
    v: np.ndarray
