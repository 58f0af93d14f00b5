r"""Factorization machines: exact minibatch training without building gradients.

A sample with tokens k has the log odds

    z = bias + sum_k w_k + (|S|^2 - sum_k |v_k|^2) / 2          S = sum_k v_k

With the slope g = dloss/dz / batch size, the gradient of a row is the sum over its occurrences of
g (S - v_k), that is A_k - G_k v_k with A_k = sum g S and G_k = sum g; that of its linear weight is
G_k. A row of the table holds v_k and, last, w_k.

A step has two phases. First the samples, a block at a time: z, g and S of each. Then the rows, a
field (or a part of one) at a time: find the occurrences of each row, add up A and G, apply the
rule. Threads take such units of work in order; whoever holds a unit of a phase waits until all
units of the phases before are finished. What a unit computes does not depend on who else runs, so
any number of threads gives the same bits.

A field may be a bag: it has several columns, of which those that hold -1 are empty.
"""

from __future__ import annotations

import math
from collections import namedtuple
from functools import cache
from typing import Any

import numba
import numpy as np

from freqsgd.kernels.exponential import exp_of_minus_abs
from freqsgd.kernels.machine import (
    BLOCK,
    compiled,
    increment,
    inlined,
    kernel,
    pointer,
    prefetch,
    prefetch_only,
    prefetch_row,
    prefetch_row_only,
    wait_for,
)
from freqsgd.kernels.rows import decay, rate
from freqsgd.kernels.vector import (
    LANES,
    load,
    number_at,
    root,
    set_number,
    splat,
    store,
    total,
)

__all__ = ["ADAGRAD", "ADAM", "CHUNK", "JOB", "LAW", "ROWWISE_ADAGRAD", "step_kernel"]

AHEAD = 8  # rows that are fetched before they are updated; twice that before they are summed
CHUNK = 128  # samples of a unit
LAW, ADAGRAD, ROWWISE_ADAGRAD, ADAM = range(4)

JOB = np.dtype(
    [
        ("counters", np.int64),  # address of two int64, 64 bytes apart: units taken, units finished
        ("units", np.int64),  # set by the kernel: how many units there are
        ("bad", np.int64),  # step whose loss is not finite; -1: none
        ("bad_id", np.int64),  # place in ids of one that is out of range; -1: none
        # the samples: step s takes positions first + s * batch and following, up to last
        ("forward", np.int64),  # run the first phase
        ("update", np.int64),  # run the second
        ("ids", np.int64),  # int32 (any, columns)
        ("labels", np.int64),  # uint8
        ("weights", np.int64),  # float32, by row of ids: times the loss of a sample; 0: all 1
        ("order", np.int64),  # int64: position -> row of ids; 0: the same
        ("first", np.int64),
        ("last", np.int64),
        ("batch", np.int64),
        ("columns", np.int64),
        ("fields", np.int64),
        ("starts", np.int64),  # int64 (columns): first row of the table of each column
        ("sizes", np.int64),  # int64 (columns): rows of each
        ("field_of", np.int64),  # int64 (columns)
        ("spans", np.int64),  # int64 (fields, 4): first and last column, first and last row
        # the model
        ("weight", np.int64),  # float32 (rows, dim + 1)
        ("dim", np.int64),
        ("bias", np.int64),  # float32 (1)
        # between the phases; positions within the batch
        ("rows", np.int64),  # int64 (columns, batch); 0: not kept
        ("sums", np.int64),  # float32 (batch, dim); 0: not kept
        ("slopes", np.int64),  # float32 (batch)
        ("logits", np.int64),  # float32, by position - first; 0: not kept
        ("vectors", np.int64),  # float32 (batch, fields, dim), summed over bags; 0: not kept
        ("extra", np.int64),  # float32 (batch, fields, dim): added to the gradient; 0: none
        ("block_losses", np.int64),  # float64 (blocks of a batch)
        ("losses", np.int64),  # float64 (steps)
        # the rule
        ("rule", np.int64),
        ("dense", np.int64),  # it changes all rows in every step
        ("shards", np.int64),  # parts of each field; a power of 2
        ("shift", np.int64),  # rows 2 ** shift at a time go to one part
        ("marks", np.int64),  # counts of each row, or zeros if nothing is counted
        ("counted", np.int64),  # what an occurrence adds to a mark
        ("once", np.int64),  # 1: a step takes the place of a sample, a row occurs once in it
        # where counts fade, the b-th sample of step s counts gains[b] * factors[s] instead
        ("gains", np.int64),  # float64 (batch); 0: counts do not fade
        ("factors", np.int64),  # float64 (steps)
        ("masses", np.int64),  # float64 (steps): what all samples up to a step's last one count
        ("frequencies", np.int64),  # float32 (rows); 0: marks / samples, or steps
        ("samples", np.int64),  # seen before the first step
        ("steps", np.int64),  # taken before the first step
        ("lrs", np.int64),  # float64 (steps)
        ("bias_lr", np.float64),  # lr of the bias where the law holds, times that of the rest
        ("power", np.float64),
        ("cap", np.float64),
        ("weight_decay", np.float64),
        ("weight_decay_power", np.float64),
        ("linear_lr", np.float64),  # lr and decay of linear weights, times those of the rest
        ("linear_decay", np.float64),
        ("state", np.int64),  # float32 as the weight, or (rows, 2): sums of squares; 0: none
        ("moment", np.int64),  # float32 as the weight: Adam's first moment
        ("bias_state", np.int64),  # float32 (2)
        ("beta1", np.float64),
        ("beta2", np.float64),
        ("eps", np.float64),
    ]
)


