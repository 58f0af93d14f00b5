"""``freqsgd predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.options import column_names
from freqsgd.cli.session import target, use_threads
from freqsgd.files import is_stream
from freqsgd.tables.dialect import Dialect

__all__ = ["predict"]


def predict(
    model: Annotated[Path, typer.Argument(help="A folder that freqsgd train wrote.")],
    file: Annotated[str, typer.Argument(help="Rows with the columns that it was trained on.")],
    out: Annotated[
        Path | None, target("A .csv of one probability per row (default: print).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch, at most.")] = None,
    separator: Annotated[
        str | None,
        typer.Option(help="What stands between cells (default: as in the training files)."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Names of all columns, a,b,c (default: as in the training files)."),
    ] = None,
) -> None:
    """Write the probability of a positive label for each row of a file.

    Example: freqsgd predict model new.csv --out predictions.csv
    """
    from freqsgd.recommender.predict import predict_file

    use_threads(threads)
    dialect = Dialect(separator, column_names(columns))
    rows = predict_file(model, file, out, dialect, force=force)
    if out is not None:
        # a pipe may be stdout, where nothing but probabilities belongs
        print(f"{out}: {rows:,} rows", file=sys.stderr if is_stream(out) else sys.stdout)
