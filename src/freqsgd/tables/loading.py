"""Load a table or open a stream, as options ask for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from freqsgd.errors import DataError
from freqsgd.tables.days import Day, data_name, find_days, list_files
from freqsgd.tables.dialect import BY_NAME, Dialect
from freqsgd.tables.formats import open_reader, refuse_parquet
from freqsgd.tables.spec import DataOptions, StreamOptions, parse_rows
from freqsgd.tables.synthetic import clicks_dataset, generate_clicks

if TYPE_CHECKING:
    from freqsgd.tables.clicks import ClickStream
    from freqsgd.tables.dataset import Dataset
    from freqsgd.tables.day_files import FileStream
    from freqsgd.tables.encoder import Encoder
    from freqsgd.tables.hashing import HashEncoder
    from freqsgd.tables.stream import Stream


def load(
    options: DataOptions, *, progress: Callable[[str, int, int | None], None] | None = None
) -> Dataset:
    """Load the data, encoding it first unless that was done before.

    Args:
        options: what to load
        progress: called now and then during long work with its stage, how much is done, and how
            much there is in all (None if unknown)

    Raises:
        DataError: it is not there, cannot be used, or the options do not fit together

    Example:
        >>> dataset = load(DataOptions(samples=1000))
        >>> dataset.ids.shape, len(dataset.splits.train)
        ((1000, 2), 800)
    """
    options.check()
    if options.path is None and options.dataset in (None, "synthetic"):
        clicks = generate_clicks(options.samples, tail=options.tail)
        return clicks_dataset(clicks, options.split_seed)
    try:
        from freqsgd.tables.encoding import load_files
    except ImportError as error:
        raise DataError(f"files are read with {error.name}: pip install 'freqsgd[cli]'") from error
    return load_files(options, progress)


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


def describe(dataset: Dataset) -> list[tuple[str, str]]:
    """Facts about loaded samples: what, and how much."""
    splits = dataset.splits
    parts = (len(splits.train), len(splits.validation), len(splits.test))
    summary = dataset.summary()
    facts = [
        ("rows", f"{dataset.rows:,}"),
        ("split", "{:,} train, {:,} validation, {:,} test".format(*parts)),
        ("positive rate", f"{summary['positive_rate']:.4f}"),
        ("fields", f"{len(dataset.fields)}"),
        ("tokens", f"{dataset.tokens:,}"),
        ("bytes", f"{dataset.ids.nbytes + dataset.labels.nbytes:,}"),
    ]
    for field in dataset.fields:
        width = f", bags of up to {field.width}" if field.width > 1 else ""
        facts.append((f"  {field.name}", f"{field.size:,} tokens{width}"))
    return facts


def cache_place(options: DataOptions) -> Path | None:
    """The folder of the encoded samples; None for generated ones, which are not kept."""
    if options.path is None and options.dataset == "synthetic":
        return None
    from freqsgd.tables.encoding import encoded_folder
    from freqsgd.tables.sources import Request

    return encoded_folder(Request.of(options))


def file_columns(path: str, dialect: Dialect) -> tuple[list[tuple[str, str]], str]:
    """Return names and types of the columns of a file, or of the first one in a folder.

    Also returns what to do if the file seems to have more columns; "" if it does not.
    """
    first = list_files(path, dialect)[0]
    refuse_parquet([first], dialect)
    reader = open_reader(first, dialect)
    columns = reader.shown_columns()
    return columns, reader.hint([name for name, _ in columns])


def _generate(options: StreamOptions) -> ClickStream:
    from freqsgd.tables.click_log import CLICKS_SMALL
    from freqsgd.tables.clicks import ClickStream

    log, name = options.clicks or CLICKS_SMALL, options.dataset or "clicks"
    rows = parse_rows(options.hash_rows, log.feature_names) if options.hash_rows else None
    return ClickStream(log, rows, name)


def _open_files(options: StreamOptions, path: str) -> FileStream:
    from freqsgd.tables.columns import Target
    from freqsgd.tables.day_files import FileStream, readable_days

    known = None if options.dictionary is None else _dictionary(Path(options.dictionary))
    kind, dialect = (known.kind, known.dialect) if known else ("table", BY_NAME)
    dialect = options.dialect.beside(dialect)
    days = find_days(path, allow_missing=options.allow_missing_days, dialect=dialect)
    files = [file for day in days for file in day.files]
    refuse_parquet(files, options.dialect)
    open_file = partial(open_reader, dialect=dialect, kind=kind)
    options = options.without_types(open_file(files[0]))
    assert options.label
    days, skipped = readable_days(days, open_file, skip_bad_files=options.skip_bad_files)
    if known:
        known.dialect = dialect  # saved with the model that is trained
    return FileStream(
        data_name(path) or "stream",
        days,
        known or _hashed(options, days),
        Target(options.label, options.positive_above),
        max_bad_rows=options.max_bad_rows,
        skip_bad_files=options.skip_bad_files,
        skipped=skipped,
    )


def _dictionary(folder: Path) -> Encoder | HashEncoder:
    from freqsgd.tables.encoder import DESCRIPTION
    from freqsgd.tables.hashing import open_encoder

    if not (folder / DESCRIPTION).is_file():
        raise DataError(f"--dictionary must name the folder of a trained model: {folder} is none")
    return open_encoder(folder)


def _hashed(options: StreamOptions, days: tuple[Day, ...]) -> HashEncoder:
    from freqsgd.tables.hashing import HashEncoder
    from freqsgd.tables.sources import table_columns

    rows = parse_rows(options.hash_rows, [*options.features, *options.numeric])
    readers = [open_reader(path, options.dialect) for day in days for path in day.files]
    label = [str(options.label)]
    columns = table_columns(readers, options.features, options.numeric, others=label, whole=False)
    return HashEncoder(columns, rows, dialect=options.dialect)
