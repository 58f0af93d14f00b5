"""Codes of the tokens of a block of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.blocks import Block, RawText
from freqsgd.data.columns import Column, tokens
from freqsgd.data.dataset import ABSENT
from freqsgd.data.token_table import TokenTable

__all__ = ["code_block"]


def code_block(
    block: Block, columns: Sequence[Column], raw: Sequence[str], table: TokenTable, *, add: bool
) -> NDArray[np.int32]:
    """Codes of all rows: a column each, and ``width`` columns for a bag.

    The columns named by ``raw`` are taken from raw text where the block has it.
    """
    starts = np.cumsum([0, *(column.width for column in columns)]).tolist()
    codes = np.empty((len(block.numbers), starts[-1]), np.int32)
    if block.raw is None:
        raw = ()
    elif raw:
        places = _places(block.raw, columns, raw, starts)
        table.code_rows(block.raw.data, block.raw.stops, places, codes, add=add)
    parsed = [(field, column) for field, column in enumerate(columns) if column.name not in raw]
    schema = block.frame.schema
    frame = block.frame.select(tokens(column, schema[column.name]) for _, column in parsed)
    for field, column in parsed:
        place = codes[:, starts[field] : starts[field + 1]]
        values = frame[column.name]
        if column.kind == "bag":
            _code_bags(values, field, table, place, add=add)
        else:
            place[:, 0] = table.code_texts(values, field, add=add)
    return codes


def _places(
    text: RawText, columns: Sequence[Column], raw: Sequence[str], starts: list[int]
) -> NDArray[np.int64]:
    """The field of each column of the text, or -1, and where its codes go."""
    fields = {column.name: field for field, column in enumerate(columns) if column.name in raw}
    chosen = [fields.get(name, -1) for name in text.names]
    return np.array([chosen, [starts[field] for field in chosen]])


def _code_bags(
    lists: pl.Series, field: int, table: TokenTable, place: NDArray[np.int32], *, add: bool
) -> None:
    lengths = lists.list.len().to_numpy()
    place[:] = ABSENT
    flat = lists.filter(pl.Series(lengths > 0)).explode()
    place[np.arange(place.shape[1]) < lengths[:, None]] = table.code_texts(flat, field, add=add)
