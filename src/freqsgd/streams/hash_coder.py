"""Ids of a block of rows, by hashing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.blocks import Block
from freqsgd.data.coding import fill_bags, raw_places
from freqsgd.data.columns import Column, bag_lists, number_bins, tokens
from freqsgd.data.dataset import DataWarning
from freqsgd.data.packing import joined, whole_words
from freqsgd.streams.hashing import hash_integers, hash_rows

__all__ = ["HashCoder"]

_TILE = 1 << 15  # rows whose ids stay in the cache while all columns are hashed
_LARGEST = 2**63 - 1
_NONE = np.empty(0, np.bool_)


class HashCoder:
    """Hashes the tokens of each field to rows of its table.

    Args:
        columns: the fields of a sample
        rows: of the table of each field
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[int]) -> None:
        self.columns, self.rows = columns, np.array(rows, np.int64)
        self.raw = [column.name for column in columns if column.kind == "category"]
        self._starts = np.cumsum([0, *(column.width for column in columns)]).tolist()
        self._cut: set[str] = set()  # bags of which it was said that lists were cut off

    def code(self, block: Block) -> NDArray[np.int32]:
        """Ids of all rows: a column each, and ``width`` columns for a bag."""
        ids = np.empty((len(block.numbers), self._starts[-1]), np.int32)
        raw: set[str] = set()
        if block.raw is not None and self.raw:
            raw = set(self.raw)
            places = raw_places(block.raw, self.columns, raw, self._starts)
            hash_rows(whole_words(block.raw.data), block.raw.stops, places, self.rows, ids)
        parsed = [(n, column) for n, column in enumerate(self.columns) if column.name not in raw]
        frame = block.frame.select(self._values(column, block.frame) for _, column in parsed)
        for start in range(0, len(ids) if parsed else 0, _TILE):
            some, place = frame.slice(start, _TILE), ids[start : start + _TILE]
            for field, column in parsed:
                self._hash(some[column.name], field, place[:, self._starts[field] :])
        return ids

    def faults(self, block: Block, codes: NDArray[np.int32]) -> Iterator[tuple[int, str]]:
        """None: any text can be hashed."""
        return iter(())

    def _values(self, column: Column, frame: pl.DataFrame) -> pl.Expr:
        """What is hashed: numbers as they are, anything else as text."""
        dtype = frame.schema[column.name]
        if column.is_number:
            return number_bins(column).cast(pl.Int64)
        if column.kind == "bag":
            self._warn_of_long_lists(frame[column.name], column)
            return bag_lists(column, dtype)
        return pl.col(column.name) if dtype.is_numeric() else tokens(column, dtype)

    def _hash(self, values: pl.Series, field: int, place: NDArray[np.int32]) -> None:
        """Fill in the ids of a field, from the first column of ``place`` on."""
        width = self.columns[field].width
        if isinstance(values.dtype, pl.List):
            fill_bags(values, place[:, :width], partial(self._hashed, field=field))
        else:
            place[:, 0] = self._hashed(values, field)

    def _hashed(self, values: pl.Series, field: int) -> NDArray[np.int32]:
        ids = np.empty((len(values), 1), np.int32)
        if _fits(values):
            hash_integers(*_as_integers(values), field, self.rows[field], ids[:, 0])
        elif len(values):
            data, stops = joined(values.cast(pl.String).fill_null(""))
            place = np.array([[field], [0]])
            hash_rows(whole_words(data), stops.reshape(-1, 1), place, self.rows, ids)
        return ids[:, 0]

    def _warn_of_long_lists(self, lists: pl.Series, column: Column) -> None:
        if column.name in self._cut or not isinstance(lists.dtype, pl.List):
            return
        longest = lists.list.len().max()
        if isinstance(longest, int) and longest > column.width:
            self._cut.add(column.name)
            warnings.warn(
                f"column {column.name!r} has a list of {longest:,} tokens; those beyond the first "
                f"{column.width} of a list, the most at the start of the data, are cut off",
                DataWarning,
                stacklevel=2,
            )


def _fits(values: pl.Series) -> bool:
    """Whether all values are integers of 64 bits."""
    if values.dtype not in (pl.UInt64, pl.Int128, pl.UInt128):
        return values.dtype.is_integer()
    low, high = values.min(), values.max()
    return low is None or (int(low) >= -_LARGEST - 1 and int(high) <= _LARGEST)  # type: ignore


def _as_integers(values: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Integers, and which of them are missing; read-only, so that they are of one type."""
    missing = _NONE
    if values.null_count():
        missing, values = values.is_null().to_numpy(), values.fill_null(0)
    if values.dtype != pl.Int32:
        values = values.cast(pl.Int64)
    numbers = values.to_numpy()
    for array in (numbers, missing):
        array.setflags(write=False)
    return numbers, missing
