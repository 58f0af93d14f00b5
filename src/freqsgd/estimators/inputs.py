"""What an estimator is given, as what training takes: tables, targets, samples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from freqsgd.checks import real_number, whole_number
from freqsgd.errors import DataError, DataWarning
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.recommender.settings import Settings
from freqsgd.tables.dataset import Dataset
from freqsgd.tables.encoders.encoder import Encoder
from freqsgd.tables.encoders.values import is_missing, shown
from freqsgd.tables.fields import Splits

_FEW_ROWS = 10  # of which all may well be distinct
_LARGEST = float(np.finfo(np.float32).max)
_TABLE = "X must be a table: a frame, a 2-D array or a list of equally long rows"


# ---- tables and targets --------------------------------------------------------------------------


def check_table(X: Any, estimator: Any) -> Any:
    """Return a frame as it is, anything else as an array of two dimensions."""
    if isinstance(X, pl.LazyFrame):
        raise DataError("X is a LazyFrame: give X.collect()")
    if isinstance(X, pl.DataFrame) or (hasattr(X, "iloc") and hasattr(X, "columns")):
        names = list(X.columns)
        if len(X) == 0 or not names:
            raise DataError(f"X has no {'columns' if len(X) else 'rows'}")
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise DataError(f"X has two columns named {shown(twice[0])}: rename one of them")
        return X
    if hasattr(X, "toarray"):
        raise DataError("X is sparse, but its columns are categories: give X.toarray()")
    # Rows become objects: numpy would turn numbers among texts into texts.
    array = np.array(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
    if array.ndim == 0:
        raise DataError(f"{_TABLE}; it is a {type(X).__name__}")
    if array.ndim == 1 and any(isinstance(row, list | tuple | np.ndarray) for row in array):
        raise DataError(f"{_TABLE}; its rows are not equally long")
    if array.ndim != 2:
        hint = "Reshape your data: X.reshape(-1, 1) is one column, X.reshape(1, -1) one row"
        raise DataError(f"{_TABLE}; its shape is {array.shape}. {hint}")
    if len(array) == 0:
        raise DataError("X has no rows")
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: X must hold categories")
    return check_array(array, dtype=None, ensure_all_finite=False, estimator=estimator)


def target_of(y: Any, rows: int, name: str = "y") -> NDArray[Any]:
    """Return the class of each row, none of them missing."""
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
    """Return the two classes of a target, sorted."""
    check_classification_targets(target)
    classes = np.unique(target)
    if len(classes) == 1:
        only = shown(classes.tolist()[0])
        raise DataError(f"y holds one class only, {only}: there is nothing to tell apart")
    if len(classes) > 2:
        raise DataError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(target)}. For its {len(classes)} classes use "
            "sklearn.multiclass.OneVsRestClassifier"
        )
    return classes


def labels_of(target: NDArray[Any], classes: NDArray[Any], name: str = "y") -> NDArray[np.uint8]:
    """Return 1 where the target is the second class, 0 where it is the first."""
    second = np.asarray(target == classes[1])
    other = ~(second | np.asarray(target == classes[0]))
    if other.any():
        found = shown(target[other].tolist()[0])
        raise DataError(f"{name} holds {found}, which is neither of the classes {classes.tolist()}")
    return second.astype(np.uint8)


def _weights(sample_weight: Any, rows: int) -> NDArray[np.float32] | None:
    """Return one weight for each row, or None for equal ones."""
    if sample_weight is None:
        return None
    wanted = f"sample_weight must be one number for each of {rows} rows"
    try:
        given = np.asarray(sample_weight)
    except ValueError:
        raise DataError(f"{wanted}; this one has lists of several lengths") from None
    if given.shape != (rows,):
        raise DataError(f"{wanted}; its shape is {given.shape}")
    if given.dtype.kind not in "biuf":
        values = [math.nan if is_missing(value) else value for value in given.tolist()]
        other = [value for value in values if not isinstance(value, Real)]
        if other:
            raise DataError(f"{wanted}; this one holds {shown(other[0])}")
        given = np.array(values)
    weights = given.astype(np.float64)
    wrong = ~((weights >= 0) & (weights <= _LARGEST))
    if wrong.any():
        row = int(wrong.argmax())
        found = f"in row {row} it is {weights[row]}"
        raise DataError(f"sample_weight must lie between 0 and {_LARGEST:.1e}; {found}")
    single = weights.astype(np.float32)
    if not single.any():
        raise DataError("Sample weights must contain at least one non-zero number.")
    return single


def rows_of(
    X: Any, y: Any, sample_weight: Any
) -> tuple[slice | NDArray[np.int64], NDArray[Any], NDArray[np.float32] | None]:
    """Return which rows are there, for those of weight 0 are not; their classes and weights."""
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
    """Return a dataset of which all rows are there to learn from."""
    none = np.empty(0, np.int64)
    splits = Splits(np.arange(len(labels)), none, none)
    return Dataset("X", encoder.fields, ids, labels, splits, encoder, weights=weights)


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


# ---- parameters ----------------------------------------------------------------------------------

_WHOLE = ("min_count", "threads", "dim", "epochs", "patience", "batch_size")
_REAL = (
    "validation_fraction", "init_scale", "dropout", "weight_decay", "weight_decay_power", "max_lr",
)  # fmt: skip
_MAY_BE_NONE = ("threads", "patience", "max_lr")


def options_of(params: dict[str, Any], model: str, seed: int) -> tuple[Settings, Rule]:
    """Return the settings and the optimizer, whose rate is None if it is to be found."""
    plain = {name: v.item() if isinstance(v, np.generic) else v for name, v in params.items()}
    try:
        given = {name: v for name, v in plain.items() if v is not None or name not in _MAY_BE_NONE}
        chosen = {
            **plain,
            **{name: whole_number(name, given[name], 1) for name in _WHOLE if name in given},
            **{name: real_number(name, given[name]) for name in _REAL if name in given},
            "lr": _lr(plain["lr"]),
            "model": model,
            "seed": seed,
        }
        fraction = chosen["validation_fraction"]
        if not 0 < fraction < 1:
            raise DataError(f"validation_fraction must lie between 0 and 1, got {fraction:g}")
        if "hidden" in chosen:
            chosen["hidden"] = _sizes(chosen["hidden"])
        if not isinstance(chosen["optimizer"], str):
            known, found = ", ".join(OPTIMIZERS), shown(chosen["optimizer"])
            raise DataError(f"optimizer must be one of {known}, got {found}")
        of_settings = {field.name for field in fields(Settings)} & chosen.keys()
        of_rule = {field.name for field in fields(Rule)} & chosen.keys()
        settings = Settings(**{name: chosen[name] for name in of_settings})
        return settings, Rule(**{name: chosen[name] for name in of_rule})
    except (TypeError, ValueError) as error:
        raise DataError(str(error)) from error


def seed_of(random_state: Any) -> int:
    """Return a seed: the number itself, or one that is drawn."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(2**31 - 1))
    if _is_whole(random_state) and 0 <= random_state < 2**31:
        return int(random_state)
    raise DataError(
        "random_state must be a number from 0 to 2^31 - 1, a numpy.random.RandomState or None, "
        f"got {shown(random_state)}"
    )


