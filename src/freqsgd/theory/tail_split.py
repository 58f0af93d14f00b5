"""Ranks from one half of the occurrences, counts from the other.

Sorted counts fall even where tokens are equally frequent: chance makes some of them come first. So
every occurrence is put, by the toss of a coin, into one of two halves. The first ranks the tokens,
the second is counted at these ranks, and what was luck in the first is not repeated in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freqsgd.theory.checks import Array

__all__ = ["SplitCounts", "split_occurrences"]

_SEED = 2022  # not 0 or 1, with which counts may have been drawn


@dataclass(frozen=True)
class SplitCounts:
    """Tokens of the first half by falling count.

    Attributes:
        ranking: how often each is in the first half
        counts: how often in the second: of equally ranked tokens, the mean
    """

    ranking: NDArray[np.int64]
    counts: Array

    @property
    def ends(self) -> NDArray[np.int64]:
        """The last ranks of the blocks of equally ranked tokens."""
        return np.append(np.flatnonzero(np.diff(self.ranking)) + 1, self.ranking.size)

    @property
    def unevenness(self) -> float:
        """By how many standard errors the mean rank of the second half is below the middle one.

        Of equally frequent tokens every rank is equally likely, also where some are never seen.
        """
        tokens, occurrences = self.counts.size, float(self.counts.sum())
        middle, variance = (tokens + 1) / 2, (tokens**2 - 1) / 12
        mean = float(self.counts @ np.arange(1.0, tokens + 1.0)) / occurrences
        return (middle - mean) / math.sqrt(variance / occurrences)


def split_occurrences(counts: NDArray[np.int64], seed: int = _SEED) -> SplitCounts:
    """Toss a coin for each occurrence of each token; tokens that the first half lacks are left out.

    Args:
        counts: of the tokens, in any order
        seed: of the coin
    """
    first = np.random.default_rng(seed).binomial(counts, 0.5)
    order = np.argsort(-first, kind="stable")[: np.count_nonzero(first)]
    ranking, second = first[order], (counts - first)[order]
    starts = np.flatnonzero(np.diff(ranking, prepend=0))
    sizes = np.diff(starts, append=ranking.size)
    means = np.add.reduceat(second, starts) / sizes if starts.size else np.empty(0)
    return SplitCounts(ranking, np.repeat(means, sizes))
