"""``freqsgd inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.inspection_table import print_inspection
from freqsgd.cli.options import words
from freqsgd.cli.progress import Watcher, console
from freqsgd.cli.session import command_line
from freqsgd.data.dataset import DataError
from freqsgd.inspection import InspectionOptions
from freqsgd.inspection import inspect_data as look_at
from freqsgd.training.compare import write_results
from freqsgd.training.model_folder import make_folder

__all__ = ["inspect_data"]

INSPECTION = "inspect.json"


def inspect_data(
    dataset: Annotated[
        str | None,
        typer.Option(help="synthetic (default), movielens-1m, criteo, zipf-text, wikitext-2, ..."),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            "--data", help="Your own .csv, .tsv, .parquet, a folder of these, or text (--text)."
        ),
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="The file is text, not a table.")] = False,
    features: Annotated[
        str | None, typer.Option(help="Columns of categories, a,b,c (default: all but the label).")
    ] = None,
    numeric: Annotated[str | None, typer.Option(help="Columns of numbers, to be binned.")] = None,
    numeric_rule: Annotated[str, typer.Option(help="log or quantiles.")] = "log",
    label: Annotated[str | None, typer.Option(help="A column that is no field.")] = None,
    min_count: Annotated[
        int | None,
        typer.Option(
            help="Rarer tokens of a field count as one, rarer words not at all (default: as in "
            "training, 10 for criteo, 50 for wikitext, 5 for other text, else 1)."
        ),
    ] = None,
    max_bad_rows: Annotated[
        int, typer.Option(help="Malformed rows that are left out with a warning.")
    ] = 0,
    dim: Annotated[int, typer.Option(help="Size of vectors, to reckon the memory.")] = 64,
    out: Annotated[
        str | None, typer.Option(help="Folder for inspect.json, inspect.html and pictures.")
    ] = None,
) -> None:
    """Say how unequally frequent tokens are, and what CF-SGD promises for them.

    Example: freqsgd inspect --data clicks.csv --features user,item --out inspection
    """
    options = InspectionOptions(
        dataset=dataset,
        path=path,
        text=text,
        label=label,
        features=_columns("--features", features),
        numeric=_columns("--numeric", numeric),
        numeric_rule=numeric_rule,
        min_count=min_count,
        max_bad_rows=max_bad_rows,
        dim=dim,
    )
    options.check()
    if out is not None:
        if not out:
            raise DataError("--out is empty: name a folder")
        make_folder(Path(out))
    _inspect(options, out)


def _inspect(options: InspectionOptions, out: str | None) -> None:
    from freqsgd.report import write_inspection

    try:
        with Watcher() as watcher:
            document = look_at(options, command=command_line(), progress=watcher.loading)
        if out is not None:
            write_results(document, Path(out) / INSPECTION)
            page = write_inspection(document, Path(out))
        print_inspection(document)
        if out is not None:
            print(f"\nreport: {page}")
    except KeyboardInterrupt:
        console.print("\ninterrupted")
        raise typer.Exit(130) from None


def _columns(option: str, names: str | None) -> tuple[str, ...]:
    """The columns that an option names; none if it is not given."""
    found = words(names or "")
    if names is not None and not found:
        raise DataError(f"{option} names no column")
    return found
