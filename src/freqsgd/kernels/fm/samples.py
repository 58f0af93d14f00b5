"""The first phase of a step: log odds, slopes, sums and squares of samples, a chunk at a time."""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from freqsgd.kernels.fm.job import AHEAD, CHUNK, PAD, batch_of, span_of
from freqsgd.kernels.machine import (
    BLOCK,
    array_at,
    compiled,
    inlined,
    prefetch_only,
    prefetch_row_only,
)
from freqsgd.kernels.simd import (
    LANES,
    exp_of_minus_abs,
    load,
    number_at,
    set_number,
    splat,
    store,
    total,
)

__all__ = ["predict_chunk", "sample_scratch", "square_chunk"]

_Scratch = namedtuple("_Scratch", "addresses logits labels exponentials bits empty_row")


@compiled
def sample_scratch(job):
    """Return room for a chunk of samples."""
    return _Scratch(
        addresses=np.empty(CHUNK * job.columns, np.int64),  # of rows, sample after sample
        logits=np.empty(CHUNK, np.float32),
        labels=np.empty(CHUNK, np.float32),
        exponentials=np.empty(CHUNK, np.float32),  # exp(-|logit|)
        bits=np.empty(CHUNK, np.int32),
        empty_row=np.zeros(job.dim + 1, np.float32),  # stands for the row of an empty column
    )


@compiled
def predict_chunk(job, step, chunk, scratch):
    """Compute log odds, slopes and sums of a chunk; return False if the loss is not finite."""
    start, size = batch_of(job, step)
    low, high = chunk * CHUNK, min((chunk + 1) * CHUNK, size)
    if low >= high:
        return True
    _find_rows(job, start + low, low, high - low, scratch)
    _find_logits(job, low, high - low, scratch)
    if job.logits != 0:
        kept = array_at(job.logits, job.last - job.first, np.float32)
        for i in range(high - low):
            kept[start - job.first + low + i] = scratch.logits[i]
    if job.slopes == 0:
        return True
    loss = _find_slopes(job, start + low, low, high - low, size, scratch)
    array_at(job.chunk_losses, chunk + 1, np.float64)[chunk] = loss
    return math.isfinite(loss)


@compiled
def _find_rows(job, first, low, count, scratch):
    """Turn ids of ``count`` samples into addresses of rows; read their labels.

    The samples are at positions ``first`` and following, which are ``low`` and following of the
    batch. The ids are kept by column for the second phase.
    """
    addresses, labels = scratch.addresses, scratch.labels
    empty = np.int64(scratch.empty_row.ctypes.data)
    columns, last = job.columns, job.last
    weight, row_bytes = job.weight, (job.dim + 1) * 4
    keep, shuffled, known = job.batch_ids != 0, job.order != 0, job.labels != 0
    ids_address, labels_address = job.ids, job.labels
    order = array_at(job.order, last, np.int64)
    ids = array_at(ids_address, 1, np.int32)
    all_labels = array_at(labels_address, 1, np.uint8)
    starts = array_at(job.columns_start, columns, np.int64)
    sizes = array_at(job.columns_size, columns, np.int64)
    stride = job.batch_size + PAD
    kept = array_at(job.batch_ids, columns * stride, np.int32)
    for i in range(count):
        position = first + i
        if shuffled and position + BLOCK < last:
            following = order[position + BLOCK]
            prefetch_row_only(ids_address + following * columns * 4, columns * 4)
            prefetch_only(labels_address + following)
        sample = order[position] if shuffled else position
        if known:
            labels[i] = all_labels[sample]
        for c in range(columns):
            number = ids[sample * columns + c]
            if number >= sizes[c]:
                job.bad_id = sample * columns + c
                number = -1
            row = starts[c] + number
            addresses[i * columns + c] = weight + row * row_bytes if number >= 0 else empty
            if keep:
                kept[c * stride + low + i] = number


