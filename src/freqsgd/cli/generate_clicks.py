"""``freqsgd data generate-clicks``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.numbers import count_of
from freqsgd.cli.progress import Watcher, console
from freqsgd.cli.targets import target
from freqsgd.tables.click_log import CLICKS_SMALL, ClickLog

__all__ = ["describe_log", "generate_clicks"]


def generate_clicks(
    out: Annotated[Path, target("Folder for the files: new or empty.")],
    days: Annotated[int, typer.Option(help="How many.")] = CLICKS_SMALL.days,
    rows: Annotated[int, typer.Option(help="Of a day.")] = CLICKS_SMALL.rows,
    features: Annotated[int, typer.Option(help="How many.")] = len(CLICKS_SMALL.sizes),
    smallest: Annotated[
        int, typer.Option(help="Tokens of the smallest feature on a day.")
    ] = CLICKS_SMALL.sizes[0],
    largest: Annotated[
        int, typer.Option(help="Tokens of the largest feature on a day.")
    ] = CLICKS_SMALL.sizes[-1],
    base_rate: Annotated[
        float, typer.Option(help="Mean probability of a click.")
    ] = CLICKS_SMALL.base_rate,
    drift: Annotated[
        float, typer.Option(help="How far tastes turn in a day, in radians.")
    ] = CLICKS_SMALL.drift,
    new_tokens: Annotated[
        float, typer.Option(help="Part of the tokens that new ones replace in a day.")
    ] = CLICKS_SMALL.new_tokens,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
) -> None:
    """Write a click log as Parquet, a folder per day, to train on in one pass.

    Example: freqsgd data generate-clicks --out clicks --days 3 --rows 1000000
    """
    from freqsgd.tables.clicks import write_clicks

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
    try:
        with Watcher() as watcher:
            files = write_clicks(log, out, lambda *done: watcher.loading("writing", *done))
    except KeyboardInterrupt:
        console.print(f"\ninterrupted: the files in {out} are whole, but not all are there")
        raise typer.Exit(130) from None
    size = sum(path.stat().st_size for path in files)
    print(
        f"{out}: {count_of(len(files), 'file')}, {log.days * log.rows:,} rows, {size / 1e6:,.1f} MB"
    )
    for what, value in describe_log(log):
        print(f"{what}: {value}")
    print(f"Train on it: {training_command(log, str(out))}")


def describe_log(log: ClickLog) -> list[tuple[str, str]]:
    """Facts about a click log: what, and how much."""
    sizes = f"{min(log.sizes):,} to {max(log.sizes):,}"
    return [
        ("rows", f"{log.days * log.rows:,}: {count_of(log.days, 'day')} of {log.rows:,}"),
        ("positive rate", f"{log.base_rate:g}: the mean probability, not a count"),
        ("fields", f"{len(log.sizes)}, each of {sizes} tokens on a day"),
        ("range of ids", f"{sum(log.tokens):,}: tokens that may occur on any of the days"),
    ]


def training_command(log: ClickLog, out: str) -> str:
    """What to type to train on the files; tables have a row for each token that can occur."""
    names = log.feature_names
    each = [f"{name}={size}" for name, size in zip(names, log.tokens, strict=True)]
    rows = str(log.tokens[0]) if len(set(log.tokens)) == 1 else ",".join(each)
    return (
        f"freqsgd compare --one-pass --data {out} --label label --features {','.join(names)} "
        f"--hash-rows {rows} --out comparison"
    )
