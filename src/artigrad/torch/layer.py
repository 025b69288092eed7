"""Physics as a layer of a network, with parameters of the robot to learn.

Learned parameters are functions of a tensor theta, which is zero at the values of the model. `model.physical` has the function
that keeps each field physical, `fit.parameters` the meaning of names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..arguments import checked
from ..errors import InputError
from ..fit.parameters import chosen
from ..model.physical import EDGE, KEPT_POSITIVE, coordinates_of, inertia_root
from ..model.state import State
from ..simulate.simulator import Simulator
from .tensor_functions import rollout


def _positive(x0: np.ndarray, theta: Tensor) -> Tensor:
    return torch.as_tensor(x0) * theta.exp()


def _share(x0: np.ndarray, theta: Tensor) -> Tensor:
    x0 = np.clip(x0, EDGE, 1.0 - EDGE)
    return 1.0 / (1.0 + (-(torch.as_tensor(np.log(x0 / (1.0 - x0))) + theta)).exp())


def _inertia(x0: np.ndarray, theta: Tensor) -> Tensor:
    """I = tr(S) 1 - S with S = A A^T and A = A0 L(theta)"""
    zero = torch.zeros_like(theta[..., 0])
    (xx, yy, zz), (xy, xz, yz) = theta[..., :3].exp().unbind(-1), theta[..., 3:].unbind(-1)
    rows = [torch.stack(row, -1) for row in ((xx, zero, zero), (xy, yy, zero), (xz, yz, zz))]
    A = torch.as_tensor(inertia_root(x0)) @ torch.stack(rows, -2)
    S = A @ A.transpose(-1, -2)
    I = S.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None] * torch.eye(3, dtype=S.dtype) - S
    return torch.stack([I[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))], -1)


# the functions of `model.physical` in PyTorch's operations, which have all derivatives; others are x0 + theta
_VALUES = {KEPT_POSITIVE: _positive, coordinates_of("restitution"): _share, coordinates_of("inertia"): _inertia}


class LearnableParams(nn.Module):
    """Entries of `Params` to learn, by the names that `ag.fit` takes: "mass", "mass[tool]", "com[tool].x". Calling it gives
    whole fields by name, as `step` and `rollout` take them.

    `theta` has the tensors that an optimizer updates, one for each name, zero at the values of the model: added to fields of
    either sign, the exponent of a factor for positive ones (masses, sizes, frictions); restitutions stay within 0 and 1
    and inertias those of a body. A dot in a name is a colon there.
    """

    @checked
    def __init__(self, sim: Simulator, *names: str):
        super().__init__()
        self.theta = nn.ParameterDict()
        self._start: dict[str, np.ndarray] = {}
        self._chosen: dict[str, tuple[str, tuple[Any, ...]]] = {}
        taken: dict[str, np.ndarray] = {}
        for name in names:
            if not isinstance(name, str):
                raise InputError(
                    f"learn takes names such as 'mass[tool]', or a module that gives fields; not {type(name).__name__}"
                )
            found = chosen(sim.params, name)
            field, index = found.field, found.place
            if field == "inertia" and len(found.components) < len(found.axes):
                raise InputError(f"'{name}': an inertia is learned as a whole, so that it stays that of a body")
            start = self._start[field] = np.array(sim.params[field])
            if coordinates_of(field) is KEPT_POSITIVE and not start[index].any():
                raise InputError(
                    f"every {name} of '{sim.model.name}' is zero and would stay so: give the model a small one to start from"
                )
            learned = taken.setdefault(field, np.zeros(start.shape, bool))
            if learned[index].any():
                raise InputError(f"'{name}' has entries that were named before: name each once")
            learned[index] = True
            self._chosen[name] = field, index
            self.theta[_key(name)] = nn.Parameter(torch.zeros(start[index].shape, dtype=torch.float64))

    def forward(self) -> dict[str, Tensor]:
        """The fields, physical whatever theta is."""
        fields = {field: torch.tensor(start) for field, start in self._start.items()}
        for name, (field, index) in self._chosen.items():
            value = _VALUES.get(coordinates_of(field), lambda x0, theta: torch.as_tensor(x0) + theta)
            x = value(self._start[field][index], self.theta[_key(name)])
            fields[field] = fields[field].index_put([torch.as_tensor(i) for i in index], x)
        return fields


def _key(name: str) -> str:
    """A name as PyTorch takes it for a parameter."""
    return name.replace(".", ":")


class PhysicsLayer(nn.Module):
    """Unrolls `horizon` steps: layer(state, u) gives all states, q (..., H+1, nq) and v (..., H+1, nv).

    learn: what of `Params` to learn, by the names that `ag.fit` takes, each kept physical (`LearnableParams`), or a module
    that returns fields by name when called: for example positions computed from link lengths. Controls are (..., H, nu),
    zero if left out.
    """

    @checked
    def __init__(self, sim: Simulator, horizon: int, learn: tuple[str, ...] | nn.Module = ()):
        super().__init__()
        if not isinstance(horizon, int) or horizon < 1:
            raise InputError(f"the horizon is a whole number of steps, at least 1, not {horizon!r}")
        self.sim, self.horizon = sim, horizon
        if not isinstance(learn, nn.Module | list | tuple):
            raise InputError(f"learn takes names such as ('mass[tool]',), or a module; not {type(learn).__name__}")
        self.params = learn if isinstance(learn, nn.Module) else LearnableParams(sim, *learn)

    def forward(self, state: tuple[Tensor, ...], u: Tensor | None = None) -> State:
        """All states from `state` on."""
        if u is None:
            return rollout(self.sim, state, steps=self.horizon, params=self.params)
        if u.ndim < 2 or u.shape[-2] != self.horizon:
            raise InputError(f"controls are (..., {self.horizon}, {self.sim.model.nu}), not {tuple(u.shape)}")
        return rollout(self.sim, state, u, params=self.params)

    def extra_repr(self) -> str:
        return f"{self.sim.model.name!r}, horizon={self.horizon}"
