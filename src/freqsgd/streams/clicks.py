"""A generated click log as a stream of examples."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import Field
from freqsgd.streams.click_log import BLOCK_ROWS, CLICKS_SMALL, ClickBlock, ClickLog
from freqsgd.streams.stream import Chunk, Position

if TYPE_CHECKING:
    from freqsgd.streams.hash_encoder import HashEncoder

__all__ = ["CLICKS_SMALL", "ClickLog", "ClickStream", "Truth", "blocks_of"]

_THREADS = 2
_AHEAD = 4  # blocks that are made or being made while one is used
_BINS = 1 << 16  # of probabilities, to rank them
_FORMAT = 1  # of the fingerprint: rises when the same log gets other rows


class Truth(NamedTuple):
    """What the true probabilities score: no model can do better but by chance."""

    rows: int
    loss: float
    ne: float | None  # None where there is one class only
    auc: float | None


def blocks_of(log: ClickLog, first: int, last: int, number: int = 0) -> Iterator[ClickBlock]:
    """The blocks of ``days[first:last]`` in order, from a number of the first day on.

    They are made ahead by two threads; closing the iterator stops these.
    """
    jobs = (
        partial(log.block, day, each)
        for day in range(first, last)
        for each in range(number if day == first else 0, log.blocks)
    )
    yield from _in_order(jobs)


def _in_order(jobs: Iterator[Callable[[], ClickBlock]]) -> Iterator[ClickBlock]:
    """What the jobs return; a few of them run ahead."""
    pool = ThreadPoolExecutor(_THREADS, "clicks")
    try:
        coming: deque[Future[ClickBlock]] = deque(map(pool.submit, islice(jobs, _AHEAD)))
        while coming:
            block = coming.popleft().result()
            coming.extend(map(pool.submit, islice(jobs, 1)))
            yield block
    finally:
        pool.shutdown(cancel_futures=True)


class ClickStream:
    """A click log, fed directly.

    Args:
        log: what is generated
        hash_rows: rows of the tables, one number for each feature, to which tokens are hashed as
            they would be if they were read from files; None: the tokens themselves are the ids

    Example:
        >>> stream = ClickStream(ClickLog((50, 20), (1.0, 1.0), days=2, rows=1000))
        >>> [chunk.ids.shape for chunk in stream.chunks(0, 2)]
        [(1000, 2), (1000, 2)]
    """

    def __init__(self, log: ClickLog, name: str = "clicks") -> None:
        self.log, self.name = log, name
        self.skipped: list[str] = []
        self.encoder: HashEncoder | None = None
        names = feature_names(log)
        self.fields = tuple(map(Field, names, log.tokens))
        self.days = day_names(log)

    @property
    def fingerprint(self) -> str:
        """Tells the log and its encoding from others."""
        described = repr((_FORMAT, self.log, self.fields))
        return blake2b(described.encode(), digest_size=16).hexdigest()

    def chunks(self, first: int, last: int, start: Position | None = None) -> Iterator[Chunk]:
        """The examples of ``days[first:last]``, from a position on; a block is a chunk."""
        begin = Position(first, 0) if start is None else start
        day, passed = begin.file + begin.row // self.log.rows, begin.row % self.log.rows
        number = passed // BLOCK_ROWS
        asked = max((last - first) * self.log.rows, 1)
        cut = passed % BLOCK_ROWS
        for block in blocks_of(self.log, day, last, number):
            stop = number * BLOCK_ROWS + len(block.labels)
            yield Chunk(
                ids=self._encoded(block.tokens[cut:]),
                labels=block.labels[cut:],
                day=day,
                file=day,
                numbers=np.arange(number * BLOCK_ROWS + cut + 1, stop + 1),
                done=((day - first) * self.log.rows + stop) / asked,
                dropped=0,
            )
            cut, number = 0, number + 1
            if number == self.log.blocks:
                day, number = day + 1, 0

    def _encoded(self, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
        return tokens

    def summary(self) -> dict[str, Any]:
        """What ``results.json`` says of it."""
        return {
            "name": self.name,
            "kind": "stream",
            "days": list(self.days),
            "fields": len(self.fields),
            "tokens": sum(field.size for field in self.fields),
            "rows": self.log.days * self.log.rows,
            "encoding": "ids" if self.encoder is None else "hash",
        }

    def truth(self, first: int, last: int) -> Truth:
        """What the true probabilities score on ``days[first:last]``."""
        loss, counts = 0.0, np.zeros((2, _BINS), np.int64)
        for block in blocks_of(self.log, first, last):
            likely = block.probabilities.astype(np.float64)
            loss -= float(np.log(np.where(block.labels, likely, 1 - likely)).sum())
            bins = np.minimum((likely * _BINS).astype(np.int64), _BINS - 1)
            for label in (0, 1):
                counts[label] += np.bincount(bins[block.labels == label], minlength=_BINS)
        negatives, positives = map(int, counts.sum(axis=1))
        rows = negatives + positives
        if not (negatives and positives):
            return Truth(rows, loss / max(rows, 1), None, None)
        rate = positives / rows
        entropy = -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate))
        below = np.cumsum(counts[0]) - counts[0] / 2  # negatives of a bin count half
        return Truth(
            rows,
            loss / rows,
            loss / rows / entropy,
            float(counts[1] @ below) / (negatives * positives),
        )


def day_names(log: ClickLog) -> tuple[str, ...]:
    """Names of the days, and of their folders."""
    digits = max(2, len(str(log.days - 1)))
    return tuple(f"day-{day:0{digits}}" for day in range(log.days))


def feature_names(log: ClickLog) -> tuple[str, ...]:
    """Names of the features, and of their columns."""
    digits = max(2, len(str(len(log.sizes))))
    return tuple(f"f{n:0{digits}}" for n in range(1, len(log.sizes) + 1))
