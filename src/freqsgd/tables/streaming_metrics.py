"""Metrics of predictions that are added up as they are made, without keeping them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.kernels.compiled import compiled

BINS = 1 << 16
REACH = 16.0  # log odds beyond it share the first and the last bin
METRICS = ("loss", "ne", "auc", "calibration")


class Tally:
    """Sums and histograms of some predictions.

    Attributes:
        sums: of losses, and of predicted probabilities
        bins: negatives and positives by their log odds
    """

    def __init__(self) -> None:
        self.sums = np.zeros(2)
        self.bins = np.zeros((2, BINS), np.int64)

    def add(self, logits: NDArray[np.float32], labels: NDArray[np.uint8]) -> None:
        """Take in predictions."""
        _add(logits, labels, self.sums, self.bins)

    def merge(self, other: Tally) -> None:
        """Take in what another has taken in."""
        self.sums += other.sums
        self.bins += other.bins

    def clear(self) -> None:
        """Forget everything."""
        self.sums[:] = 0
        self.bins[:] = 0

    @property
    def counts(self) -> tuple[int, int]:
        """Negatives and positives taken in."""
        negatives, positives = self.bins.sum(1).tolist()
        return negatives, positives

    def metrics(self) -> dict[str, float | None]:
        """Mean loss, normalized entropy, AUC and calibration; None for what is not defined.

        NE is the mean loss over that of always predicting these examples' base rate; calibration is
        the sum of predicted probabilities over the number of positives. AUC takes log odds that
        are less than 1/2048 apart for equal.
        """
        negatives, positives = self.counts
        examples = negatives + positives
        if examples == 0 or not np.isfinite(self.sums).all():
            return dict.fromkeys(METRICS)
        loss = float(self.sums[0]) / examples
        return {
            "loss": loss,
            "ne": normalized(loss, positives, examples),
            "auc": ranked(*self.bins),
            "calibration": float(self.sums[1]) / positives if positives else None,
        }


def normalized(loss: float, positives: int, examples: int) -> float | None:
    """Divide a mean loss by the entropy of the base rate, if there are examples of both classes."""
    if not 0 < positives < examples:
        return None
    p = positives / examples
    return loss / -(p * math.log(p) + (1 - p) * math.log1p(-p))


def ranked(negatives: NDArray[np.int64], positives: NDArray[np.int64]) -> float | None:
    """AUC, if there are examples of both classes: how many of each have a score, in their order."""
    pairs = int(negatives.sum()) * int(positives.sum())
    if pairs == 0:
        return None
    below = np.cumsum(negatives) - negatives
    return float((positives * (below + 0.5 * negatives)).sum()) / pairs


@compiled
def _add(logits: Any, labels: Any, sums: Any, bins: Any) -> None:
    loss = probability = 0.0
    for k in range(len(logits)):
        z, label = np.float64(logits[k]), labels[k]
        e = math.exp(-abs(z))
        loss += math.log1p(e) + max(z, 0.0) - (z if label else 0.0)
        probability += (1.0 if z >= 0.0 else e) / (1.0 + e)
        place = 0
        if z >= REACH:
            place = BINS - 1
        elif z > -REACH:  # not so if it is no number
            place = int((z + REACH) * (BINS / (2 * REACH)))
        bins[label, place] += 1
    sums[0] += loss
    sums[1] += probability
