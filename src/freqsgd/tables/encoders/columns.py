"""Columns of a table: how raw values become tokens, labels and parts of the split."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.tables.encoders.values import shown
from freqsgd.tables.fields import PARTS
from freqsgd.tables.readers.reader import Block, Reader

MISSING = ""  # the token of a missing value
_WIDEST_BAG = 256
_BINS = 64
_SAMPLE = 1 << 20  # numbers that quantiles are taken from, at most


@dataclass(frozen=True)
class Column:
    """A column of the raw data, which is a field of a sample."""

    name: str
    kind: str = "category"  # or "number", "integer", "bag"
    edges: tuple[float, ...] = ()  # of a number's bins; without any the log rule is used
    width: int = 1  # tokens of a bag at most; what is beyond them is cut off

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, which are put into bins."""
        return self.kind in ("number", "integer")


def bag_width(lists: pl.Series, place: Callable[[int], str] = "row {}".format) -> int:
    """Return the columns that lists take; ``place`` says where a row is."""
    lengths = lists.list.len() if isinstance(lists.dtype, pl.List) else lists.arr.len()
    lengths = lengths.fill_null(1)
    row = lengths.arg_max()
    longest = 0 if row is None else int(lengths[row])
    if row is not None and longest > _WIDEST_BAG:
        raise DataError(
            f"{place(row)}: the list in column {lists.name!r} has {longest:,} tokens; at most "
            f"{_WIDEST_BAG} are possible, so keep the ones that matter"
        )
    return max(longest, 2)  # one column would be a single value, which is never absent


def number_column(name: str, rule: str, parts: Iterable[pl.Series], place: str = "") -> Column:
    """Return a column of numbers, and how they are put into bins.

    Args:
        name: of the column
        rule: "log" or "quantiles"
        parts: of its values, in order; what cannot be read is reported when it is encoded
        place: where they are, for messages
    """
    if rule == "log":
        return Column(name, "number")
    if rule != "quantiles":
        raise DataError(f"unknown numeric rule {shown(rule)}: known are log, quantiles")
    return Column(name, "number", edges=_quantile_edges(parts, f"{place}column {name!r}"))


def _quantile_edges(parts: Iterable[pl.Series], place: str) -> tuple[float, ...]:
    """Return edges of bins that hold about equally many of the finite numbers in all parts.

    Of more than 2^20 numbers, every second is taken, or every fourth, and so on, so that at most
    2^20 are. How the parts are divided makes no difference.
    """
    sample, step, seen = np.empty(0), 1, 0
    for values in parts:
        numbers = values.cast(pl.Float64, strict=False).drop_nulls().to_numpy()
        numbers = numbers[np.isfinite(numbers)]
        sample = np.concatenate([sample, numbers[-seen % step :: step]])
        seen += len(numbers)
        while len(sample) > _SAMPLE:
            sample, step = sample[::2], 2 * step
    if seen == 0:
        raise DataError(f"{place} holds no numbers")
    return tuple(np.unique(np.quantile(sample, np.arange(1, _BINS) / _BINS)).tolist())


def is_unreadable(column: Column, dtype: pl.DataType) -> pl.Expr:
    """Return whether a value of a numeric column is there but is no number."""
    raw, value = pl.col(column.name), _number(column)
    present = raw.is_not_null() & (raw != MISSING) if dtype == pl.String else raw.is_not_null()
    unreadable = value.is_null() & present
    if column.kind == "number":
        unreadable |= value.is_infinite().fill_null(False)
    return unreadable


def tokens(column: Column, dtype: pl.DataType) -> pl.Expr:
    """Return the token of each row as text; of a bag, the list of its tokens."""
    raw = pl.col(column.name)
    if column.kind == "category":
        return (raw if dtype == pl.String else raw.cast(pl.String)).fill_null(MISSING)
    if column.kind == "bag":
        element = pl.element().cast(pl.String).fill_null(MISSING)
        return bag_lists(column, dtype).list.eval(element)
    return number_bins(column).cast(pl.String).fill_null(MISSING)


