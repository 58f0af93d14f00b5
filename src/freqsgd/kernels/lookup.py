"""Looking up rows of tables, one after another in memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np

from freqsgd.kernels.machine import (
    AHEAD,
    LANES,
    add_scaled,
    compiled,
    copy,
    kernel,
    pointer,
    prefetch_row_only,
    take,
)
from freqsgd.kernels.threads import run

__all__ = ["gather"]

CHUNK = 128  # samples that a thread looks up at a time

_LOOKUP = np.dtype(
    [
        ("next", np.int64),
        ("weight", np.int64),
        ("rows", np.int64),
        ("dim", np.int64),
        ("ids", np.int64),
        ("samples", np.int64),
        ("fields", np.int64),
        ("starts", np.int64),  # address: first row of each field
        ("sizes", np.int64),  # address: rows of each field
        ("padding", np.int64),
        ("pooled", np.int64),
        ("out", np.int64),
        ("bad", np.int64),  # position of an id that is out of range; -1: none
    ]
)


def gather(
    weight: Any,
    ids: Any,
    starts: Any,
    sizes: Any,
    padding: int,
    pooled: bool,
    out: Any,
    workers: int,
) -> int | None:
    """Look up rows: ``out[b, f] = weight[starts[f] + ids[b, f]]``, summed over f if ``pooled``.

    Ids that equal ``padding`` are left out of sums. All arrays are contiguous. Returns the position
    of an id that is out of range, None if there is none.
    """
    job = np.zeros(1, _LOOKUP)
    job["weight"], job["ids"], job["out"] = (x.ctypes.data for x in (weight, ids, out))
    job["starts"], job["sizes"] = starts.ctypes.data, sizes.ctypes.data
    job["rows"], job["dim"] = weight.shape
    job["samples"], job["fields"] = ids.shape
    job["padding"], job["pooled"], job["bad"] = padding, pooled, -1
    run(_lookup_kernel(weight.dtype.type), job, workers)
    bad = int(job["bad"][0])
    return None if bad < 0 else bad


@cache
def _lookup_kernel(weight_type: Any) -> Any:
    @kernel(_LOOKUP, weight_type)
    def lookup(jobs):
        job = numba.carray(jobs, 1)[0]
        weights = np.empty(0, weight_type)
        first = take(jobs) * CHUNK
        while first < job.samples:
            bad = _lookup(job, first, min(first + CHUNK, job.samples), weights)
            if bad >= 0:
                job.bad = bad
            first = take(jobs) * CHUNK

    return lookup


@compiled
def _lookup(job, first, last, weights):
    """Look up samples ``first`` to ``last``; return the position of a bad id, or -1."""
    dim, fields, address, pooled = job.dim, job.fields, job.weight, job.pooled != 0
    padding, to = job.padding, job.out
    one = weights.dtype.type(1)
    itemsize = weights.itemsize
    row_bytes = dim * itemsize
    whole = dim - dim % LANES
    ids = numba.carray(pointer(job.ids), job.samples * fields, dtype=np.int64)
    starts = numba.carray(pointer(job.starts), fields, dtype=np.int64)
    sizes = numba.carray(pointer(job.sizes), fields, dtype=np.int64)
    weight = numba.carray(pointer(address), job.rows * dim, dtype=weights.dtype)
    out_rows = job.samples if pooled else job.samples * fields
    out = numba.carray(pointer(to), out_rows * dim, dtype=weights.dtype)
    for b in range(first, last):
        for f in range(fields):
            if not 0 <= ids[b * fields + f] < sizes[f]:
                return b * fields + f

    ahead = first * fields
    f_ahead = 0
    for b in range(first, last):
        if pooled:
            for j in range(b * dim, (b + 1) * dim):
                out[j] = 0
        for f in range(fields):
            i = b * fields + f
            while ahead < last * fields and ahead < i + AHEAD:
                prefetch_row_only(address + (starts[f_ahead] + ids[ahead]) * row_bytes, row_bytes)
                ahead += 1
                f_ahead = 0 if f_ahead + 1 == fields else f_ahead + 1
            row = (starts[f] + ids[i]) * dim
            if not pooled:
                for j in range(0, whole, LANES):
                    copy(to + (i * dim + j) * itemsize, address + (row + j) * itemsize, one)
                for j in range(whole, dim):
                    out[i * dim + j] = weight[row + j]
            elif ids[i] != padding:
                for j in range(0, whole, LANES):
                    add_scaled(to + (b * dim + j) * itemsize, address + (row + j) * itemsize, one)
                for j in range(whole, dim):
                    out[b * dim + j] += weight[row + j]
    return -1
