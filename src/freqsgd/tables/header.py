"""Find the rows and the header of delimited text."""

from __future__ import annotations

import csv
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DamagedFileError, DataError
from freqsgd.files import open_text
from freqsgd.tables.csv_scan import FoundRows, find_first_rows
from freqsgd.tables.dialect import separator_hint, written
from freqsgd.tables.formats import Parquet, TextFormat, split_type

__all__ = [
    "Header",
    "Rows",
    "find_header",
    "header_hint",
    "parsed_separator",
    "read_header",
    "whole_rows",
]

_LONGEST_ROW = 1 << 24
_STAND_IN = "\x1f"  # ASCII's own separator of units, which no text has
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Rows:
    """The text of consecutive rows, and where they are."""

    data: bytes
    found: FoundRows
    lines: int  # in the file before them
    done: float  # the part of the file up to here

    def text(self, start: int, stop: int) -> bytes:
        """The text of some rows."""
        ends = self.found.ends
        return self.data[ends[start - 1] if start else 0 : ends[stop - 1] if stop else 0]

    def first_lines(self) -> NDArray[np.int64]:
        """The number of the line where each row starts."""
        return self.lines + 1 + np.concatenate([[0], self.found.lines[:-1]])

    def lengths(self) -> NDArray[np.int64]:
        """Bytes of each row, its newline included."""
        return np.diff(self.found.ends, prepend=0)


def whole_rows(
    path: Path,
    file: BinaryIO,
    form: TextFormat,
    find: Callable[..., FoundRows],
    first: int,
    most: int,
) -> Iterator[Rows]:
    """Read block after block, each cut at the end of its last whole row.

    Args:
        path: of the file, for messages
        file: opened at its start
        form: of the file
        find: finds the rows: ``find_rows`` or ``find_first_rows``
        first: bytes of a block; while no row ends, the next one is as long as all before it
        most: bytes of a block at most
    """
    size, lines, rest, more = path.stat().st_size, 0, b"", True
    while more:
        try:
            wanted = min(max(first, len(rest)), most)
            block = file.read(wanted)
            position = (getattr(file, "fileobj", None) or file).tell()  # in the packed file
        except (OSError, EOFError, zlib.error) as error:
            place = f", line {lines + 1:,}" if lines else ""
            raise DamagedFileError(f"{path}{place}: cannot be read: {error}") from error
        more = len(block) == wanted
        if lines == 0 and not rest:
            block = _check_text(path, block)
        if not more and (rest or block) and not block.endswith(b"\n"):
            block += b"\n"
        whole = block.rfind(b"\n") + 1
        data = b"".join((rest, memoryview(block)[:whole])) if whole else b""
        rest = block[whole:] if whole else rest + block
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if parsed_separator(form) != form.separator:
            data = data.replace(form.separator.encode(), parsed_separator(form).encode())
        found = find(data, parsed_separator(form), quoted=form.quoted)
        end, ended = (found.ends[-1], int(found.lines[-1])) if len(found.ends) else (0, 0)
        if end < len(data):  # inside quotes
            data, rest = data[:end], data[end:] + rest
        if len(rest) > _LONGEST_ROW:
            raise DataError(
                f"{path}, line {lines + ended + 1}: this row is longer than "
                f"{_LONGEST_ROW >> 20} MB; is there a quote that is never closed?"
            )
        if data:
            yield Rows(data, found, lines, position / max(size, 1))
        lines += ended
    if rest:
        raise DataError(f"{path}, line {lines + 1}: a quote in this row is never closed")


def parsed_separator(form: TextFormat) -> str:
    """Of the text that is parsed, in which one byte stands for a longer separator."""
    return form.separator if len(form.separator.encode()) == 1 else _STAND_IN


def _check_text(path: Path, start: bytes) -> bytes:
    """The start of a file, without a byte order mark."""
    if start.startswith(b"PAR1"):
        raise DataError(f"{path}: this is a Parquet file; let its name end with .parquet")
    if b"\0" in start:
        raise DataError(f"{path}: this is not a file of UTF-8 text; convert it")
    return start.removeprefix(_BOM)


# Which columns a text file has, by its first rows.
#
# Neither Numba nor polars is needed for them, which take a second to import.

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
