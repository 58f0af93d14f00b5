"""Stream the examples of files of consecutive days."""

from __future__ import annotations

import glob
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from freqsgd.errors import DamagedFileError, DataError, DataWarning
from freqsgd.files import no_file
from freqsgd.tables.coding import MalformedRows, SampleReader, Samples
from freqsgd.tables.columns import Target
from freqsgd.tables.dialect import BY_NAME, Dialect
from freqsgd.tables.encoder import Encoder
from freqsgd.tables.formats import Parquet, TextFormat, data_suffix, format_of, list_files
from freqsgd.tables.hashing import HashEncoder
from freqsgd.tables.prefetch import ahead
from freqsgd.tables.readers import check_file, file_schema, parquet_rows
from freqsgd.tables.stream import Chunk, Position, describe
from freqsgd.tables.unknown import UnknownValues

__all__ = ["Day", "FileStream", "check_gaps", "find_days", "readable_days"]


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
            check_file(file.path, encoder.form(file.path), encoder.columns, target.columns())

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
        if all(isinstance(self.encoder.form(file.path), Parquet) for file in self._files):
            return sum(parquet_rows(file.path) for file in self._files)
        return None

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
            yield from reader.read(file.path, self.encoder.form(file.path), after)
        except DamagedFileError as error:
            if not self._skips:
                raise refusal(error) from error
            if str(error) not in self.skipped:
                self.skipped.append(str(error))
                warnings.warn(f"{error}\nThe rest was left out.", DataWarning, stacklevel=2)


def readable_days(
    days: Sequence[Day], form: Callable[[Path], TextFormat | Parquet], *, skip_bad_files: bool
) -> tuple[tuple[Day, ...], list[str]]:
    """The days without the files that cannot be opened, and what is wrong with those.

    A day of which no file is left is no day, so that the last one is one to evaluate on.
    ``form`` tells the format of a file.

    Raises:
        DataError: there is such a file and it may not be left out, or there are no others
    """
    readable, skipped = [], []
    for day in days:
        files = []
        for path in day.files:
            try:
                file_schema(path, form(path))
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


@dataclass(frozen=True)
class Day:
    """Files of one day."""

    name: str
    files: tuple[Path, ...]


def find_days(
    path: str, *, allow_missing: bool = False, dialect: Dialect = BY_NAME
) -> tuple[Day, ...]:
    """The days that a path names, in the natural order of their names: 2 comes before 10.

    With wildcards every match, a file or a folder of files, is a day; so is every folder in a
    folder, or every file in it, or a single file.

    Raises:
        DataError: there is none, one has no data files, or one is missing in the sequence
    """
    places = _places(path)
    names = _names(places)
    order = sorted(range(len(places)), key=lambda n: _natural(names[n]))
    days = tuple(Day(names[n], _files(places[n], dialect)) for n in order)
    check_gaps(path, [day.name for day in days], allow_missing=allow_missing)
    return days


def _places(path: str) -> list[Path]:
    """A file or folder for each day."""
    if Path(path).is_file():
        return [Path(path)]
    if Path(path).is_dir():
        return _inside(Path(path))
    if not glob.has_magic(path):
        raise no_file(Path(path))
    found = [Path(match) for match in glob.glob(path)]
    found = [place for place in found if not _is_hidden(place)]
    if not found:
        raise DataError(f"{path}: no file or folder matches")
    return found


def _inside(folder: Path) -> list[Path]:
    """The folders in a folder if they hold the data, else its files."""
    entries = [entry for entry in folder.iterdir() if not _is_hidden(entry)]
    folders = [entry for entry in entries if entry.is_dir()]
    files = [entry for entry in entries if entry.is_file() and data_suffix(entry)]
    if folders and files:
        raise DataError(
            f"{folder}: it holds folders ({folders[0].name}) and files ({files[0].name}), so it is "
            "not clear what a day is; keep one of these, or use wildcards"
        )
    return folders or list(list_files(folder))


