"""What the word2vec kernel is told, and what its phases share."""

from __future__ import annotations

import numpy as np

from freqsgd.kernels.machine import compiled
from freqsgd.kernels.simd import LANES

__all__ = [
    "COLUMNS",
    "GUARD",
    "JOB",
    "PARTS",
    "POOL_UNIT",
    "ROWS",
    "VECTOR_BYTES",
    "band_width",
    "padded",
    "row_bytes_of",
]

ROWS, COLUMNS = 4, 3  # of a tile
PARTS = 4  # units of the phases that are divided by rows
POOL_UNIT = ROWS * COLUMNS  # a pool holds a multiple of this
GUARD = ROWS - 1  # zeros beside a band

VECTOR_BYTES = 4 * LANES

JOB = np.dtype(
    [
        ("counters", np.int64),  # address of two int64, 64 bytes apart: units taken, units finished
        ("bad", np.int64),  # block whose loss is not finite; -1: none
        # the text
        ("ids", np.int64),  # int32 (length)
        ("starts", np.int64),  # int32 (length): where the paragraph of each word starts
        ("ends", np.int64),  # int32 (length): and ends
        ("length", np.int64),
        ("first", np.int64),  # block to begin with
        ("last", np.int64),  # block to end before
        ("window", np.int64),
        ("full", np.int64),  # only words with a whole window are centres
        ("cbow", np.int64),
        ("block", np.int64),  # words; a multiple of ROWS * PARTS
        ("pool", np.int64),  # noise words
        ("negatives", np.int64),
        ("noise", np.int64),  # float64 (words): cumulative probabilities
        ("words", np.int64),
        ("seed", np.int64),
        # the model
        ("input", np.int64),  # float32 (words, dim)
        ("output", np.int64),
        ("dim", np.int64),
        # the rule
        ("rule", np.int64),  # branch of the kernel
        ("input_counts", np.int64),  # 0: p = frequency
        ("output_counts", np.int64),
        ("input_frequencies", np.int64),  # float32 (words); 0: p = count / samples
        ("output_frequencies", np.int64),
        ("input_state", np.int64),  # float32 (words)
        ("output_state", np.int64),
        ("moments", np.int64),  # float64 (2, dim + 2): CFAdam's s by column, n, and blocks so far
        ("samples", np.int64),  # before, and after
        ("lr", np.float64),
        ("power", np.float64),
        ("cap", np.float64),
        ("most", np.float64),  # bound on a row's rate times the samples of a block that touch it
        ("eps", np.float64),
        ("beta2", np.float64),
        ("clip", np.float64),
        # of a block. Inputs are the words from `window` before it to `window` behind it
        ("inputs", np.int64),  # how many there is room for; a multiple of ROWS
        ("rows", np.int64),  # int64 (inputs + block + pool): of inputs, targets, noise; -1: none
        ("weights", np.int64),  # float32 (inputs): samples of each input; of each target, for CBOW
        ("touches", np.int64),  # float32 (inputs + block + pool): samples that touch each of these
        ("totals", np.int64),  # float32 (2, words): zeros
        ("targets", np.int64),  # addresses of (inputs + block + pool) rows: where to add gradients
        ("scales", np.int64),  # float32 (inputs + block + pool): times what
        ("owners", np.int64),  # int64 (inputs + block + pool): first of the same row
        ("marks", np.int64),  # int64 (2, words): -1
        ("copies", np.int64),  # float32 (inputs + block + pool, padded)
        ("hidden", np.int64),  # float32 (inputs, padded): means of windows, for CBOW
        ("gradients", np.int64),  # float32 (inputs + block + pool, padded): zeros, for rules that
        # must see whole rows
        ("rates", np.int64),  # float32 (inputs + block + pool): of CFAdam's rows
        ("bounds", np.int64),  # float32 (inputs + block + pool): on the squares of a scaled row
        ("squares", np.int64),  # float32 (2, padded): zeros, for sums of squares by column
        ("column_scales", np.int64),  # float32 (2, padded): 1 / sqrt(s) in this block
        ("root_scale", np.float64),  # 1 / sqrt(1 - beta2^t); 0: a block without samples
        ("band", np.int64),  # float32 (block, 2 window + 1 + 2 GUARD): zeros; (block) for CBOW
        ("noise_slopes", np.int64),  # float32 (inputs, pool)
        ("losses", np.int64),  # float64 (blocks, PARTS)
    ]
)


def padded(dim: int) -> int:
    """Numbers of whole vectors."""
    return -(-dim // LANES) * LANES


@compiled
def band_width(job):
    """Numbers of a row of the band, with zeros on both sides."""
    return 2 * job.window + 1 + 2 * GUARD


@compiled
def row_bytes_of(job):
    """Bytes of a copied row."""
    return (job.dim + LANES - 1) // LANES * VECTOR_BYTES
