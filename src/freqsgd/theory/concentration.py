"""How far the counted frequency of a token is from the true one.

CF-SGD takes p^ = c / t for p. Theorem 3's proof asks how likely it is wrong by half:

    P(|p^ - p| >= p / 2)                                                    (ineq. "prob_ub")
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from freqsgd.data.dataset import DataError
from freqsgd.theory.checks import Array, frequencies, scipy

__all__ = ["chernoff_misestimation", "misestimation", "paper_misestimation"]


def misestimation(p: ArrayLike, t: ArrayLike) -> Array:
    """The probability itself: c is binomial, t draws of probability p.

    Args:
        p: frequencies of tokens
        t: number of samples seen: one number, or one for each token
    """
    special = scipy("special")
    p, samples = _p_and_samples(p, t)
    expected, draws = p * samples, samples.astype(np.int64)
    # Half a count is often a whole number that rounding would miss.
    low = np.floor(0.5 * expected + 1e-9)
    high = np.ceil(1.5 * expected - 1e-9)
    too_many: Array = special.bdtrc(np.minimum(high - 1.0, samples), draws, p)
    return np.asarray(special.bdtr(low, draws, p) + too_many)


def paper_misestimation(p: ArrayLike, t: ArrayLike) -> Array:
    """What the paper bounds it by: ``exp(-t p)``. It is not a bound: see docs/theory.md."""
    p, samples = _p_and_samples(p, t)
    return np.exp(-p * samples)


def chernoff_misestimation(p: ArrayLike, t: ArrayLike) -> Array:
    """Chernoff's bound, which holds: ``2 exp(-t p / 12)``."""
    p, samples = _p_and_samples(p, t)
    return 2.0 * np.exp(-p * samples / 12.0)


def _p_and_samples(p: ArrayLike, t: ArrayLike) -> tuple[Array, Array]:
    p = frequencies(p)
    samples = np.asarray(t, np.float64)
    if np.any(samples < 1) or np.any(samples != np.floor(samples)):
        raise DataError("t must be whole numbers >= 1: the samples seen so far")
    return p, samples
