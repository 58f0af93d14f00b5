"""A generated click log as a stream of examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freqsgd.data.dataset import DataError
from freqsgd.data.fields import Field
from freqsgd.streams.click_log import BLOCK_ROWS, CLICKS_SMALL, ClickBlock, ClickLog
from freqsgd.streams.hashing import hash_integers
from freqsgd.streams.in_order import in_order
from freqsgd.streams.stream import Chunk, Position, describe
from freqsgd.streams.tally import Tally

if TYPE_CHECKING:
    from freqsgd.streams.hash_encoder import HashEncoder

__all__ = ["CLICKS_SMALL", "ClickLog", "ClickStream", "Truth", "blocks_of"]

_FORMAT = 1  # of the fingerprint: rises when the same log gets other rows


class Truth(NamedTuple):
    """What the true probabilities score: no model does better but by chance."""

    rows: int
    loss: float | None  # None where there are no rows
    ne: float | None  # None where there is one class only
    auc: float | None


class ClickStream:
    """A click log, fed directly.

    Args:
        log: what is generated
        hash_rows: rows of the table of each feature, to which tokens are hashed as if they were
            read from files; None: ids are the tokens
        name: what it is called

    Example:
        >>> stream = ClickStream(ClickLog((50, 20), (1.0, 1.0), days=2, rows=1000))
        >>> [chunk.ids.shape for chunk in stream.chunks(0, 2)]
        [(1000, 2), (1000, 2)]
    """

    def __init__(
        self, log: ClickLog, hash_rows: Sequence[int] | None = None, name: str = "clicks"
    ) -> None:
        names = log.feature_names
        if hash_rows is not None and len(hash_rows) != len(names):
            raise DataError(f"{len(hash_rows)} numbers of rows do not fit {len(names)} features")
        self.log, self.name = log, name
        self.days = log.day_names
        self.fields = tuple(map(Field, names, hash_rows or log.tokens))
        self.encoder = None if hash_rows is None else _encoder(names, hash_rows)
        self.skipped: list[str] = []

    @property
    def fingerprint(self) -> str:
        """Tells the log and its encoding from others."""
        described = repr((_FORMAT, self.log, self.fields, self.encoder is None))
        return blake2b(described.encode(), digest_size=16).hexdigest()

    def chunks(self, first: int, last: int, start: Position | None = None) -> Iterator[Chunk]:
        """The examples of ``days[first:last]``, from a position on; a block is a chunk."""
        begin = first * self.log.rows
        if start is not None:
            begin = max(begin, start.file * self.log.rows + start.row)
        yield from in_order(
            partial(self._chunk, day, number, begin, first, last)
            for day, number in _places(self.log, begin, last)
        )

    def _chunk(self, day: int, number: int, begin: int, first: int, last: int) -> Chunk:
        """The rows of a block that do not come before ``begin``, counted over all days."""
        block, rows = self.log.block(day, number), self.log.rows
        before = number * BLOCK_ROWS
        stop = before + len(block.labels)
        cut = max(begin - day * rows - before, 0)
        return Chunk(
            ids=self._encoded(block.tokens[cut:]),
            labels=block.labels[cut:],
            day=day,
            file=day,
            numbers=np.arange(before + cut + 1, stop + 1),
            done=((day - first) * rows + stop) / ((last - first) * rows),
            dropped=0,
        )

    def _encoded(self, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
        if self.encoder is None:
            return tokens
        ids, missing = np.empty_like(tokens), np.empty(0, np.bool_)
        for n, field in enumerate(self.fields):
            hash_integers(tokens[:, n], missing, n, field.size, ids[:, n])
        return ids

    def summary(self) -> dict[str, Any]:
        """What ``results.json`` says of it."""
        rows = self.log.days * self.log.rows
        return describe(self, rows, "ids" if self.encoder is None else "hash")

    def truth(self, first: int, last: int) -> Truth:
        """What the true probabilities score on ``days[first:last]``."""
        tally = Tally()
        for block in blocks_of(self.log, first, last):
            tally.add(block.log_odds, block.labels)
        found = tally.metrics()
        return Truth(sum(tally.counts), found["loss"], found["ne"], found["auc"])


def blocks_of(log: ClickLog, first: int, last: int) -> Iterator[ClickBlock]:
    """The blocks of ``days[first:last]`` in order, made ahead by other threads."""
    places = _places(log, first * log.rows, last)
    return in_order(partial(log.block, day, number) for day, number in places)


def _places(log: ClickLog, begin: int, last: int) -> Iterator[tuple[int, int]]:
    """Day and number of the blocks from a row on, counted over all days."""
    day, row = divmod(begin, log.rows)
    number = row // BLOCK_ROWS
    while day < last:
        yield day, number
        day, number = (day, number + 1) if number + 1 < log.blocks else (day + 1, 0)


def _encoder(names: Sequence[str], rows: Sequence[int]) -> HashEncoder:
    from freqsgd.data.columns import Column
    from freqsgd.streams.hash_encoder import HashEncoder

    return HashEncoder([Column(name) for name in names], rows)