def bag_lists(column: Column, dtype: pl.DataType) -> pl.Expr:
    """Return the lists, as long as the bag is wide at most; a missing one holds a missing value."""
    raw = pl.col(column.name)
    lists = raw if isinstance(dtype, pl.List) else raw.arr.to_list()
    return lists.fill_null([None]).list.head(column.width)


def number_bins(column: Column) -> pl.Expr:
    """Return the bin of each row of a column of numbers; null where the number is missing."""
    value = _number(column)
    value = value.fill_nan(None) if column.kind == "number" else value
    bins = _quantile_bin(value, column.edges) if column.edges else _log_bin(value)
    return bins.alias(column.name)


def _number(column: Column) -> pl.Expr:
    kind = pl.Float64 if column.kind == "number" else pl.Int64
    return pl.col(column.name).cast(kind, strict=False)


def _log_bin(value: pl.Expr) -> pl.Expr:
    """floor(log(x)^2) for x > 2, else floor(x) - 2: the competition winner's rule for Criteo."""
    high = value.log().pow(2).floor().cast(pl.Int64, strict=False)
    low = value.clip(-(2**53), 2).floor().cast(pl.Int64) - 2
    return pl.when(value > 2).then(high).otherwise(low)


def _quantile_bin(value: pl.Expr, edges: tuple[float, ...]) -> pl.Expr:
    """Return how many edges are not above x."""
    position = pl.lit(pl.Series(edges)).search_sorted(value, side="right")
    return pl.when(value.is_not_null()).then(position)


_TIME_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")


@dataclass(frozen=True)
class Target:
    """The columns that labels and splits are made from."""

    label: str
    positive_above: float | None = None  # None: the label is 0 or 1
    time: str | None = None  # the column that the split goes by, if any: a time,
    part: str | None = None  # or "train", "validation" or "test"

    def __post_init__(self) -> None:
        if self.positive_above is not None and math.isnan(self.positive_above):
            raise DataError("the label cannot be above nan: --positive-above takes a number")

    def columns(self) -> list[str]:
        """Return names of the columns."""
        return [name for name in (self.label, self.time, self.part) if name]

    def labels(self, frame: pl.DataFrame) -> NDArray[np.uint8]:
        """Return the label of each row, 0 or 1."""
        above = 0.5 if self.positive_above is None else self.positive_above
        label = self._label(frame.schema) > above
        return frame.select(label.cast(pl.UInt8)).to_series().to_numpy()

    def order(self, frame: pl.DataFrame) -> NDArray[np.float64]:
        """Return the time, or the number of the part, of each row; empty without such a column."""
        if not (self.time or self.part):
            return np.empty(0)
        return frame.select(self._order(frame.schema)).to_series().to_numpy()

    def checks(self, schema: pl.Schema) -> Iterator[tuple[str, pl.Expr, str]]:
        """Yield what cannot be used: the column, the condition, what is wrong with such a value."""
        label = self._label(schema)
        if self.positive_above is None:
            wrong = ~label.is_in([0.0, 1.0])
            fault = "not 0 or 1 (a rating becomes a label with --positive-above)"
        else:
            wrong, fault = label.is_nan(), "not a number"
        yield self.label, wrong.fill_null(True), fault
        if self.time:
            fault = "not a number, nor a time such as 2024-01-31 or 2024-01-31 12:30:00"
            yield self.time, self._order(schema).is_null(), fault
        if self.part:
            yield self.part, self._order(schema).is_null(), "not train, validation or test"

    def _label(self, schema: pl.Schema) -> pl.Expr:
        raw = pl.col(self.label)
        number = raw.cast(pl.Float64, strict=False)
        if schema[self.label] != pl.String:
            return number
        truth: dict[Any, Any] = {"true": 1.0, "false": 0.0}
        text = raw.str.to_lowercase()
        return number.fill_null(text.replace_strict(truth, default=None, return_dtype=pl.Float64))

    def _order(self, schema: pl.Schema) -> pl.Expr:
        """Return what the split goes by, as a number; null where it cannot be read."""
        if self.part:
            text = pl.col(self.part).cast(pl.String).str.strip_chars().str.to_lowercase()
            parts: dict[Any, Any] = {**PARTS}
            return text.replace_strict(parts, default=None, return_dtype=pl.Float64)
        assert self.time
        raw = pl.col(self.time)
        if schema[self.time].is_temporal():
            return raw.cast(pl.Datetime("us")).to_physical().cast(pl.Float64)
        number = raw.cast(pl.Float64, strict=False).fill_nan(None)
        if schema[self.time] != pl.String:
            return number
        text = raw.str.strip_suffix("Z")
        times = (text.str.strptime(pl.Datetime("us"), form, strict=False) for form in _TIME_FORMATS)
        return pl.coalesce(number, *(time.to_physical().cast(pl.Float64) for time in times))


