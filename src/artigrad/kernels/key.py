"""KernelKey: the settings that a kernel is compiled for, its signature, and the Step inside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..compiler import PACKED, REAL, ROBOTS, SHARED, WORK, ArgumentKind, Reals, Target, copy, local
from ..model.options import Options
from ..physics.constraints.law import law_of
from ..physics.context import Step
from ..physics.features import NO_FEATURES, Features
from ..physics.integrate import damping_in_factor, implicit_terms
from ..physics.sensors.sensor_kind import SensorFeatures
from ..physics.sensors.sensor_table import sensor_signature, take_sensors
from ..physics.tables import TOPOLOGY, Bars, Constants, Topology, Workspace


@dataclass(frozen=True)
class KernelKey:
    """Settings that a kernel is compiled for: method, target, and which inputs and outputs exist.

    Attributes:
        work: Names of the scratch arrays.
        own_params: True if every robot has its own parameters.
        contact: True if the model can have constraint rows.
        features: Features that the kernel is compiled for.
        wrench, force_bars: True if there are external wrenches, cotangents of contact forces.
        with_params: True if gradients of parameters are computed.
        moving_params: See `forward_mode`.
        strided, conditioned: See `rollout`.
        sensors: What a kernel that reads sensors is compiled for; None for all others.
    """

    options: Options
    target: Target
    work: tuple[str, ...]
    own_params: bool = False
    contact: bool = False
    features: Features = NO_FEATURES
    wrench: bool = False
    with_params: bool = False
    force_bars: bool = False
    moving_params: bool = False
    strided: bool = False
    conditioned: bool = False
    sensors: SensorFeatures | None = None

    @property
    def staged(self) -> KernelKey:
        """Return the key without run-time arguments, which need no new compilation."""
        return replace(self, options=self.options.structure)

    @property
    def taped(self) -> bool:
        """True if a gradient needs a tape of the solver's iterations."""
        return self.options.law.taped

    @property
    def state(self) -> tuple[str, ...]:
        """Parts of a state that its kernels have."""
        return ("q", "v", "act") if self.features.has("activation") else ("q", "v")

    def signature(self, taped: bool = False) -> dict[str, ArgumentKind]:
        """Return arguments common to all step kernels: model, constants, dt, wrenches, constraints, scratch."""
        return {
            **TOPOLOGY,
            "dt": REAL,
            "const": PACKED if self.own_params else SHARED,
            **({"wrench": ROBOTS} if self.wrench else {}),
            **self._constraints(taped),
            **(sensor_signature(self.sensors) if self.sensors else {}),
            **dict.fromkeys(self.work, WORK),
        }

    def _constraints(self, taped: bool) -> dict[str, ArgumentKind]:
        if not self.contact:
            return {}
        return law_of(self.options).signature(self.options.law, taped)

    def _problem(self, arguments: dict[str, Any]) -> Any:
        return law_of(self.options).take(arguments, self.options, self.features) if self.contact else None

    def step(self, arguments: dict[str, Any]) -> Step:
        """Return the Step inside a kernel, on the state and control of its scratch.

        Its arguments are removed from `a`; those of the kernel itself, wrenches among them, remain.
        """
        model, ws, dt = Topology.take(arguments), Workspace(arguments), arguments.pop("dt")
        options, features = self.options, self.features
        in_factor = damping_in_factor(options, features, law_of(options) if self.contact else None)
        return Step(
            model=model,
            const=Constants(model, arguments.pop("const")),
            options=options,
            dt=dt,
            damping_dt=dt if in_factor else 0.0,
            implicit_terms=implicit_terms(options, features, in_factor),
            ws=ws,
            q=ws.q,
            v=ws.v,
            u=ws.u,
            wrench=ws.wrench if self.wrench else None,
            constraints=self._problem(arguments),
            features=features,
            act=getattr(ws, "act", None),  # type: ignore[arg-type]
            sensors=take_sensors(arguments, self.sensors) if self.sensors else None,
        )

    def bars(self, s: Step, const_bar: Reals | None) -> Bars:
        """Return the cotangent buffers of the adjoint of a step."""
        ws = s.ws
        const = None if const_bar is None else Constants(s.model, const_bar, bars=True)
        wrench, act = ws.wrench_bar if self.wrench else None, getattr(ws, "act_bar", None)
        return Bars(ws.q_bar, ws.tangent_bar, ws.v_bar, ws.u_bar, const, wrench, act)  # type: ignore[arg-type]


def with_inputs(s: Step, t: Any, arguments: dict[str, Any]) -> Step:
    """Return the step with the controls of time t in a form for many reads, and its wrenches if there are any."""
    if s.wrench is not None:
        size = s.model.nb * 6
        copy(arguments["wrench"].shifted(t * size), s.wrench, size)
    return s.at(u=local(arguments["u"].shifted(t * s.model.nu), s.ws.u, s.model.nu))
