"""Find the files that options name, and say how their columns are to be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from freqsgd.tables.cache import file_key
from freqsgd.tables.catalog import KnownDataset, known_dataset, locate
from freqsgd.tables.columns import Column, Target, bag_width, finite_numbers, quantile_edges
from freqsgd.tables.days import data_name, list_files
from freqsgd.tables.fields import split_column
from freqsgd.tables.formats import check_names, check_table, kind_of, open_reader, refuse_parquet
from freqsgd.tables.readers import Block, Reader

if TYPE_CHECKING:
    from freqsgd.tables.spec import DataOptions

_FORMAT = 4  # of the encoded samples: raised when they change, so that old ones are made anew
_SAMPLE = 1 << 20  # values that quantiles are taken from, at most


def table_columns(
    readers: Sequence[Reader],
    features: Sequence[str],
    numeric: Sequence[str],
    numeric_rule: str = "log",
    others: Sequence[str] = (),
    *,
    whole: bool = True,
) -> tuple[Column, ...]:
    """How the features and the numeric columns of tables become fields.

    Args:
        readers: of the tables
        features: columns of categories, or of lists of them
        numeric: columns of numbers
        numeric_rule: how these are put into bins, "log" or "quantiles"
        others: columns that must be there too
        whole: whether all tables are checked, and all rows read to find the longest list. If not,
            the first table is looked at, and a bag is as wide as the longest list in the first
            block that has rows, or as lists of a fixed size are
    """
    schema = readers[0].schema()
    check_names(readers[0], list(schema), [*features, *numeric, *others])
    columns = [Column(name, kind_of(readers[0].place, name, schema[name])) for name in features]
    columns += [Column(name, "number") for name in numeric]
    if whole:
        for reader in readers:
            check_table(reader, columns, others)
    return tuple(_look_closer(readers, column, numeric_rule, whole=whole) for column in columns)


def _look_closer(
    readers: Sequence[Reader], column: Column, numeric_rule: str, *, whole: bool
) -> Column:
    """Find out what only the values tell: how long bags are, and where quantiles lie."""
    if column.kind == "bag":
        return Column(column.name, "bag", width=_longest_list(readers, column.name, whole=whole))
    if column.kind == "number" and numeric_rule == "quantiles":
        return Column(column.name, "number", edges=_quantiles(readers, column.name))
    return column


def _longest_list(readers: Sequence[Reader], name: str, *, whole: bool) -> int:
    longest = 2  # as bag_width says
    for reader in readers:
        for block in reader.blocks([name]):
            width = bag_width(block.frame[name], partial(_place, reader, block))
            longest = max(longest, width)
            if len(block.frame) and not whole:
                return longest
    return longest


def _place(reader: Reader, block: Block, row: int) -> str:
    return f"{reader.place}, {block.unit} {block.numbers[row]}"


def _quantiles(readers: Sequence[Reader], name: str) -> tuple[float, ...]:
    sample, step, seen = np.empty(0), 1, 0
    for reader in readers:
        for block in reader.blocks([name]):
            values = finite_numbers(block.frame[name])
            sample = np.concatenate([sample, values[-seen % step :: step]])
            seen += len(values)
            while len(sample) > _SAMPLE:
                sample, step = sample[::2], 2 * step
    return quantile_edges(sample, f"{readers[0].place}: column {name!r}")


@dataclass(frozen=True)
class Request:
    """The files that the options name; what is in them is looked at only for the columns."""

    options: DataOptions
    name: str
    known: KnownDataset | None  # None: files that name their columns
    files: tuple[Path, ...]
    validation: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()

    @classmethod
    def of(cls, options: DataOptions) -> Request:
        """Find the files."""
        if options.path is None:
            known = known_dataset(options.dataset or "synthetic")
            return cls(options, known.name, known, (locate(known),))
        own = [
            list_files(path, options.dialect) if path else ()
            for path in (options.path, options.validation_path, options.test_path)
        ]
        refuse_parquet(chain(*own), options.dialect)
        options = options.without_types(open_reader(own[0][0], options.dialect))
        return cls(options, data_name(str(options.path)), None, *own)

    @property
    def kind(self) -> str:
        """The layout of the files, as for an Encoder."""
        return self.known.name if self.known else "table"

    @property
    def min_count(self) -> int:
        """How often a token must be seen to have an id of its own."""
        own = self.options.min_count
        return own if own is not None else self.known.min_count if self.known else 1

    def open(self, path: Path) -> Reader:
        """Return the reader of one of the files."""
        return open_reader(path, self.options.dialect, self.kind)

    def key(self) -> dict[str, Any]:
        """What the encoded samples depend on."""
        options = self.options
        same = ("label", "features", "numeric", "numeric_rule", "positive_above", "split")
        return {
            "format": _FORMAT,
            "kind": self.kind,
            "files": [
                [file_key(path) for path in files]
                for files in (self.files, self.validation, self.test)
            ],
            **{name: getattr(options, name) for name in same},
            "min_count": self.min_count,
            "max_bad_rows": options.max_bad_rows,
            "dialect": asdict(options.dialect),
        }

    @cached_property
    def target(self) -> Target:
        """What labels and splits are made from."""
        options = self.options
        by, column = split_column(options.split)
        label, above = options.label, options.positive_above
        if self.known:
            label, above = self.known.label, self.known.positive_above if above is None else above
        assert label
        return Target(
            label,
            above,
            time=column if by == "time" else None,
            part=column if by == "column" else None,
        )

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """How columns become fields, by a look into the files."""
        options, others = self.options, self.target.columns()
        readers = [self.open(path) for path in self.files]
        if self.known:
            check_table(readers[0], (), others)
            integers = (Column(name, "integer") for name in self.known.integers)
            return (*integers, *map(Column, self.known.features))
        columns = table_columns(
            readers, options.features, options.numeric, options.numeric_rule, others
        )
        for path in (*self.validation, *self.test):
            check_table(self.open(path), columns, others)
        return columns
