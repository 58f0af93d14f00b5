"""What ``--diagnose`` looks at between epochs; it changes nothing of the training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from freqsgd.nn.fm import FM
from freqsgd.optimizers import OPTIMIZERS
from freqsgd.recommender.engine import Engine
from freqsgd.recommender.models import model_of
from freqsgd.runs.metrics import spearman
from freqsgd.tables.dataset import Dataset
from freqsgd.theory.improvement import field_improvements


def look(engine: Engine, data: Dataset, epoch: int, found: dict[str, Any]) -> None:
    """Add to a run's ``diagnosis`` what is seen after an epoch; epoch 0 is before the first."""
    counts = data.token_counts
    norms = squared_norms(engine.model, data)
    found.setdefault("gradients", []).append(
        {"epoch": epoch, "buckets": bucket_norms(norms, counts, len(data.splits.train))}
    )
    moments = row_moments(engine.rule.optimizer, engine.state)
    if moments is None or epoch == 0 or _has_idle_vectors(engine.model):
        return
    counted = counts * epoch  # what CF-SGD's counters hold by then
    found.setdefault("moments", []).append({"epoch": epoch, **relate(counted, moments)})
    sizes = [field.size for field in data.fields]
    found["scatter"] = {"epoch": epoch, **scatter(counted, moments, sizes)}


def _has_idle_vectors(model: FM) -> bool:
    """Tell whether vectors get no gradients but rounding: an FM of one token has no pairs."""
    return sum(model.widths) == 1 and not model_of(model).network


def describe_diagnosis(data: Dataset) -> dict[str, Any]:
    """Return what the ``diagnosis`` of all runs of ``results.json`` has in common.

    ``prediction`` is how many times larger SGD's bound on ``|grad f_k|^2`` is than FA-SGD's after
    the same number of iterations (:func:`freqsgd.theory.improvement.field_improvements`), for each
    bucket as the ratio of the mean bounds of its tokens: the harmonic mean of their improvements.
    """
    counts = data.token_counts
    p = counts / len(data.splits.train)
    ends = np.cumsum([field.size for field in data.fields])[:-1]
    improvement = np.concatenate(field_improvements(np.split(counts, ends)))
    return {
        "fields": [field.name for field in data.fields],
        "prediction": [
            {
                "from": low,
                "to": high,
                "tokens": len(tokens),
                "p": float(p[tokens].mean()),
                "improvement": float(1 / (1 / improvement[tokens]).mean()),
            }
            for low, high, tokens in buckets(counts)
        ],
    }


# Second moments of adaptive optimizers against token counts: the paper's Figure 3a-b.
#
# Adagrad and Adam divide a token's step by the root of a second moment of its gradients, CF-SGD by
# the root of its count. If the moments are proportional to the counts, the two do the same: on a
# log-log scale the points then lie on a line of slope 1.

_MOST_POINTS = 2000  # of a scatter plot
_FEWEST = 3  # points: two always lie on a line


def row_moments(optimizer: str, state: Mapping[str, Tensor]) -> NDArray[np.float64] | None:
    """Return the second moment of each token's vector, as the mean of its numbers.

    Adagrad's sum of squared gradients, row-wise Adagrad's sum of their means, Adam's
    exponentially weighted mean (``exp_avg_sq``, without bias correction). Linear weights, the
    last column, are left out. None for optimizers that keep none.
    """
    facts = OPTIMIZERS[optimizer]
    if facts.state.weight:
        return state["state"][:, :-1].double().mean(1).numpy()
    if facts.adaptive and facts.state.row:
        return state["state"][:, 0].double().numpy()
    return None


def relate(counts: NDArray[Any], moments: NDArray[np.float64]) -> dict[str, float | None]:
    """Measure how closely second moments follow counts, over tokens that have both.

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
    """Return the linear correlation; None for fewer than three pairs or equal values."""
    if len(x) < _FEWEST:
        return None
    x, y = x - x.mean(), y - y.mean()
    length = math.sqrt(x @ x) * math.sqrt(y @ y)
    return float(x @ y) / length if length else None


def line_fit(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[float | None, float | None, float | None]:
    """Return slope and intercept of the least-squares line, and the slope's standard error."""
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
    """Return the tokens to draw: ``count``, ``moment`` and the number of the ``field``.

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


_BLOCK = 4096  # samples at a time: their vectors stay in the cache


def squared_norms(model: FM, data: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``|grad f_k|^2`` of every token k, for its vector and for its linear weight.

    f is the mean loss over all training rows. The network of a DeepFM is taken as it predicts:
    without dropout, and with the means and variances that batch norm has gathered.
    """
    weight, rows = model.tokens.weight, data.splits.train
    total = torch.zeros(weight.shape, dtype=torch.float64)
    training = model.training
    model.eval()
    try:
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
    finally:
        model.train(training)
    squares = total.square_()
    return squares[:, :-1].sum(1).numpy(), squares[:, -1].numpy()


def buckets(counts: NDArray[Any]) -> list[tuple[int, int, NDArray[np.int64]]]:
    """Group tokens by how often they occur: from 1 to 1, 2 to 3, 4 to 7, ... times.

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
    """Return means over the tokens of each bucket.

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
            pair = float(of_tokens.mean()), float((of_tokens / p**2).mean())
            for key, mean in zip((name, f"{name}_per_occurrence"), pair, strict=True):
                means[key] = mean if math.isfinite(mean) else None
        found.append(means)
    return found
