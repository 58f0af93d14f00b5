"""The row update: counts, rates and weights of many tables in one call.

A step is described by one :data:`TABLE` record per table. Tables hold disjoint rows, and a table
may be split further into shards, each of which owns the rows whose number is ``shard`` modulo
``shards``. Whoever owns a row applies its occurrences in the order of the batch, so the result has
the same bits however the work is divided.

Rows are scattered over memory, so each is prefetched a block ahead of its use.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np

from freqsgd.kernels.machine import (
    AHEAD,
    BLOCK,
    LANES,
    add_scaled,
    add_scaled_product,
    add_squares,
    compiled,
    kernel,
    pointer,
    prefetch,
    prefetch_row,
    sum_squared_products,
    take,
)
from freqsgd.kernels.threads import run
from freqsgd.rates import scalar_bound, scalar_decay, scalar_rate

__all__ = ["TABLE", "bound", "decay", "find_bad", "rate", "update"]


TABLE = np.dtype(
    [
        ("weight", np.int64),  # addresses, in bytes
        ("counts", np.int64),  # 0: nothing is counted
        ("source", np.int64),  # p = source[row] / n, and unseen / n where that is 0
        ("rows", np.int64),
        ("dim", np.int64),
        ("padding", np.int64),  # a row that is left alone; -1: none
        # the occurrences that are counted
        ("counted", np.int64),
        ("counted_stride", np.int64),
        ("counted_len", np.int64),
        ("increments", np.int64),  # 0: each adds 1
        ("once", np.int64),  # a row counts once, however often it occurs
        # the rows of the gradient: occurrence i adds values[(i // repeat) * values_stride:][:dim]
        ("ids", np.int64),  # 0: row i
        ("ids_stride", np.int64),
        ("ids_len", np.int64),
        ("values", np.int64),
        ("values_stride", np.int64),
        ("repeat", np.int64),
        # the rate law
        ("sign", np.float64),
        ("lr", np.float64),
        ("power", np.float64),
        ("cap", np.float64),
        ("weight_decay", np.float64),
        ("weight_decay_power", np.float64),
        ("n", np.float64),
        ("added", np.float64),
        ("unseen", np.float64),
        # CFAdam's part of it
        ("squares", np.int64),  # address: sums of squares per part and column; 0: not wanted
        ("squares_stride", np.int64),  # numbers from part to part
        ("scale", np.int64),  # address: what each column is multiplied by; 0: nothing
        ("least", np.float64),  # the smallest p
        ("rare", np.float64),  # the frequency of a row that occurs once in each step
        ("largest", np.float64),  # the bound's factor
        ("decoupled", np.int64),  # decay at lr, not at the rate of the row
    ]
)

PART = 2048  # rows of a gradient that are checked, and their squares summed, as one work unit

_STEP = np.dtype(
    [
        ("next", np.int64),
        ("tables", np.int64),  # address
        ("tables_len", np.int64),
        ("parts", np.int64),  # that each table is divided into
        ("bad", np.int64),  # address: one flag per table
    ]
)


# ---- what callers use --------------------------------------------------------------------------


def find_bad(tables: Any, weight: Any, workers: int) -> int | None:
    """The first table with an id out of range or a gradient that is not finite.

    Gradient rows must be contiguous. ``weight`` is the weights' type.
    """
    bad = np.zeros(len(tables), np.int64)
    _run_step(_check_kernel(weight), tables, parts_of(tables), workers, bad)
    return int(bad.argmax()) if bad.any() else None


def parts_of(tables: Any) -> int:
    """Return the number of parts into which gradients are divided, whatever the threads."""
    return max(1, -(-int(tables["ids_len"].max(initial=0)) // PART))


def update(tables: Any, weight: Any, count: Any, source: Any, workers: int) -> None:
    """Count and update every table: what :mod:`freqsgd.optim._plain` does in torch operations.

    ``weight``, ``count`` and ``source`` are the types of what ``tables`` points to.
    """
    shards = 1
    while len(tables) * shards < workers:
        shards *= 2
    _run_step(_update_kernel(weight, count, source), tables, shards, workers)


def _run_step(function: Any, tables: Any, parts: int, workers: int, bad: Any = None) -> None:
    job = np.zeros(1, _STEP)
    job["tables"], job["tables_len"], job["parts"] = tables.ctypes.data, len(tables), parts
    job["bad"] = 0 if bad is None else bad.ctypes.data
    run(function, job, workers)


# ---- kernels, one per combination of types -----------------------------------------------------


@cache
def _check_kernel(weight_type: Any) -> Any:
    @kernel(_STEP, weight_type)
    def check(jobs):
        job = numba.carray(jobs, 1)[0]
        tables = numba.carray(pointer(job.tables), job.tables_len, dtype=TABLE)
        bad = numba.carray(pointer(job.bad), job.tables_len, dtype=np.int64)
        weights = np.empty(0, weight_type)
        unit = take(jobs)
        while unit < job.tables_len * job.parts:
            t, part = unit // job.parts, unit % job.parts
            if not _check(tables[t], part, weights):
                bad[t] = 1
            unit = take(jobs)

    return check


@cache
def _update_kernel(weight_type: Any, count_type: Any, source_type: Any) -> Any:
    @kernel(_STEP, weight_type, count_type, source_type)
    def update(jobs):
        job = numba.carray(jobs, 1)[0]
        tables = numba.carray(pointer(job.tables), job.tables_len, dtype=TABLE)
        weights = np.empty(0, weight_type)
        counts = np.empty(0, count_type)
        sources = np.empty(0, source_type)
        unit = take(jobs)
        while unit < job.tables_len * job.parts:
            table, shard = tables[unit // job.parts], unit % job.parts
            if table.counts != 0:
                _count(table, shard, job.parts, weights, counts, sources)
            if table.ids_len > 0:
                if table.scale == 0:
                    _add(table, shard, job.parts, weights, sources)
                else:
                    _add_by_column(table, shard, job.parts, weights, sources)
            unit = take(jobs)

    return update


# ---- their parts. An empty array, such as `weights`, stands for the type of its items -----------

_law_rate = numba.njit(scalar_rate, error_model="numpy")
_law_decay = numba.njit(scalar_decay, error_model="numpy")
bound = compiled(scalar_bound)


@compiled
def rate(p, lr, power, max_lr):
    """The law's rate."""
    # A power that the compiler knows becomes a square root.
    return _law_rate(p, lr, 0.5, max_lr) if power == 0.5 else _law_rate(p, lr, power, max_lr)


