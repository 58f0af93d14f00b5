"""Encode frames by a dictionary, which may grow."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError, DataWarning
from freqsgd.tables.encoders.columns import (
    Column,
    bag_width,
    is_unreadable,
    number_column,
)
from freqsgd.tables.encoders.encoder import Encoder
from freqsgd.tables.encoders.samples import Coder
from freqsgd.tables.encoders.values import shown
from freqsgd.tables.encoders.vocabulary import Lookup, Vocabulary, known_table
from freqsgd.tables.fields import ABSENT, RARE
from freqsgd.tables.readers.reader import Block

_ROWS = 1 << 18  # that are encoded at once


def frame_columns(
    frame: pl.DataFrame, numeric: Collection[str], numeric_rule: str
) -> tuple[Column, ...]:
    """Decide how the columns of a frame become fields."""
    columns = []
    for values in frame:
        name = values.name
        if isinstance(values.dtype, pl.List):
            columns.append(Column(name, "bag", width=bag_width(values)))
        elif name in numeric:
            columns.append(number_column(name, numeric_rule, [values]))
        else:
            columns.append(Column(name))
    return tuple(columns)


def new_encoder(
    frame: pl.DataFrame, columns: Sequence[Column], min_count: int
) -> tuple[Encoder, NDArray[np.int32]]:
    """Number the tokens of a frame by how often they occur; return the ids of its rows too."""
    vocabulary = Vocabulary(columns)
    codes = code_frame(frame, vocabulary)
    vocabulary.count(codes)
    tokens, ids = vocabulary.rank(min_count)
    return Encoder("table", columns, tokens, min_count), ids[codes]


def empty_encoder(columns: Sequence[Column]) -> Encoder:
    """Make an encoder that knows no tokens yet."""
    return Encoder("table", columns, Vocabulary(columns).rank(1)[0])


def encode_frame(encoder: Encoder, frame: pl.DataFrame) -> NDArray[np.int32]:
    """Return ids of the rows of a frame; tokens that are not known are rare."""
    return code_frame(frame, encoder.coder())


def code_frame(frame: pl.DataFrame, coder: Coder) -> NDArray[np.int32]:
    """Return what the coder makes of all rows, and give its warnings."""
    columns = coder.columns
    for column in columns:
        _check_kind(frame[column.name], column)
    empty = {c.name: pl.List(pl.String) for c in columns if c.kind == "bag"}
    frame = frame.cast({name: to for name, to in empty.items() if frame[name].dtype == pl.Null})
    codes = np.empty((len(frame), coder.starts[-1]), np.int32)
    for start in range(0, len(frame), _ROWS):
        some = frame[start : start + _ROWS]
        numbers = np.arange(start, start + len(some))
        codes[numbers] = coder.code(Block(some, None, numbers, "row", [], 1.0))
    for message in coder.messages():
        warnings.warn(message, DataWarning, stacklevel=3)
    return codes


def _check_kind(values: pl.Series, column: Column) -> None:
    name, has_lists = column.name, isinstance(values.dtype, pl.List)
    if has_lists and column.kind != "bag":
        raise DataError(f"column {name!r} must hold single values, but holds lists")
    if column.kind == "bag" and not has_lists and values.dtype != pl.Null:
        raise DataError(f"column {name!r} must hold lists, but holds single values")
    if column.is_number:
        wrong = values.to_frame().select(is_unreadable(column, values.dtype)).to_series()
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            raise DataError(
                f"column {name!r}, row {row}: {shown(values[row])} is not a finite number"
            )


class GrowingEncoder:
    """Gives tokens of each field ids in the order in which they come, after those of an encoder.

    Where ``take_in`` is cut off, by Ctrl-C or for want of memory, the next call makes up for it.

    Attributes:
        columns: the raw columns, one for each field
        sizes: number of ids of each field
    """

    def __init__(self, encoder: Encoder) -> None:
        self.kind, self.columns, self.dialect = encoder.kind, encoder.columns, encoder.dialect
        self.sizes = np.array([field.size for field in encoder.fields])
        self._table, self._ids = known_table(encoder.texts())
        self._numbered = len(self._table)  # tokens that have ids; the table may hold more
        counts = pl.concat(encoder.counts()).to_numpy()
        self._counted = Vocabulary(encoder.columns, self._table, counts)

    def encode(self, frame: pl.DataFrame) -> NDArray[np.int32]:
        """Return ids of the rows of a frame; tokens that are not known are rare."""
        self._make_room()
        return code_frame(frame, Lookup(self.columns, self._table, self._ids))

    def take_in(self, frame: pl.DataFrame) -> NDArray[np.int32]:
        """Return ids of rows, after new tokens got theirs and long lists their width."""
        columns = tuple(_widened(column, frame[column.name]) for column in self.columns)
        codes = code_frame(frame, Vocabulary(columns, self._table))
        self._make_room()
        first, last = self._numbered, len(self._table)
        fields, sizes = self._table.fields(first), self.sizes.copy()
        new = np.empty(last - first, np.int32)
        for field in np.unique(fields):
            places = np.flatnonzero(fields == field)
            new[places] = sizes[field] + np.arange(len(places))
            sizes[field] += len(places)
        # All at once: no interrupt comes between these.
        self._ids[first:last], self._numbered, self.sizes, self.columns = new, last, sizes, columns
        self._counted.count(codes)
        return self._ids[codes]

    def encoder(self) -> Encoder:
        """Make an encoder of the tokens so far."""
        ids, fields = self._ids[: self._numbered], self._table.fields()[: self._numbered]
        order = np.lexsort((ids, fields))
        tokens = pl.DataFrame(
            {
                "field": fields[order].astype(np.int32),
                "token": self._table.texts(order),
                "id": ids[order],
                "count": self._counted.counts[order],
            }
        )
        return Encoder(self.kind, self.columns, tokens, dialect=self.dialect)

    def _make_room(self) -> None:
        """Make room for all tokens of the table, which are rare until they get their ids."""
        needed, known = len(self._table) + 3, self._numbered
        if needed > len(self._ids):
            ids = np.full(max(needed, 2 * len(self._ids)), RARE, np.int32)
            ids[:known] = self._ids[:known]
            ids[-1] = ABSENT  # where code -1 leads
            self._ids = ids


def _widened(column: Column, values: pl.Series) -> Column:
    if column.kind != "bag" or not isinstance(values.dtype, pl.List):
        return column
    return replace(column, width=max(column.width, bag_width(values)))
