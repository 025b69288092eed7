"""XLA's foreign-function interface as jaxlib ships it: where fields lie in its structs, and whether they lie there here.

The header `c_api.h` comes with jaxlib. Nothing is compiled from it; it is read to see that every field which our handler uses
lies where it is expected. If anything is elsewhere, calls go the slower way through Python.
"""

from __future__ import annotations

import ctypes
import re
import sys
from functools import cache
from pathlib import Path

import jax

MAJOR, MINOR = 0, 1  # the version that our handler declares: XLA takes any from 0.1 to its own
EXECUTE, METADATA, INVALID_ARGUMENT = 3, 1, 3
INT64 = 5  # XLA's number of that dtype

OFFSETS: dict[str, dict[str, int]] = {
    "CallFrame": {
        "extension_start": 8,
        "api": 16,
        "ctx": 24,
        "stage": 32,
        "args.size": 56,
        "args.args": 72,
        "rets.size": 96,
        "rets.rets": 112,
        "attrs.size": 136,
        "attrs.names": 152,
        "attrs.attrs": 160,
    },
    "Buffer": {"dtype": 16, "data": 24, "rank": 32, "dims": 40},
    "Scalar": {"dtype": 0, "value": 8},
    "Error_Create_Args": {"struct_size": 0, "extension_start": 8, "message": 16, "errc": 24},
    "Error_Destroy_Args": {"struct_size": 0, "extension_start": 8, "error": 16},
    "Stream_Get_Args": {"struct_size": 0, "extension_start": 8, "ctx": 16, "stream": 24},
    "ThreadPool_Schedule_Args": {"struct_size": 0, "extension_start": 8, "ctx": 16, "task": 24, "data": 32},
    "Metadata_Extension": {"extension_base.type": 8, "extension_base.next": 16, "metadata": 24},
    "Metadata": {"api_version.major_version": 24, "api_version.minor_version": 28, "traits": 32},
    "Api": {
        "api_version.major_version": 32,
        "XLA_FFI_Error_Create": 48,
        "XLA_FFI_Error_Destroy": 64,
        "XLA_FFI_Stream_Get": 80,
        "XLA_FFI_ThreadPool_Schedule": 136,
    },
}


class UnknownInterfaceError(Exception):
    """This jaxlib has no interface of the kind that the handler was written for."""


@cache
def check_interface() -> None:
    """Raise UnknownInterfaceError unless everything is where the handler expects it."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.platform not in ("linux", "darwin"):
        raise UnknownInterfaceError("handlers are for 64-bit Linux and macOS")
    if not hasattr(jax, "ffi"):
        raise UnknownInterfaceError("jax.ffi came with jax 0.5")
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    if not header.exists():
        raise UnknownInterfaceError("jaxlib came without c_api.h")
    check_header(header.read_text())


def check_header(text: str) -> None:
    """Check the text of a c_api.h."""
    layout = _Layout(text)
    if layout.major != MAJOR:
        raise UnknownInterfaceError(f"version {layout.major} of the interface")
    for name, expected in OFFSETS.items():
        found = layout.offsets(f"XLA_FFI_{name}")
        moved = [field for field, at in expected.items() if found.get(field) != at]
        if moved:
            raise UnknownInterfaceError(
                f"{moved[0]} of XLA_FFI_{name} is at {found.get(moved[0])}, not {expected[moved[0]]}"
            )


class _Layout:
    """Offsets of the fields of C structs, by the rules of 64-bit machines."""

    def __init__(self, header: str):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header, flags=re.DOTALL)
        version = re.search(r"#define XLA_FFI_API_MAJOR (\d+)", text)
        if version is None:
            raise UnknownInterfaceError("c_api.h has no version")
        self.major = int(version[1])
        self._bodies = dict(re.findall(r"struct (XLA_FFI_\w+) \{(.*?)\n\}", text, flags=re.DOTALL))
        self._enums = set(re.findall(r"typedef enum \{[^}]*\} (XLA_FFI_\w+);", text, flags=re.DOTALL))

    def offsets(self, struct: str) -> dict[str, int]:
        """Return the offset of each field; fields of a nested struct are named a.b."""
        return self._measure(struct)[0]

    def _measure(self, struct: str) -> tuple[dict[str, int], int, int]:
        """Offsets, size and alignment."""
        if struct not in self._bodies:
            raise UnknownInterfaceError(f"c_api.h has no struct {struct}")
        at, widest, offsets = 0, 1, dict[str, int]()
        for line in filter(None, map(str.strip, self._bodies[struct].split(";"))):
            field, inside, size, align = self._field(line)
            at = -(-at // align) * align
            offsets |= {field: at} | {f"{field}.{name}": at + offset for name, offset in inside.items()}
            at, widest = at + size, max(widest, align)
        return offsets, -(-at // widest) * widest, widest

    def _field(self, line: str) -> tuple[str, dict[str, int], int, int]:
        """Name, offsets inside, size and alignment of one declaration."""
        if function := re.fullmatch(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)", line):
            return function[1], {}, 8, 8
        if pointer := re.search(r"\(\*(\w+)\)|\*+\s*(\w+)$", line):
            return pointer[1] or pointer[2], {}, 8, 8
        kind, field = line.removeprefix("const ").removeprefix("struct ").rsplit(None, 1)
        if kind in ("size_t", "int64_t", "uint64_t"):
            return field, {}, 8, 8
        if kind in ("int", "int32_t", "uint32_t", "XLA_FFI_Handler_Traits") or kind in self._enums:
            return field, {}, 4, 4
        return field, *self._measure(kind)
