"""``freqsgd inspect``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from freqsgd.cli.inspection_table import print_inspection
from freqsgd.cli.options import words
from freqsgd.cli.progress import Watcher
from freqsgd.cli.session import command_line
from freqsgd.data.dataset import DataError
from freqsgd.data.files import write_whole
from freqsgd.inspection import InspectionOptions
from freqsgd.inspection import inspect_data as look_at

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
        str, typer.Option(help="Columns of categories, a,b,c (default: all but the label).")
    ] = "",
    numeric: Annotated[str, typer.Option(help="Columns of numbers, to be binned.")] = "",
    numeric_rule: Annotated[str, typer.Option(help="log or quantiles.")] = "log",
    label: Annotated[str | None, typer.Option(help="A column that is no field.")] = None,
    min_count: Annotated[int, typer.Option(help="Rarer tokens of a field count as one.")] = 1,
    max_bad_rows: Annotated[
        int, typer.Option(help="Malformed rows that are left out with a warning.")
    ] = 0,
    dim: Annotated[int, typer.Option(help="Size of vectors, to reckon the memory.")] = 64,
    out: Annotated[
        Path | None, typer.Option(help="Folder for inspect.json, inspect.html and pictures.")
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
        features=words(features),
        numeric=words(numeric),
        numeric_rule=numeric_rule,
        min_count=min_count,
        max_bad_rows=max_bad_rows,
        dim=dim,
    )
    options.check()
    if out is not None:
        _make_folder(out)
    with Watcher() as watcher:
        document = look_at(options, command=command_line(), progress=watcher.loading)
    print_inspection(document)
    if out is not None:
        _write(document, out)


def _make_folder(out: Path) -> None:
    """Make the folder before the long work begins."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(out, error) from error


def _write(document: dict[str, Any], out: Path) -> None:
    """Write the files, in place of those of an earlier inspection."""
    from freqsgd.report import write_inspection

    try:
        write_whole(out / INSPECTION, json.dumps(document, indent=1).encode())
        write_inspection(document, out)
    except OSError as error:
        raise _unwritable(out, error) from error
    print(f"\nwritten to {out}")


def _unwritable(out: Path, error: OSError) -> DataError:
    return DataError(f"{out}: cannot be written ({error.strerror}); name another folder (--out)")
