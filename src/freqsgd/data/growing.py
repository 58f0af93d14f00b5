"""A dictionary that takes in tokens as they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.columns import Column, bag_width
from freqsgd.data.encoder import Encoder
from freqsgd.data.fields import ABSENT, RARE
from freqsgd.data.frames import code_frame, look_up
from freqsgd.data.hashing import count_codes
from freqsgd.data.vocabulary import known_table, to_ids

__all__ = ["GrowingEncoder"]


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
        self._counts = np.append(pl.concat(encoder.counts()).to_numpy(), [0, 0, 0])

    def encode(self, frame: pl.DataFrame) -> NDArray[np.int32]:
        """Ids of the rows of a frame; tokens that are not known are rare."""
        self._make_room()
        return to_ids(look_up(frame, self.columns, self._table), self._ids)

    def take_in(self, frame: pl.DataFrame) -> NDArray[np.int32]:
        """Ids of the rows of a frame, after new tokens got theirs and long lists their width."""
        columns = tuple(_widened(column, frame[column.name]) for column in self.columns)
        codes = code_frame(frame, columns, self._table, add=True)
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
        count_codes(codes, self._counts)
        return to_ids(codes, self._ids)

    def encoder(self) -> Encoder:
        """An encoder of the tokens so far."""
        ids, fields = self._ids[: self._numbered], self._table.fields()[: self._numbered]
        order = np.lexsort((ids, fields))
        tokens = pl.DataFrame(
            {
                "field": fields[order].astype(np.int32),
                "token": self._table.texts(order),
                "id": ids[order],
                "count": self._counts[order],
            }
        )
        return Encoder(self.kind, self.columns, tokens, dialect=self.dialect)

    def _make_room(self) -> None:
        """Room for all tokens of the table, which are rare until they get their ids."""
        needed, known = len(self._table) + 3, self._numbered
        if needed > len(self._ids):
            room = max(needed, 2 * len(self._ids))
            ids, counts = np.full(room, RARE, np.int32), np.zeros(room, np.int64)
            ids[:known], counts[:known] = self._ids[:known], self._counts[:known]
            ids[-1] = ABSENT  # where code -1 leads
            self._ids, self._counts = ids, counts


def _widened(column: Column, values: pl.Series) -> Column:
    if column.kind != "bag" or not isinstance(values.dtype, pl.List):
        return column
    return replace(column, width=max(column.width, bag_width(values)))
