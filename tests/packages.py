"""Robot files of the packages that are installed: dm_control's suite, gymnasium's MuJoCo assets, pybullet_data.

`python -m tests.packages` writes docs/robots.md: which of them load, and why others do not.
"""

from collections import Counter
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import artigrad as ag

# package: the distribution it comes with, where in it files are, and which
FOLDERS = {
    "dm_control": ("dm_control", "suite", "*.xml"),
    "gymnasium": ("gymnasium", "envs/mujoco/assets", "*.xml"),
    "pybullet_data": ("pybullet", "", "*.urdf"),
}
LUMPS = "random_urdfs"  # a thousand random lumps of pybullet_data
TABLE = Path(__file__).parent.parent / "docs" / "robots.md"


def folder(package: str) -> Path | None:
    """Where a package lies; it is not imported."""
    spec = find_spec(package)
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def files(*, everything: bool = False) -> list[tuple[str, Path]]:
    """(name, path) of each file; of the lumps every hundredth, or everything."""
    found = []
    for package, (_, inner, pattern) in FOLDERS.items():
        root = folder(package)
        for path in sorted((root / inner).rglob(pattern)) if root else []:
            if everything or LUMPS not in path.parts or path.stem.endswith("00"):
                found.append((f"{package}/{path.relative_to(root)}", path))
    return found


@cache
def refused() -> dict[str, str]:
    """Why files do not load, by name."""
    why = {}
    for name, path in files():
        try:
            ag.load(path, strict=False)
        except ag.ModelError as problem:
            why[name] = str(problem)
    return why


def loading() -> list[tuple[str, Path]]:
    """The files that load."""
    return [(name, path) for name, path in files() if name not in refused()]


def row(name: str, path: Path) -> tuple[str, str, str]:
    """How a file loads (strict, loose, not), its size, and what is left out or why it does not."""
    try:
        model = ag.load(path, strict=False)
    except ag.ModelError as problem:
        return "not", "", str(problem).replace(f"{path.parent}/", "")
    reasons = "; ".join(f"{f.what} ({len(f.where)})" if f.where else f.what for f in model.unsupported)
    return "loose" if reasons else "strict", f"{model.nb} / {model.nv} / {model.nu}", reasons


def table() -> str:
    """The page."""
    rows = [(name, *row(name, path)) for name, path in files(everything=True)]
    lumps = Counter(how for name, how, _, _ in rows if LUMPS in name)
    rows = [r for r in rows if LUMPS not in r[0]]
    counts = Counter(how for _, how, _, _ in rows)
    share = (counts["strict"] + counts["loose"]) / len(rows)
    packages = ", ".join(f"{name} {version(name)}" for name in (*(d for d, _, _ in FOLDERS.values()), "mujoco"))
    lines = [
        "# Robot files that load",
        "",
        f"Made by `python -m tests.packages` with {packages}.",
        "",
        "`strict`: `ag.load(file)` simulates all of it. `loose`: with `strict=False`, without what the last column lists (how",
        "many parts use it). `not`: the file is refused, and why. What moves in each agrees with MuJoCo to 1e-9",
        "(`tests/io/test_packages.py`).",
        "",
        f"{len(rows)} files: {counts['strict']} strict, {counts['loose']} loose, {counts['not']} not: {share:.0%} load.",
        f"Of the {sum(lumps.values())} lumps in pybullet_data's `{LUMPS}`, {lumps['strict']} are strict,",
        f"{lumps['loose']} loose (their inertias are those of no possible body), {lumps['not']} not.",
        "",
        "| file | loads | bodies / degrees of freedom / actuators | left out, or why not |",
        "| --- | --- | --- | --- |",
        *(f"| {name} | {how} | {size} | {why.replace('|', '/')} |" for name, how, size, why in rows),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table())
