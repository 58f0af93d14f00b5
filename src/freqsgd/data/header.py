"""Which columns a text file has, by its first rows.

Neither Numba nor polars is needed for them, which take a second to import.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from freqsgd.data.dataset import DamagedFileError, DataError
from freqsgd.data.dialect import separator_hint, written
from freqsgd.data.files import open_text
from freqsgd.data.formats import Parquet, TextFormat, split_type
from freqsgd.data.rows import Rows, parsed_separator, whole_rows
from freqsgd.data.scan import find_first_rows

__all__ = ["Header", "find_header", "header_hint", "read_header"]

_FIRST_BYTES, _MOST_BYTES = 1 << 16, 1 << 24  # that are read at once, until a row ends


@dataclass(frozen=True)
class Header:
    """What the columns of a file are."""

    names: list[str]
    lists: frozenset[str]  # columns whose cells are lists of tokens, separated by spaces
    rows: int  # that it takes, of the first ones of the file


def read_header(path: Path, form: TextFormat) -> Header:
    """Return the columns of a file, of which only the start is read."""
    with open_text(path) as file:
        for rows in whole_rows(path, file, form, find_first_rows, _FIRST_BYTES, _MOST_BYTES):
            return find_header(path, rows, form)
    raise DamagedFileError(f"{path}: the file is empty; write it again")


def find_header(path: Path, rows: Rows, form: TextFormat, columns: Sequence[str] = ()) -> Header:
    """Find the columns by the header, or the layout that the first row's number of cells fits.

    Args:
        path: of the file, for messages
        rows: the first ones of the file
        form: of the file
        columns: names that a layout must have
    """
    if form.layouts:
        fitting = [layout for layout in form.layouts if set(columns) <= set(layout)]
        count = rows.found.cells[0]
        names = list(next((names for names in fitting if len(names) == count), fitting[0]))
    elif form.columns:
        names = list(form.columns)
        _check_first_row(path, rows, form)
    else:
        names = _first_line(path, rows, form)
    lists = []
    if form.typed:
        typed = [split_type(name) for name in names]
        names = [name for name, _ in typed]
        lists = [name for name, kind in typed if kind.endswith("_seq")]
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise DataError(f"{path}, line 1: two columns are called {repeated[0]!r}; rename one")
    return Header(names, frozenset(lists), rows=int(form.has_header))


def _first_line(path: Path, rows: Rows, form: TextFormat) -> list[str]:
    """The cells of the header."""
    try:
        header, separator = rows.text(0, 1).decode().rstrip("\n"), parsed_separator(form)
        if form.quoted:
            return next(csv.reader([header], delimiter=separator))
        return header.split(separator)
    except UnicodeDecodeError:
        raise DataError(f"{path}, line 1: the header is not UTF-8 text; convert it") from None
    except csv.Error:
        raise DataError(
            f"{path}, line 1: the header has a stray quote, or lines end with a carriage return "
            "alone; convert it"
        ) from None


def _check_first_row(path: Path, rows: Rows, form: TextFormat) -> None:
    """Raise unless the first row has a cell for each of the names that were given."""
    names = list(form.columns)
    row = int(np.argmax(rows.lengths() > 1))  # blank lines are no rows
    found, place = int(rows.found.cells[row]), f"{path}, line {rows.first_lines()[row]}"
    line = rows.text(row, row + 1).decode(errors="replace").rstrip("\n")
    line = line.replace(parsed_separator(form), form.separator)
    if found != len(names):
        hint = separator_hint(line, form.separator, lambda cells: len(cells) == len(names))
        cells, columns = "cell" if found == 1 else "cells", ", ".join(names)
        raise DataError(
            f"{place}: {found} {cells}, but {len(names)} columns are named: {columns}. "
            + (hint or "Name all columns of this file in their order with --columns")
        )
    if [cell.strip('"') for cell in line.split(form.separator)] == names:
        raise DataError(
            f"{place}: this row names the columns: leave out --columns, or if a model remembers "
            f"them, say --separator {written(form.separator)} alone"
        )


def header_hint(form: TextFormat | Parquet, found: list[str], wanted: str | None = None) -> str:
    """A sentence that names another separator, if the header seems to have one; else "".

    Args:
        form: what the file was read as
        found: the columns that were found
        wanted: one that was not, if any
    """
    if not isinstance(form, TextFormat):
        return ""
    line = form.separator.join(found)
    return separator_hint(line, form.separator, lambda cells: wanted in cells)
