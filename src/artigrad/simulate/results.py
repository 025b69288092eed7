"""Results of a Simulator: trajectories, gradients, outputs and contacts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from ..deprecation import renamed
from ..errors import InputError
from ..files import as_path
from ..kernels.devices import Host
from ..model.params import Params
from ..model.state import State
from ..physics.constraints.report import REPORT
from .checkpoints import Checkpoints
from .engine import Engine
from .named import JointMotion, NamedFrame, OfModel, control, frame, joint_motion

if TYPE_CHECKING:
    import os

    from ..view.browser import Viewer
    from .policy_loop import Network
    from .simulator import Simulator


@renamed(margin="switch_margin")
class Health(NamedTuple):
    """Diagnostics of a gradient, one entry per batch element.

    Attributes:
        finite: True where all entries are finite, (B,); on a GPU without PyTorch 1.0 or 0.0.
        violation: Largest residual of the constraints of all steps, (B,), as in `Trajectory`; 0 if all steps converged.
        switch_margin: Distance to the nearest kink, (B,), m/s: the smallest change of velocity, over all steps, at which a
            derivative jumps. Kinks are changes of the regime of a row (sticking, sliding, separating), activations of
            limits, actuators at the end of a range, and contacts on other vertices, edges or faces; beginning contacts are
            not included. 0: the gradient is one-sided. 1000: there was no kink nearby.
    """

    finite: np.ndarray
    violation: np.ndarray
    switch_margin: np.ndarray


class GradientFields(NamedTuple):
    """Fields of `Gradient`."""

    q0: np.ndarray
    v0: np.ndarray
    u: np.ndarray
    params: Params | None
    wrench: np.ndarray | None
    health: Health
    layers: list[tuple[np.ndarray, np.ndarray]] | None = None
    act0: Any = None


class Gradient(OfModel, GradientFields):
    """Gradient of a loss with respect to the inputs of a rollout. Each entry has the shape of the input; B is the batch axis.

    Attributes:
      q0: Of the first positions, (nq,) or (B, nq), ambient: with respect to all entries of q, quaternions included.
      v0: Of the first velocities, (nv,) or (B, nv).
      u: Of the controls, (T, nu) or (B, T, nu); summed over the batch if they are shared. Under a policy: of the controls
        it returned.
      params: Of all physical parameters, a Params (`grad.params.mass`); None with with_params=False.
      wrench: Of the external wrenches, (T, nb, 6) or (B, T, nb, 6); None without wrenches.
      health: Diagnostics of the gradient.
      layers: Of the weights of a policy, (W, b) of each layer.
      act0: Of the first activations, (na,) or (B, na).
    """

    def joint(self, name: str) -> JointMotion:
        """Return the gradient of the first position and velocity of a joint."""
        return joint_motion(self._named(), name, self.q0, self.v0)

    def actuator(self, name: str) -> Any:
        """Return the gradient of the controls of an actuator, (..., T)."""
        return control(self._named(), name, self.u)


class Contacts(NamedTuple):
    """Contacts of each step, one row for every candidate contact point, named by `Simulator.contact_names`.

    Leading axes are (T,), or (B, T) with a batch. All vectors are in world axes.

    Attributes:
      force: Mean force over the step on the body of the second shape, N, (..., points, 3); the first body has the opposite
        force.
      point: Position, m, (..., points, 3); zero where no shape is near.
      gap: Signed distance, m, (..., points), negative for overlap; where no shape is near 1000 or, under the hard law,
        search_distance.
      along: Components of the force along the normal and two friction directions, N, (..., points, 3).
      normal: Unit normal from the first shape to the second, (..., points, 3).
      torque: Torque at the point, N m, (..., points, 3), of contacts of condim 4 and 6.
    """

    force: np.ndarray
    point: np.ndarray
    gap: np.ndarray
    along: np.ndarray
    normal: np.ndarray
    torque: np.ndarray

    @classmethod
    def of_report(cls, rows: Any) -> Contacts:
        """Return the fields of contact records (..., points, size), as views."""
        fields = REPORT.views(rows)
        return cls(*(fields[name] for name in cls._fields))


class StateGradientFields(NamedTuple):
    """Fields of `StateGradient`."""

    q: np.ndarray
    v: np.ndarray
    params: Any
    u: np.ndarray | None = None
    a: np.ndarray | None = None
    act: Any = None


class StateGradient(OfModel, StateGradientFields):
    """Gradient of a loss with respect to the inputs of a function of one state. Each entry has the shape of the input.

    Attributes:
      q: Of positions, (..., nq), ambient.
      v: Of velocities, (..., nv).
      params: A Params; None with with_params=False.
      u: Of controls, (..., nu), for `forward_dynamics` and `sensors`; else None.
      a: Of joint accelerations, (..., nv), for `inverse_dynamics`; else None.
      act: Of activations, (..., na).
    """

    def joint(self, name: str) -> JointMotion:
        """Return the gradient of the position and velocity of a joint."""
        return joint_motion(self._named(), name, self.q, self.v)

    def actuator(self, name: str) -> Any:
        """Return the gradient of the control of an actuator."""
        if self.u is None:
            raise InputError("this is the gradient of a function without controls")
        return control(self._named(), name, self.u)


class OutputFields(NamedTuple):
    """Fields of `Outputs`."""

    body_position: Any = None
    body_rotation: Any = None
    body_velocity: Any = None
    body_angular_velocity: Any = None
    site_position: Any = None
    site_rotation: Any = None
    site_velocity: Any = None
    site_angular_velocity: Any = None
    com: Any = None
    kinetic_energy: Any = None
    potential_energy: Any = None


class Outputs(OfModel, OutputFields):
    """Quantities for losses, in world axes and SI units. Leading axes are those of the state.

    Attributes:
      body_position, site_position: Origins of frames, m, (..., n, 3).
      body_rotation, site_rotation: Rotation matrices of frames, (..., n, 3, 3).
      body_velocity, site_velocity: Velocities of the origins, m/s, (..., n, 3).
      body_angular_velocity, site_angular_velocity: Angular velocities, rad/s, (..., n, 3).
      com: Center of mass of the whole model, m, (..., 3).
      kinetic_energy, potential_energy: J, (...).
    """

    def body(self, name: str) -> NamedFrame:
        """Return the frame of a body."""
        return frame(self, "body", self._named().body(name))

    def site(self, name: str) -> NamedFrame:
        """Return the frame of a site."""
        return frame(self, "site", self._named().site(name))


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """Result of a rollout: its states and inputs. T is the number of steps, B the batch size.

    `q` (T+1, nq), `v` (T+1, nv) and `act` (T+1, na), or (B, T+1, ...) with a batch, are available if every state was kept;
    `final` always is. `time` (T+1,) are the times of these states, s. `len(traj)` is T+1.

    Attributes:
      simulator: Simulator of the rollout.
      final: Last state, (n,) or (B, n).
      u: Controls of every step, (T, nu) or (B, T, nu); under a policy those it returned.
      wrench: External wrenches of every step, (T, nb, 6) or (B, T, nb, 6); None without.
      params: Parameters.
      steps: T.
      checkpoints: Checkpoint policy.
      kept: States that were kept, by block of steps, (B, rows, n).
      batched: True if the states have a batch axis.
      violation: Largest residual of the constraint solver over all steps, (B,); 0 if all steps were solved. Soft law:
        relative to the forces. Hard law: m/s; the gradient of an unsolved step is that of the active set found.
      fingerprint: Checksum of the inputs.
      policy: Policy of the rollout, or None.
      hold: Number of steps for which each given control was held.
    """

    simulator: Simulator = field(repr=False)
    final: State
    u: np.ndarray
    wrench: np.ndarray | None
    params: Params
    steps: int
    checkpoints: Checkpoints
    kept: dict[int, State] = field(repr=False)
    batched: bool
    violation: np.ndarray
    fingerprint: tuple[float, ...] = field(repr=False)
    policy: Network | None = None
    hold: int = 1

    def __len__(self) -> int:
        return self.steps + 1

    def __repr__(self) -> str:
        sim = self.simulator
        robots = f"{self.batch} robots, " if self.batched else ""
        return f"Trajectory({sim.model.name!r}, {robots}{self.steps} steps of {sim.dt:g} s, {self.checkpoints})"

    def _repr_html_(self) -> str:
        """Return an animation for notebooks, of the first batch element."""
        from ..view import embedded

        return embedded(self)

    @property
    def time(self) -> np.ndarray:
        """Times of the states, s, (T+1,)."""
        return np.arange(self.steps + 1) * self.simulator.dt

    @property
    def batch(self) -> int:
        """Number of batch elements."""
        return len(self.final.q) if self.batched else 1

    @property
    def q(self) -> np.ndarray:
        """Positions at every step, (T+1, nq) or (B, T+1, nq)."""
        return self._shown(self.every_state().q)

    @property
    def v(self) -> np.ndarray:
        """Velocities at every step, (T+1, nv) or (B, T+1, nv)."""
        return self._shown(self.every_state().v)

    @property
    def act(self) -> np.ndarray:
        """Activations at every step, (T+1, na) or (B, T+1, na)."""
        return self._shown(self.every_state().act)

    # -- by name -----------------------------------------------------------------------------------------------------
    @cached_property
    def outputs(self) -> Outputs:
        """Poses, velocities and energies of every state, computed at first use: `Simulator.outputs`."""
        states = State(*(self._shown(x) for x in self.every_state()))
        return self.simulator.outputs(states, params=self.params)

    def body(self, name: str) -> NamedFrame:
        """Return the frame of a body in every state: `traj.body("hand").position` is (..., T+1, 3)."""
        return self.outputs.body(name)

    def site(self, name: str) -> NamedFrame:
        """Return the frame of a site in every state."""
        return self.outputs.site(name)

    def joint(self, name: str) -> JointMotion:
        """Return q and v of a joint in every state: `traj.joint("knee").q` is (..., T+1)."""
        return joint_motion(self.simulator.model, name, self.q, self.v)

    def actuator(self, name: str) -> Any:
        """Return the controls of an actuator in every step, (..., T)."""
        return control(self.simulator.model, name, self.u)

    def sensor(self, name: str) -> np.ndarray:
        """Return readings of a sensor at the beginning of every step, under the controls of that step: (..., T, n)."""
        self.simulator.model.sensor(name)
        return self.sensors[name]

    @cached_property
    def sensors(self) -> dict[str, Any]:
        """Readings of all sensors at the beginning of every step, under the controls of that step, by name: (..., T, n)."""
        from .sensors import read_rollout

        return read_rollout(self)

    def show(self, *, port: int | None = None, block: bool = True) -> Viewer:
        """Open the trajectory in the browser, with controls for play, pause, time, speed and batch element.

        Args:
          port: Port of the page on this machine. None: the first free one from 8080.
          block: Wait until Ctrl-C. False: return at once; `.stop()` of the result ends it.
        """
        from ..view import show

        return show(self, port=port, block=block)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        robot: int = 0,
        size: tuple[int, int] = (640, 480),
        fps: float | None = None,
        speed: float = 1.0,
    ) -> None:
        """Write the trajectory to a file.

        .html is a page that plays offline, .gif and .mp4 are videos. .npz (all batch elements, inputs, parameters, options,
        policy) and .csv (states and controls of one batch element) are read by `Simulator.read`. An existing file is
        replaced when writing succeeds and unchanged otherwise.

        Args:
          path: File name.
          robot: Index of the batch element.
          size: Width and height of a video, pixels, even.
          fps: Frames per second of a video.
          speed: Playback speed of a video; 0.5 is half real time.
        """
        from ..view import save
        from .trajectory_files import ENDINGS, write

        file = as_path(path)
        if file.suffix.lower() in ENDINGS:
            write(self, file, robot)
            return
        save(self, file, robot=robot, size=size, fps=fps, speed=speed)

    def every_state(self) -> State:
        """Return all states as arrays (B, T+1, n), also without a batch.

        Raises:
          InputError: States were not kept.
        """
        if self.kept[0].q.ndim != 3 or self.kept[0].q.shape[1] != self.steps + 1:
            raise InputError(f"this rollout kept {self.checkpoints}; pass checkpoints=EveryStep() to read every state")
        return self.kept[0]

    def _shown(self, x: Any) -> Any:
        x = self.simulator.engine.device.shown(x)
        return x if self.batched else x[0]


# -- results on a device -------------------------------------------------------------------------------------------------
class HasEngine(Protocol):
    """An object with an engine."""

    engine: Engine


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=HasEngine)


def device_boundary(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a method so that arrays of a GPU are used without a copy and results are arrays of the same kind."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        device = self.engine.device
        if isinstance(device, Host):
            return method(self, *args, **kwargs)
        with device.working(list(_arrays((args, kwargs)))):
            out: Any = method(self, *args, **kwargs)
            if isinstance(out, Trajectory):
                copied = replace(out, final=device.given(out.final), violation=device.given(out.violation))
                if "sensors" in out.__dict__:  # read already
                    copied.__dict__["sensors"] = device.given(out.sensors)
                return copied  # type: ignore[return-value]
            return device.given(out)

    return call


def _arrays(x: Any) -> Iterator[Any]:
    """Yield all arrays among the arguments of a call, including those of trajectories."""
    if isinstance(x, Trajectory):
        yield from _arrays((x.u, x.wrench, *x.kept.values()))
    elif isinstance(x, dict):
        yield from _arrays(tuple(x.values()))
    elif isinstance(x, tuple | list):
        for item in x:
            yield from _arrays(item)
    elif hasattr(x, "shape"):
        yield x
