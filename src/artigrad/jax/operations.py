"""The described functions as primitives of JAX, with their types and rules for `vmap`, `jvp` and transposition.

    apply           a function of its inputs
    tangent         tangents of its outputs, linear in those of the inputs; its transpose is the adjoint
    adjoint         cotangents of the inputs
    adjoint_tangent tangents of these: forward over reverse; its transpose by the symmetry of Hessians
    curvature       tangents of tangents, which have a transpose only: reverse over forward

An operation has groups of operands (inputs of a function, arrays that its adjoint keeps, cotangents, tangents). `names`
lists those that are present. Under `vmap` all operands have the new axis in front, of length one for parameters that robots
share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..errors import InputError
from ..simulate import function
from ..simulate.arrays import Axes
from ..simulate.function import Call
from . import native_calls
from .mesh_axes import aval, varying_alike
from .xla_call import collecting

THIRD_ORDER = "derivatives of third order are not available: take differences of second ones"
FORWARD_TWICE = "forward mode of forward mode is not available: take jax.jvp of jax.grad, or jacfwd of jacrev"
Names = tuple[tuple[str, ...], ...]
try:  # caches of JAX hold such arguments weakly, so that simulators are freed
    from jax._src.util import weakref_cache_key_types

    weakref_cache_key_types.add(Call)
except ImportError:
    pass


class Operation:
    """groups: what of a call each group of operands is named after: "inputs", "kept", "outputs". gives: "outputs", or "inputs"
    for cotangents of those that are `wanted`. run(call, *groups, with_params): the work, on NumPy arrays."""

    def __init__(
        self, name: str, groups: tuple[str, ...], gives: str, run: Callable[..., tuple[Any, ...]], serve: Any = None
    ):
        self.name, self.groups, self.gives, self.run, self.serve = name, groups, gives, run, serve
        self.primitive = Primitive(f"artigrad_{name}")
        self.primitive.multiple_results = True
        self.primitive.def_abstract_eval(self._like)
        self.primitive.def_impl(self._evaluate)
        statics = ("call", "names", "wanted")
        self._compiled = jax.jit(lambda *x, **about: self.primitive.bind(*x, **about), static_argnames=statics)
        batching.primitive_batchers[self.primitive] = self._batch
        mlir.register_lowering(self.primitive, mlir.lower_fun(self._callback, multiple_results=True))
        for platform in ("cpu", "cuda"):
            native = partial(self._lower, on_host=platform == "cpu")
            mlir.register_lowering(self.primitive, native, platform=platform)

    def __call__(self, call: Call, *groups: dict[str, Any], wanted: Sequence[str] = ()) -> list[Array]:
        """Operands by name; what is None or zero is left out."""
        there = [{k: x for k, x in group.items() if _is_there(x)} for group in groups]
        operands = varying_alike([x for group in there for x in group.values()])
        return self.primitive.bind(*operands, call=call, names=tuple(map(tuple, there)), wanted=tuple(wanted))

    def _evaluate(self, *operands: Any, **about: Any) -> list[Array]:
        """Evaluate outside of transformations and of `jax.jit`: on the host directly, which leaves no program behind."""
        sim = about["call"].sim
        devices = set().union(*(x.devices() for x in operands))
        if not sim.checks.on_host or len(devices) != 1 or next(iter(devices)).platform != "cpu":
            with jax.disable_jit(False):
                return self._compiled(*operands, **about)
        like = self._types(operands, about)
        found = self._work(like, **about)(*operands)
        return jax.device_put(found, next(iter(devices)))

    def split(self, operands: Sequence[Any], names: Names) -> list[dict[str, Any]]:
        """Operands by name, in their groups."""
        rest = iter(operands)
        return [{name: next(rest) for name in group} for group in names]

    def _axes(self, call: Call, names: Names) -> list[tuple[str, int]]:
        """The name of each operand, and how many axes are its own."""
        known = {"inputs": call.inputs, "kept": call.kept_axes, "outputs": call.bar_axes}
        return [(name, known[kind][name]) for kind, group in zip(self.groups, names, strict=True) for name in group]

    def _lead(self, operands: Sequence[Any], call: Call, names: Names) -> Axes:
        """The leading axes of robots."""
        axes = self._axes(call, names)
        x, own = next((x, own) for x, (name, own) in zip(operands, axes, strict=True) if name != "params")
        return tuple(x.shape[: x.ndim - own])

    def _like(self, *operands: Any, call: Call, names: Names, wanted: tuple[str, ...]) -> list[Any]:
        lead = self._lead(operands, call, names)
        some = next(x for x, (name, _) in zip(operands, self._axes(call, names), strict=True) if name != "params")
        if self.gives == "outputs":
            return [_result(some, (*lead, *shape)) for shape in call.outputs.values()]
        shapes, flat = call.input_shapes, self.split(operands, names)[0].get("params")
        return [
            _result(flat, (*lead[: flat.ndim - 1], flat.shape[-1]))  # type: ignore[union-attr]
            if name == "params"
            else _result(some, (*lead, *shapes[name]))
            for name in wanted
        ]

    def _batch(
        self, operands: Sequence[Any], dims: Sequence[Any], *, call: Call, names: Names, wanted: tuple[str, ...]
    ) -> tuple[list[Array], list[int]]:
        size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
        given = []
        for x, d, (name, _) in zip(operands, dims, self._axes(call, names), strict=True):
            if d is not None:
                given.append(jnp.moveaxis(x, d, 0))
            else:
                given.append(jnp.broadcast_to(x[None], (1 if name == "params" else size, *x.shape)))
        found = self.primitive.bind(*given, call=call, names=names, wanted=wanted)
        return found, [0] * len(found)

    # -- the work ------------------------------------------------------------------------------------------------------
    def _lower(self, ctx: Any, *operands: Any, on_host: bool, **about: Any) -> Any:
        """Lower to native calls where there are some, which stay with the compiled program."""
        if getattr(ctx.module_context.lowering_parameters, "for_export", False):
            raise InputError(
                "programs of artigrad run in the process that compiled them: export what is around its calls"
            )
        with collecting() as used:
            found = mlir.lower_fun(partial(self._native, on_host=on_host), multiple_results=True)(
                ctx, *operands, **about
            )
        ctx.module_context.add_keepalive(used)
        return found

    def _native(
        self, *operands: Array, call: Call, names: Names, wanted: tuple[str, ...], on_host: bool
    ) -> list[Array]:
        """Run as a native call where there is one."""
        if self.serve is not None and native_calls.serves(call, on_host):
            return self.serve(call, *self.split(operands, names), wanted=wanted)
        return self._callback(*operands, call=call, names=names, wanted=wanted)

    def _callback(self, *operands: Array, call: Call, names: Names, wanted: tuple[str, ...]) -> list[Array]:
        """Through Python."""
        about: dict[str, Any] = {"call": call, "names": names, "wanted": wanted}
        like = self._types(operands, about)
        return list(jax.pure_callback(self._work(like, **about), like, *operands))

    def _types(self, operands: Sequence[Any], about: dict[str, Any]) -> list[jax.ShapeDtypeStruct]:
        """Shapes and dtypes of the results."""
        found = self._like(*(aval(x) for x in operands), **about)
        return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in found]

    def _work(
        self, like: list[jax.ShapeDtypeStruct], call: Call, names: Names, wanted: tuple[str, ...]
    ) -> Callable[..., list[np.ndarray]]:
        """The work on NumPy arrays."""
        kinds = {"inputs": tuple(call.inputs), "kept": tuple(call.kept_axes), "outputs": tuple(call.outputs)}

        def run(*given: Any) -> list[np.ndarray]:
            groups = self.split([np.asarray(x) for x in given], names)
            arrays = [
                [group.get(name) for name in kinds[kind]] for kind, group in zip(self.groups, groups, strict=True)
            ]
            found = self.run(call, *arrays, *(("params" in wanted,) if self.gives == "inputs" else ()))
            if self.gives == "inputs":
                by_name = dict(zip(call.inputs, found, strict=True))
                found = tuple(by_name[name] for name in wanted)
            return [np.asarray(x, y.dtype) for x, y in zip(found, like, strict=True)]

        return run


def _result(like: Any, shape: Axes) -> Any:
    """The type of a result: strong, and varying over the same manual axes as the operands."""
    return like.update(shape=shape, weak_type=False)


def _is_there(x: Any) -> bool:
    return x is not None and not isinstance(x, ad.Zero)


# -- the operations ----------------------------------------------------------------------------------------------------
apply = Operation("apply", ("inputs",), "outputs", function.evaluate, native_calls.forward)
tangent = Operation("tangent", ("kept", "inputs"), "outputs", function.push_forward)
adjoint = Operation("adjoint", ("kept", "outputs"), "inputs", function.pull_back, native_calls.backward)
adjoint_tangent = Operation(
    "adjoint_tangent", ("kept", "outputs", "kept", "outputs"), "inputs", function.push_pull_back
)


def _refuse_evaluation(*_: Any, **__: Any) -> Any:
    raise InputError(FORWARD_TWICE)


# tangents of tangents: not computed, but transposed, for reverse over forward mode
curvature = Operation("curvature", ("kept", "inputs", "kept"), "outputs", _refuse_evaluation)
curvature.primitive.def_impl(_refuse_evaluation)
for _platform in (None, "cpu", "cuda"):
    mlir.register_lowering(curvature.primitive, _refuse_evaluation, platform=_platform)


def _apply_jvp(primals: Any, tangents: Any, *, call: Call, names: Names, wanted: Any) -> Any:
    (inputs,), (moved,) = apply.split(primals, names), apply.split(tangents, names)
    outputs = apply(call, inputs)
    known = inputs | dict(zip(call.outputs, outputs, strict=True))
    kept = {name: known.get(name) for name in call.kept_axes}
    return outputs, tangent(call, kept, moved)


def _tangent_jvp(primals: Any, tangents: Any, *, call: Call, names: Names, wanted: Any) -> Any:
    (kept, moved), (d_kept, dots) = tangent.split(primals, names), tangent.split(tangents, names)
    found = [tangent(call, kept, dots)] if _some(dots) else []
    if _some(d_kept):
        call.check_second()
        found.append(curvature(call, kept, moved, d_kept))
    return tangent(call, kept, moved), [sum(x[1:], x[0]) for x in zip(*found, strict=True)]


def _tangent_transpose(bars: Any, *operands: Any, call: Call, names: Names, wanted: Any) -> Any:
    kept, moved = tangent.split(operands, names)
    asked = [name for name, x in moved.items() if ad.is_undefined_primal(x)]
    given = dict(zip(call.outputs, bars, strict=True))
    if not _some(given):
        return [None] * len(operands)
    found = dict(zip(asked, adjoint(call, kept, given, wanted=asked), strict=True))
    return [None] * len(kept) + _cotangents(moved, found)


def _curvature_jvp(primals: Any, tangents: Any, *, call: Call, names: Names, wanted: Any) -> Any:
    kept, moved, d_kept = curvature.split(primals, names)
    *others, dots = curvature.split(tangents, names)
    if any(map(_some, others)):
        raise InputError(THIRD_ORDER)
    return curvature(call, kept, moved, d_kept), curvature(call, kept, moved, dots)


def _curvature_transpose(bars: Any, *operands: Any, call: Call, names: Names, wanted: Any) -> Any:
    kept, moved, d_kept = curvature.split(operands, names)
    given = dict(zip(call.outputs, bars, strict=True))
    if not _some(given):
        return [None] * len(operands)
    if any(map(ad.is_undefined_primal, moved.values())):
        raise InputError(THIRD_ORDER)
    found = _second(call, kept, given, moved, tangent(call, kept, moved), d_kept)
    return [None] * (len(kept) + len(moved)) + _cotangents(d_kept, found)


def _adjoint_jvp(primals: Any, tangents: Any, *, call: Call, names: Names, wanted: tuple[str, ...]) -> Any:
    (kept, bars), (d_kept, d_bars) = adjoint.split(primals, names), adjoint.split(tangents, names)
    found = adjoint(call, kept, bars, wanted=wanted)
    if not _some(d_kept):  # the adjoint is linear in cotangents
        return found, adjoint(call, kept, d_bars, wanted=wanted)
    call.check_second()
    return found, adjoint_tangent(call, kept, bars, d_kept, d_bars, wanted=wanted)


def _adjoint_transpose(spread: Any, *operands: Any, call: Call, names: Names, wanted: tuple[str, ...]) -> Any:
    kept, bars = adjoint.split(operands, names)
    moved = dict(zip(wanted, spread, strict=True))
    if not _some(moved):
        return [None] * len(operands)
    found = dict(zip(call.outputs, tangent(call, kept, moved), strict=True))
    return [None] * len(kept) + _cotangents(bars, found)


def _adjoint_tangent_jvp(primals: Any, tangents: Any, *, call: Call, names: Names, wanted: tuple[str, ...]) -> Any:
    kept, bars, *dots = adjoint_tangent.split(primals, names)
    d_kept, d_bars, *moved = adjoint_tangent.split(tangents, names)
    if _some(d_kept) or _some(d_bars):
        raise InputError(THIRD_ORDER)
    return tuple(adjoint_tangent(call, kept, bars, *x, wanted=wanted) for x in (dots, moved))


def _adjoint_tangent_transpose(spread: Any, *operands: Any, call: Call, names: Names, wanted: tuple[str, ...]) -> Any:
    """Transpose forward over reverse: Hessians are symmetric."""
    kept, bars, d_kept, d_bars = adjoint_tangent.split(operands, names)
    moved = dict(zip(wanted, spread, strict=True))
    if not _some(moved):
        return [None] * len(operands)
    changed = tangent(call, kept, moved)
    of_bars = _cotangents(d_bars, dict(zip(call.outputs, changed, strict=True)))
    found = _second(call, kept, bars, moved, changed, d_kept)
    return [None] * (len(kept) + len(bars)) + _cotangents(d_kept, found) + of_bars


def _second(call: Call, kept: Any, bars: Any, moved: Any, changed: Any, d_kept: Any) -> dict[str, Array]:
    """Cotangents of what an adjoint keeps, of the product of cotangents of the outputs, Jacobian and tangents of the inputs:
    the product of the Hessian with these tangents. That of the first state of a rollout has the whole."""
    asked = [name for name, x in d_kept.items() if ad.is_undefined_primal(x)]
    present = [name for name in call.inputs if name in asked or f"{name}_all" in asked]
    if not present:
        return {}
    dots = dict(zip(call.outputs, changed, strict=True)) | moved
    tangents = {name: dots.get(name) for name in kept}
    found = dict(zip(present, adjoint_tangent(call, kept, bars, tangents, {}, wanted=present), strict=True))
    for name in asked:
        first = found.get(name.removesuffix("_all"))
        if name not in found and first is not None:
            rest = jnp.zeros_like(kept[name][..., 1:, :])
            found[name] = jnp.concatenate([first[..., None, :], rest], -2)
    return found


def _cotangents(group: dict[str, Any], found: dict[str, Array]) -> list[Any]:
    """Cotangents of the undefined operands of a group, None for the others and for zero."""
    asked = {name for name, x in group.items() if ad.is_undefined_primal(x)}
    return [_as(found[name], x.aval) if name in asked and name in found else None for name, x in group.items()]


def _as(x: Array, aval: Any) -> Array:
    """A cotangent with the axes of what was broadcast."""
    shared = tuple(k for k, (a, b) in enumerate(zip(x.shape, aval.shape, strict=True)) if a != b)
    return x.sum(shared, keepdims=True) if shared else x


def _some(group: dict[str, Any]) -> bool:
    """Return True if a group of operands has any that is not zero."""
    return any(map(_is_there, group.values()))


ad.primitive_jvps[apply.primitive] = _apply_jvp
ad.primitive_jvps[tangent.primitive] = _tangent_jvp
ad.primitive_transposes[tangent.primitive] = _tangent_transpose
ad.primitive_jvps[curvature.primitive] = _curvature_jvp
ad.primitive_transposes[curvature.primitive] = _curvature_transpose
ad.primitive_jvps[adjoint.primitive] = _adjoint_jvp
ad.primitive_transposes[adjoint.primitive] = _adjoint_transpose
ad.primitive_jvps[adjoint_tangent.primitive] = _adjoint_tangent_jvp
ad.primitive_transposes[adjoint_tangent.primitive] = _adjoint_tangent_transpose
