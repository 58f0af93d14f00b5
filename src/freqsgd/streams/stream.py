"""What one-pass training takes: the examples of days in order, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import Field

if TYPE_CHECKING:
    from freqsgd.data.encoder import Encoder
    from freqsgd.streams.hash_encoder import HashEncoder

__all__ = ["Chunk", "Position", "Stream"]


class Position(NamedTuple):
    """A place in a stream."""

    file: int  # among the stream's files, from 0; a generated day counts as a file
    row: int  # raw rows or lines of that file up to there


@dataclass(frozen=True)
class Chunk:
    """Consecutive examples of one file."""

    ids: NDArray[np.int32]  # (rows, columns), C order; ids of each field start at 0
    labels: NDArray[np.uint8]  # (rows,), 0 or 1
    day: int
    file: int
    numbers: NDArray[np.int64]  # (rows,): rows or lines of the file up to the end of each example
    done: float  # the part of the asked days that is read, from 0 to 1
    dropped: int  # malformed rows left out so far


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
        """The examples of ``days[first:last]``, from a position on."""

    def summary(self) -> dict[str, Any]:
        """What ``results.json`` says of it."""
