"""Columns of a table: how raw values become tokens, labels and parts of the split."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.tables.fields import PARTS

MISSING = ""  # the token of a missing value
_WIDEST_BAG = 256
_BINS = 64


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
    """The columns that lists take; ``place`` says where a row is."""
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


def finite_numbers(values: pl.Series) -> NDArray[np.float64]:
    """The numbers among values; what cannot be read is reported when it is encoded."""
    numbers: NDArray[np.float64] = values.cast(pl.Float64, strict=False).drop_nulls().to_numpy()
    return numbers[np.isfinite(numbers)]


def quantile_edges(numbers: NDArray[np.float64], place: str) -> tuple[float, ...]:
    """Edges of bins that hold about equally many numbers; ``place`` says whose they are."""
    if len(numbers) == 0:
        raise DataError(f"{place} holds no numbers")
    return tuple(np.unique(np.quantile(numbers, np.arange(1, _BINS) / _BINS)).tolist())


_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]{0,18}))\.0+", re.ASCII)
# Above these some whole numbers have no float of their own and were rounded to another's.
_EXACT: dict[object, int] = {pl.Float16: 2**11, pl.Float32: 2**24, pl.Float64: 2**53}


class NotWholeError(DataError):
    """What is wrong with a float of a column, to be put after the column's name.

    Attributes:
        row: where it is among the values
    """

    def __init__(self, value: float, exact: int, row: int = 0) -> None:
        self.row = row
        super().__init__(
            f"holds {value!r}, and floats of its type do not tell whole numbers above {exact:,} "
            "apart: turn the column into integers or text"
            if exact < abs(value) < math.inf
            else f"holds {value!r}, which is not a category: name the column in numeric "
            "(--numeric) to have its numbers put into bins, or turn it into text"
        )


def whole_floats(values: pl.Series) -> pl.Series:
    """Return floats, or lists of floats, as integers; NaN becomes null. Others stay as they are.

    Raises:
        NotWholeError: a float is not a whole number, or so large that it may stand for another

    Example:
        >>> whole_floats(pl.Series([1.0, float("nan")])).to_list()
        [1, None]
    """
    dtype = values.dtype
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype
    if not inner.is_float():
        return values
    if isinstance(dtype, pl.Array):
        values = values.arr.to_list()
    in_lists = isinstance(values.dtype, pl.List)
    exact = _EXACT[inner]
    present = (values.explode() if in_lists else values).fill_nan(None)
    wrong = (present != present.round()) | (present.abs() > exact)
    if wrong.any():
        value = present.filter(wrong)[0]
        rows = values.list.contains(value) if in_lists else wrong
        raise NotWholeError(value, exact, rows.arg_true()[0])
    if in_lists:
        return values.list.eval(pl.element().fill_nan(None).cast(pl.Int64))
    return present.cast(pl.Int64)


def whole_number(value: float | np.floating) -> int:
    """Return the integer that a float of Python or numpy is; raise as ``whole_floats`` does."""
    kind = value.dtype if isinstance(value, np.floating) else np.float64
    exact, number = 2 ** (min(np.finfo(kind).nmant, 52) + 1), float(value)
    if abs(number) > exact or number != int(number):
        raise NotWholeError(number, exact)
    return int(number)


class UnusableError(DataError):
    """What is wrong with a column, after its name."""


def categories(values: pl.Series) -> pl.Series:
    """Return values whose text in polars is their token: the same for the same value of any type.

    Raises:
        DataError: what is wrong with them, to be put after the column's name
    """
    dtype = values.dtype
    if isinstance(dtype, pl.Array):
        values, dtype = values.arr.to_list(), pl.List(dtype.inner)
    inner: Any = dtype.inner if isinstance(dtype, pl.List) else dtype
    if inner.is_nested() or inner in (pl.Binary, pl.Object):
        raise UnusableError(
            f"is of type {dtype}, which cannot be a category; use single values or lists of them"
        )
    wanted = pl.element() if isinstance(dtype, pl.List) else pl.col(values.name)
    if isinstance(inner, pl.Datetime):
        wanted = wanted.cast(pl.Datetime("us", inner.time_zone))
    elif isinstance(inner, pl.Duration):
        wanted = wanted.cast(pl.Duration("us")).to_physical()
    else:
        return whole_floats(values)
    if isinstance(dtype, pl.List):
        return values.list.eval(wanted)
    return values.to_frame().select(wanted).to_series()


def plain_text(text: str) -> str:
    """Return the text of a value that is given as text, as ``tokens.value_text`` has it.

    Example:
        >>> [plain_text(text) for text in ("3.0", "-0.0", "True", "3.5", "03.0")]
        ['3', '0', 'true', '3.5', '03.0']
    """
    if text in ("True", "False"):
        return text.lower()
    whole = _WHOLE.fullmatch(text)
    return str(int(whole[1])) if whole and -(2**63) <= int(whole[1]) < 2**63 else text


def is_unreadable(column: Column, dtype: pl.DataType) -> pl.Expr:
    """Whether a value of a numeric column is there but is no number."""
    raw, value = pl.col(column.name), _number(column)
    present = raw.is_not_null() & (raw != MISSING) if dtype == pl.String else raw.is_not_null()
    unreadable = value.is_null() & present
    if column.kind == "number":
        unreadable |= value.is_infinite().fill_null(False)
    return unreadable


def tokens(column: Column, dtype: pl.DataType) -> pl.Expr:
    """The token of each row as text; of a bag, the list of its tokens."""
    raw = pl.col(column.name)
    if column.kind == "category":
        return (raw if dtype == pl.String else raw.cast(pl.String)).fill_null(MISSING)
    if column.kind == "bag":
        element = pl.element().cast(pl.String).fill_null(MISSING)
        return bag_lists(column, dtype).list.eval(element)
    return number_bins(column).cast(pl.String).fill_null(MISSING)


def bag_lists(column: Column, dtype: pl.DataType) -> pl.Expr:
    """The lists, as long as the bag is wide at most; a missing one holds a missing value."""
    raw = pl.col(column.name)
    lists = raw if isinstance(dtype, pl.List) else raw.arr.to_list()
    return lists.fill_null([None]).list.head(column.width)


def number_bins(column: Column) -> pl.Expr:
    """The bin of each row of a column of numbers; null where the number is missing."""
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
    """How many edges are not above x."""
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
        """Names of the columns."""
        return [name for name in (self.label, self.time, self.part) if name]

    def labels(self, frame: pl.DataFrame) -> NDArray[np.uint8]:
        """The label of each row, 0 or 1."""
        above = 0.5 if self.positive_above is None else self.positive_above
        label = self._label(frame.schema) > above
        return frame.select(label.cast(pl.UInt8)).to_series().to_numpy()

    def order(self, frame: pl.DataFrame) -> NDArray[np.float64]:
        """The time, or the number of the part, of each row; empty without such a column."""
        if not (self.time or self.part):
            return np.empty(0)
        return frame.select(self._order(frame.schema)).to_series().to_numpy()

    def checks(self, schema: pl.Schema) -> Iterator[tuple[str, pl.Expr, str]]:
        """What cannot be used: the column, the condition, what is wrong with such a value."""
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
        """What the split goes by, as a number; null where it cannot be read."""
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
