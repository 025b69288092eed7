"""Several robots in one world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..errors import ModelError
from ..model.model import ACTUATORS, Model
from ..simulate.sensors import KINDS
from .builder import JOINT_NUMBERS, SURROUNDED, ModelBuilder
from .lenient_builder import LenientBuilder
from .shape_builder import WORLD
from .validate import vector

ALL = 0xFFFF  # a mask that meets every other


def scene(
    robots: Sequence[Model],
    *,
    positions: Any = None,
    floor: bool = True,
    friction: float = 1.0,
    name: str = "scene",
) -> Model:
    """One model of several: robot k keeps its names behind "k/", q, v and u follow each other in the order of `robots`.

    positions: (n, 3), where each robot's origin is put; by default a metre apart along y. floor: a plane at z = 0. Shapes
    and looks that a robot has fixed to the world itself (its own floor) are left out. Keyframes that all robots have are
    joined; options, gravity and fluid are the first robot's.
    Robots touch each other if the masks of their shapes let them; robots that cannot touch cost the sum of their parts.
    """
    if not robots or not all(isinstance(r, Model) for r in robots):
        raise ModelError("a scene is made of one or more Models")
    if positions is None:
        positions = [(0.0, float(k), 0.0) for k in range(len(robots))]
    if len(positions) != len(robots):
        raise ModelError(f"{len(positions)} positions for {len(robots)} robots")
    b = _SceneBuilder(name, gravity=robots[0].params.gravity)
    b.options, b.magnetic = robots[0].options, robots[0].params.magnetic
    p = robots[0].params
    b.fluid(density=float(p.density), viscosity=float(p.viscosity), wind=p.wind)
    for k, (robot, place) in enumerate(zip(robots, positions, strict=True)):
        _add(b, robot, f"{k}/", vector(place, 3, f"position of robot {k}"))
    if floor:
        b.plane(name="floor", friction=friction, group=ALL, touches=ALL)
    for key in robots[0].keyframes:
        if key != "zero" and all(key in r.keyframes for r in robots):
            frames = [_moved(r, r.keyframes[key], np.asarray(p, float)) for r, p in zip(robots, positions, strict=True)]
            b.keyframe(key, *(np.concatenate(parts) for parts in zip(*frames, strict=True)))
    return b.build()


class _SceneBuilder(LenientBuilder):
    """Tells of pairs of different robots that cannot touch; those of one were told of when it was made."""

    def _without_routine(self, missing: dict[str, list[str]]) -> None:
        def robots(pair: str) -> set[str]:
            return {shape.split("/")[0] for shape in pair.split(" - ")}

        among = {kinds: [p for p in pairs if len(robots(p)) > 1] for kinds, pairs in missing.items()}
        if any(among.values()):
            super()._without_routine({kinds: pairs for kinds, pairs in among.items() if pairs})


def _moved(robot: Model, frame: tuple[np.ndarray, ...], place: np.ndarray) -> tuple[np.ndarray, ...]:
    """A keyframe with its free bodies at another place."""
    q, v, u = frame
    q = q.copy()
    for i, a in enumerate(robot.joint_q):
        if robot.joint_kind(i).floating:
            q[a : a + 3] += place
    return q, v, u


def _add(b: ModelBuilder, robot: Model, prefix: str, place: np.ndarray) -> None:
    """Add all parts of a model under a prefix, its roots moved to `place`."""
    p = robot.params
    per_body = ("axis", "anchor", *JOINT_NUMBERS, *SURROUNDED, "rotation", "mass", "com", "inertia")
    for i, body in enumerate(robot.bodies):
        root = robot.parent[i] < 0
        options: dict[str, Any] = {key: p[key][i] for key in per_body}
        if not np.isfinite(options["limit"]).any():
            options["limit"] = None
        b.body(
            prefix + body,
            WORLD if root else prefix + robot.bodies[robot.parent[i]],
            joint=robot.joint_type[i],
            joint_name=prefix + robot.joints[i],
            position=p.position[i] + (place if root else 0.0),
            **options,
        )
    for s, site in enumerate(robot.sites):
        on_world = robot.site_body[s] < 0
        where = WORLD if on_world else prefix + robot.bodies[robot.site_body[s]]
        position = p.site_position[s] + (place if on_world else 0.0)
        b.site(prefix + site, where, position=position, rotation=p.site_rotation[s])
    b.add_tendons(robot, prefix)
    for j, actuator in enumerate(robot.actuators):
        keys = ("gain", "gain_slope", "bias", "control_range", "force_range", "max_velocity")
        own: dict[str, Any] = {key: p[key][j] for key in keys}
        if not (p.gear[j] or p.gain[j] or p.gain_slope[j].any()):
            b.idle(prefix + actuator)
        else:
            b.actuator(prefix + actuator, kind=ACTUATORS[robot.actuator_kind[j]], **own, **_acted_on(robot, j, prefix))
    b.add_shapes(robot, prefix)
    b.add_equalities(robot, prefix, place)
    b.unsupported += [f._replace(where=tuple(prefix + name for name in f.where)) for f in robot.unsupported]
    b.notes += [f._replace(where=tuple(prefix + name for name in f.where)) for f in robot.notes]
    for sensor in robot.sensors:
        names = parts_by_name(robot)[KINDS[sensor.kind].on]
        if sensor.on >= 0:  # what a sensor reads of the whole world is no longer one robot's
            ref = None if sensor.ref < 0 else prefix + robot.sites[sensor.ref]
            more: dict[str, Any] = {"ref": ref, "cutoff": sensor.cutoff, "zone": sensor.zone}
            b.sensor(prefix + sensor.name, sensor.kind, prefix + names[sensor.on], **more)
    for visual in robot.visuals:
        if visual.body >= 0:
            looks = {f.name: getattr(visual, f.name) for f in fields(visual) if f.name not in ("body", "kind")}
            b.visual(prefix + robot.bodies[visual.body], visual.kind, **looks)
    for eye in robot.cameras:
        if eye.body >= 0:
            body = prefix + robot.bodies[eye.body]
            b.camera(prefix + eye.name, body, position=eye.position, rotation=eye.quaternion, fov=eye.fov)


def parts_by_name(model: Model) -> dict[str, Sequence[str]]:
    """The names of what sensors read; the body behind the last is the world."""
    bodies, tendons = (*model.bodies, WORLD), [t.name for t in model.tendons]
    parts: dict[str, Sequence[str]] = {"joint": model.joints, "site": model.sites, "body": bodies, "tendon": tendons}
    return parts | {"actuator": model.actuators, "model": [""]}


def _acted_on(robot: Model, j: int, prefix: str) -> dict[str, Any]:
    """What actuator j acts on, and its gear, for the builder."""
    kind, a = robot.transmissions[j]
    p, wide = robot.params, any(line.actuator == j for line in robot.lines[0])
    if kind == "tendon":
        return {"tendon": prefix + robot.tendons[a].name, "gear": p.gear[j]}
    if kind == "site":
        return {"site": prefix + robot.sites[a], "gear": p.gear_axes[j]}
    gear = p.gear_axes[j][: robot.joint_kind(a).nv] if wide else p.gear[j]
    return {"joint": prefix + robot.joints[a], "gear": gear, "in_parent": kind == "jointinparent"}
