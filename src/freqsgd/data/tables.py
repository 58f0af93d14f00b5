"""The fields of files that name their columns, by a look at the columns and their values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from freqsgd.data.blocks import read_blocks
from freqsgd.data.columns import Column
from freqsgd.data.dataset import DataError
from freqsgd.data.formats import format_of
from freqsgd.data.schema import check_file, check_names, file_schema, kind_of

__all__ = ["table_columns"]

_WIDEST_BAG = 256
_BINS = 64
_SAMPLE = 1 << 20  # values that quantiles are taken from, at most


def table_columns(
    files: Sequence[Path],
    features: Sequence[str],
    numeric: Sequence[str],
    numeric_rule: str,
    others: Sequence[str],
) -> tuple[Column, ...]:
    """How the features and the numeric columns become fields; ``others`` must be there too."""
    schema = file_schema(files[0], format_of(files[0]))
    check_names(files[0], list(schema), [*features, *numeric, *others])
    columns = [Column(name, kind_of(files[0], name, schema[name])) for name in features]
    columns += [Column(name, "number") for name in numeric]
    for file in files:
        check_file(file, format_of(file), columns, others)
    return tuple(_look_closer(files, column, numeric_rule) for column in columns)


def _look_closer(files: Sequence[Path], column: Column, numeric_rule: str) -> Column:
    """Find out what only the values tell: how long bags are, and where quantiles lie."""
    if column.kind == "bag":
        return Column(column.name, "bag", width=_longest_list(files, column.name))
    if column.kind == "number" and numeric_rule == "quantiles":
        return Column(column.name, "number", edges=_quantiles(files, column.name))
    return column


def _longest_list(files: Sequence[Path], name: str) -> int:
    longest = 2  # one column would be a single value, which is never absent
    for file in files:
        for block in read_blocks(file, format_of(file), [name]):
            lists = block.frame[name]
            lengths = lists.list.len() if isinstance(lists.dtype, pl.List) else lists.arr.len()
            found = int(lengths.fill_null(1).to_numpy().max(initial=1))
            if found > _WIDEST_BAG:
                row = block.numbers[int(lengths.fill_null(1).arg_max() or 0)]
                raise DataError(
                    f"{file}, row {row}: the list in column {name!r} has {found:,} tokens; at most "
                    f"{_WIDEST_BAG} are possible, so keep the ones that matter"
                )
            longest = max(longest, found)
    return longest


def _quantiles(files: Sequence[Path], name: str) -> tuple[float, ...]:
    """Edges of bins that hold about equally many values."""
    sample, step, seen = np.empty(0), 1, 0
    for file in files:
        for block in read_blocks(file, format_of(file), [name]):
            values = block.frame[name].cast(pl.Float64, strict=False).drop_nulls().to_numpy()
            values = values[np.isfinite(values)]  # what cannot be read is reported when encoding
            sample = np.concatenate([sample, values[-seen % step :: step]])
            seen += len(values)
            while len(sample) > _SAMPLE:
                sample, step = sample[::2], 2 * step
    if len(sample) == 0:
        raise DataError(f"{files[0]}: column {name!r} holds no numbers")
    return tuple(np.unique(np.quantile(sample, np.arange(1, _BINS) / _BINS)).tolist())
