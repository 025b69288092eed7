"""Public functions and methods, each with valid arguments: the input of `searches/junk_arguments.py`."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import artigrad as ag

OPTIONS = {
    "law": "soft",
    "integrator": "euler",
    "implicit_damping": True,
    "factor": "articulated",
    "cone": "pyramidal",
    "max_contacts": 8,
}
SOFT = {
    "impratio": 1.0,
    "refsafe": True,
    "iterations": 30,
    "noslip": 0,
    "noslip_tolerance": 0.0,
}
HARD = {
    "solver": "hybrid",
    "sweeps": 50,
    "gradient": "implicit",
    "search_distance": 0.01,
    "error_reduction": 0.2,
    "correction_speed": 1.0,
    "slop": 1e-4,
    "softness": 1e-6,
    "absolute_softness": 0.0,
    "bounce_threshold": 0.01,
    "tolerance": 1e-8,
}
XML = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .3"><joint name="j" axis="0 1 0"/>
<geom size=".1"/></body></worldbody><actuator><motor name="m" joint="j"/></actuator></mujoco>"""


class Call(NamedTuple):
    """Call of one function.

    Attributes:
        function: The function.
        arguments: Valid arguments by name.
        words: Other words that an error may use for an argument, by its name.
        keywords: True if further keywords are tested.
    """

    function: Any
    arguments: dict[str, Any]
    words: dict[str, tuple[str, ...]] = {}
    keywords: bool = True


STATE = {"state": ("q", "v", "act", "activations", "batch", "policy", "these states")}
BATCH = {"num_envs": ("actions",)}


