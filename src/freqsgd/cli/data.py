"""``freqsgd data``: list, get and describe datasets; ``freqsgd stream generate`` writes clicks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli import options as opt
from freqsgd.cli.options import column_names, option, target, words
from freqsgd.cli.progress import Watcher
from freqsgd.cli.session import interruptible
from freqsgd.errors import DataError
from freqsgd.report.wording import count_of
from freqsgd.runs.machine import byte_size
from freqsgd.tables.catalog import KNOWN, find_file, how_to_get
from freqsgd.tables.generated.click_log import CLICKS_SMALL, ClickLog
from freqsgd.tables.loading import load
from freqsgd.tables.readers.dialect import BY_NAME, Dialect
from freqsgd.tables.spec import DataOptions
from freqsgd.words.files import has_text_name
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions

_Name = Annotated[str, typer.Argument(help="Name of a dataset.", show_default=False)]


def list_datasets() -> None:
    """Name the datasets and where they are.

    Example: freqsgd data list
    """
    for dataset in KNOWN:
        print(f"{dataset.name}: {dataset.about}")
        if dataset.file is None:
            print("  made when it is used")
        else:
            found = find_file(dataset.file)
            print(f"  at {found}" if found else f"  not here. {how_to_get(dataset)}")
    print("Clicks of any size, as Parquet files: freqsgd stream generate --out FOLDER")
    print("Your own tables: --data FILE --label COLUMN --features COLUMN,COLUMN")
    print("Your own text: freqsgd words train --data FILE")


def get(name: _Name) -> None:
    """Download a dataset; go on with a download that was cut off.

    Example: freqsgd data get movielens-1m
    """
    from freqsgd.tables.download import get as get_dataset

    with Watcher() as watcher:
        path = get_dataset(name, watcher.loading)
    print(f"{name} is at {path}" if path else f"{name} is made when it is used")


def info(
    source: Annotated[
        str, typer.Argument(help="Name of a dataset, or a file of your own.", show_default=False)
    ],
    label: opt.Label = None,
    features: opt.Features = "",
    numeric: opt.Numeric = "",
    positive_above: opt.PositiveAbove = None,
    text: Annotated[bool, option("Read the file as text, not as a table.", "--text")] = False,
    separator: opt.Separator = None,
    columns: opt.Columns = None,
) -> None:
    """Describe a dataset; list the columns of a file that is named without --label or --text.

    Example: freqsgd data info clicks.csv --label click --features user,item
    """
    from freqsgd.tables.loading import file_columns

    kind = next((dataset.kind for dataset in KNOWN if dataset.name == source), None)
    known = kind is not None
    dialect = Dialect(separator, column_names(columns))
    if dialect != BY_NAME and (known or text):
        raise DataError(f"--separator and --columns are for tables of your own, not for {source}")
    if text or kind == "text":
        _text_info(TextOptions(dataset=source) if known else TextOptions(path=source))
        return
    if kind == "stream":
        _print_facts(describe_log(CLICKS_SMALL), None)
        return
    if not known and label is None:
        found, hint = file_columns(source, dialect)
        for name, kind in found:
            print(f"{name}: {kind}")
        if hint:
            print(f"This is one column. {hint}")
        if len(found) == 1 and has_text_name(source):
            print("This is one column: if the file is text, not a table, say --text")
        return
    from freqsgd.tables.loading import cache_place, describe

    options = DataOptions(
        dataset=source if known else None,
        path=None if known else source,
        label=label,
        features=words(features),
        numeric=words(numeric),
        positive_above=positive_above,
        separator=separator,
        columns=dialect.columns,
    )
    with Watcher() as watcher:
        dataset = load(options, progress=watcher.loading)
    _print_facts(describe(dataset), cache_place(options))


def _text_info(options: TextOptions) -> None:
    from freqsgd.words.loading import describe_text, text_place

    with Watcher() as watcher:
        corpus = load_text(options, progress=watcher.loading)
    _print_facts(describe_text(corpus), text_place(options))


def _print_facts(facts: list[tuple[str, str]], place: Path | None) -> None:
    where = str(place) if place else "nowhere: it is made when it is used"
    facts = [*facts, ("encoded at", where)]
    width = max(len(what) for what, _ in facts)
    for what, value in facts:
        print(f"{what:{width}}  {value}")


def generate(
    out: Annotated[Path, target("Folder for the files: new or empty.")],
    days: Annotated[int, option("Number of days.")] = CLICKS_SMALL.days,
    rows: Annotated[int, option("Number of rows per day.")] = CLICKS_SMALL.rows,
    features: Annotated[int, option("Number of features.")] = len(CLICKS_SMALL.sizes),
    smallest: Annotated[
        int, option("Number of tokens of the smallest feature on a day.")
    ] = CLICKS_SMALL.sizes[0],
    largest: Annotated[
        int, option("Number of tokens of the largest feature on a day.")
    ] = CLICKS_SMALL.sizes[-1],
    base_rate: Annotated[float, option("Mean probability of a click.")] = CLICKS_SMALL.base_rate,
    drift: Annotated[
        float, option("Drift of the true vectors per day, in radians.")
    ] = CLICKS_SMALL.drift,
    new_tokens: Annotated[
        float, option("Share of the tokens that new ones replace each day.")
    ] = CLICKS_SMALL.new_tokens,
    seed: Annotated[
        int, option("Random seed of the clicks; the same seed gives the same files.")
    ] = 0,
) -> None:
    """Write a click log as Parquet, a folder per day, to train on in one pass.

    Example: freqsgd stream generate --out clicks --days 3 --rows 1000000
    """
    from freqsgd.tables.generated.clicks import write_clicks

    log = ClickLog.of(
        features,
        smallest,
        largest,
        days=days,
        rows=rows,
        base_rate=base_rate,
        drift=drift,
        new_tokens=new_tokens,
        seed=seed,
    )
    told = f"interrupted: the files in {out} are whole, but not all are there"
    with interruptible(told), Watcher() as watcher:
        files = write_clicks(log, out, lambda *done: watcher.loading("writing", *done))
    size = sum(path.stat().st_size for path in files)
    rows = log.days * log.rows
    print(f"{out}: {count_of(len(files), 'file')}, {rows:,} rows, {byte_size(size)}")
    for what, value in describe_log(log):
        print(f"{what}: {value}")
    print(f"Train on it: {_training_command(log, str(out))}")


def describe_log(log: ClickLog) -> list[tuple[str, str]]:
    """Return facts about a click log: what, and how much."""
    sizes = f"{min(log.sizes):,} to {max(log.sizes):,}"
    return [
        ("rows", f"{log.days * log.rows:,}: {count_of(log.days, 'day')} of {log.rows:,}"),
        ("positive rate", f"{log.base_rate:g}: the mean probability, not a count"),
        ("fields", f"{len(log.sizes)}, each of {sizes} tokens on a day"),
        ("range of ids", f"{sum(log.tokens):,}: tokens that may occur on any of the days"),
    ]


def _training_command(log: ClickLog, out: str) -> str:
    """Return what to type to train on the files; tables have a row for each possible token."""
    names = log.feature_names
    each = [f"{name}={size}" for name, size in zip(names, log.tokens, strict=True)]
    rows = str(log.tokens[0]) if len(set(log.tokens)) == 1 else ",".join(each)
    return (
        f"freqsgd stream compare --data {out} --label label --features {','.join(names)} "
        f"--hash-rows {rows} --out comparison"
    )
