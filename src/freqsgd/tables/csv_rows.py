"""Find the rows and the header of delimited text, without polars."""

from __future__ import annotations

import csv
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DamagedFileError, DataError
from freqsgd.files import open_text
from freqsgd.kernels.compiled import compiled
from freqsgd.tables.dialect import TextFormat, separator_hint, split_type, written

_NO_QUOTE = 256  # no byte
_NEWLINE = ord("\n")


def _find_rows(
    data: Any, separator: Any, quote: Any, stops: Any, ends: Any, cells: Any, lines: Any
) -> Any:
    rows, stopped, line, before, inside = 0, 0, 0, 0, False
    highest = max(separator, _NEWLINE, quote if quote != _NO_QUOTE else 0)
    for position in range(len(data)):
        byte = data[position]
        if byte > highest:
            continue  # as most are
        if byte == separator:
            if not inside:
                stops[stopped] = position
                stopped += 1
        elif byte == _NEWLINE:
            line += 1
            if not inside:
                stops[stopped] = position
                stopped += 1
                ends[rows], cells[rows], lines[rows] = position + 1, stopped - before, line
                rows, before = rows + 1, stopped
        elif byte == quote:
            inside = not inside  # a doubled quote closes and opens again
    return rows, before


_compiled = compiled(_find_rows)


@dataclass(frozen=True)
class FoundRows:
    """Where rows of text are, and their cells."""

    ends: NDArray[np.int64]  # of each row
    cells: NDArray[np.int32]  # how many it has
    lines: NDArray[np.int64]  # up to its end
    stops: NDArray[np.int32]  # of the cells of all rows


def find_rows(data: bytes, separator: str, *, quoted: bool) -> FoundRows:
    """The rows that are whole. A row ends at a newline; outside quotes, if these have a meaning."""
    stops = np.empty(len(data), np.int32)  # pages that are never written to cost nothing
    most = data.count(b"\n")
    ends, lines = np.empty(most, np.int64), np.empty(most, np.int64)
    cells = np.empty(most, np.int32)
    quote = ord('"') if quoted else _NO_QUOTE
    text = np.frombuffer(data, np.uint8)
    rows, stopped = _compiled(text, ord(separator), quote, stops, ends, cells, lines)
    return FoundRows(ends[:rows], cells[:rows], lines[:rows], stops[:stopped])


def find_first_rows(data: bytes, separator: str, *, quoted: bool) -> FoundRows:
    """Return what ``find_rows`` does, without Numba, whose import takes a second.

    It is for the start of a file: a byte takes it several times as long.
    """
    text = np.frombuffer(data, np.uint8)
    is_quote = text == (ord('"') if quoted else _NO_QUOTE)
    outside = np.cumsum(is_quote, dtype=np.int32) % 2 == 0
    newlines = text == _NEWLINE
    stops = np.flatnonzero(outside & (newlines | (text == ord(separator)))).astype(np.int32)
    last = np.flatnonzero(newlines[stops])  # stops at which a row ends
    ends = stops[last].astype(np.int64) + 1
    return FoundRows(
        ends,
        cells=np.diff(last, prepend=-1).astype(np.int32),
        lines=np.cumsum(newlines, dtype=np.int64)[ends - 1],
        stops=stops[: last[-1] + 1] if len(last) else stops[:0],
    )


_LONGEST_ROW = 1 << 24
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
            block = _check_start(path, block)
        if not more and (rest or block) and not block.endswith(b"\n"):
            block += b"\n"
        whole = block.rfind(b"\n") + 1
        data = b"".join((rest, memoryview(block)[:whole])) if whole else b""
        rest = block[whole:] if whole else rest + block
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if form.parsed_separator != form.separator:
            data = data.replace(form.separator.encode(), form.parsed_separator.encode())
        found = find(data, form.parsed_separator, quoted=form.quoted)
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


def _check_start(path: Path, start: bytes) -> bytes:
    """The start of a file, without a byte order mark."""
    if start.startswith(b"PAR1"):
        raise DataError(f"{path}: this is a Parquet file; let its name end with .parquet")
    if b"\0" in start:
        raise DataError(f"{path}: this is not a file of UTF-8 text; convert it")
    return start.removeprefix(_BOM)


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
    return Header(names, frozenset(lists), rows=int(not (form.layouts or form.columns)))


def _first_line(path: Path, rows: Rows, form: TextFormat) -> list[str]:
    """The cells of the header."""
    try:
        header, separator = rows.text(0, 1).decode().rstrip("\n"), form.parsed_separator
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
    line = line.replace(form.parsed_separator, form.separator)
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