@compiled
def _find_logits(job, low, count, scratch):
    """Compute log odds of samples; write S of each, and vectors where these are asked for."""
    columns, dim, fields = job.columns, job.dim, job.fields
    row_bytes, whole = (dim + 1) * 4, dim - dim % LANES
    sums, vectors = job.sums, job.vectors
    bias = number_at(job.bias)
    addresses, logits = scratch.addresses, scratch.logits
    ahead = 0
    for i in range(count):
        base, end = i * columns, (i + 1) * columns
        while ahead < min(end + 2 * AHEAD, count * columns):
            prefetch_row_only(addresses[ahead], row_bytes)
            ahead += 1
        to = 0 if sums == 0 else sums + (low + i) * dim * 4
        pairs, j = splat(np.float32(0)), 0
        while j + 4 * LANES <= dim:
            pairs = pairs + _sum_four(addresses, base, end, j * 4, to)
            j += 4 * LANES
        if j + 2 * LANES <= dim:
            pairs = pairs + _sum_two(addresses, base, end, j * 4, to)
            j += 2 * LANES
        if j < whole:
            pairs = pairs + _sum_one(addresses, base, end, j * 4, to)
        z = total(pairs)
        for j in range(whole, dim):
            z += _sum_number(addresses, base, end, j * 4, to)
        if vectors != 0:
            _copy_vectors(job, addresses, base, vectors + (low + i) * fields * dim * 4)
        linear = np.float32(0)
        for k in range(base, end):
            linear += number_at(addresses[k] + dim * 4)
        logits[i] = bias + linear + np.float32(0.5) * z


# The next four compute the sum S of some of the numbers of rows, write it unless ``to`` is 0, and
# return |S|^2 minus the sum of squares: for four vectors, two, one, and a single number.


@inlined
def _sum_four(addresses, base, end, offset, to):
    a = b = c = d = squares = more = splat(np.float32(0))
    for k in range(base, end):
        at = addresses[k] + offset
        w, x = load(at), load(at + 4 * LANES)
        y, z = load(at + 8 * LANES), load(at + 12 * LANES)
        a, b, c, d = a + w, b + x, c + y, d + z
        squares, more = squares + w * w + x * x, more + y * y + z * z
    if to != 0:
        store(to + offset, a)
        store(to + offset + 4 * LANES, b)
        store(to + offset + 8 * LANES, c)
        store(to + offset + 12 * LANES, d)
    return (a * a + b * b - squares) + (c * c + d * d - more)


@inlined
def _sum_two(addresses, base, end, offset, to):
    a = b = squares = more = splat(np.float32(0))
    for k in range(base, end):
        at = addresses[k] + offset
        x, y = load(at), load(at + 4 * LANES)
        a, b = a + x, b + y
        squares, more = squares + x * x, more + y * y
    if to != 0:
        store(to + offset, a)
        store(to + offset + 4 * LANES, b)
    return (a * a - squares) + (b * b - more)


@inlined
def _sum_one(addresses, base, end, offset, to):
    a = squares = splat(np.float32(0))
    for k in range(base, end):
        x = load(addresses[k] + offset)
        a, squares = a + x, squares + x * x
    if to != 0:
        store(to + offset, a)
    return a * a - squares


@inlined
def _sum_number(addresses, base, end, offset, to):
    a = squares = np.float32(0)
    for k in range(base, end):
        x = number_at(addresses[k] + offset)
        a, squares = a + x, squares + x * x
    if to != 0:
        set_number(to + offset, a)
    return a * a - squares


@compiled
def _copy_vectors(job, addresses, base, to):
    """Write the vectors of one sample, field after field, summed where a field is a bag."""
    dim, whole = job.dim, job.dim - job.dim % LANES
    for field in range(job.fields):
        first, last, _, _ = span_of(job, field)
        target = to + field * dim * 4
        for j in range(0, 4 * whole, 4 * LANES):
            values = load(addresses[base + first] + j)
            for c in range(first + 1, last):
                values = values + load(addresses[base + c] + j)
            store(target + j, values)
        for j in range(4 * whole, 4 * dim, 4):
            value = number_at(addresses[base + first] + j)
            for c in range(first + 1, last):
                value += number_at(addresses[base + c] + j)
            set_number(target + j, value)


