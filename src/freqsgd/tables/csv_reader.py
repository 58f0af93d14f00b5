"""Read delimited text in blocks of whole rows, with their line numbers."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DamagedFileError, DataError
from freqsgd.files import open_text
from freqsgd.tables.blocks import Block, RawText
from freqsgd.tables.csv_scan import find_rows
from freqsgd.tables.formats import TextFormat
from freqsgd.tables.header import (
    Header,
    Rows,
    find_header,
    parsed_separator,
    read_header,
    whole_rows,
)

__all__ = ["BLOCK_BYTES", "read_text", "text_schema"]

BLOCK_BYTES = 1 << 24


def text_schema(path: Path, form: TextFormat) -> pl.Schema:
    """Names and types of the columns, from the first rows of the file."""
    header = read_header(path, form)
    return pl.Schema({name: _dtype(header, name) for name in header.names})


def read_text(
    path: Path, form: TextFormat, columns: Sequence[str], raw: Sequence[str]
) -> Iterator[Block]:
    """Blocks of consecutive rows; the cells of the columns are text, "" where they are empty."""
    header = None
    with open_text(path) as file:
        for rows in whole_rows(path, file, form, find_rows, BLOCK_BYTES, BLOCK_BYTES):
            skipped = 0
            if header is None:
                header = find_header(path, rows, form, [*columns, *raw])
                skipped = header.rows
            yield _parse(path, rows, skipped, header, form, columns, raw)
    if header is None:
        raise DamagedFileError(f"{path}: the file is empty; write it again")


def _parse(
    path: Path,
    rows: Rows,
    skipped: int,
    header: Header,
    form: TextFormat,
    columns: Sequence[str],
    raw: Sequence[str],
) -> Block:
    """Leave out the header, blank lines and malformed rows; turn the rest into columns."""
    names, cells, first = header.names, rows.found.cells, rows.first_lines()
    blank = rows.lengths() == 1
    if len(names) == 1:
        blank[:] = False  # the line is a row whose cell is empty
    wrong = (cells != len(names)) & ~blank
    wrong[:skipped] = False
    faults = {
        int(row): f"{cells[row]} columns, expected {len(names)}" for row in np.flatnonzero(wrong)
    }
    keep = ~wrong & ~blank
    keep[:skipped] = False
    for row in _not_utf8(rows, keep):
        faults[row] = "not UTF-8 text"
        keep[row] = False
    data, stops = rows.data, rows.found.stops
    if not keep.all():
        runs = np.flatnonzero(np.diff(keep, prepend=False, append=False)).reshape(-1, 2)
        data = b"".join(rows.text(start, stop) for start, stop in runs.tolist())
        stops = find_rows(data, parsed_separator(form), quoted=form.quoted).stops
    text = None
    if form.quoted and b'"' in data:
        columns = [*columns, *(name for name in raw if name not in columns)]
    else:
        text = RawText(data, stops.reshape(-1, len(names)), names)
    frame = _frame(data, header, form, columns)
    if frame is None or (columns and len(frame) != np.count_nonzero(keep)):
        raise DataError(
            f"{path}: lines {first[0]} to {rows.lines + rows.found.lines[-1]} cannot be taken "
            "apart; look for stray quotes there"
        )
    malformed = [_place(rows, row, faults[row]) for row in sorted(faults)]
    return Block(frame, text, first[keep], "line", malformed, rows.done)


def _dtype(header: Header, name: str) -> pl.DataType:
    """The type of a column."""
    return pl.List(pl.String()) if name in header.lists else pl.String()


def _frame(
    data: bytes, header: Header, form: TextFormat, columns: Sequence[str]
) -> pl.DataFrame | None:
    """Columns of text, or of lists of it; None if the rows cannot be taken apart."""
    if not data or not columns:
        return pl.DataFrame(schema={name: _dtype(header, name) for name in columns})
    scan = pl.scan_csv(
        io.BytesIO(data),
        has_header=False,
        schema=dict.fromkeys(header.names, pl.String()),
        separator=parsed_separator(form),
        quote_char='"' if form.quoted else None,
        empty_string_is_null=False,
    )
    lists = [pl.col(name).str.split(" ") for name in columns if name in header.lists]
    present = pl.element().filter(pl.element() != "")
    try:
        frame = scan.select(columns).collect()
    except pl.exceptions.ComputeError:
        return None
    return frame.with_columns(each.list.eval(present) for each in lists) if lists else frame


def _not_utf8(rows: Rows, keep: NDArray[np.bool_]) -> list[int]:
    """Which of the rows to keep are not UTF-8 text."""
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
    first, last = int(rows.first_lines()[row]), rows.lines + int(rows.found.lines[row])
    place = f"line {first}" if first == last else f"lines {first} to {last}"
    return first, place, fault
