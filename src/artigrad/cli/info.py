"""`artigrad info FILE`: tree, masses and degrees of freedom of a robot, and features that are not simulated."""

from __future__ import annotations

import warnings

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.tree import Tree

from ..model.model import Model
from ..physics.constraints.soft.soft_problem import soft_features
from ..physics.joints.table import JOINTS
from ..simulate.simulator import Simulator
from .robot import Floating, Motors, Robot, open_robot


def info(file: Robot, floating: Floating = False, motors: Motors = False) -> None:
    """Show a robot: bodies and joints, masses, degrees of freedom, what is unsupported."""
    model = open_robot(file, floating, motors)
    console = Console()
    console.print(_tree(model))
    console.print(_properties(model))
    for title, findings in (("not simulated", model.unsupported), ("simulated differently", model.notes)):
        if findings:
            console.print(f"\n[bold]{title}[/]")
            typer.echo(str(findings))
    for message in contacts_without_motion(model):
        typer.echo(f"\nwarning: {message}")


def contacts_without_motion(model: Model) -> list[str]:
    """Warnings of contacts that no joint can relieve, at the keyframe of a model that may have some."""
    if not model.has_contact or "stiff" not in soft_features(model):
        return []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sim = Simulator(model)
        sim.step(sim.state())
    return [str(x.message) for x in caught if "no joint can move them apart" in str(x.message)]


def _tree(model: Model) -> Tree:
    tree = Tree(f"[bold]{escape(model.name)}[/]")
    nodes = {-1: tree}
    for i, body in enumerate(model.bodies):
        joint, mass = model.joint_type[i], model.params.mass[i]
        text = escape(body) + (f" [dim]{mass:.4g} kg[/]" if mass else "")
        if JOINTS[joint].nv:
            text += f" [cyan]{joint}[/] {escape(model.joints[i])}"
        nodes[i] = nodes[model.parent[i]].add(text)
    return tree


def _properties(model: Model) -> Table:
    joints = [t for t in model.joint_type if JOINTS[t].nv]
    kinds = ", ".join(f"{joints.count(kind)} {kind}" for kind in JOINTS if kind in joints)
    rows = {
        "mass": f"{model.params.mass.sum():.6g} kg",
        "bodies": str(model.nb),
        "joints": f"{len(joints)} ({kinds})" if joints else "0",
        "degrees of freedom": f"{model.nv} (q {model.nq})",
        "actuators": str(model.nu),
        "sites, sensors": f"{model.ns}, {len(model.sensors)}",
        "shapes, collision pairs": f"{len(model.shapes.names)}, {len(model.shapes.pairs)}",
        "keyframes": ", ".join(model.keyframes),
        "step": f"{model.options.dt:g} s, {model.options.integrator}",
    }
    table = Table(show_header=False, box=None)
    for name, value in rows.items():
        table.add_row(name, escape(value))
    return table
