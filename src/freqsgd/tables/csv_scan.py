"""Find the rows in a block of delimited text, and count the cells of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.kernels.compiled import compiled

__all__ = ["FoundRows", "find_first_rows", "find_rows"]

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
