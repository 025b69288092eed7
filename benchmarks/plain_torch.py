"""Physics of the library in plain PyTorch: the source runs on torch scalars, so that autograd records every operation.

It measures the cost of a differentiable simulator without hand-written adjoints, and is an independent check of gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import artigrad as ag
from artigrad.compiler import INT, REAL, Reals
from artigrad.compiler.kernel import INT_WORK, INTS, WORK, Bound
from artigrad.compiler.numpy_target import NumpyTarget
from artigrad.compiler.values import ROUNDER, Real, staging_on
from artigrad.kernels.rollout import rollout_kernel
from artigrad.simulate.engine import Inputs


class Taped(Real):
    """Torch scalar as a real of staged code."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor

    def __add__(self, other: Any) -> Taped:
        total = self.tensor + _plain(other)
        return Taped(
            total.detach() if isinstance(other, float) and other == ROUNDER["f64"] else total
        )  # zero derivative of a step function

    __radd__ = __add__

    def __sub__(self, other: Any) -> Taped:
        return Taped(self.tensor - _plain(other))

    def __rsub__(self, other: Any) -> Taped:
        return Taped(_plain(other) - self.tensor)

    def __mul__(self, other: Any) -> Any:
        return (
            Taped(self.tensor * _plain(other))
            if isinstance(other, Taped | float | int | np.floating)
            else NotImplemented
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Taped:
        return Taped(self.tensor / _plain(other))

    def __rtruediv__(self, other: Any) -> Taped:
        return Taped(_plain(other) / self.tensor)

    def __neg__(self) -> Taped:
        return Taped(-self.tensor)

    def __abs__(self) -> Taped:
        return Taped(self.tensor.abs())

    def __lt__(self, other: Any) -> Any:
        return self.tensor < _plain(other)

    def __le__(self, other: Any) -> Any:
        return self.tensor <= _plain(other)

    def __gt__(self, other: Any) -> Any:
        return self.tensor > _plain(other)

    def __ge__(self, other: Any) -> Any:
        return self.tensor >= _plain(other)


def _plain(x: Any) -> Any:
    return x.tensor if isinstance(x, Taped) else float(x)


def _tensor(x: Any) -> torch.Tensor:
    return x.tensor if isinstance(x, Taped) else torch.tensor(float(x), dtype=torch.float64)


class TapeTarget(NumpyTarget):
    """Reference target on torch scalars."""

    @staticmethod
    def select(mask: Any, a: Any, b: Any) -> Any:
        return Taped(torch.where(torch.as_tensor(mask), _tensor(a), _tensor(b)))

    def quarter_turns(self, turns: Any, s: Any, c: Any) -> tuple[Any, Any]:
        n = round(_tensor(turns).item() - ROUNDER["f64"]) % 4
        return [(s, c), (c, -s), (-s, -c), (-c, s)][n]

    @staticmethod
    def any_lane(mask: Any) -> int:
        return int(bool(torch.as_tensor(mask)))

    @staticmethod
    def unary(function: str, a: Any) -> Any:
        x = _tensor(a)
        return Taped(x.sqrt() if function == "sqrt" else x.abs())


class TapeMemory:
    """Values in a list."""

    def __init__(self, values: list[Any]):
        self.values = values

    def at(self, index: Any) -> int:
        return int(index)

    def load(self, place: int, offset: int) -> Any:
        return self.values[place + offset]

    def store(self, place: int, offset: int, value: Any) -> None:
        self.values[place + offset] = value


def _argument(kind: Any, value: Any) -> Any:
    if kind == INT or isinstance(value, Reals):
        return value
    if kind == REAL:
        return float(value)
    if kind == INTS:
        return [int(x) for x in value]
    if kind == INT_WORK:
        return [0] * value
    return Reals(TapeMemory([float("nan")] * value if kind == WORK else [float(x) for x in np.ravel(value)]))


def rollout(sim: ag.Simulator, state: ag.State, u: torch.Tensor) -> torch.Tensor:
    """Return q (T+1, nq) of one robot under u (T, nu), with every operation on autograd's tape. sim: with backend="numpy"."""
    m, steps = sim.model, len(u)
    inputs = Inputs(1, u.detach().numpy(), None, sim.params)
    bound: Bound = sim.engine.bound_kernel(rollout_kernel, inputs, False, strided=False)
    q, v = (list(map(float, x)) + [0.0] * (steps * len(x)) for x in state)
    given = {"stretches": steps, "const": sim.engine.constants(sim.params, 1), "status": np.zeros(2)}
    memory = {"q": q, "v": v, "u": [Taped(x) for x in u.reshape(-1).unbind()]}
    arguments = bound.arguments | given | {name: Reals(TapeMemory(x)) for name, x in memory.items()}
    with staging_on(TapeTarget("f64", 1)):
        bound.kernel.body(**{key: _argument(kind, arguments[key]) for key, kind in bound.kernel.signature.items()})
    return torch.stack([_tensor(x) for x in q]).reshape(steps + 1, m.nq)


def gradient(steps: int) -> tuple[float, float]:
    """Return (seconds, bytes of the tape per step) of a Laikago's rollout and gradient; check the gradient."""
    import time

    from .probe import resident

    model = ag.robots.laikago()
    sim = ag.Simulator(model, backend="numpy")
    u = torch.tensor(np.tile(model.keyframe_control(), (steps, 1)), requires_grad=True)
    rollout(sim, sim.reset(), u[:1])
    before, start = resident("VmRSS"), time.perf_counter()
    loss = rollout(sim, sim.reset(), u)[-1].square().sum()
    tape = resident("VmRSS") - before
    loss.backward()
    seconds = time.perf_counter() - start
    ours = ag.Simulator(model)
    traj = ours.rollout(ours.reset(), u.detach().numpy())
    theirs = np.asarray(u.grad)
    np.testing.assert_allclose(theirs, ours.vjp(traj, q_bar=2 * traj.final.q, with_params=False).u, atol=1e-9)
    return seconds, tape / steps
