"""The rows that a batch holds: where each occurs, how often, and A, the sum of g S over these.

The occurrences in a part of a field are numbered, and so are its distinct rows. The occurrences of
row k are chained, in the order of the batch: heads[k], following[heads[k]], ..., -1.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from freqsgd.kernels.fm.job import PAD, span_of
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
            first, last, _, _ = span_of(job, field)
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
    distinct_rows, old_marks, heads = distinct.rows, distinct.marks, distinct.heads
    times, slopes = distinct.times, distinct.slopes
    shift, mask, stride = job.shard_shift, job.shards - 1, job.batch_size + PAD
    ids_of_batch = array_at(job.batch_ids, job.columns * stride, np.int32)
    slopes_of_batch = array_at(job.slopes, job.batch_size, np.float32)
    marks_address = job.marks
    mark = array_at(marks_address, 1, marks.dtype)
    length = 0
    first, last, first_row, _ = span_of(job, field)
    for c in range(first, last):
        for b in range(size):
            number = ids_of_batch[c * stride + b]
            row = first_row + number
            rows[length] = row
            positions[length] = b
            length += (number >= 0) & ((row >> shift) & mask == shard)

    found = 0
    for i in range(length - 1, -1, -1):
        if i >= BLOCK:
            prefetch(marks_address + rows[i - BLOCK] * marks.itemsize)
        row, slope = rows[i], slopes_of_batch[positions[i]]
        old = mark[row]
        if old >= 0:
            distinct_rows[found], old_marks[found], times[found] = row, old, 1
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
    rows, times, new_marks = distinct.rows, distinct.times, distinct.marks
    if job.once_per_step != 0:
        times[:found] = 1
    if job.gains != 0:
        _count_fading(job, step, found, scratch.occurrences, distinct)
    else:
        for k in range(found):
            new_marks[k] += job.counted * times[k]
    mark = array_at(job.marks, 1, marks.dtype)
    for k in range(found):
        mark[rows[k]] = new_marks[k]


@compiled
def _count_fading(job, step, found, occurrences, distinct):
    gains = array_at(job.gains, job.batch_size, np.float64)
    factor = array_at(job.gain_factors, step + 1, np.float64)[step]
    positions, following = occurrences.positions, occurrences.following
    heads, marks = distinct.heads, distinct.marks
    for k in range(found):
        gained, i = 0.0, heads[k]
        while i >= 0:
            gained += gains[positions[i]]
            i = following[i]
        marks[k] += gained * factor


@compiled
def find_frequencies(job, step, size, found, distinct):
    """Write the frequencies of the rows found, ``size`` samples of the step included."""
    rows, marks, frequencies = distinct.rows, distinct.marks, distinct.frequencies
    if job.frequencies != 0:
        given = array_at(job.frequencies, 1, np.float32)
        for k in range(found):
            frequencies[k] = given[rows[k]]
    elif job.counted != 0:
        steps, samples = job.steps_before + step, job.samples_before + step * job.batch_size
        seen = float((steps if job.once_per_step != 0 else samples) + size)
        if job.gains != 0:
            seen = array_at(job.masses, step + 1, np.float64)[step]
        for k in range(found):
            frequencies[k] = marks[k] / seen
    else:
        for k in range(found):
            frequencies[k] = 1.0


def _adder(lanes):
    """Return the part of :func:`add_sums` that handles so many numbers of a row at once."""

    @inlined
    def add(job, field, occurrences, head, scale, by, start, to, offset):
        sums = splat(np.float32(0), lanes)
        i = head
        while i >= 0:
            position = np.int64(occurrences.positions[i])
            i = occurrences.following[i]
            slope = splat(number_at(job.slopes + position * 4), lanes)
            sums = sums + slope * load(job.sums + position * job.dim * 4 + offset, lanes)
            if job.vectors_gradient != 0:
                at = job.vectors_gradient + (position * job.fields + field) * job.dim * 4
                sums = sums + load(at + offset, lanes)
        old = load(start + offset, lanes)
        store(to + offset, splat(scale, lanes) * old + splat(by, lanes) * sums)

    return add


_add_four, _add_two, _add_one = _adder(4 * LANES), _adder(2 * LANES), _adder(LANES)


@inlined
def _add_number(job, field, occurrences, head, scale, by, start, to, offset):
    total = np.float32(0)
    i = head
    while i >= 0:
        position = np.int64(occurrences.positions[i])
        i = occurrences.following[i]
        slope = number_at(job.slopes + position * 4)
        total += slope * number_at(job.sums + position * job.dim * 4 + offset)
        if job.vectors_gradient != 0:
            at = job.vectors_gradient + (position * job.fields + field) * job.dim * 4
            total += number_at(at + offset)
    set_number(to + offset, scale * number_at(start + offset) + by * total)


@inlined
def add_sums(job, field, occurrences, head, scale, by, start, to):
    """Write ``scale * vector + by * A``, of the vector at ``start``, to the address ``to``.

    A includes ``vectors_gradient``, where there is one.
    """
    dim, j = job.dim, 0
    while j + 4 * LANES <= dim:
        _add_four(job, field, occurrences, head, scale, by, start, to, j * 4)
        j += 4 * LANES
    if j + 2 * LANES <= dim:
        _add_two(job, field, occurrences, head, scale, by, start, to, j * 4)
        j += 2 * LANES
    if j + LANES <= dim:
        _add_one(job, field, occurrences, head, scale, by, start, to, j * 4)
        j += LANES
    while j < dim:
        _add_number(job, field, occurrences, head, scale, by, start, to, j * 4)
        j += 1
