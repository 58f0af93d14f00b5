"""Rows of a click log, compiled; :mod:`freqsgd.streams.click_log` says what they are.

All that is random is a hash of a key and a counter (SplitMix64): nothing depends on what was made
before, so rows can be made in any order and by any number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from freqsgd.data.compiled import compiled, inlined

__all__ = ["FEATURE", "GOLDEN", "click_rows", "draw_rows"]

FEATURE = np.dtype(
    [
        ("size", np.int64),  # ranks
        ("stretch", np.float64),  # 1 / (1 - exponent), 0 where the exponent is 1
        ("span", np.float64),  # (size + 1) ** (1 - exponent) - 1, or log(size + 1)
        ("phase_key", np.uint64),  # of the ranks' phases
        ("factor", np.int64),  # rank -> (factor * rank + shift) mod size is the permutation
        ("shift", np.int64),
        ("hidden_key", np.uint64),  # of the tokens' hidden numbers
    ]
)
GOLDEN = 0x9E3779B97F4A7C15

_STEP, _FIRST, _SECOND = map(np.uint64, (GOLDEN, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_30, _27, _31, _32, _11 = map(np.uint64, (30, 27, 31, 32, 11))
_LOW = np.uint64(0xFFFFFFFF)
_UNIT = 2.0**-53
_HALF = np.int64(32)


@inlined
def _bits(key: Any, counter: Any) -> Any:
    """64 random bits: number ``counter`` of the sequence that the key starts."""
    value = key + np.uint64(counter) * _STEP
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@inlined
def _uniform(key: Any, counter: Any) -> Any:
    """A random number in [0, 1)."""
    return (_bits(key, counter) >> _11) * _UNIT


@inlined
def _rank(uniform: Any, feature: Any) -> Any:
    """The rank whose part of the distribution function holds a number in [0, 1)."""
    log = feature.span * uniform
    if feature.stretch != 0.0:
        log = math.log(1.0 + log) * feature.stretch
    return min(np.int64(math.exp(log)) - 1, feature.size - 1)


@compiled
def draw_rows(
    key: Any,
    features: Any,
    advance: Any,
    cosine: Any,
    sine: Any,
    scales: Any,
    tokens: Any,
    score: Any,
) -> None:
    """Draw the tokens of rows and what they add to the log odds.

    Args:
        key: of the rows
        features: (F,) FEATURE
        advance: generations that have passed, times 2^32
        cosine: of the day's angle
        sine: of the day's angle
        scales: (1 + dim,) of the hidden weight, then of the coordinates of the hidden vector
        tokens: (rows, F) int32, filled
        score: (rows,) float64, filled
    """
    rows, count = tokens.shape
    starts = np.empty(count, np.uint64)
    for row in range(rows):
        for column in range(count):
            feature = features[column]
            rank = _rank(_uniform(key, row * (count + 1) + column), feature)
            phase = np.int64(_bits(feature.phase_key, rank) >> _32)
            generation = (phase + advance) >> _HALF
            token = (feature.factor * rank + feature.shift) % feature.size
            token += feature.size * generation
            tokens[row, column] = token
            starts[column] = feature.hidden_key + np.uint64(token * len(scales)) * _STEP
        odds = 0.0
        for number in range(len(scales)):
            total = squares = 0.0
            for column in range(count):
                bits = _bits(starts[column], number)
                first, second = np.int32(bits >> _32), np.int32(bits)
                value = cosine * first + sine * second
                total += value
                squares += value * value
            odds += scales[number] * (total if number == 0 else total * total - squares)
        score[row] = odds


@compiled
def click_rows(key: Any, count: Any, odds: Any, labels: Any) -> None:
    """Draw the labels of rows of ``count`` tokens from their log odds."""
    for row in range(len(odds)):
        probability = 1.0 / (1.0 + math.exp(-odds[row]))
        labels[row] = _uniform(key, row * (count + 1) + count) < probability
