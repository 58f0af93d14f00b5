"""Second moments of adaptive optimizers against token counts: the paper's Figure 3a-b.

Adagrad and Adam divide a token's step by the root of a second moment of its gradients, CF-SGD by
the root of its count. If the moments are proportional to the counts, the two do the same: on a
log-log scale the points then lie on a line of slope 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.training.similarity import spearman

__all__ = ["line_fit", "pearson", "relate", "row_moments", "scatter"]

_MOST_POINTS = 2000  # of a scatter plot
_FEWEST = 3  # points: two always lie on a line


def row_moments(optimizer: str, state: Mapping[str, Tensor]) -> NDArray[np.float64] | None:
    """The second moment of each token's vector, as the mean of its numbers.

    Adagrad's sum of squared gradients, row-wise Adagrad's sum of their means, Adam's
    exponentially weighted mean (``exp_avg_sq``, without bias correction). Linear weights, the
    last column, are left out. None for optimizers that keep none.
    """
    if optimizer == "rowwise-adagrad":
        return state["state"][:, 0].double().numpy()
    if optimizer in ("adagrad", "adam"):
        return state["state"][:, :-1].double().mean(1).numpy()
    return None


def relate(counts: NDArray[Any], moments: NDArray[np.float64]) -> dict[str, float | None]:
    """How closely second moments follow counts, over tokens that have both.

    The line is ``log(moment) = intercept + slope * log(count)``, by least squares.

    Example:
        >>> counts = np.array([1, 2, 4, 8])
        >>> found = relate(counts, 3.0 * counts**2)
        >>> round(found["slope"], 6), round(found["pearson_log"], 6), found["spearman"]
        (2.0, 1.0, 1.0)
    """
    both = (counts > 0) & (moments > 0) & np.isfinite(moments)
    count, moment = counts[both].astype(np.float64), moments[both]
    log_count, log_moment = np.log(count), np.log(moment)
    slope, intercept, error = line_fit(log_count, log_moment)
    return {
        "tokens": len(count),
        "pearson": pearson(count, moment),
        "pearson_log": pearson(log_count, log_moment),
        "spearman": spearman(count, moment),
        "slope": slope,
        "intercept": intercept,
        "slope_error": error,
    }


def pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """Linear correlation; None for fewer than three pairs, and where all values are the same."""
    if len(x) < _FEWEST:
        return None
    x, y = x - x.mean(), y - y.mean()
    length = math.sqrt(x @ x) * math.sqrt(y @ y)
    return float(x @ y) / length if length else None


def line_fit(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[float | None, float | None, float | None]:
    """Slope and intercept of the least-squares line, and the slope's standard error."""
    if len(x) < _FEWEST or x.min() == x.max():
        return None, None, None
    dx, dy = x - x.mean(), y - y.mean()
    spread = float(dx @ dx)
    slope = float(dx @ dy) / spread
    rest = dy - slope * dx
    error = math.sqrt(float(rest @ rest) / (len(x) - 2) / spread)
    return slope, float(y.mean() - slope * x.mean()), error


def scatter(
    counts: NDArray[Any], moments: NDArray[np.float64], sizes: Sequence[int]
) -> dict[str, list[float]]:
    """Tokens to draw: ``count``, ``moment`` and the number of the ``field``.

    At most 2,000, evenly spaced by rank from the most frequent to the rarest.
    """
    seen = np.flatnonzero((counts > 0) & (moments > 0) & np.isfinite(moments))
    ranked = seen[np.argsort(-counts[seen], kind="stable")]
    if len(ranked) > _MOST_POINTS:
        ranked = ranked[np.linspace(0, len(ranked) - 1, _MOST_POINTS).round().astype(np.int64)]
    field = np.searchsorted(np.cumsum(sizes), ranked, side="right")
    return {
        "count": counts[ranked].tolist(),
        "moment": moments[ranked].tolist(),
        "field": field.tolist(),
    }
