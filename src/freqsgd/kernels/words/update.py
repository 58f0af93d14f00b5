"""The last phases: gradients, a few columns of all rows at a time, and their use."""

from __future__ import annotations

import math

import numba
import numpy as np

from freqsgd.kernels.machine import (
    add_scaled_product,
    array_at,
    compiled,
    pointer,
    sum_squared_products,
)
from freqsgd.kernels.simd import (
    LANES,
    add_outer,
    load,
    number_at,
    put,
    set_number,
    splat,
    store,
    zeros,
)
from freqsgd.kernels.words.job import GUARD, PARTS, ROWS, VECTOR_BYTES, band_width, row_bytes_of
from freqsgd.optimizers import CFADAM, LAW

__all__ = ["update_one", "update_rows", "update_three", "update_two"]


def _updater(columns):
    """The update of a slice of so many vectors."""

    @compiled
    def update_inputs(job, offset, scratch):
        """Skip-gram's inputs, a tile at a time: noise and band."""
        row_bytes, pool, width, window = row_bytes_of(job), job.pool, band_width(job), job.window
        targets = job.copies + job.inputs * row_bytes + offset
        noise = targets + job.block * row_bytes
        at = np.int64(scratch.ctypes.data)
        for j in range(0, job.inputs, ROWS):
            tile = zeros(ROWS, columns)
            slopes = job.noise_slopes + j * pool * 4
            for n in range(pool):
                tile = add_outer(tile, noise + n * row_bytes, slopes + n * 4, pool * 4)
            for i in range(max(0, j - 2 * window), min(job.block, j + ROWS)):
                slope = job.band + (i * width + GUARD + j - i) * 4
                tile = add_outer(tile, targets + i * row_bytes, slope, 4)
            put(tile, at, columns * VECTOR_BYTES)
            _add(job, j, ROWS, offset, at, columns)

    @compiled
    def update_targets(job, offset, scratch):
        """Skip-gram's targets: the other side of the band."""
        row_bytes, width = row_bytes_of(job), band_width(job)
        inputs, at = job.copies + offset, np.int64(scratch.ctypes.data)
        for i in range(0, job.block, ROWS):
            tile = zeros(ROWS, columns)
            for j in range(i, i + ROWS + 2 * job.window):
                slope = job.band + (i * width + GUARD + j - i) * 4
                tile = add_outer(tile, inputs + j * row_bytes, slope, (width - 1) * 4)
            put(tile, at, columns * VECTOR_BYTES)
            _add(job, job.inputs + i, ROWS, offset, at, columns)

    @compiled
    def update_noise(job, vectors, length, offset, scratch):
        row_bytes, pool = row_bytes_of(job), job.pool
        at = np.int64(scratch.ctypes.data)
        for n in range(0, pool, ROWS):
            tile = zeros(ROWS, columns)
            for j in range(length):
                slope = job.noise_slopes + (j * pool + n) * 4
                tile = add_outer(tile, vectors + j * row_bytes + offset, slope, 4)
            put(tile, at, columns * VECTOR_BYTES)
            _add(job, job.inputs + job.block + n, ROWS, offset, at, columns)

    @compiled
    def update_windows(job, block, offset, scratch):
        """CBOW's targets, and the inputs of their windows."""
        row_bytes, pool, window, first = row_bytes_of(job), job.pool, job.window, block * job.block
        slice_bytes, at = columns * VECTOR_BYTES, np.int64(scratch.ctypes.data)
        targets = job.copies + job.inputs * row_bytes + offset
        noise, own = targets + job.block * row_bytes, at + ROWS * slice_bytes
        sums = own + job.block * slice_bytes
        starts = numba.carray(pointer(job.starts), job.length, dtype=np.int32)
        ends = numba.carray(pointer(job.ends), job.length, dtype=np.int32)
        band = numba.carray(pointer(job.band), job.block, dtype=np.float32)
        weights = numba.carray(pointer(job.weights), job.inputs, dtype=np.float32)
        for i in range(0, job.block, ROWS):
            tile = zeros(ROWS, columns)
            slopes = job.noise_slopes + i * pool * 4
            for n in range(pool):
                tile = add_outer(tile, noise + n * row_bytes, slopes + n * 4, pool * 4)
            put(tile, own + i * slice_bytes, slice_bytes)
        for at_sum in range(sums, sums + job.inputs * slice_bytes, VECTOR_BYTES):
            store(at_sum, splat(np.float32(0)))
        for k in range(job.block):
            if weights[k] == 0:
                continue
            slope, i = splat(band[k]), first + k
            start, end = max(starts[i], i - window), min(ends[i], i + window + 1)
            inverse = splat(np.float32(1) / np.float32(end - start - 1))
            for v in range(0, slice_bytes, VECTOR_BYTES):
                hidden = load(job.hidden + k * row_bytes + offset + v)
                gradient = load(own + k * slice_bytes + v)
                gradient = gradient + slope * load(targets + k * row_bytes + v)
                store(own + k * slice_bytes + v, slope * hidden)
                gradient = gradient * inverse
                for j in range(start - first + window, end - first + window):
                    if j != k + window:
                        to = sums + j * slice_bytes + v
                        store(to, load(to) + gradient)
        _add(job, 0, job.inputs, offset, sums, columns)
        _add(job, job.inputs, job.block, offset, own, columns)

    @compiled
    def update(job, block, first, scratch):
        offset = first * VECTOR_BYTES
        if job.cbow != 0:
            update_windows(job, block, offset, scratch)
            update_noise(job, job.hidden, job.block, offset, scratch)
        else:
            update_inputs(job, offset, scratch)
            update_targets(job, offset, scratch)
            update_noise(job, job.copies, job.inputs, offset, scratch)
        if job.rule == CFADAM:
            _update_moments(job, first * LANES, min((first + columns) * LANES, job.dim))

    return update


