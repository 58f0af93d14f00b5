"""Settings that were found for known datasets, and for word vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from freqsgd.errors import DataError
from freqsgd.optimizers import ALIKE, OPTIMIZERS, Rule

__all__ = ["PRESETS", "AnySettings", "preset", "text_preset", "with_preset"]

_RATES = {
    # the paper's Table 2
    ("movielens-1m", "fm"): {"sgd": 10.0, "cfsgd": 1.0, "adagrad": 0.02, "adam": 0.001},
    ("movielens-1m", "deepfm"): {"sgd": 0.01, "cfsgd": 2.0, "adagrad": 0.04, "adam": 0.002},
    # the paper's Table 3
    ("criteo", "fm"): {"sgd": 0.01, "cfsgd": 0.1, "adagrad": 0.01, "adam": 0.001},
    ("criteo", "deepfm"): {"sgd": 0.01, "cfsgd": 0.01, "adagrad": 0.01, "adam": 0.001},
    # by one rule from a grid: python -m benchmarks.synthetic_rates
    ("synthetic", "fm"): {"sgd": 10.0, "cfsgd": 1.0, "adagrad": 0.03, "adam": 0.003},
    ("synthetic", "deepfm"): {"sgd": 3.0, "cfsgd": 1.0, "adagrad": 0.1, "adam": 0.01},
}
_PAPER_PATIENCE = 2  # of the paper's datasets; shorter than the default, which is fair to slow runs
_BEST: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    # what searches found best by validation AUC; docs/recommenders.md says how they do
    ("movielens-1m", "fm"): {
        "cfsgd": {
            "lr": 3.0,
            "lr_decay": "linear",
            "epochs": 11,
            "patience": 4,
            "weight_decay": 5.4e-4,
            "weight_decay_power": 0.5,
            "max_lr": 135.0,
            "linear_lr_scale": 0.3,
            "linear_decay_scale": 2.0,
        },
        "adam": {"lr": 0.001, "weight_decay": 1e-5, "patience": 3},
    },
}
PRESETS = ("paper", "best")

AnySettings = TypeVar("AnySettings", bound=Any)  # a dataclass: Settings or TextSettings


def preset(name: str, dataset: str | None, model: str, optimizer: str) -> Mapping[str, Any] | None:
    """Options of :class:`Rule` and :class:`Settings`; None if nothing is known of the dataset.

    Example:
        >>> preset("paper", "criteo", "fm", "cfsgd")
        {'lr': 0.1, 'patience': 2}
    """
    _check_names(name, optimizer)
    key = (dataset or "", model)
    if name == "paper":
        if key not in _RATES:
            return None
        found = {"lr": _RATES[key][ALIKE.get(optimizer, optimizer)]}
        return found if dataset == "synthetic" else {**found, "patience": _PAPER_PATIENCE}
    if optimizer not in _BEST.get(key, {}):
        known = "; ".join(f"{' '.join(key)}: {', '.join(names)}" for key, names in _BEST.items())
        raise DataError(
            f"there is no best preset for {model} with {optimizer} here; known: {known}"
        )
    return _BEST[key][optimizer]


def text_preset(name: str, model: str, loss: str, optimizer: str) -> Mapping[str, Any]:
    """Options of :class:`TextSettings`, whatever the text.

    Example:
        >>> text_preset("paper", "cbow", "softmax", "adam")
        {'max_norm': 1.0}
    """
    _check_names(name, optimizer)
    if name != "paper":
        raise DataError(f"there is no {name} preset for {model}; known: paper")
    return {"max_norm": 1.0} if loss == "softmax" else {}


def _check_names(preset: str, optimizer: str) -> None:
    if optimizer not in OPTIMIZERS:
        raise DataError(f"unknown optimizer {optimizer!r}; known: {', '.join(OPTIMIZERS)}")
    if preset not in PRESETS:
        raise DataError(f"unknown preset {preset!r}; known: {', '.join(PRESETS)}")


def with_preset(
    rule: Rule, settings: AnySettings, values: Mapping[str, Any]
) -> tuple[Rule, AnySettings]:
    """Give options the values of a preset."""
    of_rule = {each.name for each in fields(Rule)}
    return (
        replace(rule, **{name: value for name, value in values.items() if name in of_rule}),
        replace(settings, **{name: value for name, value in values.items() if name not in of_rule}),
    )
