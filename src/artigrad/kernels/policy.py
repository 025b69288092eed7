"""Rollouts under a multilayer perceptron inside the kernel, and their adjoint.

    x_0 = (q, v, act),   x_{i+1} = f_i(W_i x_i + b_i),   u = x_L,   x_0' = step(x_0, u)

All robots share the weights. They are stored in blocks of neurons: biases, then for each input the weights of the block.
The inner loop reads them in order, and an entry of x (a SIMD vector of robots) is multiplied with all weights of a block.
For a single robot the neurons of a block form the SIMD vector. The adjoint uses the same product with the transposed
matrix; derivatives of activations are computed from their values. For cotangents of the weights, sums of z x^T over robots
and steps, x and z of every layer are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..compiler import (
    INT,
    PACKED,
    REAL,
    ROBOTS,
    SHARED,
    WORK,
    ArgumentKind,
    Kernel,
    Reals,
    Target,
    carry,
    copy,
    expm1,
    loop,
    maximum,
    minimum,
    select,
    tanh,
    target,
)
from ..physics.step import step
from .key import KernelKey
from .rollout import (
    add_bars,
    add_state_bars,
    adjoint_of_step,
    clear_status,
    condition_cotangent,
    get_state,
    give_bars,
    put_state,
    report_status,
    take_bars,
)

BLOCK, BLOCK_ALONE = 8, 32  # neurons that go through the inner loop together, for packs and for one robot
ROOM = 64  # entries more than a layer has: whole blocks and whole packs are written


class Activation(NamedTuple):
    """Activation function y = value(x), and dy/dx = slope(y)."""

    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]


ACTIVATIONS = {
    "linear": Activation(lambda x: x, lambda y: 1.0),
    "tanh": Activation(tanh, lambda y: 1.0 - y * y),
    "relu": Activation(lambda x: maximum(x, 0.0), lambda y: select(y > 0.0, 1.0, 0.0)),
    "elu": Activation(lambda x: select(x > 0.0, x, expm1(minimum(x, 0.0))), lambda y: select(y > 0.0, 1.0, y + 1.0)),
}


class Shape(NamedTuple):
    """Sizes of x_0 .. x_L and names of the activations f_0 .. f_{L-1}."""

    sizes: tuple[int, ...]
    activations: tuple[str, ...]

    @property
    def layers(self) -> range:
        return range(len(self.activations))

    def counts(self, block: int) -> dict[str, int]:
        """Return the kernel arguments: size n0, n1, ... of each x, and numbers of blocks."""
        blocks = {f"blocks{i}": -(-n // block) for i, n in enumerate(self.sizes)}
        return {f"n{i}": n for i, n in enumerate(self.sizes)} | blocks

    def work(self, backward: bool) -> dict[str, int]:
        """Return scratch sizes: x of each layer; backward also its cotangent z and that of held controls."""
        held = {"held": self.sizes[-1]} if backward else {}
        return held | {f"{name}{i}": n + ROOM for name in ("xz" if backward else "x") for i, n in enumerate(self.sizes)}


def block_of(target: Target) -> int:
    """Return the number of neurons per block in kernels for this target."""
    return BLOCK_ALONE if _single_robot(target) else BLOCK


def _single_robot(target: Target) -> bool:
    return target.native and target.lanes == 1 and target.cuda is None


def packed_weights(W: np.ndarray, b: np.ndarray, dtype: np.dtype, block: int) -> np.ndarray:
    """Pack W (outputs, inputs) and b (outputs,) into blocks of `block` outputs."""
    outputs, inputs = W.shape
    blocks = -(-outputs // block)
    full = np.zeros((blocks * block, inputs + 1), dtype)
    full[:outputs, 0], full[:outputs, 1:] = b, W
    return np.ascontiguousarray(full.reshape(blocks, block, inputs + 1).transpose(0, 2, 1)).reshape(-1)


# -- the network, staged -------------------------------------------------------------------------------------------------
class _Layers:
    """Network inside a kernel: weights, sizes and scratch are in the arguments a."""

    def __init__(self, activations: tuple[str, ...], alone: bool, a: dict[str, Any]):
        self.activations, self.last, self.a = activations, len(activations), a
        self.product = _product_single if alone else _product

    def evaluate(self) -> Reals:
        """Compute x_L from x_0."""
        a = self.a
        for i, name in enumerate(self.activations):
            f, out = ACTIVATIONS[name].value, a[f"x{i + 1}"]

            def put(j: Any, total: Any, f: Any = f, out: Reals = out) -> None:
                out[j] = f(total)

            self.product(a[f"w{i}"], a[f"blocks{i + 1}"], a[f"n{i}"], a[f"x{i}"], put)
        return a[f"x{self.last}"]

    def evaluate_vjp(self, u_bar: Reals) -> Reals:
        """Compute z_L = f'(x_L) u_bar,  z_i = f'(x_i) W_i^T z_{i+1}; z_0, the cotangent of x_0, has no activation."""
        a, slope = self.a, ACTIVATIONS[self.activations[-1]].slope
        for k in loop(a[f"n{self.last}"]):
            a[f"z{self.last}"][k] = slope(a[f"x{self.last}"][k]) * u_bar[k]
        for i in reversed(range(self.last)):
            slope = ACTIVATIONS[self.activations[i - 1] if i else "linear"].slope
            x, out = a[f"x{i}"], a[f"z{i}"]

            def put(j: Any, total: Any, slope: Any = slope, x: Reals = x, out: Reals = out) -> None:
                out[j] = slope(x[j]) * total

            self.product(a[f"transposed{i}"], a[f"blocks{i}"], a[f"n{i + 1}"], a[f"z{i + 1}"], put)
        return a["z0"]


def _product(w: Reals, blocks: Any, inputs: Any, x: Reals, finish: Callable[[Any, Any], None]) -> None:
    """Call finish(j, b_j + sum_k W_jk x_k) for every neuron j."""
    for block in loop(blocks):
        start = block * ((inputs + 1) * BLOCK)
        sums = [carry(w[start + j]) for j in range(BLOCK)]
        for k in loop(inputs):
            row, x_k = start + (k + 1) * BLOCK, x[k]
            for j, total in enumerate(sums):
                total.value = total.value + w[row + j] * x_k
        for j, total in enumerate(sums):
            finish(block * BLOCK + j, total.value)


def _product_single(w: Reals, blocks: Any, inputs: Any, x: Reals, finish: Callable[[Any, Any], None]) -> None:
    """Product for one robot, with the neurons of a block in one vector; sums have the same order as for a pack."""
    e, n = target(), BLOCK_ALONE
    for block in loop(blocks):
        start = block * ((inputs + 1) * n)
        with e.side_by_side(n):
            total = carry(w.row(start))
        for k in loop(inputs):
            x_k = x[k].ref
            with e.side_by_side(n):
                total.value = total.value + w.row(start + (k + 1) * n) * e.splat(x_k)
        with e.side_by_side(n):
            finish(block * n, total.value)


# -- kernels -------------------------------------------------------------------------------------------------------------
@cache
def policy_rollout(shape: Shape) -> Callable[[KernelKey], Kernel]:
    """Return the maker of the kernel: `steps` controls, each held for `hold` steps, from row 0 of the state.

    States are written to the next rows, controls to u.
    """
    return lambda key: _policy_rollout(key, shape.activations)


@cache
def _policy_rollout(key: KernelKey, activations: tuple[str, ...]) -> Kernel:
    shape = Shape((0,) * (len(activations) + 1), activations)  # sizes are arguments: one kernel for all

    def body(**a: Any) -> None:
        s, network = key.step(a), _Layers(activations, _single_robot(key.target), a)
        nu = s.model.nu
        get_state(s, a, 0)
        clear_status(s)
        for c in loop(a["steps"]):
            for first, _, x, n in _side_by_side(s.state):
                for k in loop(n):
                    a["x0"][first + k] = x[k]
            u = network.evaluate()
            for j in loop(a["hold"]):
                t = c * a["hold"] + j
                for k in loop(nu):
                    s.ws.u[k] = u[k]
                copy(s.ws.u, a["u"].shifted(t * nu), nu)
                step(s)
                put_state(s, a, t + 1)
        report_status(s, a)

    own: dict[str, ArgumentKind] = {
        **dict.fromkeys(("steps", "hold"), INT),
        **dict.fromkeys(shape.counts(BLOCK), INT),
        **dict.fromkeys((*key.state, "u"), ROBOTS),
        **{f"w{i}": SHARED for i in shape.layers},
        **dict.fromkeys(shape.work(False), WORK),
        **({"status": ROBOTS} if key.contact else {}),
    }
    return Kernel("policy_rollout", body, key.signature() | own, key.target)


@cache
def policy_rollout_vjp(shape: Shape) -> Callable[[KernelKey], Kernel]:
    """Return the maker of the adjoint of `length` controls, each held for `hold` steps, from the last to the first.

    States and controls are given. Before each control the cotangent of the state is clipped to the norm `clip`, if
    `clipped`, and multiplied by `decay`. Cotangents of all states and controls (q_bars and the like) are added. u_bar is
    the total cotangent of the controls of each step. x and z of every layer and control are written to tape_x0, tape_z1,
    ...
    """
    return lambda key: _policy_rollout_vjp(key, shape.activations)


@cache
def _policy_rollout_vjp(key: KernelKey, activations: tuple[str, ...]) -> Kernel:
    shape = Shape((0,) * (len(activations) + 1), activations)

    def body(**a: Any) -> None:
        s, network = key.step(a), _Layers(activations, _single_robot(key.target), a)
        s = s.at(bars=key.bars(s, a.get("const_bar")))
        nu = s.model.nu
        take_bars(s, a)
        for c in loop(a["length"], inwards=True):
            condition_cotangent(s, a)
            for k in loop(nu):
                a["held"][k] = 0.0
            for j in loop(a["hold"], inwards=True):
                t = c * a["hold"] + j
                adjoint_of_step(s, t, t, a)
                add_bars(a["u_bars"].shifted(t * nu), s.ws.u, s.bars.u, nu)
                copy(s.bars.u, a["u_bar"].shifted(t * nu), nu)
                for k in loop(nu):
                    a["held"][k] = a["held"][k] + s.bars.u[k]
                add_state_bars(s, t, a)
            for first, name, _, n in _side_by_side(s.state):
                copy(a[name].shifted(c * a["hold"] * n), a["x0"].shifted(first), n)
            network.evaluate()
            x_bar = network.evaluate_vjp(a["held"])
            for first, _, bars, n in _side_by_side(s.state_bars):
                for k in loop(n):
                    bars[k] = bars[k] + x_bar[first + k]
            for i in shape.layers:
                for name, j in (("x", i), ("z", i + 1)):
                    copy(a[f"{name}{j}"], a[f"tape_{name}{j}"].shifted(c * a[f"n{j}"]), a[f"n{j}"])
        give_bars(s, a)

    own: dict[str, ArgumentKind] = {
        **dict.fromkeys(("length", "hold", "clipped"), INT),
        **dict.fromkeys(("decay", "clip"), REAL),
        **dict.fromkeys(shape.counts(BLOCK), INT),
        **{f"{name}{what}": ROBOTS for name in (*key.state, "u") for what in ("", "_bars", "_bar")},
        **{f"{name}{i}": SHARED for name in ("w", "transposed") for i in shape.layers},
        **{name: ROBOTS for i in shape.layers for name in (f"tape_x{i}", f"tape_z{i + 1}")},
        **dict.fromkeys(shape.work(True), WORK),
        **({"const_bar": PACKED} if key.with_params else {}),
        **({"health": ROBOTS} if key.contact else {}),
    }
    return Kernel("policy_rollout_vjp", body, key.signature(key.taped) | own, key.target)


def _side_by_side(parts: list[tuple[str, Reals, Any]]) -> list[tuple[Any, str, Reals, Any]]:
    """Yield the parts of a state in order: first index, name, array, size."""
    out: list[tuple[Any, str, Reals, Any]] = []
    first: Any = 0
    for name, x, n in parts:
        out.append((first, name, x, n))
        first = first + n
    return out
