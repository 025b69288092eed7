"""Bodies that only translate, whose inverse weights MuJoCo sets to their inverse mass."""

from __future__ import annotations

import numpy as np

from .model import Model


def sliding_bodies(model: Model) -> dict[int, list[int]]:
    """Bodies whose inverse weight is the inverse of their mass, as MuJoCo has it for bodies on slide joints alone, and their
    degrees of freedom."""
    p, found = model.params, dict[int, list[int]]()
    for i in range(model.nb):
        shift, turn = p.body_invweight0[i]
        if turn or not p.mass[i] or abs(shift * p.mass[i] - 1.0) > 1e-12:
            continue
        own, b = list[int](), i
        while b >= 0 and (model.joint_kind(b).axial or not model.joint_kind(b).nv):
            own += [model.joint_v[b]] if model.joint_kind(b).nv else []
            if model.joint_kind(b).nv and model.joint_kind(b).angular:
                break
            b = model.parent[b]
        if b < 0 and own and np.abs(p.dof_invweight0[own] / shift - 1.0).max() < 1e-12:
            found[i] = own
    return found
