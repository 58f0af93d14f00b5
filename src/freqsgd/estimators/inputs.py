"""What an estimator is given, as what training takes: parameters, tables, targets, samples."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from freqsgd.data.conversion import is_missing
from freqsgd.data.dataset import DataError, Dataset, DataWarning, Splits
from freqsgd.data.encoder import Encoder
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = [
    "all_to_train",
    "check_options",
    "check_table",
    "classes_of",
    "hold_out",
    "labels_of",
    "no_samples",
    "numeric_names",
    "rows_of",
    "rule_of",
    "seed_of",
    "settings_of",
    "target_of",
    "validate_on",
    "warn_of_distinct",
]

_RULE = ("weight_decay", "weight_decay_power")
_WHOLE = ("dim", "epochs", "batch_size")
_FEW_ROWS = 10  # of which all may well be distinct


# ---- parameters ----------------------------------------------------------------------------------


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
    patience = None if params["patience"] is None else _whole(params, "patience")
    if model == "deepfm":
        options["hidden"] = tuple(operator.index(size) for size in params["hidden"])
        options["dropout"] = float(params["dropout"])
    try:
        return Settings(
            model,
            init_scale=float(params["init_scale"]),
            lr_decay=params["lr_decay"],
            patience=patience,
            seed=seed,
            **options,
        )
    except ValueError as error:
        raise DataError(str(error)) from error


def seed_of(random_state: Any) -> int:
    """A seed: the number itself, or one that is drawn."""
    if isinstance(random_state, Integral):
        return int(random_state)
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


# ---- tables and targets --------------------------------------------------------------------------


def check_table(X: Any, estimator: Any) -> Any:
    """A frame as it is; anything else as an array of two dimensions."""
    if isinstance(X, pl.LazyFrame):
        raise DataError("X is a LazyFrame: give X.collect()")
    if isinstance(X, pl.DataFrame) or (hasattr(X, "iloc") and hasattr(X, "columns")):
        if 0 in X.shape:
            raise DataError(f"X must have rows and columns; its shape is {X.shape}")
        return X
    if isinstance(X, list | tuple):
        X = np.array(X, dtype=object)  # numpy would turn numbers among texts into texts
    return check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator)


def target_of(y: Any, rows: int, name: str = "y") -> NDArray[Any]:
    """The class of each row, none of them missing."""
    target: NDArray[Any] = column_or_1d(y, warn=True)
    if len(target) != rows:
        raise DataError(f"{name} has {len(target)} entries for {rows} rows")
    if target.dtype == object:
        missing = [row for row, value in enumerate(target) if is_missing(value)]
        if missing:
            raise DataError(
                f"{name} contains NaN or None, first in row {missing[0]}: drop such rows"
            )
    assert_all_finite(target, input_name=name)
    return target


def classes_of(target: NDArray[Any]) -> NDArray[Any]:
    """The two classes of a target, sorted."""
    check_classification_targets(target)
    classes = np.unique(target)
    if len(classes) == 1:
        raise DataError(f"y holds one class only, {classes[0]!r}: there is nothing to tell apart")
    if len(classes) > 2:
        raise DataError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(target)}. For its {len(classes)} classes use "
            "sklearn.multiclass.OneVsRestClassifier"
        )
    return classes


def labels_of(target: NDArray[Any], classes: NDArray[Any], name: str = "y") -> NDArray[np.uint8]:
    """1 where the target is the second class, 0 where it is the first."""
    second = np.asarray(target == classes[1])
    other = ~(second | np.asarray(target == classes[0]))
    if other.any():
        raise DataError(
            f"{name} holds {target[other][0]!r}, which is neither of the classes {classes.tolist()}"
        )
    return second.astype(np.uint8)


def _weights(sample_weight: Any, rows: int) -> NDArray[np.float32] | None:
    """One weight for each row, or None for equal ones."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, np.float32)
    if weights.shape != (rows,):
        raise DataError(
            f"sample_weight must be one number for each of {rows} rows; its shape is "
            f"{weights.shape}"
        )
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"sample_weight must be finite and >= 0; in row {row} it is {weights[row]}")
    if not weights.any():
        raise DataError("Sample weights must contain at least one non-zero number.")
    return weights


def rows_of(
    X: Any, y: Any, sample_weight: Any
) -> tuple[slice | NDArray[np.int64], NDArray[Any], NDArray[np.float32] | None]:
    """Which rows are there, for those of weight 0 are not; their classes and weights."""
    target, weights = target_of(y, len(X)), _weights(sample_weight, len(X))
    if weights is None:
        return slice(None), target, None
    there = np.flatnonzero(weights)
    return there, target[there], weights[there]


# ---- samples -------------------------------------------------------------------------------------


def all_to_train(
    encoder: Encoder,
    ids: NDArray[np.int32],
    labels: NDArray[np.uint8],
    weights: NDArray[np.float32] | None = None,
) -> Dataset:
    """A dataset of which all rows are there to learn from."""
    none = np.empty(0, np.int64)
    splits = Splits(np.arange(len(labels)), none, none)
    return Dataset("X", encoder.fields, ids, labels, splits, encoder, weights=weights)


def no_samples(encoder: Encoder) -> Dataset:
    """A dataset without rows."""
    columns = sum(field.width for field in encoder.fields)
    return all_to_train(encoder, np.empty((0, columns), np.int32), np.empty(0, np.uint8))


def hold_out(data: Dataset, fraction: float, seed: int) -> Dataset:
    """Validate on a fraction of the rows of each class, at least one."""
    generator = np.random.Generator(np.random.PCG64(seed))
    held_out = np.zeros(data.rows, np.bool_)
    for label in (0, 1):
        rows = np.flatnonzero(data.labels == label)
        if len(rows) < 2:
            raise DataError(
                "a class has 1 row, which is too few to hold one out for early stopping: give an "
                "eval_set, or patience=None to train for all epochs"
            )
        count = min(max(1, round(fraction * len(rows))), len(rows) - 1)
        held_out[generator.choice(rows, count, replace=False)] = True
    splits = Splits(np.flatnonzero(~held_out), np.flatnonzero(held_out), data.splits.test)
    return replace(data, splits=splits)


def validate_on(data: Dataset, ids: NDArray[np.int32], labels: NDArray[np.uint8]) -> Dataset:
    """Validate on rows that are added."""
    if labels.min() == labels.max():
        raise DataError("eval_set holds one class only: there is no AUC to choose by")
    weights = data.weights
    if weights is not None:
        weights = np.concatenate([weights, np.ones(len(labels), np.float32)])
    return replace(
        data,
        ids=np.concatenate([data.ids, ids]),
        labels=np.concatenate([data.labels, labels]),
        weights=weights,
        splits=replace(data.splits, validation=np.arange(data.rows, data.rows + len(labels))),
    )


def warn_of_distinct(encoder: Encoder, rows: int) -> None:
    """Warn of categories that are never seen twice."""
    for column, field in zip(encoder.columns, encoder.fields, strict=True):
        if column.kind == "category" and field.size > rows >= _FEW_ROWS:
            warnings.warn(
                f"all {rows} values of column {column.name!r} are distinct, so what is learned of "
                "them does not carry over to other rows: leave the column out, or name it in "
                "numeric if it holds numbers",
                DataWarning,
                stacklevel=3,
            )
