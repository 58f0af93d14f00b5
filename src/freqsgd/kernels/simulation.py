"""The paper's algorithms on a problem that is known: one pair of tokens per iteration."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numba
import numpy as np

from freqsgd.kernels.machine import compiled, inlined, kernel, pointer, take
from freqsgd.kernels.rows import rate
from freqsgd.kernels.threads import run

__all__ = ["advance"]

_JOB = np.dtype(
    [
        ("next", np.int64),
        ("repetitions", np.int64),
        ("first", np.int64),  # iterations that have been made
        ("last", np.int64),  # that are to be made in the end
        ("users", np.int64),
        ("items", np.int64),
        ("dim", np.int64),
        ("outputs", np.int64),
        ("keep", np.int64),  # address: chance that a cell is kept as drawn, (cells,) float64
        ("other", np.int64),  # address: the cell that is taken otherwise, (cells,) int64
        ("positive", np.int64),  # address: chance of the label 1, (repetitions, cells) float64
        ("steps", np.int64),  # address: step size of each token, (tokens,) float64
        ("counting", np.int64),
        ("lr", np.float64),
        ("power", np.float64),
        ("cap", np.float64),
        ("blocks", np.int64),
        ("radius2", np.float64),
        ("rows", np.int64),  # address: (repetitions, tokens, dim) float64
        ("counts", np.int64),  # address: (repetitions, tokens) int64
        ("randoms", np.int64),  # address: state of the generator, (repetitions,) uint64
        ("times", np.int64),  # address: ascending iterations to put out, (repetitions, outputs)
        ("taken", np.int64),  # address: how many have been put out, (repetitions,) int64
        ("iterates", np.int64),  # address: (repetitions, outputs, tokens, dim) float64
        ("left", np.int64),  # address: iteration that left the ball, -1: none, (repetitions,)
    ]
)


def advance(state: dict[str, Any], first: int, last: int, workers: int) -> None:
    """Make the iterations from ``first`` to ``last`` of all repetitions.

    ``state`` has a value for each name of a job but these: numbers, and contiguous arrays of the
    types and shapes that are written beside the addresses there. Rows, counts, randoms, taken,
    iterates and left are changed. The result does not depend on the number of workers.
    """
    job = np.zeros(1, _JOB)
    for name, value in state.items():
        job[name] = value.ctypes.data if isinstance(value, np.ndarray) else value
    job["first"], job["last"] = first, last
    run(_simulation_kernel(), job, workers)


@cache
def _simulation_kernel() -> Any:
    @kernel(_JOB)
    def simulation(jobs):
        job = numba.carray(jobs, 1)[0]
        repetition = take(jobs)
        while repetition < job.repetitions:
            _repetition(job, repetition)
            repetition = take(jobs)

    return simulation


@inlined
def _random(state):
    """64 random bits and the generator's next state (SplitMix64)."""
    state += np.uint64(0x9E3779B97F4A7C15)
    bits = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31)), state


@inlined
def _below(bits, limit):
    """A whole number below ``limit``, of the upper 32 bits."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@compiled
def _repetition(job, repetition):
    users, items, dim, tokens = job.users, job.items, job.dim, job.users + job.items
    cells = users * items
    keep = numba.carray(pointer(job.keep), cells, dtype=np.float64)
    other = numba.carray(pointer(job.other), cells, dtype=np.int64)
    chances = job.positive + repetition * cells * 8
    positive = numba.carray(pointer(chances), cells, dtype=np.float64)
    steps = numba.carray(pointer(job.steps), tokens, dtype=np.float64)
    own = repetition * tokens * dim * 8
    rows = numba.carray(pointer(job.rows + own), (tokens, dim), dtype=np.float64)
    counts = numba.carray(pointer(job.counts + repetition * tokens * 8), tokens, dtype=np.int64)
    randoms = numba.carray(pointer(job.randoms), job.repetitions, dtype=np.uint64)
    left = numba.carray(pointer(job.left), job.repetitions, dtype=np.int64)
    counting, blocks = job.counting != 0, job.blocks != 0
    lr, power, cap, radius2 = job.lr, job.power, job.cap, job.radius2
    state = randoms[repetition]
    output = _put_out(job, repetition, job.first, rows)
    for t in range(job.first, job.last):
        if t == output:
            output = _put_out(job, repetition, t, rows)
        bits, state = _random(state)
        cell = _below(bits, cells)
        if np.float64(bits & np.uint64(0xFFFFFFFF)) * 2.0**-32 >= keep[cell]:
            cell = other[cell]
        user, item = cell // items, users + cell % items
        bits, state = _random(state)
        label = 1.0 if np.float64(bits >> np.uint64(11)) * 2.0**-53 < positive[cell] else 0.0
        user_step, item_step = steps[user], steps[item]
        if counting:
            counts[user] += 1
            counts[item] += 1
            user_step = rate(counts[user] / (t + 1), lr, power, cap)
            item_step = rate(counts[item] / (t + 1), lr, power, cap)
        if blocks:
            bits, state = _random(state)
            block = _below(bits, tokens)
            user_step = user_step if block == user else 0.0
            item_step = item_step if block == item else 0.0
        product = 0.0
        for k in range(dim):
            product += rows[user, k] * rows[item, k]
        residual = 1.0 / (1.0 + math.exp(-product)) - label
        user_norm2 = item_norm2 = 0.0
        for k in range(dim):
            u, v = rows[user, k], rows[item, k]
            rows[user, k] = u - user_step * residual * v
            rows[item, k] = v - item_step * residual * u
            user_norm2 += rows[user, k] * rows[user, k]
            item_norm2 += rows[item, k] * rows[item, k]
        if not max(user_norm2, item_norm2) <= radius2 and left[repetition] < 0:
            left[repetition] = t
    _put_out(job, repetition, job.last, rows)
    randoms[repetition] = state


@compiled
def _put_out(job, repetition, t, rows):
    """Copy the rows for each output that is due; return when the next one is."""
    size = rows.size * 8
    times = numba.carray(pointer(job.times), job.repetitions * job.outputs, dtype=np.int64)
    taken = numba.carray(pointer(job.taken), job.repetitions, dtype=np.int64)
    place = repetition * job.outputs
    while taken[repetition] < job.outputs and times[place + taken[repetition]] == t:
        address = job.iterates + (place + taken[repetition]) * size
        to = numba.carray(pointer(address), rows.shape, dtype=np.float64)
        for token in range(rows.shape[0]):  # "to[:] = rows" takes seconds to compile
            for k in range(rows.shape[1]):
                to[token, k] = rows[token, k]
        taken[repetition] += 1
    return times[place + taken[repetition]] if taken[repetition] < job.outputs else -1