@cache
def step_kernel(mark_type: Any) -> Any:
    """The kernel for marks of a type: int32 or int64; float64 where counts fade."""

    @kernel(JOB, mark_type)
    def fm(jobs):
        job = numba.carray(jobs, 1)[0]
        marks = np.empty(0, mark_type)
        blocks = (min(job.batch, job.last - job.first) + CHUNK - 1) // CHUNK
        forward = blocks if job.forward != 0 else 0
        units = forward + (1 + job.fields * job.shards if job.update != 0 else 0)
        steps = (job.last - job.first + job.batch - 1) // job.batch
        job.units = units * steps
        scratch = _scratch(job, marks)
        unit = increment(job.counters)
        while unit < units * steps:
            step, part = unit // units, unit % units
            start = job.first + step * job.batch
            size = min(job.batch, job.last - start)
            wait_for(job.counters + 64, step * units + (0 if part < forward else forward))
            if job.bad < 0:
                if part < forward:
                    low, high = part * CHUNK, min((part + 1) * CHUNK, size)
                    if low < high and not _forward(job, start, size, low, high, scratch):
                        job.bad = step
                elif part == forward:
                    _update_bias(job, step, size)
                else:
                    part -= forward + 1
                    field, shard = part // job.shards, part % job.shards
                    _update_field(job, step, size, field, shard, scratch, marks)
            increment(job.counters + 64)
            unit = increment(job.counters)

    return fm


# Room for one unit of work. The occurrences in a part of a field are numbered; so are its rows
# (slots). The occurrences of a row are chained: heads[slot], following[that], ..., -1.
_Scratch = namedtuple(
    "_Scratch",
    "rows positions following heads slots times marked slopes rates scales logits labels bits "
    "small gradient zeros",
)


@compiled
def _scratch(job, marks):
    spans = numba.carray(pointer(job.spans), (job.fields, 4), dtype=np.int64)
    width = 1
    for f in range(job.fields):
        width = max(width, spans[f, 1] - spans[f, 0])
    length = max(CHUNK * job.columns, width * job.batch if job.update != 0 else 0)
    return _Scratch(
        rows=np.empty(length, np.int64),  # of each occurrence; addresses of a block's rows
        positions=np.empty(length, np.uint32),  # of each occurrence: in the batch
        following=np.empty(length, np.int32),
        heads=np.empty(length, np.int32),
        slots=np.empty(length, np.int64),  # row of each slot
        times=np.empty(length, np.int32),  # how often it occurs
        marked=np.empty(length, marks.dtype),  # its mark before the batch, and then after it
        slopes=np.empty(length, np.float64),  # sum of its slopes
        rates=np.empty(length, np.float64),
        scales=np.empty(length, np.float64),
        logits=np.empty(CHUNK, np.float32),  # of a block's samples, as are the next three
        labels=np.empty(CHUNK, np.float32),
        bits=np.empty(CHUNK, np.int32),
        small=np.empty(CHUNK, np.float32),
        gradient=np.empty(job.dim + 1, np.float32),
        zeros=np.zeros(job.dim + 1, np.float32),  # stands for the row of an empty column
    )


