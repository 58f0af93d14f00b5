"""Read delimited text in blocks of whole rows."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.blocks import Block
from freqsgd.data.dataset import DataError
from freqsgd.data.formats import TextFormat
from freqsgd.data.scan import NO_QUOTE, find_rows

__all__ = ["read_text", "text_columns"]

BLOCK_BYTES = 1 << 25
_LONGEST_ROW = 1 << 24
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class _Rows:
    """The text of consecutive rows, and where they are."""

    data: bytes
    ends: NDArray[np.int64]  # of the rows, in data
    cells: NDArray[np.int32]  # of each row; 0: a blank line
    first: NDArray[np.int64]  # line of each
    last: NDArray[np.int64]
    done: float  # the part of the file up to here

    def text(self, start: int, stop: int) -> bytes:
        """The text of some rows."""
        return self.data[self.ends[start - 1] if start else 0 : self.ends[stop - 1] if stop else 0]


def text_columns(path: Path, form: TextFormat) -> list[str]:
    """Names of the columns that the header gives."""
    with _open(path) as file:
        for rows in _whole_rows(path, file, form):
            return _names(path, rows, form, ())
    raise DataError(f"{path}: the file is empty")


def read_text(path: Path, form: TextFormat, columns: Sequence[str]) -> Iterator[Block]:
    """Blocks of consecutive rows with the given columns as text; "" where a cell is empty."""
    names: list[str] = []
    with _open(path) as file:
        for rows in _whole_rows(path, file, form):
            skip = 0
            if not names:
                names = _names(path, rows, form, columns)
                skip = 0 if form.layouts else 1
            yield _parse(path, rows, skip, names, form, columns)


def _open(path: Path) -> BinaryIO:
    try:
        return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}") from error


def _whole_rows(path: Path, file: BinaryIO, form: TextFormat) -> Iterator[_Rows]:
    """Read block after block, each cut at the end of its last whole row."""
    size, lines, rest, more = path.stat().st_size, 0, b"", True
    quote = ord('"') if form.quoted else NO_QUOTE
    while more:
        try:
            block = file.read(BLOCK_BYTES)
            position = (getattr(file, "fileobj", None) or file).tell()  # in the packed file
        except (OSError, EOFError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from error
        more = len(block) > 0
        if lines == 0 and not rest:
            block = _check_text(path, block)
        data = rest + block
        if not more and data and not data.endswith(b"\n"):
            data += b"\n"
        whole = data.rfind(b"\n") + 1
        data, rest = data[:whole], data[whole:]
        if len(form.separator) > 1:
            data = data.replace(form.separator.encode(), _separator(form).encode())
        ends, cells, ended = find_rows(data, ord(_separator(form)), quote)
        end = int(ends[-1]) if len(ends) else 0
        data, rest = data[:end], data[end:] + rest
        if len(rest) > _LONGEST_ROW:
            line = lines + 1 + (int(ended[-1]) if end else 0)
            raise DataError(
                f"{path}, line {line}: this row is longer than {_LONGEST_ROW >> 20} MB; "
                "is there a quote that is never closed?"
            )
        if end == 0:
            continue
        last = lines + ended
        first = np.concatenate([[lines], last[:-1]]) + 1
        lines = int(last[-1])
        yield _Rows(data, ends, cells, first, last, position / max(size, 1))
    if rest:
        raise DataError(f"{path}, line {lines + 1}: a quote in this row is never closed")


def _separator(form: TextFormat) -> str:
    """Of the text that is parsed, in which one character stands for a longer separator."""
    return form.separator if len(form.separator) == 1 else "\t"


def _check_text(path: Path, start: bytes) -> bytes:
    """The start of a file, without a byte order mark."""
    if start.startswith(b"PAR1"):
        raise DataError(f"{path}: this is a Parquet file; let its name end with .parquet")
    if b"\0" in start:
        raise DataError(f"{path}: this is not a file of UTF-8 text; convert it")
    return start.removeprefix(_BOM)


def _names(path: Path, rows: _Rows, form: TextFormat, columns: Sequence[str]) -> list[str]:
    """Names of the columns, by the header or, where there is none, by their number."""
    if form.layouts:
        fitting = [layout for layout in form.layouts if set(columns) <= set(layout)]
        return list(next((names for names in fitting if len(names) == rows.cells[0]), fitting[0]))
    try:
        header = rows.text(0, 1).decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise DataError(f"{path}, line 1: the header is not UTF-8 text; convert it") from None
    names = next(csv.reader([header])) if form.quoted else header.split(form.separator)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}, line 1: two columns are called {repeated[0]!r}; rename one")
    return names


def _parse(
    path: Path,
    rows: _Rows,
    skip: int,
    names: list[str],
    form: TextFormat,
    columns: Sequence[str],
) -> Block:
    """Turn text into columns, leaving out malformed rows and the first ``skip`` ones."""
    wrong = (rows.cells != len(names)) & (rows.cells > 0)
    blank_is_a_row = len(names) == 1  # whose cell is empty
    keep = ~wrong & ((rows.cells > 0) | blank_is_a_row)
    keep[:skip] = wrong[:skip] = False
    reasons = {
        int(row): f"{rows.cells[row]} columns, expected {len(names)}"
        for row in np.flatnonzero(wrong)
    }
    frame = _frame(rows, keep, names, form, columns)
    if frame is None:
        for row in _not_utf8(rows, keep):
            reasons[row] = "not UTF-8 text"
            keep[row] = False
        frame = _frame(rows, keep, names, form, columns)
    if frame is None or len(frame) != np.count_nonzero(keep):
        raise DataError(
            f"{path}: lines {rows.first[0]} to {rows.last[-1]} cannot be taken apart; "
            "look for stray quotes there"
        )
    return Block(
        frame,
        rows.first[keep],
        "line",
        [_place(rows, row, reasons) for row in sorted(reasons)],
        rows.done,
    )


def _frame(
    rows: _Rows, keep: NDArray[np.bool_], names: list[str], form: TextFormat, columns: Sequence[str]
) -> pl.DataFrame | None:
    """The rows to keep, as columns of text; None if they are not UTF-8."""
    data = rows.data
    if not keep.all():
        edges = np.flatnonzero(np.diff(keep, prepend=False, append=False))
        data = b"".join(rows.text(*run) for run in edges.reshape(-1, 2).tolist())
    if not data:
        return pl.DataFrame(schema=dict.fromkeys(columns, pl.String()))
    scan = pl.scan_csv(
        io.BytesIO(data),
        has_header=False,
        schema=dict.fromkeys(names, pl.String()),
        separator=_separator(form),
        quote_char='"' if form.quoted else None,
        empty_string_is_null=False,
    )
    try:
        return scan.select(columns).collect()
    except pl.exceptions.ComputeError:
        return None


def _not_utf8(rows: _Rows, keep: NDArray[np.bool_]) -> Iterator[int]:
    for row in np.flatnonzero(keep).tolist():
        try:
            rows.text(row, row + 1).decode()
        except UnicodeDecodeError:
            yield row


def _place(rows: _Rows, row: int, reasons: dict[int, str]) -> tuple[int, str, str]:
    first, last = int(rows.first[row]), int(rows.last[row])
    place = f"line {first}" if first == last else f"lines {first} to {last}"
    return first, place, reasons[row]
