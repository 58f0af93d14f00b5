"""What one-pass training takes: the examples of days in order, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from freqsgd.tables.fields import Field

if TYPE_CHECKING:
    from freqsgd.tables.encoder import Encoder
    from freqsgd.tables.hashing import HashEncoder


def _none() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


class Position(NamedTuple):
    """A place in a stream."""

    file: int  # among the stream's files, from 0; a generated day counts as a file
    row: int  # raw rows or lines of that file up to there
    dropped: int = 0  # malformed rows that were left out up to there


@dataclass(frozen=True)
class Chunk:
    """Consecutive examples of one file; none, where all rows of a part of it are malformed."""

    ids: NDArray[np.int32]  # (rows, columns), C order; ids of each field start at 0
    labels: NDArray[np.uint8]  # (rows,), 0 or 1
    day: int
    file: int
    numbers: NDArray[np.int64]  # (rows,): of the raw row or line, from 1, where each example is
    done: float  # the part of the asked days that is read, from 0 to 1
    dropped: int  # malformed rows left out so far
    malformed: NDArray[np.int64] = field(default_factory=_none)  # numbers of those among these

    def position(self, row: int) -> Position:
        """Where to go on after one of the examples."""
        number = int(self.numbers[row])
        later = len(self.malformed) - np.searchsorted(self.malformed, number)
        return Position(self.file, number, self.dropped - int(later))


class Stream(Protocol):
    """Examples of consecutive days, read or made when they are needed."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of an example; their sizes are the rows of their tables."""

    @property
    def days(self) -> tuple[str, ...]:
        """Names of the days, in order."""

    @property
    def fingerprint(self) -> str:
        """Tells the data and its encoding from others."""

    @property
    def encoder(self) -> Encoder | HashEncoder | None:
        """Turns raw columns into ids; None: there are no raw columns."""

    @property
    def skipped(self) -> list[str]:
        """Files that were left out, and why; filled while reading."""

    def chunks(self, first: int, last: int, start: Position | None = None) -> Iterator[Chunk]:
        """The examples of ``days[first:last]``, from a position on, which may be in earlier days.

        They are read or made ahead by other threads, a bounded number of chunks; closing the
        iterator stops these. Neither chunks nor their order depend on timing.
        """

    def summary(self) -> dict[str, Any]:
        """What ``results.json`` says of it."""


def describe(stream: Stream, rows: int | None, encoding: str) -> dict[str, Any]:
    """The summary of a stream, of so many rows if that is known."""
    return {
        "name": stream.name,
        "kind": "stream",
        "days": list(stream.days),
        "fields": len(stream.fields),
        "tokens": sum(field.size for field in stream.fields),
        "rows": rows,
        "encoding": encoding,
    }


@dataclass(frozen=True)
class Batch:
    """Consecutive examples, of several files and days perhaps."""

    ids: NDArray[np.int32]  # (rows, columns), C order
    labels: NDArray[np.uint8]  # (rows,)
    days: NDArray[np.int64]  # (rows,): the day of each example, ascending
    position: Position  # where to go on after its last example
    done: float  # the part of the asked days that is read, from 0 to 1


class _Part(NamedTuple):
    chunk: Chunk
    begin: int
    end: int


def batches(chunks: Iterable[Chunk], size: int) -> Iterator[Batch]:
    """The examples of all chunks, ``size`` at a time; only the last batch may be smaller.

    Where chunks begin and end makes no difference. A batch that lies within a chunk is a view.
    """
    parts: list[_Part] = []
    wanted = size
    for chunk in chunks:
        begin, rows = 0, len(chunk.labels)
        while begin < rows:
            end = min(begin + wanted, rows)
            parts.append(_Part(chunk, begin, end))
            wanted -= end - begin
            begin = end
            if wanted == 0:
                yield _batch(parts)
                parts, wanted = [], size
    if parts:
        yield _batch(parts)


def _batch(parts: list[_Part]) -> Batch:
    last = parts[-1]
    ids = [part.chunk.ids[part.begin : part.end] for part in parts]
    labels = [part.chunk.labels[part.begin : part.end] for part in parts]
    return Batch(
        ids[0] if len(ids) == 1 else np.concatenate(ids),
        labels[0] if len(labels) == 1 else np.concatenate(labels),
        np.repeat([part.chunk.day for part in parts], [part.end - part.begin for part in parts]),
        last.chunk.position(last.end - 1),
        last.chunk.done,
    )