def table_columns(
    readers: Sequence[Reader],
    features: Sequence[str],
    numeric: Sequence[str],
    numeric_rule: str = "log",
    others: Sequence[str] = (),
    *,
    whole: bool = True,
) -> tuple[Column, ...]:
    """Decide how the features and the numeric columns of tables become fields.

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
    schema, place = readers[0].schema(), readers[0].place
    check_names(readers[0], list(schema), [*features, *numeric, *others])
    columns = [Column(name, kind_of(place, name, schema[name])) for name in features]
    columns += [Column(name, "number") for name in numeric]
    if whole:
        for reader in readers:
            check_table(reader, columns, others)
    for n, column in enumerate(columns):
        if column.kind == "bag":
            width = _longest_list(readers, column.name, whole=whole)
            columns[n] = replace(column, width=width)
        elif column.is_number:
            parts = _parts(readers, column.name)
            columns[n] = number_column(column.name, numeric_rule, parts, f"{place}: ")
    return tuple(columns)


def _parts(readers: Sequence[Reader], name: str) -> Iterator[pl.Series]:
    for reader in readers:
        for block in reader.blocks([name]):
            yield block.frame[name]


def _longest_list(readers: Sequence[Reader], name: str, *, whole: bool) -> int:
    longest = 2  # as bag_width says
    for reader in readers:
        for block in reader.blocks([name]):
            longest = max(longest, bag_width(block.frame[name], partial(_place, reader, block)))
            if len(block.frame) and not whole:
                return longest
    return longest


def _place(reader: Reader, block: Block, row: int) -> str:
    return f"{reader.place}, {block.unit} {block.numbers[row]}"


def kind_of(place: str, name: str, dtype: pl.DataType) -> str:
    """Return whether the values of a column are a "category" each, or a "bag" of them."""
    in_lists = isinstance(dtype, pl.List | pl.Array)
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype
    if inner.is_nested() or inner in (pl.Binary, pl.Object):
        raise DataError(
            f"{place}: column {name!r} is of type {dtype}, which cannot be used as a feature; "
            "use a column of single values or of lists of them"
        )
    return "bag" if in_lists else "category"


def check_table(reader: Reader, columns: Sequence[Column], others: Sequence[str] = ()) -> None:
    """Raise unless the table has these columns, with values of the right kind.

    ``others`` are names of columns of single values: the label, what the split goes by.
    """
    if reader.layout:
        check_names(reader, reader.layout, others)
        return  # no header: rows that do not fit are malformed
    schema, place = reader.schema(), reader.place
    check_names(reader, list(schema), [*(column.name for column in columns), *others])
    for name in others:
        if kind_of(place, name, schema[name]) == "bag":
            raise DataError(f"{place}: column {name!r} holds lists; it needs single values")
    for column in columns:
        dtype = schema[column.name]
        if column.is_number:
            if not (dtype.is_numeric() or dtype in (pl.String, pl.Boolean)):
                raise DataError(f"{place}: column {column.name!r} is of type {dtype}, not numbers")
        elif kind_of(place, column.name, dtype) != column.kind:
            rule = "must hold single values, but holds lists"
            if column.kind == "bag":
                rule = "must hold lists, but holds none"
            raise DataError(f"{place}: column {column.name!r} {rule}")


def check_names(reader: Reader, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise unless all wanted names are among those found."""
    there, names = set(found), list(found)
    for name in wanted:
        if name not in there:
            close = difflib.get_close_matches(name, names, 1)
            meant = f"Did you mean {close[0]!r}? " if close else ""
            advice = reader.hint(names, name) or f"{meant}The columns are: {', '.join(names)}"
            raise DataError(f"{reader.place}: there is no column {name!r}. {advice}")
