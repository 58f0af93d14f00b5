"""The least that an exact minibatch step must do to a table: touch its rows.

Every row of every sample is read once, for the log odds; every distinct row of the batch is read
and written once, for the update. Rows are asked for ahead of their use, and nothing is computed
but a sum. Two threads split the samples, and then the distinct rows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from freqsgd.kernels.machine import prefetch_row, prefetch_row_only
from freqsgd.kernels.simd import LANES, load, splat, store, total

__all__ = ["touch_rows"]

_AHEAD = 24


@numba.njit(nogil=True, error_model="numpy", fastmath=True)
def _read(address: Any, rows: Any, row_bytes: Any) -> Any:
    sums = splat(np.float32(0))
    for i in range(len(rows)):
        if i + _AHEAD < len(rows):
            prefetch_row_only(address + rows[i + _AHEAD] * row_bytes, row_bytes)
        start = address + rows[i] * row_bytes
        for offset in range(0, row_bytes - 4 * LANES + 1, 4 * LANES):
            sums = sums + load(start + offset)
    return total(sums)


@numba.njit(nogil=True, error_model="numpy", fastmath=True)
def _write(address: Any, rows: Any, row_bytes: Any) -> None:
    scale = splat(np.float32(0.999))
    for i in range(len(rows)):
        if i + _AHEAD < len(rows):
            prefetch_row(address + rows[i + _AHEAD] * row_bytes, row_bytes)
        start = address + rows[i] * row_bytes
        for offset in range(0, row_bytes - 4 * LANES + 1, 4 * LANES):
            store(start + offset, scale * load(start + offset))


def touch_rows(
    weight: NDArray[np.float32],
    rows: NDArray[np.int64],
    distinct: NDArray[np.int64],
    pool: ThreadPoolExecutor,
    threads: int,
) -> None:
    """Touch the rows of a batch, sample by sample, and then the distinct ones, as a step must."""
    address, row_bytes = weight.ctypes.data, weight.shape[1] * weight.itemsize
    for function, numbers in ((_read, rows.reshape(-1)), (_write, distinct)):
        parts = np.array_split(numbers, threads)
        list(pool.map(lambda part, run=function: run(address, part, row_bytes), parts))
