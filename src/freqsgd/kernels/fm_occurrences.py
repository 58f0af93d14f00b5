"""The rows that a batch holds: where each occurs, how often, and A, the sum of g S over these.

The occurrences in a part of a field are numbered, and so are its distinct rows. The occurrences of
row k are chained, in the order of the batch: heads[k], following[heads[k]], ..., -1.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from freqsgd.kernels.fm_job import columns_of
from freqsgd.kernels.machine import BLOCK, array_at, compiled, inlined, prefetch
from freqsgd.kernels.simd import LANES, load, number_at, set_number, splat, store

__all__ = ["add_sums", "count", "find_frequencies", "find_occurrences", "row_scratch"]

_Scratch = namedtuple("_Scratch", "occurrences distinct gradient no_gradient")
_Occurrences = namedtuple("_Occurrences", "rows positions following")
_Distinct = namedtuple("_Distinct", "rows heads times marks slopes frequencies rates scales")


@compiled
def row_scratch(job, marks):
    """Return room for the rows of a part of a field."""
    width = 0
    if job.update != 0:
        for field in range(job.fields):
            first, last = columns_of(job, field)
            width = max(width, last - first)
    length = width * job.batch_size
    return _Scratch(
        _Occurrences(
            rows=np.empty(length, np.int64),
            positions=np.empty(length, np.uint32),  # in the batch
            following=np.empty(length, np.int32),
        ),
        _Distinct(
            rows=np.empty(length, np.int64),
            heads=np.empty(length, np.int32),
            times=np.empty(length, np.int32),  # number of occurrences
            marks=np.empty(length, marks.dtype),  # before the batch, and then after it
            slopes=np.empty(length, np.float64),  # G, the sum over occurrences
            frequencies=np.empty(length, np.float64),
            rates=np.empty(length, np.float64),
            scales=np.empty(length, np.float64),
        ),
        gradient=np.empty(job.dim + 1, np.float32),
        no_gradient=np.zeros(job.dim + 1, np.float32),
    )


@compiled
def find_occurrences(job, size, field, shard, scratch, marks):
    """Chain the occurrences of each row in a batch of ``size``; return the number of rows.

    Until they are counted, the mark of row k is -1 - k.
    """
    occurrences, distinct = scratch.occurrences, scratch.distinct
    rows, positions, following = occurrences.rows, occurrences.positions, occurrences.following
    heads, times, slopes = distinct.heads, distinct.times, distinct.slopes
    batch_size, shift, mask = job.batch_size, job.shard_shift, job.shards - 1
    rows_of_batch = array_at(job.rows, job.columns * batch_size, np.int64)
    slopes_of_batch = array_at(job.slopes, batch_size, np.float32)
    marks_address = job.marks
    mark = array_at(marks_address, 1, marks.dtype)
    length = 0
    first, last = columns_of(job, field)
    for c in range(first, last):
        for b in range(size):
            row = rows_of_batch[c * batch_size + b]
            rows[length] = row
            positions[length] = b
            length += (row >= 0) & ((row >> shift) & mask == shard)

    found = 0
    for i in range(length - 1, -1, -1):
        if i >= BLOCK:
            prefetch(marks_address + rows[i - BLOCK] * marks.itemsize)
        row, slope = rows[i], slopes_of_batch[positions[i]]
        old = mark[row]
        if old >= 0:
            distinct.rows[found], distinct.marks[found], times[found] = row, old, 1
            slopes[found], following[i], heads[found] = slope, -1, i
            mark[row] = -1 - found
            found += 1
        else:
            k = np.int64(-1 - old)
            times[k] += 1
            slopes[k] += slope
            following[i], heads[k] = heads[k], i
    return found


@compiled
def count(job, step, found, scratch, marks):
    """Count the occurrences of the rows found; write their marks back."""
    distinct = scratch.distinct
    if job.once_per_step != 0:
        distinct.times[:found] = 1
    if job.gains != 0:
        _count_fading(job, step, found, scratch.occurrences, distinct)
    else:
        for k in range(found):
            distinct.marks[k] += job.counted * distinct.times[k]
    mark = array_at(job.marks, 1, marks.dtype)
    for k in range(found):
        mark[distinct.rows[k]] = distinct.marks[k]


@compiled
def _count_fading(job, step, found, occurrences, distinct):
    gains = array_at(job.gains, job.batch_size, np.float64)
    factor = array_at(job.gain_factors, step + 1, np.float64)[step]
    for k in range(found):
        gained, i = 0.0, distinct.heads[k]
        while i >= 0:
            gained += gains[occurrences.positions[i]]
            i = occurrences.following[i]
        distinct.marks[k] += gained * factor


@compiled
def find_frequencies(job, step, size, found, distinct):
    """Write the frequencies of the rows found, ``size`` samples of the step included."""
    if job.frequencies != 0:
        given = array_at(job.frequencies, 1, np.float32)
        for k in range(found):
            distinct.frequencies[k] = given[distinct.rows[k]]
    elif job.counted != 0:
        steps, samples = job.steps_before + step, job.samples_before + step * job.batch_size
        seen = float((steps if job.once_per_step != 0 else samples) + size)
        if job.gains != 0:
            seen = array_at(job.masses, step + 1, np.float64)[step]
        for k in range(found):
            distinct.frequencies[k] = distinct.marks[k] / seen
    else:
        for k in range(found):
            distinct.frequencies[k] = 1.0


@inlined
def add_sums(job, field, occurrences, head, scale, by, start):
    """Replace the vector at ``start`` by ``scale * vector + by * A``.

    A includes ``vectors_gradient``, where there is one.
    """
    dim = job.dim
    whole, j = dim - dim % LANES, 0
    scales, steps = splat(scale), splat(by)
    while j + 4 * LANES <= dim:
        a, b, c, d = _chain_four(job, field, occurrences, head, j * 4)
        at = start + j * 4
        store(at, scales * load(at) + steps * a)
        store(at + 4 * LANES, scales * load(at + 4 * LANES) + steps * b)
        store(at + 8 * LANES, scales * load(at + 8 * LANES) + steps * c)
        store(at + 12 * LANES, scales * load(at + 12 * LANES) + steps * d)
        j += 4 * LANES
    if j + 2 * LANES <= dim:
        a, b = _chain_two(job, field, occurrences, head, j * 4)
        at = start + j * 4
        store(at, scales * load(at) + steps * a)
        store(at + 4 * LANES, scales * load(at + 4 * LANES) + steps * b)
        j += 2 * LANES
    if j < whole:
        at = start + j * 4
        a = _chain_one(job, field, occurrences, head, j * 4)
        store(at, scales * load(at) + steps * a)
    for j in range(whole, dim):
        at = start + j * 4
        s = _chain_number(job, field, occurrences, head, j * 4)
        set_number(at, scale * number_at(at) + by * s)


# The next four compute A along a chain, for some of the numbers of a row: four vectors, two, one,
# and a single number.


@inlined
def _chain_four(job, field, occurrences, head, offset):
    a = b = c = d = splat(np.float32(0))
    i = head
    while i >= 0:
        position = np.int64(occurrences.positions[i])
        i = occurrences.following[i]
        g = splat(number_at(job.slopes + position * 4))
        at = job.sums + position * job.dim * 4 + offset
        a, b = a + g * load(at), b + g * load(at + 4 * LANES)
        c, d = c + g * load(at + 8 * LANES), d + g * load(at + 12 * LANES)
        if job.vectors_gradient != 0:
            at = _vector_gradient(job, position, field) + offset
            a, b = a + load(at), b + load(at + 4 * LANES)
            c, d = c + load(at + 8 * LANES), d + load(at + 12 * LANES)
    return a, b, c, d


@inlined
def _chain_two(job, field, occurrences, head, offset):
    a = b = splat(np.float32(0))
    i = head
    while i >= 0:
        position = np.int64(occurrences.positions[i])
        i = occurrences.following[i]
        g = splat(number_at(job.slopes + position * 4))
        at = job.sums + position * job.dim * 4 + offset
        a, b = a + g * load(at), b + g * load(at + 4 * LANES)
        if job.vectors_gradient != 0:
            at = _vector_gradient(job, position, field) + offset
            a, b = a + load(at), b + load(at + 4 * LANES)
    return a, b


@inlined
def _chain_one(job, field, occurrences, head, offset):
    a = splat(np.float32(0))
    i = head
    while i >= 0:
        position = np.int64(occurrences.positions[i])
        i = occurrences.following[i]
        g = splat(number_at(job.slopes + position * 4))
        a = a + g * load(job.sums + position * job.dim * 4 + offset)
        if job.vectors_gradient != 0:
            a = a + load(_vector_gradient(job, position, field) + offset)
    return a


@inlined
def _chain_number(job, field, occurrences, head, offset):
    a = np.float32(0)
    i = head
    while i >= 0:
        position = np.int64(occurrences.positions[i])
        i = occurrences.following[i]
        g = number_at(job.slopes + position * 4)
        a += g * number_at(job.sums + position * job.dim * 4 + offset)
        if job.vectors_gradient != 0:
            a += number_at(_vector_gradient(job, position, field) + offset)
    return a


@inlined
def _vector_gradient(job, position, field):
    return job.vectors_gradient + (position * job.fields + field) * job.dim * 4
