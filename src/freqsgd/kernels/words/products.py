"""The second and third phase: copies of rows, their products, slopes and losses."""

from __future__ import annotations

import math

import numba
import numpy as np

from freqsgd.kernels.machine import compiled, pointer
from freqsgd.kernels.simd import (
    LANES,
    add_dots,
    exp_of_minus_abs,
    load,
    number_at,
    put_sums,
    set_number,
    splat,
    store,
    total,
    zeros,
)
from freqsgd.kernels.words.job import (
    COLUMNS,
    GUARD,
    PARTS,
    ROWS,
    VECTOR_BYTES,
    band_width,
    row_bytes_of,
)
from freqsgd.kernels.words.plan import is_centre

__all__ = ["find_products", "gather"]

_LARGE = 1e300  # a product of this size, each of whose factors is at most 2, is turned into its log


@compiled
def gather(job, part):
    """Copy a part of the block's rows; zeros stand for rows that are not there."""
    length = job.inputs + job.block + job.pool
    rows = numba.carray(pointer(job.rows), length, dtype=np.int64)
    dim, copies, row_bytes = job.dim, job.copies, row_bytes_of(job)
    whole, inputs, table = dim - dim % LANES, job.inputs, (job.input, job.output)
    zero = splat(np.float32(0))
    for k in range(length * part // PARTS, length * (part + 1) // PARTS):
        to = copies + k * row_bytes
        if rows[k] < 0:
            for offset in range(0, row_bytes, VECTOR_BYTES):
                store(to + offset, zero)
            continue
        at = table[0 if k < inputs else 1] + rows[k] * dim * 4
        for offset in range(0, whole * 4, VECTOR_BYTES):
            store(to + offset, load(at + offset))
        for offset in range(whole * 4, dim * 4, 4):
            set_number(to + offset, number_at(at + offset))


@compiled
def find_products(job, block, part, scratch, bits):
    """Slopes of a part of the block's samples; returns their loss."""
    tiles = job.block // ROWS
    low, high = tiles * part // PARTS * ROWS, tiles * (part + 1) // PARTS * ROWS
    if job.cbow != 0:
        _hidden(job, block, low, high)
        loss = _cbow_band(job, low, high)
        loss += _noise_slopes(job, low, high, job.hidden, scratch, bits)
    else:
        loss = _skipgram_band(job, block, low, high, scratch, bits)
        tiles = job.inputs // ROWS
        low, high = tiles * part // PARTS * ROWS, tiles * (part + 1) // PARTS * ROWS
        loss += _noise_slopes(job, low, high, job.copies, scratch, bits)
    losses = numba.carray(pointer(job.losses), (block + 1) * PARTS, dtype=np.float64)
    losses[block * PARTS + part] = loss
    return loss


@compiled
def _noise_slopes(job, low, high, vectors, scratch, bits):
    """Products of vectors u ``low`` to ``high`` with the pool; their slopes and loss."""
    row_bytes, pool = row_bytes_of(job), job.pool
    noise = job.copies + (job.inputs + job.block) * row_bytes
    for j in range(low, high, ROWS):
        for n in range(0, pool, COLUMNS):
            a, b = vectors + j * row_bytes, noise + n * row_bytes
            tile = zeros(ROWS, COLUMNS)
            for offset in range(0, row_bytes, VECTOR_BYTES):
                tile = add_dots(tile, a + offset, row_bytes, b + offset, row_bytes)
            put_sums(tile, job.noise_slopes + (j * pool + n) * 4, pool * 4)
    slopes = numba.carray(pointer(job.noise_slopes), job.inputs * pool, dtype=np.float32)
    weights = numba.carray(pointer(job.weights), job.inputs, dtype=np.float32)
    each = np.float32(job.negatives / pool)
    one, zero = np.float32(1), np.float32(0)
    x, small = slopes[low * pool : high * pool], scratch[: (high - low) * pool]
    exp_of_minus_abs(x, len(x), bits, small)
    loss = 0.0
    for j in range(high - low):
        weight = weights[low + j] * each
        linear, product = 0.0, 1.0
        for k in range(j * pool, (j + 1) * pool):
            linear += max(x[k], zero)
            product *= 1.0 + small[k]
            if product > _LARGE:
                linear, product = linear + math.log(product), 1.0
        loss += weight * (linear + math.log(product))
        for k in range(j * pool, (j + 1) * pool):
            x[k] = weight * (one if x[k] >= zero else small[k]) / (one + small[k])
    return loss


@compiled
def _skipgram_band(job, block, low, high, scratch, bits):
    """Products of targets with the words of their windows; their slopes and loss."""
    row_bytes, window, width = row_bytes_of(job), job.window, band_width(job)
    near = (2 * window + ROWS + COLUMNS - 1) // COLUMNS * COLUMNS  # inputs of a tile's targets
    targets = job.copies + job.inputs * row_bytes
    band = numba.carray(pointer(job.band), job.block * width, dtype=np.float32)
    found = numba.carray(pointer(np.int64(scratch.ctypes.data)), (ROWS, near), dtype=np.float32)
    for i in range(low, high, ROWS):
        a = targets + i * row_bytes
        for c in range(0, near, COLUMNS):
            b = job.copies + (i + c) * row_bytes
            tile = zeros(ROWS, COLUMNS)
            for offset in range(0, row_bytes, VECTOR_BYTES):
                tile = add_dots(tile, a + offset, row_bytes, b + offset, row_bytes)
            put_sums(tile, np.int64(scratch.ctypes.data) + c * 4, near * 4)
        for r in range(ROWS):
            for c in range(2 * window + 1):
                band[(i + r) * width + GUARD + c] = found[r, r + c]
    x, small = band[low * width : high * width], scratch[ROWS * near :]
    exp_of_minus_abs(x, len(x), bits, small)
    starts = numba.carray(pointer(job.starts), job.length, dtype=np.int32)
    ends = numba.carray(pointer(job.ends), job.length, dtype=np.int32)
    first, full = block * job.block, job.full != 0
    one, zero = np.float32(1), np.float32(0)
    loss, product = 0.0, 1.0
    for k in range(high - low):
        i = first + low + k
        for c in range(2 * window + 1):
            j, at = i - window + c, k * width + GUARD + c
            if (
                i < job.length
                and j != i
                and starts[i] <= j < ends[i]
                and is_centre(j, starts, ends, window, full)
            ):
                loss += max(-x[at], zero)
                product *= 1.0 + small[at]
                if product > _LARGE:
                    loss, product = loss + math.log(product), 1.0
                x[at] = -(small[at] if x[at] >= zero else one) / (one + small[at])
            else:
                x[at] = 0
    return loss + math.log(product)


@compiled
def _hidden(job, block, low, high):
    """The mean of each target's window."""
    row_bytes, window, first = row_bytes_of(job), job.window, block * job.block
    starts = numba.carray(pointer(job.starts), job.length, dtype=np.int32)
    ends = numba.carray(pointer(job.ends), job.length, dtype=np.int32)
    weights = numba.carray(pointer(job.weights), job.inputs, dtype=np.float32)
    for k in range(low, high):
        i, to = first + k, job.hidden + k * row_bytes
        if weights[k] == 0:
            for offset in range(0, row_bytes, VECTOR_BYTES):
                store(to + offset, splat(np.float32(0)))
            continue
        start, end = max(starts[i], i - window), min(ends[i], i + window + 1)
        inverse = splat(np.float32(1) / np.float32(end - start - 1))
        own = job.copies + (k + window) * row_bytes
        left = job.copies + (start - first + window) * row_bytes
        right = job.copies + (end - first + window) * row_bytes
        for offset in range(0, row_bytes, VECTOR_BYTES):
            a = splat(np.float32(0))
            for at in range(left, own, row_bytes):
                a = a + load(at + offset)
            for at in range(own + row_bytes, right, row_bytes):
                a = a + load(at + offset)
            store(to + offset, a * inverse)


@compiled
def _cbow_band(job, low, high):
    """Products of targets with their windows' means; their slopes and loss."""
    row_bytes = row_bytes_of(job)
    band = numba.carray(pointer(job.band), job.block, dtype=np.float32)
    weights = numba.carray(pointer(job.weights), job.inputs, dtype=np.float32)
    targets, loss = job.copies + job.inputs * row_bytes, 0.0
    for k in range(low, high):
        a, b = job.hidden + k * row_bytes, targets + k * row_bytes
        sums = splat(np.float32(0))
        for offset in range(0, row_bytes, VECTOR_BYTES):
            sums = sums + load(a + offset) * load(b + offset)
        x = total(sums)
        small = math.exp(-abs(x))
        loss += weights[k] * (max(-x, np.float32(0)) + math.log1p(small))
        slope = -(small if x >= 0 else 1.0) / (1.0 + small)
        band[k] = weights[k] * np.float32(slope)
    return loss
