"""The first phase of a block of words: which rows it needs, how often, at which rates."""

from __future__ import annotations

import math

import numba
import numpy as np

from freqsgd.kernels.machine import array_at, compiled, pointer
from freqsgd.kernels.rows import bound, rate
from freqsgd.kernels.words.job import row_bytes_of
from freqsgd.optimizers import CFADAM, LAW

__all__ = ["make_plan"]


@compiled
def make_plan(job, block, counts):
    """Find the rows of a block and their rates; count first, as the law wants it."""
    inputs, targets, pool = job.inputs, job.block, job.pool
    rows = numba.carray(pointer(job.rows), inputs + targets + pool, dtype=np.int64)
    input_counts = numba.carray(pointer(job.input_counts), job.words, dtype=counts.dtype)
    output_counts = numba.carray(pointer(job.output_counts), job.words, dtype=counts.dtype)
    counted = job.input_counts != 0 and job.rule == LAW
    if job.cbow != 0:
        samples = _plan_cbow(job, block, rows, input_counts, output_counts, counted)
    else:
        samples = _plan_skipgram(job, block, rows, input_counts, output_counts, counted)
    _draw_noise(job, block, rows[inputs + targets :])
    job.samples += samples
    touches = numba.carray(pointer(job.touches), len(rows), dtype=np.float32)
    touched = samples * job.negatives
    for k in range(pool):  # a noise word is touched by its share of all samples
        share = touched // pool + (1 if k < touched % pool else 0)
        touches[inputs + targets + k] = share
        if counted:
            output_counts[rows[inputs + targets + k]] += output_counts.dtype.type(share)
    if job.rule != LAW:
        _find_owners(job, rows)
        if job.rule == CFADAM:
            _count_places(job, rows, samples, input_counts, output_counts)
    else:
        n = max(1, job.samples)
        frequencies = numba.carray(pointer(job.input_frequencies), job.words, dtype=np.float32)
        known, table = job.input_frequencies != 0, job.input
        _find_rates(job, rows, 0, inputs, table, known, frequencies, counted, input_counts, n)
        frequencies = numba.carray(pointer(job.output_frequencies), job.words, dtype=np.float32)
        last, table = inputs + targets + pool, job.output
        _find_rates(job, rows, inputs, last, table, known, frequencies, counted, output_counts, n)


@compiled
def _plan_skipgram(job, block, rows, input_counts, output_counts, counted):
    """Rows of inputs and targets, the pairs of each; returns the number of pairs."""
    ids = numba.carray(pointer(job.ids), job.length, dtype=np.int32)
    starts = numba.carray(pointer(job.starts), job.length, dtype=np.int32)
    ends = numba.carray(pointer(job.ends), job.length, dtype=np.int32)
    weights = numba.carray(pointer(job.weights), job.inputs, dtype=np.float32)
    touches = numba.carray(pointer(job.touches), job.inputs + job.block, dtype=np.float32)
    window, full = job.window, job.full != 0
    first, last = block * job.block, min((block + 1) * job.block, job.length)
    samples = 0
    for k in range(job.inputs):
        j, pairs = first - window + k, 0
        if 0 <= j < min(last + window, job.length) and is_centre(j, starts, ends, window, full):
            low = max(starts[j], j - window, first)
            high = min(ends[j], j + window + 1, last)
            pairs = max(0, high - low - (1 if low <= j < high else 0))
        rows[k] = ids[j] if pairs > 0 else -1
        weights[k] = pairs
        touches[k] = pairs * (1 + job.negatives)
        samples += pairs
        if counted and pairs > 0:
            input_counts[ids[j]] += input_counts.dtype.type(pairs)
    for k in range(job.block):
        i, pairs = first + k, 0
        if i < last:
            for j in range(max(starts[i], i - window), min(ends[i], i + window + 1)):
                if j != i and is_centre(j, starts, ends, window, full):
                    pairs += 1
        rows[job.inputs + k] = ids[i] if pairs > 0 else -1
        touches[job.inputs + k] = pairs
        if counted and pairs > 0:
            output_counts[ids[i]] += output_counts.dtype.type(pairs)
    return samples


@compiled
def _plan_cbow(job, block, rows, input_counts, output_counts, counted):
    """Rows of inputs and targets, which targets have a window; returns their number."""
    ids = numba.carray(pointer(job.ids), job.length, dtype=np.int32)
    starts = numba.carray(pointer(job.starts), job.length, dtype=np.int32)
    ends = numba.carray(pointer(job.ends), job.length, dtype=np.int32)
    weights = numba.carray(pointer(job.weights), job.inputs, dtype=np.float32)
    touches = numba.carray(pointer(job.touches), job.inputs + job.block, dtype=np.float32)
    window, full = job.window, job.full != 0
    first, last = block * job.block, min((block + 1) * job.block, job.length)
    one = input_counts.dtype.type(1)
    samples = 0
    for k in range(job.inputs):
        rows[k] = -1
        touches[k] = 0
    for k in range(job.block):
        i = first + k
        rows[job.inputs + k] = -1
        weights[k] = 0
        if i < last and ends[i] - starts[i] > 1 and is_centre(i, starts, ends, window, full):
            rows[job.inputs + k] = ids[i]
            touches[job.inputs + k] = 1
            weights[k] = 1
            samples += 1
            if counted:
                output_counts[ids[i]] += one
            start, end = max(starts[i], i - window), min(ends[i], i + window + 1)
            part = np.float32(1 + job.negatives) / np.float32(end - start - 1)
            for j in range(start, end):
                if j != i:
                    rows[j - first + window] = ids[j]
                    touches[j - first + window] += part
                    if counted:
                        input_counts[ids[j]] += one
    return samples