@compiled
def decay(p, q, eta, weight_decay, power):
    """The part of a row that the law's weight decay takes."""
    if power == 1.0:
        return _law_decay(p, q, eta, weight_decay, 1.0)
    if power == 0.5:
        return _law_decay(p, q, eta, weight_decay, 0.5)
    return _law_decay(p, q, eta, weight_decay, power)


@numba.njit(fastmath={"reassoc"})
def _all_finite(values):
    total = values.dtype.type(0)
    for i in range(values.size):
        total += values[i] * values.dtype.type(0)  # NaN for NaN and infinity, else 0
    return total == 0


@compiled
def _check(table, part, weights):
    first = min(table.ids_len, part * PART)
    last = min(table.ids_len, first + PART)
    if table.ids != 0:
        ids = numba.carray(pointer(table.ids), table.ids_len, dtype=np.int64)
        for i in range(first, last):
            if ids[i] < 0 or ids[i] >= table.rows:
                return False
    dim, count = table.dim, last - first
    address = table.values + first * dim * weights.itemsize
    values = numba.carray(pointer(address), count * dim, dtype=weights.dtype)
    if table.squares == 0:
        return _all_finite(values)
    target = table.squares + part * table.squares_stride * 8
    sums = numba.carray(pointer(target), dim, dtype=np.float64)
    whole = dim - dim % LANES
    for j in range(0, whole, LANES):
        add_squares(
            target + j * 8,
            address + j * weights.itemsize,
            count,
            dim * weights.itemsize,
            weights.dtype.type(0),
        )
    for j in range(whole, dim):
        for i in range(j, count * dim, dim):
            value = np.float64(values[i])
            sums[j] += value * value
    return _all_finite(sums)  # a square of float64 may overflow too


