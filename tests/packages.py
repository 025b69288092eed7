"""Robot files of packages: dm_control's suite and walkers, gymnasium's MuJoCo assets, pybullet_data, gymnasium-robotics.

`python -m tests.packages` writes docs/compatibility.md: the files that load, reasons for the others, differences from MuJoCo
and errors of gradients. `--only PART` updates the rows whose names contain PART. The files of gymnasium-robotics suffice:
`pip install --no-deps gymnasium-robotics`.
"""

import argparse
from collections import Counter
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import artigrad as ag

# package: the distribution it comes with, where in it files are, and which
FOLDERS = {
    "dm_control": ("dm_control", "suite", "*.xml"),
    "gymnasium": ("gymnasium", "envs/mujoco/assets", "*.xml"),
    "pybullet_data": ("pybullet", "", "*.urdf"),
}
# of the table alone
MORE = {
    "dm_control": ("dm_control", "locomotion/walkers", "*.xml"),
    "gymnasium_robotics": ("gymnasium-robotics", "envs", "*.xml"),
}
LUMPS = "random_urdfs"  # a thousand random lumps of pybullet_data
TABLE = Path(__file__).parent.parent / "docs" / "compatibility.md"


def folder(package: str) -> Path | None:
    """Return the folder of a package without importing it."""
    spec = find_spec(package)
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def files(*, everything: bool = False) -> list[tuple[str, Path]]:
    """(name, path) of each file; everything: all lumps, not every hundredth, and those of MORE."""
    found = []
    folders = [*FOLDERS.items(), *(MORE.items() if everything else ())]
    for package, (_, inner, pattern) in folders:
        root = folder(package)
        for path in sorted((root / inner).rglob(pattern)) if root else []:
            if everything or LUMPS not in path.parts or path.stem.endswith("00"):
                found.append((f"{package}/{path.relative_to(root)}", path))
    return found


@cache
def refused() -> dict[str, str]:
    """Return the reasons why files do not load, by name."""
    why = {}
    for name, path in files():
        try:
            ag.load(path, strict=False)
        except ag.ModelError as problem:
            why[name] = str(problem)
    return why


def loading() -> list[tuple[str, Path]]:
    """Return the files that load."""
    return [(name, path) for name, path in files() if name not in refused()]


def _is_part(path: Path) -> bool:
    """Return True if a file is only a part of others: MuJoCo does not load it either, or it has no body."""
    import mujoco

    try:
        return path.suffix == ".xml" and mujoco.MjModel.from_xml_path(str(path)).nbody < 2
    except ValueError:
        return True


def row(path: Path, states: int) -> tuple[str, ...]:
    """Return the row of a file.

    It has the loading result (strict, loose, not), sizes, difference from MuJoCo, error of gradients, and omitted features
    or the reason.
    """
    from .beside import compare
    from .gradients import checked

    try:
        model = ag.load(path, strict=False)
    except ag.ModelError as problem:
        return "part" if _is_part(path) else "not", "", "", "", str(problem).replace(f"{path.parent}/", "")
    reasons = "; ".join(f"{f.what} ({len(f.where)})" if f.where else f.what for f in model.unsupported)
    how = "loose" if reasons else "strict"
    size = f"{model.nb} / {model.nv} / {model.nu}"
    if not states:
        return how, size, "", "", reasons
    gradients = checked(path)
    if reasons or path.suffix != ".xml" or not model.nv:
        return how, size, "", gradients, reasons
    import mujoco

    d = compare(model, mujoco.MjModel.from_xml_path(str(path)), states)
    numbers = (d.free, max(d.forces, d.tendons), d.all, d.sensors, d.step)
    return how, size, " / ".join(f"{x:.0e}" for x in numbers) + f" ({d.same})", gradients, reasons


def _versions() -> str:
    found = []
    for name in sorted({d for d, _, _ in (*FOLDERS.values(), *MORE.values())} | {"mujoco"}):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(name)
    return ", ".join(found)


