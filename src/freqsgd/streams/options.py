"""What is asked for as a stream."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from freqsgd.data.dataset import DataError
from freqsgd.data.dialect import BY_NAME, Dialect
from freqsgd.data.formats import format_for, format_of, refuse_parquet
from freqsgd.data.option_checks import check_columns, refuse_options, without_types
from freqsgd.streams.table_rows import parse_rows

if TYPE_CHECKING:
    from freqsgd.data.encoder import Encoder
    from freqsgd.streams.click_log import ClickLog
    from freqsgd.streams.clicks import ClickStream
    from freqsgd.streams.days import Day
    from freqsgd.streams.files import FileStream
    from freqsgd.streams.hash_encoder import HashEncoder
    from freqsgd.streams.stream import Stream

__all__ = ["StreamOptions", "open_stream"]

_CLICKS = "clicks-small"


@dataclass(frozen=True)
class StreamOptions:
    """A generated click log, or days of files of one's own and how to use their columns.

    Misused options raise ``DataError`` when the stream is opened.
    """

    dataset: str | None = None  # "clicks-small"
    path: str | None = None  # days: a folder of folders or files, a file, or wildcards
    label: str | None = None
    features: tuple[str, ...] = ()  # columns of categories of any type; lists are bags
    numeric: tuple[str, ...] = ()  # columns of numbers, put into bins by the log rule
    positive_above: float | None = None  # the label is 1 where its column is above this
    max_bad_rows: int = 0  # of the whole stream
    hash_rows: str = ""  # rows of the table of each field: "1000000", or "user=1e5,item=1e6"
    dictionary: str | None = None  # a folder with the token dictionaries of a trained model
    skip_bad_files: bool = False
    allow_missing_days: bool = False
    clicks: ClickLog | None = None  # a click log of one's own
    separator: str | None = None  # between the cells of text files; None: by the end of the name
    columns: tuple[str, ...] = ()  # names of all columns, of text files without a header

    def __post_init__(self) -> None:
        for name in ("features", "numeric", "columns"):  # lists, where the options come from JSON
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def dialect(self) -> Dialect:
        """How text files are laid out."""
        return Dialect(self.separator, self.columns)

    def check(self) -> None:
        """Raise unless the options fit together."""
        if self.path is not None:
            self._check_own()
        else:
            self._check_generated()
        if self.max_bad_rows < 0:
            raise DataError(f"max bad rows must not be negative, as {self.max_bad_rows} is")

    def _check_own(self) -> None:
        refuse_options(self, "own files", "dataset", "clicks")
        if self.dictionary is not None:
            refuse_options(self, "--dictionary", "hash_rows", "features", "numeric")
        elif not self.hash_rows:
            raise DataError(
                f"{self.path}: say how many rows tokens are hashed to (--hash-rows 1000000), or "
                "name a model with the same features (--dictionary)"
            )
        elif not (self.features or self.numeric):
            raise DataError(f"{self.path}: name the columns that are features, or numeric ones")
        if self.label is None:
            raise DataError(f"{self.path}: name the column that holds the label")
        check_columns(self.path, self.features, self.numeric, "log", self.label)

    def _check_generated(self) -> None:
        if self.clicks is None and self.dataset != _CLICKS:
            what = "name the files" if self.dataset is None else f"{self.dataset!r} is no stream"
            raise DataError(f"{what}; the generated stream is {_CLICKS!r}")
        if self.clicks is not None and self.dataset is not None:
            raise DataError(f"a click log of one's own does not go with the dataset {_CLICKS}")
        names = ("label", "features", "numeric", "positive_above", "max_bad_rows")
        more = ("dictionary", "skip_bad_files", "allow_missing_days", "separator", "columns")
        refuse_options(self, "generated clicks", *names, *more)


def open_stream(options: StreamOptions) -> Stream:
    """Open a stream; of files, look at the columns of all of them.

    Raises:
        DataError: it is not there, cannot be used, or the options do not fit together
    """
    options.check()
    if options.path is None:
        return _generate(options)
    try:
        return _open_files(options, options.path)
    except ImportError as error:
        raise DataError(f"files are read with {error.name}: pip install 'freqsgd[cli]'") from error


def _generate(options: StreamOptions) -> ClickStream:
    from freqsgd.streams.click_log import CLICKS_SMALL
    from freqsgd.streams.clicks import ClickStream

    log, name = options.clicks or CLICKS_SMALL, options.dataset or "clicks"
    rows = parse_rows(options.hash_rows, log.feature_names) if options.hash_rows else None
    return ClickStream(log, rows, name)


def _open_files(options: StreamOptions, path: str) -> FileStream:
    from freqsgd.data.target import Target
    from freqsgd.streams.days import find_days
    from freqsgd.streams.files import FileStream, readable_days

    known = None if options.dictionary is None else _dictionary(Path(options.dictionary))
    kind, dialect = (known.kind, known.dialect) if known else ("table", BY_NAME)
    dialect = options.dialect.beside(dialect)
    days = find_days(path, allow_missing=options.allow_missing_days, dialect=dialect)
    files = [file for day in days for file in day.files]
    refuse_parquet(files, options.dialect)
    form = partial(format_for, kind, dialect=dialect)
    options = without_types(options, form(files[0]))
    assert options.label
    days, skipped = readable_days(days, form, skip_bad_files=options.skip_bad_files)
    if known:
        known.dialect = dialect  # saved with the model that is trained
    return FileStream(
        _name(path),
        days,
        known or _hashed(options, days),
        Target(options.label, options.positive_above),
        max_bad_rows=options.max_bad_rows,
        skip_bad_files=options.skip_bad_files,
        skipped=skipped,
    )


def _dictionary(folder: Path) -> Encoder | HashEncoder:
    from freqsgd.data.description import DESCRIPTION
    from freqsgd.streams.hash_encoder import open_encoder

    if not (folder / DESCRIPTION).is_file():
        raise DataError(f"--dictionary must name the folder of a trained model: {folder} is none")
    return open_encoder(folder)


def _hashed(options: StreamOptions, days: tuple[Day, ...]) -> HashEncoder:
    from freqsgd.streams.fields import stream_columns
    from freqsgd.streams.hash_encoder import HashEncoder

    rows = parse_rows(options.hash_rows, [*options.features, *options.numeric])
    files = [path for day in days for path in day.files]
    form = partial(format_of, dialect=options.dialect)
    columns = stream_columns(files, form, options.features, options.numeric, [str(options.label)])
    return HashEncoder(columns, rows, dialect=options.dialect)


def _name(path: str) -> str:
    """The last part of a path that has no wildcards."""
    plain = [part for part in Path(path).absolute().parts if not glob.has_magic(part)]
    return plain[-1].partition(".")[0] or "stream"
