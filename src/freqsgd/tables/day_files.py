"""Stream the examples of files of consecutive days."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from freqsgd.errors import DamagedFileError, DataError, DataWarning
from freqsgd.tables.coding import MalformedRows, SampleReader, Samples
from freqsgd.tables.columns import Target
from freqsgd.tables.days import Day
from freqsgd.tables.dialect import BY_NAME
from freqsgd.tables.encoder import Encoder
from freqsgd.tables.formats import check_table
from freqsgd.tables.hashing import HashEncoder
from freqsgd.tables.prefetch import ahead
from freqsgd.tables.readers import Reader
from freqsgd.tables.stream import Chunk, Position, describe
from freqsgd.tables.unknown import UnknownValues


class _File(NamedTuple):
    number: int
    day: int
    path: Path
    size: int  # bytes


class FileStream:
    """The rows of files, read when they are needed, in bounded memory.

    Args:
        name: what it is called
        days: the files of each day
        encoder: turns their columns into ids
        target: what labels are made from
        max_bad_rows: malformed rows that may be left out
        skip_bad_files: whether a damaged file is left out from where the damage is, with a warning
        skipped: files that were left out before, and why

    Raises:
        DataError: a file has not the columns, or not of the right kind
    """

    def __init__(
        self,
        name: str,
        days: Sequence[Day],
        encoder: Encoder | HashEncoder,
        target: Target,
        *,
        max_bad_rows: int = 0,
        skip_bad_files: bool = False,
        skipped: Sequence[str] = (),
    ) -> None:
        self.name, self.encoder, self.fields = name, encoder, encoder.fields
        self.days = tuple(day.name for day in days)
        self.skipped = list(skipped)
        self._target, self._max_bad_rows, self._skips = target, max_bad_rows, skip_bad_files
        paths = [(day, path) for day, found in enumerate(days) for path in found.files]
        self._files = [
            _File(number, day, path, path.stat().st_size)
            for number, (day, path) in enumerate(paths)
        ]
        for file in self._files:
            check_table(encoder.open(file.path), encoder.columns, target.columns())

    @property
    def fingerprint(self) -> str:
        """Tells the data and its encoding from others."""
        files = [
            (self.days[file.day], file.path.name, file.size, file.path.stat().st_mtime_ns)
            for file in self._files
        ]
        parts: tuple[Any, ...] = (files, repr(self._target), self.encoder.fingerprint)
        if self.encoder.dialect != BY_NAME:
            parts += (repr(self.encoder.dialect),)
        return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()

    def summary(self) -> dict[str, Any]:
        """What ``results.json`` says of it."""
        hashed = isinstance(self.encoder, HashEncoder)
        return describe(self, self._rows, "hash" if hashed else "dictionary")

    @cached_property
    def _rows(self) -> int | None:
        """Of all files, malformed ones included; None if these would have to be read."""
        total = 0
        for file in self._files:
            rows = self.encoder.open(file.path).count()
            if rows is None:
                return None
            total += rows
        return total

    def chunks(self, first: int, last: int, start: Position | None = None) -> Iterator[Chunk]:
        """The examples of ``days[first:last]``, from a position on.

        One thread reads, another encodes, each one block ahead.
        """
        return ahead(self._chunks(first, last, start or Position(0, 0)))

    def _chunks(self, first: int, last: int, start: Position) -> Iterator[Chunk]:
        malformed = MalformedRows(self._max_bad_rows, start.dropped)
        unknown = UnknownValues(self._place(first, last))
        coder = self.encoder.coder(unknown)
        reader = SampleReader(self.encoder.columns, coder, malformed, self._target)
        asked = [file for file in self._files if first <= file.day < last]
        size, before = max(sum(file.size for file in asked), 1), 0
        for file in asked:
            if file.number >= start.file:
                after = start.row if file.number == start.file else 0
                for samples in self._read(reader, file, after):
                    done = (before + samples.done * file.size) / size
                    if len(samples.codes) or len(samples.malformed):
                        yield _chunk(samples, file, done, malformed.count)
            before += file.size
        if malformed.count > start.dropped:
            warnings.warn(malformed.dropped(), DataWarning, stacklevel=2)
        unknown.warn()

    def _place(self, first: int, last: int) -> str:
        """What ``days[first:last]`` are called in messages."""
        days = self.days[first:last]
        between = f"days {days[0]} to {days[-1]}" if len(days) > 1 else f"day {''.join(days)}"
        return f"{self.name}, {between}"

    def _read(self, reader: SampleReader, file: _File, after: int) -> Iterator[Samples]:
        """The samples of a file; of a damaged one those before the damage, if it may be skipped."""
        try:
            yield from reader.read(self.encoder.open(file.path), after)
        except DamagedFileError as error:
            if not self._skips:
                raise refusal(error) from error
            if str(error) not in self.skipped:
                self.skipped.append(str(error))
                warnings.warn(f"{error}\nThe rest was left out.", DataWarning, stacklevel=2)


def readable_days(
    days: Sequence[Day], open_file: Callable[[Path], Reader], *, skip_bad_files: bool
) -> tuple[tuple[Day, ...], list[str]]:
    """The days without the files that cannot be opened, and what is wrong with those.

    A day of which no file is left is no day, so that the last one is one to evaluate on.
    ``open_file`` gives the reader of a file.

    Raises:
        DataError: there is such a file and it may not be left out, or there are no others
    """
    readable, skipped = [], []
    for day in days:
        files = []
        for path in day.files:
            try:
                open_file(path).schema()
                files.append(path)
            except DamagedFileError as error:
                if not skip_bad_files:
                    raise refusal(error) from error
                skipped.append(str(error))
                warnings.warn(f"{error}\nIt was left out.", DataWarning, stacklevel=2)
        if files:
            readable.append(Day(day.name, tuple(files)))
    if not readable:
        raise DataError(f"{skipped[0]}\nNo file is left.")
    return tuple(readable), skipped


def refusal(error: DamagedFileError) -> DataError:
    """What to say of a damaged file that may not be skipped."""
    return DataError(f"{error}, or leave out what cannot be read with --skip-bad-files")


def _chunk(samples: Samples, file: _File, done: float, dropped: int) -> Chunk:
    return Chunk(
        ids=samples.codes,
        labels=samples.labels,
        day=file.day,
        file=file.number,
        numbers=samples.numbers,
        done=done,
        dropped=dropped,
        malformed=samples.malformed,
    )
