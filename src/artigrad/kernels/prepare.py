"""Runs `constants` and its adjoint for Params of one set (once, in f64) or one set per robot (in packs)."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..model.model import Model
from ..model.options import Options
from ..model.params import Params
from ..physics.constants.constants import constants, constants_vjp
from ..physics.constants.making import BODY, Fields, Making
from ..physics.constraints.soft.pair_numbers import SoftNumbers
from ..physics.tables import (
    STRUCTURE,
    TOPOLOGY,
    Constants,
    Topology,
    constants_size,
    structure_arguments,
    topology_arguments,
)
from ..staging import PACKED, ROBOTS, SHARED, WORK, ArgumentKind, Kernel, Table, Target
from .devices import Device, Host


def _effort(target: Target) -> int:
    """For one shared set these kernels run once per call: time spent compiling them does not come back."""
    return 0 if target.lanes == 1 else 3


Has = tuple[bool, frozenset[str]]  # whether there are lines, and which extras


def _has(model: Model) -> Has:
    return bool(model.lines[0]), model.extras


INPUTS: dict[str, ArgumentKind] = {"params": ROBOTS, "soft": SHARED, "work": WORK}


def _making(a: dict[str, Any], has: Has) -> Making:
    """What `constants` knows, inside a kernel."""
    model, structure = Topology.take(a), SimpleNamespace(**{name: a.pop(name) for name in STRUCTURE})
    fields, bodies = Fields(structure.slots, a["params"]), Table(a["work"].memory, BODY, a["work"].start)
    numbers = SoftNumbers(*(a["soft"][k] for k in range(3)))
    return Making(model, structure, fields, bodies, Constants(model, a["out"]), numbers, *has)


@cache
def _kernel(target: Target, has: Has) -> Kernel:
    def body(**a: Any) -> None:
        constants(_making(a, has))

    signature: dict[str, ArgumentKind] = {**TOPOLOGY, **STRUCTURE, **INPUTS, "out": PACKED}
    return Kernel("constants", body, signature, target, effort=_effort(target))


@cache
def _vjp_kernel(target: Target, has: Has) -> Kernel:
    def body(**a: Any) -> None:
        m = _making(a, has)
        out_bar, bars = Constants(m.model, a["out_bar"], bars=True), Fields(m.structure.slots, a["params_bar"])
        constants_vjp(m._replace(out_bar=out_bar, bars=bars))

    signature: dict[str, ArgumentKind] = {
        **TOPOLOGY,
        **STRUCTURE,
        **INPUTS,
        "out": WORK,
        "out_bar": PACKED,
        "params_bar": ROBOTS,
    }
    return Kernel("constants_vjp", body, signature, target, effort=_effort(target))


def _one(target: Target) -> Target:
    """The target for one shared set: a single robot in double precision."""
    return Target("f64", 1, target.native)


_known: WeakKeyDictionary[Model, dict[Kernel, Any]] = WeakKeyDictionary()


def _bound(model: Model, kernel: Kernel, **scratch: int) -> Any:
    """A kernel with the integers of a model in place; those of the host are kept as long as the model."""
    own = _known.setdefault(model, {}) if kernel.target.cuda is None else {}
    if kernel not in own:
        own[kernel] = kernel.bind(**topology_arguments(model), **structure_arguments(model), **scratch)
    return own[kernel]


def prepare(params: Params, options: Options, batch: int, threads: int, device: Device) -> Any:
    """The constants of `params` for kernels on a device: (n,) if shared, else packed."""
    model, shared, target = params.model, params.batch is None, device.target(batch)
    kernel = _kernel(_one(target) if shared else target, _has(model))
    here: Device = Host("f64") if shared else device
    count = 1 if shared else batch
    out = here.packed(kernel.packed_shape(count, constants_size(model)))
    inputs = {"params": here.array(np.atleast_2d(params.flat)), "soft": here.array(np.array(options.soft_numbers))}
    _bound(model, kernel, work=(model.nb + 1) * BODY.size)(count, threads, **inputs, out=out)
    return device.array(out.reshape(-1)) if shared else out


def prepare_vjp(params: Params, options: Options, batch: int, threads: int, device: Device, const_bar: Any) -> Params:
    """The gradient of `params` from the cotangents of the constants, packed per robot; shared Params get their sum."""
    model, shared, target = params.model, params.batch is None, device.target(batch)
    kernel = _vjp_kernel(_one(target) if shared else target, _has(model))
    here: Device = Host("f64") if shared else device
    count = 1 if shared else batch
    if shared:
        total = device.total_packed(const_bar, batch)
        const_bar = here.packed(kernel.packed_shape(1, len(total)))
        const_bar[0, :, 0] = total
    inputs = {"params": here.array(np.atleast_2d(params.flat)), "soft": here.array(np.array(options.soft_numbers))}
    out = here.zeros(inputs["params"].shape)
    scratch = {"out": constants_size(model), "work": (model.nb + 1) * BODY.size}
    _bound(model, kernel, **scratch)(count, threads, **inputs, out_bar=const_bar, params_bar=out)
    found = here.host(out)
    return Params(model, found[0] if shared else found)
