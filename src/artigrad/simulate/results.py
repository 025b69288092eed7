"""What a Simulator hands back: gradients, outputs, trajectories."""

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
    """Those of `Gradient`."""

    q0: np.ndarray
    v0: np.ndarray
    u: np.ndarray
    params: Params | None
    wrench: np.ndarray | None
    health: Health
    layers: list[tuple[np.ndarray, np.ndarray]] | None = None
    act0: Any = None


class Gradient(OfModel, GradientFields):
    """Cotangents of what went into a rollout, each shaped as it was passed.

    q0: of the first positions, ambient: (nq,), with a batch (B, nq), in the plain numbers of q, quaternions included. v0: of
    the first velocities. u: of the controls; summed over the batch where they were shared. params: of all physical
    parameters, a Params (`grad.params.mass`), or None with with_params=False. wrench: of the external wrenches, None if
    there were none. health: how far to trust it. layers: under a policy, of its weights, (W, b) of each layer, and u is that of
    the controls it gave. act0: of the first activations, without entries where a model has none.
    """

    def joint(self, name: str) -> JointMotion:
        """Of the first position and velocity of a joint."""
        return joint_motion(self._named(), name, self.q0, self.v0)

    def actuator(self, name: str) -> Any:
        """Of the controls of an actuator, (..., T)."""
        return control(self._named(), name, self.u)


class Contacts(NamedTuple):
    """What touches in each step; one row for every point that may touch, named by `Simulator.contact_names`.

    force: N, (T, points, 3), with a batch (B, T, points, 3); on the second shape's body (the first feels the opposite),
    world axes, mean over the step. point: m, shaped alike, where, world axes; zero where nothing is near. gap: m, without
    the last axis, below zero where shapes overlap; where nothing is near, 1000 or, under the hard law, search_distance. along:
    N, shaped as force, the same force along the normal and two directions of friction. normal: from the first shape to the
    second, world axes. torque: N m, shaped as force, at the point, of contacts of condim 4 and 6.
    """

    force: np.ndarray
    point: np.ndarray
    gap: np.ndarray
    along: np.ndarray
    normal: np.ndarray
    torque: np.ndarray

    @classmethod
    def of_report(cls, rows: Any) -> Contacts:
        """Return the fields of contact reports (..., points, size), as views."""
        fields = REPORT.views(rows)
        return cls(*(fields[name] for name in cls._fields))


class StateGradientFields(NamedTuple):
    """Those of `StateGradient`."""

    q: np.ndarray
    v: np.ndarray
    params: Any
    u: np.ndarray | None = None
    a: np.ndarray | None = None
    act: Any = None


class StateGradient(OfModel, StateGradientFields):
    """Cotangents of what a function of one state was given, each shaped as it was passed. `q` is ambient.

    params: a Params, None with with_params=False. u: of the controls (`acceleration`, `sensors`), a: of joint accelerations
    (`inverse_dynamics`); None where there are none. act: of activations.
    """

    def joint(self, name: str) -> JointMotion:
        """Of the position and velocity of a joint."""
        return joint_motion(self._named(), name, self.q, self.v)

    def actuator(self, name: str) -> Any:
        """Of the control of an actuator."""
        if self.u is None:
            raise InputError("this is the gradient of a function without controls")
        return control(self._named(), name, self.u)


