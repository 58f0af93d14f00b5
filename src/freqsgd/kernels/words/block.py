"""CBOW and Skip-Gram with negative sampling: synchronous blocks of a fixed number of words.

A skip-gram sample is a pair: the input vector u of a centre word j predicts a word i of its window,
whose output vector is v. A CBOW sample is a position i: u is the mean of its window's input
vectors. With k noise words per sample the loss is

    -log s(u.v_i) - k E[log s(-u.v_n)]          s(x) = 1 / (1 + exp(-x))

All samples of a block share a pool of noise words, each of which counts k / pool: the same loss in
the mean, with less noise than k words of its own would give a sample. So the products with the
noise are a product of matrices. Those of a block's words with their windows are a band of one.

A block has phases. Plan: which rows, how often, at which rates. Gather: copy the rows, padded to
whole vectors. Products: u.v, and from them slopes and losses. Update: the gradients of all rows,
some columns (a slice) at a time, which are added to the tables at once; whoever works on a slice
reads the copies and owns those columns of both tables. Row-wise Adagrad and CFAdam, which must see
whole rows, add up gradients first and have one phase more. Threads take units of work in order;
whoever holds a unit of a phase waits until all units of the phases before are finished. What a unit
computes does not depend on who else runs, so any number of threads gives the same bits.

For CFAdam a block is a step. It looks up one row in each place: a word of the text as input, a word
as target, a noise word. So each place is an occurrence: it counts once, and the square of its
gradient, summed over the samples of the block, goes into the second moments of its table. Whoever
owns a slice updates those of its columns when the slice is complete. The bound holds for a row's
whole step.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numba
import numpy as np

from freqsgd.kernels.machine import compiled, idle, increment, kernel, read, take_ready
from freqsgd.kernels.simd import LANES
from freqsgd.kernels.words.job import (
    COLUMNS,
    JOB,
    PARTS,
    ROWS,
    VECTOR_BYTES,
    band_width,
    row_bytes_of,
)
from freqsgd.kernels.words.plan import make_plan
from freqsgd.kernels.words.products import find_products, gather
from freqsgd.kernels.words.update import update_one, update_rows, update_three, update_two
from freqsgd.optimizers import LAW

__all__ = ["block_kernel"]

# Units of a block, in order: the plan, parts of the gathering, parts of the products, slices of the
# update, and parts of the rows of a rule that must see whole ones.
_GATHER, _PRODUCTS, _UPDATE = 1, 1 + PARTS, 1 + 2 * PARTS


@cache
def block_kernel(count_type: Any) -> Any:
    """The kernel for counts of a type: int32 or int64."""

    @kernel(JOB, count_type)
    def word2vec(jobs):
        job = numba.carray(jobs, 1)[0]
        counts = np.empty(0, count_type)
        vectors = row_bytes_of(job) // VECTOR_BYTES
        last = _UPDATE + (vectors + COLUMNS - 1) // COLUMNS
        units = last + (PARTS if job.rule != LAW else 0)
        scratch = np.empty(_scratch_size(job), np.float32)
        bits = np.empty(job.inputs * job.pool + job.block * band_width(job), np.int32)
        spins, unit = 0, read(job.counters)
        while unit < (job.last - job.first) * units:
            before, part = unit // units, unit % units
            if not take_ready(job.counters, unit, before * units + _phase(part, last)):
                spins, unit = idle(spins), read(job.counters)
                continue
            block, spins = job.first + before, 0
            if job.bad >= 0:
                pass  # nothing more is done, but every unit is passed through
            elif part < _GATHER:
                make_plan(job, block, counts)
            elif part < _PRODUCTS:
                gather(job, part - _GATHER)
            elif part < _UPDATE:
                loss = find_products(job, block, part - _PRODUCTS, scratch, bits)
                if not math.isfinite(loss):
                    job.bad = block
            elif part < last:
                _update(job, block, (part - _UPDATE) * COLUMNS, vectors, scratch)
            else:
                update_rows(job, part - last)
            increment(job.counters + 64)
            unit = read(job.counters)

    return word2vec


@compiled
def _phase(part, last):
    """The first unit of the phase that a unit belongs to."""
    phase = 0
    for start in (_GATHER, _PRODUCTS, _UPDATE, last):
        if part >= start:
            phase = start
    return phase


@compiled
def _update(job, block, first, vectors, scratch):
    """The update of a slice: three vectors wide, or what is left."""
    left = vectors - first
    if left >= 3:
        update_three(job, block, first, scratch)
    elif left == 2:
        update_two(job, block, first, scratch)
    else:
        update_one(job, block, first, scratch)


@compiled
def _scratch_size(job):
    """Numbers that a unit of work needs for itself."""
    tile = ROWS * COLUMNS * LANES
    products = ROWS * (2 * job.window + ROWS + COLUMNS)
    small = job.inputs * job.pool + job.block * band_width(job)
    return max(products + small, tile + (job.block + job.inputs) * COLUMNS * LANES)
