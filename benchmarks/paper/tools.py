"""Rows of the first table: rollout of the same physics and its gradient by each tool.

A tool is constructed for a robot and its inputs, with everything compiled. `forward()` returns the last state, `backward()`
the cotangents of the first state and of the controls. `again` is True if `backward` has to run the rollout itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import artigrad as ag

from . import build
from .scene import DT, OPTIONS, SWEPT, Inputs
from .trace import Program, trace

Bars = tuple[np.ndarray, np.ndarray]
WARM = 10  # steps of the gradient that makes our kernels ready


def simulator(robot: ag.Model, **options: Any) -> ag.Simulator:
    """Return the simulator, on one thread; by default with the sweeps that all tools differentiate."""
    return ag.Simulator(robot, DT, threads=1, law=ag.HardOptions(**OPTIONS | (options or SWEPT)))


def _repeat(turns: int, body: Callable[..., Any], start: tuple[Any, ...]) -> Any:
    for _ in range(turns):
        start = body(*start)
    return start


class Tool:
    """Base class of rows: x is q and v concatenated, and so are cotangents."""

    again = False
    forward_only = False
    version = ""

    def __init__(self, robot: ag.Model, given: Inputs):
        self.robot, self.given, self.steps = robot, given, len(given.u)
        self.x0, self.bar = np.concatenate([given.q, given.v]), np.concatenate([given.q_bar, given.v_bar])

    def forward(self) -> np.ndarray:
        raise NotImplementedError

    def backward(self) -> Bars:
        raise NotImplementedError

    def program(self) -> Program:
        """Return the recorded operations of one step; the simulator is released."""
        return trace(simulator(self.robot))


class Ours(Tool):
    """artigrad. `k`: keep every k-th state."""

    version = ag.__version__

    def __init__(self, robot: ag.Model, given: Inputs, k: int = 0, **options: Any):
        super().__init__(robot, given)
        self.sim = simulator(robot, **options)
        self.state = ag.State(given.q, given.v)
        self.keep = ag.EveryKth(k) if k else ag.EveryStep()
        warm = self.sim.rollout(self.state, given.u[:WARM], checkpoints=self.keep)
        self.sim.vjp(warm, q_bar=given.q_bar, v_bar=given.v_bar, with_params=False)

    def forward(self) -> np.ndarray:
        self.traj = self.sim.rollout(self.state, self.given.u, checkpoints=self.keep)
        return np.concatenate(self.traj.final)

    def backward(self) -> Bars:
        grad = self.sim.vjp(self.traj, q_bar=self.given.q_bar, v_bar=self.given.v_bar, with_params=False)
        del self.traj
        return np.concatenate([grad.q0, grad.v0]), grad.u


class Torch(Tool):
    """PyTorch, eager: every operation of every step on autograd's tape."""

    def __init__(self, robot: ag.Model, given: Inputs):
        import torch

        super().__init__(robot, given)
        torch.set_num_threads(1)
        self.torch, self.version = torch, torch.__version__
        self.step = self.program().function(
            select=self.select,
            sqrt=torch.sqrt,
            fabs=torch.abs,
            round_=torch.round,
            floor=torch.floor,
            repeat=lambda n, body, start: _repeat(n, body, tuple(map(self.number, start))),
        )

    def number(self, x: Any) -> Any:
        return x if isinstance(x, self.torch.Tensor) else self.torch.tensor(x, dtype=self.torch.float64)

    def select(self, chosen: Any, x: Any, y: Any) -> Any:
        return self.torch.where(chosen, x, y) if isinstance(chosen, self.torch.Tensor) else x if chosen else y

    def forward(self) -> np.ndarray:
        torch = self.torch
        self.x, self.u = (torch.tensor(x, requires_grad=True) for x in (self.x0, self.given.u))
        x = self.x
        for u in self.u.unbind():
            x = torch.stack(self.step([*x.unbind(), *u.unbind()]))
        self.last = x
        return x.detach().numpy().copy()

    def backward(self) -> Bars:
        self.last.backward(self.torch.tensor(self.bar))
        bars = self.x.grad.numpy(), self.u.grad.numpy()
        del self.x, self.u, self.last
        return bars


