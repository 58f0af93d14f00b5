"""Which columns a file has, and whether they can be used as asked."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from freqsgd.data.columns import Column
from freqsgd.data.dataset import DataError
from freqsgd.data.formats import Parquet, TextFormat
from freqsgd.data.header import header_hint
from freqsgd.data.parquet import parquet_schema
from freqsgd.data.text import text_schema

__all__ = ["check_file", "check_names", "file_schema", "kind_of"]


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
