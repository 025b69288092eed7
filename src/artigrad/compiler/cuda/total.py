"""Sums over the batch in an order that depends on the shape alone: the same bits in every run and on every GPU.

Blocks of `STRETCH` rows are summed by one thread per block and column, in double precision. The sums of the blocks are
summed in the same way until one row is left.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..values import Int, staging_on
from . import array, driver
from .array import DeviceArray
from .stage import Staged, ThreadEmitter, wrap

STRETCH, BLOCK = 256, 128
_ELEMENT = {8: "double", 4: "float"}


def total(x: DeviceArray, dtype: np.dtype) -> DeviceArray:
    """Return x.sum(0) as `dtype`, for an array whose rows x[i] are contiguous."""
    rows, shape = len(x), x.shape[1:]
    while True:
        columns, left = x.size // rows, -(-rows // STRETCH)
        out = array.empty(x.device, (left, *shape), dtype if left == 1 else np.dtype(np.float64))
        if columns:
            _launch(x, rows, columns, out)
        if left == 1:
            return out[0]
        x, rows = out, left


def _launch(x: DeviceArray, rows: int, columns: int, out: DeviceArray) -> None:
    staged, function = _loaded(x.device.number, x.itemsize, out.itemsize)
    values = {
        "at.batch": len(out) * columns,
        "source": x.pointer,
        "stride": x.strides[0] // x.itemsize,
        "rows": rows,
        "columns": columns,
        "out": out.pointer,
    }
    words = np.array([values[name] for name, _ in staged.parameters], np.int64)
    grid = -(-len(out) * columns // BLOCK)
    x.device.launch(function, grid, BLOCK, words, array.stream())


@cache
def _loaded(number: int, size: int, out_size: int) -> tuple[Staged, Any]:
    staged = stage_total(size, out_size)
    return staged, driver.device(number).load(staged)


def stage_total(size: int, out_size: int) -> Staged:
    """Stage the kernel out[s, j] = sum of source[r, j] over the rows r of block s; item sizes: `size`, `out_size` bytes."""
    e = ThreadEmitter("f64")
    source, made = _ELEMENT[size], _ELEMENT[out_size]
    parameters = [("at.batch", "i32"), ("source", e.pointer), ("stride", "i64")]
    parameters += [("rows", "i32"), ("columns", "i32"), ("out", e.pointer)]
    with staging_on(e):
        for place in e.robots():  # of one number of the result
            stretch = e.result(f"udiv i32 {place.ref}, %columns")
            column = e.result(f"urem i32 {place.ref}, %columns")
            first = e.result(f"mul i32 {stretch}, {STRETCH}")
            end = e.result(f"add i32 {first}, {STRETCH}")
            e.declared.add("declare i32 @llvm.smin.i32(i32, i32)")
            end = e.result(f"call i32 @llvm.smin.i32(i32 {end}, i32 %rows)")
            sum_ = e.cell(0.0)
            for row in e.loop(Int(first, e.scope), Int(end, e.scope), False):
                start = e.far("%source", source, row.ref, "%stride")
                spot = e.result(f"getelementptr {source}, {e.pointer} {start}, i32 {column}")
                number = e.result(f"load {source}, {e.pointer} {spot}")
                wide = number if size == 8 else e.result(f"fpext float {number} to double")
                so_far = sum_.load().ref
                e.line(f"store double {e.result(f'fadd double {so_far}, {wide}')}, ptr {sum_.ref}")
            value = sum_.load().ref
            value = value if out_size == 8 else e.result(f"fptrunc double {value} to float")
            spot = e.far("%out", made, place.ref, "1")
            e.line(f"store {made} {value}, {e.pointer} {spot}")
    name = f"artigrad_total_{size}_{out_size}"
    return Staged(name, wrap(e, name, parameters, [], []), tuple(parameters), 0)
