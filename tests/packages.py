"""Robot files of the packages that are installed: dm_control's suite, gymnasium's MuJoCo assets, pybullet_data."""

from importlib.util import find_spec
from pathlib import Path

# package: where its files are, and what is none of a robot's own
FOLDERS = {
    "dm_control": ("suite", "*.xml"),
    "gymnasium": ("envs/mujoco/assets", "*.xml"),
    "pybullet_data": ("", "*.urdf"),
}


def folder(package: str) -> Path | None:
    """Where a package lies; it is not imported."""
    spec = find_spec(package)
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def files(*, everything: bool = False) -> list[tuple[str, Path]]:
    """(name, path) of each file. pybullet_data has a thousand random lumps: of those every hundredth, or everything."""
    found = []
    for package, (inner, pattern) in FOLDERS.items():
        root = folder(package)
        for path in sorted((root / inner).rglob(pattern)) if root else []:
            lump = "random_urdfs" in path.parts
            if everything or not lump or path.stem.endswith("00"):
                found.append((f"{package}/{path.relative_to(root)}", path))
    return found
