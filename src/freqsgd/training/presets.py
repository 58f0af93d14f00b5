"""Learning rates: the paper's Tables 2 and 3, and what was found for generated data."""

from __future__ import annotations

from freqsgd.data.dataset import DataError
from freqsgd.training.rules import OPTIMIZERS

__all__ = ["preset_rate"]

RATES = {
    # Table 2
    ("movielens-1m", "fm"): {"sgd": 10.0, "cfsgd": 1.0, "adagrad": 0.02, "adam": 0.001},
    ("movielens-1m", "deepfm"): {"sgd": 0.01, "cfsgd": 2.0, "adagrad": 0.04, "adam": 0.002},
    # Table 3
    ("criteo", "fm"): {"sgd": 0.01, "cfsgd": 0.1, "adagrad": 0.01, "adam": 0.001},
    ("criteo", "deepfm"): {"sgd": 0.01, "cfsgd": 0.01, "adagrad": 0.01, "adam": 0.001},
    # by one rule from a grid: python -m benchmarks.synthetic_rates
    ("synthetic", "fm"): {"sgd": 10.0, "cfsgd": 1.0, "adagrad": 0.03, "adam": 0.003},
    ("synthetic", "deepfm"): {"sgd": 3.0, "cfsgd": 1.0, "adagrad": 0.1, "adam": 0.01},
}
_ALIKE = {"fasgd": "cfsgd", "rowwise-adagrad": "adagrad"}


def preset_rate(dataset: str | None, model: str, optimizer: str) -> float:
    """The learning rate for a dataset, model and optimizer.

    Other datasets get the rates of MovieLens, a start that is worth checking.

    Example:
        >>> preset_rate("criteo", "fm", "cfsgd")
        0.1
    """
    if optimizer not in OPTIMIZERS:
        raise DataError(f"unknown optimizer {optimizer!r}; known: {', '.join(OPTIMIZERS)}")
    rates = RATES.get((dataset or "", model), RATES["movielens-1m", model])
    return rates[_ALIKE.get(optimizer, optimizer)]
