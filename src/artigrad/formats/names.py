"""Names of the parts of a compiled file: given, or generated where missing; unique by type."""

from __future__ import annotations

from typing import Any

from ..build.shape_builder import WORLD
from .mujoco_api import TrnType


class Names:
    """Names by index: `names.body[i]` etc.; body 0 is the world."""

    def __init__(self, m: Any):
        self.body = [WORLD, *_unique([m.body(i).name or f"body{i}" for i in range(1, m.nbody)], {WORLD})]
        joints = [m.joint(j).name or self._joint(m, j) for j in range(m.njnt)]
        # a joint that fixes a body has the body's name
        fixed = {self.body[i] for i in range(1, m.nbody) if not m.body_jntnum[i]}
        self.joint = _unique(joints, fixed)
        self.geom = _unique([m.geom(g).name or self._geom(m, g) for g in range(m.ngeom)])
        self.site = _unique([m.site(s).name or f"site{s}" for s in range(m.nsite)])
        self.actuator = _unique([m.actuator(a).name or self._actuator(m, a) for a in range(m.nactuator)])
        self.camera = _unique([m.camera(c).name or f"camera{c}" for c in range(m.ncam)])
        self.sensor = _unique([m.sensor(s).name or f"sensor{s}" for s in range(m.nsensor)])
        self.keyframe = _unique([m.key(k).name or f"key{k}" for k in range(m.nkey)])
        self.tendon = _unique([m.tendon(t).name or f"tendon{t}" for t in range(m.ntendon)])
        self.equality = _unique([m.equality(e).name or f"equality{e}" for e in range(m.neq)])

    def _joint(self, m: Any, j: int) -> str:
        body = int(m.jnt_bodyid[j])
        alone = m.body_jntnum[body] == 1
        return self.body[body] if alone else f"{self.body[body]}:{j - int(m.body_jntadr[body])}"

    def _geom(self, m: Any, g: int) -> str:
        body = int(m.geom_bodyid[g])
        return f"{self.body[body]}:{g - int(m.body_geomadr[body])}"

    def _actuator(self, m: Any, a: int) -> str:
        on_joint = m.actuator_trntype[a] in (TrnType.JOINT, TrnType.JOINTINPARENT)
        return self.joint[int(m.actuator_trnid[a, 0])] if on_joint else f"actuator{a}"


def _unique(names: list[str], taken: set[str] | None = None) -> list[str]:
    """Return unique names: repeated ones are numbered."""
    out: list[str] = []
    used = set(taken or ())
    for name in names:
        new, k = name, 2
        while new in used:
            new, k = f"{name}_{k}", k + 1
        used.add(new)
        out.append(new)
    return out
