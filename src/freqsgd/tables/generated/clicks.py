"""A generated click log as a stream of examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.files import replacing
from freqsgd.prefetch import in_order
from freqsgd.tables.dataset import describe
from freqsgd.tables.encoders.columns import Column
from freqsgd.tables.encoders.hashing import HashEncoder, hash_integers
from freqsgd.tables.fields import Chunk, Field, Position
from freqsgd.tables.generated.click_log import BLOCK_ROWS, ClickBlock, ClickLog
from freqsgd.tables.streaming_metrics import Tally

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
        self.encoder = (
            None if hash_rows is None else HashEncoder([Column(name) for name in names], hash_rows)
        )
        self.skipped: list[str] = []

    @property
    def fingerprint(self) -> str:
        """Tells the log and its encoding from others."""
        described = repr((_FORMAT, self.log, self.fields, self.encoder is None))
        return blake2b(described.encode(), digest_size=16).hexdigest()

    def chunks(self, first: int, last: int, start: Position | None = None) -> Iterator[Chunk]:
        """Yield the examples of ``days[first:last]``, from a position on; a block is a chunk."""
        begin = first * self.log.rows
        if start is not None:
            begin = max(begin, start.file * self.log.rows + start.row)
        yield from in_order(
            partial(self._chunk, day, number, begin, first, last)
            for day, number in _places(self.log, begin, last)
        )

    def _chunk(self, day: int, number: int, begin: int, first: int, last: int) -> Chunk:
        """Return the rows of a block that do not come before ``begin``, counted over all days."""
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
        """Return what ``results.json`` says of it."""
        rows = self.log.days * self.log.rows
        return describe(self, rows, "ids" if self.encoder is None else "hash")

    def truth(self, first: int, last: int) -> Truth:
        """Return what the true probabilities score on ``days[first:last]``."""
        tally = Tally()
        for block in blocks_of(self.log, first, last):
            tally.add(block.log_odds, block.labels)
        found = tally.metrics()
        return Truth(sum(tally.counts), found["loss"], found["ne"], found["auc"])


def blocks_of(log: ClickLog, first: int, last: int) -> Iterator[ClickBlock]:
    """Return the blocks of ``days[first:last]`` in order, made ahead by other threads."""
    places = _places(log, first * log.rows, last)
    return in_order(partial(log.block, day, number) for day, number in places)


def _places(log: ClickLog, begin: int, last: int) -> Iterator[tuple[int, int]]:
    """Day and number of the blocks from a row on, counted over all days."""
    day, row = divmod(begin, log.rows)
    number = row // BLOCK_ROWS
    while day < last:
        yield day, number
        day, number = (day, number + 1) if number + 1 < log.blocks else (day + 1, 0)


PART_ROWS = 1 << 20
_GROUP_ROWS = 1 << 18
_TILE = 1 << 11  # rows that stay in the cache while they become columns


def write_clicks(
    log: ClickLog, folder: Path, progress: Callable[[int, int], None] | None = None
) -> list[Path]:
    """Write ``day-00/part-000.parquet`` and so on, with the columns label, f01, f02, ...

    A file is written whole or not at all. Files hold a million rows at most.

    Args:
        log: what is written
        folder: made if need be; must be empty
        progress: called with the rows that are written and all there are

    Returns:
        the files
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise DataError(f"{folder} is not empty: name a new folder")
        for path, frame, done in _parts(log, folder):
            path.parent.mkdir(exist_ok=True)
            with replacing(path) as temporary:
                frame.write_parquet(temporary, compression="lz4", row_group_size=_GROUP_ROWS)
            written.append(path)
            if progress:
                progress(done, log.days * log.rows)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"{folder}: cannot be written ({error}); {len(written)} files are there, each whole: "
            "make room, or name another folder"
        ) from error
    return written


def _parts(log: ClickLog, folder: Path) -> Iterator[tuple[Path, pl.DataFrame, int]]:
    """Each file, what goes into it, and how many rows there are up to its end."""
    done = 0
    for day, name in enumerate(log.day_names):
        blocks = blocks_of(log, day, day + 1)
        number = 0
        while some := list(islice(blocks, PART_ROWS // BLOCK_ROWS)):
            frame = _frame(log, some)
            done += len(frame)
            yield folder / name / f"part-{number:03}.parquet", frame, done
            number += 1


def _frame(log: ClickLog, blocks: list[ClickBlock]) -> pl.DataFrame:
    labels = np.concatenate([block.labels for block in blocks])
    columns = np.empty((len(log.sizes), len(labels)), np.int32)
    start = 0
    for block in blocks:
        for some in np.array_split(block.tokens, -(-len(block.tokens) // _TILE)):
            columns[:, start : start + len(some)] = some.T
            start += len(some)
    return pl.DataFrame({"label": labels, **dict(zip(log.feature_names, columns, strict=True))})
