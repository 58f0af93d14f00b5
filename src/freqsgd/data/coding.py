"""Codes of the tokens of a block of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.blocks import Block, RawText
from freqsgd.data.columns import Column, is_unreadable, tokens
from freqsgd.data.fields import ABSENT
from freqsgd.data.token_table import TokenTable
from freqsgd.data.unknown import UnknownValues

__all__ = ["Coder", "TokenCoder", "code_block", "fill_bags", "raw_places"]


class Coder(Protocol):
    """Turns the columns of a block into numbers: codes or ids."""

    raw: list[str]  # columns that it takes as raw text, where there is any

    def code(self, block: Block) -> NDArray[np.int32]:
        """The numbers of all rows: a column each, and ``width`` columns for a bag."""

    def faults(self, block: Block, codes: NDArray[np.int32]) -> Iterator[tuple[int, str]]:
        """Rows of the block last coded whose raw text cannot be used, and why."""


class TokenCoder:
    """Codes of tokens in a table.

    Args:
        columns: the fields of a sample
        table: gives tokens their codes
        add: whether tokens that are not in the table are added to it
        ids: what becomes of the codes, as ``vocabulary.to_ids`` says; None: they stay codes
        unknown: counts the tokens that are not in the table
    """

    def __init__(
        self,
        columns: Sequence[Column],
        table: TokenTable,
        *,
        add: bool,
        ids: NDArray[np.int32] | None = None,
        unknown: UnknownValues | None = None,
    ) -> None:
        self.columns, self.table, self.add, self.ids = columns, table, add, ids
        self._unknown = unknown
        # An integer may be left as text until all are known; then its bin is found once for each
        # distinct text. Tokens that are looked up must be bins.
        kinds = ("category", "integer") if add else ("category",)
        self.raw = [column.name for column in columns if column.kind in kinds]
        self._checked = 0  # codes of the table that are known to be integers, or not
        self._unreadable = np.empty(0, np.int64)  # codes of texts that are no integers

    def code(self, block: Block) -> NDArray[np.int32]:
        """Codes of the tokens, or their ids."""
        self._checked = len(self.table)
        codes = code_block(block, self.columns, self.raw, self.table, add=self.add)
        if self._unknown is not None:
            texts = partial(_texts, block, self.columns, self.raw)
            self._unknown.add(codes, self.columns, self.table, texts)
        return codes if self.ids is None else self.ids[codes]

    def faults(self, block: Block, codes: NDArray[np.int32]) -> Iterator[tuple[int, str]]:
        """Rows whose integers, left as text, are none."""
        integers = [n for n, column in enumerate(self.columns) if column.kind == "integer"]
        if block.raw is None or not self.add or not integers:
            return
        begin = self._checked
        new = begin + np.flatnonzero(np.isin(self.table.fields(begin), integers))
        texts = pl.DataFrame({"text": self.table.texts(new)})
        bad = texts.select(is_unreadable(Column("text", "integer"), pl.String())).to_series()
        self._unreadable = np.concatenate([self._unreadable, new[bad.to_numpy()]])
        if len(self._unreadable) == 0:
            return
        for row, place in np.argwhere(np.isin(codes[:, integers], self._unreadable)).tolist():
            column = self.columns[integers[place]]
            text = self.table.texts(codes[row, [integers[place]]].astype(np.int64)).item()
            yield row, f"{column.name} is {text!r}, not an integer"


def code_block(
    block: Block, columns: Sequence[Column], raw: Collection[str], table: TokenTable, *, add: bool
) -> NDArray[np.int32]:
    """Codes of all rows: a column each, and ``width`` columns for a bag.

    The columns named by ``raw`` are taken from raw text where the block has it.
    """
    starts = np.cumsum([0, *(column.width for column in columns)]).tolist()
    codes = np.empty((len(block.numbers), starts[-1]), np.int32)
    raw = set(raw)
    if block.raw is None:
        raw = set()
    elif raw:
        places = raw_places(block.raw, columns, raw, starts)
        table.code_rows(block.raw.data, block.raw.stops, places, codes, add=add)
    parsed = [(field, column) for field, column in enumerate(columns) if column.name not in raw]
    schema = block.frame.schema
    frame = block.frame.select(tokens(column, schema[column.name]) for _, column in parsed)
    for field, column in parsed:
        place = codes[:, starts[field] : starts[field + 1]]
        values = frame[column.name]
        if column.kind == "bag":
            fill_bags(values, place, partial(table.code_texts, field=field, add=add))
        else:
            place[:, 0] = table.code_texts(values, field, add=add)
    return codes


def _texts(
    block: Block,
    columns: Sequence[Column],
    raw: Collection[str],
    field: int,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
) -> list[str]:
    """The texts of tokens of a field, as ``code_block`` takes them; places are those in a bag."""
    column = columns[field]
    if block.raw is not None and column.name in raw:
        return [block.raw.cell(row, column.name) for row in rows.tolist()]
    some = block.frame[rows].select(tokens(column, block.frame.schema[column.name])).to_series()
    if column.kind != "bag":
        return some.to_list()
    return [texts[place] for texts, place in zip(some.to_list(), places.tolist(), strict=True)]


def raw_places(
    text: RawText, columns: Sequence[Column], raw: Collection[str], starts: list[int]
) -> NDArray[np.int64]:
    """The field of each column of the text, or -1, and where its codes go."""
    fields = {column.name: field for field, column in enumerate(columns) if column.name in raw}
    chosen = [fields.get(name, -1) for name in text.names]
    return np.array([chosen, [starts[field] for field in chosen]])


def fill_bags(
    lists: pl.Series, place: NDArray[np.int32], code: Callable[[pl.Series], NDArray[np.int32]]
) -> None:
    """Put the codes of the values in lists into the columns of a bag."""
    lengths = lists.list.len().to_numpy()
    place[:] = ABSENT
    flat = lists.filter(pl.Series(lengths > 0)).explode()
    place[np.arange(place.shape[1]) < lengths[:, None]] = code(flat)
