"""``freqsgd predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.threads import use_threads
from freqsgd.training.predict import predict_file

__all__ = ["predict"]


def predict(
    model: Annotated[Path, typer.Argument(help="A folder that freqsgd train wrote.")],
    file: Annotated[str, typer.Argument(help="Rows with the columns that it was trained on.")],
    out: Annotated[
        Path | None, typer.Option(help="A .csv of one probability per row (default: print).")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch.")] = None,
) -> None:
    """Write the probability of a positive label for each row of a file.

    Example: freqsgd predict model new.csv --out predictions.csv
    """
    use_threads(threads)
    predict_file(model, file, out)
