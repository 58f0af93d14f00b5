"""From a dataset to a new model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from freqsgd.errors import DataError
from freqsgd.nn.fm import FM, DeepFM
from freqsgd.optimizers import Rule
from freqsgd.recommender.settings import Settings
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.fields import Field

__all__ = ["build_model", "check", "frequencies_for", "new_model"]


def new_model(fields: Sequence[Field], settings: Settings) -> FM:
    """A new model for the fields of a sample; all tokens start at random."""
    options: dict[str, Any] = {
        "widths": [field.width for field in fields],
        "init_scale": settings.init_scale,
    }
    sizes = [field.size for field in fields]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        if settings.model == "fm":
            return FM(sizes, settings.vector_dim, **options)
        options |= {"hidden": settings.hidden, "dropout": settings.dropout}
        return DeepFM(sizes, settings.vector_dim, **options)


def build_model(data: Dataset, settings: Settings) -> FM:
    """A new model for a dataset; tokens that training never shows start at 0 and add nothing."""
    model = new_model(data.fields, settings)
    with torch.no_grad():
        model.tokens.weight[torch.from_numpy(data.token_counts == 0)] = 0
    return model


def check(data: Dataset, settings: Settings) -> None:
    """Refuse what training cannot use."""
    chooses = settings.patience is not None
    if len(data.splits.train) == 0 or (chooses and len(data.splits.validation) == 0):
        raise DataError(
            f"{data.name} has {len(data.splits.train)} rows to train on and "
            f"{len(data.splits.validation)} to validate on: both must be at least 1"
        )
    rows = data.labels[data.splits.validation]
    if chooses and rows.min() == rows.max():
        raise DataError(
            f"all {len(rows)} validation labels of {data.name} are {rows[0]}: there is no AUC to "
            "choose by; give more rows or another split"
        )


def frequencies_for(data: Dataset, rule: Rule) -> Tensor | None:
    """What a rule must be told of frequencies, if anything."""
    if rule.optimizer != "fasgd":
        return None
    return torch.from_numpy(np.maximum(data.token_counts, 1) / len(data.splits.train)).float()
