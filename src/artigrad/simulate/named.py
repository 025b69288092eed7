"""Parts of results by name: `traj.body("hand").position`, `grad.joint("knee").q`, beside the arrays of all of them."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from ..errors import InputError
from ..model.model import Model


class NamedFrame(NamedTuple):
    """The frame of a body or a site, world axes. position: m, (..., 3). rotation: (..., 3, 3). velocity: m/s, of its origin.
    angular_velocity: rad/s."""

    position: Any
    rotation: Any
    velocity: Any
    angular_velocity: Any


class JointMotion(NamedTuple):
    """The coordinates q and velocities v of a joint: (...) of a revolute or prismatic one, else (..., n)."""

    q: Any
    v: Any


class OfModel(tuple[Any, ...]):
    """A named tuple that knows of which model it is."""

    model: Model | None = None

    def of(self, model: Model | None) -> Self:
        """The same, which from now on knows its model."""
        self.model = model
        return self

    def _replace(self, **fields: Any) -> Self:
        same = super()._replace(**fields)  # type: ignore[misc]
        return same.of(self.model)

    def _named(self) -> Model:
        if self.model is None:
            raise InputError(
                f"this {type(self).__name__} was put together by hand and knows no names: call .of(model) first"
            )
        return self.model


def frame(outputs: Any, kind: str, k: int) -> NamedFrame:
    """That of body or site k; None for what the outputs leave out."""
    position, rotation, velocity, angular = (getattr(outputs, f"{kind}_{what}") for what in NamedFrame._fields)
    vectors = [None if x is None else x[..., k, :] for x in (position, velocity, angular)]
    return NamedFrame(vectors[0], None if rotation is None else rotation[..., k, :, :], *vectors[1:])


def joint_motion(model: Model, name: str, q: Any, v: Any) -> JointMotion:
    """The columns of q and v that belong to a joint."""
    i = model.joint(name)
    kind = model.joint_kind(i)
    return JointMotion(_columns(q, model.joint_q[i], kind.nq), _columns(v, model.joint_v[i], kind.nv))


def _columns(x: Any, start: int, count: int) -> Any:
    return x[..., start] if count == 1 else x[..., start : start + count]


def control(model: Model, name: str, u: Any) -> Any:
    """The column of u that belongs to an actuator."""
    return u[..., model.actuator(name)]
