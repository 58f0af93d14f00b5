"""``freqsgd train``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.options import data_options, rule_options, settings, takes
from freqsgd.cli.progress import Watcher, console
from freqsgd.cli.table import print_results
from freqsgd.cli.threads import use_threads
from freqsgd.data.dataset import DataError
from freqsgd.data.options import DataOptions, load
from freqsgd.report import write_report
from freqsgd.training.compare import RESULTS, describe, write_results
from freqsgd.training.fit import InterruptedFitError, fit
from freqsgd.training.presets import preset_rate
from freqsgd.training.rules import OPTIMIZERS, Rule
from freqsgd.training.settings import Settings

__all__ = ["train"]


@takes(data=data_options, shared=settings, rule=rule_options)
def train(
    out: Annotated[Path, typer.Option(help="Folder for the model.")] = Path("model"),
    optimizer: Annotated[str, typer.Option(help=f"One of {', '.join(OPTIMIZERS)}.")] = "cfsgd",
    lr: Annotated[float | None, typer.Option(help="Learning rate instead of the preset.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch.")] = None,
    *,
    data: DataOptions,
    shared: Settings,
    rule: Callable[[str, float], Rule],
) -> None:
    """Train a model and save it as a folder.

    Example: freqsgd train --data clicks.csv --label click --features user,item --out model
    """
    preset = preset_rate(data.name, shared.model, optimizer)
    chosen = rule(optimizer, preset if lr is None else lr)
    use_threads(threads)
    with Watcher() as watcher:
        loaded = load(data, progress=watcher.loading)
        watcher.compiling()
        try:
            _, record = fit(
                loaded,
                chosen,
                shared,
                threads=threads,
                folder=out,
                resume=resume,
                listener=watcher.training,
            )
        except InterruptedFitError:
            console.print("\ninterrupted; the same command with --resume goes on from here")
            raise typer.Exit(130) from None
    results = describe(loaded, shared, threads)
    results["runs"].append(record)
    results["command"] = shlex.join(["freqsgd", *sys.argv[1:]])
    write_results(results, out / RESULTS)
    write_report(results, out / "report.html")
    if record["stopped"] == "diverged":
        raise DataError(record["error"])
    print_results(results)
    print(f"\nmodel: {out}")
