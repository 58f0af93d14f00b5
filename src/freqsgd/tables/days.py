"""Find the files that a path names: a file, a folder, files of days, or wildcards."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from freqsgd.errors import DataError
from freqsgd.files import no_file
from freqsgd.tables.dialect import BY_NAME, Dialect
from freqsgd.tables.formats import SUFFIXES, data_suffix, open_reader


def list_files(path: str, dialect: Dialect = BY_NAME) -> tuple[Path, ...]:
    """Return the files that a path names, in order.

    These are the file itself, or the data files of a folder in the order of their names. Of a
    folder without any, and with wildcards, they are the files of all days (``find_days``).
    """
    folder = Path(path)
    if folder.is_file():
        return (folder,)
    if folder.is_dir() and (files := _data_files(folder)):
        return files
    days = find_days(path, allow_missing=True, dialect=dialect)
    return tuple(file for day in days for file in day.files)


def named_paths(path: str) -> list[Path]:
    """Return the files and folders that a path names, which may have wildcards, to keep them."""
    if Path(path).exists() or not glob.has_magic(path):
        return [Path(path)]
    return [Path(match) for match in glob.glob(path)]


def data_name(path: str) -> str:
    """What data is called: the last part of its path that has no wildcards."""
    if Path(path).exists() or not glob.has_magic(path):
        return Path(path).resolve().name.partition(".")[0]
    plain = [part for part in Path(path).absolute().parts if not glob.has_magic(part)]
    return plain[-1].partition(".")[0]


def _data_files(folder: Path) -> tuple[Path, ...]:
    """The data files of a folder, which are of one kind."""
    entries = sorted(entry for entry in folder.iterdir() if data_suffix(entry))
    for entry in entries:
        if entry.exists() and not (entry.is_file() or entry.is_dir()):
            raise no_file(entry)
    files = tuple(entry for entry in entries if entry.is_file())
    kinds = sorted({data_suffix(file).removesuffix(".gz") for file in files})
    if len(kinds) > 1:
        raise DataError(
            f"{folder}: the folder holds files of several kinds ({', '.join(kinds)}); "
            "keep one kind in it, or name a single file"
        )
    return files


def _some_files(folder: Path) -> tuple[Path, ...]:
    """The data files of a folder, of which there must be some."""
    if files := _data_files(folder):
        return files
    raise DataError(f"{folder}: the folder holds no file that ends with {', '.join(SUFFIXES)}")


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
    return folders or list(_some_files(folder))


def _is_hidden(path: Path) -> bool:
    """Whether it is one of the files that tools leave beside data."""
    return path.name.startswith((".", "_"))


def _files(place: Path, dialect: Dialect) -> tuple[Path, ...]:
    if place.is_file():
        open_reader(place, dialect)
        return (place,)
    return tuple(sorted(_some_files(place), key=lambda file: _natural(file.name)))


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
