"""Consecutive rows of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.data.formats import Parquet, TextFormat

__all__ = ["Block", "RawText", "read_blocks"]


@dataclass(frozen=True)
class RawText:
    """Rows of text without quotes, each with all the columns."""

    data: bytes
    stops: NDArray[np.int32]  # (rows, columns): where each cell stops, one byte before the next
    names: list[str]  # of the columns

    def cell(self, row: int, name: str) -> str:
        """The text of one cell."""
        place = row * len(self.names) + self.names.index(name)
        start = int(self.stops.flat[place - 1]) + 1 if place else 0
        return self.data[start : int(self.stops.flat[place])].decode()

    def after(self, rows: int) -> RawText:
        """The text without so many of its first rows."""
        start = int(self.stops[rows - 1, -1]) + 1 if rows else 0
        return RawText(self.data[start:], self.stops[rows:] - start, self.names)


@dataclass(frozen=True)
class Block:
    """The well-formed rows in a part of a file, and the place and fault of malformed ones."""

    frame: pl.DataFrame  # columns; null and "" both mean that a value is missing
    raw: RawText | None  # the same rows; None: all columns asked for are in the frame
    numbers: NDArray[np.int64]  # of the line (in Parquet: of the row) where each row starts
    unit: str  # what the numbers count: "line" or "row"
    malformed: list[tuple[int, str, str]]  # number, place, fault
    done: float  # the part of the file that is read, from 0 to 1

    def after(self, number: int) -> Block:
        """Only what has a higher number."""
        rows = int(np.searchsorted(self.numbers, number, side="right"))
        raw = self.raw.after(rows) if self.raw else None
        malformed = [row for row in self.malformed if row[0] > number]
        numbers, frame = self.numbers[rows:], self.frame[rows:]
        return Block(frame, raw, numbers, self.unit, malformed, self.done)


def read_blocks(
    path: Path,
    form: TextFormat | Parquet,
    columns: Sequence[str],
    raw: Sequence[str] = (),
    after: int = 0,
) -> Iterator[Block]:
    """All rows of a file in order, a bounded number at a time.

    The columns ``raw`` may be left as raw text; they are then missing from the frame. Rows whose
    number is not above ``after`` are left out. Where blocks begin does not depend on it, so that
    damage in a file shows at the same row.
    """
    from freqsgd.data.parquet import read_parquet
    from freqsgd.data.text import read_text

    columns, raw = list(dict.fromkeys(columns)), list(dict.fromkeys(raw))
    if isinstance(form, Parquet):
        names = [*columns, *(name for name in raw if name not in columns)]
        blocks = read_parquet(path, names, after)
    else:
        blocks = read_text(path, form, columns, raw)
    for block in blocks:
        yield block.after(after) if after else block
