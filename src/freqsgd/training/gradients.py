"""How large the gradient of the training loss still is, for frequent and for rare tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import binary_cross_entropy_with_logits

from freqsgd.data.dataset import Dataset
from freqsgd.nn.fm import FM

__all__ = ["bucket_norms", "buckets", "squared_norms"]

_BLOCK = 4096  # samples at a time: their vectors stay in the cache


def squared_norms(model: FM, data: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``|grad f_k|^2`` of every token k, for its vector and for its linear weight.

    f is the mean loss over all training rows. The network of a DeepFM is taken as it predicts:
    without dropout, and with the means and variances that batch norm has gathered.
    """
    weight, rows = model.tokens.weight, data.splits.train
    total = torch.zeros(weight.shape, dtype=torch.float64)
    with _as_it_predicts(model):
        for first in range(0, len(rows), _BLOCK):
            some = rows[first : first + _BLOCK]
            times = None if data.weights is None else torch.from_numpy(data.weights[some])
            loss = binary_cross_entropy_with_logits(
                model(torch.from_numpy(data.ids[some])),
                torch.from_numpy(data.labels[some]).float(),
                times,
                reduction="sum",
            )
            (found,) = torch.autograd.grad(loss / len(rows), [weight])
            total.index_add_(0, found._indices()[0], found._values().double())
    squares = total.square_()
    return squares[:, :-1].sum(1).numpy(), squares[:, -1].numpy()


@contextmanager
def _as_it_predicts(model: FM) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def buckets(counts: NDArray[Any]) -> list[tuple[int, int, NDArray[np.int64]]]:
    """Tokens by how often they occur: from 1 to 1, 2 to 3, 4 to 7, ... times.

    Fields are pooled: the rate law and the theory ask how often a token occurs, not where. Tokens
    that never occur are in none; buckets without tokens are left out.

    Example:
        >>> [(low, high, len(tokens)) for low, high, tokens in buckets(np.array([0, 1, 5, 4, 1]))]
        [(1, 1, 2), (4, 7, 2)]
    """
    power = np.frexp(counts)[1] - 1
    return [
        (2**k, 2 ** (k + 1) - 1, np.flatnonzero((counts > 0) & (power == k)))
        for k in np.unique(power[counts > 0]).tolist()
    ]


def bucket_norms(
    norms: tuple[NDArray[np.float64], NDArray[np.float64]], counts: NDArray[Any], samples: int
) -> list[dict[str, Any]]:
    """Means over the tokens of each bucket.

    ``norm2`` is the mean of ``|grad f_k|^2`` for vectors; ``norm2_per_occurrence`` that of
    ``|grad f_k|^2 / p_k^2``, p_k = count / samples: the squared norm of the mean gradient over
    the samples that hold k, whatever their number. ``linear2`` and ``linear2_per_occurrence`` are
    the same for linear weights, of which the latter is the squared mean error of the
    probabilities predicted for these samples (without weights of samples).
    """
    found = []
    for low, high, tokens in buckets(counts):
        means: dict[str, Any] = {"from": low, "to": high, "tokens": len(tokens)}
        for name, norm2 in zip(("norm2", "linear2"), norms, strict=True):
            of_tokens, p = norm2[tokens], counts[tokens] / samples
            means[name] = _finite(of_tokens.mean())
            means[f"{name}_per_occurrence"] = _finite((of_tokens / p**2).mean())
        found.append(means)
    return found


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
