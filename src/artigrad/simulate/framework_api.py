"""The calls of a Simulator as functions of a framework's arrays, under the same names and with the same arguments.

A framework subclasses `Functions`: it defines its arrays and how a record of a function (`function`) becomes one that it can
differentiate. `artigrad.torch` and `artigrad.jax` do; all else is here.
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

    sim: a Simulator. state: State(q, v) or State(q, v, act), or any such tuple; q (..., nq), v (..., nv) and act (..., na) of
    the simulator's dtype, on its device, with any leading axes. u (..., nu), wrench (..., nb, 6): leading axes broadcast, so
    that what has none is everyone's. u left out is zero. params: fields of `Params` by name (a field shaped as in `Params`, or
    with all leading axes before it), or a Params; what is left out is the simulator's own. Gradients of q are ambient: a
    quaternion may have any length near one and stands for the rotation of q/|q|. All functions have
    forward mode too, and all but `sensors`, `linearize` and rollouts with checkpoints forward over reverse, which gives
    products with Hessians; of a model with activations there is reverse mode alone.
    """

    # -- steps -------------------------------------------------------------------------------------------------------
    @checked
    def step(self, sim: Simulator, state: Any, u: Any = None, *, params: Any = None, wrench: Any = None) -> State:
        """The state one dt later, under controls u (..., nu) and external wrenches (..., nb, 6)."""
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
        """All states, q (..., T+1, nq), v (..., T+1, nv) and act (..., T+1, na), from `state` under controls u (..., T, nu).

        steps: in place of u, for zero control. wrench: (..., T, nb, 6). checkpoints: EveryKth(k) or Binomial(memory=...)
        give the last state alone, (..., nq) and (..., nv); nothing but the inputs is kept then, and the backward pass
        runs the rollout again, keeping as many states as they say. hold: for how many steps each of the T controls and
        wrenches is held (frame skip), so that there are hold T + 1 states. gradient_options: conditioning of the backward
        pass, as in `Simulator.vjp`.
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
        """Forces (..., points, 3), places and gaps of all points that may touch (`sim.contact_names`), in the step that begins
        at `state` under u. Forces have gradients, places and gaps have none. Of a whole rollout: pass the states it went
        through but the last, `State(q[..., :-1, :], v[..., :-1, :])`, and its controls."""
        if not sim.contact_names:
            raise InputError(f"'{sim.model.name}' has no shapes that may touch")
        return Contacts(*self._call(call_of(CONTACTS, sim), self._inputs(sim, state, u, wrench), params))

    @checked
    def linearize(self, sim: Simulator, state: Any, u: Any = None, *, params: Any = None) -> tuple[Any, Any]:
        """(A, B): Jacobians (..., n, n) and (..., n, nu) of one step on the tangent space, dx' = A dx + B du with
        x = (q, v, act), n = 2 nv + na. They have no gradient themselves."""
        A, B = self._call(call_of(LINEARIZE, sim), self._inputs(sim, state, u), params)
        return A, B

    # -- functions of a state ------------------------------------------------------------------------------------------
    @checked
    def outputs(self, sim: Simulator, state: Any, *, params: Any = None) -> Outputs:
        """Poses and velocities of bodies and sites, centre of mass and energies."""
        return Outputs(*self._call(call_of(OUTPUTS, sim), self.given(sim, state), params)).of(sim.model)

    @checked
    def sites(self, sim: Simulator, state: Any, *, params: Any = None) -> Any:
        """Positions of all sites in the world, (..., ns, 3)."""
        return self.outputs(sim, state, params=params).site_position

    @checked
    def sensors(self, sim: Simulator, state: Any, u: Any = None, *, params: Any = None) -> dict[str, Any]:
        """What the model's sensors read, by name: (..., n). u: the controls of the coming step, over which an accelerometer
        takes its mean."""
        call = call_of(SENSORS, sim)
        return dict(zip(call.outputs, self._call(call, self._inputs(sim, state, u), params), strict=True))

    @checked
    def mass_matrix(self, sim: Simulator, state: Any, *, params: Any = None) -> Any:
        """M(q) (..., nv, nv), armature included."""
        (M,) = self._call(call_of(MASS_MATRIX, sim), self.given(sim, state), params)
        return M

    def reweighted(self, sim: Simulator, params: Any) -> dict[str, Any]:
        """`params`, a mapping from names of fields to arrays, with the weights of constraints made anew of them, as
        `Params.reweighted` does; gradients go through it, in reverse mode."""
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
        """Joint forces M a + c(q, v) (..., nv) for accelerations a: gravity, inertia and armature; no damping or springs."""
        if a is None:
            raise InputError("a, the joint accelerations, are needed: zeros for a robot that moves on evenly")
        given = self.given(sim, state, a=(a, (sim.model.nv,)))
        (force,) = self._call(call_of(INVERSE_DYNAMICS, sim), given, params)
        return force

    @checked
    def forward_dynamics(self, sim: Simulator, state: Any, u: Any = None, *, params: Any = None) -> Any:
        """Joint accelerations (..., nv) under controls u (..., nu), all damping explicit; contact, limits and dry friction are
        left out."""
        (a,) = self._call(call_of(FORWARD_DYNAMICS, sim), self._inputs(sim, state, u), params)
        return a

    # -- what a framework says -----------------------------------------------------------------------------------------
    @abstractmethod
    def _array(self, sim: Simulator, name: str, x: Any) -> Any:
        """An array of the framework, of the simulator's dtype and on its device; an error for another."""

    @abstractmethod
    def _zeros(self, sim: Simulator, shape: Axes) -> Any: ...

    @abstractmethod
    def _broadcast(self, x: Any, shape: Axes) -> Any: ...

    @abstractmethod
    def _concatenate(self, pieces: list[Any], axis: int) -> Any: ...

    @abstractmethod
    def _wide(self, x: Any) -> Any:
        """Numbers of parameters as an array of the framework: float64 where it has that."""

    @abstractmethod
    def _apply(self, call: Call, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """`forward` of the call with its adjoint registered. The last of the inputs is the parameters."""

    def _fields(self, params: Any) -> Any:
        """A mapping from names of fields to arrays, if there are other ways to say that."""
        return params

    # -- inputs --------------------------------------------------------------------------------------------------------
    def _held(self, x: Any, hold: int, own: int) -> Any:
        """Every entry along time for so many steps; own: axes from time on."""
        lead, (steps, *rest) = x.shape[: x.ndim - own], x.shape[x.ndim - own :]
        wide = self._broadcast(x.reshape(*lead, steps, 1, *rest), (*lead, steps, hold, *rest))
        return wide.reshape(*lead, steps * hold, *rest)

    def _inputs(self, sim: Simulator, state: Any, u: Any, wrench: Any = None, *, time: int = 0) -> dict[str, Any]:
        """State, controls and wrenches; `time` axes stand before the own ones of the last two."""
        if not isinstance(sim, Simulator):
            raise InputError(f"the first argument is a Simulator, not {type(sim).__name__}")
        u = self._zeros(sim, (sim.model.nu,)) if u is None else u
        given = self.given(sim, state, u=(u, (sim.model.nu,)), wrench=(wrench, (sim.model.nb, 6)), time=time)
        if wrench is not None and time and given["wrench"].shape[-3] != given["u"].shape[-2]:
            steps, found = given["u"].shape[-2], tuple(given["wrench"].shape)
            raise InputError(f"wrenches are (..., {steps}, {sim.model.nb}, 6), as many as controls, not {found}")
        return given

    def given(self, sim: Simulator, state: Any, *, time: int = 0, **more: tuple[Any, Axes]) -> dict[str, Any]:
        """Arrays by name, each checked, all with the same leading axes. more: array and own axes of what comes beside the
        state."""
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
        """All parameters as one array, (n,) or (*lead, n); None for the simulator's own."""
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
    """What these leading axes broadcast to."""
    shapes = list(leads.values())
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        given = ", ".join(f"{name} {lead}" for name, lead in leads.items())
        raise InputError(f"the leading axes do not broadcast: {given}") from None