@compiled
def _add(job, first, length, offset, at, columns):
    """Add a slice of gradients, one row after another at an address, to where they go."""
    rows = numba.carray(pointer(job.rows), first + length, dtype=np.int64)
    targets = numba.carray(pointer(job.targets), first + length, dtype=np.int64)
    scales = numba.carray(pointer(job.scales), first + length, dtype=np.float32)
    size = columns * VECTOR_BYTES
    if job.rule == LAW:
        size = min(size, job.dim * 4 - offset)
    squares = job.squares + offset + (0 if first < job.inputs else row_bytes_of(job))
    whole = size - size % VECTOR_BYTES
    for r in range(length):
        if rows[first + r] < 0:
            continue
        to, source = targets[first + r] + offset, at + r * columns * VECTOR_BYTES
        scale = splat(scales[first + r])
        for v in range(0, whole, VECTOR_BYTES):
            store(to + v, load(to + v) + scale * load(source + v))
        for v in range(whole, size, 4):
            set_number(to + v, number_at(to + v) + scales[first + r] * number_at(source + v))
        if job.rule == CFADAM:
            for v in range(0, whole, VECTOR_BYTES):
                gradient = load(source + v)
                store(squares + v, load(squares + v) + gradient * gradient)


update_one, update_two, update_three = _updater(1), _updater(2), _updater(3)


@compiled
def _update_moments(job, first, last):
    """Take the squares of a block into the second moments of some columns; clear them."""
    width = row_bytes_of(job) // 4
    squares = array_at(job.squares, (2, width), np.float32)
    scales = array_at(job.column_scales, (2, width), np.float32)
    moments = array_at(job.moments, (2, job.dim + 2), np.float64)
    if job.root_scale == 0:
        return
    for table in range(2):
        for j in range(first, last):
            s = job.beta2 * moments[table, j] + (1.0 - job.beta2) * squares[table, j]
            moments[table, j] = s
            scales[table, j] = 1.0 / (math.sqrt(s) * job.root_scale + job.eps)
            squares[table, j] = 0


@compiled
def update_rows(job, part):
    """Update a part of the block's rows by their whole gradients."""
    length = job.inputs + job.block + job.pool
    rows = numba.carray(pointer(job.rows), length, dtype=np.int64)
    owners = numba.carray(pointer(job.owners), length, dtype=np.int64)
    tables, dim = (job.input, job.output), job.dim
    for k in range(length * part // PARTS, length * (part + 1) // PARTS):
        if owners[k] != k or rows[k] < 0:
            continue
        table = 0 if k < job.inputs else 1
        start = tables[table] + rows[k] * dim * 4
        weight = numba.carray(pointer(start), dim, dtype=np.float32)
        start = job.gradients + k * row_bytes_of(job)
        gradient = numba.carray(pointer(start), dim, dtype=np.float32)
        if job.rule == CFADAM:
            _cfadam(job, table, k, weight, gradient)
        else:
            _adagrad(job, table, rows[k], weight, gradient)
        for j in range(dim):
            gradient[j] = 0


@compiled
def _adagrad(job, table, row, weight, gradient):
    dim, states = job.dim, (job.input_state, job.output_state)
    state = numba.carray(pointer(states[table]), job.words, dtype=np.float32)
    squares = np.float32(0)
    for j in range(dim):
        squares += gradient[j] * gradient[j]
    state[row] += squares / dim
    by = np.float32(job.lr / (math.sqrt(state[row]) + job.eps))
    for j in range(dim):
        weight[j] -= by * gradient[j]


@compiled
def _cfadam(job, table, k, weight, gradient):
    """Move a row by its gradient, with scaled columns and bounded."""
    dim, row_bytes = job.dim, row_bytes_of(job)
    rate = np.float64(array_at(job.rates, k + 1, np.float32)[k])
    bound = np.float64(array_at(job.bounds, k + 1, np.float32)[k])
    columns = job.column_scales + table * row_bytes
    source, to = np.int64(gradient.ctypes.data), np.int64(weight.ctypes.data)
    squares = sum_squared_products(source, columns, row_bytes // 4, np.float32(0))
    by = np.float32(-rate if squares <= bound else -rate * math.sqrt(bound / squares))
    whole = dim - dim % LANES
    for offset in range(0, whole * 4, VECTOR_BYTES):
        add_scaled_product(to + offset, source + offset, columns + offset, by)
    scales = array_at(columns, dim, np.float32)
    for j in range(whole, dim):
        weight[j] += by * gradient[j] * scales[j]
