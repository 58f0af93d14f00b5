"""What ``--diagnose`` looks at between epochs; it changes nothing of the training."""

from __future__ import annotations

from typing import Any

import numpy as np

from freqsgd.data.dataset import Dataset
from freqsgd.nn.fm import FM, DeepFM
from freqsgd.theory.promise import field_improvements
from freqsgd.training.engine import Engine
from freqsgd.training.gradients import bucket_norms, buckets, squared_norms
from freqsgd.training.moments import relate, row_moments, scatter

__all__ = ["describe_diagnosis", "look"]


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
    """An FM of one token a sample has no pairs: its vectors get no gradients but rounding."""
    return sum(model.widths) == 1 and not isinstance(model, DeepFM)


def describe_diagnosis(data: Dataset) -> dict[str, Any]:
    """What the ``diagnosis`` of all runs of ``results.json`` has in common.

    ``prediction`` is how many times larger SGD's bound on ``|grad f_k|^2`` is than FA-SGD's after
    the same number of iterations (:func:`freqsgd.theory.promise.field_improvements`), for each
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
