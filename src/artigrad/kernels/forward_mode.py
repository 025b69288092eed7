"""Forward-mode kernels: directional derivatives of the outputs of a kernel with respect to its inputs.

Forward: a rollout, the Jacobian of a step, contacts, queries. Forward over reverse: the adjoints of rollouts and queries, which
gives products with the Hessian of a loss. Constants have tangents too if the key has `moving_params`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..compiler import INT, ROBOTS, ArgumentKind, Kernel, TangentKernel, copy, loop, tangents
from ..physics.step import step
from .jacobian import jacobian_kernel
from .key import KernelKey, with_inputs
from .queries import query_kernel, query_vjp_kernel
from .rollout import clear_status, contacts_kernel, get_state, normalized, rollout_vjp_kernel

_INPUTS = ("q", "v", "act", "u", "wrench", "x")
_BARS = (
    *("q_bars", "v_bars", "act_bars", "force_bars", "out_bar", "q_bar", "v_bar", "act_bar", "u_bar", "wrench_bar"),
    *("x_bar", "const_bar"),
)


def _moving(kernel: Kernel, key: KernelKey, *more: str) -> TangentKernel:
    names = (*_INPUTS, *more, *(("const",) if key.moving_params else ()))
    return TangentKernel(kernel, [name for name in names if name in kernel.signature])


@cache
def rollout_tangent_kernel(key: KernelKey) -> Kernel:
    """Kernel of the tangents d_q, d_v and d_act along a trajectory (q, v, act) of `steps` steps, from row 0 on."""

    def body(**a: Any) -> None:
        s = key.step(a)
        clear_status(s)
        for t in loop(a["steps"]):
            get_state(s, a, t)
            normalized(s, s.q)
            step(with_inputs(s, t, a))
            for name, x, n in s.state:
                copy(tangents(x), tangents(a[name]).shifted((t + 1) * n), n)

    own: dict[str, ArgumentKind] = {"steps": INT, **dict.fromkeys((*key.state, "u"), ROBOTS)}
    return _moving(Kernel("rollout", body, key.signature() | own, key.target), key)


@cache
def rollout_vjp_tangent_kernel(key: KernelKey) -> Kernel:
    return _moving(rollout_vjp_kernel(key), key, *_BARS)


@cache
def jacobian_tangent_kernel(key: KernelKey) -> Kernel:
    return _moving(jacobian_kernel(key), key, "A", "B")


@cache
def contacts_tangent_kernel(key: KernelKey) -> Kernel:
    return _moving(contacts_kernel(key), key, "out")


@cache
def query_tangent_kernel(key: KernelKey, name: str) -> Kernel:
    return _moving(query_kernel(key, name), key, "out")


@cache
def query_vjp_tangent_kernel(key: KernelKey, name: str) -> Kernel:
    return _moving(query_vjp_kernel(key, name), key, *_BARS)


TANGENTS: dict[Any, Any] = {  # the forward-mode kernel of each kernel with the same arguments
    rollout_vjp_kernel: rollout_vjp_tangent_kernel,
    jacobian_kernel: jacobian_tangent_kernel,
    contacts_kernel: contacts_tangent_kernel,
    query_kernel: query_tangent_kernel,
    query_vjp_kernel: query_vjp_tangent_kernel,
}
