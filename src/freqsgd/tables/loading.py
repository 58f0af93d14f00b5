"""Load a table or open a stream, as options ask for it.

Libraries that read files are imported when there are files to read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from freqsgd.errors import DataError
from freqsgd.tables.generated.synthetic import clicks_dataset, generate_clicks
from freqsgd.tables.readers.dialect import Dialect
from freqsgd.tables.readers.files import open_tables
from freqsgd.tables.spec import DataOptions, StreamOptions, parse_rows

if TYPE_CHECKING:
    from freqsgd.tables.cache import Progress
    from freqsgd.tables.dataset import Dataset, Stream


def load(options: DataOptions, *, progress: Progress | None = None) -> Dataset:
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
    if options.name == "synthetic":
        clicks = generate_clicks(options.samples, tail=options.tail)
        return clicks_dataset(clicks, options.split_seed)
    try:
        from freqsgd.tables.encoding import load_files
    except ImportError as error:
        raise _missing(error) from error
    return load_files(options, progress)


def open_stream(options: StreamOptions) -> Stream:
    """Open a stream; of files, look at the columns of all of them.

    Raises:
        DataError: it is not there, cannot be used, or the options do not fit together
    """
    options.check()
    try:
        if options.path is not None:
            from freqsgd.tables.stream import open_days

            return open_days(options)
        from freqsgd.tables.generated.click_log import CLICKS_SMALL
        from freqsgd.tables.generated.clicks import ClickStream
    except ImportError as error:
        raise _missing(error) from error
    log, name = options.clicks or CLICKS_SMALL, options.dataset or "clicks"
    rows = parse_rows(options.hash_rows, log.feature_names) if options.hash_rows else None
    return ClickStream(log, rows, name)


def _missing(error: ImportError) -> DataError:
    return DataError(f"files are read with {error.name}: pip install 'freqsgd[cli]'")


def describe(dataset: Dataset) -> list[tuple[str, str]]:
    """Return facts about loaded samples: what, and how much."""
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
    """Return the folder of the encoded samples; None for generated ones, which are not kept."""
    if options.path is None and options.dataset == "synthetic":
        return None
    from freqsgd.tables.encoding import Request, encoded_folder

    return encoded_folder(Request.of(options))


def file_columns(path: str, dialect: Dialect) -> tuple[list[tuple[str, str]], str]:
    """Return names and types of the columns of a file, or of the first one in a folder.

    Also returns what to do if the file seems to have more columns; "" if it does not.
    """
    reader = open_tables(path, dialect)[0]
    columns = reader.shown_columns()
    return columns, reader.hint([name for name, _ in columns])
