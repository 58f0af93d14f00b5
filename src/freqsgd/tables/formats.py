"""The kinds of files that samples are read from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from freqsgd.errors import DataError
from freqsgd.files import no_file
from freqsgd.tables.dialect import BY_NAME, Dialect

__all__ = [
    "CRITEO",
    "CRITEO_COLUMNS",
    "MOVIELENS",
    "MOVIELENS_COLUMNS",
    "Parquet",
    "TextFormat",
    "data_suffix",
    "format_for",
    "format_of",
    "list_files",
    "refuse_parquet",
    "split_type",
]


@dataclass(frozen=True)
class TextFormat:
    """Rows of text, one sample each."""

    separator: str
    quoted: bool = False  # cells in quotes may hold separators and newlines
    layouts: tuple[tuple[str, ...], ...] = ()  # of a known dataset's files without a header
    columns: tuple[str, ...] = ()  # names of the columns, for other files without a header
    typed: bool = False  # names are followed by types, as in RecBole's files: user_id:token

    @property
    def has_header(self) -> bool:
        """Whether the first line names the columns."""
        return not (self.layouts or self.columns)


@dataclass(frozen=True)
class Parquet:
    """Apache Parquet."""


MOVIELENS_COLUMNS = ("user", "movie", "rating", "timestamp")
CRITEO_COLUMNS = (
    "label",
    *(f"I{number}" for number in range(1, 14)),
    *(f"C{number}" for number in range(1, 27)),
)
MOVIELENS = TextFormat("::", layouts=tuple(MOVIELENS_COLUMNS[:count] for count in (4, 3, 2)))
CRITEO = TextFormat("\t", layouts=(CRITEO_COLUMNS, CRITEO_COLUMNS[1:]))

_CSV, _TSV, _INTER = TextFormat(",", quoted=True), TextFormat("\t"), TextFormat("\t", typed=True)
_BY_SUFFIX: dict[str, TextFormat | Parquet] = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".tsv": _TSV,
    ".tsv.gz": _TSV,
    ".txt": _TSV,
    ".txt.gz": _TSV,
    ".inter": _INTER,
    ".inter.gz": _INTER,
    ".parquet": Parquet(),
}
_BY_KIND = {"movielens-1m": MOVIELENS, "criteo": CRITEO}
_TYPES = ("token", "token_seq", "float", "float_seq")


def format_for(kind: str, path: Path, dialect: Dialect = BY_NAME) -> TextFormat | Parquet:
    """The format of a file of a kind: a known dataset's, or that of a "table".

    A dialect goes before a known dataset's format.
    """
    known = kind in _BY_KIND and dialect == BY_NAME
    return _BY_KIND[kind] if known else format_of(path, dialect)


def split_type(name: str) -> tuple[str, str]:
    """The name of a column and its type, which may be "".

    Example:
        >>> split_type("user_id:token"), split_type("12:30")
        (('user_id', 'token'), ('12:30', ''))
    """
    plain, _, kind = name.rpartition(":")
    return (plain, kind) if plain and kind in _TYPES else (name, "")


def data_suffix(path: Path) -> str:
    """The end of a data file's name, which tells its kind; "" for any other file."""
    suffix = _suffix(path)
    return suffix if suffix in _BY_SUFFIX else ""


def _suffix(path: Path) -> str:
    return "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()


def format_of(path: Path, dialect: Dialect = BY_NAME) -> TextFormat | Parquet:
    """The format of a file, by the end of its name; of a text file, also by the dialect."""
    form, separator = _BY_SUFFIX.get(_suffix(path)), dialect.separator
    if form is None and separator is None:
        raise DataError(
            f"{path}: cannot tell what kind of file this is; its name must end with one of "
            f"{', '.join(_BY_SUFFIX)}, or say with --separator what stands between its cells"
        )
    if dialect == BY_NAME or isinstance(form, Parquet):
        assert form
        return form
    form = form or TextFormat(str(separator))
    separator = separator or form.separator
    quoted = form.quoted or separator in (",", ";")
    return replace(
        form,
        separator=separator,
        quoted=quoted and len(separator.encode()) == 1,
        columns=dialect.columns,
    )


def list_files(path: Path) -> tuple[Path, ...]:
    """The file itself, or the data files of a folder in the order of their names."""
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise no_file(path)
    entries = sorted(entry for entry in path.iterdir() if data_suffix(entry))
    files = [entry for entry in entries if entry.is_file()]
    for entry in entries:
        if entry.exists() and not (entry.is_file() or entry.is_dir()):
            raise no_file(entry)
    if not files:
        raise DataError(f"{path}: the folder holds no file that ends with {', '.join(_BY_SUFFIX)}")
    kinds = sorted({_suffix(file).removesuffix(".gz") for file in files})
    if len(kinds) > 1:
        raise DataError(
            f"{path}: the folder holds files of several kinds ({', '.join(kinds)}); "
            "keep one kind in it, or name a single file"
        )
    return tuple(files)


def refuse_parquet(files: Iterable[Path], dialect: Dialect) -> None:
    """Raise if a dialect that the user gave has no meaning for one of the files."""
    for path in files:
        if dialect != BY_NAME and data_suffix(path) == ".parquet":
            flag = "--columns" if dialect.separator is None else "--separator"
            raise DataError(f"{path}: {flag} is for text files; a Parquet file tells its columns")
