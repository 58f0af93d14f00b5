"""Fields of a sample, chunks of samples, and which samples are for what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError

RARE = 0
"""The id, in every field, of tokens that are seldom or never seen."""
ABSENT = -1
"""Fills up the columns of a bag."""


@dataclass(frozen=True)
class Field:
    """One feature of a sample: a token, or a bag of tokens."""

    name: str
    size: int  # ids lie in [0, size)
    width: int = 1  # columns that it takes; a bag takes as many as its longest list


PARTS = {
    "train": 0,
    "training": 0,
    "validation": 1,
    "valid": 1,
    "val": 1,
    "dev": 1,
    "test": 2,
}  # what a column that names the part of each row may say


@dataclass(frozen=True)
class Splits:
    """Rows of a dataset to learn from, to choose by and to report on: ascending row numbers."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


class Position(NamedTuple):
    """A place in a stream."""

    file: int  # among the stream's files, from 0; a generated day counts as a file
    row: int  # raw rows or lines of that file up to there
    dropped: int = 0  # malformed rows that were left out up to there


def _none() -> NDArray[Any]:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Chunk:
    """Consecutive examples of one file; none, where all rows of a part of it are malformed."""

    ids: NDArray[np.int32]  # (rows, columns), C order; ids of each field start at 0
    labels: NDArray[np.uint8]  # (rows,), 0 or 1; empty if they were not asked for
    day: int
    file: int
    numbers: NDArray[np.int64]  # (rows,): of the raw row or line, from 1, where each example is
    done: float  # the part of the asked days that is read, from 0 to 1
    dropped: int  # malformed rows left out so far
    malformed: NDArray[np.int64] = field(default_factory=_none)  # numbers of those among these
    order: NDArray[np.float64] = field(default_factory=_none)  # what a split goes by, if any

    def position(self, row: int) -> Position:
        """Return where to go on after one of the examples."""
        number = int(self.numbers[row])
        later = len(self.malformed) - np.searchsorted(self.malformed, number)
        return Position(self.file, number, self.dropped - int(later))


def split_column(split: str) -> tuple[str, str]:
    """Return what a split goes by: "random", "time" or "column", and the name of the column."""
    kind, _, column = split.partition(":")
    if split == "random" or (kind in ("time", "column") and column):
        return kind, column
    raise DataError(f"unknown split {split!r}: use random, time:COLUMN or column:COLUMN")


def split_at_random(rows: int, seed: int, own: tuple[int, int] = (0, 0)) -> Splits:
    """Draw a tenth of the rows for validation and a tenth for testing.

    ``own`` counts rows of a validation and of a test file of their own, which follow the others; a
    part that has its own file is not drawn.
    """
    order = np.random.Generator(np.random.PCG64(seed)).permutation(rows)
    drawn = [0 if count else _tenth(rows) for count in own]
    train = rows - sum(drawn)
    validation, test = order[train : train + drawn[0]], order[train + drawn[0] :]
    ends = (rows, rows + own[0], rows + own[0] + own[1])
    return Splits(
        np.sort(order[:train]),
        np.arange(ends[0], ends[1]) if own[0] else np.sort(validation),
        np.arange(ends[1], ends[2]) if own[1] else np.sort(test),
    )


def split_by_time(times: NDArray[np.float64]) -> Splits:
    """Take the oldest 80% to learn from, the next 10% to choose by, the newest 10% to report on."""
    order = np.argsort(times, kind="stable")
    tenth = _tenth(len(times))
    cuts = (len(times) - 2 * tenth, len(times) - tenth)
    return Splits(*(np.sort(part) for part in np.split(order, cuts)))


def split_by_part(parts: NDArray[np.float64]) -> Splits:
    """Take the rows whose part is 0, 1 and 2."""
    rows = [np.flatnonzero(parts == part) for part in range(3)]
    for name, found in zip(("train", "validation", "test"), rows, strict=True):
        if len(found) == 0:
            raise DataError(
                f"no row is marked {name}: the split column must hold train, validation and test"
            )
    return Splits(*rows)


def _tenth(rows: int) -> int:
    if rows < 10:
        raise DataError(f"{rows} rows are too few to split: at least 10 are needed")
    return rows // 10
