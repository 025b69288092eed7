"""Runs `constants` and its adjoint for Params of one set (once, in f64) or one set per robot (in packs)."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from .constants import BODY, constants, constants_vjp
from .model import Model
from .params import Params
from .places import Host, Place
from .staging import PACKED, ROBOTS, WORK, Kernel, Target
from .staging.kernel import Kind
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


def prepare(model: Model, params: Params, target: Target, batch: int, threads: int, place: Place) -> Any:
    """The constants of `params` for kernels on `target`, whose arrays live in `place`: (n,) if shared, else packed."""
    shared = params.batch is None
    kernel = _kernel(_one(target) if shared else target)
    here = Host(kernel.target.numpy_dtype) if shared else place
    count = 1 if shared else batch
    out = here.packed(kernel.packed_shape(count, constants_size(model)))
    flat = here.array(np.atleast_2d(params.flat))
    kernel(count, threads, **_integers(model), params=flat, out=out, work=(model.nb + 1) * BODY.size)
    return place.array(out.reshape(-1)) if shared else out


def prepare_vjp(
    model: Model, params: Params, target: Target, batch: int, threads: int, place: Place, const_bar: Any
) -> Params:
    """The gradient of `params` from the cotangents of the constants, packed per robot; shared Params get their sum."""
    shared = params.batch is None
    kernel = _vjp_kernel(_one(target) if shared else target)
    here = Host(kernel.target.numpy_dtype) if shared else place
    count = 1 if shared else batch
    if shared:
        total = place.total_packed(const_bar, batch)
        const_bar = here.packed(kernel.packed_shape(1, len(total)))
        const_bar[0, :, 0] = total
    flat = here.array(np.atleast_2d(params.flat))
    out = here.zeros(flat.shape)
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
    found = here.host(out)
    return Params(model, found[0] if shared else found)
