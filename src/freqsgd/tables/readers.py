"""Read files in blocks of rows, and look at the columns they have."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from freqsgd.errors import DamagedFileError, DataError
from freqsgd.tables.blocks import Block
from freqsgd.tables.columns import Column
from freqsgd.tables.csv_reader import text_schema
from freqsgd.tables.formats import Parquet, TextFormat
from freqsgd.tables.header import header_hint

__all__ = [
    "block_rows",
    "check_file",
    "check_names",
    "file_schema",
    "kind_of",
    "parquet_rows",
    "parquet_schema",
    "read_blocks",
    "read_parquet",
]


def read_blocks(
    path: Path,
    form: TextFormat | Parquet,
    columns: Sequence[str],
    raw: Sequence[str] = (),
    after: int = 0,
) -> Iterator[Block]:
    """All rows of a file in order, a bounded number at a time.

    The columns ``raw`` may be left as raw text; they are then missing from the frame. Rows whose
    number is not above ``after`` are left out. Where blocks begin does not depend on it, so that
    damage in a file shows at the same row.
    """
    from freqsgd.tables.csv_reader import read_text

    columns, raw = list(dict.fromkeys(columns)), list(dict.fromkeys(raw))
    if isinstance(form, Parquet):
        names = [*columns, *(name for name in raw if name not in columns)]
        blocks = read_parquet(path, names, after)
    else:
        blocks = read_text(path, form, columns, raw)
    for block in blocks:
        yield block.after(after) if after else block


# A block costs a look at all of its row group, so that many small ones would be slow.
BLOCK_ROWS, _BLOCK_CELLS = 1 << 19, 1 << 24
# Polars panics over some damaged files.
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def parquet_schema(path: Path) -> pl.Schema:
    """Names and types of the columns."""
    try:
        return pl.scan_parquet(path, glob=False).collect_schema()
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def parquet_rows(path: Path) -> int:
    """How many rows there are."""
    try:
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def read_parquet(path: Path, columns: Sequence[str], after: int = 0) -> Iterator[Block]:
    """Blocks of consecutive rows with the given columns as they are stored.

    Blocks that end at row ``after`` or before it are passed over.
    """
    rows, step = parquet_rows(path), block_rows(len(columns))
    scan = pl.scan_parquet(path, glob=False).select(columns)
    for start in range(after // step * step, rows, step):
        stop = min(start + step, rows)
        try:
            frame = scan.slice(start, step).collect()
        except _UNREADABLE as error:
            raise _unreadable(path, error, f", rows {start + 1:,} to {stop:,}") from error
        yield Block(frame, None, np.arange(start + 1, stop + 1), "row", [], stop / rows)


def block_rows(columns: int) -> int:
    """Of a block, a power of 2: blocks of few columns and of many take about the same memory."""
    most = _BLOCK_CELLS // max(columns, 1)
    return int(min(BLOCK_ROWS, 1 << max(most.bit_length() - 1, 0)))


def _unreadable(path: Path, error: BaseException, place: str = "") -> DamagedFileError:
    what = (str(error).strip() or "?").splitlines()[0]
    return DamagedFileError(
        f"{path}{place}: cannot be read as Parquet, it may be cut short or damaged ({what}); "
        "write or copy it again"
    )


def file_schema(path: Path, form: TextFormat | Parquet) -> pl.Schema:
    """Names and types of the columns of a file."""
    if isinstance(form, Parquet):
        return parquet_schema(path)
    return text_schema(path, form)


def kind_of(path: Path, name: str, dtype: pl.DataType) -> str:
    """Whether the values of a column are categories, or bags of them."""
    inner, kind = (
        (dtype.inner, "bag") if isinstance(dtype, pl.List | pl.Array) else (dtype, "category")
    )
    if inner.is_nested() or inner in (pl.Binary, pl.Object):
        raise DataError(
            f"{path}: column {name!r} is of type {dtype}, which cannot be used as a feature; "
            "use a column of single values or of lists of them"
        )
    return kind


def check_file(
    path: Path,
    form: TextFormat | Parquet,
    columns: Sequence[Column],
    others: Sequence[str] = (),
) -> None:
    """Raise unless the file has these columns, with values of the right kind.

    ``others`` are names of columns of single values: the label, what the split goes by.
    """
    if isinstance(form, TextFormat) and form.layouts:
        check_names(path, form, list(form.layouts[0]), list(others))
        return  # no header: rows that do not fit are malformed
    schema = file_schema(path, form)
    check_names(path, form, list(schema), [*(column.name for column in columns), *others])
    for name in others:
        if kind_of(path, name, schema[name]) == "bag":
            raise DataError(f"{path}: column {name!r} holds lists; it needs single values")
    for column in columns:
        _check_kind(path, column, schema[column.name])


def check_names(
    path: Path, form: TextFormat | Parquet, found: list[str], wanted: list[str]
) -> None:
    """Raise unless all wanted names are among those found."""
    there = set(found)
    for name in wanted:
        if name not in there:
            raise DataError(f"{path}: there is no column {name!r}. {_advice(form, found, name)}")


def _advice(form: TextFormat | Parquet, found: list[str], name: str) -> str:
    """What to do about a name that is not among those found."""
    if hint := header_hint(form, found, name):
        return hint
    close = difflib.get_close_matches(name, found, 1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}The columns are: {', '.join(found)}"


def _check_kind(path: Path, column: Column, dtype: pl.DataType) -> None:
    if column.kind in ("number", "integer"):
        if not (dtype.is_numeric() or dtype in (pl.String, pl.Boolean)):
            raise DataError(f"{path}: column {column.name!r} is of type {dtype}, not numbers")
    elif kind_of(path, column.name, dtype) != column.kind:
        wanted, found = ("lists", "none") if column.kind == "bag" else ("single values", "lists")
        raise DataError(f"{path}: column {column.name!r} must hold {wanted}, but holds {found}")
