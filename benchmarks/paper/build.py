"""Native code of other tools, compiled once per source text and cached in .paper/ of the checkout."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sysconfig
from pathlib import Path

import artigrad as ag

from .cpp import step_source

FOLDER = Path(__file__).resolve().parents[2] / ".paper"
NATIVE = Path(__file__).parent / "native"
CPPAD = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "include"
EIGEN, CERES = Path("/usr/include/eigen3"), Path("/usr/include/ceres")
FLAGS = ["-O2", "-DNDEBUG", "-march=native", "-shared", "-fPIC"]  # -O3 takes twice as long and gains nothing

kept_seconds: list[float] = []  # CPU seconds of libraries that were cached


class Missing(RuntimeError):
    """Error of a tool that is not installed; the message has the installation command."""


def _need(found: bool, what: str) -> None:
    if not found:
        raise Missing(what)


def _compile(compiler: str, text: str, name: str, *more: str) -> Path:
    """Return a shared library of a source text."""
    key = hashlib.sha256(repr((compiler, text, FLAGS, more, _headers())).encode()).hexdigest()[:16]
    folder = FOLDER / f"{name}-{key}"
    library, spent = folder / "library.so", folder / "seconds"
    if library.exists():
        kept_seconds.append(float(spent.read_text()))
    else:
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / ("source.cpp" if compiler == "g++" else "source.c")
        source.write_text(text)
        made, before = folder / f"{os.getpid()}.so", os.times()
        done = subprocess.run(
            [compiler, *FLAGS, *more, str(source), "-o", str(made), "-lm"], capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{compiler} failed: {done.stderr.strip().splitlines()[0]}")
        after = os.times()
        spent.write_text(
            str(after.children_user + after.children_system - before.children_user - before.children_system)
        )
        made.replace(library)
    return library


def _headers() -> list[str]:
    return [path.read_text() for path in sorted(NATIVE.iterdir())]


def native(name: str, sim: ag.Simulator) -> tuple[ctypes.CDLL, str]:
    """Return native/{name}.cpp compiled with the step of a simulator, and the version of the tool."""
    version = VERSIONS[name]()
    text = (NATIVE / f"{name}.cpp").read_text().replace('#include "step.hpp"', step_source(sim))
    paths = [f"-I{NATIVE}", f"-isystem{CPPAD}", f"-isystem{EIGEN}"]
    return ctypes.CDLL(str(_compile("g++", text, name, "-std=c++17", *paths))), version


def _cppad() -> str:
    _need((CPPAD / "cppad" / "cppad.hpp").exists(), "no CppAD: pip install cmeel-cppad")
    return importlib.metadata.version("cmeel-cppad")


def _ceres() -> str:
    _need((CERES / "jet.h").exists() and EIGEN.exists(), "no Ceres: apt-get install libceres-dev")
    text = (CERES / "version.h").read_text()
    return ".".join(re.findall(r"#define CERES_VERSION_(?:MAJOR|MINOR|REVISION) (\d+)", text))


def _gcc() -> str:
    return "g++ " + subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()


VERSIONS = {"doubles": _gcc, "cppad": _cppad, "ceres": _ceres}


def casadi(text: str, nx: int, nu: int) -> ctypes.CDLL:
    """Return generated C code compiled with native/casadi.c."""
    text += (NATIVE / "casadi.c").read_text()
    return ctypes.CDLL(str(_compile("gcc", text, "casadi", f"-DNX={nx}", f"-DNU={nu}")))
