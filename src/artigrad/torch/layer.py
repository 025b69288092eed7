"""Physics as a layer of a network, with parameters of the robot to learn.

Each learnable field is a function of a tensor theta that starts at zero, where it has the model's own value; `model.physical`
says which function keeps which field physical.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InputError
from ..model.physical import KEPT_POSITIVE, Coordinates, coordinates_of
from ..model.state import State
from ..simulate.simulator import Simulator
from .tensor_functions import rollout


class _Physical(torch.autograd.Function):
    """x(theta)"""

    @staticmethod
    def forward(ctx: Any, theta: Tensor, x0: np.ndarray, coordinates: Coordinates) -> Tensor:
        ctx.save_for_backward(theta)
        ctx.x0, ctx.coordinates = x0, coordinates
        return torch.from_numpy(np.asarray(coordinates.value(x0, theta.detach().numpy())))

    @staticmethod
    def backward(ctx: Any, x_bar: Tensor) -> Any:
        (theta,) = ctx.saved_tensors
        bar = ctx.coordinates.vjp(ctx.x0, theta.detach().numpy(), x_bar.detach().numpy())
        return torch.from_numpy(np.ascontiguousarray(bar)), None, None


class LearnableParams(nn.Module):
    """Fields of `Params` to learn. Calling it gives them by name, as `step` and `rollout` take them.

    `theta` holds what an optimiser moves, one tensor per field, zero at the model's own values: added to what may have
    either sign, the exponent of a factor for what is positive (masses, sizes, frictions); restitutions stay within 0 and 1
    and inertias those of a body.
    """

    def __init__(self, sim: Simulator, *fields: str):
        super().__init__()
        self.theta = nn.ParameterDict()
        self._start: dict[str, np.ndarray] = {}
        for name in fields:
            start = np.array(sim.params[name])
            if coordinates_of(name) is KEPT_POSITIVE and not start.any():
                raise InputError(
                    f"every {name} of '{sim.model.name}' is zero and would stay so: give the model a small one to start from"
                )
            self._start[name] = start
            self.theta[name] = nn.Parameter(torch.zeros(start.shape, dtype=torch.float64))

    def forward(self) -> dict[str, Tensor]:
        """The fields, physical whatever theta is."""
        return {name: _Physical.apply(t, self._start[name], coordinates_of(name)) for name, t in self.theta.items()}


class PhysicsLayer(nn.Module):
    """Unrolls `horizon` steps: layer(state, u) gives all states, q (..., H+1, nq) and v (..., H+1, nv).

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

    def forward(self, state: tuple[Tensor, Tensor], u: Tensor | None = None) -> State:
        """All states from `state` on."""
        if u is None:
            return rollout(self.sim, state, steps=self.horizon, params=self.params)
        if u.ndim < 2 or u.shape[-2] != self.horizon:
            raise InputError(f"controls are (..., {self.horizon}, {self.sim.model.nu}), not {tuple(u.shape)}")
        return rollout(self.sim, state, u, params=self.params)

    def extra_repr(self) -> str:
        return f"{self.sim.model.name!r}, horizon={self.horizon}"
