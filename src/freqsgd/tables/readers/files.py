"""Find the files that a path names, by days if these are asked for, and open them by kind."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path

from freqsgd.errors import DataError
from freqsgd.files import no_file
from freqsgd.tables.catalog import file_layout
from freqsgd.tables.readers.dialect import BY_NAME, Dialect, TextFormat
from freqsgd.tables.readers.reader import ParquetReader, Reader
from freqsgd.tables.readers.text import TextReader

_TEXT = {
    ".csv": TextFormat(",", quoted=True),
    ".tsv": TextFormat("\t"),
    ".txt": TextFormat("\t"),
    ".inter": TextFormat("\t", typed=True),
}
_PARQUET = ".parquet"
SUFFIXES = (*(suffix + packed for suffix in _TEXT for packed in ("", ".gz")), _PARQUET)


def open_reader(path: Path, dialect: Dialect = BY_NAME, kind: str = "table") -> Reader:
    """Return the reader of a file, by the end of its name; of a text file, also by the dialect.

    Nothing is read yet.

    Args:
        path: of the file
        dialect: how it is laid out if it is text; goes before a known dataset's layout
        kind: a dataset that is known by name, or a "table"
    """
    layout, suffix = file_layout(kind), data_suffix(path)
    if layout and dialect == BY_NAME:
        return TextReader(path, layout)
    if suffix == _PARQUET:
        return ParquetReader(path)
    if not suffix and dialect.separator is None:
        raise DataError(
            f"{path}: cannot tell what kind of file this is; its name must end with one of "
            f"{', '.join(SUFFIXES)}, or say with --separator what stands between its cells"
        )
    form = _TEXT.get(suffix.removesuffix(".gz")) or TextFormat(str(dialect.separator))
    return TextReader(path, form if dialect == BY_NAME else form.spoken(dialect))


def data_suffix(path: Path) -> str:
    """Return the end of a data file's name, which tells its kind; "" for any other file."""
    suffix = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()
    return suffix if suffix in SUFFIXES else ""


def refuse_parquet(files: Iterable[Path], dialect: Dialect) -> None:
    """Raise if a dialect that the user gave has no meaning for one of the files."""
    for path in files:
        if dialect != BY_NAME and data_suffix(path) == _PARQUET:
            flag = "--columns" if dialect.separator is None else "--separator"
            raise DataError(f"{path}: {flag} is for text files; a Parquet file tells its columns")


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


def open_tables(
    path: str, dialect: Dialect = BY_NAME, remembered: Dialect = BY_NAME, kind: str = "table"
) -> tuple[Reader, ...]:
    """Return the readers of the files that a path names, as ``list_files`` says.

    Args:
        path: of files
        dialect: how they are laid out if they are text, as the user says
        remembered: the dialect of those that a model was trained on (``Dialect.beside``)
        kind: as for ``open_reader``
    """
    known = dialect.beside(remembered)
    files = list_files(path, known)
    refuse_parquet(files, dialect)
    return tuple(open_reader(file, known, kind) for file in files)


def named_paths(path: str) -> list[Path]:
    """Return the files and folders that a path names, which may have wildcards, to keep them."""
    if Path(path).exists() or not glob.has_magic(path):
        return [Path(path)]
    return [Path(match) for match in glob.glob(path)]


def data_name(path: str) -> str:
    """Return what data is called: the last part of its path that has no wildcards."""
    if Path(path).exists() or not glob.has_magic(path):
        return Path(path).resolve().name.partition(".")[0]
    plain = [part for part in Path(path).absolute().parts if not glob.has_magic(part)]
    return plain[-1].partition(".")[0]


def _data_files(folder: Path) -> tuple[Path, ...]:
    """List the data files of a folder, which are of one kind."""
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
    """List the data files of a folder, of which there must be some."""
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
    """Find the days that a path names, in the natural order of their names: 2 comes before 10.

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
    """Find a file or folder for each day."""
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
    """List the folders in a folder if they hold the data, else its files."""
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
    """Return whether it is one of the files that tools leave beside data."""
    return path.name.startswith((".", "_"))


def _files(place: Path, dialect: Dialect) -> tuple[Path, ...]:
    if place.is_file():
        open_reader(place, dialect)
        return (place,)
    return tuple(sorted(_some_files(place), key=lambda file: _natural(file.name)))


def _names(places: Sequence[Path]) -> list[str]:
    """Name places by what they differ in: paths from the folder that they share."""
    shared = os.path.commonpath([place.parent.absolute() for place in places])
    return [_without_suffix(place.absolute().relative_to(shared), place) for place in places]


def _without_suffix(name: Path, place: Path) -> str:
    return str(name)[: -len(data_suffix(place)) or None] if place.is_file() else str(name)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts names by the numbers in them."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts if part]


_DATE = re.compile(r"(?<![0-9])([0-9]{4})([-_]?)([0-9]{2})\2([0-9]{2})(?![0-9])")
_NUMBER = re.compile(r"[0-9]+")
_SHOWN = 5


def check_gaps(path: str, names: Sequence[str], *, allow_missing: bool) -> None:
    """Raise if names that are alike but for one date or number skip one, or have one twice."""
    numbered = _numbered(names, _DATE) or _numbered(names, _NUMBER)
    missing: list[str] = []
    for (before, first), (after, second) in pairwise(numbered):
        if before == after:
            raise DataError(
                f"{path}: {first.string} and {second.string} are the same day; keep one of them"
            )
        missing += [_renamed(first, day) for day in range(before + 1, after)[: _SHOWN + 1]]
    if missing and not allow_missing:
        shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        begin, end = numbered[0][1].string, numbered[-1][1].string
        raise DataError(
            f"{path}: between {begin} and {end} these days are missing: {shown}; add them, or "
            "allow it with --allow-missing-days"
        )


def _numbered(names: Sequence[str], pattern: re.Pattern[str]) -> list[tuple[int, re.Match[str]]]:
    """Sort names by the one match of a pattern in which they differ; [] if they differ in more."""
    found = [list(pattern.finditer(name)) for name in names]
    if len({len(matches) for matches in found}) > 1:
        return []
    columns = (each for each in zip(*found, strict=True) if len({match[0] for match in each}) > 1)
    matches = next(columns, ())
    if len({_with(match, "*") for match in matches}) != 1:
        return []
    try:
        return sorted(
            ((_day(match), match) for match in matches), key=lambda m: (m[0], m[1].string)
        )
    except ValueError:  # there is no such date
        return []


def _day(match: re.Match[str]) -> int:
    """Return the number of a day, which is that of its date where it has one."""
    if match.re is _DATE:
        return date(int(match[1]), int(match[3]), int(match[4])).toordinal()
    return int(match[0])


def _renamed(match: re.Match[str], day: int) -> str:
    """Return the name of another day, written as the one that was matched."""
    if match.re is _DATE:
        return _with(match, date.fromordinal(day).strftime(match[2].join(("%Y", "%m", "%d"))))
    return _with(match, f"{day:0{len(match[0])}}")


def _with(match: re.Match[str], text: str) -> str:
    """Return the name with another text in place of the match."""
    return match.string[: match.start()] + text + match.string[match.end() :]
