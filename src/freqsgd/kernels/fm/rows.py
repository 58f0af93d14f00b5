"""The second phase of a step: the update of the bias and of rows, a part of a field at a time."""

from __future__ import annotations

import math

import numpy as np

from freqsgd.kernels.fm.job import AHEAD, CHUNK, batch_of, span_of
from freqsgd.kernels.fm.occurrences import add_sums, count, find_frequencies, find_occurrences
from freqsgd.kernels.machine import (
    add_scaled_product,
    array_at,
    compiled,
    inlined,
    prefetch_row,
    prefetch_row_only,
    sum_squared_products,
)
from freqsgd.kernels.rows import bound, decay, rate
from freqsgd.kernels.simd import LANES, load, root, splat, store
from freqsgd.optimizers import ADAGRAD, CFADAM, LAW, ROWWISE_ADAGRAD

__all__ = ["update_bias", "update_field", "update_moments"]


@compiled
def update_bias(job, step):
    """Add up the batch's loss and slopes; the bias is a weight that every sample touches."""
    size = batch_of(job, step)[1]
    if job.losses != 0:
        losses = array_at(job.losses, step + 1, np.float64)
        chunk_losses = array_at(job.chunk_losses, 1, np.float64)
        losses[step] = 0.0
        for chunk in range((size + CHUNK - 1) // CHUNK):
            losses[step] += chunk_losses[chunk] / size
    slopes = array_at(job.slopes, size, np.float32)
    slope = 0.0
    for b in range(size):
        slope += slopes[b]
    lr = array_at(job.lrs, step + 1, np.float64)[step]
    bias = array_at(job.bias, 1, np.float32)
    state = array_at(job.bias_state, 2, np.float32)
    theta = float(bias[0])
    if job.dense_decay == 0 and job.rule != CFADAM:
        eta = rate(1.0, lr * job.bias_lr_scale, job.power, job.max_lr)
        if job.rule == ROWWISE_ADAGRAD:
            state[0] += slope * slope
            eta = lr / (math.sqrt(state[0]) + job.eps)
        part = decay(1.0, 1.0, eta, job.weight_decay, job.weight_decay_power)
        bias[0] = theta - eta * slope - part * theta
        return
    if job.rule == CFADAM:  # the bias is updated by AdamW
        theta -= lr * job.weight_decay * theta
    else:
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
def update_moments(job, step):
    """Take the squares of a step into CFAdam's second moments of each field's columns."""
    size, dim, fields = batch_of(job, step)[1], job.dim, job.fields
    chunks = (size + CHUNK - 1) // CHUNK
    squares = array_at(job.chunk_squares, (chunks, fields, dim + 2), np.float32)
    moments = array_at(job.moments, (fields, dim + 2), np.float64)
    scales = array_at(job.column_scales, (fields, dim + 1), np.float32)
    tokens = array_at(job.field_tokens, fields, np.float64)
    root_scale = _corrections(job, step)[1]
    for field in range(fields):
        for j in range(dim + 2):
            summed = 0.0
            for chunk in range(chunks):
                summed += squares[chunk, field, j]
            if j > dim:
                tokens[field] = summed
                moments[field, j] += summed
                continue
            s = job.beta2 * moments[field, j] + (1.0 - job.beta2) * summed
            moments[field, j] = s
            scales[field, j] = 1.0 / (math.sqrt(s) * root_scale + job.eps)


@compiled
def update_field(job, step, field, shard, scratch, marks):
    """Update the rows of one part of a field: those that occur, or all that a rule asks for."""
    size = batch_of(job, step)[1]
    found = find_occurrences(job, size, field, shard, scratch, marks)
    lr = array_at(job.lrs, step + 1, np.float64)[step]
    if job.dense != 0:
        _update_others(job, step, lr, field, shard, scratch, marks)
    count(job, step, found, scratch, marks)
    if job.once_per_step != 0:
        size = 1
    if job.rule == CFADAM:
        _apply_cfadam(job, lr, field, found, scratch)
        return
    if job.dense_decay == 0:
        find_frequencies(job, step, size, found, scratch.distinct)
    if job.rule == LAW:
        _apply_law(job, size, lr, field, found, scratch)
    else:
        _apply_adaptive(job, step, size, lr, field, found, scratch)


@compiled
def _apply_law(job, size, lr, field, found, scratch):
    """Row <- (1 + eta G - decay) row - eta A; rates by the law of :mod:`freqsgd.rates`."""
    distinct, occurrences = scratch.distinct, scratch.occurrences
    rows, heads = distinct.rows, distinct.heads
    rates, scales = distinct.rates, distinct.scales
    _update_linear(job, size, lr, found, distinct)
    address, row_bytes = job.weight, (job.dim + 1) * 4
    for k in range(found):
        _prefetch(job, field, k + AHEAD, found, scratch)
        start = address + rows[k] * row_bytes
        scale, by = np.float32(scales[k]), np.float32(-rates[k])
        add_sums(job, field, occurrences, heads[k], scale, by, start, start)


@inlined
def _prefetch(job, field, k, found, scratch):
    """Fetch the row of distinct row ``k``, if there is one, and what its first occurrence adds."""
    if k < found:
        size = job.dim * 4
        prefetch_row(job.weight + scratch.distinct.rows[k] * (size + 4), size)
        first = scratch.occurrences.positions[scratch.distinct.heads[k]]
        prefetch_row_only(job.sums + first * size, size)
        if job.vectors_gradient != 0:
            prefetch_row_only(job.vectors_gradient + (first * job.fields + field) * size, size)


@compiled
def _update_linear(job, size, lr, found, distinct):
    """Update linear weights by the law; write the rates of vectors, and their scales."""
    rows, times, slopes = distinct.rows, distinct.times, distinct.slopes
    frequencies, rates, scales = distinct.frequencies, distinct.rates, distinct.scales
    power, max_lr, linear_lr = job.power, job.max_lr, job.linear_lr_scale
    strength, decay_power = job.weight_decay, job.weight_decay_power
    linear_strength = strength * job.linear_decay_scale
    dim = job.dim
    stride = dim + 1
    weight = array_at(job.weight, 1, np.float32)
    if strength == 0:
        for k in range(found):
            rates[k] = rate(frequencies[k], lr, power, max_lr)
        for k in range(found):
            scales[k] = 1.0 + rates[k] * slopes[k]
        for k in range(found):
            weight[rows[k] * stride + dim] -= rates[k] * linear_lr * slopes[k]
        return
    for k in range(found):
        p, q = frequencies[k], times[k] / size
        eta = rate(p, lr, power, max_lr)
        part = decay(p, q, eta, strength, decay_power)
        rates[k], scales[k] = eta, 1.0 + eta * slopes[k] - part
        part = decay(p, q, eta * linear_lr, linear_strength, decay_power)
        theta = weight[rows[k] * stride + dim]
        weight[rows[k] * stride + dim] = theta - eta * linear_lr * slopes[k] - part * theta


@inlined
def _find_gradient(job, field, scratch, k):
    """Write the gradient of distinct row ``k``."""
    dim, gradient, distinct = job.dim, scratch.gradient, scratch.distinct
    start, to = job.weight + distinct.rows[k] * (dim + 1) * 4, np.int64(gradient.ctypes.data)
    slope, one = np.float32(distinct.slopes[k]), np.float32(1)
    add_sums(job, field, scratch.occurrences, distinct.heads[k], -slope, one, start, to)
    gradient[dim] = slope


@compiled
def _apply_cfadam(job, lr, field, found, scratch):
    """Row <- (1 - decay) row - eta u: the gradient with scaled columns, bounded."""
    dim, gradient, distinct = job.dim, scratch.gradient, scratch.distinct
    rows, times, marks = distinct.rows, distinct.times, distinct.marks
    frequencies, rates, bounds = distinct.frequencies, distinct.rates, distinct.scales
    size = array_at(job.field_tokens, job.fields, np.float64)[field]
    seen = array_at(job.moments, (job.fields, dim + 2), np.float64)[field, dim + 1]
    scales = array_at(job.column_scales, (job.fields, dim + 1), np.float32)[field]
    weights = array_at(job.weight, 1, np.float32)
    source, columns = np.int64(gradient.ctypes.data), np.int64(scales.ctypes.data)
    strength, decay_power, linear_lr = job.weight_decay, job.weight_decay_power, job.linear_lr_scale
    rare, whole = 1.0 / max(size, 1.0), dim - dim % LANES
    for k in range(found):
        frequencies[k] = marks[k] / seen
    for k in range(found):
        p = max(frequencies[k], (1.0 - job.beta2) * rare)
        rates[k] = rate(p, lr, 0.5, math.inf)
        bounds[k] = (dim + 1) * bound(p, rare, job.clip)
    for k in range(found):
        _prefetch(job, field, k + AHEAD, found, scratch)
        _find_gradient(job, field, scratch, k)
        row = rows[k] * (dim + 1)
        if strength > 0:
            p, q = frequencies[k], times[k] / size
            kept = np.float32(1.0 - decay(p, q, lr, strength, decay_power))
            for j in range(dim):
                weights[row + j] *= kept
            linear_part = lr * linear_lr * job.linear_decay_scale
            weights[row + dim] *= np.float32(1.0 - decay(p, q, linear_part, strength, decay_power))
        squares = sum_squared_products(source, columns, whole, np.float32(0))
        for j in range(whole, dim + 1):
            gradient[j] *= scales[j]
            squares += gradient[j] * gradient[j]
        eta = rates[k] if squares <= bounds[k] else rates[k] * math.sqrt(bounds[k] / squares)
        by = np.float32(-eta)
        for j in range(0, 4 * whole, 4 * LANES):
            add_scaled_product(job.weight + row * 4 + j, source + j, columns + j, by)
        for j in range(whole, dim):
            weights[row + j] += by * gradient[j]
        weights[row + dim] += np.float32(-eta * linear_lr) * gradient[dim]


@compiled
def _apply_adaptive(job, step, size, lr, field, found, scratch):
    """Build the gradient of each row, then hand it to the rule."""
    dim, gradient, distinct = job.dim, scratch.gradient, scratch.distinct
    rows, times, frequencies = distinct.rows, distinct.times, distinct.frequencies
    address = np.int64(gradient.ctypes.data)
    corrections = _corrections(job, step)
    for k in range(found):
        row = rows[k]
        weight = array_at(job.weight + row * (dim + 1) * 4, dim + 1, np.float32)
        _find_gradient(job, field, scratch, k)
        if job.rule == ROWWISE_ADAGRAD:
            p, q = frequencies[k], times[k] / size
            _rowwise_adagrad(job, row, lr, p, q, weight, gradient)
        else:
            _elementwise(job, row, lr, corrections, address)


@compiled
def _rowwise_adagrad(job, row, lr, p, q, weight, gradient):
    """Apply Adagrad with one sum of squares for the vector, one for the linear weight.

    Weight decay follows the law.
    """
    dim = job.dim
    state = array_at(job.state + row * 8, 2, np.float32)
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
    eta = lr * job.linear_lr_scale / (math.sqrt(state[1]) + job.eps)
    strength = job.weight_decay * job.linear_decay_scale
    part = decay(p, q, eta, strength, job.weight_decay_power)
    weight[dim] = np.float32(1.0 - part) * weight[dim] - np.float32(eta) * gradient[dim]


@compiled
def _update_others(job, step, lr, field, shard, scratch, marks):
    """Apply a rule to rows whose gradient is zero."""
    mark = array_at(job.marks, 1, marks.dtype)
    shift, mask, corrections = job.shard_shift, job.shards - 1, _corrections(job, step)
    _, _, first, last = span_of(job, field)
    no_gradient = np.int64(scratch.no_gradient.ctypes.data)
    for row in range(first, last):
        if (row >> shift) & mask == shard and mark[row] >= 0:
            _elementwise(job, row, lr, corrections, no_gradient)


@compiled
def _elementwise(job, row, lr, corrections, address):
    """Apply Adagrad or Adam to one row, as torch does, with the gradient at an address."""
    dim, offset = job.dim, row * (job.dim + 1) * 4
    weight, state, moment = job.weight + offset, job.state + offset, job.moment + offset
    whole, gradient = dim - dim % LANES, array_at(address, dim + 1, np.float32)
    eps, l2 = np.float32(job.eps), np.float32(job.weight_decay)
    linear_l2 = np.float32(job.weight_decay * job.linear_decay_scale)
    w, s = array_at(weight, dim + 1, np.float32), array_at(state, dim + 1, np.float32)
    if job.rule == ADAGRAD:
        size = np.float32(lr)
        for j in range(0, 4 * whole, 4 * LANES):
            x = load(weight + j)
            g = load(address + j) + splat(l2) * x
            squares = load(state + j) + g * g
            store(state + j, squares)
            store(weight + j, x - splat(size) * g / (root(squares) + splat(eps)))
        for j in range(whole, dim + 1):
            is_linear = j == dim
            g = gradient[j] + (linear_l2 if is_linear else l2) * w[j]
            s[j] += g * g
            by = np.float32(lr * job.linear_lr_scale) if is_linear else size
            w[j] -= by * g / (math.sqrt(s[j]) + eps)
        return
    m = array_at(moment, dim + 1, np.float32)
    size, root_scale = np.float32(lr * corrections[0]), np.float32(corrections[1])
    add1, keep2 = np.float32(1.0 - job.beta1), np.float32(job.beta2)
    add2 = np.float32(1.0 - job.beta2)
    for j in range(0, 4 * whole, 4 * LANES):
        x = load(weight + j)
        g = load(address + j) + splat(l2) * x
        mean = load(moment + j)
        mean = mean + splat(add1) * (g - mean)
        squares = splat(keep2) * load(state + j) + splat(add2) * g * g
        store(moment + j, mean)
        store(state + j, squares)
        store(weight + j, x - splat(size) * mean / (root(squares) * splat(root_scale) + splat(eps)))
    for j in range(whole, dim + 1):
        is_linear = j == dim
        g = gradient[j] + (linear_l2 if is_linear else l2) * w[j]
        m[j] += add1 * (g - m[j])
        s[j] = keep2 * s[j] + add2 * g * g
        by = np.float32(lr * job.linear_lr_scale * corrections[0]) if is_linear else size
        w[j] -= by * m[j] / (math.sqrt(s[j]) * root_scale + eps)


@compiled
def _corrections(job, step):
    """Return the factors of Adam's first moment, and of the root of the second."""
    t = float(job.steps_before + step + 1)
    return 1.0 / (1.0 - job.beta1**t), 1.0 / math.sqrt(1.0 - job.beta2**t)
