"""How good predictions are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.runs.metrics import CLASSES
from freqsgd.tables.streaming_metrics import normalized, ranked

__all__ = ["auc", "auc_by_frequency", "cross_entropy", "normalized_entropy"]


def auc(scores: NDArray[Any], labels: NDArray[Any]) -> float | None:
    """The chance that a positive scores above a negative, ties counting half; exact.

    None where there are no positives or no negatives, or a score is not a number.

    Example:
        >>> auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]))
        0.875
    """
    order = np.argsort(scores)
    scores, positive = scores[order], labels[order].astype(np.int64)
    if not len(labels) or np.isnan(scores[-1]):  # NaN comes last
        return None
    ties = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]]))
    won = np.add.reduceat(positive, ties)  # positives of each score
    lost = np.diff(np.append(ties, len(labels))) - won
    return ranked(lost, won)


def cross_entropy(
    logits: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any] | None = None
) -> float:
    """Mean loss of log odds, in nats."""
    z = logits.astype(np.float64)
    return float(np.average(np.logaddexp(0.0, np.where(labels == 1, -z, z)), weights=weights))


def normalized_entropy(loss: float, labels: NDArray[Any]) -> float | None:
    """A loss over that of always predicting the base rate; below 1 is better than that."""
    return normalized(loss, int(labels.sum()), len(labels))


def auc_by_frequency(
    logits: NDArray[Any], labels: NDArray[Any], classes: NDArray[np.int8]
) -> dict[str, float | None]:
    """AUC of the samples of each class; ``classes`` are those of the samples' rarest tokens."""
    chosen = ((name, classes == k) for k, name in enumerate(CLASSES))
    return {name: auc(logits[rows], labels[rows]) for name, rows in chosen}
