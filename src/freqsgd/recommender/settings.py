"""Settings of training, and presets: those that were found for known datasets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from freqsgd.errors import DataError
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.recommender.models import MODELS, Model


@dataclass(frozen=True)
class Settings:
    """Settings that all optimizers of a comparison share.

    Args:
        model: "fm" or "deepfm"
        dim: size of the vectors; None for the paper's, 64 for FM and 16 for DeepFM
        hidden, dropout: layer sizes and dropout of DeepFM's network
        init_scale: factor of the vectors' xavier-uniform initialization
        epochs: at most
        patience: stop after so many epochs without a better validation AUC, and keep the best;
            None to train for all epochs and keep the last
        batch_size: samples per step
        lr_decay: "constant", or "linear": to 0 over all ``epochs``, step by step
        seed: random seed for initialization, shuffling and dropout
        checkpoint_steps: write a checkpoint after so many steps too, not only after each epoch
    """

    model: str = "fm"
    dim: int | None = None
    hidden: tuple[int, ...] = (16, 16)
    dropout: float = 0.2
    init_scale: float = 1.0
    epochs: int = 60
    patience: int | None = 5
    batch_size: int = 1024
    lr_decay: str = "constant"
    seed: int = 0
    checkpoint_steps: int | None = None

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"unknown model {self.model!r}; known: {', '.join(MODELS)}")
        if self.lr_decay not in ("constant", "linear"):
            raise ValueError(f"lr_decay must be constant or linear, got {self.lr_decay!r}")
        for name in ("epochs", "patience", "batch_size", "dim", "checkpoint_steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if any(size < 1 for size in self.hidden):
            raise ValueError(f"hidden must be sizes of at least 1, got {list(self.hidden)}")
        if not 0 < self.init_scale <= 1e6:
            raise ValueError(f"init_scale must be a number > 0, at most 1e6, got {self.init_scale}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {self.dropout}")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed must be a number from 0 to 2^31 - 1, got {self.seed}")

    @property
    def kind(self) -> Model:
        """The model's entry in the registry."""
        return MODELS[self.model]

    @property
    def vector_dim(self) -> int:
        """The size of the vectors."""
        return self.kind.dim if self.dim is None else self.dim

    @property
    def layers(self) -> tuple[int, ...] | None:
        """The hidden layers of the network; None for a model without one."""
        return self.hidden if self.kind.network else None

    @property
    def about_model(self) -> dict[str, Any]:
        """The model, as ``results.json`` describes it."""
        return {"name": self.model, "dim": self.vector_dim, "hidden": list(self.layers or ())}

    @property
    def plain(self) -> dict[str, Any]:
        """The settings that apply to the model, as JSON reads them back: lists for tuples."""
        others = () if self.kind.network else ("hidden", "dropout")
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if key not in others
        }

    @property
    def of_one_pass(self) -> dict[str, Any]:
        """The settings that apply to one pass."""
        without = ("epochs", "patience", "lr_decay", "checkpoint_steps")
        return {k: v for k, v in self.plain.items() if k not in without}


@dataclass(frozen=True)
class Pass:
    """Windows, checkpoints and evaluation days of one pass over a stream.

    Args:
        window: examples of a window of the metrics
        checkpoint_examples: write a checkpoint after so many examples
        evaluation_days: the last days, which are not learned from; none if there is one day only
    """

    window: int = 100_000
    checkpoint_examples: int | None = None
    evaluation_days: int = 1

    def __post_init__(self) -> None:
        for name, least in (("window", 1), ("checkpoint_examples", 1), ("evaluation_days", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")


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
        "cfadam": {
            "lr": 0.001,
            "weight_decay": 0.116,
            "weight_decay_power": 1.1,
            "linear_lr_scale": 2.0,
            "linear_decay_scale": 0.066,
        },
        "adam": {"lr": 0.001, "weight_decay": 1e-5, "patience": 3},
    },
}
PRESETS = ("paper", "best")


def preset(name: str, dataset: str | None, model: str, optimizer: str) -> Mapping[str, Any] | None:
    """Return options of :class:`Rule` and :class:`Settings`; None if no rate is known.

    Example:
        >>> preset("paper", "criteo", "fm", "cfsgd")
        {'lr': 0.1, 'patience': 2}
    """
    if optimizer not in OPTIMIZERS:
        raise DataError(f"unknown optimizer {optimizer!r}; known: {', '.join(OPTIMIZERS)}")
    if name not in PRESETS:
        raise DataError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    key = (dataset or "", model)
    if name == "paper":
        facts = OPTIMIZERS[optimizer]
        lr = _RATES.get(key, {}).get(facts.rates_of or optimizer, facts.lr)
        if key not in _RATES or lr is None:
            return None
        found = {"lr": lr}
        return found if dataset == "synthetic" else {**found, "patience": _PAPER_PATIENCE}
    if optimizer not in _BEST.get(key, {}):
        known = "; ".join(f"{' '.join(key)}: {', '.join(names)}" for key, names in _BEST.items())
        raise DataError(
            f"there is no best preset for {model} with {optimizer} here; known: {known}"
        )
    return _BEST[key][optimizer]


def with_preset(rule: Rule, settings: Settings, values: Mapping[str, Any]) -> tuple[Rule, Settings]:
    """Give options the values of a preset."""
    names = {each.name for each in fields(Rule)}
    of_rule = {name: value for name, value in values.items() if name in names}
    others = {name: value for name, value in values.items() if name not in names}
    return replace(rule, **of_rule), replace(settings, **others)
