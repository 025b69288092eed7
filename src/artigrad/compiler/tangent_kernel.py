"""Forward mode: staged code on values with their tangents.

    TangentKernel(kernel, ("q", "u")) takes d_q and d_u beside q and u, and its outputs have tangents

Comparisons use values alone, so that a choice (a contact regime, a clamped control) is constant along the tangent.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .kernel import WORK, Kernel
from .memory import Paired, Reals
from .values import target


class TangentKernel(Kernel):
    """Kernel with a tangent d_x for each argument x in `moving`, and for all scratch; other arguments are constant."""

    def __init__(self, kernel: Kernel, moving: Collection[str]):
        paired = [key for key, kind in kernel.signature.items() if kind == WORK or key in moving]

        def body(**a: Any) -> None:
            target().tangents = True
            for key in paired:
                x, d = a[key], a.pop(f"d_{key}")
                a[key] = Reals(Paired(x.memory, d.memory), x.start)
            kernel.body(**a)

        signature = kernel.signature | {f"d_{key}": kernel.signature[key] for key in paired}
        super().__init__(f"{kernel.name}_tangent", body, signature, kernel.target, effort=kernel.effort)

    def bind(self, **arguments: Any) -> Any:
        """Return the kernel with some arguments bound; scratch and its tangents have the same size."""
        scratch = {f"d_{key}": size for key, size in arguments.items() if self.signature[key] == WORK}
        return super().bind(**arguments, **scratch)
