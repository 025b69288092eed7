"""ModelBuilder: construction of a robot, body by body. Invalid input is refused with the part and the rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ..arguments import checked_model, shown
from ..deprecation import rename_overrides, renamed, renamed_arguments
from ..errors import ModelError, warn
from ..model.findings import Finding, Report
from ..model.model import (
    ACTUATORS,
    DIRECT,
    DYNAMICS,
    OPTIONS,
    RESERVED,
    Activated,
    ContactSide,
    Keyframe,
    Model,
    Sensor,
    Zone,
)
from ..model.options import LAW_OF, Options
from ..model.sealed import Sealed
from ..model.transmissions import Transmission
from ..model.visuals import Mount, Visual
from ..physics.joints.table import EITHER_AXIAL, JOINTS
from ..physics.sensors.contact_sensors import CONTACT_DATA, REDUCE
from ..physics.sensors.distance_sensors import DISTANCE_SENSORS, endless, sides_of
from ..physics.sensors.rangefinders import RANGE_DATA, check_surfaces
from ..physics.sensors.sensor_table import KINDS
from .equality_builder import EqualityBuilder
from .inverse_weights import weights
from .shape_builder import SOLIMP, SOLREF, WORLD, ShapeBuilder
from .tendon_builder import TendonBuilder
from .validate import (
    INF,
    bounds,
    check_mass_matrix,
    inertia_of,
    not_negative,
    number,
    quaternion,
    soft_reference,
    symmetric,
    unit,
    vector,
)

# fields of Params of a joint, besides its axis and anchor
JOINT_NUMBERS = (
    "pitch",
    *("damping", "armature", "stiffness", "spring_reference", "stiffness_curve", "damping_curve"),
    *("dry_friction", "dry_solref", "dry_solimp"),
    *("limit", "limit_margin", "limit_solref", "limit_solimp", "effort_limit", "velocity_limit"),
)
ACTIVATION_NUMBERS = ("activation_time", "activation_range")
MUSCLE_NUMBERS = ("muscle_gain", "muscle_bias", "muscle_length_range")
SURROUNDED = ("gravity_compensation", "fluid_box", "fluid_rotation")
# frame sensors that accept a reference site
ZONES = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
ZONED = {"touch": True, "insidesite": True, "contact": False}  # sensors that accept a zone, and whether it is required
# fields that each sensor can return, and returns by default
DATA = {"rangefinder": (RANGE_DATA, ("dist",)), "contact": (CONTACT_DATA, ("found",))}
SIDES = {"shape": "shape", "body": "body", "subtree": "body", "": ""}  # sides of contact sensors
DISTANCE_SIDES = ("shape", "body")  # sides of distance sensors
# methods whose deprecated names lack "add_"
RENAMED = (
    *("universal", "body", "site", "motor", "position_servo", "velocity_servo", "servo_motor", "actuator", "muscle"),
    *("keyframe", "sensor", "visual", "camera", "plane", "sphere", "capsule", "box", "cylinder", "ellipsoid"),
    *("height_field", "fixed_tendon", "spatial_tendon", "connect", "weld"),
)
SEEN_FROM = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")


IDLE = "equality within one rigid body"


@renamed(
    **{name: f"add_{name}" for name in RENAMED},
    fluid="set_fluid",
    idle="add_idle_actuator",
    points="add_convex_hull",
    exclude="add_exclude",
    include="add_pair",
    couple="add_joint_coupling",
    couple_tendons="add_tendon_coupling",
)
class ModelBuilder(EqualityBuilder, TendonBuilder, ShapeBuilder, Sealed):
    """Builder of a model from bodies, sites, tendons and actuators; `build()` returns the Model.

            b = ModelBuilder("pendulum")
            b.add_body("rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5))
            b.add_site("tip", "rod", position=(0, 0, -1.0))
            b.add_motor("motor", "rod")
            model = b.build()

    A universal or planar joint is a chain of massless bodies with one axis each.
    """

    CALLED = "a ModelBuilder"
    OPEN = ("name", "gravity", "magnetic", "options", "weights", "unsupported", "notes", "parents_touch")

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        rename_overrides(cls)

    def __init__(self, name: str, *, gravity: Any = (0.0, 0.0, -9.81)):
        super().__init__()
        self.name, self.gravity = name, vector(gravity, 3, f"gravity of '{name}'")
        self._bodies: dict[str, dict[str, Any]] = {}
        self._joints: dict[str, int] = {}
        self._sites: dict[str, dict[str, Any]] = {}
        self._actuators: dict[str, dict[str, Any]] = {}
        self._keyframes: dict[str, Keyframe] = {}
        # entries of attached models, by origin: ("q", joint), ("v", joint), ("u", actuator)
        self._keyframe_parts: dict[str, dict[tuple[str, str], np.ndarray]] = {}
        self._sensors: dict[str, dict[str, Any]] = {}
        self.magnetic = np.zeros(3)
        self._fluid: dict[str, Any] = {"density": 0.0, "viscosity": 0.0, "wind": np.zeros(3)}
        self._visuals: list[tuple[str, Visual]] = []
        self._cameras: dict[str, tuple[str, Mount]] = {}
        self.options = Options()
        self.weights: dict[str, Any] = {}  # body_invweight0 and dof_invweight0, if given by a file
        self.unsupported: list[Finding] = []
        self.notes: list[Finding] = []
        self._seal()

    def _remedy(self, name: str) -> str:
        """Return the way to set an attribute: parts are added by calls; options are one record."""
        if name in OPTIONS:
            return f"set b.options = b.options.changed({{'{name}': ...}})"
        if name in LAW_OF:
            return f"set b.options = b.options.changed({{'law': ag.{LAW_OF[name].__name__}({name}=...)}})"
        return "call it" if hasattr(type(self), name) else ""

    def set_fluid(self, *, density: float = 0.0, viscosity: float = 0.0, wind: Any = (0.0, 0.0, 0.0)) -> None:
        """Set a fluid around all bodies with a `fluid_box`.

        Args:
            density: kg/m^3.
            viscosity: Pa s.
            wind: Velocity of the fluid, m/s, world axes.
        """
        numbers = {"density": number(density, "density"), "viscosity": number(viscosity, "viscosity")}
        if min(numbers.values()) < 0:
            raise ModelError("density and viscosity of a fluid are zero or more")
        self._fluid = {**numbers, "wind": vector(wind, 3, "wind")}

    @checked_model
    def add_universal(
        self, name: str, parent: str = WORLD, *, axes: Any = ((1, 0, 0), (0, 1, 0)), **options: Any
    ) -> str:
        """Add a body on a universal joint: two rotations about `axes`, the first fixed to the parent, the second to the
        body.

        It consists of two revolute joints, `name:1` and `name`, with a massless body between; options as of `add_body`.
        """
        if not isinstance(axes, list | tuple | np.ndarray) or np.shape(axes)[:1] != (2,):
            raise ModelError(f"axes of '{name}' are two directions, not {shown(axes)}")
        first, second = axes
        joint = {k: options.pop(k) for k in list(options) if k in ("position", "rotation", "anchor")}
        between = self.add_body(f"{name}:1", parent, joint="revolute", axis=first, **joint)
        return self.add_body(
            name, between, joint="revolute", axis=second, anchor=joint.get("anchor", (0, 0, 0)), **options
        )

    @renamed_arguments(lifts="actuator_gravcomp")
    @checked_model
    def add_body(
        self,
        name: str,
        parent: str = WORLD,
        *,
        joint: str = "fixed",
        joint_name: str | None = None,
        axis: Any = (0.0, 0.0, 1.0),
        anchor: Any = (0.0, 0.0, 0.0),
        pitch: float = 0.0,
        position: Any = (0.0, 0.0, 0.0),
        rotation: Any = (1.0, 0.0, 0.0, 0.0),
        mass: float = 0.0,
        com: Any = (0.0, 0.0, 0.0),
        inertia: Any = (0.0, 0.0, 0.0),
        damping: float = 0.0,
        armature: float = 0.0,
        stiffness: float = 0.0,
        spring_reference: float = 0.0,
        stiffness_curve: Any = (0.0, 0.0),
        damping_curve: Any = (0.0, 0.0),
        limit: Any = None,
        limit_margin: float = 0.0,
        limit_solref: Any = SOLREF,
        limit_solimp: Any = SOLIMP,
        effort_limit: Any = None,
        velocity_limit: float = INF,
        reference: float = 0.0,
        dry_friction: float = 0.0,
        dry_solref: Any = SOLREF,
        dry_solimp: Any = SOLIMP,
        gravity_compensation: float = 0.0,
        fluid_box: Any = (0.0, 0.0, 0.0),
        fluid_rotation: Any = (1.0, 0.0, 0.0, 0.0),
        actuator_gravcomp: bool = False,
        mocap: bool = False,
    ) -> str:
        """Add a body and the joint that connects it to `parent`.

        Args:
            name: Name.
            parent: A body added before, or "world".
            joint: fixed, revolute, prismatic, spherical, free or screw.
            joint_name: Name of the joint; by default the body's.
            position, rotation: Body frame in the parent's frame, joints at zero; m, and a quaternion w x y z.
            axis, anchor: Of the joint, in the body frame; anchor in m.
            pitch: Shift along the axis per angle of a screw joint, m/rad.
            mass: kg.
            com: Center of mass in the body frame, m.
            inertia: About the center of mass in body axes, kg m^2: three principal moments, six numbers xx yy zz xy xz
                yz, or a 3x3 matrix.
            damping: Damping of the joint, N m s/rad or N s/m.
            armature: Rotor inertia, kg m^2 or kg.
            stiffness, spring_reference: Spring and its rest position. Springs of spherical joints rest at zero, those
                of free joints at `position` and `rotation`.
            stiffness_curve, damping_curve: Coefficients of x^2 and x^3 in the spring force, of v |v| and v^3 in the
                damping force.
            limit: (lower, upper), of a spherical joint (0, largest angle); for revolute, prismatic and spherical
                joints.
            limit_margin, limit_solref, limit_solimp: Compliance of limits under the soft law (`docs/contact-models.md`).
            effort_limit: (lower, upper) of the total actuator force, for revolute and prismatic joints.
            velocity_limit: rad/s or m/s, for use by controllers; not enforced.
            reference: Position of a revolute or prismatic joint in the reference pose, in which inverse weights are
                computed (MJCF's `ref`).
            dry_friction: Largest force of dry friction, N m or N (MuJoCo frictionloss).
            dry_solref, dry_solimp: Compliance of dry friction under the soft law.
            gravity_compensation: Fraction of the weight that is compensated.
            fluid_box, fluid_rotation: Edges (m) and axes (quaternion) of the equivalent box about the center of mass in
                a fluid.
            actuator_gravcomp: Actuators of this joint provide the gravity compensation of its subtree, within its
                effort_limit.
            mocap: Body fixed to the world and placed by params.position and params.rotation, for welds and contacts.

        Returns:
            Its name.
        """
        what = f"body '{name}'"
        self._new(name, self._bodies, "body")
        if name == WORLD:
            raise ModelError("a body cannot be named 'world': that is the fixed frame bodies hang on")
        if not isinstance(parent, str) or (parent != WORLD and parent not in self._bodies):
            raise ModelError(f"{what} hangs on '{parent}', which is not there yet: add parents before their children")
        if not isinstance(joint, str) or joint not in JOINTS:
            raise ModelError(f"{what}: a joint is one of {', '.join(JOINTS)}; not '{joint}'")
        joint_name = joint_name or name
        if joint_name in self._joints:
            raise ModelError(f"two joints are named '{joint_name}'; names of joints are unique")
        numbers = {
            k: number(x, f"{k} of {what}")
            for k, x in {
                "mass": mass,
                "pitch": pitch,
                "damping": damping,
                "armature": armature,
                "stiffness": stiffness,
                "spring_reference": spring_reference,
                "reference": reference,
                "limit_margin": limit_margin,
                "dry_friction": dry_friction,
                "gravity_compensation": gravity_compensation,
            }.items()
        }
        for k in ("mass", "damping", "armature", "stiffness", "dry_friction"):
            if numbers[k] < 0:
                raise ModelError(f"{k} of {what} is {numbers[k]:g}; it cannot be negative")
        if pitch and JOINTS[joint].travel != "pitch":
            raise ModelError(f"{what}: a pitch is of screw joints, not of a {joint} one")
        if stiffness and not JOINTS[joint].nv:
            raise ModelError(f"{what}: springs are on joints that move, not on a {joint} one")
        velocity_limit = number(velocity_limit, f"velocity_limit of {what}", finite=False)
        if not velocity_limit > 0:
            raise ModelError(f"velocity_limit of {what} is {velocity_limit:g}; it is above zero")
        if reference and not JOINTS[joint].axial:
            raise ModelError(f"{what}: a reference is of {EITHER_AXIAL} joints, not of a {joint} one")
        if limit is not None and not JOINTS[joint].limitable:
            raise ModelError(f"{what}: limits are for {EITHER_AXIAL} or spherical joints, not a {joint} one")
        if limit is not None and not JOINTS[joint].axial and bounds(limit, f"limit of {what}")[0] not in (0.0, -np.inf):
            raise ModelError(f"{what}: the limit of a spherical joint is (0, largest angle)")
        if effort_limit is not None and not JOINTS[joint].axial:
            raise ModelError(f"{what}: limits of effort are for {EITHER_AXIAL} joints, not a {joint} one")
        if dry_friction and not JOINTS[joint].nv:
            raise ModelError(f"{what}: dry friction is for joints that move, not a {joint} one")
        self._check_angles(joint, limit, what)
        if JOINTS[joint].floating and parent != WORLD:
            raise ModelError(f"{what}: a free joint connects to the world, not to '{parent}'")
        if mocap and (JOINTS[joint].nv or parent != WORLD):
            raise ModelError(f"{what} is a mocap body: it is fixed to the world, not on a {joint} joint on '{parent}'")
        if JOINTS[joint].floating and vector(anchor, 3, f"anchor of {what}").any():
            raise ModelError(f"{what}: a free joint has no anchor")
        self._bodies[name] = {
            "parent": parent,
            "joint": joint,
            "joint_name": joint_name,
            "mocap": bool(mocap),
            "actuator_gravcomp": bool(actuator_gravcomp) and JOINTS[joint].nv > 0,
            "touches_parent": None,  # default: `parents_touch`
            "velocity_limit": velocity_limit,
            "com": vector(com, 3, f"com of {what}"),
            "inertia": inertia_of(inertia, what, numbers["mass"]),
            "position": vector(position, 3, f"position of {what}"),
            "rotation": quaternion(rotation, f"rotation of {what}"),
            "anchor": vector(anchor, 3, f"anchor of {what}"),
            "axis": unit(axis, f"axis of joint '{joint_name}'"),
            "stiffness_curve": vector(stiffness_curve, 2, f"stiffness_curve of {what}"),
            "damping_curve": vector(damping_curve, 2, f"damping_curve of {what}"),
            "limit": bounds(limit, f"limit of joint '{joint_name}'"),
            "effort_limit": bounds(effort_limit, f"effort_limit of joint '{joint_name}'"),
            "limit_solref": soft_reference(limit_solref, f"the limit of joint '{joint_name}'", self._lenient),
            "limit_solimp": vector(limit_solimp, 5, f"limit_solimp of joint '{joint_name}'"),
            "dry_solref": soft_reference(dry_solref, f"the dry friction of joint '{joint_name}'", self._lenient),
            "dry_solimp": vector(dry_solimp, 5, f"dry_solimp of joint '{joint_name}'"),
            "fluid_box": vector(fluid_box, 3, f"fluid_box of {what}"),
            "fluid_rotation": quaternion(fluid_rotation, f"fluid_rotation of {what}"),
            **numbers,
        }
        self._joints[joint_name] = len(self._bodies) - 1
        return name

    def _check_angles(self, joint: str, limit: Any, what: str) -> None:
        """Warn of limits that are probably in degrees."""
        if self._lenient:
            return  # files state their units
        found = np.abs(bounds(limit, f"limit of {what}"))
        turns = found[np.isfinite(found) & (found > 4 * np.pi) & (found <= 720)]
        if JOINTS[joint].nv and (JOINTS[joint].angular or not JOINTS[joint].axial) and len(turns):
            warn(f"a limit of {what} is {turns.max():g} rad, {turns.max() / np.pi / 2:.1f} turns: are these degrees?")

    @checked_model
    def add_site(
        self, name: str, body: str, *, position: Any = (0.0, 0.0, 0.0), rotation: Any = (1.0, 0.0, 0.0, 0.0)
    ) -> str:
        """Add a site: a named frame fixed to a body or to "world"."""
        self._new(name, self._sites, "site")
        if not isinstance(body, str) or (body != WORLD and body not in self._bodies):
            raise ModelError(f"site '{name}' is on body '{body}', which does not exist")
        self._sites[name] = {
            "body": body,
            "position": vector(position, 3, f"position of site '{name}'"),
            "rotation": quaternion(rotation, f"rotation of site '{name}'"),
        }
        return name

    @checked_model
    def add_motor(
        self, name: str, joint: str, *, gear: float = 1.0, control_range: Any = None, max_force: float = INF
    ) -> str:
        """Add a torque (or force) motor: joint torque = gear * clamp(u), within +-max_force before the gear."""
        return self.add_actuator(name, joint, gear=gear, control_range=control_range, force_range=symmetric(max_force))

    @checked_model
    def add_position_servo(
        self,
        name: str,
        joint: str,
        *,
        gain: float,
        damping: float = 0.0,
        max_force: float = INF,
        max_velocity: float = INF,
        gear: float = 1.0,
        control_range: Any = None,
    ) -> str:
        """Add a position servo: force = gain (u - length) - damping velocity, at most max_force.

        The drive is limited so that the joint is not driven faster than max_velocity (requires damping).
        """
        damping = number(damping, f"damping of actuator '{name}'")
        not_negative(number(gain, f"gain of actuator '{name}'"), f"gain of actuator '{name}', a servo,")
        not_negative(damping, f"damping of actuator '{name}'")
        return self.add_actuator(
            name,
            joint,
            kind="position",
            gain=gain,
            bias=(0.0, 0.0, -damping),
            gear=gear,
            control_range=control_range,
            force_range=symmetric(max_force),
            max_velocity=max_velocity,
        )

    @checked_model
    def add_velocity_servo(
        self,
        name: str,
        joint: str,
        *,
        gain: float,
        max_force: float = INF,
        max_velocity: float = INF,
        gear: float = 1.0,
        control_range: Any = None,
    ) -> str:
        """Add a velocity servo: force = gain (u - velocity), at most max_force, the command within +-max_velocity."""
        not_negative(number(gain, f"gain of actuator '{name}'"), f"gain of actuator '{name}', a servo,")
        return self.add_actuator(
            name,
            joint,
            kind="velocity",
            gain=gain,
            gear=gear,
            control_range=control_range,
            force_range=symmetric(max_force),
            max_velocity=max_velocity,
        )

    @checked_model
    def add_servo_motor(
        self,
        name: str,
        joint: str,
        *,
        target: Literal["position", "velocity"] = "position",
        gain: float = 1.0,
        max_force: float = INF,
        max_velocity: float = INF,
        gear: float = 1.0,
        control_range: Any = None,
    ) -> str:
        """Add a motor that tracks a velocity with at most max_force, as a constraint: implicit, stable for any gain.

        Args:
            name: Name.
            joint: Revolute or prismatic joint.
            target: Meaning of u. "position": the velocity is gain (u - length) at the end of the step, gain in 1/s;
                "velocity": it is gain u.
            gain: See target.
            max_force: Largest force, before the gear.
            max_velocity: Bound of the velocity.
            gear: Gear ratio.
            control_range: (lower, upper) of u.
        """
        kinds = {"position": "servo", "velocity": "speed"}
        if target not in kinds:
            raise ModelError(f"target of actuator '{name}' is {' or '.join(kinds)}, not {target!r}")
        limits: dict[str, Any] = {"force_range": symmetric(max_force), "max_velocity": max_velocity}
        return self.add_actuator(
            name, joint, kind=kinds[target], gain=gain, gear=gear, control_range=control_range, **limits
        )

    @renamed_arguments(seen_from="refsite", early="actearly")
    @checked_model
    def add_actuator(
        self,
        name: str,
        joint: str | None = None,
        *,
        tendon: str | None = None,
        site: str | None = None,
        refsite: str | None = None,
        body: str | None = None,
        crank: str | None = None,
        slider: str | None = None,
        crank_length: float = 0.0,
        in_parent: bool = False,
        kind: str = "force",
        gain: float = 1.0,
        gain_slope: Any = (0.0, 0.0),
        bias: Any = (0.0, 0.0, 0.0),
        gear: Any = 1.0,
        control_range: Any = None,
        force_range: Any = None,
        max_velocity: float = INF,
        dynamics: str | None = None,
        activation_time: Any = (1.0, 0.0, 0.0),
        activation_range: Any = None,
        actearly: bool = False,
        muscle_gain: Any = None,
        muscle_bias: Any = None,
        muscle_length_range: Any = (0.0, 1.0),
    ) -> str:
        """Add a general affine actuator: force = gain (u - x) + bias . (1, length, velocity).

        It acts on a joint, a tendon, a site, a slider-crank or a body. On an axial joint or a tendon, length and
        velocity are its own times `gear`, and its force is gear times this one.

        Args:
            name: Name.
            joint, tendon, site: Target.
            refsite: Reference site: the wrench is in its axes and reacts on it; length = gear .
                (relative position, rotation vector).
            body: Body of an adhesion actuator (soft law): its force is distributed over all its contacts.
            crank, slider, crank_length: Sites and rod length (m) of a slider-crank; length is the slider's position on
                its axis z.
            in_parent: Torque axes of a ball or free joint in the parent's frame.
            kind: Meaning of u: a "force" (x = 0), or a target "position" (x = length) or "velocity"; "servo" and
                "speed": see `add_servo_motor`.
            gain: Gain.
            gain_slope: Derivatives of the gain with respect to length and velocity; (0, -1) is a damper whose
                coefficient is u.
            bias: Constant, length and velocity coefficients.
            gear: A number; three numbers for a spherical joint; six for a free joint or a site: force and torque per
                unit of actuator force, in the axes of the site or of the joint's body (translations of a free joint:
                world axes).
            control_range, force_range: (lower, upper) of u and of the force.
            max_velocity: Velocity at which drive and damping balance.
            dynamics: "integrator", "filter", "filterexact" or "muscle": the gain multiplies an activation that follows
                u.
            activation_time: s; of a filter the first number, of a muscle rise time, fall time and the width of u over
                which they change.
            activation_range: (lower, upper).
            actearly: The force uses the activation at the end of the step.
            muscle_gain, muscle_bias, muscle_length_range: As the params of these names; see `add_muscle`.
        """
        what = f"actuator '{name}'"
        self._new(name, self._actuators, "actuator")
        given = {"joint": joint, "tendon": tendon, "site": site, "crank": crank, "body": body}
        on, axes = self._acted_on(what, given, {"site": refsite, "crank": slider}, in_parent, gear)
        crank_length = number(crank_length, f"crank_length of {what}")
        if (crank_length > 0) != (crank is not None):
            raise ModelError(f"{what}: a slider-crank, and nothing else, has a crank_length above zero")
        if kind not in ACTUATORS:
            raise ModelError(f"kind of {what} is one of {', '.join(ACTUATORS)}; not {kind!r}")
        gain, bias = number(gain, f"gain of {what}"), vector(bias, 3, f"bias of {what}")
        if body is not None and (kind != "force" or bias[1:].any() or np.any(gain_slope)):
            raise ModelError(f"{what} pulls a body to what it touches: it has no length and no velocity to depend on")
        max_velocity = number(max_velocity, f"max_velocity of {what}", finite=False)
        if not max_velocity > 0:
            raise ModelError(f"max_velocity of {what} is {max_velocity}; it must be positive")
        if kind in ("servo", "speed"):
            self._check_servo_motor(what, on, axes, (gain, gear), (bias, gain_slope))
        elif max_velocity < INF and bias[2] - gain * (kind == "velocity") >= 0:
            raise ModelError(
                f"{what}: max_velocity needs damping, which is what balances the drive: bias[2] below zero"
            )
        self._actuators[name] = {
            "on": on,
            "kind": ACTUATORS.index(kind),
            "gain": gain,
            "bias": bias,
            "gain_slope": vector(gain_slope, 2, f"gain_slope of {what}"),
            "gear": 1.0 if axes is not None else number(gear, f"gear of {what}"),
            "gear_axes": np.zeros(6) if axes is None else axes,
            "crank_length": crank_length,
            "control_range": bounds(control_range, f"control_range of {what}"),
            "force_range": bounds(force_range, f"force_range of {what}"),
            "max_velocity": max_velocity,
        }
        if dynamics is not None:
            self._activate(name, dynamics, activation_time, activation_range, actearly)
        if muscle_gain is not None or muscle_bias is not None:
            self._actuators[name]["muscle"] = {
                "muscle_gain": vector(np.zeros(8) if muscle_gain is None else muscle_gain, 8, f"muscle_gain of {what}"),
                "muscle_bias": vector(np.zeros(8) if muscle_bias is None else muscle_bias, 8, f"muscle_bias of {what}"),
                "muscle_length_range": vector(muscle_length_range, 2, f"muscle_length_range of {what}"),
            }
        return name

    @staticmethod
    def _check_servo_motor(what: str, on: tuple[str, ...], axes: Any, numbers: tuple[float, Any], zero: Any) -> None:
        """Refuse a servo motor that does not act on an axial joint, or has more than a gain."""
        if on[0] != "joint" or axes is not None:
            raise ModelError(
                f"{what} is a servo motor: it drives a {EITHER_AXIAL} joint, not a {on[0]} of another kind"
            )
        gain, gear = numbers
        if gain <= 0 or gear == 0:
            raise ModelError(f"{what} is a servo motor: its gain is above zero and its gear not zero")
        if any(np.any(x) for x in zero):
            raise ModelError(f"{what} is a servo motor: it has no bias and no gain_slope")

    def _activate(self, name: str, dynamics: str, time: Any, limits: Any, actearly: bool) -> None:
        what = f"actuator '{name}'"
        if dynamics not in DYNAMICS:
            raise ModelError(f"dynamics of {what} is one of {', '.join(DYNAMICS)}; not {dynamics!r}")
        self._actuators[name]["activation"] = {
            "dynamics": dynamics,
            "actearly": bool(actearly),
            "activation_time": vector(time, 3, f"activation_time of {what}"),
            "activation_range": bounds(limits, f"activation_range of {what}"),
        }

    @checked_model
    def add_muscle(
        self,
        name: str,
        joint: str | None = None,
        *,
        tendon: str | None = None,
        force: float,
        length_range: Any,
        gear: float = 1.0,
        range: Any = (0.75, 1.05),
        lmin: float = 0.5,
        lmax: float = 1.6,
        vmax: float = 1.5,
        fpmax: float = 1.3,
        fvmax: float = 1.2,
        time: Any = (0.01, 0.04),
        smooth: float = 0.0,
        control_range: Any = (0.0, 1.0),
    ) -> str:
        """Add a muscle with an activation, MuJoCo's model.

        Args:
            name: Name.
            joint, tendon: Target.
            force: Peak force, N.
            length_range: Bounds of its length, m or rad, which correspond to `range`.
            gear: Gear ratio.
            range: Bounds of its length in units of the optimal length.
            lmin, lmax: Bounds of active force, in these units.
            vmax: Fastest shortening, 1/s.
            fpmax: Passive force at lmax, relative to `force`.
            fvmax: Active force at fastest lengthening, relative to `force`.
            time: Rise and fall time of its activation, s.
            smooth: Width of control over which these change.
            control_range: (lower, upper) of u.
        """
        shape = (*vector(range, 2, f"range of muscle '{name}'"), force, lmin, lmax, vmax, fpmax, fvmax)
        return self.add_actuator(
            name,
            joint,
            tendon=tendon,
            gear=gear,
            gain=0.0,
            control_range=control_range,
            dynamics="muscle",
            activation_time=(*vector(time, 2, f"time of muscle '{name}'"), smooth),
            muscle_gain=shape,
            muscle_bias=shape,
            muscle_length_range=length_range,
        )

    def _acted_on(
        self, what: str, given: dict[str, str | None], others: dict[str, str | None], in_parent: bool, gear: Any
    ) -> tuple[tuple[str, ...], np.ndarray | None]:
        """Return (kind of transmission, name, perhaps a second name), and the six numbers of a gear that is not one
        number."""
        given = {key: name for key, name in given.items() if name is not None}
        if len(given) != 1:
            raise ModelError(f"{what} acts on one joint, tendon, site, slider-crank or body")
        ((part, name),) = given.items()
        parts: dict[str, Any] = {"joint": self._joints, "tendon": self._tendons, "body": self._bodies}
        known = list(parts.get(part, self._sites))
        other = others.get(part)
        for x in (name,) if other is None else (name, other):
            if not isinstance(x, str) or x not in known:
                raise ModelError(
                    f"{what} is on {part} '{x}', which does not exist; there are: {', '.join(known) or 'none'}"
                )
        if any(x is not None and key != part for key, x in others.items()) or (part == "crank" and other is None):
            raise ModelError(f"{what}: refsite goes with a site, and slider with a crank, which needs it")
        assert name is not None
        count = 1 if part in ("tendon", "crank", "body") else 6
        if part == "joint":
            joint = JOINTS[list(self._bodies.values())[self._joints[name]]["joint"]]
            if not joint.nv:
                raise ModelError(f"{what} drives joint '{name}', which is {joint.name}: it does not move")
            count = 1 if joint.axial else joint.nv
        on = (part, name) if other is None else (part, name, other)
        if count == 1:
            return on, None
        axes = np.zeros(6)
        axes[:count] = vector(gear, count, f"gear of {what}, which acts on a {part} with {count} axes,")
        return ("jointinparent", name) if part == "joint" and in_parent else on, axes

    @checked_model
    def add_keyframe(
        self, name: str, q: Any = None, v: Any = None, u: Any = None, act: Any = None, mocap: Any = None
    ) -> str:
        """Add a named state and control for `sim.reset(name)`.

        Omitted parts are zero (q, mocap: as the model is placed). Every model has the keyframes "zero" and "reference".

        Args:
            name: Name.
            q, v, u, act: State and control.
            mocap: Position and quaternion of each mocap body, concatenated, for `model.keyframe_params(name)`.
        """
        self._new_keyframe(name)
        self._keyframes[name] = Keyframe(q, v, u, act, mocap)
        return name

    def _new_keyframe(self, name: str) -> None:
        self._new(name, self._keyframes | self._keyframe_parts, "keyframe")
        if name in RESERVED:
            raise ModelError(
                f"a keyframe cannot be named '{name}': 'zero' has all joints at zero, 'reference' has them at their `reference`"
            )

    @checked_model
    def add_idle_actuator(self, name: str) -> str:
        """Add an actuator without effect that keeps its index in u: for an unsupported one of a file."""
        self._new(name, self._actuators, "actuator")
        moving = [b for b in self._bodies.values() if JOINTS[b["joint"]].nv]
        if not moving:
            raise ModelError(f"actuator '{name}' needs a joint, and '{self.name}' has none")
        joint = min(moving, key=lambda b: not JOINTS[b["joint"]].axial)["joint_name"]
        numbers = dict.fromkeys(("gain", "gear"), 0.0) | dict.fromkeys(
            ("control_range", "force_range"), bounds(None, "")
        )
        own = {
            "kind": DIRECT,
            "bias": np.zeros(3),
            "gain_slope": np.zeros(2),
            "gear_axes": np.zeros(6),
            "crank_length": 0.0,
            "max_velocity": INF,
        }
        self._actuators[name] = {"on": ("joint", joint), **own, **numbers}
        return name

    def _transmission(self, on: tuple[str, ...]) -> Transmission:
        kind, *names = on
        others = {"tendon": self._tendons, "site": self._sites, "crank": self._sites, "body": self._bodies}
        known: Any = others.get(kind, self._joints)
        return Transmission(kind, *(list(known).index(name) for name in names))

    @checked_model
    def add_sensor(
        self,
        name: str,
        kind: str,
        on: str = "",
        *,
        ref: str | None = None,
        cutoff: float = 0.0,
        zone: Any = None,
        data: Any = (),
        between: Any = (("", ""), ("", "")),
        reduce: str = "none",
        num: int = 1,
    ) -> str:
        """Add a sensor, read by `sim.sensors`, with MuJoCo's names.

        Args:
            name: Name.
            kind: Of a joint jointpos, jointvel, ballquat, ballangvel, jointactfrc, jointlimitpos, jointlimitvel or
                jointlimitfrc; of a site framepos, framequat, framexaxis (y, z), framelinvel, frameangvel, framelinacc,
                frameangacc, velocimeter, gyro, accelerometer, magnetometer, force, torque, touch, rangefinder or
                insidesite; of a body subtreecom, subtreelinvel or subtreeangmom; of a tendon tendonpos, tendonvel,
                tendonactfrc, tendonlimitpos, tendonlimitvel or tendonlimitfrc; of an actuator actuatorpos, actuatorvel
                or actuatorfrc; of the model e_potential, e_kinetic, clock or contact; of the distance of two shapes or
                bodies, up to the cutoff, geomdist, geomnormal or geomfromto.
            on: Part of the model that it is attached to.
            ref: Reference site of a frame sensor, or the site inside a zone.
            cutoff: Largest reading; 0: unlimited.
            zone: Volume of touch, insidesite and contact, ("sphere", (radius, 0, 0)) or another shape about the site.
            data: Fields to return: of a rangefinder dist, dir, origin, point and depth; of contact found, force,
                torque, dist, pos, normal, tangent, linvel and angvel.
            between: Both sides of contacts, each ("shape" or "body" or "subtree", name), or ("", "") for any; both
                sides of a distance, shapes or bodies.
            reduce, num: Selection of contacts (none, mindist, maxforce, netforce), and their number.
        """
        self._new(name, self._sensors, "sensor")
        if kind not in KINDS:
            raise ModelError(f"sensor '{name}': kinds are {', '.join(KINDS)}; not '{kind}'")
        self._sensed(kind, on)
        if kind == "insidesite" and ref is None:
            raise ModelError(f"sensor '{name}' asks whether a site is inside its zone: ref is its name")
        if ref is not None and (kind not in (*SEEN_FROM, "insidesite") or ref not in self._sites):
            raise ModelError(
                f"sensor '{name}': a site may be a reference of {', '.join(SEEN_FROM)}, and '{ref}' is not one"
            )
        if (zone is None and ZONED.get(kind)) or (zone is not None and (kind not in ZONED or zone[0] not in ZONES)):
            raise ModelError(
                f"sensor '{name}': a sensor of {' or '.join(ZONED)}, and no other, has a zone: one of {', '.join(ZONES)} "
                "and a size"
            )
        if zone is not None:
            zone = Zone(zone[0], tuple(vector(zone[1], 3, f"zone of sensor '{name}'").tolist()))
        if cutoff and kind not in DISTANCE_SENSORS and not KINDS[kind].cut and not self._lenient:
            raise ModelError(f"sensor '{name}': a cutoff does not bound readings of a {kind}; leave it out")
        self._sensors[name] = {
            "kind": kind,
            "on": on,
            "ref": ref,
            "cutoff": number(cutoff, "a cutoff"),
            "zone": zone,
            "data": self._data(name, kind, data),
            "between": self._between(name, kind, between),
            "reduce": reduce,
            "num": int(num),
        }
        if reduce not in REDUCE or num < 1 or (kind != "contact" and (reduce, num) != ("none", 1)):
            raise ModelError(
                f"sensor '{name}': reduce is one of {', '.join(REDUCE)}, num at least 1, of contacts alone"
            )
        if reduce == "netforce" and {"linvel", "angvel"} & set(data):
            raise ModelError(f"sensor '{name}': a sum of contacts has no linvel or angvel")
        return name

    @staticmethod
    def _data(name: str, kind: str, data: Any) -> tuple[str, ...]:
        """Return the fields that a sensor returns, in their order."""
        known, default = DATA.get(kind, ((), ()))
        if not set(data) <= set(known):
            raise ModelError(f"sensor '{name}' ({kind}) gives {', '.join(known) or 'one thing'}; not {', '.join(data)}")
        return tuple(x for x in known if x in data) or default

    def _between(self, name: str, kind: str, between: Any) -> tuple[tuple[str, str], tuple[str, str]]:
        """Validate both sides of contacts or of a distance."""
        one, other = ((what, part) for what, part in between)
        for what, part in (one, other):
            sides = SIDES if kind == "contact" else DISTANCE_SIDES if kind in DISTANCE_SENSORS else ("",)
            if what not in sides:
                raise ModelError(
                    f"sensor '{name}': contacts are between {', '.join(filter(None, SIDES))}, distances between "
                    f"{' or '.join(DISTANCE_SIDES)}, nothing else is; not '{what}'"
                )
            known = {"shape": list(self._shapes), "body": [*self._bodies, WORLD]}.get(SIDES[what], [part])
            if part not in known:
                raise ModelError(f"sensor '{name}' is between {what} '{part}' and another; there is no such {what}")
        return one, other

    @checked_model
    def add_visual(self, body: str, kind: str, **looks: Any) -> None:
        """Add a visual shape to a body or "world"; arguments as the fields of `Visual` after the body."""
        if body != WORLD and body not in self._bodies:
            raise ModelError(f"something to draw is on body '{body}', which does not exist")
        self._visuals.append((body, Visual(-1, kind, **looks)))

    @checked_model
    def add_camera(
        self,
        name: str,
        body: str = WORLD,
        *,
        position: Any = (0.0, 0.0, 0.0),
        rotation: Any = (1.0, 0.0, 0.0, 0.0),
        fov: float = 45.0,
    ) -> str:
        """Add a camera for `artigrad.camera`, fixed to a body or "world"; it views along -z of its frame, with y up.

        Args:
            name: Name.
            body: Body or "world".
            position: m, in the body frame.
            rotation: Quaternion w x y z, in the body frame.
            fov: Vertical field of view, degrees.
        """
        if name in self._cameras:
            raise ModelError(f"there is a camera '{name}' already")
        if body != WORLD and body not in self._bodies:
            raise ModelError(f"camera '{name}' is on body '{body}', which does not exist")
        if not 0 < number(fov, f"fov of camera '{name}'") < 180:
            raise ModelError(f"the fov of camera '{name}' is between 0 and 180 degrees, not {fov}")
        place = vector(position, 3, f"position of camera '{name}'")
        turn = quaternion(rotation, f"rotation of camera '{name}'")
        self._cameras[name] = body, Mount(name, -1, tuple(place.tolist()), tuple(turn.tolist()), float(fov))
        return name

    def _body_index(self, name: str) -> int:
        return -1 if name == WORLD else list(self._bodies).index(name)

    def _sensed(self, kind: str, on: str) -> int:
        """Return the index of a sensor's part."""
        what = KINDS[kind].on
        if what == "model" or (what == "zone" and not on):
            return -1
        known: dict[str, Any] = {"joint": self._joints, "site": self._sites, "zone": self._sites, "body": self._bodies}
        known |= {"tendon": self._tendons, "actuator": self._actuators}
        if on not in known[what] and not (what == "body" and on == WORLD):
            raise ModelError(f"a sensor '{kind}' reads a {what}; there is no {what} '{on}'")
        return -1 if on == WORLD else list(known[what]).index(on)

    def _built_sensor(self, name: str, s: dict[str, Any]) -> Sensor:
        ref = -1 if s["ref"] is None else list(self._sites).index(s["ref"])
        one, other = (ContactSide(what, self._side_index(what, part)) for what, part in s["between"])
        more = {key: s[key] for key in ("cutoff", "zone", "data", "reduce", "num")}
        return Sensor(name, s["kind"], self._sensed(s["kind"], s["on"]), ref, between=(one, other), **more)

    def _side_index(self, what: str, part: str) -> int:
        """Return the index of one side of contacts."""
        return list(self._shapes).index(part) if what == "shape" else self._body_index(part) if what else -1

    @staticmethod
    def _check_servo_sensors(model: Model) -> None:
        """Refuse sensors of servo motor forces, which are computed with all rows of a step, after sensors are read."""
        joints = [model.transmissions[j].a for j in model.servos]
        for s in model.sensors:
            if (s.kind == "actuatorfrc" and s.on in model.servos) or (s.kind == "jointactfrc" and s.on in joints):
                raise ModelError(
                    f"sensor '{s.name}' ({s.kind}) reads the force of a servo motor, which no sensor reads yet"
                )
            of_adhesion = s.kind == "actuatorvel" and model.transmissions[s.on].kind == "body"
            if of_adhesion or (s.kind == "jointactfrc" and "adhesion" in model.features):
                raise ModelError(
                    f"sensor '{s.name}' ({s.kind}) reads what adhesion does to joints, which no sensor does yet"
                )

    def _check_adhesion(self) -> None:
        """Refuse adhesion with effort limits: its joint forces are computed with the rows of a step, after the limits."""
        adhesive = [name for name, a in self._actuators.items() if a["on"][0] == "body"]
        limited = [b["joint_name"] for b in self._bodies.values() if np.isfinite(b["effort_limit"]).any()]
        if adhesive and limited:
            raise ModelError(
                f"actuator '{adhesive[0]}' pulls a body to what it touches, and joint '{limited[0]}' has an effort_limit: one "
                "model cannot have both; limit the forces of its actuators by their force_range"
            )

    def _check_gravcomp(self, model: Model) -> None:
        """Warn of gravity compensation by actuators in a model without actuators: it has no effect, as in MuJoCo."""
        joints = [model.joints[i] for i in model.actuator_gravcomp]
        if joints and not self._lenient and not model.nu and "compensation" in model.features:
            warn(
                f"joint '{joints[0]}' of '{self.name}' has actuator_gravcomp: its actuators compensate weight. The model has "
                "no actuator, and "
                "so nothing does, as in MuJoCo: add one, or leave actuator_gravcomp out for compensation without any"
            )

    @staticmethod
    def _note_idle_equalities(model: Model) -> None:
        """Note equalities between points of one rigid body, which have no rows."""
        link = model.links.of_body
        held = [e for e in model.equalities if e.kind in ("connect", "weld")]
        idle = tuple(e.name for e in held if link[e.a + 1] == link[e.b + 1] != 0)
        if idle:
            model.__dict__["notes"] = Report((*model.notes, Finding(IDLE, idle, "no effect; MuJoCo damps that body")))

    def build(self) -> Model:
        """Return the finished model."""
        if not self._bodies:
            raise ModelError(f"'{self.name}' has no bodies")
        self._check_adhesion()
        bodies, sites, acts = (list(d.values()) for d in (self._bodies, self._sites, self._actuators))
        names = list(self._bodies)
        values: dict[str, Any] = {"gravity": self.gravity, "magnetic": self.magnetic, **self._fluid}
        for key in ("mass", "com", "inertia", "position", "rotation", "anchor", "axis", *SURROUNDED):
            values[key] = [b[key] for b in bodies]
        for key in JOINT_NUMBERS:
            values[key] = [b[key] for b in bodies]
        if sites:
            values |= {f"site_{key}": [s[key] for s in sites] for key in ("position", "rotation")}
        if acts:
            for key in (
                "gear",
                "gear_axes",
                "crank_length",
                "gain",
                "gain_slope",
                "bias",
                "control_range",
                "force_range",
                "max_velocity",
            ):
                values[key] = [a[key] for a in acts]
        activations = {j: a["activation"] for j, a in enumerate(acts) if "activation" in a}
        muscles = {j: a["muscle"] for j, a in enumerate(acts) if "muscle" in a}
        for rows, fields in ((activations, ACTIVATION_NUMBERS), (muscles, MUSCLE_NUMBERS)):
            if rows:
                values |= {key: [row[key] for row in rows.values()] for key in fields}
        model = Model(
            name=self.name,
            bodies=names,
            joints=list(self._joints),
            parent=[self._body_index(b["parent"]) for b in bodies],
            joint_type=[b["joint"] for b in bodies],
            sites=list(self._sites),
            site_body=[self._body_index(s["body"]) for s in sites],
            actuators=list(self._actuators),
            transmissions=[self._transmission(a["on"]) for a in acts],
            actuator_kind=[a["kind"] for a in acts],
            values=values | self._shape_values() | self._tendon_values(),
            shapes=self._build_shapes(names),
            keyframes={},
            mocap=[k for k, b in enumerate(bodies) if b["mocap"]],
            actuator_gravcomp=[k for k, b in enumerate(bodies) if b["actuator_gravcomp"]],
            reference=[b["reference"] for b in bodies],
            activations=[Activated(j, a["dynamics"], a["actearly"]) for j, a in activations.items()],
            muscles=list(muscles),
            equalities=self._build_equalities(names),
            tendons=self._build_tendons(),
            stopped_tendons=self._stopped_tendons(),
            sensors=[self._built_sensor(name, s) for name, s in self._sensors.items()],
            visuals=[replace(visual, body=self._body_index(body)) for body, visual in self._visuals],
            cameras=[mount._replace(body=self._body_index(body)) for body, mount in self._cameras.values()],
            options=self.options,
            unsupported=self.unsupported,
            notes=[note for note in self.notes if note.what != IDLE],
        )
        self._note_idle_equalities(model)
        self._check_gravcomp(model)
        check_sides(model)
        self._check_servo_sensors(model)
        check_surfaces(model)
        check_mass_matrix(model)
        self._add_keyframes_to(model)
        resting = self._equality_values(model) | self._resting_tendons(model)
        own = {key: self._weight(key, x) for key, x in self.weights.items()}
        model.__dict__["params"] = model.params.replace(**(weights(model) | own), **resting)
        return model

    @staticmethod
    def _weight(name: str, x: Any) -> np.ndarray:
        """Return given inverse weights, or those of the reference pose."""
        x = np.asarray(x, float)
        if not (x >= 0).all():
            raise ModelError(f"{name} has {x.min():g}; weights are zero or more")
        return x

    def _add_keyframes_to(self, model: Model) -> None:
        zero = model.keyframes["zero"]._asdict()
        for name, parts in self._keyframe_parts.items():
            found = {k: x.copy() for k, x in zero.items()}
            for (letter, part), value in parts.items():
                k = self._place_in(model, letter, part)
                found[letter][k : k + len(value)] = value
            model.keyframes[name] = Keyframe(**found)
        for name, frame in self._keyframes.items():
            given = {k: zero[k] if x is None else x for k, x in frame._asdict().items()}
            found = {k: vector(x, len(zero[k]), f"{k} of keyframe '{name}'") for k, x in given.items()}
            self._normalize(model, name, found)
            model.keyframes[name] = Keyframe(**found)

    @staticmethod
    def _normalize(model: Model, name: str, frame: dict[str, np.ndarray]) -> None:
        """Normalize the quaternions of a keyframe."""
        kinds = [model.joint_kind(i) for i in range(model.nb)]
        starts = [("q", a + kind.straight) for a, kind in zip(model.joint_q, kinds, strict=True) if kind.quaternion]
        starts += [("mocap", 7 * k + 3) for k in range(len(model.mocap))]
        for key, k in starts:
            own = frame[key][k : k + 4]
            unit_one = quaternion(own, f"{key}[{k}:{k + 4}] of keyframe '{name}'")
            if abs(np.linalg.norm(own) - 1.0) > 1e-14:
                frame[key][k : k + 4] = unit_one

    @staticmethod
    def _place_in(model: Model, letter: str, part: str) -> int:
        """Return the first entry of a joint, an actuator or a mocap body in q, v, u, act or mocap."""
        if letter == "mocap":
            return 7 * model.mocap.index(model.body(part))
        if letter in "qv":
            return (model.joint_q if letter == "q" else model.joint_v)[model.joint(part)]
        j = model.actuator(part)
        return j if letter == "u" else [a.actuator for a in model.activations].index(j)


def check_sides(model: Model) -> None:
    """Refuse distances of bodies without shapes, and of two planes or height fields."""
    for s in model.sensors:
        sides = sides_of(model, s) if s.kind in DISTANCE_SENSORS else ()
        for own, side in zip(sides, s.between, strict=False):
            if not own:
                body = WORLD if side.which < 0 else model.bodies[side.which]
                raise ModelError(f"sensor '{s.name}' measures the distance of body '{body}', which has no shapes")
        if sides and all(endless(model, own) for own in sides):
            raise ModelError(f"sensor '{s.name}' measures the distance of two planes or height fields, which have none")
