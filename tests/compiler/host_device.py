"""Substitute for a GPU: host memory, and kernels staged for CUDA but compiled for this CPU, run thread by thread.

It tests everything of the CUDA target except the driver: workspace layout, assignment of robots to threads, passing,
copying and reduction of arrays. Memory that was never written contains NaN.
"""

import ctypes
from contextlib import contextmanager

import numpy as np

from artigrad.compiler.compile import Code
from artigrad.compiler.cuda import stage as staging
from artigrad.compiler.cuda.driver import Function


class HostDevice:
    name, capability, driver_version, total = "host", (9, 0), 0, 1 << 30

    def __init__(self, number=0, multiprocessors=2):
        self.number, self.multiprocessors = number, multiprocessors
        self.blocks, self.launches, self.code = {}, [], {}
        self.staged = {}  # kernels that were loaded, by name

    @contextmanager
    def current(self):
        yield

    def allocate(self, size, stream):
        block = np.full(size + 64, 0xFF, np.uint8)  # every f32 and f64 of these bytes is NaN
        start = block.ctypes.data + -block.ctypes.data % 64
        self.blocks[start] = block
        return start

    def free(self, pointer, stream, wait=False):
        del self.blocks[pointer]

    def upload(self, pointer, host, stream):
        assert host.flags.c_contiguous
        ctypes.memmove(pointer, host.ctypes.data, host.nbytes)

    def download(self, host, pointer, stream):
        assert host.flags.c_contiguous
        ctypes.memmove(host.ctypes.data, pointer, host.nbytes)

    def copy(self, to, source, size, stream):
        ctypes.memmove(to, source, size)

    def clear(self, pointer, size, stream):
        ctypes.memset(pointer, 0, size)

    def synchronize(self, stream=0):
        pass

    def load(self, staged, registers=0, effort=2):
        """Load the same IR for this CPU: pointers without address space, the thread index as an argument."""
        self.staged[staged.name] = staged
        code = Code(on_host(staged), 1, None)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
        entry = prototype(code.address(staged.name))
        self.code[id(entry)] = (code, entry)
        return Function(id(entry), 0, 0, 0)

    def launch(self, function, grid, block, words, stream):
        assert words.dtype == np.int64 and words.flags.c_contiguous
        assert 1 <= grid < 2**31 and 1 <= block <= 1024
        self.launches.append((grid, block, stream))
        for thread in range(grid * block):
            self.code[function.handle][1](words.ctypes.data, thread, grid * block)


class Recorder(HostDevice):
    """Device that records kernels and runs none of them."""

    def load(self, staged, registers=0, effort=2):
        self.staged[staged.name] = staged
        return Function(1, 0, 0, 0)

    def launch(self, function, grid, block, words, stream):
        pass


def on_host(staged):
    """Return the code of a kernel with its CUDA entry replaced by one that reads the words and gets its thread index."""
    text = staged.ir.replace(staging.GLOBAL, "ptr")
    text = "\n".join(line for line in text.splitlines() if "llvm.nvvm" not in line)
    for line in staging._WHICH_THREAD:
        text = text.replace(line + "\n", "")
    listed = ", ".join(f"{t.replace(staging.GLOBAL, 'ptr')} %{n}" for n, t in staged.parameters)
    loads = []
    for k, (n, t) in enumerate(staged.parameters):
        kind = t.replace(staging.GLOBAL, "ptr")
        loads += [f"  %{n}.at = getelementptr i64, ptr %at.table, i64 {k}", f"  %{n} = load {kind}, ptr %{n}.at"]
    old = f"define ptx_kernel void @{staged.name}({listed}) {{"
    assert old in text
    new = f"define void @{staged.name}(ptr %at.table, i32 %at.thread, i32 %at.threads) {{"
    return text.replace(old, "\n".join([new, *loads]))
