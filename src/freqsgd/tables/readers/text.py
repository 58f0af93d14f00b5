"""Read delimited text in blocks of whole rows, with their line numbers.

polars and Numba are imported for the rows only, not for the header.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DamagedFileError, DataError
from freqsgd.files import open_text
from freqsgd.kernels.compiled import compiled
from freqsgd.tables.readers.dialect import TextFormat, separator_hint, split_type, written
from freqsgd.tables.readers.reader import Block, RawText, Reader

if TYPE_CHECKING:
    import polars as pl

BLOCK_BYTES = 1 << 24
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
class Rows:
    """The text of consecutive rows, and where they and their cells are."""

    data: bytes
    ends: NDArray[np.int64]  # of each row
    cells: NDArray[np.int32]  # how many it has
    lines: NDArray[np.int64]  # up to its end
    stops: NDArray[np.int32]  # of the cells of all rows
    before: int = 0  # lines in the file before them
    done: float = 0.0  # the part of the file up to here

    def text(self, start: int, stop: int) -> bytes:
        """Return the text of some rows."""
        return self.data[self.ends[start - 1] if start else 0 : self.ends[stop - 1] if stop else 0]

    def first_lines(self) -> NDArray[np.int64]:
        """Return the number of the line where each row starts."""
        return self.before + 1 + np.concatenate([[0], self.lines[:-1]])

    def last_lines(self) -> NDArray[np.int64]:
        """Return the number of the line where each row ends."""
        return self.before + self.lines

    def lengths(self) -> NDArray[np.int64]:
        """Count the bytes of each row, its newline included."""
        return np.diff(self.ends, prepend=0)


def find_rows(data: bytes, separator: str, *, quoted: bool, fast: bool = True) -> Rows:
    """Find the rows that are whole; a newline ends a row, unless it is inside quotes.

    Quotes mean nothing unless ``quoted``. It does without Numba, whose import takes a second,
    unless it is to be ``fast``.
    """
    stops = np.empty(len(data), np.int32)  # pages that are never written to cost nothing
    most = data.count(b"\n")
    ends, lines = np.empty(most, np.int64), np.empty(most, np.int64)
    cells = np.empty(most, np.int32)
    quote = ord('"') if quoted else _NO_QUOTE
    text, find = (np.frombuffer(data, np.uint8), _compiled) if fast else (data, _find_rows)
    rows, stopped = find(text, ord(separator), quote, stops, ends, cells, lines)
    return Rows(data, ends[:rows], cells[:rows], lines[:rows], stops[:stopped])


_LONGEST_ROW = 1 << 24
_BOM = b"\xef\xbb\xbf"


def whole_rows(
    path: Path,
    file: BinaryIO,
    form: TextFormat,
    block_bytes: int,
    *,
    fast: bool = True,
) -> Iterator[Rows]:
    """Read block after block, each cut at the end of its last whole row.

    Args:
        path: of the file, for messages
        file: opened at its start
        form: of the file
        block_bytes: of a block; while no row ends, the next one is as long as all before it
        fast: whether rows are found by the compiled function
    """
    size, lines, rest, more = path.stat().st_size, 0, b"", True
    while more:
        try:
            wanted = min(max(block_bytes, len(rest)), max(block_bytes, BLOCK_BYTES))
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
        found = find_rows(data, form.parsed_separator, quoted=form.quoted, fast=fast)
        end, ended = (found.ends[-1], int(found.lines[-1])) if len(found.ends) else (0, 0)
        if end < len(data):  # inside quotes
            data, rest = data[:end], data[end:] + rest
        if len(rest) > _LONGEST_ROW:
            raise DataError(
                f"{path}, line {lines + ended + 1}: this row is longer than "
                f"{_LONGEST_ROW >> 20} MB; is there a quote that is never closed?"
            )
        if data:
            yield replace(found, data=data, before=lines, done=position / max(size, 1))
        lines += ended
    if rest:
        raise DataError(f"{path}, line {lines + 1}: a quote in this row is never closed")


def _check_start(path: Path, start: bytes) -> bytes:
    """Return the start of a file, without a byte order mark."""
    if start.startswith(b"PAR1"):
        raise DataError(f"{path}: this is a Parquet file; let its name end with .parquet")
    if b"\0" in start:
        raise DataError(f"{path}: this is not a file of UTF-8 text; convert it")
    return start.removeprefix(_BOM)


_FIRST_BYTES = 1 << 13  # that are read for a header, and then twice that, until a row ends


@dataclass(frozen=True)
class Header:
    """What the columns of a file are."""

    names: list[str]
    lists: frozenset[str]  # columns whose cells are lists of tokens, separated by spaces
    rows: int  # that it takes, of the first ones of the file


def read_header(path: Path, form: TextFormat) -> Header:
    """Return the columns of a file, of which only the start is read."""
    with open_text(path) as file:
        for rows in whole_rows(path, file, form, _FIRST_BYTES, fast=False):
            return find_header(path, rows, form)
    raise DamagedFileError(f"{path}: the file is empty")


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
        count = rows.cells[0]
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
    """Return the cells of the header."""
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
    found, place = int(rows.cells[row]), f"{path}, line {rows.first_lines()[row]}"
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


class TextReader(Reader):
    """Reads a file of delimited text in blocks of whole rows, with their line numbers."""

    def __init__(self, path: Path, form: TextFormat) -> None:
        super().__init__(path)
        self.form, self.typed = form, form.typed
        self.layout = form.layouts[0] if form.layouts else ()

    def schema(self) -> pl.Schema:
        """Return names and types of the columns, from the first rows of the file."""
        import polars as pl

        header = read_header(self.path, self.form)
        return pl.Schema({name: _dtype(header, name) for name in header.names})

    def shown_columns(self) -> list[tuple[str, str]]:
        """Return names and types of the columns, without the import of polars."""
        header = read_header(self.path, self.form)
        return [(n, "List(String)" if n in header.lists else "text") for n in header.names]

    def hint(self, found: list[str], wanted: str | None = None) -> str:
        """Return a sentence that names another separator, if the header seems to have one."""
        separator = self.form.separator
        return separator_hint(separator.join(found), separator, lambda cells: wanted in cells)

    def _blocks(self, columns: list[str], raw: list[str], after: int) -> Iterator[Block]:
        """Yield blocks whose cells are text, "" where they are empty."""
        path, header = self.path, None
        with open_text(path) as file:
            for rows in whole_rows(path, file, self.form, BLOCK_BYTES):
                skipped = 0
                if header is None:
                    header = find_header(path, rows, self.form, [*columns, *raw])
                    skipped = header.rows
                yield self._parse(rows, skipped, header, columns, raw)
        if header is None:
            raise DamagedFileError(f"{path}: the file is empty")

    def _parse(
        self, rows: Rows, skipped: int, header: Header, columns: list[str], raw: list[str]
    ) -> Block:
        """Leave out the header, blank lines and malformed rows; turn the rest into columns."""
        names, cells, first = header.names, rows.cells, rows.first_lines()
        blank = rows.lengths() == 1
        if len(names) == 1:
            blank[:] = False  # the line is a row whose cell is empty
        wrong = (cells != len(names)) & ~blank
        wrong[:skipped] = False
        faults = {
            int(row): f"{cells[row]} columns, expected {len(names)}"
            for row in np.flatnonzero(wrong)
        }
        keep = ~wrong & ~blank
        keep[:skipped] = False
        for row in _not_utf8(rows, keep):
            faults[row] = "not UTF-8 text"
            keep[row] = False
        data, stops, quoted = rows.data, rows.stops, self.form.quoted
        if not keep.all():
            runs = np.flatnonzero(np.diff(keep, prepend=False, append=False)).reshape(-1, 2)
            data = b"".join(rows.text(start, stop) for start, stop in runs.tolist())
            stops = find_rows(data, self.form.parsed_separator, quoted=quoted).stops
        text = None
        if quoted and b'"' in data:
            columns = list(dict.fromkeys([*columns, *raw]))
        else:
            text = RawText(data, stops.reshape(-1, len(names)), names)
        frame = self._frame(data, header, columns)
        if frame is None or (columns and len(frame) != np.count_nonzero(keep)):
            raise DataError(
                f"{self.path}: lines {first[0]} to {rows.last_lines()[-1]} cannot be "
                "taken apart; look for stray quotes there"
            )
        malformed = [_place(rows, row, faults[row]) for row in sorted(faults)]
        return Block(frame, text, first[keep], "line", malformed, rows.done)

    def _frame(self, data: bytes, header: Header, columns: list[str]) -> pl.DataFrame | None:
        """Parse columns of text, or of lists of it; None if the rows cannot be taken apart."""
        import polars as pl

        if not data or not columns:
            return pl.DataFrame(schema={name: _dtype(header, name) for name in columns})
        scan = pl.scan_csv(
            io.BytesIO(data),
            has_header=False,
            schema=dict.fromkeys(header.names, pl.String()),
            separator=self.form.parsed_separator,
            quote_char='"' if self.form.quoted else None,
            empty_string_is_null=False,
        )
        lists = [pl.col(name).str.split(" ") for name in columns if name in header.lists]
        present = pl.element().filter(pl.element() != "")
        try:
            frame = scan.select(columns).collect()
        except pl.exceptions.ComputeError:
            return None
        return frame.with_columns(each.list.eval(present) for each in lists) if lists else frame


def _dtype(header: Header, name: str) -> pl.DataType:
    """Return the type of a column."""
    import polars as pl

    return pl.List(pl.String()) if name in header.lists else pl.String()


def _not_utf8(rows: Rows, keep: NDArray[np.bool_]) -> list[int]:
    """Find those of the rows to keep that are not UTF-8 text."""
    if rows.data.isascii() or _is_utf8(rows.data):
        return []
    return [row for row in np.flatnonzero(keep).tolist() if not _is_utf8(rows.text(row, row + 1))]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _place(rows: Rows, row: int, fault: str) -> tuple[int, str, str]:
    first, last = int(rows.first_lines()[row]), int(rows.last_lines()[row])
    place = f"line {first}" if first == last else f"lines {first} to {last}"
    return first, place, fault
