"""Probabilities that are as high, on average, as the label."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError, Dataset
from freqsgd.nn.fm import FM
from freqsgd.training.predictor import predictor_for

__all__ = ["keep_base_rate", "shift_to_base_rate"]

_CLOSE = 1e-9  # log odds; those of a model are float32
_MOST_STEPS = 100  # enough for halving alone


def keep_base_rate(model: FM, data: Dataset, threads: int | None) -> None:
    """Move the bias until the mean probability of the training rows is their mean label.

    The epoch was chosen by AUC, which does not see the level of the probabilities.
    """
    rows = data.splits.train
    logits = predictor_for(model, threads).predict(data.ids, rows).astype(np.float64)
    weights = None if data.weights is None else data.weights[rows].astype(np.float64)
    with torch.no_grad():
        model.bias.add_(shift_to_base_rate(logits, data.labels[rows], weights))


def shift_to_base_rate(
    logits: NDArray[np.float64], labels: NDArray[np.uint8], weights: NDArray[np.float64] | None
) -> float:
    """What to add to log odds of rows of both classes: Newton's method, between bounds."""
    if not np.isfinite(logits).all():
        raise DataError("log odds of training rows are not finite numbers: try a smaller lr")
    share = np.full(len(logits), 1 / len(logits)) if weights is None else weights / weights.sum()
    positive, negative = share @ labels, share @ (1 - labels)
    level = np.log(positive) - np.log(negative)
    low, high = level - logits.max(), level - logits.min()  # no row is above, none is below it
    shift = min(max(0.0, low), high)
    for _ in range(_MOST_STEPS):
        with np.errstate(over="ignore"):
            p = 1 / (1 + np.exp(-(logits + shift)))
        excess, slope = share @ p - positive, share @ (p * (1 - p))
        low, high = (low, shift) if excess > 0 else (shift, high)
        step = -excess / slope if slope > 0 else np.inf
        if not low < shift + step < high:
            step = (low + high) / 2 - shift
        shift += step
        if abs(step) < _CLOSE:
            break
    return float(shift)