# ---- first phase -------------------------------------------------------------------------------


@compiled
def _forward(job, start, size, low, high, scratch):
    """Log odds, slopes and sums of samples ``low`` to ``high`` of a batch; False if not finite."""
    columns, dim, fields = job.columns, job.dim, job.fields
    row_bytes = (dim + 1) * 4
    sums_address, vectors_address = job.sums, job.vectors
    bias = numba.carray(pointer(job.bias), 1, dtype=np.float32)[0]
    rows, logits = scratch.rows, scratch.logits
    _find_rows(job, start, low, high, scratch)
    whole, count = dim - dim % LANES, (high - low) * columns
    zero = splat(np.float32(0))
    ahead = 0
    for i in range(high - low):
        base, end = i * columns, (i + 1) * columns
        while ahead < min(end + 2 * AHEAD, count):
            prefetch_row_only(rows[ahead], row_bytes)
            ahead += 1
        to = 0 if sums_address == 0 else sums_address + (low + i) * dim * 4
        pairs, j = zero, 0
        while j + 4 * LANES <= dim:
            pairs = pairs + _sum_four(rows, base, end, j * 4, to)
            j += 4 * LANES
        if j + 2 * LANES <= dim:
            pairs = pairs + _sum_two(rows, base, end, j * 4, to)
            j += 2 * LANES
        if j < whole:
            pairs = pairs + _sum_one(rows, base, end, j * 4, to)
        z = total(pairs)
        for j in range(whole, dim):
            z += _sum_number(rows, base, end, j * 4, to)
        if vectors_address != 0:
            out = vectors_address + (low + i) * fields * dim * 4
            _copy_vectors(job, rows[base:end], out)
        linear = np.float32(0)
        for c in range(base, end):
            linear += number_at(rows[c] + dim * 4)
        logits[i] = bias + linear + np.float32(0.5) * z
    return _finish(job, start, size, low, high, scratch)


@compiled
def _find_rows(job, start, low, high, scratch):
    """Turn the ids of samples into addresses of rows; keep the rows by column. Read the labels."""
    rows, labels = scratch.rows, scratch.labels
    columns, address, batch, last = job.columns, job.ids, job.batch, job.last
    weight, row_bytes, empty = job.weight, (job.dim + 1) * 4, np.int64(scratch.zeros.ctypes.data)
    keep, shuffled, label_address = job.rows != 0, job.order != 0, job.labels
    order = numba.carray(pointer(job.order), last, dtype=np.int64)
    ids = numba.carray(pointer(address), 1, dtype=np.int32)
    starts = numba.carray(pointer(job.starts), columns, dtype=np.int64)
    sizes = numba.carray(pointer(job.sizes), columns, dtype=np.int64)
    kept = numba.carray(pointer(job.rows), columns * batch, dtype=np.int64)
    known = numba.carray(pointer(label_address), 1, dtype=np.uint8)
    for i in range(high - low):
        position = start + low + i
        if shuffled and position + BLOCK < last:
            following = order[position + BLOCK]
            prefetch_only(address + following * columns * 4)
            prefetch_only(label_address + following)
        sample = order[position] if shuffled else position
        if label_address != 0:
            labels[i] = known[sample]
        for c in range(columns):
            number = ids[sample * columns + c]
            if number >= sizes[c]:
                job.bad_id = sample * columns + c
                number = -1
            row = starts[c] + number if number >= 0 else -1
            rows[i * columns + c] = weight + row * row_bytes if number >= 0 else empty
            if keep:
                kept[c * batch + low + i] = row


# The next four take the sum S of some of the numbers of rows, write it, and return |S|^2 less the
# sum of squares: for four vectors, two, one, and a single number.