class Jax(Tool):
    """JAX: jit of a scan over steps, and of its gradient; the sweeps are a scan inside. `checkpoint`: of each step."""

    again = True
    FLAGS = (  # flags only: XLA stops at the first word that is not a flag
        "--xla_cpu_multi_thread_eigen=false",
        # fusion copies values with several uses into each of them, until memory is exhausted
        "--xla_disable_hlo_passes=fusion",
        # loops below this size, here all, become one native function: not a call of the runtime for each operation
        f"--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold={10**15}",
    )

    def __init__(self, robot: ag.Model, given: Inputs, checkpoint: bool = False):
        import os

        os.environ["XLA_FLAGS"] = " ".join(self.FLAGS)
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        import jax.numpy as jnp

        super().__init__(robot, given)
        jax.config.update("jax_enable_x64", True)
        self.jax, self.version = jax, jax.__version__
        step = self.program().function(
            select=jnp.where,
            sqrt=jnp.sqrt,
            fabs=jnp.abs,
            round_=jnp.round,
            floor=jnp.floor,
            repeat=self._scan,
        )

        def one(x: Any, u: Any) -> tuple[Any, None]:
            return jnp.stack(step([*(x[k] for k in range(len(self.x0))), *(u[k] for k in range(robot.nu))])), None

        one = jax.checkpoint(one) if checkpoint else one

        def rollout(x: Any, u: Any) -> Any:
            return jax.lax.scan(one, x, u)[0]

        self.inputs = jnp.asarray(self.x0), jnp.asarray(given.u)
        bar = jnp.asarray(self.bar)
        self._forward = jax.jit(rollout).lower(*self.inputs).compile()
        gradient = jax.jit(jax.grad(lambda x, u: rollout(x, u) @ bar, (0, 1)))
        self._gradient = gradient.lower(*self.inputs).compile()

    def _scan(self, turns: int, body: Callable[..., Any], start: tuple[Any, ...]) -> Any:
        begin = tuple(self.jax.numpy.asarray(x, float) for x in start)
        return self.jax.lax.scan(lambda c, _: (tuple(body(*c)), None), begin, None, length=turns)[0]

    def forward(self) -> np.ndarray:
        return np.asarray(self._forward(*self.inputs))

    def backward(self) -> Bars:
        x_bar, u_bar = self._gradient(*self.inputs)
        return np.asarray(x_bar), np.asarray(u_bar)


class Casadi(Tool):
    """CasADi: expression graph of one step and of its reverse derivative, called step by step; states are stored."""

    def __init__(self, robot: ag.Model, given: Inputs):
        from . import casadi_step

        super().__init__(robot, given)
        self.version = casadi_step.VERSION
        one, back = casadi_step.unrolled(self.program(), len(self.x0), robot.nu)
        self.bars = np.empty(len(self.x0) + robot.nu)
        self._forward, self._backward = one.buffer(), back.buffer()

    @staticmethod
    def _call(function: tuple[Any, Callable[[], None]], result: np.ndarray, *given: np.ndarray) -> None:
        buffer, run = function
        for k, x in enumerate(given):
            buffer.set_arg(k, memoryview(x))
        buffer.set_res(0, memoryview(result))
        run()

    def forward(self) -> np.ndarray:
        self.xs = np.empty((self.steps + 1, len(self.x0)))
        self.xs[0] = self.x0
        for t in range(self.steps):
            self._call(self._forward, self.xs[t + 1], self.xs[t], self.given.u[t])
        return self.xs[-1].copy()

    def backward(self) -> Bars:
        n, bar, u_bar = len(self.x0), self.bar.copy(), np.empty_like(self.given.u)
        for t in reversed(range(self.steps)):
            self._call(self._backward, self.bars, self.xs[t], self.given.u[t], bar)
            bar, u_bar[t] = self.bars[:n].copy(), self.bars[n:]
        del self.xs
        return bar, u_bar


class Native(Tool):
    """Library with `forward` and `backward` of whole rollouts: native/`name`.cpp around the printed step."""

    def __init__(self, robot: ag.Model, given: Inputs, name: str):
        super().__init__(robot, given)
        self.forward_only = name == "doubles"
        self.library, self.version = self.build(name)
        self.x, self.x_bar, self.u_bar = np.empty_like(self.x0), np.empty_like(self.x0), np.empty_like(given.u)

    def build(self, name: str) -> tuple[ctypes.CDLL, str]:
        return build.native(name, simulator(self.robot))

    def forward(self) -> np.ndarray:
        self.library.forward(_at(self.x0), _at(self.given.u), ctypes.c_long(self.steps), _at(self.x))
        return self.x.copy()

    def backward(self) -> Bars:
        self.library.backward(_at(self.bar), ctypes.c_long(self.steps), _at(self.x_bar), _at(self.u_bar))
        return self.x_bar, self.u_bar


class CasadiC(Native):
    """CasADi as generated C, native/casadi.c around it."""

    def build(self, name: str) -> tuple[ctypes.CDLL, str]:
        from . import casadi_step

        nx, nu = len(self.x0), self.robot.nu
        return build.casadi(casadi_step.generated(self.program(), nx, nu), nx, nu), casadi_step.VERSION


def _at(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


UNROLLED = ("CasADi", "CasADi, generated C", "JAX", "JAX, checkpoint", "PyTorch")  # ten robots: ten times the code
OURS, IMPLICIT, PLAIN = "artigrad, reverse", "artigrad, implicit", "C++ doubles, no gradient"
TOOLS: dict[str, Callable[[ag.Model, Inputs], Tool]] = {
    OURS: Ours,
    IMPLICIT: partial(Ours, solver="hybrid", gradient="implicit"),
    "CppAD": partial(Native, name="cppad"),
    "Ceres jets": partial(Native, name="ceres"),
    "CasADi": Casadi,
    "CasADi, generated C": partial(CasadiC, name="casadi"),
    "JAX": Jax,
    "JAX, checkpoint": partial(Jax, checkpoint=True),
    "PyTorch": Torch,
    PLAIN: partial(Native, name="doubles"),
    **{f"every {k}. state": partial(Ours, k=k) for k in range(1, 6)},
}