@compiled
def is_centre(j, starts, ends, window, full):
    return not full or (j - starts[j] >= window and ends[j] - j > window)


@compiled
def _draw_noise(job, block, rows):
    """Draw the pool: a stream of random numbers that block and seed determine."""
    noise = numba.carray(pointer(job.noise), job.words, dtype=np.float64)
    state = np.uint64(job.seed) + np.uint64(block) * np.uint64(0xD1342543DE82EF95)
    for k in range(len(rows)):
        state += np.uint64(0x9E3779B97F4A7C15)  # splitmix64
        z = state
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        wanted = np.float64(z >> np.uint64(11)) / 9007199254740992.0
        low, high = 0, job.words - 1
        while low < high:
            middle = (low + high) // 2
            if noise[middle] > wanted:
                high = middle
            else:
                low = middle + 1
        rows[k] = low


@compiled
def _find_rates(job, rows, first, last, table, known, frequencies, counted, counts, n):
    """Where gradients go, and times which rate.

    The samples of a block do not see each other's updates. So a row that very many of them touch,
    which would overshoot if all their gradients were added up, has a lower rate in this block.
    """
    targets = numba.carray(pointer(job.targets), last, dtype=np.int64)
    scales = numba.carray(pointer(job.scales), last, dtype=np.float32)
    touches = numba.carray(pointer(job.touches), last, dtype=np.float32)
    totals = numba.carray(pointer(job.totals), (2, job.words), dtype=np.float32)
    total = totals[0 if first == 0 else 1]
    lr, power, cap, row_bytes, most = job.lr, job.power, job.cap, job.dim * 4, job.most
    for k in range(first, last):
        if rows[k] >= 0:
            total[rows[k]] += touches[k]
    for k in range(first, last):
        row = rows[k]
        if row >= 0:
            p = 1.0
            if known:
                p = np.float64(frequencies[row])
            elif counted:
                p = max(1, counts[row]) / n
            targets[k] = table + row * row_bytes
            scales[k] = -min(rate(p, lr, power, cap), most / max(total[row], np.float32(1)))
    for k in range(first, last):
        if rows[k] >= 0:
            total[rows[k]] = 0


@compiled
def _find_owners(job, rows):
    """Where the gradients of a row are added up: at its first place."""
    length, row_bytes = len(rows), row_bytes_of(job)
    targets = numba.carray(pointer(job.targets), length, dtype=np.int64)
    scales = numba.carray(pointer(job.scales), length, dtype=np.float32)
    owners = numba.carray(pointer(job.owners), length, dtype=np.int64)
    marks = numba.carray(pointer(job.marks), (2, job.words), dtype=np.int64)
    for k in range(length):
        owners[k] = -1
        if rows[k] >= 0:
            table = 0 if k < job.inputs else 1
            if marks[table, rows[k]] < 0:
                marks[table, rows[k]] = k
            owners[k] = marks[table, rows[k]]
            targets[k] = job.gradients + owners[k] * row_bytes
            scales[k] = 1
    for k in range(length):
        if rows[k] >= 0:
            marks[0 if k < job.inputs else 1, rows[k]] = -1


@compiled
def _count_places(job, rows, samples, input_counts, output_counts):
    """Count each place of a block once, then find the rates and the bounds of its rows."""
    job.root_scale = 0.0
    if samples == 0:
        return
    length, dim = len(rows), job.dim
    moments = array_at(job.moments, (2, dim + 2), np.float64)
    rates = array_at(job.rates, length, np.float32)
    bounds = array_at(job.bounds, length, np.float32)
    for table in range(2):
        first, last = (0, job.inputs) if table == 0 else (job.inputs, length)
        counts, places = input_counts if table == 0 else output_counts, 0
        for k in range(first, last):
            if rows[k] >= 0:
                counts[rows[k]] += counts.dtype.type(1)
                places += 1
        moments[table, dim] += places
        moments[table, dim + 1] += 1.0
        rare = 1.0 / places
        for k in range(first, last):
            if rows[k] >= 0:
                p = max(counts[rows[k]] / moments[table, dim], (1.0 - job.beta2) * rare)
                rates[k] = rate(p, job.lr, 0.5, math.inf)
                bounds[k] = dim * bound(p, rare, job.clip)
    job.root_scale = 1.0 / math.sqrt(1.0 - job.beta2 ** moments[0, dim + 1])
