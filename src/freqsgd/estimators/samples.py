"""Samples of an estimator as a dataset, and which of them are held out."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError, Dataset, DataWarning, Splits
from freqsgd.data.encoder import Encoder

__all__ = ["all_to_train", "hold_out", "no_samples", "validate_on", "warn_of_distinct"]

_FEW_ROWS = 10  # of which all may well be distinct


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
