"""Scenes with many bodies or many contacts, as MJCF: generated here, or from files of packages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np

Source = str | mujoco.MjSpec


class Scene(NamedTuple):
    """Class of scenes in the table. settle: simulated seconds of MuJoCo before timing."""

    name: str
    make: Callable[[], Source]
    settle: float = 0.3


FLOOR = '<geom name="floor" type="plane" size="0 0 1"/>'


def mjcf(world: str, rest: str = "", assets: str = "", timestep: float = 0.002) -> str:
    """Return a file of the given bodies."""
    return (
        f'<mujoco><option timestep="{timestep}"/><size memory="200M"/><asset>{assets}</asset>'
        f"<worldbody>{world}</worldbody>{rest}</mujoco>"
    )


def _text(x: object) -> str:
    return " ".join(f"{v:.9g}" for v in np.ravel(np.asarray(x, float)))


def _free(pos: object, geom: str, euler: object = (0, 0, 0)) -> str:
    return f'<body pos="{_text(pos)}" euler="{_text(euler)}"><freejoint/>{geom}</body>'


def package(name: str, path: str) -> Path:
    """Return a file of an installed package, which is not imported."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(name)
    return Path(next(iter(spec.submodule_search_locations))) / path


def boxes_apart(count: int) -> str:
    """Return boxes that float apart without gravity."""
    side = int(np.ceil(count ** (1 / 3)))
    rng, out = np.random.default_rng(0), ""
    for k in range(count):
        place = np.array([k % side, k // side % side, k // side**2], float)
        out += _free(place, '<geom type="box" size=".1 .15 .2"/>', rng.uniform(-90, 90, 3))
    return mjcf(out).replace("<option ", '<option gravity="0 0 0" ')


def boxes_resting(count: int) -> str:
    """Return boxes at rest on a floor, apart from each other."""
    side = int(np.ceil(count**0.5))
    boxes = (
        _free((0.5 * (k % side), 0.5 * (k // side), 0.1), '<geom type="box" size=".1 .1 .1"/>') for k in range(count)
    )
    return mjcf(FLOOR + "".join(boxes))


def pile(count: int) -> str:
    """Return boxes dropped on a pile."""
    rng, out = np.random.default_rng(1), FLOOR
    for k in range(count):
        place = (*rng.uniform(-0.25, 0.25, 2), 0.12 + 0.9 * k / 10)
        out += _free(place, '<geom type="box" size=".08 .1 .12"/>', rng.uniform(-90, 90, 3))
    return mjcf(out)


def dominoes(count: int) -> str:
    """Return upright boxes in a row; the first leans on the second."""
    out = FLOOR
    for k in range(count):
        out += _free((0.06 * k, 0, 0.1), '<geom type="box" size=".01 .04 .1"/>', (0, 20 if k == 0 else 0, 0))
    return mjcf(out)


def cards(storeys: int) -> str:
    """Return a house of cards: leaning pairs under flat ones."""
    out, slope, long = FLOOR, 18.0, 0.1
    lean, high = long * np.sin(np.radians(slope)), long * np.cos(np.radians(slope))
    card = f'<geom type="box" size=".003 .06 {long}" friction="1.5"/>'
    for row in range(storeys):
        for k in range(storeys - row):
            x, z = (2 * k + row) * 2 * (lean + 0.004), 0.002 + row * (2 * high + 0.012)
            for sign in (-1, 1):
                out += _free((x + sign * (lean + 0.003), 0, z + high), card, (0, -sign * slope, 0))
        for k in range(storeys - row - 1):
            x = (2 * k + row + 1) * 2 * (lean + 0.004)
            flat = f'<geom type="box" size="{1.9 * lean:.4f} .06 .003" friction="1.5"/>'
            out += _free((x, 0, 0.002 + row * (2 * high + 0.012) + 2 * high + 0.006), flat)
    return mjcf(out)


def stones(count: int) -> str:
    """Return meshes of 60 vertices on top of each other."""
    rng = np.random.default_rng(2)
    p = rng.normal(size=(60, 3))
    p = 0.1 * p / np.linalg.norm(p, axis=1, keepdims=True) * (1.0, 0.9, 0.6)
    out = FLOOR
    for k in range(count):
        out += _free((*rng.uniform(-0.15, 0.15, 2), 0.1 + 0.16 * k), '<geom type="mesh" mesh="stone"/>')
    return mjcf(out, assets=f'<mesh name="stone" vertex="{_text(p)}"/>')


def sliders(count: int) -> str:
    """Return sliders in a row, with straight tendons with springs between neighbors."""
    out, ties = "", ""
    for k in range(count):
        out += (
            f'<body pos="0 {0.2 * k} 0"><joint type="slide" axis="1 0 0"/><geom size=".05"/><site name="s{k}"/></body>'
        )
    for k in range(count - 1):
        ties += f'<spatial stiffness="100" springlength=".15"><site site="s{k}"/><site site="s{k + 1}"/></spatial>'
    return mjcf(out, f"<tendon>{ties}</tendon>")


def net(side: int) -> str:
    """Return free balls in a grid over a floor, with spring tendons between neighbors."""
    out, ties = FLOOR, ""
    for i in range(side):
        for j in range(side):
            ball = f'<geom size=".02"/><site name="s{i}_{j}"/>'
            out += _free((0.1 * i, 0.1 * j, 0.5), ball)
            for a, b in ((i + 1, j), (i, j + 1)):
                if a < side and b < side:
                    ends = f'<site site="s{i}_{j}"/><site site="s{a}_{b}"/>'
                    ties += f'<spatial stiffness="200" damping="1" springlength=".09">{ends}</spatial>'
    return mjcf(out, f"<tendon>{ties}</tendon>")


def muscle_arm(joints: int, muscles: int) -> str:
    """Return four fingers of hinges, or one arm, with muscles, each wrapped around the cylinders of three joints."""
    chains = 4 if joints % 4 == 0 else 1
    long = joints // chains
    out, ties, acts = "", "", ""
    rng = np.random.default_rng(3)
    for c in range(chains):
        body, tail = "", ""
        for k in range(long):
            place = f"0 {0.2 * c} 0.5" if k == 0 else "0 0 -0.08"
            axis = "0 1 0" if k % 3 else "1 0 0"
            body += (
                f'<body name="b{c}_{k}" pos="{place}"><joint axis="{axis}" damping=".02" armature=".001"/>'
                f'<geom type="capsule" fromto="0 0 0 0 0 -.06" size=".008" contype="0" conaffinity="0"/>'
                f'<geom name="w{c}_{k}" type="cylinder" size=".015 .03" euler="90 0 0" contype="0" conaffinity="0" mass="0"/>'
            )
            for n in range(2):
                side = 0.02 * (1 if n else -1)
                body += f'<site name="s{c}_{k}_{n}" pos="{side} {rng.uniform(-0.008, 0.008):.4f} -.03" size=".002"/>'
            tail += "</body>"
        out += body + tail
    for t in range(muscles):
        c, n = t % chains, (t // chains) % 2
        first = (t // (2 * chains)) % max(1, long - 4)
        path = f'<site site="s{c}_{first}_{n}"/>'
        for k in range(first + 1, min(first + 4, long)):
            path += f'<geom geom="w{c}_{k}"/><site site="s{c}_{k}_{n}"/>'
        ties += f'<spatial name="t{t}">{path}</spatial>'
        acts += f'<muscle tendon="t{t}" force="20" ctrllimited="true" ctrlrange="0 1" lengthrange=".1 .4"/>'
    return mjcf(out, f"<tendon>{ties}</tendon><actuator>{acts}</actuator>")


def bimanual() -> str:
    """Return two mesh arms with grippers at a table, with a pot between them."""
    rng, assets = np.random.default_rng(4), ""
    for k in range(6):
        p = rng.normal(size=(100, 3))
        p = p / np.linalg.norm(p, axis=1, keepdims=True) * (0.05, 0.05, 0.09)
        assets += f'<mesh name="m{k}" vertex="{_text(p)}"/>'

    def part(n: int) -> str:
        shapes = (f'<geom type="mesh" mesh="m{(n + k) % 6}" pos="{0.02 * (k - 2)} 0 {0.05 * k}"/>' for k in range(5))
        return "".join(shapes)

    def arm(x: float, turn: float) -> str:
        body, tail = f'<body pos="{x} 0 .35" euler="0 0 {turn}">' + part(0), "</body>"
        for k in range(7):
            axis, lean = ("0 0 1" if k % 2 == 0 else "0 1 0"), (0.0 if k != 2 else 60.0)
            body += (
                f'<body pos="0 0 .28" euler="0 {lean} 0"><joint axis="{axis}" range="-120 120" damping="5" armature=".1"'
                f' stiffness="200"/>{part(k + 1)}'
            )
            tail += "</body>"
        for side in (-1, 1):
            body += f'<body pos="{0.06 * side} 0 .3"><joint type="slide" axis="{-side} 0 0" range="0 .04" damping="5"/>'
            body += "".join(f'<geom type="mesh" mesh="m{k}" pos="0 0 {0.03 * k}"/>' for k in range(6)) + "</body>"
        return body + tail

    pot = '<geom type="cylinder" size=".08 .05"/>' + "".join(
        f'<geom type="box" size=".02 .01 .01" pos="{0.09 * s} 0 .03"/>' for s in (-1, 1)
    )
    table = '<geom type="box" size="1 .6 .02" pos="0 0 .28"/>'
    arms = arm(-0.9, 90) + arm(0.9, 90)
    return mjcf(table + arms + _free((0, 0.3, 0.35), pot), assets=assets)


def humanoids(count: int, pile_up: bool = False) -> mujoco.MjSpec:
    """Return several dm_control humanoids, standing or falling."""
    path = str(package("dm_control", "suite/humanoid.xml"))
    scene = mujoco.MjSpec.from_string(mjcf(FLOOR, timestep=0.005))
    side = int(np.ceil(count**0.5))
    for k in range(count):
        child = mujoco.MjSpec.from_file(path)
        for geom in list(child.worldbody.geoms):
            child.delete(geom)
        for part in [*child.sensors, *child.lights, *child.cameras, *child.keys]:
            child.delete(part)
        frame = scene.worldbody.add_frame(pos=[2.0 * (k % side), 2.0 * (k // side), 0.0])
        scene.attach(child, prefix=f"{k}/", frame=frame)
    return scene


def terrain() -> mujoco.MjSpec:
    """Return a humanoid on a height field."""
    scene = humanoids(1)
    for geom in list(scene.worldbody.geoms):
        scene.delete(geom)
    x, y = np.meshgrid(np.linspace(0, 12, 64), np.linspace(0, 12, 64))
    heights = 0.5 + 0.25 * (np.sin(x) + np.cos(1.3 * y))
    scene.add_hfield(name="hills", nrow=64, ncol=64, size=[4, 4, 0.3, 0.1], userdata=heights.ravel())
    scene.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="hills", pos=[0, 0, -0.2])
    return scene


def file(path: str) -> mujoco.MjSpec:
    """Return a file of dm_control."""
    return mujoco.MjSpec.from_file(str(package("dm_control", path)))


def scenes() -> list[Scene]:
    """Return all classes."""
    out = [Scene(f"{n} humanoids", partial(humanoids, n), 1.0) for n in (1, 5, 10, 22)]
    out += [Scene(f"{n} boxes floating apart", partial(boxes_apart, n), 0.0) for n in (100, 300)]
    out += [Scene(f"{n} boxes resting", partial(boxes_resting, n)) for n in (60, 200)]
    out += [
        Scene("60 boxes in a heap", partial(pile, 60), 3.0),
        Scene("80 dominoes", partial(dominoes, 80)),
        Scene("house of cards, 4 storeys", partial(cards, 4), 0.1),
        Scene("12 stones in a heap", partial(stones, 12), 2.0),
        Scene("two arms of meshes and a pot", bimanual),
        Scene("100 sliders, 99 straight tendons", partial(sliders, 100), 0.1),
        Scene("net of 225 free bodies", partial(net, 15), 0.1),
        Scene("fingers, 36 joints, 64 muscles", partial(muscle_arm, 36, 64), 0.1),
        Scene("arm, 21 joints, 64 muscles", partial(muscle_arm, 21, 64), 0.1),
        Scene("humanoid on terrain", terrain, 1.0),
        Scene("dog of dm_control", partial(file, "locomotion/walkers/assets/dog_v2/dog.xml")),
        Scene("rodent of dm_control", partial(file, "locomotion/walkers/assets/rodent.xml")),
        Scene("fruit fly of dm_control", partial(file, "locomotion/walkers/assets/fruitfly_v2/fruitfly.xml")),
        Scene("humanoid of motion capture", partial(file, "locomotion/walkers/assets/humanoid_CMU_V2020.xml")),
    ]
    return out
