"""``freqsgd bench``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.bench_table import print_bench
from freqsgd.cli.progress import Watcher, console
from freqsgd.cli.session import target, use_threads
from freqsgd.files import check_target

__all__ = ["bench"]


def bench(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Small tables, which fit the cache: too fast; kept only with --out."
        ),
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Of kernels and torch.")] = None,
    out: Annotated[
        Path | None, target("File to keep them in (default: in the cache folder).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how fast this machine is, against torch.

    It takes under two minutes, which other work on the machine would spoil. freqsgd plan predicts
    from what it finds.

    Example: freqsgd bench --out host.json
    """
    from freqsgd.planner.measure import FULL, QUICK, measure
    from freqsgd.planner.speed import stored_bench, write_bench

    path = out if quick else out or stored_bench()
    if path is not None:
        check_target(path, force=force or out is None)
    use_threads(threads)
    try:
        with Watcher() as watcher:
            found = measure(QUICK if quick else FULL, watcher.loading)
    except KeyboardInterrupt:
        console.print("\ninterrupted: nothing was written")
        raise typer.Exit(130) from None
    if path is not None:
        write_bench(found, path)
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        print_bench(found)
        print(f"\n{_kept(path, out)}")


def _kept(path: Path | None, out: Path | None) -> str:
    if path is None:
        return "not kept: rates of --quick are only kept with --out"
    return f"kept in {path}: freqsgd plan {f'--bench {out} ' if out else ''}predicts from it"
