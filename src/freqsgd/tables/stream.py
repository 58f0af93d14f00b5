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
        name: what it is called
        days: the name of each day, and its tables
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
        days: Sequence[tuple[str, Sequence[Reader]]],
        encoder: Encoder | HashEncoder,
        target: Target,
        *,
        max_bad_rows: int = 0,
        skip_bad_files: bool = False,
        skipped: Sequence[str] = (),
    ) -> None:
        self.name, self.encoder, self.fields = name, encoder, encoder.fields
        self.days = tuple(day for day, _ in days)
        self.skipped = list(skipped)
        self._target, self._max_bad_rows, self._skips = target, max_bad_rows, skip_bad_files
        found = [(day, table) for day, (_, tables) in enumerate(days) for table in tables]
        self._files = [
            _File(number, day, table, table.path.stat().st_size)
            for number, (day, table) in enumerate(found)
        ]
        for file in self._files:
            check_table(file.table, encoder.columns, target.columns())

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
        malformed = MalformedRows(self._max_bad_rows, start.dropped)
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
            if not self._skips:
                raise _refusal(error) from error
            if str(error) not in self.skipped:
                self.skipped.append(str(error))
                warnings.warn(f"{error}\nThe rest was left out.", DataWarning, stacklevel=2)


def _refusal(error: DamagedFileError) -> DataError:
    """Return what to say of a damaged file that may not be skipped."""
    return DataError(f"{error}, or leave out what cannot be read with --skip-bad-files")


def open_days(options: StreamOptions) -> FileStream:
    """Open the days of files that options name, and look at the columns of all of them."""
    path, known = str(options.path), None
    if options.dictionary is not None:
        folder = Path(options.dictionary)
        if not (folder / DESCRIPTION).is_file():
            raise DataError(
                f"--dictionary must name the folder of a trained model: {folder} is none"
            )
        known = open_encoder(folder)
    dialect = options.dialect.beside(known.dialect if known else BY_NAME)
    open_file = partial(open_reader, dialect=dialect, kind=known.kind if known else "table")
    days = find_days(path, allow_missing=options.allow_missing_days, dialect=dialect)
    files = [file for day in days for file in day.files]
    refuse_parquet(files, options.dialect)
    options = options.without_types(open_file(files[0]))
    tables, skipped = _readable_days(days, open_file, skip_bad_files=options.skip_bad_files)
    label, encoder = str(options.label), known
    if encoder:
        encoder.dialect = dialect  # saved with the model that is trained
    else:
        rows = parse_rows(options.hash_rows, [*options.features, *options.numeric])
        readers = [table for _, of_day in tables for table in of_day]
        columns = table_columns(
            readers, options.features, options.numeric, others=[label], whole=False
        )
        encoder = HashEncoder(columns, rows, dialect=dialect)
    return FileStream(
        data_name(path) or "stream",
        tables,
        encoder,
        Target(label, options.positive_above),
        max_bad_rows=options.max_bad_rows,
        skip_bad_files=options.skip_bad_files,
        skipped=skipped,
    )


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
