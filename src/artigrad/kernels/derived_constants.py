"""Kernels of constants derived from Params, and their adjoints: for one shared set (in f64), or one set per robot (packed)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..compiler import PACKED, ROBOTS, SHARED, WORK, ArgumentKind, Kernel, Table, TangentKernel, Target
from ..model.model import Model
from ..model.options import Options
from ..model.params import Params
from ..physics.constants.constants import constants, constants_vjp
from ..physics.constants.constants_context import BODY, ConstantsContext, Fields
from ..physics.constraints.soft.pair_parameters import SoftOptionValues
from ..physics.features import Features
from ..physics.tables import (
    STRUCTURE,
    TOPOLOGY,
    Constants,
    Topology,
    constants_size,
    structure_arguments,
    topology_arguments,
)
from .devices import Device, Host


def _effort(target: Target) -> int:
    """Return the optimization level. With shared parameters these kernels run once per call, so that compile time dominates."""
    return 0 if target.lanes == 1 else 3


INPUTS: dict[str, ArgumentKind] = {"params": ROBOTS, "soft": SHARED, "work": WORK}


def _context(a: dict[str, Any], features: Features) -> ConstantsContext:
    """Arguments of `constants`, inside a kernel."""
    model, structure = Topology.take(a), SimpleNamespace(**{name: a.pop(name) for name in STRUCTURE})
    fields, bodies = Fields(structure.slots, a["params"]), Table(a["work"].memory, BODY, a["work"].start)
    numbers = SoftOptionValues(*(a["soft"][k] for k in range(3)))
    return ConstantsContext(model, structure, fields, bodies, Constants(model, a["out"]), numbers, features)


@cache
def _kernel(target: Target, features: Features) -> Kernel:
    def body(**a: Any) -> None:
        constants(_context(a, features))

    signature: dict[str, ArgumentKind] = {**TOPOLOGY, **STRUCTURE, **INPUTS, "out": PACKED}
    return Kernel("constants", body, signature, target, effort=_effort(target))


@cache
def _vjp_kernel(target: Target, features: Features) -> Kernel:
    def body(**a: Any) -> None:
        m = _context(a, features)
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


@cache
def _tangent_kernel(target: Target, features: Features) -> Kernel:
    return TangentKernel(_kernel(target, features), ("params", "out"))


@cache
def _vjp_tangent_kernel(target: Target, features: Features) -> Kernel:
    return TangentKernel(_vjp_kernel(target, features), ("params", "out_bar", "params_bar"))


def _one(target: Target) -> Target:
    """Target for one shared set: a single robot in double precision."""
    return Target("f64", 1, target.native)


_known: WeakKeyDictionary[Model, dict[Kernel, Any]] = WeakKeyDictionary()


def _bound(model: Model, kernel: Kernel, **scratch: int) -> Any:
    """Return a kernel with the integers of a model bound, cached with the model."""
    own = _known.setdefault(model, {}) if kernel.target.cuda is None else {}
    if kernel not in own:
        own[kernel] = kernel.bind(**topology_arguments(model), **structure_arguments(model), **scratch)
    return own[kernel]


def constants_kernel(model: Model, target: Target, *, shared: bool, backward: bool) -> Any:
    """Return the kernel that computes constants, or its adjoint, with scratch bound, on the device of the target."""
    one = _one(target) if target.cuda is None else replace(target, dtype="f64")
    kernel = (_vjp_kernel if backward else _kernel)(one if shared else target, Features(model.features))
    return _bound(model, kernel, work=_work(model), **({"out": constants_size(model)} if backward else {}))


def _work(model: Model) -> int:
    return (model.nb + 1) * BODY.size


class _ConstantsRun:
    """One run of a kernel of constants: for one shared set in f64 on the host, else for every robot on the device."""

    def __init__(
        self,
        maker: Callable[[Target, Features], Kernel],
        params: Params,
        options: Options,
        batch: int,
        threads: int,
        device: Device,
    ):
        self.model, self.shared, self.device, self.threads = params.model, params.batch is None, device, threads
        target = device.target(batch)
        self.kernel = maker(_one(target) if self.shared else target, Features(self.model.features))
        self.here: Device = Host("f64") if self.shared else device
        self.count, self.batch = 1 if self.shared else batch, batch
        self.inputs = {"params": self.sets(params.flat), "soft": self.here.array(np.array(options.constant_numbers))}

    def sets(self, flat: np.ndarray) -> Any:
        """Parameters as kernel argument: one row, or one per robot."""
        rows = np.atleast_2d(flat)
        return self.here.array(np.ascontiguousarray(np.broadcast_to(rows, (self.count, rows.shape[1]))))

    def new_constants(self) -> Any:
        """Return memory for constants."""
        return self.here.packed(self.kernel.packed_shape(self.count, constants_size(self.model)))

    def total(self, const_bar: Any) -> Any:
        """Return packed cotangents of constants as kernel argument: summed over robots if the set is shared."""
        if not self.shared:
            return const_bar
        total = self.device.total_packed(const_bar, self.batch)
        packed = self.here.packed(self.kernel.packed_shape(1, len(total)))
        packed[0, :, 0] = total
        return packed

    def constants(self, out: Any) -> Any:
        """Return computed constants on the device of the step kernels."""
        return self.device.array(out.reshape(-1)) if self.shared else out

    def gradient(self, out: Any) -> Params:
        found = self.here.host(out)
        return Params(self.model, found[0] if self.shared else found)

    def run(self, scratch: dict[str, int], **arguments: Any) -> None:
        _bound(self.model, self.kernel, work=_work(self.model), **scratch)(
            self.count, self.threads, **self.inputs, **arguments
        )


def derive_constants(params: Params, options: Options, batch: int, threads: int, device: Device) -> Any:
    """Return the constants of `params` for kernels on a device: (n,) if shared, else packed."""
    making = _ConstantsRun(_kernel, params, options, batch, threads, device)
    out = making.new_constants()
    making.run({}, out=out)
    return making.constants(out)


def derive_constants_jvp(
    params: Params, d_params: np.ndarray, options: Options, batch: int, threads: int, device: Device
) -> Any:
    """Return the tangent of the constants for the tangent of `params`."""
    making = _ConstantsRun(_tangent_kernel, params, options, batch, threads, device)
    out = making.new_constants()
    making.run({}, out=making.new_constants(), d_out=out, d_params=making.sets(d_params))
    return making.constants(out)


def derive_constants_vjp(
    params: Params, options: Options, batch: int, threads: int, device: Device, const_bar: Any
) -> Params:
    """Return the gradient of `params` from the packed cotangents of the constants; summed over robots if shared."""
    making = _ConstantsRun(_vjp_kernel, params, options, batch, threads, device)
    out = making.here.zeros(making.inputs["params"].shape)
    making.run({"out": constants_size(params.model)}, out_bar=making.total(const_bar), params_bar=out)
    return making.gradient(out)


def derive_constants_vjp_jvp(
    params: Params,
    d_params: np.ndarray | None,
    options: Options,
    batch: int,
    threads: int,
    device: Device,
    const_bar: Any,
    d_const_bar: Any,
) -> Params:
    """Return the tangent of the gradient of `params` for tangents of `params` and of the cotangents."""
    making = _ConstantsRun(_vjp_tangent_kernel, params, options, batch, threads, device)
    moved = making.sets(np.zeros_like(params.flat) if d_params is None else d_params)
    first, out = (making.here.zeros(moved.shape) for _ in range(2))
    bars = {"out_bar": making.total(const_bar), "d_out_bar": making.total(d_const_bar)}
    making.run({"out": constants_size(params.model)}, d_params=moved, params_bar=first, d_params_bar=out, **bars)
    return making.gradient(out)
