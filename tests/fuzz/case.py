"""Test case: builder calls of a model, its options, and a state and controls by names of joints and actuators.

Names make a case valid after parts of it are removed.
"""

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import artigrad as ag


class Call(NamedTuple):
    """Call of a ModelBuilder method; `method` without "add_"."""

    method: str
    args: tuple
    options: dict[str, Any]

    @property
    def names(self):
        """Return the names of bodies, joints, shapes, sites, tendons and actuators in it."""
        return set(_names((*self.args, *self.options.values())))

    def __str__(self):
        given = [plain(x) for x in self.args] + [f"{k}={plain(x)}" for k, x in self.options.items()]
        return f"b.add_{self.method}({', '.join(given)})"


def _names(x):
    for each in x:
        if isinstance(each, str):
            yield each
        elif isinstance(each, list | tuple):
            yield from _names(each)


@dataclass(frozen=True)
class Case:
    """Test case.

    Attributes:
        q, v: Of each joint.
        u: Of each actuator, (steps,).
        options: Of the Simulator.
        seed: Of cotangents and of other batch elements.
        act: Of each actuator with an activation.
    """

    calls: tuple[Call, ...]
    options: dict[str, Any]
    q: dict[str, Any]
    v: dict[str, Any]
    u: dict[str, Any]
    steps: int
    seed: int
    act: dict[str, float] = field(default_factory=dict)

    @cached_property
    def model(self):
        b = ag.ModelBuilder("fuzz")
        b.options = b.options.changed(self.options)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*no contact between")
            for method, args, options in self.calls:
                getattr(b, f"add_{method}")(*args, **options)
            return b.build()

    @cached_property
    def sim(self):
        return ag.Simulator(self.model, threads=1)

    @cached_property
    def state(self):
        return self.state_of(self.model)

    def state_of(self, model):
        """Return the state in the order of a model, which may have the same joints in another order."""
        moving = [name for i, name in enumerate(model.joints) if model.joint_kind(i).nv]
        act = np.array([self.act[model.actuators[a.actuator]] for a in model.activations])
        return ag.State(*(np.concatenate([np.zeros(0)] + [x[name] for name in moving]) for x in (self.q, self.v)), act)

    @cached_property
    def controls(self):
        rows = [self.u[name][: self.steps] for name in self.model.actuators]
        return np.array(rows, float).reshape(-1, self.steps).T.copy()

    @property
    def rng(self):
        return np.random.default_rng(self.seed)

    def changed(self, **fields):
        return replace(self, **fields)

    def code(self):
        """Return lines to paste."""
        options = ", ".join(f"{k}={'ag.' * (not isinstance(x, str | float))}{x!r}" for k, x in self.options.items())
        return "\n".join(
            [
                "import artigrad as ag",
                'b = ag.ModelBuilder("fuzz")',
                *map(str, self.calls),
                f"sim = ag.Simulator(b.build(), {options})",
                f"state = ag.State({', '.join(map(plain, self.state))})",
                f"u = {plain(self.controls)}",
            ]
        )


def plain(x):
    """Return Python text, arrays as lists."""
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if isinstance(x, tuple):
        return f"({', '.join(map(plain, x))},)"
    if isinstance(x, list):
        return f"[{', '.join(map(plain, x))}]"
    return repr(x)
