"""Manual axes of a mesh (`jax.shard_map`) that arrays vary over, under the names of several versions of JAX."""

from __future__ import annotations

from typing import Any

import jax


def varying_alike(operands: list[Any]) -> list[Any]:
    """Operands that vary over the same manual axes of a mesh (`jax.shard_map`), so that cotangents of those that devices
    share are summed over them."""
    axes = [_varying_axes(x) for x in operands]
    every = frozenset().union(*axes)
    return [x if own == every else _vary(x, tuple(sorted(every - own))) for x, own in zip(operands, axes, strict=True)]


def aval(x: Any) -> Any:
    """The type of an array; `jax.typeof` came with jax 0.6."""
    return jax.typeof(x) if hasattr(jax, "typeof") else jax.core.get_aval(x)  # type: ignore[attr-defined]


def _varying_axes(x: Any) -> frozenset[str]:
    """The manual axes of a mesh that an array varies over, under the name of several versions of JAX."""
    kind = aval(x)
    return frozenset(kind.mat.varying if hasattr(kind, "mat") else getattr(kind, "vma", ()))


def _vary(x: Any, axes: tuple[str, ...]) -> Any:
    return jax.lax.pcast(x, axes, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(x, axes)  # type: ignore[attr-defined]
