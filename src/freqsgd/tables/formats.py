"""Open a table by what kind of file it is, and look at the columns it has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from freqsgd.errors import DataError
from freqsgd.tables.catalog import file_layout
from freqsgd.tables.dialect import BY_NAME, Dialect, TextFormat
from freqsgd.tables.readers import ParquetReader, Reader, TextReader

if TYPE_CHECKING:
    import polars as pl

    from freqsgd.tables.columns import Column

_TEXT = {
    ".csv": TextFormat(",", quoted=True),
    ".tsv": TextFormat("\t"),
    ".txt": TextFormat("\t"),
    ".inter": TextFormat("\t", typed=True),
}
_PARQUET = ".parquet"
SUFFIXES = (*(suffix + packed for suffix in _TEXT for packed in ("", ".gz")), _PARQUET)


def open_reader(path: Path, dialect: Dialect = BY_NAME, kind: str = "table") -> Reader:
    """Return the reader of a file, by the end of its name; of a text file, also by the dialect.

    Nothing is read yet.

    Args:
        path: of the file
        dialect: how it is laid out if it is text; goes before a known dataset's layout
        kind: a dataset that is known by name, or a "table"
    """
    layout, suffix = file_layout(kind), data_suffix(path)
    if layout and dialect == BY_NAME:
        return TextReader(path, layout)
    if suffix == _PARQUET:
        return ParquetReader(path)
    if not suffix and dialect.separator is None:
        raise DataError(
            f"{path}: cannot tell what kind of file this is; its name must end with one of "
            f"{', '.join(SUFFIXES)}, or say with --separator what stands between its cells"
        )
    form = _TEXT.get(suffix.removesuffix(".gz")) or TextFormat(str(dialect.separator))
    return TextReader(path, form if dialect == BY_NAME else form.spoken(dialect))


def data_suffix(path: Path) -> str:
    """The end of a data file's name, which tells its kind; "" for any other file."""
    suffix = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()
    return suffix if suffix in SUFFIXES else ""


def refuse_parquet(files: Iterable[Path], dialect: Dialect) -> None:
    """Raise if a dialect that the user gave has no meaning for one of the files."""
    for path in files:
        if dialect != BY_NAME and data_suffix(path) == _PARQUET:
            flag = "--columns" if dialect.separator is None else "--separator"
            raise DataError(f"{path}: {flag} is for text files; a Parquet file tells its columns")


def kind_of(place: str, name: str, dtype: pl.DataType) -> str:
    """Whether the values of a column are categories, or bags of them."""
    import polars as pl

    inner, kind = (
        (dtype.inner, "bag") if isinstance(dtype, pl.List | pl.Array) else (dtype, "category")
    )
    if inner.is_nested() or inner in (pl.Binary, pl.Object):
        raise DataError(
            f"{place}: column {name!r} is of type {dtype}, which cannot be used as a feature; "
            "use a column of single values or of lists of them"
        )
    return kind


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
        _check_kind(place, column, schema[column.name])


def check_names(reader: Reader, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise unless all wanted names are among those found."""
    there, names = set(found), list(found)
    for name in wanted:
        if name not in there:
            close = difflib.get_close_matches(name, names, 1)
            meant = f"Did you mean {close[0]!r}? " if close else ""
            advice = reader.hint(names, name) or f"{meant}The columns are: {', '.join(names)}"
            raise DataError(f"{reader.place}: there is no column {name!r}. {advice}")


def _check_kind(place: str, column: Column, dtype: pl.DataType) -> None:
    import polars as pl

    if column.is_number:
        if not (dtype.is_numeric() or dtype in (pl.String, pl.Boolean)):
            raise DataError(f"{place}: column {column.name!r} is of type {dtype}, not numbers")
    elif kind_of(place, column.name, dtype) != column.kind:
        wanted, found = ("lists", "none") if column.kind == "bag" else ("single values", "lists")
        raise DataError(f"{place}: column {column.name!r} must hold {wanted}, but holds {found}")
