"""Means over repetitions, their ratios and slopes, with 95% intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freqsgd.theory.checks import Array, scipy

__all__ = ["Estimate", "Slope", "mean", "ratio", "slope"]

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
    """Of lines through points, and its interval."""

    value: float
    low: float
    high: float


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


def slope(x: Array, y: Array, group: NDArray[np.int64]) -> Slope | None:
    """The slope of parallel lines, one through the points of each group, by least squares.

    With Student's interval; None where no line is determined.
    """
    x, y = _centred(x, group), _centred(y, group)
    freedom, spread = len(x) - len(np.unique(group)) - 1, float(x @ x)
    if freedom < 1 or spread == 0.0:
        return None
    value = float(x @ y) / spread
    residuals = y - value * x
    error = np.sqrt(residuals @ residuals / freedom / spread)
    half = float(scipy("stats").t.ppf(_QUANTILES[1], freedom) * error)
    return Slope(value, value - half, value + half)


def _centred(x: Array, group: NDArray[np.int64]) -> Array:
    means = np.bincount(group, x) / np.maximum(np.bincount(group), 1)
    return np.asarray(x - means[group])


def _weights(repetitions: int, seed: int) -> Array:
    """How much each repetition counts in each resample."""
    generator = np.random.default_rng(seed)
    even = np.full(repetitions, 1 / repetitions)
    return generator.multinomial(repetitions, even, _RESAMPLES) / repetitions
