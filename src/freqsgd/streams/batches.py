"""Consecutive examples cut into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freqsgd.streams.stream import Chunk, Position

__all__ = ["Batch", "batches"]


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
