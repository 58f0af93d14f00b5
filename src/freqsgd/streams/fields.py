"""The fields of a stream of files, by a look at the first of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from freqsgd.data.blocks import Block, read_blocks
from freqsgd.data.columns import Column, bag_width
from freqsgd.data.formats import Parquet, TextFormat
from freqsgd.data.schema import check_names, file_schema, kind_of

__all__ = ["stream_columns"]

_Form = Callable[[Path], TextFormat | Parquet]


def stream_columns(
    files: Sequence[Path],
    form: _Form,
    features: Sequence[str],
    numeric: Sequence[str],
    others: Sequence[str] = (),
) -> tuple[Column, ...]:
    """How the features and the numeric columns of the first file become fields.

    ``others`` must be there too.

    A bag is as wide as the longest list in the first block that has rows, or as lists of a fixed
    size are. ``form`` tells the format of a file.
    """
    schema = file_schema(files[0], form(files[0]))
    check_names(files[0], form(files[0]), list(schema), [*features, *numeric, *others])
    categories = (_column(files, form, name, schema[name]) for name in features)
    return (*categories, *(Column(name, "number") for name in numeric))


def _column(files: Sequence[Path], form: _Form, name: str, dtype: pl.DataType) -> Column:
    if kind_of(files[0], name, dtype) == "category":
        return Column(name)
    return Column(name, "bag", width=_width(files, form, name))


def _width(files: Sequence[Path], form: _Form, name: str) -> int:
    for file in files:
        for block in read_blocks(file, form(file), [name]):
            if len(block.frame):
                return _width_in(file, block, name)
    return bag_width(pl.Series(name, [], pl.List(pl.String)))


def _width_in(file: Path, block: Block, name: str) -> int:
    return bag_width(block.frame[name], lambda row: f"{file}, {block.unit} {block.numbers[row]}")
