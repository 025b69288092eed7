"""Limitations of the hard law: contacts, and limits and dry friction of joints with one axis, are all that it has."""

from __future__ import annotations

import numpy as np

from ....errors import InputError, warn
from ....model.model import Model
from ....model.options import HardOptions
from ...joints.table import EITHER_AXIAL


def check_model(model: Model, options: HardOptions) -> None:
    """Raise an InputError if a model has constraint rows that the hard law has not."""
    if not model.has_contact:
        return
    if model.equalities:
        raise InputError(
            f"law='hard' has no equalities, and '{model.name}' has '{model.equalities[0].name}': use law='soft'"
        )
    if model.stopped_tendons:
        tendon = model.tendons[model.stopped_tendons[0]].name
        raise InputError(f"law='hard' has no limits and dry friction of tendons, as of '{tendon}': use law='soft'")
    for name, on in zip(model.actuators, model.transmissions, strict=True):
        if on.kind == "body":
            raise InputError(f"law='hard' has no adhesion, which actuator '{name}' is: use law='soft'")
    if "sticky" in model.features:
        raise InputError(
            f"law='hard' has no contacts that pull by themselves, as those of '{model.name}': use law='soft'"
        )
    if "surface" in model.features:
        raise InputError(
            f"law='hard' has no surfaces that move by themselves, as those of '{model.name}': use law='soft'"
        )
    if model.servos:
        motor = model.actuators[model.servos[0]]
        raise InputError(f"law='hard' has no servo motors, and '{motor}' is one: use law='soft'")
    for i in model.shapes.limited:
        if not model.joint_kind(i).axial:
            raise InputError(
                f"law='hard' has limits and dry friction of {EITHER_AXIAL} joints, not of '{model.joints[i]}', which is "
                f"{model.joint_type[i]}: use law='soft'"
            )
    early = [model.shapes.names[i] for i in np.flatnonzero(model.params.margin > 0)]
    if early:
        warn(f"law='hard' has no margins of contact, as shape '{early[0]}' has: contact begins at the surface")
    pairs, names = model.shapes.pair_array, model.shapes.names
    wide = pairs[model.shapes.pair_condims(*pairs.T) > 3]
    if len(wide):
        pair = f"{names[wide[0, 0]]} - {names[wide[0, 1]]}"
        warn(f"law='hard' has no torsional and rolling friction (condim 4 and 6), as of {pair}: it is left out")
