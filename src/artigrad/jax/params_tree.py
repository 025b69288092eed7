"""`Params` as a pytree of named fields: masks, rates and `vmap(in_axes=...)` by field. Fields of size zero are left out."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np

from ..model.model import Model
from ..model.params import FIELDS, Params, current_name


class FieldParams(Params):
    """Params whose fields are leaves of a pytree: arrays of JAX, or any others (axes, masks, shardings)."""

    __slots__ = ("leaves",)
    leaves: dict[str, Any]

    @classmethod
    def of_leaves(cls, model: Model, leaves: Iterable[Any]) -> FieldParams:
        """Wrap the leaves of a model's fields, in their order."""
        params = object.__new__(cls)
        given = (("model", model), ("checked", False), ("_features", None))
        for name, value in (*given, ("leaves", dict(zip(names_of(model), leaves, strict=True)))):
            object.__setattr__(params, name, value)
        return params

    @property
    def flat(self) -> Any:
        """All values, (n,) or (batch, n)."""
        arrays = {name: jnp.asarray(x) for name, x in self.leaves.items()}
        shapes = {name: self._slot(name)[1] for name in arrays}
        lead = np.broadcast_shapes(*(x.shape[: x.ndim - len(shapes[name])] for name, x in arrays.items()))
        rows = [
            jnp.broadcast_to(x, (*lead, *shapes[name])).reshape(*lead, prod(shapes[name])) for name, x in arrays.items()
        ]
        return jnp.concatenate(rows, -1)

    def __getitem__(self, name: str) -> Any:
        name = current_name(name)
        _, shape = self._slot(name)
        return self.leaves[name] if prod(shape) else np.zeros(shape)

    def __repr__(self) -> str:
        return f"Params({self.model.name!r}, {len(self.leaves)} fields)"

    def __reduce__(self) -> Any:
        return Params, (self.model, np.asarray(self.flat))


_names: WeakKeyDictionary[Model, tuple[str, ...]] = WeakKeyDictionary()


def names_of(model: Model) -> tuple[str, ...]:
    """Names of the fields of a model that have entries, in the order of `Params.flat`."""
    if model not in _names:
        slots = {name: model.params._slot(name) for name in FIELDS}
        there = (name for name, (_, shape) in slots.items() if prod(shape))
        _names[model] = tuple(sorted(there, key=lambda name: slots[name][0]))
    return _names[model]


def _flatten(params: Params) -> tuple[list[Any], Model]:
    return [params[name] for name in names_of(params.model)], params.model


def _flatten_leaves(params: FieldParams) -> tuple[list[Any], Model]:
    return list(params.leaves.values()), params.model


def register() -> None:
    """Register Params and FieldParams; results of transformations are FieldParams."""
    kinds: tuple[tuple[Any, Any], ...] = ((Params, _flatten), (FieldParams, _flatten_leaves))
    for kind, flatten in kinds:

        def with_keys(params: Params, flatten: Any = flatten) -> tuple[list[tuple[Any, Any]], Model]:
            leaves, model = flatten(params)
            return list(zip(map(jax.tree_util.GetAttrKey, names_of(model)), leaves, strict=True)), model

        jax.tree_util.register_pytree_with_keys(kind, with_keys, FieldParams.of_leaves, flatten)
