"""Names and types of the columns of a file of one's own."""

from __future__ import annotations

from pathlib import Path

from freqsgd.data.dialect import Dialect
from freqsgd.data.formats import Parquet, format_of, list_files, refuse_parquet
from freqsgd.data.header import header_hint, read_header

__all__ = ["file_columns"]


def file_columns(path: str, dialect: Dialect) -> tuple[list[tuple[str, str]], str]:
    """Return names and types of the columns of a file, or of the first one in a folder.

    Also returns what to do if the file seems to have more columns; "" if it does not.
    """
    first = list_files(Path(path))[0]
    refuse_parquet([first], dialect)
    form = format_of(first, dialect)
    if isinstance(form, Parquet):
        from freqsgd.data.parquet import parquet_schema  # polars, which text does without

        types = {name: str(dtype) for name, dtype in parquet_schema(first).items()}
    else:
        header = read_header(first, form)
        types = {n: "List(String)" if n in header.lists else "String" for n in header.names}
    shown = [(name, "text" if kind == "String" else kind) for name, kind in types.items()]
    return shown, header_hint(form, list(types))