class OutputFields(NamedTuple):
    """Those of `Outputs`."""

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
    """Quantities to build losses on; world axes, SI units. Leading axes are those of the state.

    body_*, site_*: one row per body or site. position (3,) and rotation (3, 3) of its frame, velocity (3,) of the
    frame's origin, angular_velocity (3,). com: centre of mass (3,) of the whole model. Energies: joules.
    """

    def body(self, name: str) -> NamedFrame:
        """The frame of one body."""
        return frame(self, "body", self._named().body(name))

    def site(self, name: str) -> NamedFrame:
        """The frame of one site."""
        return frame(self, "site", self._named().site(name))


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """A rollout: states, and what made them. Batch axis first, then time.

    final: the last state. u, wrench, params, steps, checkpoints, policy, hold: as they were given, controls and wrenches that
    are held once for every step; under a policy u is what it gave.
    batched: whether there is a batch axis. violation: (B,), how far the constraints of some step were from solved; 0 where
    every step was solved. Soft law: how far forces were from balance, relative to them. Hard law: m/s, and
    gradients of such steps are those of the active set that was found.

    `q` (T+1, nq), `v` (T+1, nv) and `act` (T+1, na), or with a batch (B, T+1, ...), are there if every step was kept; `final`
    always is. `time` (T+1,) has the moments of these states, s; `len(traj)` is their number, T+1.
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
        """An animation, for notebooks; of a batch the first robot."""
        from ..view import embedded

        return embedded(self)

    @property
    def time(self) -> np.ndarray:
        """The moments of the states, (T+1,), s."""
        return np.arange(self.steps + 1) * self.simulator.dt

    @property
    def batch(self) -> int:
        """How many robots there are."""
        return len(self.final.q) if self.batched else 1

    @property
    def q(self) -> np.ndarray:
        """Positions of every step."""
        return self._shown(self.every_state().q)

    @property
    def v(self) -> np.ndarray:
        """Velocities of every step."""
        return self._shown(self.every_state().v)

    @property
    def act(self) -> np.ndarray:
        """Activations of every step."""
        return self._shown(self.every_state().act)

    # -- by name -----------------------------------------------------------------------------------------------------
    @cached_property
    def outputs(self) -> Outputs:
        """Poses, velocities and energies of every state, found when first asked for: `Simulator.outputs`."""
        states = State(*(self._shown(x) for x in self.every_state()))
        return self.simulator.outputs(states, params=self.params)

    def body(self, name: str) -> NamedFrame:
        """The frame of a body in every state: `traj.body("hand").position` is (..., T+1, 3)."""
        return self.outputs.body(name)

    def site(self, name: str) -> NamedFrame:
        """The frame of a site in every state."""
        return self.outputs.site(name)

    def joint(self, name: str) -> JointMotion:
        """q and v of a joint in every state: `traj.joint("knee").q` is (..., T+1)."""
        return joint_motion(self.simulator.model, name, self.q, self.v)

    def actuator(self, name: str) -> Any:
        """The controls of an actuator in every step, (..., T)."""
        return control(self.simulator.model, name, self.u)

    def sensor(self, name: str) -> np.ndarray:
        """What a sensor reads at the beginning of every step, under the controls of that step: (..., T, n)."""
        self.simulator.model.sensor(name)
        return self.sensors[name]

    @cached_property
    def sensors(self) -> dict[str, Any]:
        """Readings of all sensors at the beginning of every step, under the controls of that step, by name: (..., T, n)."""
        from .sensors import read_rollout

        return read_rollout(self)

    def show(self, *, port: int | None = None, block: bool = True) -> Viewer:
        """Look at it in the browser: play, pause, scrub, speed; a slider chooses the robot of a batch.

        port: of the page on this machine; by default the first free one from 8080. block: wait until Ctrl-C; otherwise
        returns at once, and `.stop()` of what is returned ends it.
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
        """Write it to a .html (a page that plays offline), .gif or .mp4 file; as numbers to a .npz file (all robots, inputs,
        parameters, options and policy) or a .csv file (states and controls of one robot), which `Simulator.read` reads. A file
        is replaced as a whole, or stays as it was if it cannot be written.

        robot: which of a batch. size: (width, height) of a film in pixels, even numbers. fps: frames a second. speed:
        of a film; 0.5 is half as fast as the robot moved.
        """
        from ..view import save
        from .trajectory_files import ENDINGS, write

        file = as_path(path)
        if file.suffix.lower() in ENDINGS:
            write(self, file, robot)
            return
        save(self, file, robot=robot, size=size, fps=fps, speed=speed)

    def every_state(self) -> State:
        """Arrays (B, T+1, n), with a batch axis also for one robot; an error if they were not kept."""
        if self.kept[0].q.ndim != 3 or self.kept[0].q.shape[1] != self.steps + 1:
            raise InputError(f"this rollout kept {self.checkpoints}; pass checkpoints=EveryStep() to read every state")
        return self.kept[0]

    def _shown(self, x: Any) -> Any:
        x = self.simulator.engine.device.shown(x)
        return x if self.batched else x[0]


# -- results on a device -------------------------------------------------------------------------------------------------
class OnDevice(Protocol):
    """An object with an engine."""

    engine: Engine


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=OnDevice)


def presented(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a public method of a simulator: arrays of a GPU are used where they are, and results are of the same kind."""

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
    """All arrays among the arguments of a call; those of a trajectory first."""
    if isinstance(x, Trajectory):
        yield from _arrays((x.u, x.wrench, *x.kept.values()))
    elif isinstance(x, dict):
        yield from _arrays(tuple(x.values()))
    elif isinstance(x, tuple | list):
        for item in x:
            yield from _arrays(item)
    elif hasattr(x, "shape"):
        yield x