@inlined
def _sum_four(rows, base, end, offset, to):
    a = b = c = d = squares = more = splat(np.float32(0))
    for k in range(base, end):
        at = rows[k] + offset
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
def _sum_two(rows, base, end, offset, to):
    a = b = squares = more = splat(np.float32(0))
    for k in range(base, end):
        at = rows[k] + offset
        x, y = load(at), load(at + 4 * LANES)
        a, b = a + x, b + y
        squares, more = squares + x * x, more + y * y
    if to != 0:
        store(to + offset, a)
        store(to + offset + 4 * LANES, b)
    return (a * a - squares) + (b * b - more)


@inlined
def _sum_one(rows, base, end, offset, to):
    a = squares = splat(np.float32(0))
    for k in range(base, end):
        x = load(rows[k] + offset)
        a, squares = a + x, squares + x * x
    if to != 0:
        store(to + offset, a)
    return a * a - squares


@inlined
def _sum_number(rows, base, end, offset, to):
    a = squares = np.float32(0)
    for k in range(base, end):
        x = number_at(rows[k] + offset)
        a, squares = a + x, squares + x * x
    if to != 0:
        set_number(to + offset, a)
    return a * a - squares


@compiled
def _copy_vectors(job, rows, out):
    """Write the vectors of one sample, field after field, summed where a field is a bag."""
    dim = job.dim
    field_of = numba.carray(pointer(job.field_of), len(rows), dtype=np.int64)
    target = numba.carray(pointer(out), job.fields * dim, dtype=np.float32)
    target[:] = 0
    for c in range(len(rows)):
        source = numba.carray(pointer(rows[c]), dim, dtype=np.float32)
        offset = field_of[c] * dim
        for j in range(dim):
            target[offset + j] += source[j]


