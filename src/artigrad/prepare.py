"""Runs `constants` and its adjoint for Params of one set (once, in f64) or one set per robot (in packs)."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from .constants import BODY, constants, constants_vjp
from .model import Model
from .params import Params
from .staging import PACKED, ROBOTS, WORK, Kernel, Target
from .staging.kernel import Kind, empty
from .tables import (
    STRUCTURE,
    TOPOLOGY,
    Constants,
    Topology,
    constants_size,
    structure_arguments,
    topology_arguments,
)


def _effort(target: Target) -> int:
    """For one shared set these kernels run once per call: time spent compiling them does not come back."""
    return 0 if target.lanes == 1 else 3


def _split(rest: dict[str, Any]) -> tuple[Topology, Any]:
    return Topology.take(rest), SimpleNamespace(**{name: rest.pop(name) for name in STRUCTURE})


@cache
def _kernel(target: Target) -> Kernel:
    def body(params: Any, out: Any, work: Any, **rest: Any) -> None:
        topology, structure = _split(rest)
        constants(topology, structure, params, work, Constants(topology, out))

    signature: dict[str, Kind] = {**TOPOLOGY, **STRUCTURE, "params": ROBOTS, "out": PACKED, "work": WORK}
    return Kernel("constants", body, signature, target, effort=_effort(target))


@cache
def _vjp_kernel(target: Target) -> Kernel:
    def body(params: Any, out: Any, out_bar: Any, params_bar: Any, work: Any, **rest: Any) -> None:
        topology, structure = _split(rest)
        made, made_bar = Constants(topology, out), Constants(topology, out_bar, bars=True)
        constants_vjp(topology, structure, params, work, made, made_bar, params_bar)

    signature: dict[str, Kind] = {
        **TOPOLOGY,
        **STRUCTURE,
        "params": ROBOTS,
        "out": WORK,
        "out_bar": PACKED,
        "params_bar": ROBOTS,
        "work": WORK,
    }
    return Kernel("constants_vjp", body, signature, target, effort=_effort(target))


def _one(target: Target) -> Target:
    """The target for one shared set: a single robot in double precision."""
    return Target("f64", 1, target.native)


def _integers(model: Model) -> dict[str, Any]:
    return topology_arguments(model) | structure_arguments(model)


def prepare(model: Model, params: Params, target: Target, batch: int, threads: int) -> np.ndarray:
    """The constants of `params` for kernels on `target`: (n,) if shared, else packed."""
    shared = params.batch is None
    kernel = _kernel(_one(target) if shared else target)
    dtype = kernel.target.numpy_dtype
    count = 1 if shared else batch
    out = empty(kernel.packed_shape(count, constants_size(model)), dtype)
    flat = np.ascontiguousarray(np.atleast_2d(params.flat), dtype)
    kernel(count, threads, **_integers(model), params=flat, out=out, work=(model.nb + 1) * BODY.size)
    return out.reshape(-1).astype(target.numpy_dtype) if shared else out


def prepare_vjp(
    model: Model, params: Params, target: Target, batch: int, threads: int, const_bar: np.ndarray
) -> Params:
    """The gradient of `params` from the cotangents of the constants, packed per robot; shared Params get their sum."""
    shared = params.batch is None
    kernel = _vjp_kernel(_one(target) if shared else target)
    dtype = kernel.target.numpy_dtype
    count = 1 if shared else batch
    if shared:
        rows = const_bar.transpose(0, 2, 1).reshape(-1, const_bar.shape[1])[:batch]
        const_bar = empty(kernel.packed_shape(1, const_bar.shape[1]), dtype)
        const_bar[0, :, 0] = rows.sum(0, dtype=np.float64)
    flat = np.ascontiguousarray(np.atleast_2d(params.flat), dtype)
    out = np.zeros_like(flat)
    kernel(
        count,
        threads,
        **_integers(model),
        params=flat,
        out=constants_size(model),
        out_bar=const_bar,
        params_bar=out,
        work=(model.nb + 1) * BODY.size,
    )
    return Params(model, out[0] if shared else out)
