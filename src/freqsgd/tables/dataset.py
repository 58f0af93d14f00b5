"""What training takes: a dataset of encoded samples, or a stream of them in chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.tables.fields import ABSENT, Chunk, Field, Position, Splits

if TYPE_CHECKING:
    from freqsgd.tables.encoders.encoder import Encoder
    from freqsgd.tables.encoders.hashing import HashEncoder


@dataclass(frozen=True)
class Dataset:
    """Encoded samples. Arrays may be memory-mapped and are read-only."""

    name: str
    fields: tuple[Field, ...]
    ids: NDArray[np.int32]  # (rows, sum of widths), C order; ids of each field start at 0
    labels: NDArray[np.uint8]  # (rows,), 0 or 1
    splits: Splits
    encoder: Encoder | None = None  # turns raw columns into ids; None: there are no raw columns
    _: KW_ONLY
    probabilities: NDArray[np.float32] | None = None  # of generated labels: no model can beat them
    weights: NDArray[np.float32] | None = None  # (rows,): times the loss of a row in training

    @property
    def rows(self) -> int:
        """Number of samples."""
        return len(self.labels)

    @property
    def tokens(self) -> int:
        """Number of ids of all fields."""
        return sum(field.size for field in self.fields)

    @cached_property
    def token_counts(self) -> NDArray[np.int64]:
        """Count how often each token occurs in the training rows, field after field."""
        counts, column = [], 0
        for field in self.fields:
            ids = self.ids[self.splits.train, column : column + field.width].reshape(-1)
            counts.append(np.bincount(ids[ids >= 0], minlength=field.size))
            lowest = 0 if field.width == 1 else ABSENT
            if len(counts[-1]) > field.size or ids.min(initial=0) < lowest:
                raise DataError(f"{self.name} has ids that are out of range for field {field.name}")
            column += field.width
        return np.concatenate(counts)

    @cached_property
    def fingerprint(self) -> str:
        """A digest that tells it from other data, other labels and other training rows."""
        digest = hashlib.blake2b(repr(self.fields).encode(), digest_size=16)
        weights = () if self.weights is None else (self.weights,)
        some = self.ids[:: 1 + self.rows // 100_000]
        for array in (self.splits.train, self.labels, some, *weights):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """Return what ``results.json`` says of it."""
        return {
            "name": self.name,
            "rows": self.rows,
            "fields": len(self.fields),
            "tokens": self.tokens,
            "positive_rate": float(self.labels.mean()),
        }


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
        """Yield the examples of ``days[first:last]``, from a position on, perhaps in earlier days.

        They are read or made ahead by other threads, a bounded number of chunks; closing the
        iterator stops these. Neither chunks nor their order depend on timing.
        """

    def summary(self) -> dict[str, Any]:
        """Return what ``results.json`` says of it."""


def describe(stream: Stream, rows: int | None, encoding: str) -> dict[str, Any]:
    """Return the summary of a stream, of so many rows if that is known."""
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


def batches(chunks: Iterable[Chunk], size: int) -> Iterator[Batch]:
    """Cut the examples of all chunks into batches of ``size``; only the last may be smaller.

    Where chunks begin and end makes no difference. A batch that lies within a chunk is a view.
    """
    parts: list[tuple[Chunk, int, int]] = []
    wanted = size
    for chunk in chunks:
        begin, rows = 0, len(chunk.labels)
        while begin < rows:
            end = min(begin + wanted, rows)
            parts.append((chunk, begin, end))
            wanted -= end - begin
            begin = end
            if wanted == 0:
                yield _batch(parts)
                parts, wanted = [], size
    if parts:
        yield _batch(parts)


def _batch(parts: list[tuple[Chunk, int, int]]) -> Batch:
    last, _, end = parts[-1]
    ids = [chunk.ids[begin:end] for chunk, begin, end in parts]
    labels = [chunk.labels[begin:end] for chunk, begin, end in parts]
    return Batch(
        ids[0] if len(ids) == 1 else np.concatenate(ids),
        labels[0] if len(labels) == 1 else np.concatenate(labels),
        np.repeat([chunk.day for chunk, _, _ in parts], [end - begin for _, begin, end in parts]),
        last.position(end - 1),
        last.done,
    )