@compiled
def _finish(job, start, size, low, high, scratch):
    """Keep log odds; turn them into losses and slopes where labels are known."""
    logits = scratch.logits
    if job.logits != 0:
        kept = numba.carray(pointer(job.logits), job.last - job.first, dtype=np.float32)
        for i in range(high - low):
            kept[start - job.first + low + i] = logits[i]
    if job.slopes == 0:
        return True
    slopes = numba.carray(pointer(job.slopes), job.batch, dtype=np.float32)
    losses = numba.carray(pointer(job.block_losses), 1, dtype=np.float64)
    labels, small = scratch.labels, scratch.small
    one, zero = np.float32(1), np.float32(0)
    exp_of_minus_abs(logits, high - low, scratch.bits, small)
    mean = one / np.float32(size)
    for i in range(high - low):
        chance = (one if logits[i] >= zero else small[i]) / (one + small[i])
        slopes[low + i] = (chance - labels[i]) * mean
    loss, product = 0.0, 1.0
    for i in range(high - low):
        loss += max(logits[i], zero) - logits[i] * labels[i]
        product *= 1.0 + small[i]  # at most 2 ** CHUNK
    loss += math.log(product)
    if job.weights != 0:
        loss = _weigh(job, start + low, slopes[low:high], logits, labels, small)
    losses[low // CHUNK] = loss
    return math.isfinite(loss)


@compiled
def _weigh(job, first, slopes, logits, labels, small):
    """Give the samples from a position on their weights; return the sum of their losses."""
    weights = numba.carray(pointer(job.weights), 1, dtype=np.float32)
    order = numba.carray(pointer(job.order), job.last, dtype=np.int64)
    loss = 0.0
    for i in range(len(slopes)):
        weight = weights[order[first + i] if job.order != 0 else first + i]
        slopes[i] *= weight
        loss += weight * (max(logits[i], 0.0) - logits[i] * labels[i] + math.log1p(small[i]))
    return loss


# ---- second phase ------------------------------------------------------------------------------


@compiled
def _update_bias(job, step, size):
    """Add up the batch's loss and slopes; the bias is a weight that every sample touches."""
    slopes = numba.carray(pointer(job.slopes), job.batch, dtype=np.float32)
    bias = numba.carray(pointer(job.bias), 1, dtype=np.float32)
    lr = numba.carray(pointer(job.lrs), step + 1, dtype=np.float64)[step]
    if job.losses != 0:
        losses = numba.carray(pointer(job.losses), step + 1, dtype=np.float64)
        of_blocks = numba.carray(pointer(job.block_losses), 1, dtype=np.float64)
        losses[step] = 0.0
        for block in range((size + CHUNK - 1) // CHUNK):
            losses[step] += of_blocks[block] / size
    slope = 0.0
    for b in range(size):
        slope += slopes[b]
    theta = float(bias[0])
    state = numba.carray(pointer(job.bias_state), 2, dtype=np.float32)
    if job.rule == LAW or job.rule == ROWWISE_ADAGRAD:
        eta = rate(1.0, lr * job.bias_lr, job.power, job.cap)
        if job.rule == ROWWISE_ADAGRAD:
            state[0] += slope * slope
            eta = lr / (math.sqrt(state[0]) + job.eps)
        part = decay(1.0, 1.0, eta, job.weight_decay, job.weight_decay_power)
        bias[0] = theta - eta * slope - part * theta
        return
    slope += job.weight_decay * theta
    if job.rule == ADAGRAD:
        state[0] += slope * slope
        bias[0] = theta - lr * slope / (math.sqrt(state[0]) + job.eps)
    else:
        size1, size2 = _corrections(job, step)
        state[1] += (1.0 - job.beta1) * (slope - state[1])
        state[0] = job.beta2 * state[0] + (1.0 - job.beta2) * slope * slope
        bias[0] = theta - lr * size1 * state[1] / (math.sqrt(state[0]) * size2 + job.eps)


@compiled
def _corrections(job, step):
    """What Adam multiplies the first moment, and the root of the second, with."""
    t = float(job.steps + step + 1)
    return 1.0 / (1.0 - job.beta1**t), 1.0 / math.sqrt(1.0 - job.beta2**t)


@compiled
def _update_field(job, step, size, field, shard, scratch, marks):
    """Update the rows of one part of a field: those that occur, or all that a rule asks for."""
    found = _find_occurrences(job, size, field, shard, scratch, marks)
    mark = numba.carray(pointer(job.marks), 1, dtype=marks.dtype)
    lr = numba.carray(pointer(job.lrs), step + 1, dtype=np.float64)[step]
    if job.dense != 0:
        _update_others(job, step, lr, field, shard, mark, scratch.zeros)
    if job.once != 0:
        size = 1
        scratch.times[:found] = 1
    if job.gains != 0:
        _count_fading(job, step, found, scratch)
    else:
        for k in range(found):
            scratch.marked[k] += job.counted * scratch.times[k]
    for k in range(found):
        mark[scratch.slots[k]] = scratch.marked[k]
    if job.rule == LAW:
        _apply_law(job, step, size, lr, field, found, scratch)
    else:
        _apply_adaptive(job, step, size, lr, field, found, scratch)


@compiled
def _find_occurrences(job, size, field, shard, scratch, marks):
    """Chain the occurrences of each row, in the order of the batch; return the number of rows.

    Meanwhile the mark of a row that has been met is -1 - its slot.
    """
    rows, positions, following, heads = (
        scratch.rows,
        scratch.positions,
        scratch.following,
        scratch.heads,
    )
    slots, times, marked, sums = scratch.slots, scratch.times, scratch.marked, scratch.slopes
    batch, shift, mask, address = job.batch, job.shift, job.shards - 1, job.marks
    spans = numba.carray(pointer(job.spans), (job.fields, 4), dtype=np.int64)
    of_batch = numba.carray(pointer(job.rows), job.columns * batch, dtype=np.int64)
    mark = numba.carray(pointer(address), 1, dtype=marks.dtype)
    slopes = numba.carray(pointer(job.slopes), batch, dtype=np.float32)
    length = 0
    for c in range(spans[field, 0], spans[field, 1]):
        for b in range(size):
            row = of_batch[c * batch + b]
            rows[length] = row
            positions[length] = b
            length += (row >= 0) & ((row >> shift) & mask == shard)

    found = 0
    for i in range(length - 1, -1, -1):
        if i >= BLOCK:
            prefetch(address + rows[i - BLOCK] * marks.itemsize)
        row, slope = rows[i], slopes[positions[i]]
        old = mark[row]
        if old >= 0:
            slots[found], marked[found], times[found] = row, old, 1
            sums[found], following[i], heads[found] = slope, -1, i
            mark[row] = -1 - found
            found += 1
        else:
            slot = np.int64(-1 - old)
            times[slot] += 1
            sums[slot] += slope
            following[i], heads[slot] = heads[slot], i
    return found


@compiled
def _count_fading(job, step, found, scratch):
    """Count the occurrences of each row where counts fade."""
    gains = numba.carray(pointer(job.gains), job.batch, dtype=np.float64)
    factors = numba.carray(pointer(job.factors), step + 1, dtype=np.float64)
    for k in range(found):
        gained, i = 0.0, scratch.heads[k]
        while i >= 0:
            gained += gains[scratch.positions[i]]
            i = scratch.following[i]
        scratch.marked[k] += gained * factors[step]


@compiled
def _frequencies(job, step, size, found, scratch):
    """Write the frequencies of the rows found into ``rates``."""
    slots, rates = scratch.slots, scratch.rates
    if job.frequencies != 0:
        given = numba.carray(pointer(job.frequencies), 1, dtype=np.float32)
        for k in range(found):
            rates[k] = given[slots[k]]
    elif job.counted != 0:
        seen = job.steps + step if job.once != 0 else job.samples + step * job.batch
        n = float(seen + size)
        if job.gains != 0:
            n = numba.carray(pointer(job.masses), step + 1, dtype=np.float64)[step]
        for k in range(found):
            rates[k] = scratch.marked[k] / n
    else:
        for k in range(found):
            rates[k] = 1.0


@compiled
def _apply_law(job, step, size, lr, field, found, scratch):
    """Row <- (1 + eta G - decay) row - eta A; rates by the law of :mod:`freqsgd.rates`."""
    _frequencies(job, step, size, found, scratch)
    slots, times, slopes, rates, scales = (
        scratch.slots,
        scratch.times,
        scratch.slopes,
        scratch.rates,
        scratch.scales,
    )
    dim, address = job.dim, job.weight
    stride = dim + 1
    power, cap = job.power, job.cap
    strength, decay_power = job.weight_decay, job.weight_decay_power
    linear_lr, linear_decay = job.linear_lr, job.linear_decay
    weight = numba.carray(pointer(address), 1, dtype=np.float32)
    if strength == 0:
        for k in range(found):
            rates[k] = rate(rates[k], lr, power, cap)
        for k in range(found):
            scales[k] = 1.0 + rates[k] * slopes[k]
        for k in range(found):
            weight[slots[k] * stride + dim] -= rates[k] * linear_lr * slopes[k]
    else:
        for k in range(found):
            p, q = rates[k], times[k] / size
            eta = rate(p, lr, power, cap)
            part = decay(p, q, eta, strength, decay_power)
            linear = decay(p, q, eta * linear_lr, strength * linear_decay, decay_power)
            rates[k], scales[k] = eta, 1.0 + eta * slopes[k] - part
            theta = weight[slots[k] * stride + dim]
            weight[slots[k] * stride + dim] = theta - eta * linear_lr * slopes[k] - linear * theta
    for k in range(found):
        if k + AHEAD < found:
            prefetch_row(address + slots[k + AHEAD] * stride * 4, dim * 4)
            first = scratch.positions[scratch.heads[k + AHEAD]]
            prefetch_row_only(job.sums + first * dim * 4, dim * 4)
        start = address + slots[k] * stride * 4
        scale, by = np.float32(scales[k]), np.float32(-rates[k])
        _add_up(job, field, scratch, scratch.heads[k], scale, by, start)


@inlined
def _add_up(job, field, scratch, head, scale, by, start):
    """Replace a row's vector by ``scale * vector + by * A``; A includes ``extra``."""
    dim = job.dim
    whole, j = dim - dim % LANES, 0
    scales, steps = splat(scale), splat(by)
    while j + 4 * LANES <= dim:
        a, b, c, d = _chain_four(job, field, scratch, head, j * 4)
        at = start + j * 4
        store(at, scales * load(at) + steps * a)
        store(at + 4 * LANES, scales * load(at + 4 * LANES) + steps * b)
        store(at + 8 * LANES, scales * load(at + 8 * LANES) + steps * c)
        store(at + 12 * LANES, scales * load(at + 12 * LANES) + steps * d)
        j += 4 * LANES
    if j + 2 * LANES <= dim:
        a, b = _chain_two(job, field, scratch, head, j * 4)
        at = start + j * 4
        store(at, scales * load(at) + steps * a)
        store(at + 4 * LANES, scales * load(at + 4 * LANES) + steps * b)
        j += 2 * LANES
    if j < whole:
        at = start + j * 4
        a = _chain_one(job, field, scratch, head, j * 4)
        store(at, scales * load(at) + steps * a)
    for j in range(whole, dim):
        at = start + j * 4
        s = _chain_number(job, field, scratch, head, j * 4)
        set_number(at, scale * number_at(at) + by * s)


# The next four take A over the occurrences of a row, for some of its numbers: four vectors, two,
# one, and a single number.


@inlined
def _chain_four(job, field, scratch, head, offset):
    a = b = c = d = splat(np.float32(0))
    i = head
    while i >= 0:
        position = np.int64(scratch.positions[i])
        i = scratch.following[i]
        g = splat(number_at(job.slopes + position * 4))
        at = job.sums + position * job.dim * 4 + offset
        a, b = a + g * load(at), b + g * load(at + 4 * LANES)
        c, d = c + g * load(at + 8 * LANES), d + g * load(at + 12 * LANES)
        if job.extra != 0:
            at = job.extra + (position * job.fields + field) * job.dim * 4 + offset
            a, b = a + load(at), b + load(at + 4 * LANES)
            c, d = c + load(at + 8 * LANES), d + load(at + 12 * LANES)
    return a, b, c, d


@inlined
def _chain_two(job, field, scratch, head, offset):
    a = b = splat(np.float32(0))
    i = head
    while i >= 0:
        position = np.int64(scratch.positions[i])
        i = scratch.following[i]
        g = splat(number_at(job.slopes + position * 4))
        at = job.sums + position * job.dim * 4 + offset
        a, b = a + g * load(at), b + g * load(at + 4 * LANES)
        if job.extra != 0:
            at = job.extra + (position * job.fields + field) * job.dim * 4 + offset
            a, b = a + load(at), b + load(at + 4 * LANES)
    return a, b


@inlined
def _chain_one(job, field, scratch, head, offset):
    a = splat(np.float32(0))
    i = head
    while i >= 0:
        position = np.int64(scratch.positions[i])
        i = scratch.following[i]
        g = splat(number_at(job.slopes + position * 4))
        a = a + g * load(job.sums + position * job.dim * 4 + offset)
        if job.extra != 0:
            a = a + load(job.extra + (position * job.fields + field) * job.dim * 4 + offset)
    return a


@inlined
def _chain_number(job, field, scratch, head, offset):
    a = np.float32(0)
    i = head
    while i >= 0:
        position = np.int64(scratch.positions[i])
        i = scratch.following[i]
        g = number_at(job.slopes + position * 4)
        a += g * number_at(job.sums + position * job.dim * 4 + offset)
        if job.extra != 0:
            a += number_at(job.extra + (position * job.fields + field) * job.dim * 4 + offset)
    return a


# ---- rules that need the gradient ---------------------------------------------------------------


@compiled
def _apply_adaptive(job, step, size, lr, field, found, scratch):
    """Build the gradient of each row, then hand it to the rule."""
    dim, address = job.dim, job.weight
    gradient = scratch.gradient
    to = np.int64(gradient.ctypes.data)
    sizes = _corrections(job, step)
    if job.rule == ROWWISE_ADAGRAD:
        _frequencies(job, step, size, found, scratch)
    for k in range(found):
        row = scratch.slots[k]
        slope = np.float32(scratch.slopes[k])
        weight = numba.carray(pointer(address + row * (dim + 1) * 4), dim + 1, dtype=np.float32)
        for j in range(dim):
            gradient[j] = -slope * weight[j]
        _add_up(job, field, scratch, scratch.heads[k], np.float32(1), np.float32(1), to)
        gradient[dim] = slope
        if job.rule == ROWWISE_ADAGRAD:
            p, q = scratch.rates[k], scratch.times[k] / size
            _rowwise_adagrad(job, row, lr, p, q, weight, gradient)
        else:
            _elementwise(job, row, lr, sizes, gradient)


@compiled
def _rowwise_adagrad(job, row, lr, p, q, weight, gradient):
    """One sum of squares for the vector, one for the linear weight; decay by the law."""
    dim = job.dim
    state = numba.carray(pointer(job.state + row * 8), 2, dtype=np.float32)
    squares = np.float32(0)
    for j in range(dim):
        squares += gradient[j] * gradient[j]
    state[0] += squares / dim
    state[1] += gradient[dim] * gradient[dim]
    eta = lr / (math.sqrt(state[0]) + job.eps)
    part = decay(p, q, eta, job.weight_decay, job.weight_decay_power)
    scale, by = np.float32(1.0 - part), np.float32(-eta)
    for j in range(dim):
        weight[j] = scale * weight[j] + by * gradient[j]
    eta = lr * job.linear_lr / (math.sqrt(state[1]) + job.eps)
    part = decay(p, q, eta, job.weight_decay * job.linear_decay, job.weight_decay_power)
    weight[dim] = np.float32(1.0 - part) * weight[dim] - np.float32(eta) * gradient[dim]


@compiled
def _update_others(job, step, lr, field, shard, mark, nothing):
    """What a rule does to rows whose gradient is zero."""
    spans = numba.carray(pointer(job.spans), (job.fields, 4), dtype=np.int64)
    mask, shift, sizes = job.shards - 1, job.shift, _corrections(job, step)
    for row in range(spans[field, 2], spans[field, 3]):
        if (row >> shift) & mask == shard and mark[row] >= 0:
            _elementwise(job, row, lr, sizes, nothing)


@compiled
def _elementwise(job, row, lr, sizes, gradient):
    """Adagrad or Adam on one row, as torch computes them on dense gradients."""
    dim = job.dim
    offset = row * (dim + 1) * 4
    weight, state = job.weight + offset, job.state + offset
    eps = np.float32(job.eps)
    l2 = np.float32(job.weight_decay)
    linear_l2 = np.float32(job.weight_decay * job.linear_decay)
    address = np.int64(gradient.ctypes.data)
    whole = dim - dim % LANES
    w = numba.carray(pointer(weight), dim + 1, dtype=np.float32)
    s = numba.carray(pointer(state), dim + 1, dtype=np.float32)
    if job.rule == ADAGRAD:
        size = np.float32(lr)
        for j in range(0, 4 * whole, 4 * LANES):
            x = load(weight + j)
            g = load(address + j) + splat(l2) * x
            squares = load(state + j) + g * g
            store(state + j, squares)
            store(weight + j, x - splat(size) * g / (root(squares) + splat(eps)))
        for j in range(whole, dim + 1):
            last = j == dim
            g = gradient[j] + (linear_l2 if last else l2) * w[j]
            s[j] += g * g
            by = np.float32(lr * job.linear_lr) if last else size
            w[j] -= by * g / (math.sqrt(s[j]) + eps)
        return
    moment = job.moment + offset
    m = numba.carray(pointer(moment), dim + 1, dtype=np.float32)
    size1, size2 = sizes
    size, root_scale = np.float32(lr * size1), np.float32(size2)
    keep1, keep2 = np.float32(1.0 - job.beta1), np.float32(job.beta2)
    add2 = np.float32(1.0 - job.beta2)
    for j in range(0, 4 * whole, 4 * LANES):
        x = load(weight + j)
        g = load(address + j) + splat(l2) * x
        mean = load(moment + j)
        mean = mean + splat(keep1) * (g - mean)
        squares = splat(keep2) * load(state + j) + splat(add2) * g * g
        store(moment + j, mean)
        store(state + j, squares)
        store(weight + j, x - splat(size) * mean / (root(squares) * splat(root_scale) + splat(eps)))
    for j in range(whole, dim + 1):
        last = j == dim
        g = gradient[j] + (linear_l2 if last else l2) * w[j]
        m[j] += keep1 * (g - m[j])
        s[j] = keep2 * s[j] + add2 * g * g
        by = np.float32(lr * job.linear_lr * size1) if last else size
        w[j] -= by * m[j] / (math.sqrt(s[j]) * root_scale + eps)