def again(states: int, only: str) -> str:
    """Return the page with the rows recomputed whose name contains `only`."""
    found = {name: path for name, path in files(everything=True) if only in name and LUMPS not in name}
    lines = TABLE.read_text().splitlines()
    for k, line in enumerate(lines):
        name = line.split(" | ")[0].removeprefix("| ")
        if name in found:
            lines[k] = _line(name, *row(found[name], states))
            print(lines[k], flush=True)
    return "\n".join(lines) + "\n"


def _line(name: str, *cells: str) -> str:
    return "| " + " | ".join((name, *(cell.replace("|", "/") for cell in cells))) + " |"


def table(states: int) -> str:
    """Return the page."""
    rows = []
    for name, path in files(everything=True):
        rows.append((name, *row(path, 0 if LUMPS in name else states)))
        print(_line(*rows[-1]), flush=True)
    lumps = Counter(how for name, how, *_ in rows if LUMPS in name)
    rows = [r for r in rows if LUMPS not in r[0]]
    counts = Counter(how for _, how, *_ in rows)
    whole = sum(counts.values()) - counts["part"]
    lines = [
        "# Compatibility of robot files",
        "",
        f"Made by `python -m tests.packages` with {_versions()}.",
        "",
        "`strict`: `ag.load(file)` supports all features of the file. `loose`: it loads with `strict=False`, which omits the",
        "features of the last column (with the number of parts that use them). `not`: the file does not load, with the reason.",
        "The dynamics of each file without contact agree with MuJoCo to 1e-9 (`tests/formats/test_packages.py`).",
        "",
        f"{whole} files: {counts['strict']} strict ({counts['strict'] / whole:.1%}), {counts['loose']} loose,",
        f"{counts['not']} not.",
        f"{counts['part']} more are a `part` of other files: MuJoCo does not load them either, or they have no body.",
        f"Of the {sum(lumps.values())} random objects in pybullet_data's `{LUMPS}`, {lumps['strict']} are strict,",
        f"{lumps['loose']} loose, {lumps['not']} not.",
        "",
        f"For MJCF files, {states} random states with random controls and activations are compared with MuJoCo, whose",
        "solver and collision detection run to full precision. The numbers are the largest differences, relative to the",
        "largest value of their kind (at least 1), of: accelerations without constraints / actuator forces and tendon",
        "lengths / accelerations with all constraints / sensor readings / the state after a step of the file's",
        "integrator. The last three are of the states (their number is in brackets) in which both engines have the same",
        "contacts to 1e-8 m. In random states shapes overlap deeply, where a general routine for convex shapes may find",
        "another face, and in degenerate configurations (crossing axes, shapes that just touch) rounding decides. If no",
        "state agrees, states a tenth as far from the keyframe are used. A body that slides on its floor exactly at its",
        "margin (gymnasium's `point.xml`) has no such states.",
        "",
        "Differences above 1e-9 are due to contacts from MuJoCo's general convex collision: it stops when the overlap",
        "is accurate to 1e-12 m, where a normal may still be off by 1e-6. For curved shapes the overlap found here is the",
        "smaller one wherever the two differ (`tests/physics/collision/test_mujoco.py`).",
        "",
        "Gradients of two steps with respect to the state, the controls and every parameter are compared with finite",
        "differences, as by `ag.gradcheck` (`python -m tests.gradients`), in contact if the robot reached one: it falls",
        "or is driven at random; the base of a URDF is free, above a floor. Relative errors; for errors above 1e-6 the",
        "inputs and the reason are given.",
        "",
        "| file | loads | bodies / degrees of freedom / actuators | against MuJoCo | gradients | omitted features, or reason |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_line(*cells) for cells in rows),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=100)
    parser.add_argument("--only", metavar="PART")
    args = parser.parse_args()
    TABLE.write_text(again(args.states, args.only) if args.only else table(args.states))
