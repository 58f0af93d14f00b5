"""Read tables in blocks of rows; polars is imported when it is needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DamagedFileError

if TYPE_CHECKING:
    import polars as pl

# A block costs a look at all of its row group, so that many small ones would be slow.
BLOCK_ROWS, _BLOCK_CELLS = 1 << 19, 1 << 24


@dataclass(frozen=True)
class RawText:
    """Rows of text without quotes, each with all the columns."""

    data: bytes
    stops: NDArray[np.int32]  # (rows, columns): where each cell stops, one byte before the next
    names: list[str]  # of the columns

    def cell(self, row: int, name: str) -> str:
        """Return the text of one cell."""
        place = row * len(self.names) + self.names.index(name)
        start = int(self.stops.flat[place - 1]) + 1 if place else 0
        return self.data[start : int(self.stops.flat[place])].decode()

    def after(self, rows: int) -> RawText:
        """Return the text without so many of its first rows."""
        start = int(self.stops[rows - 1, -1]) + 1 if rows else 0
        return RawText(self.data[start:], self.stops[rows:] - start, self.names)


@dataclass(frozen=True)
class Block:
    """The well-formed rows in a part of a table, and the place and fault of malformed ones."""

    frame: pl.DataFrame  # columns; null and "" both mean that a value is missing
    raw: RawText | None  # the same rows; None: all columns asked for are in the frame
    numbers: NDArray[np.int64]  # of the line (in Parquet: of the row) where each row starts
    unit: str  # what the numbers count: "line" or "row"
    malformed: list[tuple[int, str, str]]  # number, place, fault
    done: float  # the part of the table that is read, from 0 to 1

    def after(self, number: int) -> Block:
        """Return only what has a higher number."""
        rows = int(np.searchsorted(self.numbers, number, side="right"))
        raw = self.raw.after(rows) if self.raw else None
        malformed = [row for row in self.malformed if row[0] > number]
        numbers, frame = self.numbers[rows:], self.frame[rows:]
        return Block(frame, raw, numbers, self.unit, malformed, self.done)


class Reader(ABC):
    """A file of a table that can be read.

    Attributes:
        path: of the file
        place: what it is called in messages
        typed: whether its columns may be named with their types, as in RecBole's files
        layout: the columns of a known dataset, whose files have no header
    """

    typed = False
    layout: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, str(path)

    @abstractmethod
    def schema(self) -> pl.Schema:
        """Return names and types of the columns."""

    @abstractmethod
    def _blocks(self, columns: list[str], raw: list[str], after: int) -> Iterator[Block]:
        """Return all blocks; those that end before row ``after`` may be left out."""

    def blocks(
        self, columns: Sequence[str], raw: Sequence[str] = (), after: int = 0
    ) -> Iterator[Block]:
        """Yield all rows in order, a bounded number at a time.

        The columns ``raw`` may be left as raw text; they are then missing from the frame. Rows
        whose number is not above ``after`` are left out. Where blocks begin does not depend on it,
        so that damage in a file shows at the same row.
        """
        chosen, raw = list(dict.fromkeys(columns)), list(dict.fromkeys(raw))
        for block in self._blocks(chosen, raw, after):
            yield block.after(after) if after else block

    def count(self) -> int | None:
        """Return the number of rows; None if they would have to be read to count them."""
        return None

    def shown_columns(self) -> list[tuple[str, str]]:
        """Return names and types of the columns, for people."""
        kinds = ((name, str(dtype)) for name, dtype in self.schema().items())
        return [(name, "text" if kind == "String" else kind) for name, kind in kinds]

    def hint(self, found: list[str], wanted: str | None = None) -> str:
        """Return a sentence on what to do if there seem to be other columns; else "".

        Args:
            found: the columns that were found
            wanted: one that was not, if any
        """
        return ""


class ParquetReader(Reader):
    """Reads a Parquet file."""

    def schema(self) -> pl.Schema:
        """Return names and types of the columns."""
        with _refusing_damage(self.place):
            return self._scan().collect_schema()

    def count(self) -> int:
        """Return the number of rows."""
        import polars as pl

        with _refusing_damage(self.place):
            return int(self._scan().select(pl.len()).collect().item())

    def _blocks(self, columns: list[str], raw: list[str], after: int) -> Iterator[Block]:
        names = list(dict.fromkeys([*columns, *raw]))
        rows, step = self.count(), block_rows(len(names))
        scan = self._scan().select(names)
        for start in range(after // step * step, rows, step):
            stop = min(start + step, rows)
            with _refusing_damage(f"{self.place}, rows {start + 1:,} to {stop:,}"):
                frame = scan.slice(start, step).collect()
            yield Block(frame, None, np.arange(start + 1, stop + 1), "row", [], stop / rows)

    def _scan(self) -> pl.LazyFrame:
        import polars as pl

        return pl.scan_parquet(self.path, glob=False)


@contextmanager
def _refusing_damage(place: str) -> Iterator[None]:
    """Say of what polars cannot read that it is damaged; polars panics over some of it."""
    from polars.exceptions import PanicException, PolarsError

    try:
        yield
    except (PolarsError, PanicException, OSError) as error:
        what = (str(error).strip() or "?").splitlines()[0]
        raise DamagedFileError(
            f"{place}: cannot be read as Parquet, it may be cut short or damaged ({what}); "
            "write or copy it again"
        ) from error


def block_rows(columns: int) -> int:
    """Of a block, a power of 2: blocks of few columns and of many take about the same memory."""
    most = _BLOCK_CELLS // max(columns, 1)
    return int(min(BLOCK_ROWS, 1 << max(most.bit_length() - 1, 0)))
