"""``freqsgd compare``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from freqsgd import training
from freqsgd.cli.options import data_options, numbers, rule_options, settings, takes, words
from freqsgd.cli.session import session, write_all
from freqsgd.cli.table import print_results
from freqsgd.data.dataset import DataError
from freqsgd.data.options import DataOptions
from freqsgd.training.presets import preset_rate
from freqsgd.training.rules import OPTIMIZERS, Rule
from freqsgd.training.settings import Settings

__all__ = ["compare"]


@takes(data=data_options, shared=settings, rule=rule_options)
def compare(
    optimizers: Annotated[
        str, typer.Option(help=f"Some of {', '.join(OPTIMIZERS)}.")
    ] = "sgd,cfsgd,adagrad,adam",
    lr: Annotated[
        str, typer.Option(help="Rates such as sgd=10,cfsgd=1 instead of the presets.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder for results.json, report.html and models.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch.")] = None,
    *,
    data: DataOptions,
    shared: Settings,
    rule: Callable[[str, float], Rule],
) -> None:
    """Train one model with several optimizers and compare them.

    Example: freqsgd compare --dataset movielens-1m --optimizers sgd,cfsgd,adam --out ml
    """
    rates, names = numbers(lr), words(optimizers)
    if unused := set(rates) - set(names):
        raise DataError(f"--lr names {', '.join(sorted(unused))}, which --optimizers does not")
    rules = [
        rule(name, rates[name] if name in rates else preset_rate(data.name, shared.model, name))
        for name in names
    ]
    if not rules:
        raise DataError(f"--optimizers names none of {', '.join(OPTIMIZERS)}")
    with session(data, threads, out) as (loaded, watcher):
        results = training.compare(
            loaded,
            rules,
            shared,
            threads=threads,
            out=out,
            resume=resume,
            listener=watcher.training,
        )
    print_results(results)
    if out is not None:
        print(f"\nreport: {write_all(results, out)}")
    if all(run["stopped"] == "diverged" for run in results["runs"]):
        raise DataError("every optimizer diverged: try smaller learning rates (--lr)")
