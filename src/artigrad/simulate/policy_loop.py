"""Rollouts under a neural network that is compiled into the kernel, and their adjoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arguments import shown
from ..errors import InputError
from ..kernels.derived_constants import derive_constants_vjp
from ..kernels.devices import all_finite
from ..kernels.policy import ACTIVATIONS, Shape, block_of, packed_weights, policy_rollout, policy_rollout_vjp
from ..model.params import Params
from ..model.state import State
from ..physics.collision.contact_geometry import FAR
from ..physics.tables import constants_size
from .cotangents import GradientOptions
from .engine import Engine, Inputs

TAPE = 1 << 25  # bytes, limit for stored activations and their cotangents
MAX_STEPS = 1 << 13  # steps times batch in one backward call, about 0.1 s; Ctrl-C interrupts between calls


class PolicyBars(NamedTuple):
    """Cotangents of a rollout under a policy.

    Attributes:
      state: Of the first state, (B, n).
      u: Of all controls, (B, T, nu).
      layers: Of the weights (W, b) of each layer.
      params: Of parameters; None if not computed.
      health: Largest solver residual and smallest switch margin, (B, 2).
    """

    state: State
    u: np.ndarray
    layers: list[tuple[np.ndarray, np.ndarray]]
    params: Params | None
    health: np.ndarray


@dataclass(frozen=True, eq=False)
class Network:
    """Multilayer perceptron as a policy: maps the state (q, v, act), concatenated, to the controls u.

    Attributes:
      layers: Arrays (W, b) of each layer: W (outputs, inputs), b (outputs,), as in torch.nn.Linear.
      activations: Activation function after each layer: "tanh", "elu", "relu" or "linear".
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
                    f"a layer with {before} inputs is W (n, {before}) and b (n,), not {W.shape} and {b.shape}"
                )
            before = W.shape[0]

    @property
    def shape(self) -> Shape:
        """Layer sizes and activations."""
        return Shape((self.layers[0][0].shape[1], *(len(b) for _, b in self.layers)), self.activations)

    def check(self, engine: Engine) -> None:
        """Raise InputError if the input and output sizes do not match the model's state and controls."""
        m, sizes = engine.model, self.shape.sizes
        if (sizes[0], sizes[-1]) != (m.nq + m.nv + m.na, m.nu):
            reads = f"{m.nq} + {m.nv} + {m.na} values (q, v, act)" if m.na else f"{m.nq} + {m.nv} values (q, v)"
            raise InputError(
                f"a policy of '{m.name}' reads {reads} and returns {m.nu} controls, not {sizes[0]} and {sizes[-1]}"
            )

    def packed(self, dtype: np.dtype, block: int, transposed: bool) -> dict[str, np.ndarray]:
        """Return weights in the memory layout of the kernels."""
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
    """Return states (B, T+1, n), controls (B, T, nu) and solver residual (B,) of a rollout under a policy.

    Args:
      engine: Engine of the simulator.
      network: The policy.
      start: First states (B, n).
      steps: Number of steps.
      params: One set, or one per batch element.
      hold: Number of steps of one control.
    """
    m, device, batch, shape = engine.model, engine.device, len(start.q), network.shape
    states = engine.states_from(start, steps + 1)
    u, status = device.empty((batch, steps, m.nu)), engine.new_status(batch)
    inputs, block = Inputs(batch, u, None, params), block_of(device.target(batch))
    kernel = engine.bound_kernel(policy_rollout(shape), inputs, False, shape.counts(block) | shape.work(False))
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

    engine.run_in_slices(f"policy {shape.sizes}", steps // hold, batch * hold, run)
    engine.check_contact_buffer(status)
    if not all_finite(u):
        t = int((~np.isfinite(u)).any((0, 2)).argmax())
        raise InputError(f"the policy returns controls that are not finite at step {t}: check its weights")
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
    """Return cotangents of a rollout under a policy.

    Args:
      engine: Engine of the simulator.
      network: The policy.
      states: States (B, T+1, n).
      u: Controls (B, T, nu).
      params: Parameters of the rollout.
      bars: Cotangents of all states and controls.
      options: Conditioning of the cotangent of the state.
      with_params: Compute the gradient of parameters.
      product: Matrix product; a framework can pass its multithreaded one.
      hold: Number of steps of one control.
    """
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
        found = derive_constants_vjp(
            params, engine.options, len(u), engine.threads, engine.device, back.extra["const_bar"]
        )
    layers = list(zip(back.W_bars, back.b_bars, strict=True))
    return PolicyBars(back.state_bar, back.u_bar, layers, found, back.health)


class _PolicyCotangents:
    """State of the backward pass: cotangents of the current state and, so far, of weights and parameters."""

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
        self.chunk = max(1, min(TAPE // (row * device.dtype.itemsize), MAX_STEPS // hold) // batch)
        self.kernel = engine.bound_kernel(
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
        """Differentiate control steps first .. end, from the last to the first."""
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
