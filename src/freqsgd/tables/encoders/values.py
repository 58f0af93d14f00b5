"""One rule for values: the same value is the same token in files, frames and arrays.

A value of polars becomes one whose text is its token (``categories``), one of Python becomes that
text (``token_text``). ``tokens.value_text`` is the same rule for the text of files.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError

_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]{0,18}))\.0+", re.ASCII)
# Above these some whole numbers have no float of their own and were rounded to another's.
_EXACT: dict[object, int] = {pl.Float16: 2**11, pl.Float32: 2**24, pl.Float64: 2**53}


class UnusableError(DataError):
    """What is wrong with a column, after its name."""


class NotWholeError(UnusableError):
    """What is wrong with a float of a column, after the column's name.

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


def whole_float(value: float | np.floating) -> int:
    """Return the integer that a float of Python or numpy is; raise as ``whole_floats`` does."""
    kind = value.dtype if isinstance(value, np.floating) else np.float64
    exact, number = 2 ** (min(np.finfo(kind).nmant, 52) + 1), float(value)
    if abs(number) > exact or number != int(number):
        raise NotWholeError(number, exact)
    return int(number)


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


_LARGEST = 2**63 - 1


def read_frame(table: Any, names: Sequence[str], numeric: Collection[str] = ()) -> pl.DataFrame:
    """Read the columns of a polars or pandas frame or a 2-d array, under the names given.

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
    """Yield each column; values that only Python knows as a list."""
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
    except UnusableError as error:
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
    """Turn Python objects into texts; where they are lists, into lists of texts."""
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
    """Return the text that tells a value apart, as polars writes it; None if it is missing."""
    if isinstance(value, str):
        return plain_text(value)
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return str(whole_float(value))
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
    """Return whether it is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return not isinstance(value, list | tuple | np.ndarray) and bool(value != value)


def shown(value: Any) -> str:
    """Write a value in a message: numbers of numpy as those of Python, and nothing at length."""
    return reprlib.repr(value.item() if isinstance(value, np.generic) else value)
