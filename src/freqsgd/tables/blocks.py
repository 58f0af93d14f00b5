"""Consecutive rows of a file, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["Block", "RawText"]


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
