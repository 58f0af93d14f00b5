"""The kinds of files that samples are read from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from freqsgd.data.dataset import DataError

__all__ = [
    "CRITEO_COLUMNS",
    "MOVIELENS_COLUMNS",
    "Parquet",
    "TextFormat",
    "data_suffix",
    "format_for",
    "format_of",
    "list_files",
]


@dataclass(frozen=True)
class TextFormat:
    """Rows of text, one sample each."""

    separator: str
    quoted: bool = False  # cells in quotes may hold separators and newlines
    layouts: tuple[tuple[str, ...], ...] = ()  # names of the columns, for files without a header


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

_CSV, _TSV = TextFormat(",", quoted=True), TextFormat("\t")
_BY_SUFFIX: dict[str, TextFormat | Parquet] = {
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".tsv": _TSV,
    ".tsv.gz": _TSV,
    ".txt": _TSV,
    ".txt.gz": _TSV,
    ".parquet": Parquet(),
}


_BY_KIND = {"movielens-1m": MOVIELENS, "criteo": CRITEO}


def format_for(kind: str, path: Path) -> TextFormat | Parquet:
    """The format of a file of a kind: a known dataset's, or by its name that of a "table"."""
    return _BY_KIND[kind] if kind in _BY_KIND else format_of(path)


def data_suffix(path: Path) -> str:
    """The end of a data file's name, which tells its kind; "" for any other file."""
    suffix = _suffix(path)
    return suffix if suffix in _BY_SUFFIX else ""


def _suffix(path: Path) -> str:
    return "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]).lower()


def format_of(path: Path) -> TextFormat | Parquet:
    """The kind of a file, by the end of its name."""
    try:
        return _BY_SUFFIX[_suffix(path)]
    except KeyError:
        raise DataError(
            f"{path}: cannot tell what kind of file this is; "
            f"its name must end with one of {', '.join(_BY_SUFFIX)}"
        ) from None


def list_files(path: Path) -> tuple[Path, ...]:
    """The file itself, or the data files of a folder in the order of their names."""
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise DataError(f"{path}: there is no such file or folder")
    files = sorted(file for file in path.iterdir() if file.is_file() and data_suffix(file))
    if not files:
        raise DataError(f"{path}: the folder holds no file that ends with {', '.join(_BY_SUFFIX)}")
    kinds = sorted({_suffix(file).removesuffix(".gz") for file in files})
    if len(kinds) > 1:
        raise DataError(
            f"{path}: the folder holds files of several kinds ({', '.join(kinds)}); "
            "keep one kind in it, or name a single file"
        )
    return tuple(files)
