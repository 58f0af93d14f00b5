"""Learning rates: the paper's Tables 2 and 3, and what was found for generated data."""

from __future__ import annotations

__all__ = ["preset_rate"]

_MOVIELENS_FM = {"sgd": 10.0, "cfsgd": 1.0, "adagrad": 0.02, "adam": 0.001}
_MOVIELENS_DEEPFM = {"sgd": 0.01, "cfsgd": 2.0, "adagrad": 0.04, "adam": 0.002}

RATES = {
    ("movielens-1m", "fm"): _MOVIELENS_FM,  # Table 2
    ("movielens-1m", "deepfm"): _MOVIELENS_DEEPFM,
    ("criteo", "fm"): {"sgd": 0.01, "cfsgd": 0.1, "adagrad": 0.01, "adam": 0.001},  # Table 3
    ("criteo", "deepfm"): {"sgd": 0.01, "cfsgd": 0.01, "adagrad": 0.01, "adam": 0.001},
    # by one rule from a grid: python -m benchmarks.synthetic_rates
    ("synthetic", "fm"): {"sgd": 10.0, "cfsgd": 1.0, "adagrad": 0.03, "adam": 0.003},
    ("synthetic", "deepfm"): {"sgd": 1.0, "cfsgd": 1.0, "adagrad": 0.03, "adam": 0.003},
}
_ALIKE = {"fasgd": "cfsgd", "rowwise-adagrad": "adagrad"}


def preset_rate(dataset: str, model: str, optimizer: str) -> float:
    """The learning rate for a dataset, model and optimizer.

    Other datasets get the rates of MovieLens, a start that is worth checking.

    Example:
        >>> preset_rate("criteo", "fm", "cfsgd")
        0.1
    """
    rates = RATES.get((dataset, model), RATES["movielens-1m", model])
    return rates[_ALIKE.get(optimizer, optimizer)]
