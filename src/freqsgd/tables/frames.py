"""Read frames of pandas, polars and numpy, and encode them by a dictionary that may grow."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.tables.coding import TokenCoder
from freqsgd.tables.columns import (
    Column,
    NotWholeError,
    UnusableError,
    bag_width,
    categories,
    finite_numbers,
    is_unreadable,
    plain_text,
    quantile_edges,
    whole_number,
)
from freqsgd.tables.encoder import Encoder
from freqsgd.tables.fields import ABSENT, RARE
from freqsgd.tables.readers import FrameReader
from freqsgd.tables.tokens import TokenTable, Vocabulary, count_codes, known_table, to_ids
from freqsgd.tables.unknown import UnknownValues


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
    for block in FrameReader(frame).blocks([column.name for column in columns]):
        codes[block.numbers] = coder.code(block)
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


class GrowingEncoder:
    """Gives tokens of each field ids in the order in which they come, after those of an encoder.

    Where ``take_in`` is cut off, by Ctrl-C or for want of memory, the next call makes up for it.

    Attributes:
        columns: the raw columns, one for each field
        sizes: number of ids of each field
    """

    def __init__(self, encoder: Encoder) -> None:
        self.kind, self.columns, self.dialect = encoder.kind, encoder.columns, encoder.dialect
        self.sizes = np.array([field.size for field in encoder.fields])
        self._table, self._ids = known_table(encoder.texts())
        self._numbered = len(self._table)  # tokens that have ids; the table may hold more
        self._counts = np.append(pl.concat(encoder.counts()).to_numpy(), [0, 0, 0])

    def encode(self, frame: pl.DataFrame) -> NDArray[np.int32]:
        """Ids of the rows of a frame; tokens that are not known are rare."""
        self._make_room()
        return to_ids(look_up(frame, self.columns, self._table), self._ids)

    def take_in(self, frame: pl.DataFrame) -> NDArray[np.int32]:
        """Ids of the rows of a frame, after new tokens got theirs and long lists their width."""
        columns = tuple(_widened(column, frame[column.name]) for column in self.columns)
        codes = code_frame(frame, columns, self._table, add=True)
        self._make_room()
        first, last = self._numbered, len(self._table)
        fields, sizes = self._table.fields(first), self.sizes.copy()
        new = np.empty(last - first, np.int32)
        for field in np.unique(fields):
            places = np.flatnonzero(fields == field)
            new[places] = sizes[field] + np.arange(len(places))
            sizes[field] += len(places)
        # All at once: no interrupt comes between these.
        self._ids[first:last], self._numbered, self.sizes, self.columns = new, last, sizes, columns
        count_codes(codes, self._counts)
        return to_ids(codes, self._ids)

    def encoder(self) -> Encoder:
        """An encoder of the tokens so far."""
        ids, fields = self._ids[: self._numbered], self._table.fields()[: self._numbered]
        order = np.lexsort((ids, fields))
        tokens = pl.DataFrame(
            {
                "field": fields[order].astype(np.int32),
                "token": self._table.texts(order),
                "id": ids[order],
                "count": self._counts[order],
            }
        )
        return Encoder(self.kind, self.columns, tokens, dialect=self.dialect)

    def _make_room(self) -> None:
        """Room for all tokens of the table, which are rare until they get their ids."""
        needed, known = len(self._table) + 3, self._numbered
        if needed > len(self._ids):
            room = max(needed, 2 * len(self._ids))
            ids, counts = np.full(room, RARE, np.int32), np.zeros(room, np.int64)
            ids[:known], counts[:known] = self._ids[:known], self._counts[:known]
            ids[-1] = ABSENT  # where code -1 leads
            self._ids, self._counts = ids, counts


def _widened(column: Column, values: pl.Series) -> Column:
    if column.kind != "bag" or not isinstance(values.dtype, pl.List):
        return column
    return replace(column, width=max(column.width, bag_width(values)))


_LARGEST = 2**63 - 1


def read_frame(table: Any, names: Sequence[str], numeric: Collection[str] = ()) -> pl.DataFrame:
    """The columns of a polars or pandas frame or a 2-d array, under the names given.

    Categories become texts or integers, or lists of these; numbers stay what they are. What is
    missing becomes null.

    Raises:
        DataError: a column cannot be used as what it is; it is named
    """
    columns = zip(names, _raw_columns(table), strict=True)
    return pl.DataFrame(
        [_column(raw, name, is_number=name in numeric).rename(name) for name, raw in columns]
    )


def _raw_columns(table: Any) -> Iterator[pl.Series | list[Any]]:
    """Each column; values that only Python knows as a list."""
    if isinstance(table, pl.DataFrame):
        for values in table.get_columns():
            yield values.to_list() if values.dtype == pl.Object else values
    elif hasattr(table, "iloc"):
        for place in range(table.shape[1]):
            yield _of_pandas(table.iloc[:, place])
    else:
        for place in range(table.shape[1]):
            yield _of_array(table[:, place])


def _of_pandas(values: Any) -> pl.Series | list[Any]:
    dtype = values.dtype
    if hasattr(values, "cat"):
        categories = _of_array(values.cat.categories.to_numpy())
        codes = pl.Series(values.cat.codes.to_numpy())
        codes = pl.select(pl.when(codes >= 0).then(codes)).to_series()
        if isinstance(categories, list):
            return [None if code is None else categories[code] for code in codes.to_list()]
        return categories.gather(codes)
    kind = getattr(dtype, "numpy_dtype", None)  # of a nullable type
    if kind is not None and kind.kind in "iufb":
        filled = pl.Series(values.to_numpy(dtype=kind, na_value=kind.type(0)))
        present = pl.Series(~values.isna().to_numpy())
        return pl.select(pl.when(present).then(filled)).to_series()
    return _of_array(values.to_numpy())


def _of_array(values: NDArray[Any]) -> pl.Series | list[Any]:
    kind = values.dtype.kind
    if kind == "M" and values.dtype != np.dtype("M8[D]"):
        values = values.astype("M8[us]")
    if kind == "m":
        values = values.astype("m8[us]")
    if kind == "f" and values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    if kind in "biufMm":
        return pl.Series(np.ascontiguousarray(values))
    return list(values.tolist())


def _column(raw: pl.Series | list[Any], name: str, *, is_number: bool) -> pl.Series:
    try:
        if is_number:
            return _numbers(raw)
        values = _of_objects(raw) if isinstance(raw, list) else raw
        return categories(values)
    except (UnusableError, NotWholeError) as error:
        raise DataError(f"column {name!r} {error}") from None
    except UnicodeEncodeError as error:
        raise DataError(f"column {name!r} holds text that is not Unicode: {error}") from None


def _numbers(raw: pl.Series | list[Any]) -> pl.Series:
    if isinstance(raw, list):
        return pl.Series(
            [None if is_missing(value) else str(value) for value in raw], dtype=pl.String
        )
    if not (raw.dtype.is_numeric() or raw.dtype in (pl.String, pl.Boolean, pl.Null)):
        raise UnusableError(f"is of type {raw.dtype}, not numbers")
    return raw


def _of_objects(values: list[Any]) -> pl.Series:
    """Texts of Python objects; where they are lists, lists of texts."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {str}:
        return pl.Series(values, dtype=pl.String)
    if kinds == {int} and max(abs(value) for value in values if value is not None) <= _LARGEST:
        return pl.Series(values, dtype=pl.Int64)
    if any(issubclass(kind, list | np.ndarray) for kind in kinds):
        return pl.Series([_texts(value) for value in values], dtype=pl.List(pl.String))
    return pl.Series([token_text(value) for value in values], dtype=pl.String)


def _texts(values: Any) -> list[str | None] | None:
    if isinstance(values, list | np.ndarray):
        return [token_text(value) for value in list(values)]
    if is_missing(values):
        return None
    raise UnusableError(f"holds both lists and single values such as {shown(values)}")


def token_text(value: Any) -> str | None:
    """The text by which a value is told apart, as polars writes it; None if it is missing."""
    if isinstance(value, str):
        return plain_text(value)
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return str(whole_number(value))
    if isinstance(value, datetime):
        return value.isoformat(" ", "microseconds")
    if isinstance(value, timedelta):
        return str(value // timedelta(microseconds=1))
    if type(value).__hash__ is None:
        raise UnusableError(
            f"holds {shown(value)}; a {type(value).__name__} cannot be a category, a tuple can"
        )
    return str(value)


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return not isinstance(value, list | tuple | np.ndarray) and bool(value != value)


def shown(value: Any) -> str:
    """A value in a message: numbers of numpy as those of Python, and nothing at length."""
    return reprlib.repr(value.item() if isinstance(value, np.generic) else value)
