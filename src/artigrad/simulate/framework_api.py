"""Methods of Simulator as functions of arrays of a framework, with the same names and arguments.

A framework subclasses `Functions` and defines its array operations and how a function record (`function`) becomes a
differentiable operation. `artigrad.torch` and `artigrad.jax` do this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arguments import checked
from ..deprecation import moved_arguments
from ..errors import InputError, is_whole
from ..model.params import Params
from ..model.state import State
from .arrays import Axes, flatten
from .checkpoints import Checkpoints, check_checkpoints
from .checks import parts_of
from .cotangents import GradientOptions, active_options
from .function import Call, call_of
from .results import Contacts, Outputs
from .simulator import Simulator
from .state_functions import FORWARD_DYNAMICS, INVERSE_DYNAMICS, MASS_MATRIX, OUTPUTS, SENSORS, WEIGHTS
from .step_functions import CHECKPOINTED_ROLLOUT, CONTACTS, LINEARIZE, ROLLOUT, STEP


class Functions(ABC):
    """Differentiable functions of states, controls, wrenches and physical parameters.

    Arguments of all functions:
      sim: A Simulator.
      state: State(q, v), State(q, v, act), or such a tuple: q (..., nq), v (..., nv), act (..., na), of the simulator's
        dtype and on its device.
      u: Controls (..., nu). None: zero.
      wrench: External wrenches (..., nb, 6): force, then torque, world axes, at the center of mass. None: zero.
      params: Arrays by name of a field of `Params`, shaped as in `Params` or with all leading axes before it; or a Params.
        Fields that are left out have the simulator's values.

    Leading axes broadcast. Gradients of q are ambient: a quaternion may have any norm near 1 and represents the rotation of
    q/|q|. All functions have forward mode. All but `linearize`, `sensors` and rollouts with checkpoints have forward
    over reverse mode, which gives Hessian-vector products. Models with activations have reverse mode only.
    """

    # -- steps -------------------------------------------------------------------------------------------------------
    @checked
    def step(self, sim: Simulator, state: Any, u: Any = None, *, params: Any = None, wrench: Any = None) -> State:
        """Return the state one time step later.

        Args:
          sim: A Simulator.
          state: Current state.
          u: Controls (..., nu).
          params: Parameters.
          wrench: External wrenches (..., nb, 6).
        """
        given = self._inputs(sim, state, u, wrench)
        return State(*self._call(call_of(STEP, sim), given, params))

    @moved_arguments(gradient_options=GradientOptions)
    @checked
    def rollout(
        self,
        sim: Simulator,
        state: Any,
        u: Any = None,
        *,
        steps: int | None = None,
        params: Any = None,
        wrench: Any = None,
        checkpoints: Checkpoints | None = None,
        hold: int = 1,
        gradient_options: GradientOptions | None = None,
    ) -> State:
        """Return all states of a rollout: q (..., T+1, nq), v (..., T+1, nv) and act (..., T+1, na).

        Args:
          sim: A Simulator.
          state: First state.
          u: Controls (..., T, nu).
          steps: T, for zero control, in place of u.
          params: Parameters.
          wrench: External wrenches (..., T, nb, 6).
          checkpoints: EveryKth(k) or Binomial(memory=...). Only the last state is returned, (..., nq) and (..., nv), and
            only the inputs are stored; the backward pass runs the rollout again and stores the states that the policy
            keeps.
          hold: Number of steps for which each control and wrench is held (frame skip); there are hold T + 1 states.
          gradient_options: Conditioning of the backward pass, as in `Simulator.vjp`.
        """
        if u is None:
            if not is_whole(steps, 0):
                raise InputError("pass the controls u (..., T, nu), or steps=T for zero control")
            u = self._zeros(sim, (int(steps or 0), sim.model.nu))
        elif steps is not None:
            raise InputError("pass u or steps, not both: the length of u is the number of steps")
        if not is_whole(hold, 1):
            raise InputError(f"hold is a whole number of steps, at least 1, not {hold!r}")
        if checkpoints is not None:
            check_checkpoints(checkpoints)
        given, options = self._inputs(sim, state, u, wrench, time=1), active_options(gradient_options)
        if hold > 1:
            for name, axis in (("u", 2), ("wrench", 3)):
                given[name] = None if given[name] is None else self._held(given[name], hold, axis)
        if options is not None and checkpoints is not None:
            raise InputError("gradient_options need all states: leave checkpoints out")
        steps = given["u"].shape[-2]
        call = call_of(ROLLOUT if checkpoints is None else CHECKPOINTED_ROLLOUT, sim, steps, checkpoints, options, hold)
        return State(*self._call(call, given, params))

    @checked
    def contacts(
        self, sim: Simulator, state: Any, u: Any = None, *, params: Any = None, wrench: Any = None
    ) -> Contacts:
        """Return contact forces, positions and distances in the step that begins at `state`.

        There is one row for each candidate contact point, named by `sim.contact_names`. Only `force` is differentiable. For
        a whole rollout pass its states without the last, `State(q[..., :-1, :], v[..., :-1, :])`, and its controls.
        """
        if not sim.contact_names:
            raise InputError(f"'{sim.model.name}' has no shapes that may touch")
        return Contacts(*self._call(call_of(CONTACTS, sim), self._inputs(sim, state, u, wrench), params))

    @checked
    def linearize(self, sim: Simulator, state: Any, u: Any = None, *, params: Any = None) -> tuple[Any, Any]:
        """Return (A, B), the Jacobians of one step on the tangent space: dx' = A dx + B du with x = (q, v, act).

        A is (..., n, n) and B (..., n, nu), n = 2 nv + na. The Jacobians have no gradient.
        """
        A, B = self._call(call_of(LINEARIZE, sim), self._inputs(sim, state, u), params)
        return A, B

    # -- functions of a state ------------------------------------------------------------------------------------------
    @checked
    def outputs(self, sim: Simulator, state: Any, *, params: Any = None) -> Outputs:
        """Return poses and velocities of bodies and sites, center of mass and energies."""
        return Outputs(*self._call(call_of(OUTPUTS, sim), self.given(sim, state), params)).of(sim.model)

    @checked
    def sites(self, sim: Simulator, state: Any, *, params: Any = None) -> Any:
        """Return positions of all sites, m, world frame, (..., ns, 3)."""
        return self.outputs(sim, state, params=params).site_position

    @checked
    def sensors(self, sim: Simulator, state: Any, u: Any = None, *, params: Any = None) -> dict[str, Any]:
        """Return readings of all sensors by name, (..., n).

        Args:
          sim: A Simulator.
          state: States.
          u: Controls of the coming step, over which an accelerometer averages under the hard law.
          params: Parameters.
        """
        call = call_of(SENSORS, sim)
        return dict(zip(call.outputs, self._call(call, self._inputs(sim, state, u), params), strict=True))

    @checked
    def mass_matrix(self, sim: Simulator, state: Any, *, params: Any = None) -> Any:
        """Return the mass matrix M(q) (..., nv, nv), with armature."""
        (M,) = self._call(call_of(MASS_MATRIX, sim), self.given(sim, state), params)
        return M

    def reweighted(self, sim: Simulator, params: Any) -> dict[str, Any]:
        """Return `params` with inverse weights computed from them, as `Params.reweighted` does; differentiable in reverse mode.

        Args:
          sim: A Simulator.
          params: Arrays by name of a field of `Params`.
        """
        fields = self._fields(params)
        if not isinstance(fields, Mapping) or isinstance(fields, Params):
            raise InputError("this takes a mapping from names of fields to arrays; of Params take params.reweighted()")
        slots = {name: sim.params._slot(name)[1] for name in fields}
        leads = [tuple(x.shape[: x.ndim - len(slots[name])]) for name, x in fields.items()]
        lead = max(leads, key=len, default=())
        call = call_of(WEIGHTS, sim)
        found = self._apply(call, (self._zeros(sim, lead), self.flat(sim, fields, lead)))
        return {**fields, **dict(zip(call.outputs, found, strict=True))}

    @checked
    def inverse_dynamics(self, sim: Simulator, state: Any, a: Any, *, params: Any = None) -> Any:
        """Return joint forces M a + c(q, v) (..., nv) for joint accelerations a (..., nv).

        They contain gravity, inertia and armature, but no damping and no springs.
        """
        if a is None:
            raise InputError("a, the joint accelerations, are needed: zeros for constant joint velocities")
        given = self.given(sim, state, a=(a, (sim.model.nv,)))
        (force,) = self._call(call_of(INVERSE_DYNAMICS, sim), given, params)
        return force

    @checked
    def forward_dynamics(self, sim: Simulator, state: Any, u: Any = None, *, params: Any = None) -> Any:
        """Return joint accelerations (..., nv) under controls u (..., nu), with all damping explicit.

        Contact, limits and dry friction are left out.
        """
        (a,) = self._call(call_of(FORWARD_DYNAMICS, sim), self._inputs(sim, state, u), params)
        return a

    # -- operations of a framework -------------------------------------------------------------------------------------
    @abstractmethod
    def _array(self, sim: Simulator, name: str, x: Any) -> Any:
        """Return an array of the framework, or raise InputError if its dtype or device is not the simulator's."""

    @abstractmethod
    def _zeros(self, sim: Simulator, shape: Axes) -> Any: ...

    @abstractmethod
    def _broadcast(self, x: Any, shape: Axes) -> Any: ...

    @abstractmethod
    def _concatenate(self, pieces: list[Any], axis: int) -> Any: ...

    @abstractmethod
    def _wide(self, x: Any) -> Any:
        """Return parameter values as an array of the framework, float64 where it is supported."""

    @abstractmethod
    def _apply(self, call: Call, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the outputs of a call, with its adjoint registered. The last input is the parameters."""

    def _fields(self, params: Any) -> Any:
        """Return arrays by field name. Frameworks with other forms of parameters override it."""
        return params

    # -- inputs --------------------------------------------------------------------------------------------------------
    def _held(self, x: Any, hold: int, own: int) -> Any:
        """Return x with each entry along time repeated `hold` times; own: number of axes from time on."""
        lead, (steps, *rest) = x.shape[: x.ndim - own], x.shape[x.ndim - own :]
        wide = self._broadcast(x.reshape(*lead, steps, 1, *rest), (*lead, steps, hold, *rest))
        return wide.reshape(*lead, steps * hold, *rest)

    def _inputs(self, sim: Simulator, state: Any, u: Any, wrench: Any = None, *, time: int = 0) -> dict[str, Any]:
        """Return state, controls and wrenches, validated; `time`: number of time axes of the last two."""
        if not isinstance(sim, Simulator):
            raise InputError(f"the first argument is a Simulator, not {type(sim).__name__}")
        u = self._zeros(sim, (sim.model.nu,)) if u is None else u
        given = self.given(sim, state, u=(u, (sim.model.nu,)), wrench=(wrench, (sim.model.nb, 6)), time=time)
        if wrench is not None and time and given["wrench"].shape[-3] != given["u"].shape[-2]:
            steps, found = given["u"].shape[-2], tuple(given["wrench"].shape)
            raise InputError(f"wrenches are (..., {steps}, {sim.model.nb}, 6), as many as controls, not {found}")
        return given

    def given(self, sim: Simulator, state: Any, *, time: int = 0, **more: tuple[Any, Axes]) -> dict[str, Any]:
        """Return validated arrays by name, broadcast to the same leading axes.

        Args:
          sim: A Simulator.
          state: States.
          time: Number of time axes of the arrays in `more`.
          more: Array and shape of one batch element of each input beside the state.
        """
        if not isinstance(sim, Simulator):
            raise InputError(f"the first argument is a Simulator, not {type(sim).__name__}")
        (q, v, act), m = parts_of(state), sim.model
        named: dict[str, tuple[Any, Axes, int]] = {"q": (q, (m.nq,), 0), "v": (v, (m.nv,), 0)}
        if m.na:
            absent = act is None or act.shape[-1] == 0
            named["act"] = (self._zeros(sim, (m.na,)) if absent else act, (m.na,), 0)
        named |= {k: (x, own, time) for k, (x, own) in more.items()}
        found: dict[str, Any] = {}
        leads: dict[str, Axes] = {}
        for name, (x, own, steps) in named.items():
            if x is None:
                found[name] = None
                continue
            x = found[name] = self._array(sim, name, x)
            axes = len(own) + steps
            if x.ndim < axes or tuple(x.shape[x.ndim - len(own) :]) != own:
                wanted = ", ".join([*(["..."] if not steps else ["...", "T"]), *map(str, own)])
                raise InputError(f"{name} of '{m.name}' is ({wanted}), not {tuple(x.shape)}")
            leads[name] = tuple(x.shape[: x.ndim - axes])
        lead = _together(leads)
        for name, own_lead in leads.items():
            if own_lead != lead:
                x = found[name]
                found[name] = self._broadcast(x, lead + tuple(x.shape[len(own_lead) :]))
        return found

    def _call(self, call: Call, given: dict[str, Any], params: Any) -> tuple[Any, ...]:
        flat = self.flat(call.sim, params, tuple(given["q"].shape[:-1]))
        return self._apply(call, tuple(flat if name == "params" else given[name] for name in call.inputs))

    def flat(self, sim: Simulator, params: Any, lead: Axes) -> Any:
        """Return all parameters as one array, (n,) or (*lead, n); None for the simulator's."""
        fields = self._fields(params)
        if fields is None:
            return None
        if isinstance(fields, Params):
            if fields.model is not sim.model:
                raise InputError(f"these params belong to another Model than the simulator's '{sim.model.name}'")
            flat = self._wide(fields.flat)
        elif isinstance(fields, Mapping):
            known = {name: self._wide(x) for name, x in fields.items()}
            flat = flatten(sim.params, known, self._broadcast, self._concatenate, self._wide(sim.params.flat))
        else:
            raise InputError(f"params is a mapping from names of fields to arrays, not {type(fields).__name__}")
        if flat.ndim > 1 and tuple(flat.shape[:-1]) != lead:
            raise InputError(f"params have leading axes {tuple(flat.shape[:-1])}, but the robots {lead}")
        return flat


def _together(leads: dict[str, Axes]) -> Axes:
    """Return the axes that these leading axes broadcast to."""
    shapes = list(leads.values())
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(f"{name} {lead}" for name, lead in leads.items())
        raise InputError(f"the leading axes do not broadcast: {given}") from None
