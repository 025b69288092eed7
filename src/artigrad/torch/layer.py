"""Physics as a layer of a network, with parameters of the robot to learn.

Each learnable field is a function of a tensor theta that starts at zero, where it has the model's own value:

    x = x0 + theta                 whatever may have either sign
    x = x0 exp(theta)              masses, sizes, frictions: positive ones stay positive, zero ones stay zero
    x = s(s^-1(x0) + theta)        restitution: within 0 and 1; s is the logistic function
    S = A A^T, A = A0 L(theta)     inertias: S = tr(I)/2 - I stays positive semidefinite, so that I is that of a body
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..errors import InputError
from ..params import POSITIVE
from ..simulator import Simulator
from .door import DTYPES
from .functions import rollout

_ROWS, _COLUMNS = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)  # of xx yy zz xy xz yz


def _added(x0: Tensor, theta: Tensor) -> Tensor:
    return x0 + theta


def _positive(x0: Tensor, theta: Tensor) -> Tensor:
    return x0 * theta.exp()


def _share(x0: Tensor, theta: Tensor) -> Tensor:
    return torch.sigmoid(torch.logit(x0, eps=1e-6) + theta)


def _physical(x0: Tensor, theta: Tensor) -> Tensor:
    """I = tr(S) 1 - S: principal moments are positive and none is more than the sum of the two others"""
    S0 = _second_moments(x0)
    values, vectors = torch.linalg.eigh(S0)
    A0 = vectors * values.clamp(min=0.0).sqrt().unsqueeze(-2)
    L = torch.zeros_like(S0)
    L[..., _ROWS[:3], _COLUMNS[:3]] = theta[..., :3].exp()
    L[..., _COLUMNS[3:], _ROWS[3:]] = theta[..., 3:]
    A = A0 @ L
    S = A @ A.mT
    I = S.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None] * torch.eye(3, dtype=x0.dtype) - S
    return I[..., _ROWS, _COLUMNS]


def _second_moments(inertia: Tensor) -> Tensor:
    """S = tr(I)/2 1 - I: the second moments of the body's mass about its centre"""
    I = inertia.new_zeros(*inertia.shape[:-1], 3, 3)
    I[..., _ROWS, _COLUMNS] = inertia
    I[..., _COLUMNS, _ROWS] = inertia
    return inertia[..., :3].sum(-1)[..., None, None] / 2 * torch.eye(3, dtype=inertia.dtype) - I


_LAW: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    **dict.fromkeys(POSITIVE, _positive),
    "restitution": _share,
    "inertia": _physical,
}


class LearnableParams(nn.Module):
    """Fields of `Params` to learn. Calling it gives them by name, as `step` and `rollout` take them.

    `theta` holds what an optimiser moves, one tensor per field, zero at the model's own values: added to what may have
    either sign, the exponent of a factor for what is positive (masses, sizes, frictions); restitutions stay within 0 and 1
    and inertias those of a body.
    """

    def __init__(self, sim: Simulator, *fields: str):
        super().__init__()
        self.theta = nn.ParameterDict()
        for name in fields:
            start = torch.tensor(sim.params[name])
            if _LAW.get(name) is _positive and not start.any():
                raise InputError(
                    f"every {name} of '{sim.model.name}' is zero and would stay so: give the model a small one to start from"
                )
            self.register_buffer(f"_{name}", start, persistent=False)
            self.theta[name] = nn.Parameter(torch.zeros_like(start))

    def forward(self) -> dict[str, Tensor]:
        """The fields, physical whatever theta is."""
        return {name: _LAW.get(name, _added)(self.get_buffer(f"_{name}"), t) for name, t in self.theta.items()}


class PhysicsLayer(nn.Module):
    """Unrolls `horizon` steps: layer(q, v, u) gives all states, q (..., H+1, nq) and v (..., H+1, nv).

    learn: names of the fields of `Params` to learn, each kept physical (`LearnableParams`), or a module that returns
    fields by name when called: link lengths, say, from which it makes positions. Controls are (..., H, nu), zero if
    left out.
    """

    def __init__(self, sim: Simulator, horizon: int, learn: tuple[str, ...] | nn.Module = ()):
        super().__init__()
        if not isinstance(horizon, int) or horizon < 1:
            raise InputError(f"the horizon is a whole number of steps, at least 1, not {horizon!r}")
        self.sim, self.horizon = sim, horizon
        self.params = learn if isinstance(learn, nn.Module) else LearnableParams(sim, *learn)

    def forward(self, q: Tensor, v: Tensor, u: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """All states from (q, v) on."""
        if u is None:
            u = torch.zeros(self.horizon, self.sim.model.nu, dtype=DTYPES[self.sim.dtype])
        if u.ndim < 2 or u.shape[-2] != self.horizon:
            raise InputError(f"controls are (..., {self.horizon}, {self.sim.model.nu}), not {tuple(u.shape)}")
        return rollout(self.sim, q, v, u, self.params)

    def extra_repr(self) -> str:
        return f"{self.sim.model.name!r}, horizon={self.horizon}"
