"""Delimited text in blocks of whole rows."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DamagedFileError, DataError
from freqsgd.data.formats import TextFormat
from freqsgd.data.scan import FoundRows

__all__ = ["Rows", "parsed_separator", "whole_rows"]

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
