"""State: the quantities carried from one step to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class State(tuple[Any, ...]):
    """Positions, velocities and activations of one robot, or of a batch (batch axis first).

    Attributes:
        q: (nq,) in MuJoCo's order: free joint = position (world, m) and unit quaternion w x y z; ball = quaternion;
            others one angle (rad) or length (m).
        v: (nv,) free joint = linear velocity (world axes, m/s), then angular velocity (body axes, rad/s); ball =
            angular velocity (body axes); others the rate of q.
        act: (na,) activations of the actuators that have them, in their order; zero if omitted for a model that has
            some.

    It is a tuple: (q, v) of a model without activations, whose act is empty, and (q, v, act) of one with activations.
    """

    __slots__ = ()
    _fields = ("q", "v", "act")  # lets PyTorch reconstruct the tuple from its parts

    def __new__(cls, q: Any, v: Any, act: Any = None) -> State:
        shape = getattr(act, "shape", None)
        without = act is None or (isinstance(shape, tuple) and shape[-1:] == (0,))
        return super().__new__(cls, (q, v) if without else (q, v, act))

    @property
    def q(self) -> Any:
        return self[0]

    @property
    def v(self) -> Any:
        return self[1]

    @property
    def act(self) -> Any:
        return self[2] if len(self) > 2 else self[0][..., :0]

    def map(self, function: Callable[[Any], Any]) -> State:
        """Return a State with a function applied to each array."""
        return State(*(function(x) for x in self))

    def named(self, what: str = "") -> dict[str, Any]:
        """Return the arrays by name, with a suffix added to each name."""
        return {name + what: x for name, x in zip(self._fields, self, strict=False)}

    @classmethod
    def _make(cls, parts: Any) -> State:
        return cls(*parts)

    def _replace(self, **parts: Any) -> State:
        return State(**(self.named() | parts))

    def _asdict(self) -> dict[str, Any]:
        return self.named()

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return f"State({', '.join(f'{name}={x!r}' for name, x in self.named().items())})"