@compiled
def _count(table, shard, shards, weights, counts, sources):
    """Add the batch to the counters, and decay each distinct row once."""
    number = counts.dtype.type
    length, stride, once = table.counted_len, table.counted_stride, table.once != 0
    weighted, padding, address = table.increments != 0, table.padding, table.counts
    mask = shards - 1
    count = numba.carray(pointer(address), table.rows, dtype=counts.dtype)
    ids = numba.carray(pointer(table.counted), length * stride, dtype=np.int64)
    increments = numba.carray(pointer(table.increments), length, dtype=counts.dtype)
    if table.weight_decay == 0 and not once:
        for i in range(length):
            if i + AHEAD < length:
                prefetch(address + ids[(i + AHEAD) * stride] * counts.itemsize)
            row = ids[i * stride]
            if row & mask == shard and row != padding:
                count[row] += increments[i] if weighted else number(1)
        return

    # A negative count marks a row that this batch has met already. Each first occurrence is kept
    # with the row's count before the batch.
    first = np.empty(length, np.int64)
    before = np.empty(length, counts.dtype)
    found = 0
    for i in range(length):
        if i + AHEAD < length:
            prefetch(address + ids[(i + AHEAD) * stride] * counts.itemsize)
        row = ids[i * stride]
        if row & mask == shard and row != padding:
            increment = increments[i] if weighted else number(1)
            if count[row] >= 0:
                first[found] = row
                before[found] = count[row]
                found += 1
                count[row] = -(count[row] + increment)
            elif not once:
                count[row] -= increment
    for k in range(found):
        count[first[k]] = -count[first[k]]
    if table.weight_decay > 0:
        _decay_rows(table, first[:found], before[:found], count, weights, sources)


@compiled
def _decay_rows(table, rows, before, count, weights, sources):
    n, unseen, added, dim, address = table.n, table.unseen, table.added, table.dim, table.weight
    lr, power, max_lr, decoupled = table.lr, table.power, table.cap, table.decoupled != 0
    weight_decay, weight_decay_power = table.weight_decay, table.weight_decay_power
    itemsize = weights.itemsize
    row_bytes = dim * itemsize
    whole = dim - dim % LANES
    source = numba.carray(pointer(table.source), table.rows, dtype=sources.dtype)
    weight = numba.carray(pointer(address), table.rows * dim, dtype=weights.dtype)
    for k in range(len(rows)):
        if k + BLOCK < len(rows):
            prefetch_row(address + rows[k + BLOCK] * row_bytes, row_bytes)
        row = rows[k]
        p = (unseen if source[row] == 0 else float(source[row])) / n
        q = (count[row] - before[k]) / added
        eta = lr if decoupled else rate(p, lr, power, max_lr)
        part = decay(p, q, eta, weight_decay, weight_decay_power)
        scale = weights.dtype.type(-part)
        start = address + row * row_bytes
        for j in range(0, whole, LANES):
            add_scaled(start + j * itemsize, start + j * itemsize, scale)
        for j in range(row * dim + whole, (row + 1) * dim):
            weight[j] += scale * weight[j]


