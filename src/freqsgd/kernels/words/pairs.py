"""Products of rows of two tables, pair by pair."""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from freqsgd.kernels.machine import compiled, kernel, pointer, take
from freqsgd.kernels.simd import LANES, load, number_at, splat, total
from freqsgd.kernels.threads import run

__all__ = ["pair_products"]

_CHUNK = 4096  # pairs that a thread takes at a time

_JOB = np.dtype(
    [
        ("next", np.int64),
        ("left", np.int64),  # float32 (any, dim)
        ("right", np.int64),
        ("dim", np.int64),
        ("rows", np.int64),  # int64 (pairs): of the left table
        ("columns", np.int64),  # int64 (pairs): of the right one
        ("pairs", np.int64),
        ("out", np.int64),  # float32 (pairs)
    ]
)


def pair_products(
    left: NDArray[np.float32],
    rows: NDArray[np.int64],
    right: NDArray[np.float32],
    columns: NDArray[np.int64],
    workers: int,
) -> NDArray[np.float32]:
    """``left[rows[k]] @ right[columns[k]]`` for every k; all arrays are contiguous."""
    out = np.empty(len(rows), np.float32)
    job = np.zeros(1, _JOB)
    arrays: dict[str, NDArray[Any]] = {
        "left": left,
        "right": right,
        "rows": rows,
        "columns": columns,
        "out": out,
    }
    for name, array in arrays.items():
        job[name] = array.ctypes.data
    job["dim"], job["pairs"] = left.shape[1], len(rows)
    run(_pair_kernel(), job, workers)
    return out


@cache
def _pair_kernel() -> Any:
    @kernel(_JOB)
    def pairs(jobs):
        job = numba.carray(jobs, 1)[0]
        first = take(jobs) * _CHUNK
        while first < job.pairs:
            _multiply(job, first, min(first + _CHUNK, job.pairs))
            first = take(jobs) * _CHUNK

    return pairs


@compiled
def _multiply(job, first, last):
    rows = numba.carray(pointer(job.rows), last, dtype=np.int64)
    columns = numba.carray(pointer(job.columns), last, dtype=np.int64)
    out = numba.carray(pointer(job.out), last, dtype=np.float32)
    dim, row_bytes, size = job.dim, job.dim * 4, 4 * LANES
    left, right = job.left, job.right
    for k in range(first, last):
        a, b = left + rows[k] * row_bytes, right + columns[k] * row_bytes
        sums = more = splat(np.float32(0))
        j = 0
        while j + 2 * LANES <= dim:
            sums = sums + load(a) * load(b)
            more = more + load(a + size) * load(b + size)
            a, b, j = a + 2 * size, b + 2 * size, j + 2 * LANES
        if j + LANES <= dim:
            sums = sums + load(a) * load(b)
            a, b, j = a + size, b + size, j + LANES
        product = total(sums + more)
        for offset in range(0, (dim - j) * 4, 4):
            product += number_at(a + offset) * number_at(b + offset)
        out[k] = product
