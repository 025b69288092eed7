"""Access to parts of results by name: `traj.body("hand").position`, `grad.joint("knee").q`."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from ..errors import InputError
from ..model.model import Model


class NamedFrame(NamedTuple):
    """Frame of a body or a site, world axes.

    Attributes:
      position: Origin, m, (..., 3).
      rotation: Rotation matrix, (..., 3, 3).
      velocity: Velocity of the origin, m/s, (..., 3).
      angular_velocity: Angular velocity, rad/s, (..., 3).
    """

    position: Any
    rotation: Any
    velocity: Any
    angular_velocity: Any


class JointMotion(NamedTuple):
    """Coordinates and velocities of a joint, or their cotangents.

    Attributes:
      q: (...) for a revolute or prismatic joint, else (..., n); m, rad or quaternion.
      v: (...) or (..., n); m/s, rad/s.
    """

    q: Any
    v: Any


class OfModel(tuple[Any, ...]):
    """Named tuple with a reference to its model, for access by name."""

    model: Model | None = None

    def of(self, model: Model | None) -> Self:
        """Set the model and return self."""
        self.model = model
        return self

    def _replace(self, **fields: Any) -> Self:
        same = super()._replace(**fields)  # type: ignore[misc]
        return same.of(self.model)

    def _named(self) -> Model:
        if self.model is None:
            raise InputError(
                f"this {type(self).__name__} was constructed without a model: call .of(model) for access by name"
            )
        return self.model


def frame(outputs: Any, kind: str, k: int) -> NamedFrame:
    """Return the frame of body or site k; None for fields that the outputs leave out."""
    position, rotation, velocity, angular = (getattr(outputs, f"{kind}_{what}") for what in NamedFrame._fields)
    vectors = [None if x is None else x[..., k, :] for x in (position, velocity, angular)]
    return NamedFrame(vectors[0], None if rotation is None else rotation[..., k, :, :], *vectors[1:])


def joint_motion(model: Model, name: str, q: Any, v: Any) -> JointMotion:
    """Return the columns of q and v that belong to a joint."""
    i = model.joint(name)
    kind = model.joint_kind(i)
    return JointMotion(_columns(q, model.joint_q[i], kind.nq), _columns(v, model.joint_v[i], kind.nv))


def _columns(x: Any, start: int, count: int) -> Any:
    return x[..., start] if count == 1 else x[..., start : start + count]


def control(model: Model, name: str, u: Any) -> Any:
    """Return the column of u that belongs to an actuator."""
    return u[..., model.actuator(name)]
