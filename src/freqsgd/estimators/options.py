"""An estimator's parameters as what training takes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from sklearn.utils import check_random_state

from freqsgd.data.dataset import DataError
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = ["check_options", "numeric_names", "rule_of", "seed_of", "settings_of"]

_RULE = ("weight_decay", "weight_decay_power")
_WHOLE = ("dim", "epochs", "batch_size")


def check_options(params: dict[str, Any]) -> None:
    """Refuse parameters that nothing else would."""
    if isinstance(params["lr"], str) and params["lr"] != "auto":
        raise DataError(f"lr must be a number or 'auto', got {params['lr']!r}")
    if not 0 < params["validation_fraction"] < 1:
        raise DataError(
            f"validation_fraction must lie between 0 and 1, got {params['validation_fraction']}"
        )
    if _whole(params, "min_count") < 1:
        raise DataError(f"min_count must be at least 1, got {params['min_count']}")
    threads = params["threads"]
    if threads is not None and _whole(params, "threads") < 1:
        raise DataError(f"threads must be at least 1, got {threads}")


def rule_of(params: dict[str, Any]) -> Rule:
    """The optimizer; its learning rate is None if it is to be found."""
    lr = None if params["lr"] == "auto" else float(params["lr"])
    options = {name: float(params[name]) for name in _RULE}
    max_lr = None if params["max_lr"] is None else float(params["max_lr"])
    try:
        return Rule(params["optimizer"], lr, max_lr=max_lr, **options)
    except ValueError as error:
        raise DataError(str(error)) from error


def settings_of(params: dict[str, Any], model: str, seed: int) -> Settings:
    """Everything else."""
    options: dict[str, Any] = {name: _whole(params, name) for name in _WHOLE}
    if params["patience"] is not None:
        options["patience"] = _whole(params, "patience")
    else:
        options["patience"] = None
    if model == "deepfm":
        options["hidden"] = tuple(operator.index(size) for size in params["hidden"])
        options["dropout"] = float(params["dropout"])
    try:
        return Settings(
            model,
            init_scale=float(params["init_scale"]),
            lr_decay=params["lr_decay"],
            seed=seed,
            **options,
        )
    except ValueError as error:
        raise DataError(str(error)) from error


def seed_of(random_state: Any) -> int:
    """A seed: the number itself, or one that is drawn."""
    if isinstance(random_state, int):
        return random_state
    return int(check_random_state(random_state).randint(2**31 - 1))


def numeric_names(numeric: Any, names: Sequence[str]) -> list[str]:
    """The names of numeric columns, which may be given by their place too."""
    chosen = []
    for item in [numeric] if isinstance(numeric, str) else numeric:
        if not isinstance(item, str) and 0 <= item < len(names):
            chosen.append(names[item])
        elif item in names:
            chosen.append(item)
        else:
            raise DataError(
                f"numeric names a column {item!r}, which X does not have: its columns are "
                f"{', '.join(names)}"
            )
    return chosen


def _whole(params: dict[str, Any], name: str) -> int:
    try:
        return operator.index(params[name])
    except TypeError:
        raise DataError(f"{name} must be a whole number, got {params[name]!r}") from None
