"""The days of a stream: which files belong to each, in which order."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freqsgd.data.dataset import DataError
from freqsgd.data.dialect import BY_NAME, Dialect
from freqsgd.data.files import no_file
from freqsgd.data.formats import data_suffix, format_of, list_files
from freqsgd.streams.gaps import check_gaps

__all__ = ["Day", "find_days"]


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
