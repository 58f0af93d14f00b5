"""Stream the examples of files of consecutive days."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from freqsgd.errors import DamagedFileError, DataError, DataWarning
from freqsgd.prefetch import ahead
from freqsgd.tables.dataset import describe
from freqsgd.tables.encoders.columns import Target, check_table, table_columns
from freqsgd.tables.encoders.encoder import DESCRIPTION, Encoder
from freqsgd.tables.encoders.hashing import HashEncoder, open_encoder
from freqsgd.tables.encoders.samples import MalformedRows, read_samples
from freqsgd.tables.fields import Chunk, Position
from freqsgd.tables.readers.dialect import BY_NAME
from freqsgd.tables.readers.files import Day, data_name, find_days, open_reader, refuse_parquet
from freqsgd.tables.readers.reader import Reader
from freqsgd.tables.spec import StreamOptions, parse_rows


class _File(NamedTuple):
    number: int
    day: int
    table: Reader
    size: int  # bytes


class FileStream:
    """The rows of files, read when they are needed, in bounded memory.

    Args:
        options: how they are read
        days: the name of each day, and its tables
        encoder: turns their columns into ids
        skipped: files that were left out before, and why

    Raises:
        DataError: a file has not the columns, or not of the right kind
    """

    def __init__(
        self,
        options: StreamOptions,
        days: Sequence[tuple[str, Sequence[Reader]]],
        encoder: Encoder | HashEncoder,
        skipped: list[str],
    ) -> None:
        self.name = data_name(str(options.path)) or "stream"
        self.encoder, self.fields, self.skipped = encoder, encoder.fields, skipped
        self.days = tuple(day for day, _ in days)
        self._options = options
        self._target = Target(str(options.label), options.positive_above)
        found = [(day, table) for day, (_, tables) in enumerate(days) for table in tables]
        self._files = [
            _File(number, day, table, table.path.stat().st_size)
            for number, (day, table) in enumerate(found)
        ]
        for file in self._files:
            check_table(file.table, encoder.columns, self._target.columns())

    @property
    def fingerprint(self) -> str:
        """Tells the data and its encoding from others."""
        files = [
            (self.days[day], table.path.name, size, table.path.stat().st_mtime_ns)
            for _, day, table, size in self._files
        ]
        parts: tuple[Any, ...] = (files, repr(self._target), self.encoder.fingerprint)
        if self.encoder.dialect != BY_NAME:
            parts += (repr(self.encoder.dialect),)
        return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()

    def summary(self) -> dict[str, Any]:
        """Return what ``results.json`` says of it."""
        hashed = isinstance(self.encoder, HashEncoder)
        return describe(self, self._rows, "hash" if hashed else "dictionary")

    @cached_property
    def _rows(self) -> int | None:
        """Of all files, malformed ones included; None if these would have to be read."""
        counts = [file.table.count() for file in self._files]
        return None if None in counts else sum(filter(None, counts))

    def chunks(self, first: int, last: int, start: Position | None = None) -> Iterator[Chunk]:
        """Yield the examples of ``days[first:last]``, from a position on.

        One thread reads, another encodes, each one block ahead.
        """
        return ahead(self._chunks(first, last, start or Position(0, 0)))

    def _chunks(self, first: int, last: int, start: Position) -> Iterator[Chunk]:
        malformed = MalformedRows(self._options.max_bad_rows, start.dropped)
        days = self.days[first:last]
        between = f"days {days[0]} to {days[-1]}" if len(days) > 1 else f"day {''.join(days)}"
        coder = self.encoder.coder(f"{self.name}, {between}")
        asked = [file for file in self._files if first <= file.day < last]
        size, before = max(sum(file.size for file in asked), 1), 0
        for file in asked:
            if file.number >= start.file:
                after = start.row if file.number == start.file else 0
                for chunk in self._readable(
                    read_samples(file.table, coder, malformed, self._target, after)
                ):
                    if len(chunk.ids) or len(chunk.malformed):
                        done = (before + chunk.done * file.size) / size
                        yield replace(chunk, day=file.day, file=file.number, done=done)
            before += file.size
        for message in malformed.messages() + coder.messages():
            warnings.warn(message, DataWarning, stacklevel=2)

    def _readable(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Yield the chunks of a file; of a damaged one, if it may be skipped, the first ones."""
        try:
            yield from chunks
        except DamagedFileError as error:
            if not self._options.skip_bad_files:
                raise _refusal(error) from error
            if str(error) not in self.skipped:
                self.skipped.append(str(error))
                warnings.warn(f"{error}\nThe rest was left out.", DataWarning, stacklevel=2)


def _refusal(error: DamagedFileError) -> DataError:
    """Return what to say of a damaged file that may not be skipped."""
    return DataError(f"{error}, or leave out what cannot be read with --skip-bad-files")


def open_days(options: StreamOptions) -> FileStream:
    """Open the days of files that options name, and look at the columns of all of them."""
    path, encoder = str(options.path), None
    if options.dictionary is not None:
        folder = Path(options.dictionary)
        if not (folder / DESCRIPTION).is_file():
            raise DataError(
                f"--dictionary must name the folder of a trained model: {folder} is none"
            )
        encoder = open_encoder(folder)
    dialect = options.dialect.beside(encoder.dialect if encoder else BY_NAME)
    open_file = partial(open_reader, dialect=dialect, kind=encoder.kind if encoder else "table")
    days = find_days(path, allow_missing=options.allow_missing_days, dialect=dialect)
    files = [file for day in days for file in day.files]
    refuse_parquet(files, options.dialect)
    options = options.without_types(open_file(files[0]))
    tables, skipped = _readable_days(days, open_file, skip_bad_files=options.skip_bad_files)
    if encoder:
        encoder.dialect = dialect  # saved with the model that is trained
    else:
        rows = parse_rows(options.hash_rows, [*options.features, *options.numeric])
        readers = [table for _, of_day in tables for table in of_day]
        columns = table_columns(
            readers, options.features, options.numeric, others=[str(options.label)], whole=False
        )
        encoder = HashEncoder(columns, rows, dialect=dialect)
    return FileStream(options, tables, encoder, skipped)


def _readable_days(
    days: Sequence[Day], open_file: Callable[[Path], Reader], *, skip_bad_files: bool
) -> tuple[list[tuple[str, list[Reader]]], list[str]]:
    """Open all files but damaged ones; return days and tables, and what is wrong with those.

    A day of which no file is left is no day, so that the last one is one to evaluate on.
    """
    readable, skipped = [], []
    for day in days:
        tables = []
        for path in day.files:
            try:
                table = open_file(path)
                table.schema()
                tables.append(table)
            except DamagedFileError as error:
                if not skip_bad_files:
                    raise _refusal(error) from error
                skipped.append(str(error))
                warnings.warn(f"{error}\nIt was left out.", DataWarning, stacklevel=2)
        if tables:
            readable.append((day.name, tables))
    if not readable:
        raise DataError(f"{skipped[0]}\nNo file is left.")
    return readable, skipped
