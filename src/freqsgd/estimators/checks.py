"""What an estimator is given: whether it can be used, and as what."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from freqsgd.data.conversion import is_missing
from freqsgd.data.dataset import DataError

__all__ = ["check_table", "classes_of", "labels_of", "weights_of"]


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


def classes_of(y: Any) -> NDArray[Any]:
    """The two classes of a target, sorted."""
    y = _target(y)
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) == 1:
        raise DataError(f"y holds one class only, {classes[0]!r}: there is nothing to tell apart")
    if len(classes) > 2:
        raise DataError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}. For its {len(classes)} classes use "
            "sklearn.multiclass.OneVsRestClassifier"
        )
    return classes


def labels_of(y: Any, classes: NDArray[Any], rows: int, name: str = "y") -> NDArray[np.uint8]:
    """1 where the target is the second class, 0 where it is the first."""
    y = _target(y, name)
    if len(y) != rows:
        raise DataError(f"{name} has {len(y)} entries for {rows} rows")
    second = np.asarray(y == classes[1])
    other = ~(second | np.asarray(y == classes[0]))
    if other.any():
        raise DataError(
            f"{name} holds {y[other][0]!r}, which is neither of the classes {classes.tolist()}"
        )
    return second.astype(np.uint8)


def weights_of(sample_weight: Any, rows: int) -> NDArray[np.float32] | None:
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
    return np.ascontiguousarray(weights)


def _target(y: Any, name: str = "y") -> NDArray[Any]:
    target: NDArray[Any] = column_or_1d(y, warn=True)
    if target.dtype == object:
        missing = [row for row, value in enumerate(target) if is_missing(value)]
        if missing:
            raise DataError(
                f"{name} contains NaN or None, first in row {missing[0]}: drop such rows"
            )
    assert_all_finite(target, input_name=name)
    return target
