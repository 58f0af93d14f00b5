"""``freqsgd inspect``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.document import present
from freqsgd.cli.inspection_table import print_inspection
from freqsgd.cli.options import COLUMNS, SEPARATOR, column_names, words
from freqsgd.cli.targets import target
from freqsgd.errors import DataError
from freqsgd.files import check_apart
from freqsgd.inspection.document import inspect_data as look_at
from freqsgd.inspection.options import InspectionOptions
from freqsgd.report import write_inspection

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
            "--data",
            help="Your own .csv, .tsv, .inter, .parquet, a folder of these, or text (--text).",
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
    separator: Annotated[str | None, typer.Option(help=SEPARATOR)] = None,
    columns: Annotated[str | None, typer.Option(help=COLUMNS)] = None,
    dim: Annotated[int, typer.Option(help="Size of vectors, to reckon the memory.")] = 64,
    out: Annotated[
        Path | None, target("Folder for inspect.json, inspect.html and pictures.")
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
        separator=separator,
        columns=column_names(columns),
    )
    options.check()
    if out is not None and path is not None:
        check_apart(out, (INSPECTION, "inspect.html"), [Path(path)])
    present(INSPECTION, partial(look_at, options), print_inspection, write_inspection, out)


def _columns(option: str, names: str | None) -> tuple[str, ...]:
    """The columns that an option names; none if it is not given."""
    found = words(names or "")
    if names is not None and not found:
        raise DataError(f"{option} names no column")
    return found
