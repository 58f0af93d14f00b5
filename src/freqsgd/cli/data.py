"""``freqsgd data``: which datasets there are, where they are, and what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.generate_clicks import describe_log, generate_clicks
from freqsgd.cli.options import COLUMNS, SEPARATOR, column_names, words
from freqsgd.cli.progress import Watcher
from freqsgd.errors import DataError
from freqsgd.tables.catalog import KNOWN, find_file, how_to_get, known_dataset
from freqsgd.tables.click_log import CLICKS_SMALL
from freqsgd.tables.dialect import BY_NAME, Dialect
from freqsgd.tables.loading import load
from freqsgd.tables.spec import DataOptions
from freqsgd.words.files import has_text_name
from freqsgd.words.loading import load_text
from freqsgd.words.spec import TextOptions

__all__ = ["app"]

app = typer.Typer(
    help="List, get and describe datasets. Example: freqsgd data get movielens-1m",
    no_args_is_help=True,
)

app.command("generate-clicks")(generate_clicks)

_Name = Annotated[str, typer.Argument(help="Name of a dataset.", show_default=False)]


@app.command("list")
def list_() -> None:
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
    print("Clicks of any size, as Parquet files: freqsgd data generate-clicks --out FOLDER")
    print("Your own tables: --data FILE --label COLUMN --features COLUMN,COLUMN")
    print("Your own text: --data FILE --model skipgram")


@app.command()
def get(name: _Name) -> None:
    """Download a dataset; go on with a download that was cut off.

    Example: freqsgd data get movielens-1m
    """
    from freqsgd.tables.download import get as get_dataset

    with Watcher() as watcher:
        path = get_dataset(name, watcher.loading)
    print(f"{name} is at {path}" if path else f"{name} is made when it is used")


@app.command()
def info(
    source: Annotated[
        str, typer.Argument(help="Name of a dataset, or a file of your own.", show_default=False)
    ],
    label: Annotated[str | None, typer.Option(help="Column of the label.")] = None,
    features: Annotated[str, typer.Option(help="Columns of categories, a,b,c.")] = "",
    numeric: Annotated[str, typer.Option(help="Columns of numbers.")] = "",
    positive_above: Annotated[
        float | None, typer.Option(help="The label is 1 where its column is above this.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="The file is text, not a table.")] = False,
    separator: Annotated[str | None, typer.Option(help=SEPARATOR)] = None,
    columns: Annotated[str | None, typer.Option(help=COLUMNS)] = None,
) -> None:
    """Say what is in a dataset; of a file without --label or --text, which columns it has.

    Example: freqsgd data info clicks.csv --label click --features user,item
    """
    from freqsgd.tables.loading import file_columns

    known = source in (dataset.name for dataset in KNOWN)
    dialect = Dialect(separator, column_names(columns))
    if dialect != BY_NAME and (known or text):
        raise DataError(f"--separator and --columns are for tables of your own, not for {source}")
    if text or (known and known_dataset(source).text):
        _text_info(TextOptions(dataset=source) if known else TextOptions(path=source))
        return
    if known and known_dataset(source).stream:
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
