"""``freqsgd bench``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.bench import FULL, QUICK, measure, write_bench
from freqsgd.cli.bench_table import print_bench
from freqsgd.cli.progress import Watcher, console
from freqsgd.cli.threads import use_threads

__all__ = ["bench"]


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Small tables, which fit the cache: too fast.")
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Of kernels and torch.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to keep them in (default: in the cache folder).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how fast this machine is, against torch.

    It takes under two minutes, which other work on the machine would spoil. freqsgd plan predicts
    from what it finds.

    Example: freqsgd bench --out host.json
    """
    use_threads(threads)
    try:
        with Watcher() as watcher:
            found = measure(QUICK if quick else FULL, watcher.loading)
    except KeyboardInterrupt:
        console.print("\ninterrupted: nothing was written")
        raise typer.Exit(130) from None
    path = write_bench(found, out)
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        print_bench(found)
        print(f"\nkept in {path}: freqsgd plan predicts from it")
