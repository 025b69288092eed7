"""Public calls on a device: arrays of the caller are worked with where they lie, results go out as arrays of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ..kernels.devices import Host
from .engine import Engine
from .results import Trajectory


class OnDevice(Protocol):
    """What has an engine."""

    engine: Engine


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=OnDevice)


def presented(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a public method of a simulator. On the host there is nothing to do."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        device = self.engine.device
        if isinstance(device, Host):
            return method(self, *args, **kwargs)
        with device.working(list(_arrays((args, kwargs)))):
            out: Any = method(self, *args, **kwargs)
            if isinstance(out, Trajectory):
                return replace(out, final=device.given(out.final), violation=device.given(out.violation))  # type: ignore[return-value]
            return device.given(out)

    return call


def _arrays(x: Any) -> Iterator[Any]:
    """Everything that may be an array among the arguments of a call; those of a trajectory first."""
    if isinstance(x, Trajectory):
        yield from _arrays((x.u, x.wrench, *x.kept.values()))
    elif isinstance(x, dict):
        yield from _arrays(tuple(x.values()))
    elif isinstance(x, tuple | list):
        for item in x:
            yield from _arrays(item)
    elif hasattr(x, "shape"):
        yield x