@compiled
def _next_block(table, i, shard, shards, itemsize, block):
    """Collect the next rows of a shard and where their gradients are, and prefetch both.

    Returns how many there are, and where to go on.
    """
    dim, length, address = table.dim, table.ids_len, table.weight
    dense, stride, repeat = table.ids == 0, table.ids_stride, table.repeat
    values_address, values_stride, padding = table.values, table.values_stride, table.padding
    scattered, mask, row_bytes = values_stride != dim, shards - 1, dim * itemsize
    ids = numba.carray(pointer(table.ids), length * stride, dtype=np.int64)
    rows, offsets = block[0], block[1]
    filled = 0
    while filled < BLOCK and i < length:
        row = i if dense else ids[i * stride]
        if row & mask == shard and row != padding:
            rows[filled] = row
            offsets[filled] = (i if repeat == 1 else i // repeat) * values_stride
            prefetch_row(address + row * row_bytes, row_bytes)
            if scattered:
                prefetch_row(values_address + offsets[filled] * itemsize, row_bytes)
            filled += 1
        i += 1
    return filled, i


@compiled
def _add(table, shard, shards, weights, sources):
    """Add ``-eta * gradient`` to the rows of one shard, a block of rows at a time."""
    # Fields become locals: the compiler cannot know that writing weights leaves the record alone.
    n, unseen, sign = table.n, table.unseen, table.sign
    lr, power, max_lr = table.lr, table.power, table.cap
    dim, length, address = table.dim, table.ids_len, table.weight
    values_address, values_stride = table.values, table.values_stride
    itemsize = weights.itemsize
    whole = dim - dim % LANES
    source = numba.carray(pointer(table.source), table.rows, dtype=sources.dtype)
    weight = numba.carray(pointer(address), table.rows * dim, dtype=weights.dtype)
    values = numba.carray(pointer(values_address), length * values_stride, dtype=weights.dtype)

    blocks = np.empty((2, 2, BLOCK), np.int64)  # rows and offsets: of this block, of the next
    rates = np.empty(BLOCK, np.float64)
    turn = 0
    ready, i = _next_block(table, 0, shard, shards, itemsize, blocks[turn])
    while ready > 0:
        rows, offsets, filled = blocks[turn, 0], blocks[turn, 1], ready
        turn = 1 - turn
        ready, i = _next_block(table, i, shard, shards, itemsize, blocks[turn])
        for k in range(filled):
            number = source[rows[k]]
            rates[k] = (unseen if number == 0 else float(number)) / n
        for k in range(filled):
            rates[k] = rate(rates[k], lr, power, max_lr)
        for k in range(filled):
            scale = weights.dtype.type(-sign * rates[k])
            row = rows[k] * dim
            offset = offsets[k]
            for j in range(0, whole, LANES):
                add_scaled(
                    address + (row + j) * itemsize, values_address + (offset + j) * itemsize, scale
                )
            for j in range(whole, dim):
                weight[row + j] += scale * values[offset + j]


@compiled
def _add_by_column(table, shard, shards, weights, sources):
    """Do the same for CFAdam: scale the columns, and shorten rows that are longer than allowed."""
    n, unseen, sign = table.n, table.unseen, table.sign
    lr, least, rare, largest = table.lr, table.least, table.rare, table.largest
    dim, length, address = table.dim, table.ids_len, table.weight
    values_address, values_stride = table.values, table.values_stride
    number = weights.dtype.type
    itemsize = weights.itemsize
    whole = dim - dim % LANES
    source = numba.carray(pointer(table.source), table.rows, dtype=sources.dtype)
    weight = numba.carray(pointer(address), table.rows * dim, dtype=weights.dtype)
    values = numba.carray(pointer(values_address), length * values_stride, dtype=weights.dtype)
    columns_address = table.scale
    columns = numba.carray(pointer(columns_address), dim, dtype=weights.dtype)

    blocks = np.empty((2, 2, BLOCK), np.int64)  # rows and offsets: of this block, of the next
    rates = np.empty(BLOCK, np.float64)
    bounds = np.empty(BLOCK, np.float64)
    turn = 0
    ready, i = _next_block(table, 0, shard, shards, itemsize, blocks[turn])
    while ready > 0:
        rows, offsets, filled = blocks[turn, 0], blocks[turn, 1], ready
        turn = 1 - turn
        ready, i = _next_block(table, i, shard, shards, itemsize, blocks[turn])
        for k in range(filled):
            count = source[rows[k]]
            rates[k] = max((unseen if count == 0 else float(count)) / n, least)
        for k in range(filled):
            bounds[k] = dim * bound(rates[k], rare, largest)
            rates[k] = rate(rates[k], lr, 0.5, np.inf)
        for k in range(filled):
            offset = offsets[k]
            squares = sum_squared_products(
                values_address + offset * itemsize, columns_address, whole, number(0)
            )
            for j in range(whole, dim):
                scaled = values[offset + j] * columns[j]
                squares += scaled * scaled
            if squares > bounds[k]:
                rates[k] *= np.sqrt(bounds[k] / squares)
            elif squares == 0:  # as in most rows of a dense gradient
                continue
            scale = number(-sign * rates[k])
            row = rows[k] * dim
            for j in range(0, whole, LANES):
                add_scaled_product(
                    address + (row + j) * itemsize,
                    values_address + (offset + j) * itemsize,
                    columns_address + j * itemsize,
                    scale,
                )
            for j in range(whole, dim):
                weight[row + j] += scale * (values[offset + j] * columns[j])