@compiled
def _find_slopes(job, first, low, count, size, scratch):
    """Write the slopes of samples of a batch of ``size``; return the sum of their losses."""
    logits, labels, exponentials = scratch.logits, scratch.labels, scratch.exponentials
    slopes = array_at(job.slopes + low * 4, count, np.float32)
    one, zero = np.float32(1), np.float32(0)
    exp_of_minus_abs(logits, count, scratch.bits, exponentials)
    mean = one / np.float32(size)
    for i in range(count):
        chance = (one if logits[i] >= zero else exponentials[i]) / (one + exponentials[i])
        slopes[i] = (chance - labels[i]) * mean
    if job.sample_weights != 0:
        return _weigh(job, first, slopes, scratch)
    loss, product = 0.0, 1.0
    for i in range(count):
        loss += max(logits[i], zero) - logits[i] * labels[i]
        product *= 1.0 + exponentials[i]  # at most 2 ** CHUNK
    return loss + math.log(product)


@compiled
def _weigh(job, first, slopes, scratch):
    """Give the samples from a position on their weights; return the sum of their losses."""
    logits, labels, exponentials = scratch.logits, scratch.labels, scratch.exponentials
    weights = array_at(job.sample_weights, 1, np.float32)
    order = array_at(job.order, job.last, np.int64)
    total_loss = 0.0
    for i in range(len(slopes)):
        weight = weights[order[first + i] if job.order != 0 else first + i]
        slopes[i] *= weight
        loss = max(logits[i], 0.0) - logits[i] * labels[i] + math.log1p(exponentials[i])
        total_loss += weight * loss
    return total_loss


@compiled
def square_chunk(job, step, chunk):
    """Sum the squares of the gradients of a chunk's occurrences, by field and column."""
    size = batch_of(job, step)[1]
    low, high = chunk * CHUNK, min((chunk + 1) * CHUNK, size)
    dim = job.dim
    stride = job.batch_size + PAD
    ids = array_at(job.batch_ids, job.columns * stride, np.int32)
    slopes = array_at(job.slopes, size, np.float32)
    squares = array_at(job.chunk_squares, (chunk + 1, job.fields, dim + 2), np.float32)[chunk]
    squares[:] = 0
    for field in range(job.fields):
        to = np.int64(squares[field].ctypes.data)
        first, last, first_row, _ = span_of(job, field)
        vectors = job.weight + first_row * (dim + 1) * 4
        linear, occurrences = np.float32(0), np.float32(0)
        for c in range(first, last):
            of_column = ids[c * stride : c * stride + high]
            for b in range(low, high):
                holds = np.float32(of_column[b] >= 0)
                linear += holds * slopes[b] * slopes[b]
                occurrences += holds
            j = 0
            while j + 4 * LANES <= dim:
                _square_four(job, field, of_column, low, vectors, j * 4, to)
                j += 4 * LANES
            while j + LANES <= dim:
                _square_one(job, field, of_column, low, vectors, j * 4, to)
                j += LANES
            while j < dim:
                _square_number(job, field, of_column, low, vectors, j * 4, to)
                j += 1
        squares[field, dim], squares[field, dim + 1] = linear, occurrences


def _squarer(lanes):
    """Return the part of :func:`square_chunk` that handles so many numbers of a row at once."""

    @inlined
    def square(job, field, ids, low, vectors, offset, to):
        dim = job.dim
        sums = splat(np.float32(0), lanes)
        for b in range(low, len(ids)):
            if ids[b] >= 0:
                slope = splat(number_at(job.slopes + b * 4), lanes)
                own = load(vectors + ids[b] * (dim + 1) * 4 + offset, lanes)
                gradient = slope * (load(job.sums + b * dim * 4 + offset, lanes) - own)
                if job.vectors_gradient != 0:
                    at = job.vectors_gradient + (b * job.fields + field) * dim * 4
                    gradient = gradient + load(at + offset, lanes)
                sums = sums + gradient * gradient
        store(to + offset, load(to + offset, lanes) + sums)

    return square


_square_four, _square_one = _squarer(4 * LANES), _squarer(LANES)


@inlined
def _square_number(job, field, ids, low, vectors, offset, to):
    dim, total = job.dim, number_at(to + offset)
    for b in range(low, len(ids)):
        if ids[b] >= 0:
            own = number_at(vectors + ids[b] * (dim + 1) * 4 + offset)
            gradient = number_at(job.slopes + b * 4) * (
                number_at(job.sums + b * dim * 4 + offset) - own
            )
            if job.vectors_gradient != 0:
                at = job.vectors_gradient + (b * job.fields + field) * dim * 4
                gradient += number_at(at + offset)
            total += gradient * gradient
    set_number(to + offset, total)
