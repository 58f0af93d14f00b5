"""A dictionary that takes in tokens as they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.columns import Column
from freqsgd.data.dataset import ABSENT, RARE
from freqsgd.data.encoder import Encoder
from freqsgd.data.frames import bag_width, code_frame
from freqsgd.data.hashing import count_codes
from freqsgd.data.vocabulary import known_table, to_ids

__all__ = ["GrowingEncoder"]


class GrowingEncoder:
    """Gives tokens of each field ids in the order in which they come, after those of an encoder.

    Attributes:
        columns: the raw columns, one for each field
        sizes: number of ids of each field
    """

    def __init__(self, encoder: Encoder) -> None:
        self.kind, self.columns = encoder.kind, encoder.columns
        self.sizes = np.array([field.size for field in encoder.fields])
        self._table, self._ids = known_table(encoder.texts())
        self._counts = pl.concat(encoder.counts()).to_numpy().copy()

    def encode(self, frame: pl.DataFrame) -> NDArray[np.int32]:
        """Ids of the rows of a frame; tokens that are not known are rare."""
        return to_ids(code_frame(frame, self.columns, self._table, add=False), self._ids)

    def take_in(self, frame: pl.DataFrame) -> NDArray[np.int32]:
        """Ids of the rows of a frame, after new tokens got theirs and long lists their width."""
        columns = tuple(_widened(column, frame[column.name]) for column in self.columns)
        before = len(self._table)
        codes = code_frame(frame, columns, self._table, add=True)
        self.columns = columns
        fields = self._table.fields(before)
        new = np.empty(len(fields), np.int32)
        for field in np.unique(fields):
            places = np.flatnonzero(fields == field)
            new[places] = self.sizes[field] + np.arange(len(places))
            self.sizes[field] += len(places)
        self._ids = np.concatenate([self._ids[:before], new, [RARE, ABSENT]], dtype=np.int32)
        self._counts = np.concatenate([self._counts, np.zeros(len(new), np.int64)])
        count_codes(codes, self._counts)
        return to_ids(codes, self._ids)

    def encoder(self) -> Encoder:
        """An encoder of the tokens so far."""
        ids, fields = self._ids[: len(self._table)], self._table.fields()
        order = np.lexsort((ids, fields))
        tokens = pl.DataFrame(
            {
                "field": fields[order].astype(np.int32),
                "token": self._table.texts(order),
                "id": ids[order],
                "count": self._counts[order],
            }
        )
        return Encoder(self.kind, self.columns, tokens)


def _widened(column: Column, values: pl.Series) -> Column:
    if column.kind != "bag" or not isinstance(values.dtype, pl.List):
        return column
    return replace(column, width=max(column.width, bag_width(values)))
