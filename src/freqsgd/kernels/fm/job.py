"""What the kernel of factorization machines is told, and what its phases share."""

from __future__ import annotations

import numpy as np

from freqsgd.kernels.machine import array_at, compiled

__all__ = [
    "AHEAD",
    "CHUNK",
    "JOB",
    "PAD",
    "batch_of",
    "span_of",
]

AHEAD = 8  # rows that are fetched before they are updated; twice that before they are summed
CHUNK = 128  # samples of a unit
PAD = 16  # numbers between columns of ids: caches dislike distances that are powers of 2

ADDRESS = COUNT = FLAG = np.int64  # an address of 0: there is no such array
NUMBER = np.float64

JOB = np.dtype(
    [
        # progress, which the kernel writes
        ("counters", ADDRESS),  # two int64, 64 bytes apart: units taken, units finished
        ("units", COUNT),  # units of all steps
        ("bad_step", COUNT),  # a step whose loss is not finite; -1: none
        ("bad_id", COUNT),  # place in ids of one that is out of range; -1: none
        # phases to run
        ("forward", FLAG),
        ("update", FLAG),
        # samples: step s takes positions first + s * batch_size and following, up to last
        ("ids", ADDRESS),  # int32 (samples, columns)
        ("labels", ADDRESS),  # uint8 (samples)
        ("sample_weights", ADDRESS),  # float32 (samples): factors of losses; 0: all are 1
        ("order", ADDRESS),  # int64 (positions): sample at each position; 0: the position itself
        ("first", COUNT),
        ("last", COUNT),
        ("batch_size", COUNT),
        ("columns", COUNT),
        ("columns_start", ADDRESS),  # int64 (columns): first row of each in the table
        ("columns_size", ADDRESS),  # int64 (columns): rows of each
        ("fields", COUNT),
        ("spans", ADDRESS),  # int64 (fields, 4): first and last column, first and last row
        # model
        ("weight", ADDRESS),  # float32 (rows, dim + 1)
        ("dim", COUNT),
        ("bias", ADDRESS),  # float32 (1)
        # what the first phase leaves to the second, by position in the batch
        ("batch_ids", ADDRESS),  # int32 (columns, batch_size + PAD); -1: empty
        ("sums", ADDRESS),  # float32 (batch_size, dim): S of each sample
        ("slopes", ADDRESS),  # float32 (batch_size): g of each sample
        ("chunk_losses", ADDRESS),  # float64 (chunks of a batch)
        ("chunk_squares", ADDRESS),  # float32 (chunks of a batch, fields, dim + 2): squares of the
        # gradients of occurrences by column, the linear weight's included; their number
        # results, and what a network has to do with them
        ("losses", ADDRESS),  # float64 (steps)
        ("logits", ADDRESS),  # float32 (last - first)
        ("vectors", ADDRESS),  # float32 (batch_size, fields, dim), summed over bags
        ("vectors_gradient", ADDRESS),  # the same shape: added to gradients of rows
        # rule
        ("rule", COUNT),  # the optimizer's kernel, as freqsgd.optimizers numbers them
        ("dense", FLAG),  # every step changes all rows
        ("dense_decay", FLAG),  # weight decay is that of torch; else the law's
        ("shards", COUNT),  # parts of each field; a power of 2
        ("shard_shift", COUNT),  # 2 ** shard_shift neighbouring rows are in one part
        ("lrs", ADDRESS),  # float64 (steps)
        ("power", NUMBER),
        ("max_lr", NUMBER),
        ("weight_decay", NUMBER),
        ("weight_decay_power", NUMBER),
        ("linear_lr_scale", NUMBER),  # lr and decay of linear weights, times those of vectors
        ("linear_decay_scale", NUMBER),
        ("bias_lr_scale", NUMBER),  # lr of the bias where the law holds, times that of vectors
        ("beta1", NUMBER),
        ("beta2", NUMBER),
        ("eps", NUMBER),
        ("state", ADDRESS),  # float32 as the weight, or (rows, 2): sums of squares
        ("moment", ADDRESS),  # float32 as the weight: Adam's first moment
        ("bias_state", ADDRESS),  # float32 (2): both for the bias
        ("moments", ADDRESS),  # float64 (fields, dim + 2): CFAdam's s by column, and n
        ("column_scales", ADDRESS),  # float32 (fields, dim + 1): 1 / sqrt(s) in this step
        ("field_tokens", ADDRESS),  # float64 (fields): occurrences in this step
        ("clip", NUMBER),
        # frequencies
        ("frequencies", ADDRESS),  # float32 (rows); 0: marks over samples, or over steps
        ("marks", ADDRESS),  # (rows): counts, or zeros if nothing is counted
        ("counted", FLAG),  # marks are counts
        ("once_per_step", FLAG),  # a row counts once in a step, and steps stand for samples
        ("samples_before", COUNT),  # samples seen before the first step
        ("steps_before", COUNT),
        # counts that fade: sample b of step s counts gains[b] * gain_factors[s]
        ("gains", ADDRESS),  # float64 (batch_size); 0: counts do not fade
        ("gain_factors", ADDRESS),  # float64 (steps)
        ("masses", ADDRESS),  # float64 (steps): what all samples up to a step's last one count
    ]
)


@compiled
def batch_of(job, step):
    """Return the first position of a step, and its number of samples."""
    start = job.first + step * job.batch_size
    return start, min(job.batch_size, job.last - start)


@compiled
def span_of(job, field):
    """Return the first column of a field and the one behind its last; the same of its rows."""
    span = array_at(job.spans, (job.fields, 4), np.int64)[field]
    return span[0], span[1], span[2], span[3]
