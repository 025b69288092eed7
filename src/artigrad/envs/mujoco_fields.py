"""What MuJoCo's data holds after a step, as Gymnasium's environments read it.

Positions of bodies, their velocities, inertias and the forces of contact are not those of the new state: they stem from the
last time that the step evaluated forces, under RK4 its fourth stage

    q_k = q (+) h n_k r_(k-1),  v_k = v + h n_k a_(k-1),  n = (0, 1/2, 1/2, 1)

with rates r of the move that begins at q (theory 7.4).

Wrenches of contact have no gradient: where things touch has none (`artigrad.torch.contacts`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..simulate.results import Outputs
from ..simulate.simulator import Simulator
from ..torch import contacts, outputs, step
from ..torch.tensor_checks import DTYPES, device_of


class MujocoFields:
    """Fields of MuJoCo's data for one floating robot that is integrated by RK4. Rows of bodies are those of its file, without
    the world."""

    def __init__(self, sim: Simulator):
        model = sim.model
        if sim.options.integrator != "rk4" or model.nq != model.nv + 1 or sim.options.law != "soft":
            raise InputError(f"'{model.name}': these fields are of one floating robot under RK4 and the soft law")
        if (model.params["solref"][:, 0] < 2.0 * sim.dt).any():
            raise InputError(
                f"'{model.name}': the solref of a shape is shorter than two steps, which changes with the step"
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
        self.own = torch.tensor(own, device=where["device"])
        self.mass, self.com, inertia = (torch.tensor(model.params[k][own], **where) for k in ("mass", "com", "inertia"))
        self.inertia = inertia[:, [[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
        self.sides = self._sides(where)

    def _sides(self, where: dict[str, Any]) -> Tensor:
        """(bodies, points): 1 where a body feels the force of a point, -1 where its opposite."""
        row = {body: k for k, body in enumerate(self.own.tolist())}
        shape_body = dict(zip(self.model.shapes.names, self.model.shapes.body, strict=True))
        sides = torch.zeros(len(row), len(self.explicit.contact_names), **where)
        for point, pair in enumerate(self.explicit.contact_names):
            for name, sign in zip(pair, (-1.0, 1.0), strict=True):
                body = shape_body[name]
                if body in row:
                    sides[row[body], point] += sign
        return sides

    def last_place(self, q: Tensor, v: Tensor, u: Tensor) -> Tensor:
        """Where the base is in the fourth stage of an RK4 step, (B, 3), which takes two of the stages before it."""
        q2, v2 = self._half(q, v, u)
        _, v3 = self._half(q2, v2, u)
        return q[:, :3] + self.dt * (v + v3 - v2)[:, :3]

    def last_stage(self, q: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """The state of the fourth stage of an RK4 step."""
        q_k, v_k, rate = q, v, v
        for node in (0.5, 0.5, 1.0):
            _, after = self._half(q_k, v_k, u)
            move = node * self.dt * rate
            q_k, v_k = moved(q, move), v + 2.0 * node * (after - v_k)
            rate = rate_along(move, v_k)
        return q_k, v_k

    def _half(self, q: Tensor, v: Tensor, u: Tensor) -> Any:
        """q (+) h/2 v,  v + h/2 a"""
        return step(self.explicit, (q, v), u)

    def outputs(self, q: Tensor, v: Tensor) -> Outputs:
        return outputs(self.explicit, (q, v))

    def wrenches(self, q: Tensor, v: Tensor, u: Tensor, com: Tensor) -> Tensor:
        """cfrc_ext: torque about the centre of mass and force of contacts on each body, (B, bodies, 6)."""
        with torch.no_grad():
            found: Any = contacts(self.explicit, (q, v), u)
            torque = torch.linalg.cross(found.point - com[:, None], found.force)
            return self.sides @ torch.cat([torque, found.force], -1)

    def inertias(self, there: Outputs) -> Tensor:
        """cinert (B, bodies, 10): inertia about the centre of mass of all (xx, yy, zz, xy, xz, yz), m times the place, m."""
        R = there.body_rotation[:, self.own]
        d = self._arms(there)
        turned = R @ self.inertia @ R.mT
        eye = torch.eye(3, dtype=d.dtype, device=d.device)
        whole = turned + self.mass[:, None, None] * (
            d.square().sum(-1)[..., None, None] * eye - d[..., None] * d[..., None, :]
        )
        six = torch.stack([whole[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], -1)
        mass = self.mass.expand(len(d), -1)[..., None]
        return torch.cat([six, mass * d, mass], -1)

    def _arms(self, there: Outputs) -> Tensor:
        """From the centre of mass of all to that of each body."""
        R, r = there.body_rotation[:, self.own], there.body_position[:, self.own]
        return r + (R @ self.com[..., None])[..., 0] - there.com[:, None]

    def velocities(self, there: Outputs) -> Tensor:
        """cvel: turn, and velocity of the body's point at the centre of mass of all, (B, bodies, 6)."""
        w, v = there.body_angular_velocity[:, self.own], there.body_velocity[:, self.own]
        arm = there.com[:, None] - there.body_position[:, self.own]
        return torch.cat([w, v + torch.linalg.cross(w, arm)], -1)


def moved(q: Tensor, dx: Tensor) -> Tensor:
    """q (+) dx of a floating robot: its quaternion is turned about axes of its own."""
    turn = dx[:, 3:6]
    half = 0.5 * torch.sqrt(turn.square().sum(-1, keepdim=True) + 1e-30)
    w, x = torch.cos(half), 0.5 * torch.sinc(half / torch.pi) * turn
    w0, x0 = q[:, 3:4], q[:, 4:7]
    turned = torch.cat([w0 * w - (x0 * x).sum(-1, keepdim=True), w0 * x + w * x0 + torch.linalg.cross(x0, x)], -1)
    return torch.cat([q[:, :3] + dx[:, :3], turned / turned.norm(dim=-1, keepdim=True), q[:, 7:] + dx[:, 6:]], -1)


def rate_along(dx: Tensor, v: Tensor) -> Tensor:
    """How fast dx changes where velocities are v at q (+) dx: y = w + phi x w / 2 + c phi x (phi x w), of its quaternion."""
    phi, w = dx[:, 3:6], v[:, 3:6]
    angle = torch.sqrt(phi.square().sum(-1, keepdim=True) + 1e-30)
    near = 1.0 / 12.0 + angle.square() / 720.0 + angle.pow(4) / 30240.0
    wide = angle.clamp(min=0.1)
    c = torch.where(angle < 0.1, near, (1.0 - 0.5 * wide / torch.tan(0.5 * wide)) / wide.square())
    turn = torch.linalg.cross(phi, w)
    rate = w + 0.5 * turn + c * torch.linalg.cross(phi, turn)
    return torch.cat([v[:, :3], rate, v[:, 6:]], -1)
