"""Input validation: shapes, types, values. Code behind it relies on validated inputs.

Errors name the argument, what is wrong, and the remedy.
"""

from __future__ import annotations

from functools import cached_property
from math import hypot
from typing import Any

import numpy as np

from ..errors import InputError, is_whole, warn
from ..kernels.devices import Host, all_finite, square
from ..model import tangent
from ..model.model import Model
from ..model.options import Options
from ..model.params import Params
from ..model.state import State
from ..physics.constraints.law import Law, law_of
from .engine import Engine
from .results import Trajectory

UNIT_TOLERANCE = 1e-3  # allowed deviation of the norm of a quaternion from 1
NEGLIGIBLE = {8: 1e-8, 4: 1e-5}  # solver residual without effect on gradients, by item size of the dtype


def check_options(model: Model, options: Options) -> None:
    """Raise InputError if a model and options do not fit each other."""
    law = law_of(options)
    law.check(model, options.law)
    if not model.has_contact:
        return
    for name, value in {"factor": "articulated", "integrator": law.integrator}.items():
        if value is not None and getattr(options, name) != value:
            raise InputError(
                f"'{model.name}' has contact or limits, which need {name}='{value}' under law='{options.law.name}'"
            )


def parts_of(state: Any) -> tuple[Any, Any, Any]:
    """Return q, v and act of a state; act is None where it is left out."""
    try:
        q, v, *act = state
        (act,) = act or [None]
        if q is None or v is None:
            raise TypeError
    except (TypeError, ValueError):
        raise InputError("a state is State(q, v): two arrays, with activations a third, act") from None
    return q, v, act


