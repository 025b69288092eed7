"""Rollouts under a network that is part of the kernel, and their adjoint: from step to step nothing returns to Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arguments import shown
from ..errors import InputError
from ..kernels.derived_constants import prepare_vjp
from ..kernels.devices import all_finite
from ..kernels.policy import ACTIVATIONS, Shape, block_of, packed_weights, policy_rollout, policy_rollout_vjp
from ..model.params import Params
from ..model.state import State
from ..physics.collision.contact_geometry import FAR
from ..physics.tables import constants_size
from .cotangents import GradientOptions
from .engine import Engine, Inputs

TAPE = 1 << 25  # bytes that activations and their cotangents may take at a time
UNHEARD = 1 << 13  # steps of robots backwards in one go, a tenth of a second or so, between which Ctrl-C is heard


class PolicyBars(NamedTuple):
    """Cotangents of the first state, of all controls, of the weights (W, b) of each layer, and of the parameters; how far to
    trust them."""

    state: State
    u: np.ndarray
    layers: list[tuple[np.ndarray, np.ndarray]]
    params: Params | None
    health: np.ndarray


@dataclass(frozen=True, eq=False)
class Network:
    """A multilayer perceptron as a policy: it reads the state, q, v and act in a row, and gives the controls u.

    layers: arrays (W, b) of each, W (outputs, inputs), as PyTorch's Linear has them. activations: what follows each layer,
    "tanh", "elu", "relu" or "linear".
    """

    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    activations: tuple[str, ...]

    def __post_init__(self) -> None:
        for what, given in (("layers", self.layers), ("activations", self.activations)):
            if not isinstance(given, list | tuple):
                raise InputError(f"{what} of a network are a tuple, not {type(given).__name__}")
        for layer in self.layers:
            arrays = isinstance(layer, list | tuple) and len(layer) == 2 and all(hasattr(x, "ndim") for x in layer)
            if not arrays or layer[0].ndim != 2:
                raise InputError(
                    f"layers of a network are pairs of arrays W (outputs, inputs) and b, not {shown(layer)}"
                )
        if len(self.layers) != len(self.activations) or not self.layers:
            raise InputError(
                f"a network has as many activations as layers, not {len(self.activations)} and {len(self.layers)}"
            )
        for name in self.activations:
            if not isinstance(name, str) or name not in ACTIVATIONS:
                raise InputError(f"an activation is one of {', '.join(ACTIVATIONS)}; not {name!r}")
        before = self.layers[0][0].shape[1]
        for W, b in self.layers:
            if W.ndim != 2 or b.shape != W.shape[:1] or W.shape[1] != before:
                raise InputError(
                    f"a layer after {before} numbers is W (n, {before}) and b (n,), not {W.shape} and {b.shape}"
                )
            before = W.shape[0]

    @property
    def shape(self) -> Shape:
        return Shape((self.layers[0][0].shape[1], *(len(b) for _, b in self.layers)), self.activations)

    def check(self, engine: Engine) -> None:
        """Whether it reads states of the model and gives its controls."""
        m, sizes = engine.model, self.shape.sizes
        if (sizes[0], sizes[-1]) != (m.nq + m.nv + m.na, m.nu):
            reads = f"{m.nq} + {m.nv} + {m.na} numbers (q, v, act)" if m.na else f"{m.nq} + {m.nv} numbers (q, v)"
            raise InputError(
                f"a policy of '{m.name}' reads {reads} and gives {m.nu} controls, not {sizes[0]} and {sizes[-1]}"
            )

    def packed(self, dtype: np.dtype, block: int, transposed: bool) -> dict[str, np.ndarray]:
        """Weights as kernels read them."""
        out = {f"w{i}": packed_weights(W, b, dtype, block) for i, (W, b) in enumerate(self.layers)}
        if transposed:
            out |= {
                f"transposed{i}": packed_weights(W.T, np.zeros(W.shape[1]), dtype, block)
                for i, (W, _) in enumerate(self.layers)
            }
        return out


def policy_forward(
    engine: Engine, network: Network, start: State, steps: int, params: Params, hold: int = 1
) -> tuple[State, Any, Any]:
    """States (B, T+1, n), controls (B, T, nu) and violation (B,) from the rows of `start` on. hold: steps of one control."""
    m, device, batch, shape = engine.model, engine.device, len(start.q), network.shape
    states = engine.begun(start, steps + 1)
    u, status = device.empty((batch, steps, m.nu)), engine.new_status(batch)
    inputs, block = Inputs(batch, u, None, params), block_of(device.target(batch))
    kernel = engine.bound(policy_rollout(shape), inputs, False, shape.counts(block) | shape.work(False))
    weights, more = network.packed(device.dtype, block, False), {"status": status} if engine.constrained else {}

    def run(a: int, b: int) -> None:
        kernel(
            batch,
            engine.threads,
            steps=b - a,
            hold=hold,
            const=engine.constants(params, batch),
            **states.map(lambda x: x[:, a * hold :]).named(),
            u=u[:, a * hold : b * hold],
            **weights,
            **more,
        )

    engine.sliced(f"policy {shape.sizes}", steps // hold, batch * hold, run)
    engine.check_table(status)
    if not all_finite(u):
        t = int((~np.isfinite(u)).any((0, 2)).argmax())
        raise InputError(f"the policy gives controls that are not finite at step {t}: look at its weights")
    return states, u, status[:, 0]


def policy_backward(
    engine: Engine,
    network: Network,
    states: State,
    u: Any,
    params: Params,
    bars: tuple[State, Any],
    options: GradientOptions | None,
    with_params: bool,
    product: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.matmul,
    hold: int = 1,
) -> PolicyBars:
    """Cotangents for those of all states (B, T+1, n) and controls (B, T, nu). product: of matrices; a framework has its own,
    with threads of its own. hold: steps of one control."""
    back = _PolicyCotangents(engine, network, states, u, params, bars, options, with_params, hold)
    steps = u.shape[1] // hold
    truncations = back.options.truncations(steps)
    edges = {0, steps, *range(0, steps, back.chunk), *truncations}
    for end, first in zip(*(sorted(edges, reverse=True)[k:] for k in (0, 1)), strict=False):
        if end in truncations:
            for mine, given in zip(back.state_bar, bars[0], strict=True):
                mine[:] = given[:, end * hold]
        back.segment(first, end, product)
    found = None
    if with_params:
        found = prepare_vjp(params, engine.options, len(u), engine.threads, engine.device, back.extra["const_bar"])
    layers = list(zip(back.W_bars, back.b_bars, strict=True))
    return PolicyBars(back.state_bar, back.u_bar, layers, found, back.health)


class _PolicyCotangents:
    """Cotangents of the state on their way back, and those of the weights so far."""

    def __init__(
        self,
        engine: Engine,
        network: Network,
        states: State,
        u: Any,
        params: Params,
        bars: tuple[State, Any],
        options: GradientOptions | None,
        with_params: bool,
        hold: int,
    ):
        self.hold = hold
        self.engine, self.states, self.u, self.bars, self.params = engine, states, u, bars, params
        device, batch, shape = engine.device, len(u), network.shape
        self.shape, self.batch, block = shape, batch, block_of(device.target(batch))
        self.state_bar = bars[0].map(lambda x: x[:, -1].copy())
        self.u_bar = device.empty(u.shape)
        self.W_bars = [np.zeros(W.shape, device.dtype) for W, _ in network.layers]
        self.b_bars = [np.zeros(b.shape, device.dtype) for _, b in network.layers]
        row = sum(shape.sizes[:-1]) + sum(shape.sizes[1:])
        self.chunk = max(1, min(TAPE // (row * device.dtype.itemsize), UNHEARD // hold) // batch)
        self.kernel = engine.bound(
            policy_rollout_vjp(shape),
            Inputs(batch, u, None, params),
            True,
            shape.counts(block) | shape.work(True),
            with_params=with_params,
        )
        self.options = options or GradientOptions()
        self.fixed = self.options.kernel_arguments | network.packed(device.dtype, block, True)
        self.health = device.rows((0.0, FAR), batch)
        self.extra: dict[str, Any] = {"health": self.health} if engine.constrained else {}
        if with_params:
            size = constants_size(engine.model, bars=True)
            self.extra["const_bar"] = device.packed_zeros(self.kernel.kernel.packed_shape(batch, size))

    def segment(self, first: int, end: int, product: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        """Controls first .. end, from the last to the first."""
        engine, sizes, hold = self.engine, self.shape.sizes, self.hold
        part = slice(first * hold, end * hold)
        names = [(f"tape_{name}{j}", sizes[j]) for i in self.shape.layers for name, j in (("x", i), ("z", i + 1))]
        tape = {name: engine.device.empty((self.batch, end - first, n)) for name, n in names}
        self.kernel(
            self.batch,
            engine.threads,
            length=end - first,
            hold=hold,
            const=engine.constants(self.params, self.batch),
            **self.states.map(lambda x: x[:, part.start : part.stop + 1]).named(),
            u=self.u[:, part],
            **self.bars[0].map(lambda x: x[:, part]).named("_bars"),
            u_bars=self.bars[1][:, part],
            **self.state_bar.named("_bar"),
            u_bar=self.u_bar[:, part],
            **tape,
            **self.fixed,
            **self.extra,
        )
        for i in self.shape.layers:
            x, z = tape[f"tape_x{i}"].reshape(-1, sizes[i]), tape[f"tape_z{i + 1}"].reshape(-1, sizes[i + 1])
            self.W_bars[i] += product(z.T, x)
            self.b_bars[i] += z.sum(0)
