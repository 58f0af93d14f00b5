"""Means over repetitions, their ratios and slopes, with 95% intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimate", "Slope", "mean", "ratio", "slope"]

Array = NDArray[np.float64]

_RESAMPLES = 1000
_QUANTILES = (0.025, 0.975)


@dataclass(frozen=True)
class Estimate:
    """A number for each token, and the interval that holds it in 95 of 100 cases."""

    value: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Slope:
    """Of a line through points, and its interval."""

    value: float
    low: float
    high: float
    points: int


def mean(samples: Array, seed: int = 0) -> Estimate:
    """The mean over repetitions, samples being (repetitions, tokens); intervals by bootstrap."""
    means = _weights(len(samples), seed) @ samples
    return Estimate(samples.mean(0), *np.quantile(means, _QUANTILES, axis=0))


def ratio(above: Array, below: Array, seed: int = 0) -> Estimate:
    """The ratio of two means over the same repetitions, which the bootstrap draws together."""
    weights = _weights(len(above), seed)
    ratios = (weights @ above) / (weights @ below)
    value = above.mean(0) / below.mean(0)
    return Estimate(value, *np.quantile(ratios, _QUANTILES, axis=0))


def slope(x: Array, y: Array) -> Slope | None:
    """The least-squares slope, with Student's interval; None for fewer than three points."""
    from scipy import stats

    if len(np.unique(x)) < 3:
        return None
    line = stats.linregress(x, y)
    half = float(stats.t.ppf(_QUANTILES[1], len(x) - 2) * line.stderr)
    value = float(line.slope)
    return Slope(value, value - half, value + half, len(x))


def _weights(repetitions: int, seed: int) -> Array:
    """How much each repetition counts in each resample."""
    generator = np.random.default_rng(seed)
    even = np.full(repetitions, 1 / repetitions)
    return generator.multinomial(repetitions, even, _RESAMPLES) / repetitions
