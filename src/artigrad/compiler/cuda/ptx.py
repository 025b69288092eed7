"""Compilation of LLVM IR to PTX with the NVPTX back end of LLVM. It needs neither a GPU nor the CUDA toolkit."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from .. import disk
from ..compile import VERSION

TRIPLE = "nvptx64-nvidia-cuda"
# The lowest version of the PTX language with each compute capability, so that old drivers can read it. PTX for an
# older capability runs on every newer one.
ARCHITECTURES = {(7, 0): 60, (7, 5): 63, (8, 0): 70, (8, 6): 71, (8, 9): 78, (9, 0): 78}


def architecture(capability: tuple[int, int]) -> tuple[str, str]:
    """Return LLVM's names of the newest architecture that a device of this capability supports, and of its PTX version."""
    best = max(c for c in ARCHITECTURES if c <= capability)
    return f"sm_{best[0]}{best[1]}", f"+ptx{ARCHITECTURES[best]}"


@cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def ptx(ir: str, capability: tuple[int, int], effort: int, folder: Path | None) -> str:
    """Return the PTX of a module, cached on disk."""
    cpu, features = architecture(capability)
    key = hashlib.sha256("\0".join((ir, cpu, features, str(effort), VERSION)).encode()).hexdigest()
    stored = disk.read(folder, key)
    if stored is not None:
        return stored.decode()
    text = _generate(ir, cpu, features, effort)
    disk.write(folder, key, text.encode())
    return text


def _generate(ir: str, cpu: str, features: str, effort: int) -> str:
    """Optimize with few passes and generate PTX.

    Loops are not unrolled, so that the code of a step fits into the instruction cache. LLVM's level 1 also hoists values
    out of loops, which exceeds the available registers.
    """
    _initialise()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, features=features, opt=effort)
    module = llvm.parse_assembly(f'target triple = "{TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n{ir}')
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.run(module, builder)
    return str(machine.emit_assembly(module))
