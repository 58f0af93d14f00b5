"""From options to files and columns that can be encoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from freqsgd.tables.blocks import Block
from freqsgd.tables.cache import file_key
from freqsgd.tables.catalog import known_dataset, locate
from freqsgd.tables.checks import without_types
from freqsgd.tables.columns import Column, Target, bag_width, finite_numbers, quantile_edges
from freqsgd.tables.dialect import BY_NAME, Dialect
from freqsgd.tables.formats import (
    CRITEO,
    CRITEO_COLUMNS,
    MOVIELENS,
    MOVIELENS_COLUMNS,
    Parquet,
    TextFormat,
    format_of,
    list_files,
    refuse_parquet,
)
from freqsgd.tables.readers import check_file, check_names, file_schema, kind_of, read_blocks
from freqsgd.tables.splits import split_column

if TYPE_CHECKING:
    from freqsgd.tables.spec import DataOptions

__all__ = ["Request", "Source", "stream_columns", "table_columns"]

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


_FORMAT = 3  # of the encoded samples: raised when they change, so that old ones are made anew
_MIN_COUNT = {"criteo": 10}


@dataclass(frozen=True)
class Request:
    """The files that the options name; what is in them is looked at only by ``source``."""

    options: DataOptions
    name: str
    kind: str  # the layout of the files, as for an Encoder
    files: tuple[Path, ...]
    validation: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()

    @classmethod
    def of(cls, options: DataOptions) -> Request:
        """Find the files."""
        if options.path is None:
            dataset = known_dataset(options.dataset or "synthetic")
            return cls(options, dataset.name, dataset.name, (locate(dataset),))
        own = [
            list_files(Path(path)) if path else ()
            for path in (options.path, options.validation_path, options.test_path)
        ]
        refuse_parquet(chain(*own), options.dialect)
        name = Path(options.path).resolve().name.partition(".")[0]
        options = without_types(options, format_of(own[0][0], options.dialect))
        return cls(options, name, "table", *own)

    def key(self) -> dict[str, Any]:
        """What the encoded samples depend on."""
        options = self.options
        return {
            "format": _FORMAT,
            "kind": self.kind,
            "files": [
                [file_key(path) for path in files]
                for files in (self.files, self.validation, self.test)
            ],
            "label": options.label,
            "features": options.features,
            "numeric": options.numeric,
            "numeric_rule": options.numeric_rule,
            "positive_above": options.positive_above,
            "min_count": self._min_count(),
            "max_bad_rows": options.max_bad_rows,
            "split": options.split,
            "dialect": asdict(options.dialect),
        }

    def source(self) -> Source:
        """Look into the files, and say how their columns are to be used."""
        target = self._target()
        return Source(
            self.kind,
            self.files,
            self._columns(target),
            target,
            self._min_count(),
            self.options.max_bad_rows,
            self.validation,
            self.test,
            self.options.dialect,
        )

    def _min_count(self) -> int:
        own = self.options.min_count
        return _MIN_COUNT.get(self.kind, 1) if own is None else own

    def _target(self) -> Target:
        options = self.options
        by, column = split_column(options.split)
        label, above = options.label, options.positive_above
        if self.kind == "movielens-1m":
            label, above = "rating", 3.0 if above is None else above
        elif self.kind == "criteo":
            label = "label"
        assert label
        return Target(
            label,
            above,
            time=column if by == "time" else None,
            part=column if by == "column" else None,
        )

    def _columns(self, target: Target) -> tuple[Column, ...]:
        options, others = self.options, target.columns()
        if self.kind == "movielens-1m":
            check_names(self.files[0], MOVIELENS, list(MOVIELENS_COLUMNS), others)
            return Column("user"), Column("movie")
        if self.kind == "criteo":
            check_names(self.files[0], CRITEO, list(CRITEO_COLUMNS), others)
            integers, categories = CRITEO_COLUMNS[1:14], CRITEO_COLUMNS[14:]
            return (
                *(Column(name, "integer") for name in integers),
                *(Column(name) for name in categories),
            )
        columns = table_columns(
            self.files,
            options.features,
            options.numeric,
            options.numeric_rule,
            others,
            options.dialect,
        )
        for path in (*self.validation, *self.test):
            check_file(path, format_of(path, options.dialect), columns, others)
        return columns


@dataclass(frozen=True)
class Source:
    """Raw files, and how their columns are to be used."""

    kind: str  # the layout of the files, as for an Encoder
    files: tuple[Path, ...]
    columns: tuple[Column, ...]
    target: Target
    min_count: int = 1
    max_bad_rows: int = 0
    validation: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    dialect: Dialect = BY_NAME