def _is_hidden(path: Path) -> bool:
    """Whether it is one of the files that tools leave beside data."""
    return path.name.startswith((".", "_"))


def _files(place: Path, dialect: Dialect) -> tuple[Path, ...]:
    if place.is_file():
        format_of(place, dialect)
        return (place,)
    return tuple(sorted(list_files(place), key=lambda file: _natural(file.name)))


def _names(places: Sequence[Path]) -> list[str]:
    """By which the places differ: paths from the folder that they share."""
    shared = os.path.commonpath([place.parent.absolute() for place in places])
    return [_without_suffix(place.absolute().relative_to(shared), place) for place in places]


def _without_suffix(name: Path, place: Path) -> str:
    return str(name)[: -len(data_suffix(place)) or None] if place.is_file() else str(name)


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts names by the numbers in them."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _parts(name)]


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"([0-9]+)", name) if part]


_DATE = re.compile(r"(?<![0-9])([0-9]{4})([-_]?)([0-9]{2})\2([0-9]{2})(?![0-9])")
_NUMBER = re.compile(r"[0-9]+")
_SHOWN = 5


class _Numbered(NamedTuple):
    """A name and the one number or date in it by which it differs from the others."""

    name: str
    number: int
    spell: Callable[[int], str]  # the name with another number


def check_gaps(path: str, names: Sequence[str], *, allow_missing: bool) -> None:
    """Raise if names that are alike but for one number or date skip one, or have one twice."""
    numbered = sorted(_dated(names) or _counted(names), key=lambda each: each.number)
    missing: list[str] = []
    for before, after in pairwise(numbered):
        if before.number == after.number:
            raise DataError(
                f"{path}: {before.name} and {after.name} are the same day; keep one of them"
            )
        gap = range(before.number + 1, after.number)
        missing += map(before.spell, gap[: _SHOWN + 1])
    if missing and not allow_missing:
        shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        raise DataError(
            f"{path}: between {numbered[0].name} and {numbered[-1].name} these days are missing: "
            f"{shown}; add them, or allow it with --allow-missing-days"
        )


def _dated(names: Sequence[str]) -> list[_Numbered]:
    """By their dates; nothing unless each has one, and all else is the same."""
    found = [list(_DATE.finditer(name)) for name in names]
    if not all(len(dates) == 1 for dates in found):
        return []
    matches = [dates[0] for dates in found]
    try:
        days = [date(int(match[1]), int(match[3]), int(match[4])).toordinal() for match in matches]
    except ValueError:
        return []
    return _alike([*map(_dated_name, names, matches, days)], matches)


def _dated_name(name: str, match: re.Match[str], day: int) -> _Numbered:
    form = match[2].join(("%Y", "%m", "%d"))
    return _Numbered(name, day, lambda n: _put(match, date.fromordinal(n).strftime(form)))


def _counted(names: Sequence[str]) -> list[_Numbered]:
    """By the one number in which they differ; nothing if they differ in more."""
    found = [list(_NUMBER.finditer(name)) for name in names]
    if len({len(numbers) for numbers in found}) > 1:
        return []
    columns = [
        matches for matches in zip(*found, strict=True) if len({match[0] for match in matches}) > 1
    ]
    if len(columns) != 1:
        return []
    return _alike([*map(_counted_name, names, columns[0])], columns[0])


def _counted_name(name: str, match: re.Match[str]) -> _Numbered:
    digits = len(match[0])
    return _Numbered(name, int(match[0]), lambda n: _put(match, f"{n:0{digits}}"))


def _put(match: re.Match[str], text: str) -> str:
    return match.string[: match.start()] + text + match.string[match.end() :]


def _alike(numbered: list[_Numbered], matches: Sequence[re.Match[str]]) -> list[_Numbered]:
    """All, or nothing if the names differ in anything else."""
    return numbered if len({_put(match, "*") for match in matches}) == 1 else []
