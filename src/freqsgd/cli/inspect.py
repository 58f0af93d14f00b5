"""``freqsgd inspect``."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from freqsgd.cli import options as opt
from freqsgd.cli.options import in_data, made, option, target, words
from freqsgd.cli.output import grid, screen, shown
from freqsgd.cli.session import present
from freqsgd.documents.inspection import InspectedField, Inspection, TailFit, TokenPromise
from freqsgd.errors import DataError
from freqsgd.inspection.document import inspect_data as look_at
from freqsgd.inspection.options import InspectionOptions
from freqsgd.report import write_inspection
from freqsgd.report.inspection import sentences, tiles, with_names
from freqsgd.report.wording import count_of, enumerate_words
from freqsgd.tables.readers.files import named_paths


def inspect_data(
    context: typer.Context,
    dataset: Annotated[
        str | None,
        in_data("Dataset: synthetic (default), movielens-1m, criteo, zipf-text, wikitext-2, ..."),
    ] = None,
    path: Annotated[
        str | None,
        in_data(
            "Your own files: .csv, .tsv, .inter or .parquet, a folder of these or of days, a "
            "pattern such as 'day-*', or text (--text).",
            "--data",
        ),
    ] = None,
    text: Annotated[bool, in_data("Read the file as text, not as a table.", "--text")] = False,
    features: Annotated[
        str | None, in_data("Columns of categories, a,b,c (default: all but the label).")
    ] = None,
    numeric: Annotated[str | None, in_data("Columns of numbers, a,b,c, which are binned.")] = None,
    numeric_rule: opt.NumericRule = InspectionOptions.numeric_rule,
    label: Annotated[str | None, in_data("Column of the label, which is left out.")] = None,
    min_count: Annotated[
        int | None,
        in_data(
            "Occurrences below which tokens share one id and words are left out (default: as in "
            "training: 10 for criteo, 50 for wikitext, 5 for other text, else 1)."
        ),
    ] = None,
    max_bad_rows: opt.MaxBadRows = 0,
    separator: opt.Separator = None,
    columns: opt.Columns = None,
    dim: Annotated[int, option("Dimension of the vectors, to estimate their memory.")] = 64,
    out: Annotated[
        Path | None, target("Folder for inspect.json, inspect.html and pictures.")
    ] = None,
    force: opt.Force = False,
) -> None:
    """Describe how unequally frequent tokens are, and what CF-SGD promises for them.

    Example: freqsgd inspect --data clicks.csv --features user,item --out inspection
    """
    for name, columns_named in (("--features", features), ("--numeric", numeric)):
        if columns_named is not None and not words(columns_named):
            raise DataError(f"{name} names no column")
    options = made(InspectionOptions, context)
    options.check()
    make = partial(look_at, options)
    inputs = [] if path is None or out is None else named_paths(path)
    present("inspect.json", make, print_inspection, write_inspection, out, force, inputs)


_LONGEST_NAME = 24
_NBSP = "\N{NO-BREAK SPACE}"
_COLUMNS = (
    "Columns: once: share of the tokens that were seen once. effective: as many equally frequent "
    "tokens would repeat as rarely. top 1%, 10%: share of the occurrences that these tokens have. "
    "tail: the nearer of two fits to rank n. median, 90%: SGD's iterations over FA-SGD's to an "
    "equal bound, for the token that so many tokens are more frequent than (in brackets: how often "
    "it was seen)."
)


def print_inspection(inspection: Inspection) -> None:
    """Print a row per field, then the tiles and sentences of the report."""
    console = screen(100)
    inspection = with_names(inspection)
    data, unit = inspection.dataset, "word" if inspection.is_text else "row"
    counts = {unit: data.rows, "field": data.fields, "token": data.tokens}
    sizes = enumerate_words(count_of(count, each) for each, count in counts.items())
    print(f"\n{_fill(f'{data.name} has {sizes}.', console.width)}")
    console.print(_table(inspection.fields))
    print()
    told = [f"{tile.title}: {tile.value} ({tile.note})" for tile in tiles(inspection)]
    for text in (*told, *sentences(inspection), _COLUMNS):
        print(_fill(f"- {text}", console.width))


def _fill(text: str, width: int) -> str:
    """Return lines, without what could steer the terminal or keep them from being broken."""
    spaced = text.replace(_NBSP, " ")
    plain = "".join(one if one.isprintable() else repr(one)[1:-1] for one in spaced)
    return textwrap.fill(plain, width, subsequent_indent="  ")


def _table(fields: Sequence[InspectedField]) -> Table:
    titles = ("tokens", "once", "effective", "top 1%", "10%", "tail", "median", "90%")
    table = grid("field", *titles)
    table.columns[0].max_width, table.columns[0].overflow = _LONGEST_NAME, "ellipsis"
    for field in fields:
        effective = field.effective_tokens
        table.add_row(
            Text(shown(field.name)),
            f"{field.tokens:,}",
            f"{field.singletons / field.tokens:.0%}",
            f"{effective:,.{0 if effective >= 100 else 1}f}",
            f"{field.top_1:.0%}",
            f"{field.top_10:.0%}",
            _tail(field.fit),
            _factor(field.promise.median),
            _factor(field.promise.p90),
        )
    return table


def _tail(fit: TailFit) -> str:
    """Format the better of the two fits."""
    if fit.family is None:
        return "-"
    return f"exp(-{fit.tau:.2g} n)" if fit.family == "exponential" else f"n^-{fit.nu:.2f}"


def _factor(promise: TokenPromise) -> str:
    """Format a ratio in three digits, or whole, and how many occurrences it comes of."""
    iterations = promise.iterations
    ratio = f"{iterations:.3g}" if iterations < 1000 else f"{iterations:,.0f}"
    return f"{ratio} x ({promise.count:,.0f})"