def numeric_names(numeric: Any, names: Sequence[str]) -> list[str]:
    """Return the names of numeric columns, which may be given by their place too."""
    if not isinstance(numeric, Iterable):
        raise DataError(f"numeric must be names or places of columns, got {shown(numeric)}")
    items: Iterable[Any] = [numeric] if isinstance(numeric, str) else numeric
    chosen = []
    for item in items:
        name = names[item] if _is_whole(item) and 0 <= item < len(names) else item
        if not isinstance(name, str) or name not in names:
            raise DataError(
                f"numeric names a column {shown(item)}, which X does not have: its columns are "
                f"{', '.join(names)}"
            )
        chosen.append(name)
    return chosen


def _lr(lr: Any) -> float | None:
    if isinstance(lr, str) and lr == "auto":
        return None
    if isinstance(lr, bool) or not isinstance(lr, Real) or not 0 < float(lr) < math.inf:
        raise DataError(f"lr must be a number > 0 or 'auto', got {shown(lr)}")
    return float(lr)


def _sizes(hidden: Any) -> tuple[int, ...]:
    if not isinstance(hidden, Iterable) or not all(map(_is_whole, hidden)):
        raise DataError(
            f"hidden must be the sizes of layers, such as (16, 16), got {shown(hidden)}"
        )
    return tuple(int(size) for size in hidden)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
