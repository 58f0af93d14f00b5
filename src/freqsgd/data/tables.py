"""The fields of files that name their columns, by a look at the columns and their values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from freqsgd.data.blocks import Block, read_blocks
from freqsgd.data.columns import Column, bag_width, finite_numbers, quantile_edges
from freqsgd.data.dialect import BY_NAME, Dialect
from freqsgd.data.formats import Parquet, TextFormat, format_of
from freqsgd.data.schema import check_file, check_names, file_schema, kind_of

__all__ = ["table_columns"]

_Files = Sequence[tuple[Path, TextFormat | Parquet]]
_SAMPLE = 1 << 20  # values that quantiles are taken from, at most


def table_columns(
    files: Sequence[Path],
    features: Sequence[str],
    numeric: Sequence[str],
    numeric_rule: str,
    others: Sequence[str],
    dialect: Dialect = BY_NAME,
) -> tuple[Column, ...]:
    """How the features and the numeric columns become fields; ``others`` must be there too."""
    form = partial(format_of, dialect=dialect)
    schema = file_schema(files[0], form(files[0]))
    check_names(files[0], form(files[0]), list(schema), [*features, *numeric, *others])
    columns = [Column(name, kind_of(files[0], name, schema[name])) for name in features]
    columns += [Column(name, "number") for name in numeric]
    for file in files:
        check_file(file, form(file), columns, others)
    formed = [(file, form(file)) for file in files]
    return tuple(_look_closer(formed, column, numeric_rule) for column in columns)


def _look_closer(files: _Files, column: Column, numeric_rule: str) -> Column:
    """Find out what only the values tell: how long bags are, and where quantiles lie."""
    if column.kind == "bag":
        return Column(column.name, "bag", width=_longest_list(files, column.name))
    if column.kind == "number" and numeric_rule == "quantiles":
        return Column(column.name, "number", edges=_quantiles(files, column.name))
    return column


def _longest_list(files: _Files, name: str) -> int:
    longest = 0
    for file, form in files:
        for block in read_blocks(file, form, [name]):
            width = bag_width(block.frame[name], partial(_place, file, block))
            longest = max(longest, width)
    return longest


def _place(file: Path, block: Block, row: int) -> str:
    return f"{file}, {block.unit} {block.numbers[row]}"


def _quantiles(files: _Files, name: str) -> tuple[float, ...]:
    sample, step, seen = np.empty(0), 1, 0
    for file, form in files:
        for block in read_blocks(file, form, [name]):
            values = finite_numbers(block.frame[name])
            sample = np.concatenate([sample, values[-seen % step :: step]])
            seen += len(values)
            while len(sample) > _SAMPLE:
                sample, step = sample[::2], 2 * step
    return quantile_edges(sample, f"{files[0][0]}: column {name!r}")
