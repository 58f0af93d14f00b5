"""Figures that results of recommenders and of word vectors share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLASSES", "frequency_classes", "spearman"]

CLASSES = ("head", "torso", "tail")
_SHARES = (0.80, 0.95)  # of a field's occurrences, that head and torso reach up to
_FEWEST = 3  # pairs to rank: of two, any order is all or nothing


def frequency_classes(counts: NDArray[Any], sizes: list[int]) -> NDArray[np.int8]:
    """Whether each row of a table is head (0), torso (1) or tail (2) of its field.

    The tokens that cover the first 80% of a field's occurrences are its head, those of the next
    15% its torso, the rest its tail.
    """
    classes = np.empty(len(counts), np.int8)
    start = 0
    for size in sizes:
        of_field = counts[start : start + size]
        order = np.argsort(-of_field, kind="stable")
        covered = np.cumsum(of_field[order]) - of_field[order]
        total = max(int(of_field.sum()), 1)
        kind = np.searchsorted(np.array(_SHARES) * total, covered, side="right")
        kind[of_field[order] == 0] = 2  # never seen
        classes[start + order] = kind
        start += size
    return classes


def spearman(a: NDArray[Any], b: NDArray[Any]) -> float | None:
    """Rank correlation, tied values sharing the mean of their ranks.

    None for fewer than three pairs, and where all values are the same or one is not finite.

    Example:
        >>> spearman(np.array([1, 2, 2, 9]), np.array([0.1, 0.3, 0.3, 0.4]))
        1.0
    """
    if len(a) < _FEWEST or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return None
    x, y = _ranks(a), _ranks(b)
    x, y = x - x.mean(), y - y.mean()
    length = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / length if length else None


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return ranks[place]