class Checks:
    """Input validation of a Simulator. Methods return contiguous arrays of its dtype on its device.

    Args:
      engine: Engine of the simulator.
      params: Default parameters.
      raises: Raise FloatingPointError for results that are not finite, in place of a warning.
    """

    def __init__(self, engine: Engine, params: Params, raises: bool = False):
        self.raises = raises
        self.model, self.device, self.options = engine.model, engine.device, engine.options
        self.default_params, self.on_host = params, isinstance(self.device, Host)
        self.quaternions = tangent.quaternions(self.model)
        kinds = [self.model.joint_kind(i) for i in range(self.model.nb)]
        turning = [a for a, kind in zip(self.model.joint_q, kinds, strict=True) if kind.axial and kind.angular]
        self.angles = np.array(turning, int)
        eps = float(np.finfo(self.device.dtype).eps)
        self.resolved = 1e-3 / eps  # rad, where adjacent floats are 1e-3 apart
        self.slides = self._slides()
        self.near = (1e-4 / eps) ** 0.5  # m, where inertias about the origin lose a relative 1e-4 to rounding

    def _slides(self) -> np.ndarray:
        """Return indices in q of sliding joints that move a body away from the origin of its tree.

        A free joint moves the origin along, so trees with one are left out.
        """
        m, links = self.model, self.model.links
        free = {links.tree[k] for k in range(1, len(links.parent)) if m.joint_kind(links.body[k] - 1).floating}
        kinds = [m.joint_kind(i) for i in range(m.nb)]
        sliding = [i for i, kind in enumerate(kinds) if kind.axial and not kind.angular]
        return np.array([m.joint_q[i] for i in sliding if links.tree[links.of_body[i + 1]] not in free], int)

    # -- arrays ------------------------------------------------------------------------------------------------------
    def array(self, name: str, value: Any) -> Any:
        """Return a contiguous array on this simulator's device; raise InputError for non-numeric or non-finite values."""
        if self.on_host:
            return self.host_array(name, value)
        if self.device.holds(value):
            return self.device.foreign(name, value)
        return self.device.array(self.host_array(name, value))

    def cotangent(self, name: str, value: Any) -> Any:
        """Return a cotangent computed by a framework as an array, without a check for NaN.

        A cotangent that is not finite makes the gradient of its batch element NaN, and `finite` warns of it.
        """
        if self.on_host:
            return np.ascontiguousarray(value, dtype=self.device.dtype)
        return self.array(name, value)

    def host_array(self, name: str, value: Any) -> np.ndarray:
        """Return a contiguous array of the dtype on the host; raise InputError for non-numeric or non-finite values."""
        real = self.device.dtype
        usual = type(value) is np.ndarray and value.dtype == real and value.flags.c_contiguous
        if usual and value.ndim and all_finite(value):  # the general case takes 5 us
            return value
        try:
            if np.ma.isMaskedArray(value):
                raise InputError(f"{name} is a masked array: fill its gaps first, as by {name}.filled(0.0)")
            given = np.asarray(value)
            if given.dtype.kind not in "fiubO":
                raise TypeError
            out = np.ascontiguousarray(given, dtype=real)
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name} must be an array of numbers, not {type(value).__name__}") from None
        if np.ndim(value) == 0:
            raise InputError(f"{name} must be an array, not a single number")
        if not all_finite(out):
            where = np.argwhere(~np.isfinite(out))[0]
            raise InputError(f"{name}[{', '.join(map(str, where))}] is {out[tuple(where)]}: all numbers must be finite")
        return out

    # -- states and inputs -------------------------------------------------------------------------------------------
    def state(self, state: Any) -> tuple[State, bool]:
        """Return a state with a batch axis, and True if it had one.

        Quaternion norms on a GPU are not checked, to avoid a wait.
        """
        m, (q, v, act) = self.model, parts_of(state)
        q_host: Any = None if self.device.holds(q) else self.host_array("q", q)
        q, v = q_host if self.on_host else self.array("q", q if q_host is None else q_host), self.array("v", v)
        if q.ndim not in (1, 2) or q.shape[-1] != m.nq or v.shape != (*q.shape[:-1], m.nv):
            raise InputError(
                f"'{m.name}' has q ({m.nq},) and v ({m.nv},), or (batch, {m.nq}) and (batch, {m.nv}); "
                f"got {q.shape} and {v.shape}"
            )
        act = self.activations(act, q.shape[:-1])
        batched = q.ndim == 2
        if len(q) == 0 and batched:
            raise InputError("the batch is empty")
        if q_host is not None:
            self._unit_quaternions(q_host if batched else q_host[None], batched)
            self._resolved(q_host if batched else q_host[None], batched)
        found = State(q, v, act)
        return (found, True) if batched else (found.map(lambda x: x[None]), False)

    def activations(self, act: Any, lead: tuple[int, ...]) -> Any:
        """Return activations (*lead, na), zero if a state has none; None for a model without activations."""
        m, given = self.model, () if act is None else act.shape if hasattr(act, "shape") else np.shape(act)
        if not given or given[-1] == 0:
            return self.device.zeros((*lead, m.na)) if m.na else None
        if not m.na:
            raise InputError(f"'{m.name}' has no activations: leave act out of its states")
        act = self.array("act", act)
        if act.shape != (*lead, m.na):
            raise InputError(f"activations of '{m.name}' are {(*lead, m.na)}, as q has it, not {act.shape}")
        return act

    def _unit_quaternions(self, q: np.ndarray, batched: bool) -> None:
        """Raise InputError for a quaternion whose norm is not 1."""
        for a, _ in self.quaternions:
            if not batched and abs(hypot(*q[0, a : a + 4].tolist()) - 1.0) <= UNIT_TOLERANCE:
                continue  # the general case takes 5 us
            length = np.sqrt(np.square(q[:, a : a + 4]).sum(1))
            off = np.abs(length - 1)
            if off.max() > UNIT_TOLERANCE:
                bad = np.flatnonzero(off > UNIT_TOLERANCE)
                raise InputError(
                    f"q[{a}:{a + 4}] is a quaternion w x y z and must have length 1, not {length[bad[0]]:.4g}"
                    f"{f' (robot {bad[0]})' if batched else ''}: divide it by its norm"
                )

    def _resolved(self, q: np.ndarray, batched: bool) -> None:
        """Warn of coordinates too large for the precision of the dtype.

        For angles adjacent floats are then 1e-3 rad or more apart. For sliding joints rounding errors of inertias exceed 1e-4.
        """
        if self.slides.size and (far := self._beyond(q, batched, self.slides, self.near)):
            warn(
                f"{far} m, too far from the origin for the digits of {q.dtype.name}: bring it nearer, or make the Simulator "
                "with dtype='f64'"
            )
        if square(q) < self.resolved**2 or not self.angles.size:  # the sum of all squares; NaN is reported elsewhere
            return
        if far := self._beyond(q, batched, self.angles, self.resolved):
            warn(
                f"{far} rad, where angles are no longer resolved: subtract whole turns, or find what drives it so fast"
            )

    def _beyond(self, q: np.ndarray, batched: bool, places: np.ndarray, limit: float) -> str:
        """Return a text that names the first joint and batch element beyond a limit, with its value; "" if there is none."""
        found = np.argwhere(np.abs(q[:, places]) > limit)
        if not len(found):
            return ""
        robot, at = int(found[0, 0]), int(places[found[0, 1]])
        which = f" of robot {robot}" if batched else ""
        return f"joint '{self.model.joints[self.model.joint_q.index(at)]}'{which} is at {q[robot, at]:.3g}"

    def one_step(self, name: str, x: Any, lead: tuple[int, ...], own: tuple[int, ...]) -> Any:
        """Return an input of a single step, with a time axis of length 1 before its own axes.

        Args:
          name: Name of the argument, for errors.
          x: The input.
          lead: Batch axis of the state, () without one.
          own: Shape for one batch element.
        """
        x = self.array(name, x)
        if x.shape not in (own, (*lead, *own)):
            wanted = f"{own}{f' or {(*lead, *own)}' if lead else ''}"
            raise InputError(f"{name} of a step of '{self.model.name}' is {wanted}, not {x.shape}")
        return x[(..., None, *[slice(None)] * len(own))]

    def controls(self, u: Any, steps: int | None, batch: int, batched: bool) -> Any:
        """Return controls (T, nu) or (B, T, nu)."""
        nu = self.model.nu
        if u is None:
            if not is_whole(steps, 0):
                raise InputError("pass the controls u (T, nu), or steps=T for zero control")
            return self.device.zeros((int(steps or 0), nu))
        if steps is not None:
            raise InputError("pass u or steps, not both: the length of u is the number of steps")
        u = self.array("u", u)
        if u.ndim == 2 and u.shape[1] == nu:
            return u
        if u.ndim == 3 and u.shape[2] == nu and batched and len(u) == batch:
            return u
        wanted = f"(T, {nu})" + (f" or ({batch}, T, {nu})" if batched else "")
        raise InputError(f"controls of '{self.model.name}' are {wanted}, not {u.shape}")

    def wrench(self, wrench: Any, T: int, batch: int, batched: bool) -> Any:
        """Return external wrenches (T, nb, 6) or (B, T, nb, 6), or None."""
        if wrench is None:
            return None
        wrench = self.array("wrench", wrench)
        one = (T, self.model.nb, 6)
        if wrench.shape == one or (batched and wrench.shape == (batch, *one)):
            return wrench
        raise InputError(f"wrenches are {one}{f' or {(batch, *one)}' if batched else ''}, not {wrench.shape}")

    def params(self, params: Params | None, batch: int) -> Params:
        """Return one set of parameters, or one per batch element."""
        if params is None:
            return self.default_params
        if not isinstance(params, Params):
            raise InputError(f"params is a Params (model.params.replace(...)), not {type(params).__name__}")
        if params.model is not self.model:
            raise InputError(
                f"these params belong to '{params.model.name}'; this simulator runs '{self.model.name}', another Model: "
                "start from sim.model.params"
            )
        if params.batch not in (None, batch):
            raise InputError(f"params have {params.batch} sets, but the batch has {batch} robots")
        return params

    # -- trajectories and cotangents -----------------------------------------------------------------------------------
    def fingerprint(self, u: Any, wrench: Any) -> tuple[float, ...]:
        """Return a checksum of the inputs of a rollout, by which later changes to these arrays are detected."""
        return self.device.fingerprint([u] if wrench is None else [u, wrench])

    def trajectory(self, traj: Any) -> None:
        """Raise InputError unless `traj` is a rollout of this or an equal simulator whose inputs are unchanged since."""
        if not isinstance(traj, Trajectory):
            raise InputError(f"this takes what rollout returned, a Trajectory, not {type(traj).__name__}")
        other = traj.simulator.engine
        if other.model is not self.model:
            raise InputError("this trajectory was made with another model")
        if other.options != self.options:
            raise InputError(f"this trajectory was made by a simulator with other options: {other.options}")
        ours, its = self.device, other.device
        for name, a, b in (
            ("dtype", ours.dtype, its.dtype),
            ("device", ours.name, its.name),
            ("backend", ours.target(1).native, its.target(1).native),
        ):
            if a != b:
                raise InputError(f"this trajectory was made by a simulator with other {name}: {b}")
        if traj.fingerprint != self.fingerprint(traj.u, traj.wrench):
            raise InputError(
                "the controls or wrenches of this trajectory were changed after the rollout; pass a copy to it"
            )

    def bar(self, name: str, bar: Any, n: int, traj: Trajectory) -> Any:
        """Return a cotangent (B, n) of the last state or (B, T+1, n) of all states; None is zero."""
        if bar is None:
            return None
        bar, batch = self.array(name, bar), traj.batch
        lead = (batch,) if traj.batched else ()
        if bar.shape == (*lead, n):
            return bar.reshape(batch, n)
        if bar.shape == (*lead, traj.steps + 1, n):
            return bar.reshape(batch, traj.steps + 1, n)
        raise InputError(
            f"{name} is {(*lead, traj.steps + 1, n)} for all states or {(*lead, n)} for the last, not {bar.shape}"
        )

    def change(self, name: str, x: Any, own: tuple[int, ...], traj: Trajectory) -> Any:
        """Return the tangent (B, *own) of an input, broadcast where batch elements share the input; None is zero."""
        if x is None:
            return None
        x, lead = self.array(name, x), (traj.batch,) if traj.batched else ()
        if x.shape == (*lead, *own):
            return x.reshape(traj.batch, *own)
        if len(own) > 1 and x.shape == own:
            return self.device.broadcast(x, traj.batch).copy()
        raise InputError(f"{name} is {(*lead, *own)}, not {x.shape}")

    def control_bar(self, bar: Any, traj: Trajectory) -> Any:
        """Return the cotangent (B, T, nu) of controls; None is zero."""
        if bar is None:
            return None
        bar, wanted = self.array("u_bar", bar), (*((traj.batch,) if traj.batched else ()), traj.steps, self.model.nu)
        if bar.shape != wanted:
            raise InputError(f"u_bar is {wanted}, as the controls, not {bar.shape}")
        return bar.reshape(traj.batch, traj.steps, self.model.nu)

    def force_bar(self, bar: Any, points: int, traj: Trajectory) -> Any:
        """Return the cotangent (B, T, points, 3) of contact forces; None is zero."""
        if bar is None:
            return None
        bar = self.array("force_bar", bar)
        if not points:
            raise InputError(f"'{self.model.name}' has no shapes that may touch: leave force_bar out")
        wanted = (*((traj.batch,) if traj.batched else ()), traj.steps, points, 3)
        if bar.shape != wanted:
            raise InputError(f"force_bar is {wanted}, as the forces of contacts(traj), not {bar.shape}")
        return bar.reshape(traj.batch, traj.steps, points, 3)

    def rollout(
        self, final: State, batched: bool, status: Any = None, kept: State | None = None, block: int = 1
    ) -> None:
        """Warn of a rollout that is not finite or not solved; on a GPU do nothing, to avoid a wait.

        Args:
          final: Last states.
          batched: True if the user's state has a batch axis.
          status: Solver residuals (B, n) of the rollout; set to NaN where the state is not finite.
          kept: States after each block of steps, which locate the first one that is not finite.
          block: Steps per block.
        """
        if not self.on_host:
            return
        if all(map(all_finite, final)):
            self._resolved(final.q, batched)
            if status is not None:
                self.warn_if_rollout_unsolved(status[:, 0])
            return
        good = self.device.finite(list(final), len(final.q))
        if status is not None:
            status[~good, 0] = np.nan
            self.warn_if_rollout_unsolved(status[:, 0])
        robot = int(np.argmin(good))
        which = f" of robot {robot}{' and others' if (~good).sum() > 1 else ''}" if batched else ""
        since = ""
        if kept is not None and kept.q.ndim == 3:
            bad = ~np.logical_and.reduce([np.isfinite(x[robot]).all(1) for x in kept])
            since = f" {'from' if block == 1 else 'by'} step {int(np.argmax(bad)) * block} on" if bad.any() else ""
        self._report_nonfinite(
            f"the motion{which} is not finite{since}: it was too fast for dt={self.options.dt:g}; shorten dt, or check "
            "controls, gains and masses"
        )

    def finite(self, pieces: list[Any], batch: int) -> Any:
        """Return a mask (B,) of batch elements with finite cotangents; on the host warn of the others."""
        good = self.device.finite(pieces, batch)
        if self.on_host and not good.all():
            which = ", ".join(map(str, np.flatnonzero(~good)[:8]))
            self._report_nonfinite(
                f"the gradient of {(~good).sum()} of {batch} robots is not finite (robot {which}): the motion or a "
                "cotangent overflowed; check the states, shorten dt or the horizon"
            )
        return good

    def _report_nonfinite(self, message: str) -> None:
        if self.raises:
            raise FloatingPointError(message)
        warn(message)

    @property
    def law(self) -> Law:
        """Contact law."""
        return law_of(self.options)

    @cached_property
    def negligible(self) -> float:
        """Largest solver residual that gradients do not show.

        It is 0 for the hybrid solver: its residual is 0 if its active set passed the check, and otherwise the active set may be
        singular however small the residual is.
        """
        accepted = self.law.accepted(self.options.law)
        return 0.0 if accepted is None else max(accepted, NEGLIGIBLE[self.device.dtype.itemsize])

    @cached_property
    def inexact_if_unsolved(self) -> bool:
        """True if gradients are inexact where constraints were not solved.

        Under sweeps they are exact: their adjoint differentiates the iterations that were run.
        """
        return self.model.has_contact and not self.options.law.taped

    @cached_property
    def reports_rollouts(self) -> bool:
        """True if rollouts can have a step that was not solved, and the law reports it in the forward pass."""
        return bool(self.law.reported_forward and self.model.has_contact)

    def warn_if_unsolved(self, violation: Any) -> None:
        """Warn of a gradient through a step that was not solved; on a GPU do nothing, to avoid a wait."""
        if self.inexact_if_unsolved:
            self._warn_unsolved(violation, "gradient")

    def warn_if_rollout_unsolved(self, violation: Any) -> None:
        """Warn of a rollout with a step that was not solved, under a law that reports it in the forward pass."""
        if self.reports_rollouts:
            self._warn_unsolved(violation, "motion")

    def _warn_unsolved(self, violation: Any, what: str) -> None:
        if not self.on_host:
            return
        unsolved = ~(violation <= self.negligible)
        if what == "motion":
            unsolved &= ~np.isnan(violation)  # `rollout` warns of these
        if unsolved.any():
            worst = int(np.argmax(np.where(unsolved, np.where(np.isnan(violation), np.inf, violation), -1.0)))
            more = f", and of {unsolved.sum() - 1} more" if unsolved.sum() > 1 else ""
            warn(
                self.unsolved_message(f"robot {worst} (by {violation[worst]:.1e}{self.law.violation_unit}{more})", what)
            )

    def unsolved_message(self, who: str, what: str = "gradient") -> str:
        """Text of the warning of a step that was not solved. what: "motion" or "gradient"."""
        remedy = self.law.remedy(self.options.law)
        figures = "traj.violation" if what == "motion" else "sim.vjp(...).health.violation"
        return (
            f"the constraint problem was not solved in some step of {who}, so that its {what} is not exact there: "
            f"{remedy}; {figures} has the figures of all robots"
        )