@cache
def folder():
    """Return a folder with intact and damaged files."""
    where = Path(tempfile.mkdtemp(prefix="artigrad-junk-"))
    traj = swing().rollout(swing().reset(), steps=4)
    traj.save(where / "good.npz")
    traj.save(where / "good.csv")
    ag.save(ag.robots.pendulum(), where / "good.xml")
    (where / "good.urdf").write_text("<robot name='x'><link name='a'/></robot>")
    rng = np.random.default_rng(0)
    for good in ("good.npz", "good.csv", "good.xml"):
        data, ending = (where / good).read_bytes(), good[4:]
        damaged = {"half": data[: len(data) // 2], "empty": b"", "words": b"hello", "bytes": bytes(range(256))}
        for k in range(4):
            flipped = bytearray(data)
            for place in rng.integers(len(data), size=6):
                flipped[place] ^= 1 << int(rng.integers(8))
            damaged[f"flipped{k}"] = bytes(flipped)
        for name, contents in damaged.items():
            (where / f"{name}{ending}").write_bytes(contents)
    arrays = dict(np.load(where / "good.npz"))
    changes = {
        "q": arrays["q"][:-1],
        "u": arrays["u"][:, :0],
        "hold": 3,
        "dt": "x",
        "options": "{",
        "params": np.ones(3),
    }
    changes |= {"columns": np.zeros(3), "violation": np.zeros((2, 2)), "v": np.full_like(arrays["v"], np.nan)}
    for name, value in changes.items():
        np.savez(where / f"other-{name}.npz", **(arrays | {name: value}))
        np.savez(where / f"without-{name}.npz", **{key: x for key, x in arrays.items() if key != name})
    return where


@cache
def swing():
    return ag.Simulator(ag.robots.pendulum(2), dt=1e-2, threads=1)


@cache
def cart():
    return ag.Simulator(ag.robots.cartpole(), dt=2e-2, threads=1)


@cache
def ball():
    return ag.Simulator(ag.robots.ball(floor=True), dt=1e-2, threads=1)


def builder():
    """Return a builder with a part of each kind."""
    b = ag.ModelBuilder("hand")
    b.add_body("base", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_body("arm", "base", joint="revolute", axis=(0, 1, 0), mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.1, 0, 0))
    b.add_body("tip", "arm", joint="prismatic", axis=(1, 0, 0), mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_site("s", "arm", position=(0.1, 0, 0))
    b.add_site("t", "tip", position=(0.2, 0, 0))
    b.add_sphere("arm", 0.1, name="round")
    b.add_box("tip", (0.1, 0.1, 0.1), name="square")
    b.add_motor("m", "arm")
    b.add_fixed_tendon("f", {"arm": 1.0, "tip": 2.0})
    return b


def built(method):
    """Call a method of a builder, and return the built model."""

    def call(**arguments):
        b = builder()
        getattr(b, method)(**arguments)
        b.build()

    return call


def edited(method):
    """Call a method of an editor, and return the built model."""

    def call(**arguments):
        b = ag.edit(builder().build())
        getattr(b, method)(**arguments)
        b.build()

    return call


def simulators():
    """Simulator and its methods."""
    sim, flat = cart(), swing()
    m, state, u = sim.model, sim.reset(), np.zeros((3, 1))
    traj, held = sim.rollout(state, u), sim.rollout(state, u, wrench=np.zeros((3, 2, 6)))
    touching = ball().rollout(ball().reset(), steps=3)
    policy = ag.Network(((np.zeros((1, 4)), np.zeros(1)),), ("tanh",))
    under = sim.rollout(state, steps=3, policy=policy)
    bar, bars = np.ones(2), {"q_bar": np.ones(2), "v_bar": np.ones((4, 2))}
    yield (
        "Simulator",
        Call(
            ag.Simulator,
            {
                "model": m,
                "dt": 0.01,
                "device": "cpu",
                "dtype": "f64",
                "threads": 1,
                "lanes": 1,
                "backend": "native",
                **OPTIONS,
            },
        ),
    )
    yield "SoftOptions", Call(ag.SoftOptions, SOFT)
    yield "HardOptions", Call(ag.HardOptions, HARD)
    yield "Options", Call(ag.Options, {"dt": 0.01, **OPTIONS})
    yield "Options.changed", Call(ag.Options().changed, {"given": {"dt": 0.1}}, {"given": ("option", "options", "dt")})
    params = {"params": m.params}
    yield "state", Call(sim.state, {"keyframe": "zero", "batch": 2})
    yield "reset", Call(sim.reset, {"keyframe": "zero", "batch": 2})
    yield "step", Call(sim.step, {"state": state, "u": u[0], **params, "wrench": np.zeros((2, 6))}, STATE)
    rolled = {"state": state, "u": u, **params, "wrench": np.zeros((3, 2, 6)), "checkpoints": ag.EveryKth(2), "hold": 2}
    words = STATE | {"wrench": ("wrenches",), "u": ("controls", "wrenches")}
    yield "rollout", Call(sim.rollout, rolled, words)
    yield (
        "rollout steps",
        Call(sim.rollout, {"state": state, "steps": 3, "policy": None}, STATE | {"steps": ("controls", "u")}),
    )
    yield "rollout policy", Call(sim.rollout, {"state": state, "steps": 3, "policy": policy, **params}, STATE)
    trajectory = {"traj": ("trajectory", "Trajectory")}
    for name, own in (("contacts", touching), ("vjp", traj), ("vjp policy", under), ("jvp", held), ("hvp", held)):
        method, conditioned = name.split()[0], {"gradient_options": ag.GradientOptions(0.9, 1.0, 2)}
        arguments: dict[str, Any] = {"traj": own}
        arguments |= {"vjp": {**bars, "with_params": True, **conditioned}, "contacts": {}}.get(method, {})
        if "policy" in name:
            arguments |= {"u_bar": np.ones((3, 1))}
        if method in ("jvp", "hvp"):
            arguments |= {
                "dq": bar,
                "dv": bar,
                "du": u,
                "dwrench": np.zeros((3, 2, 6)),
                "dparams": {"mass": m.params.mass},
            }
        if method == "hvp":
            arguments |= bars | {"dq_bar": bar, "dv_bar": bar, "with_params": True}
        owner = ball() if method == "contacts" else sim
        yield name, Call(getattr(owner, method), arguments, trajectory | {"dparams": ("params", "parameter")})
    yield "vjp forces", Call(ball().vjp, {"traj": touching, "force_bar": np.zeros((3, 1, 3))}, trajectory)
    yield "linearize", Call(sim.linearize, {"state": state, "u": u[0], **params}, STATE)
    yield "forward_dynamics", Call(sim.forward_dynamics, {"state": state, "u": u[0], **params}, STATE)
    yield "acceleration_vjp", Call(sim.forward_dynamics_vjp, {"state": state, "u": u[0], "bar": bar, **params}, STATE)
    yield "inverse_dynamics", Call(sim.inverse_dynamics, {"state": state, "a": bar, **params}, STATE)
    yield (
        "inverse_dynamics_vjp",
        Call(sim.inverse_dynamics_vjp, {"state": state, "a": bar, "bar": bar, **params}, STATE),
    )
    yield "mass_matrix", Call(sim.mass_matrix, {"state": state, **params}, STATE)
    yield "mass_matrix_vjp", Call(sim.mass_matrix_vjp, {"state": state, "bar": np.eye(2), **params}, STATE)
    yield "outputs", Call(sim.outputs, {"state": state, **params}, STATE)
    yield "outputs_vjp", Call(sim.outputs_vjp, {"state": state, "bars": ag.Outputs(com=np.ones(3)), **params}, STATE)
    yield "sites", Call(sim.sites, {"state": state, **params}, STATE)
    yield (
        "jacobian",
        Call(sim.jacobian, {"state": state, "of": m.bodies[0], **params}, STATE | {"of": ("body", "site")}),
    )
    seen = ag.Simulator(
        ag.load(XML.replace("</mujoco>", '<sensor><jointpos name="p" joint="j"/></sensor></mujoco>')), threads=1
    )
    yield (
        "sensors",
        Call(seen.sensors, {"state": seen.reset(), "u": np.zeros(1), "params": seen.params, "time": 0.5}, STATE),
    )
    bars = {"p": np.ones(1)}
    words = STATE | {"bars": ("cotangent", "cotangents", "sensor")}
    yield "sensors_vjp", Call(seen.sensors_vjp, {"state": seen.reset(), "bars": bars, "u": np.zeros(1)}, words)
    yield "Trajectory.joint", Call(traj.joint, {"name": m.joints[0]}, {"name": ("joint",)})
    yield "Trajectory.body", Call(traj.body, {"name": m.bodies[0]}, {"name": ("body",)})
    yield "Trajectory.actuator", Call(traj.actuator, {"name": m.actuators[0]}, {"name": ("actuator",)})
    yield (
        "Trajectory.site",
        Call(flat.rollout(flat.reset(), steps=2).site, {"name": flat.model.sites[0]}, {"name": ("site",)}),
    )
    yield "Trajectory.sensor", Call(seen.rollout(seen.reset(), steps=2).sensor, {"name": "p"}, {"name": ("sensor",)})
    for ending, more in (("npz", {}), ("csv", {"robot": 0}), ("html", {"robot": 0, "fps": 20.0, "speed": 1.0})):
        yield (
            f"Trajectory.save {ending}",
            Call(traj.save, {"path": folder() / f"out.{ending}", **more}, {"path": ("folder",)}),
        )
    film = {"path": folder() / "out.gif", "size": (32, 32), "fps": 10.0, "speed": 1.0}
    yield "Trajectory.save gif", Call(traj.save, film, {"path": ("folder",)})
    for ending in ("npz", "csv"):
        yield (
            f"read {ending}",
            Call(flat.read, {"path": folder() / f"good.{ending}"}, {"path": ("file", "files", ".npz", ".csv")}),
        )
    yield "EveryKth", Call(ag.EveryKth, {"k": 2})
    yield "Binomial", Call(ag.Binomial, {"memory": "64MB"})
    yield (
        "Network",
        Call(
            ag.Network,
            {"layers": policy.layers, "activations": ("tanh",)},
            {"layers": ("layer", "network"), "activations": ("activation",)},
        ),
    )
    small = {"steps": 1, "samples": 1, "seed": 0, "show": False, "entries": 1}
    yield (
        "gradcheck",
        Call(
            ag.gradcheck,
            {"model_or_sim": flat, **small, "state": None},
            STATE | {"model_or_sim": ("Model", "Simulator")},
        ),
    )


def models():
    """Model, Params and functions of models."""
    m = cart().model
    q, d = m.keyframe().q, np.zeros(m.nv)
    yield "integrate", Call(ag.integrate, {"model": m, "q": q, "d": d}, {"model": ("Model",)})
    yield "difference", Call(ag.difference, {"model": m, "q_from": q, "q_to": q}, {"model": ("Model",)})
    yield "to_tangent", Call(ag.to_tangent, {"model": m, "q": q, "q_bar": q}, {"model": ("Model",)})
    yield "to_ambient", Call(ag.to_ambient, {"model": m, "q": q, "tangent_bar": d}, {"model": ("Model",)})
    for part in ("body", "joint", "actuator", "site", "shape", "sensor", "tendon", "camera", "equality", "keyframe"):
        rich = builder()
        rich.add_sensor("seen", "jointpos", "arm")
        rich.add_camera("eye", "arm")
        rich.add_connect("arm", "tip", name="tie")
        names = {"body": "arm", "joint": "arm", "actuator": "m", "site": "s", "shape": "round", "sensor": "seen"}
        names |= {"tendon": "f", "camera": "eye", "equality": "tie", "keyframe": "zero"}
        model = rich.build()
        yield f"Model.{part}", Call(getattr(model, part), {"name": names[part]}, {"name": (part, f"{part}s")})
        if part in ("body", "joint", "actuator", "shape", "site", "tendon", "equality"):
            yield (
                f"Params.{part}",
                Call(getattr(model.params, part), {"name": names[part]}, {"name": (part, f"{part}s")}),
            )
    yield "Model.keyframe_control", Call(m.keyframe_control, {"name": "zero"}, {"name": ("keyframe", "keyframes")})
    yield "Model.keyframe_params", Call(m.keyframe_params, {"name": "zero"}, {"name": ("keyframe", "keyframes")})
    yield (
        "Model.replace",
        Call(m.replace, {"params": m.params, "options": m.options, "visuals": m.visuals, "name": "x"}),
    )
    fields = {
        "mass": m.params.mass,
        "com": {m.bodies[0]: (0, 0, 0)},
        "damping": m.params.damping,
        "gravity": (0, 0, -9),
    }
    yield "Params.replace", Call(m.params.replace, {**fields, "unchecked": False})
    yield (
        "Params",
        Call(
            ag.Params, {"model": m, "flat": m.params.flat, "checked": True}, {"flat": ("params",), "model": ("Model",)}
        ),
    )
    yield "State", Call(ag.State, {"q": q, "v": d, "act": None}, keywords=False)
    yield "Visual", Call(ag.Visual, {"body": 0, "kind": "box", "size": (1.0, 1.0, 1.0)}, keywords=False)
    robots = {
        "arm_dh": {"params": np.zeros((2, 3)), "mass": 1.0, "radius": 0.1},
        "ball": {"radius": 0.1, "mass": 1.0, "floor": True, "friction": 1.0, "restitution": 0.0},
        "cartpole": {"n": 1, "cart": 1.0, "length": 1.0, "mass": 0.1, "damping": 0.0},
        "chain": {"n": 3, "length": 0.1, "mass": 0.1, "free": True},
        "loaded_links": {"n": 2, "torque": 1.0},
        "pendulum": {"n": 2, "length": 1.0, "mass": 1.0, "damping": 0.1},
        "random_tree": {"seed": 0, "n": 3, "joints": ("revolute",)},
        "laikago": {"floor": True, "links": False},
    }
    words = {"n": ("links", "poles"), "params": ("rows",), "mass": ("inertia",), "joints": ("joint",)}
    for name, arguments in robots.items():
        yield f"robots.{name}", Call(getattr(ag.robots, name), arguments, words)


def files():
    """Models as files, scenes, edits."""
    m = builder().build()
    words = {
        "source": ("file", "files", "XML", "MJCF"),
        "path": ("folder", "file", "MJCF"),
        "model": ("Model",),
        "name": ("'",),
    }
    yield "load text", Call(ag.load, {"source": XML, "floating": False, "motors": False, "strict": True}, words)
    yield (
        "load file",
        Call(ag.load, {"source": folder() / "good.xml", "motors": "position", "gains": (3.0, 0.1)}, words),
    )
    yield "save", Call(ag.save, {"model": m, "path": folder() / "out.xml", "params": m.params, "strict": False}, words)
    yield "spec", Call(ag.spec, {"model": m, "params": m.params, "strict": False}, words)
    arguments = {"robots": [m, m], "positions": [(0, 0, 1), (0, 2, 1)], "rotations": [(1, 0, 0, 0)] * 2, "floor": True}
    yield (
        "scene",
        Call(
            ag.scene,
            arguments | {"friction": 1.0, "name": "two"},
            {"robots": ("scene", "Models"), "positions": ("position",), "rotations": ("rotation",)},
        ),
    )
    yield "edit", Call(ag.edit, {"model": m}, words)
    arguments = {"model": m, "to": "tip", "prefix": "b/", "position": (0, 0, 1), "rotation": (1, 0, 0, 0)}
    yield "Editor.attach", Call(edited("attach"), arguments, words)
    yield (
        "Editor.remove",
        Call(
            edited("remove"),
            {"part": "actuator", "name": "m"},
            {"name": ("actuator",), "part": ("parts",)},
        ),
    )
    yield (
        "Editor.rename",
        Call(
            edited("rename"),
            {"part": "site", "old": "s", "new": "r"},
            {"old": ("site",), "new": ("name", "site"), "part": ("parts",)},
        ),
    )


def builders():
    """ModelBuilder and its methods."""
    yield "ModelBuilder", Call(ag.ModelBuilder, {"name": "x", "gravity": (0, 0, -9.81)})
    soft = {"solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0)}
    inertial = {"mass": 1.0, "com": (0, 0, 0.1), "inertia": (0.1, 0.1, 0.1), "gravity_compensation": 0.5}
    placed = {"position": (0, 0, 0.1), "rotation": (1, 0, 0, 0)}
    joint = {
        "joint": "revolute",
        "joint_name": "j",
        "axis": (0, 1, 0),
        "anchor": (0, 0, 0),
        "damping": 0.1,
        "armature": 0.1,
    }
    joint |= {
        "stiffness": 1.0,
        "spring_reference": 0.1,
        "stiffness_curve": (0, 0),
        "damping_curve": (0, 0),
        "limit": (-1, 1),
    }
    joint |= {
        "limit_margin": 0.1,
        "limit_solref": (0.02, 1),
        "limit_solimp": (0.9, 0.95, 0.001, 0.5, 2),
        "effort_limit": (-3, 3),
    }
    joint |= {
        "dry_friction": 0.1,
        "dry_solref": (0.02, 1),
        "dry_solimp": (0.9, 0.95, 0.001, 0.5, 2),
        "actuator_gravcomp": False,
    }
    fluid = {"fluid_box": (0.1, 0.1, 0.1), "fluid_rotation": (1, 0, 0, 0)}
    shape = {"name": "new", **placed, "friction": 1.0, "condim": 3, "group": 1, "touches": 1, "margin": 0.0, **soft}
    ranged = {"control_range": (-1, 1)}
    methods = {
        "add_body": {"name": "new", "parent": "arm", **joint, **placed, **inertial, **fluid},
        "add_universal": {"name": "new", "parent": "arm", "axes": ((1, 0, 0), (0, 1, 0)), **inertial},
        "add_site": {"name": "new", "body": "arm", **placed},
        "add_camera": {"name": "new", "body": "arm", **placed, "fov": 45.0},
        "set_fluid": {"density": 1.0, "viscosity": 0.1, "wind": (1, 0, 0)},
        "add_sphere": {"body": "arm", "radius": 0.1, **shape},
        "add_capsule": {"body": "arm", "radius": 0.1, "half_length": 0.2, **shape},
        "add_cylinder": {"body": "arm", "radius": 0.1, "half_length": 0.2, **shape},
        "add_ellipsoid": {"body": "arm", "half_axes": (0.1, 0.2, 0.3), **shape},
        "add_box": {"body": "arm", "half_sizes": (0.1, 0.2, 0.3), **shape},
        "add_convex_hull": {"body": "arm", "vertices": np.vstack([np.eye(3), np.zeros(3)]), **shape},
        "add_plane": {"body": "world", "half_extents": (0, 0), **shape},
        "add_height_field": {
            "body": "world",
            "heights": np.arange(9.0).reshape(3, 3),
            "half_extents": (1, 1),
            "base": 0.1,
            **shape,
        },
        "add_connect": {
            "body": "arm",
            "other": "world",
            "anchor": (0, 0, 0),
            "other_anchor": (0, 0, 1),
            "name": "c",
            **soft,
        },
        "add_weld": {
            "body": "arm",
            "other": "world",
            "anchor": (0, 0, 0),
            "rotation": (1, 0, 0, 0),
            "torque_scale": 1.0,
            "name": "w",
            **soft,
        },
        "add_joint_coupling": {"joint": "arm", "other": "tip", "polynomial": (0, 1, 0, 0, 0), "name": "c", **soft},
        "add_tendon_coupling": {"tendon": "f", "other": None, "polynomial": (0, 1, 0, 0, 0), "name": "c", **soft},
        "add_exclude": {"body": "base", "other": "tip"},
        "add_pair": {"shape": "round", "other": "square", "condim": 3},
        "add_fixed_tendon": {
            "name": "g",
            "joints": {"arm": 1.0},
            "stiffness": 1.0,
            "damping": 0.1,
            "limit": (-1, 1),
            "rest": (0, 0),
        },
        "add_spatial_tendon": {
            "name": "g",
            "path": ["s", "t"],
            "stiffness": 1.0,
            "damping": 0.1,
            "limit": (0, 1),
            "rest": (0, 0),
        },
        "add_motor": {"name": "n", "joint": "arm", "gear": 1.0, **ranged, "max_force": 3.0},
        "add_position_servo": {
            "name": "n",
            "joint": "arm",
            "gain": 1.0,
            "damping": 0.1,
            "max_force": 3.0,
            "gear": 1.0,
            **ranged,
        },
        "add_velocity_servo": {
            "name": "n",
            "joint": "arm",
            "gain": 1.0,
            "max_force": 3.0,
            "max_velocity": 3.0,
            "gear": 1.0,
        },
        "add_servo_motor": {
            "name": "n",
            "joint": "arm",
            "target": "position",
            "gain": 1.0,
            "max_force": 3.0,
            "max_velocity": 2.0,
        },
        "add_muscle": {
            "name": "n",
            "joint": "arm",
            "force": 10.0,
            "length_range": (0.1, 1.0),
            "range": (0.75, 1.05),
            "lmin": 0.5,
            "lmax": 1.6,
            "vmax": 1.5,
            "fpmax": 1.3,
            "fvmax": 1.2,
            "time": (0.01, 0.04),
            "smooth": 0.0,
        },
        "add_actuator": {
            "name": "n",
            "joint": "arm",
            "kind": "position",
            "gain": 1.0,
            "gain_slope": (0, 0),
            "bias": (0, 0),
            "gear": 1.0,
            "force_range": (-1, 1),
            "max_velocity": 1.0,
            "dynamics": "filter",
            "activation_time": (1.0, 0, 0),
            "activation_range": (-1, 1),
            "actearly": False,
        },
        "add_sensor": {"name": "n", "kind": "jointpos", "on": "arm", "cutoff": 1.0},
        "add_keyframe": {"name": "n", "q": [0, 0, 1, 1, 0, 0, 0, 0.1, 0.1], "v": np.zeros(8), "u": [0.5]},
        "add_visual": {"body": "arm", "kind": "box", "size": (0.1, 0.1, 0.1), "rgba": (1, 0, 0, 1)},
    }
    words = {
        "body": ("parent", "bodies"),
        "parent": ("body", "bodies"),
        "other": ("body", "joint", "tendon", "shape"),
        "name": ("'", "named"),
        "on": ("joint",),
    }
    words |= {
        "half_sizes": ("size", "sizes"),
        "half_axes": ("size", "sizes"),
        "radius": ("size",),
        "half_extents": ("half extents",),
        "vertices": ("points",),
        "joints": ("joint", "tendon"),
        "path": ("site", "tendon", "piece"),
        "axes": ("axis",),
        "inertia": ("moments", "mass"),
        "mass": ("inertia",),
        "force_range": ("range",),
        "kind": ("kinds", "sensor"),
        "rest": ("range",),
        "force": ("muscle",),
        "joint": ("joints", "kind"),
        "shape": ("shapes",),
        "tendon": ("tendons",),
        "max_force": ("force_range", "force"),
        "q": ("keyframe",),
        "v": ("keyframe",),
        "u": ("keyframe",),
        "com": ("center",),
        "gear": ("actuator",),
        "vmax": ("muscle",),
        "lmin": ("muscle",),
        "lmax": ("muscle",),
        "fpmax": ("muscle",),
        "fvmax": ("muscle",),
        "size": ("visual",),
        "rgba": ("visual",),
        "touches": ("masks", "group"),
    }
    for name, arguments in methods.items():
        yield f"ModelBuilder.{name}", Call(built(name), arguments, words)


def control():
    """Controllers, fits, optimizers."""
    from artigrad.control import MPC, Goal, LeastSquares, Quadratic, ik, ilqr, lqr
    from artigrad.optimize import minimize

    sim, m = cart(), cart().model
    state = ag.State(np.zeros(2), np.zeros(2))
    cost = Quadratic(m, state, Q=1.0, R=1.0)
    arguments = {"model": m, "target": state, "Q": 1.0, "R": 1.0, "final": np.ones(4), "u_target": 0.0}
    yield "Quadratic", Call(Quadratic, arguments, {"target": ("q", "v"), "model": ("target",), "u_target": ("u",)})
    upright = ag.State(np.array([0.0, np.pi]), np.zeros(2))
    upright = upright if np.abs(sim.forward_dynamics(upright)).max() < 1e-9 else state
    yield (
        "lqr",
        Call(
            lqr,
            {"sim": sim, "state": upright, "u": np.zeros(1), "Q": 1.0, "R": 1.0, "params": m.params, "tolerance": 0.01},
            STATE | {"sim": ("Simulator",)},
        ),
    )
    quick = {"iterations": 2, "tolerance": 1e-6, "seconds": 1.0, "params": m.params}
    arguments = {
        "sim": sim,
        "cost": cost,
        "state": state,
        "u": np.zeros((4, 1)),
        "hold": 1,
        "limits": (-1.0, 1.0),
        **quick,
    }
    words = STATE | {"sim": ("Simulator",), "cost": ("Cost",), "u": ("controls", "guess")}
    yield "ilqr", Call(ilqr, arguments | {"watch": lambda *_: None}, words)

    def mpc(state=state, guess=None, **given):
        controller = MPC(**given)
        controller.reset(guess)
        controller(state)

    arguments = {
        "sim": sim,
        "cost": cost,
        "horizon": 3,
        "hold": 1,
        "iterations": 1,
        "first_iterations": 1,
        "seconds": 1.0,
    }
    arguments |= {"limits": (-1.0, 1.0), "params": m.params, "state": state, "guess": np.zeros((3, 1))}
    yield "MPC", Call(mpc, arguments, words | {"guess": ("controls", "u"), "horizon": ("controls",)}, keywords=False)
    yield "LeastSquares", Call(LeastSquares, {"model": m, "stage": lambda q, v, u: None}, {"model": ("Model",)})
    flat = swing()
    goal = Goal(flat.model.sites[0], (0.3, 0.0, 0.1))
    yield (
        "ik",
        Call(
            ik,
            {
                "sim": flat,
                "goals": [goal],
                "start": np.zeros(2),
                "method": "dls",
                "limits": True,
                "iterations": 3,
                "tolerance": 1e-6,
                "params": flat.params,
            },
            {"sim": ("Simulator",), "goals": ("goal", "Goal")},
        ),
    )

    def reach(**given):
        ik(flat, Goal(**given), iterations=2)

    words = {"frame": ("site", "body"), "rotation_weight": ("weight",)}
    yield (
        "Goal",
        Call(
            reach,
            {
                "frame": flat.model.sites[0],
                "position": (0, 0, 1),
                "rotation": np.eye(3),
                "weight": 1.0,
                "rotation_weight": 1.0,
            },
            words,
        ),
    )
    traj = flat.rollout(ag.State(np.array([0.5, 0.1]), np.zeros(2)), steps=30)
    fitted = {
        "sim": flat,
        "data": ag.Recording(q=traj.q),
        "parameters": ["mass[rod1]"],
        "params": flat.params,
        "bounds": {"mass[rod1]": (0.1, 10.0)},
        "window": 10,
        "iterations": 1,
    }
    words = {
        "sim": ("Simulator",),
        "data": ("Recording", "recording"),
        "parameters": ("parameter", "Parameter", "estimated"),
        "window": ("measurements",),
        "bounds": ("bound", "parameter"),
    }
    yield "fit", Call(ag.fit, fitted, words)

    def recorded(**given):
        ag.fit(flat, ag.Recording(**given), ["mass[rod1]"], window=10, iterations=1)

    arguments = {"q": traj.q, "v": traj.v, "u": traj.u, "dt": 0.01}
    yield (
        "Recording",
        Call(
            recorded,
            arguments,
            {"u": ("window", "controls"), "q": ("recorded", "window"), "v": ("window",), "dt": ("window",)},
        ),
    )

    def parameter(**given):
        ag.fit(flat, ag.Recording(q=traj.q), [ag.Parameter(**given)], window=10, iterations=1)

    arguments = {
        "name": "scale",
        "set": lambda p, x: p.replace(mass=x * flat.model.params.mass),
        "start": 1.0,
        "bounds": (0.1, 10.0),
    }
    yield (
        "Parameter",
        Call(
            parameter,
            arguments,
            {
                "set": ("`set`",),
                "name": ("parameter",),
                "start": ("parameter", "starts"),
                "bounds": ("parameter", "bound"),
            },
        ),
    )

    class Bowl:
        lower, upper = np.full(2, -10.0), np.full(2, 10.0)

        def loss(self, x):
            return (x**2).sum(1)

        def gradient(self, x):
            return self.loss(x), 2 * x

    for method, settings in (
        ("adam", {"learning_rate": 0.1}),
        ("sgd", {"learning_rate": 0.1}),
        ("lbfgs", {"memory": 5}),
        ("cma-es", {"sigma": 0.5}),
    ):
        arguments = {
            "problem": Bowl(),
            "starts": np.ones((2, 2)),
            "method": method,
            "iterations": 2,
            "goal": -1.0,
            "seed": 0,
        }
        arguments |= {"file": folder() / f"run-{method}.npz", "resume": False, "watch": lambda _: None, **settings}
        yield (
            f"minimize {method}",
            Call(minimize, arguments, {"starts": ("start",), "file": ("path", "folder"), "iterations": ("whole",)}),
        )


def on_torch():
    """Functions on tensors, environments, training, cameras."""
    import torch

    import artigrad.torch as at
    from artigrad.camera import Camera, RayScene, render
    from artigrad.envs import DifferentiableEnv, Env, VectorEnv
    from artigrad.learn import Player, Training

    sim, _m = cart(), cart().model
    state = ag.State(torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    u, one = torch.zeros(3, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    yield from front_end("torch", at, sim, state, u, one)
    yield (
        "PhysicsLayer",
        Call(
            at.PhysicsLayer,
            {"sim": sim, "horizon": 3, "learn": ("mass",)},
            {"sim": ("Simulator",), "learn": ("learn", "params", "name", "parameter")},
        ),
    )
    net = torch.nn.Sequential(torch.nn.Linear(4, 1)).double()
    conditioned = {"gradient_options": ag.GradientOptions(0.9, 1.0, 2)}
    arguments = {
        "sim": sim,
        "policy": net,
        "state": state,
        "steps": 3,
        "params": None,
        "hold": 1,
        **conditioned,
        "keep": False,
    }
    yield "torch.closed_loop", Call(at.closed_loop, arguments, STATE | {"sim": ("Simulator",)})

    def env(**given):
        action = given.pop("action")
        e = DifferentiableEnv(**given)
        e.reset()
        e.step(action)

    arguments = {
        "task": "CartpoleSwingUp",
        "num_envs": 2,
        "device": "cpu",
        "dtype": "f32",
        "threads": 1,
        "seed": 0,
        "clip": 1.0,
    }
    words = BATCH | {"task": ("tasks", "EnvTask"), "action": ("actions",)}
    yield "DifferentiableEnv", Call(env, arguments | {"max_episode_steps": 10, "action": torch.zeros(2, 1)}, words)

    def gym_env(kind, **given):
        action, seed, options = (given.pop(name) for name in ("action", "seed", "options"))
        e = kind(**given)
        e.reset(seed=seed, options=options)
        e.step(action)

    arguments = {"task": "CartpoleSwingUp", "dtype": "f32", "render_mode": None, "seed": 0, "options": None}
    yield "Env", Call(lambda **k: gym_env(Env, **k), arguments | {"action": np.zeros(1)}, words)
    arguments |= {"num_envs": 2, "max_episode_steps": 10, "threads": 1, "action": np.zeros((2, 1))}
    yield "VectorEnv", Call(lambda **k: gym_env(VectorEnv, **k), arguments, words)
    small = {
        "threads": 1,
        "num_envs": 2,
        "hidden": (4,),
        "gamma": 0.9,
        "seed": 0,
        "ema_decay": 0.5,
        "max_episode_steps": 10,
    }
    arguments = {
        "task": "CartpoleSwingUp",
        "algorithm": "ppo",
        "device": "cpu",
        "tensorboard": False,
        "options": {},
        **small,
    }
    words |= {"algorithm": ("algorithms",)}
    yield "Training", Call(Training, arguments, words)
    trained = Training("CartpoleSwingUp", "ppo", threads=1, num_envs=2, hidden=(4,))
    trained.save(folder() / "good.pt")
    data = (folder() / "good.pt").read_bytes()
    (folder() / "half.pt").write_bytes(data[: len(data) // 2])
    (folder() / "words.pt").write_bytes(b"hello")
    torch.save({"a": 1}, folder() / "other.pt")
    words = {"path": ("checkpoint", "file"), "model": ("Model",), "task": ("EnvTask",)}
    yield "Player", Call(Player, {"path": folder() / "good.pt", "model": None, "task": None}, words)
    player = Player(folder() / "good.pt")
    yield "Player call", Call(player, {"observation": np.zeros(5)}, {"observation": ("observations",)})
    yield "Player.rollout", Call(player.rollout, {"seconds": 0.05, "seed": 0})
    yield "Training.save", Call(trained.save, {"path": folder() / "out.pt"}, {"path": ("folder",)})
    arguments = {"steps": 1, "seconds": 0.01, "every": 30.0, "watch": lambda _: None}
    yield "Training.run", Call(trained.run, arguments)
    arguments = {"position": (1, 1, 1), "target": (0, 0, 0), "fov": 45.0, "width": 8, "height": 8, "up": (0, 0, 1)}
    yield "Camera.look_at", Call(Camera.look_at, arguments, {"position": ("camera",), "target": ("camera",)})
    eye = Camera.look_at((1, 1, 1), (0, 0, 0), width=8, height=8)
    arguments = {
        "position": eye.position,
        "rotation": eye.rotation,
        "fov": eye.fov,
        "width": 8,
        "height": 8,
        "body": -1,
    }
    yield "Camera", Call(Camera, arguments, {"width": ("picture",), "height": ("picture",)})
    rich = builder()
    rich.add_camera("eye", "arm")
    model = rich.build()
    yield (
        "Camera.of",
        Call(
            Camera.of,
            {"model": model, "name": "eye", "width": 8, "height": 8},
            {"name": ("camera", "cameras"), "model": ("Model",), "width": ("picture",), "height": ("picture",)},
        ),
    )
    yield (
        "RayScene.of",
        Call(
            RayScene.of,
            {"model": model, "params": None, "without": ("round",)},
            {"model": ("Model",), "without": ("solid", "solids")},
        ),
    )
    scene = RayScene.of(model)
    yield "RayScene.solid", Call(scene.solid, {"name": scene.solids[0].name}, {"name": ("solid", "solids")})
    bodies = at.outputs(ag.Simulator(model, threads=1), tuple(torch.as_tensor(x) for x in ag.Simulator(model).reset()))
    yield (
        "render",
        Call(
            render,
            {"scene": scene, "camera": eye, "bodies": bodies, "soft": 1.0},
            {"scene": ("RayScene",), "camera": ("Camera",), "bodies": ("Outputs", "body")},
        ),
    )


def on_jax():
    """Functions on JAX arrays."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    import artigrad.jax as aj

    yield from front_end("jax", aj, cart(), ag.State(jnp.zeros(2), jnp.zeros(2)), jnp.zeros((3, 1)), jnp.zeros(1))


def front_end(name, module, sim, state, u, one):
    """Functions common to PyTorch and JAX."""
    params, words = {"params": {"mass": sim.params.mass}}, STATE | {"sim": ("Simulator",), "wrench": ("wrenches",)}
    words |= {"params": ("parameter", "parameters"), "u": ("controls",)}
    short = {"sim": sim, "state": state, "u": one, **params}
    wrench = np.zeros((2, 6)) + 0 * np.asarray(one)[0]
    yield f"{name}.step", Call(module.step, short, words)
    conditioned = {"gradient_options": ag.GradientOptions(0.9, 1.0, 2)}
    yield (
        f"{name}.rollout",
        Call(module.rollout, {"sim": sim, "state": state, "u": u, **params, "hold": 1, **conditioned}, words),
    )
    yield (
        f"{name}.rollout steps",
        Call(module.rollout, {"sim": sim, "state": state, "steps": 3, "checkpoints": None}, words),
    )
    yield f"{name}.forward_dynamics", Call(module.forward_dynamics, short, words)
    yield f"{name}.linearize", Call(module.linearize, short, words)
    yield f"{name}.sensors", Call(module.sensors, short, words)
    yield f"{name}.mass_matrix", Call(module.mass_matrix, {"sim": sim, "state": state, **params}, words)
    yield f"{name}.outputs", Call(module.outputs, {"sim": sim, "state": state, **params}, words)
    yield f"{name}.sites", Call(module.sites, {"sim": sim, "state": state, **params}, words)
    del wrench
    arguments = {"sim": sim, "state": state, "a": state.v, **params}
    yield f"{name}.inverse_dynamics", Call(module.inverse_dynamics, arguments, words)


def viewers():
    """Pages in the browser, closed at once."""

    def stopped(function):
        def call(**arguments):
            function(block=False, **arguments).stop()

        return call

    traj = swing().rollout(swing().reset(), steps=3)
    port = {"port": ("a port",)}
    yield "view", Call(stopped(ag.view), {"model": swing().model, "port": None}, port | {"model": ("Model",)})
    yield (
        "interact",
        Call(stopped(ag.interact), {"robot": swing(), "port": None}, port | {"robot": ("Simulator", "Model")}),
    )
    yield "show", Call(stopped(traj.show), {"port": None}, port)


GROUPS = (simulators, models, files, builders, control, on_torch, on_jax, viewers)
