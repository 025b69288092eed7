"""MuJoCo's compiler as the reader: defaults, includes, fromto, inertia from geometry, meshes mean what they mean there."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from ..errors import ModelError
from ..report import Finding
from .source import Source
from .urdf import Preparation


def mujoco() -> Any:
    """The package, imported when first needed."""
    try:
        import mujoco
    except ImportError:
        raise ModelError("reading MJCF and URDF needs MuJoCo's compiler: pip install mujoco") from None
    return mujoco


class Compiled(NamedTuple):
    """An mjModel, and what its reader found."""

    m: Any
    unsupported: list[Finding]
    notes: list[Finding]


def compiled(source: Source, *, floating: bool, strict: bool) -> Compiled:
    """The mjModel of a description."""
    mj = mujoco()
    prepared = Preparation(source, strict) if source.kind == "urdf" else None
    try:
        if source.kind == "mjcf" and source.path is not None:
            spec = mj.MjSpec.from_file(str(source.path))
        else:
            spec = mj.MjSpec.from_string(source.text)
        if floating:
            _float(spec, source)
        if prepared is None:
            return Compiled(_compile(spec), [], [])
        _looks_without_volume(mj, spec)
        m = _compile(spec)
        for name, mass in prepared.masses.items():  # taken from shapes of equal density, to the mass that was given
            body = m.body(name)
            body.inertia[:] *= mass / body.mass
            body.mass[:] = mass
        return Compiled(m, prepared.unsupported, prepared.notes)
    except (ValueError, mj.FatalError) as problem:
        if isinstance(problem, ModelError):
            raise
        raise ModelError(f"{source.label}: {_sentence(str(problem))}") from None


def _compile(spec: Any) -> Any:
    with warnings.catch_warnings():  # about textures, which nobody sees here
        warnings.simplefilter("ignore", UserWarning)
        return spec.compile()


def _looks_without_volume(mj: Any, spec: Any) -> None:
    """Meshes that are only looked at may be flat: let the compiler take them as shells."""
    solid = {g.meshname for g in spec.geoms if g.contype or g.conaffinity}
    for mesh in spec.meshes:
        if mesh.name not in solid:
            mesh.inertia = mj.mjtMeshInertia.mjMESH_INERTIA_SHELL


def _float(spec: Any, source: Source) -> None:
    """Free the one body on the world."""
    roots = list(spec.worldbody.bodies)
    if len(roots) != 1:
        raise ModelError(
            f"floating=True frees the body on the world; {source.label} has {len(roots)} bodies on the world"
        )
    if list(roots[0].joints):
        raise ModelError(f"floating=True: '{roots[0].name}' of {source.label} has joints to the world already")
    roots[0].add_freejoint(name=f"{roots[0].name or 'root'}_free")


# what MuJoCo says -> what we add
HINTS = {
    "mass and inertia of moving bodies": "give it a mass and an inertia larger than zero",
    "balanceinertia": "or correct it: the largest principal moment is more than the sum of the others",
}


def _sentence(message: str) -> str:
    """MuJoCo's message in one line, without its prefixes, and what to do about it."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    text = ", ".join(line.removeprefix("XML Error:").strip().removeprefix("Error:").strip() for line in lines)
    hint = next((advice for sign, advice in HINTS.items() if sign in message), None)
    return f"{text}; {hint}" if hint else text
