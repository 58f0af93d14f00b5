r"""Factorization machines: exact minibatch training without building gradients.

A sample with tokens k has the log odds

    z = bias + sum_k w_k + (|S|^2 - sum_k |v_k|^2) / 2          S = sum_k v_k

With the slope g = dloss/dz / batch size, the gradient of a row is the sum over its occurrences of
g (S - v_k), that is A_k - G_k v_k with A_k = sum g S and G_k = sum g; that of its linear weight is
G_k. A row of the table holds v_k and, last, w_k.

A step has two phases. First the samples, a chunk at a time: z, g and S of each. Then the rows, a
field (or a part of one) at a time: find the occurrences of each row, add up A and G, apply the
rule. Threads take such units of work in order; whoever holds a unit of a phase waits until all
units of the phases before are finished. What a unit computes does not depend on who else runs, so
any number of threads gives the same bits.

CFAdam needs the squares of the gradients of all occurrences before it moves a row. The first phase
sums them while the rows are at hand, and the unit of the bias, for which its row units wait, turns
them into the second moments of each field's columns.

A field may be a bag: it has several columns, of which those that hold -1 are empty.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np

from freqsgd.kernels.fm.job import CHUNK, JOB
from freqsgd.kernels.fm.occurrences import row_scratch
from freqsgd.kernels.fm.rows import update_bias, update_field, update_moments
from freqsgd.kernels.fm.samples import predict_chunk, sample_scratch, square_chunk
from freqsgd.kernels.machine import increment, kernel, wait_for
from freqsgd.optimizers import CFADAM

__all__ = ["step_kernel"]


@cache
def step_kernel(mark_type: Any) -> Any:
    """Return the kernel for marks of a type: int32 or int64; float64 where counts fade."""

    @kernel(JOB, mark_type)
    def fm(jobs):
        job = numba.carray(jobs, 1)[0]
        marks = np.empty(0, mark_type)  # stands for the type of its items
        steps = (job.last - job.first + job.batch_size - 1) // job.batch_size
        chunks = (min(job.batch_size, job.last - job.first) + CHUNK - 1) // CHUNK
        # Units of a step, in order: chunks of samples, the bias, parts of fields.
        squares = job.update != 0 and job.rule == CFADAM
        forward = chunks if job.forward != 0 or squares else 0
        units = forward + (1 + job.fields * job.shards if job.update != 0 else 0)
        job.units = units * steps
        samples, rows = sample_scratch(job), row_scratch(job, marks)
        unit = increment(job.counters)
        while unit < units * steps:
            step, part = unit // units, unit % units
            first = forward + 1 if squares and part > forward else forward
            wait_for(job.counters + 64, step * units + (0 if part < forward else first))
            if job.bad_step >= 0:
                pass  # nothing more is done, but every unit is passed through
            elif part < forward:
                if job.forward != 0 and not predict_chunk(job, step, part, samples):
                    job.bad_step = step
                elif squares:
                    square_chunk(job, step, part)
            elif part == forward:
                update_bias(job, step)
                if squares:
                    update_moments(job, step)
            else:
                part -= forward + 1
                update_field(job, step, part // job.shards, part % job.shards, rows, marks)
            increment(job.counters + 64)
            unit = increment(job.counters)

    return fm
