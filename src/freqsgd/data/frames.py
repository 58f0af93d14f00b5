"""Frames in memory, as ``conversion`` reads them, to ids."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.blocks import Block
from freqsgd.data.coding import TokenCoder
from freqsgd.data.columns import (
    Column,
    bag_width,
    finite_numbers,
    is_unreadable,
    quantile_edges,
)
from freqsgd.data.conversion import shown
from freqsgd.data.dataset import DataError
from freqsgd.data.encoder import Encoder
from freqsgd.data.token_table import TokenTable
from freqsgd.data.unknown import UnknownValues
from freqsgd.data.vocabulary import Vocabulary, to_ids

__all__ = [
    "code_frame",
    "empty_encoder",
    "encode_frame",
    "frame_columns",
    "look_up",
    "new_encoder",
]

_BLOCK_ROWS = 1 << 18


def frame_columns(
    frame: pl.DataFrame, numeric: Collection[str], numeric_rule: str
) -> tuple[Column, ...]:
    """How the columns of a frame become fields."""
    return tuple(_field(values, values.name in numeric, numeric_rule) for values in frame)


def new_encoder(
    frame: pl.DataFrame, columns: Sequence[Column], min_count: int
) -> tuple[Encoder, NDArray[np.int32]]:
    """Number the tokens of a frame by how often they occur; return the ids of its rows too."""
    vocabulary = Vocabulary()
    codes = code_frame(frame, columns, vocabulary.table, add=True)
    vocabulary.count(codes)
    tokens, ids = vocabulary.rank(columns, min_count)
    return Encoder("table", columns, tokens, min_count), to_ids(codes, ids)


def empty_encoder(columns: Sequence[Column]) -> Encoder:
    """An encoder that knows no tokens yet."""
    return Encoder("table", columns, Vocabulary().rank(columns, 1)[0])


def encode_frame(encoder: Encoder, frame: pl.DataFrame) -> NDArray[np.int32]:
    """Ids of the rows of a frame; tokens that are not known are rare."""
    table, ids = encoder.known
    return to_ids(look_up(frame, encoder.columns, table), ids)


def look_up(frame: pl.DataFrame, columns: Sequence[Column], table: TokenTable) -> NDArray[np.int32]:
    """Codes of the tokens of all rows; warns where most of a column are not in the table."""
    unknown = UnknownValues()
    codes = code_frame(frame, columns, table, add=False, unknown=unknown)
    unknown.warn()
    return codes


def code_frame(
    frame: pl.DataFrame,
    columns: Sequence[Column],
    table: TokenTable,
    *,
    add: bool,
    unknown: UnknownValues | None = None,
) -> NDArray[np.int32]:
    """Codes of the tokens of all rows."""
    for column in columns:
        _check_kind(frame[column.name], column)
    empty = {c.name: pl.List(pl.String) for c in columns if c.kind == "bag"}
    frame = frame.cast({name: to for name, to in empty.items() if frame[name].dtype == pl.Null})
    coder = TokenCoder(columns, table, add=add, unknown=unknown)
    codes = np.empty((len(frame), sum(column.width for column in columns)), np.int32)
    for start in range(0, len(frame), _BLOCK_ROWS):
        some = frame.slice(start, _BLOCK_ROWS)
        block = Block(some, None, np.arange(len(some)), "row", [], 1.0)
        codes[start : start + len(some)] = coder.code(block)
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


def _field(values: pl.Series, is_number: bool, numeric_rule: str) -> Column:
    name = values.name
    if isinstance(values.dtype, pl.List):
        return Column(name, "bag", width=bag_width(values))
    if not is_number:
        return Column(name)
    if numeric_rule == "log":
        return Column(name, "number")
    if numeric_rule != "quantiles":
        raise DataError(f"unknown numeric rule {shown(numeric_rule)}: known are log, quantiles")
    edges = quantile_edges(finite_numbers(values), f"column {name!r}")
    return Column(name, "number", edges=edges)
