"""The parameters of an estimator, as what training takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from freqsgd.data.conversion import shown
from freqsgd.data.dataset import DataError
from freqsgd.training.rules import OPTIMIZERS, Rule
from freqsgd.training.settings import Settings

__all__ = ["check_options", "numeric_names", "rule_of", "seed_of", "settings_of"]


def check_options(params: dict[str, Any]) -> None:
    """Refuse parameters that nothing else would."""
    fraction = _number(params, "validation_fraction")
    if not 0 < fraction < 1:
        raise DataError(f"validation_fraction must lie between 0 and 1, got {fraction:g}")
    for name in ("min_count",) if params["threads"] is None else ("min_count", "threads"):
        if _whole(params, name) < 1:
            raise DataError(f"{name} must be at least 1, got {params[name]}")


def rule_of(params: dict[str, Any]) -> Rule:
    """The optimizer; its learning rate is None if it is to be found."""
    optimizer = params["optimizer"]
    if not isinstance(optimizer, str):
        known = ", ".join(OPTIMIZERS)
        raise DataError(f"optimizer must be one of {known}, got {shown(optimizer)}")
    try:
        return Rule(
            optimizer,
            _lr(params["lr"]),
            weight_decay=_number(params, "weight_decay"),
            weight_decay_power=_number(params, "weight_decay_power"),
            max_lr=None if params["max_lr"] is None else _number(params, "max_lr"),
        )
    except ValueError as error:
        raise DataError(str(error)) from error


def settings_of(params: dict[str, Any], model: str, seed: int) -> Settings:
    """Everything else."""
    options: dict[str, Any] = {}
    if model == "deepfm":
        options = {"hidden": _sizes(params["hidden"]), "dropout": _number(params, "dropout")}
    try:
        return Settings(
            model,
            dim=_whole(params, "dim"),
            init_scale=_number(params, "init_scale"),
            epochs=_whole(params, "epochs"),
            patience=None if params["patience"] is None else _whole(params, "patience"),
            batch_size=_whole(params, "batch_size"),
            lr_decay=params["lr_decay"],
            seed=seed,
            **options,
        )
    except ValueError as error:
        raise DataError(str(error)) from error


def seed_of(random_state: Any) -> int:
    """A seed: the number itself, or one that is drawn."""
    if _is_whole(random_state) and 0 <= random_state < 2**31:
        return int(random_state)
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(2**31 - 1))
    raise DataError(
        "random_state must be a number from 0 to 2^31 - 1, a numpy.random.RandomState or None, "
        f"got {shown(random_state)}"
    )


def numeric_names(numeric: Any, names: Sequence[str]) -> list[str]:
    """The names of numeric columns, which may be given by their place too."""
    if not isinstance(numeric, Iterable):
        raise DataError(f"numeric must be names or places of columns, got {shown(numeric)}")
    items: Iterable[Any] = [numeric] if isinstance(numeric, str) else numeric
    chosen = []
    for item in items:
        if _is_whole(item) and 0 <= item < len(names):
            chosen.append(names[item])
        elif isinstance(item, str) and item in names:
            chosen.append(item)
        else:
            raise DataError(
                f"numeric names a column {shown(item)}, which X does not have: its columns are "
                f"{', '.join(names)}"
            )
    return chosen


def _lr(lr: Any) -> float | None:
    if isinstance(lr, str) and lr == "auto":
        return None
    if not _is_number(lr) or not 0 < lr < math.inf:
        raise DataError(f"lr must be a number > 0 or 'auto', got {shown(lr)}")
    return float(lr)


def _sizes(hidden: Any) -> tuple[int, ...]:
    if not isinstance(hidden, Iterable) or not all(map(_is_whole, hidden)):
        raise DataError(
            f"hidden must be the sizes of layers, such as (16, 16), got {shown(hidden)}"
        )
    return tuple(int(size) for size in hidden)


def _number(params: dict[str, Any], name: str) -> float:
    if not _is_number(params[name]):
        raise DataError(f"{name} must be a number, got {shown(params[name])}")
    return float(params[name])


def _whole(params: dict[str, Any], name: str) -> int:
    if not _is_whole(params[name]):
        raise DataError(f"{name} must be a whole number, got {shown(params[name])}")
    return int(params[name])


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
