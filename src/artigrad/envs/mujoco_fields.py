"""Fields of MuJoCo's mjData after a step, as Gymnasium's environments read them.

Positions, velocities and inertias of bodies and contact forces are not those of the new state: they come from the last
evaluation of forces in the step, under RK4 its fourth stage

    q_k = q (+) h n_k r_(k-1),  v_k = v + h n_k a_(k-1),  n = (0, 1/2, 1/2, 1)

with tangent rates r at q_k of the displacement from q (theory 7.4).

Contact wrenches have no gradient, as contact points have none (`artigrad.torch.contacts`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..physics.constraints.law import law_of
from ..simulate.results import Outputs
from ..simulate.simulator import Simulator
from ..torch import contacts, outputs, step
from ..torch.tensor_checks import DTYPES, device_of


class MujocoFields:
    """Fields of mjData of one floating robot under RK4. Rows of bodies are those of the MJCF file, without the world."""

    def __init__(self, sim: Simulator):
        model = sim.model
        if sim.options.integrator != "rk4" or model.nq != model.nv + 1 or not law_of(sim.options).in_mujoco:
            raise InputError(
                f"'{model.name}': mjData fields need one floating robot, the integrator rk4 and the soft law"
            )
        if (model.params["solref"][:, 0] < 2.0 * sim.dt).any():
            raise InputError(
                f"'{model.name}': the solref of a shape is shorter than two steps and would depend on the step"
            )
        self.model, self.dt = model, sim.dt
        self.explicit = Simulator(
            model,
            0.5 * sim.dt,
            device=sim.device,
            dtype=sim.dtype,
            threads=sim.threads,
            lanes=sim.lanes,
            integrator="explicit",
            implicit_damping=False,
        )
        where: dict[str, Any] = {"dtype": DTYPES[sim.dtype], "device": device_of(sim)}
        own = [i for i, name in enumerate(model.bodies) if ":" not in name]  # bodies of several joints are split
        self.body_rows = torch.tensor(own, device=where["device"])
        self.mass, self.com, inertia = (torch.tensor(model.params[k][own], **where) for k in ("mass", "com", "inertia"))
        self.inertia = inertia[:, [[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
        self.contact_signs = self._contact_signs(where)

    def _contact_signs(self, where: dict[str, Any]) -> Tensor:
        """Return signs (bodies, contact points): 1 for a body that the contact force acts on, -1 for one that its opposite
        acts on."""
        row = {body: k for k, body in enumerate(self.body_rows.tolist())}
        shape_body = dict(zip(self.model.shapes.names, self.model.shapes.body, strict=True))
        sides = torch.zeros(len(row), len(self.explicit.contact_names), **where)
        for point, pair in enumerate(self.explicit.contact_names):
            for name, sign in zip(pair, (-1.0, 1.0), strict=True):
                body = shape_body[name]
                if body in row:
                    sides[row[body], point] += sign
        return sides

    def last_base_position(self, q: Tensor, v: Tensor, u: Tensor) -> Tensor:
        """Return the base position (B, 3) in the fourth stage of an RK4 step. Needs two of the stages before it."""
        q2, v2 = self._half(q, v, u)
        _, v3 = self._half(q2, v2, u)
        return q[:, :3] + self.dt * (v + v3 - v2)[:, :3]

    def last_stage(self, q: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state (q, v) of the fourth stage of an RK4 step from (q, v) under controls u."""
        q_k, v_k, rate = q, v, v
        for node in (0.5, 0.5, 1.0):
            _, after = self._half(q_k, v_k, u)
            move = node * self.dt * rate
            q_k, v_k = integrate_floating(q, move), v + 2.0 * node * (after - v_k)
            rate = tangent_rate(move, v_k)
        return q_k, v_k

    def _half(self, q: Tensor, v: Tensor, u: Tensor) -> Any:
        """Return q (+) h/2 v and v + h/2 a."""
        return step(self.explicit, (q, v), u)

    def outputs(self, q: Tensor, v: Tensor) -> Outputs:
        """Return body poses and velocities of a state."""
        return outputs(self.explicit, (q, v))

    def contact_wrenches(self, q: Tensor, v: Tensor, u: Tensor, com: Tensor) -> Tensor:
        """Return cfrc_ext (B, bodies, 6): contact torque about the center of mass `com` (B, 3), and contact force, in world
        axes."""
        with torch.no_grad():
            found: Any = contacts(self.explicit, (q, v), u)
            torque = torch.linalg.cross(found.point - com[:, None], found.force)
            return self.contact_signs @ torch.cat([torque, found.force], -1)

    def inertias(self, frames: Outputs) -> Tensor:
        """Return cinert (B, bodies, 10): inertia about the robot's center of mass (xx, yy, zz, xy, xz, yz), mass times position
        relative to it, mass."""
        R = frames.body_rotation[:, self.body_rows]
        d = self._arms(frames)
        turned = R @ self.inertia @ R.mT
        eye = torch.eye(3, dtype=d.dtype, device=d.device)
        whole = turned + self.mass[:, None, None] * (
            d.square().sum(-1)[..., None, None] * eye - d[..., None] * d[..., None, :]
        )
        six = torch.stack([whole[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], -1)
        mass = self.mass.expand(len(d), -1)[..., None]
        return torch.cat([six, mass * d, mass], -1)

    def _arms(self, frames: Outputs) -> Tensor:
        """Return vectors (B, bodies, 3) from the robot's center of mass to that of each body."""
        R, r = frames.body_rotation[:, self.body_rows], frames.body_position[:, self.body_rows]
        return r + (R @ self.com[..., None])[..., 0] - frames.com[:, None]

    def velocities(self, frames: Outputs) -> Tensor:
        """Return cvel (B, bodies, 6): angular velocity, and velocity of the body-fixed point at the robot's center of mass."""
        w, v = frames.body_angular_velocity[:, self.body_rows], frames.body_velocity[:, self.body_rows]
        arm = frames.com[:, None] - frames.body_position[:, self.body_rows]
        return torch.cat([w, v + torch.linalg.cross(w, arm)], -1)


def integrate_floating(q: Tensor, dx: Tensor) -> Tensor:
    """Return q (+) dx of a floating robot; the rotation vector dx[:, 3:6] is in the base's axes."""
    turn = dx[:, 3:6]
    half = 0.5 * torch.sqrt(turn.square().sum(-1, keepdim=True) + 1e-30)
    w, x = torch.cos(half), 0.5 * torch.sinc(half / torch.pi) * turn
    w0, x0 = q[:, 3:4], q[:, 4:7]
    turned = torch.cat([w0 * w - (x0 * x).sum(-1, keepdim=True), w0 * x + w * x0 + torch.linalg.cross(x0, x)], -1)
    return torch.cat([q[:, :3] + dx[:, :3], turned / turned.norm(dim=-1, keepdim=True), q[:, 7:] + dx[:, 6:]], -1)


def tangent_rate(dx: Tensor, v: Tensor) -> Tensor:
    """Return the rate of dx when the velocity at q (+) dx is v. Rotation: phi' = w + phi x w / 2 + c phi x (phi x w)."""
    phi, w = dx[:, 3:6], v[:, 3:6]
    angle = torch.sqrt(phi.square().sum(-1, keepdim=True) + 1e-30)
    near = 1.0 / 12.0 + angle.square() / 720.0 + angle.pow(4) / 30240.0
    wide = angle.clamp(min=0.1)
    c = torch.where(angle < 0.1, near, (1.0 - 0.5 * wide / torch.tan(0.5 * wide)) / wide.square())
    turn = torch.linalg.cross(phi, w)
    rate = w + 0.5 * turn + c * torch.linalg.cross(phi, turn)
    return torch.cat([v[:, :3], rate, v[:, 6:]], -1)
