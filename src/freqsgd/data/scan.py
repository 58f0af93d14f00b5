"""Find the rows in a block of delimited text, and count the cells of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["NO_QUOTE", "find_rows"]

NO_QUOTE = 256  # no byte: quotes have no meaning

_NEWLINE, _RETURN = ord("\n"), ord("\r")


def _find_rows(data: Any, separator: Any, quote: Any, ends: Any, cells: Any, lines: Any) -> int:
    rows, count, line, start, inside = 0, 1, 0, 0, False
    for position in range(len(data)):
        byte = data[position]
        if byte == quote:
            inside = not inside  # a doubled quote closes and opens again
        elif byte == _NEWLINE:
            line += 1
            if not inside:
                length = position - start
                blank = length == 0 or (length == 1 and data[start] == _RETURN)
                ends[rows], cells[rows], lines[rows] = position + 1, 0 if blank else count, line
                rows, count, start = rows + 1, 1, position + 1
        elif byte == separator and not inside:
            count += 1
    return rows


_compiled = njit(cache=True, nogil=True)(_find_rows)


def find_rows(
    data: bytes, separator: int, quote: int = NO_QUOTE
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """The rows that are whole: where each ends, its number of cells, the lines up to its end.

    A row ends at a newline outside quotes. A blank line has no cells.
    """
    most = data.count(b"\n")
    ends, lines = np.empty(most, np.int64), np.empty(most, np.int64)
    cells = np.empty(most, np.int32)
    rows = _compiled(np.frombuffer(data, np.uint8), separator, quote, ends, cells, lines)
    return ends[:rows], cells[:rows], lines[:rows]
