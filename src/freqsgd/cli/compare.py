"""``freqsgd compare``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from freqsgd import training
from freqsgd.cli.options import (
    PresetName,
    chosen,
    data_options,
    rates,
    rule_options,
    settings,
    takes,
    words,
)
from freqsgd.cli.session import REPORT, command_line, session
from freqsgd.cli.table import print_results
from freqsgd.data.dataset import DataError
from freqsgd.data.options import DataOptions
from freqsgd.report import write_report
from freqsgd.training.presets import preset
from freqsgd.training.rules import OPTIMIZERS, Rule
from freqsgd.training.settings import Settings

__all__ = ["compare"]


@takes(data=data_options, shared=settings, rule=rule_options)
def compare(
    context: typer.Context,
    optimizers: Annotated[
        str, typer.Option(help=f"Some of {', '.join(OPTIMIZERS)}.")
    ] = "sgd,cfsgd,adagrad,adam",
    lr: Annotated[
        str, typer.Option(help="Rates such as sgd=10,cfsgd=auto, or auto for all; else the preset.")
    ] = "",
    preset_name: PresetName = "paper",
    out: Annotated[
        Path | None, typer.Option(help="Folder for results.json, report.html and models.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch.")] = None,
    *,
    data: DataOptions,
    shared: Settings,
    rule: Callable[[str, float | None], Rule],
) -> None:
    """Train one model with several optimizers and compare them.

    Example: freqsgd compare --dataset movielens-1m --optimizers sgd,cfsgd,adam --out ml
    """
    names = words(optimizers)
    if not names:
        raise DataError(f"--optimizers names none of {', '.join(OPTIMIZERS)}")
    given = rates(lr, names)
    plans = []
    for name in names:
        values = preset(preset_name, data.name, shared.model, name) or {}
        plans.append(chosen(rule, name, given.get(name, ""), shared, values, context))
    with session(data, threads, out) as (loaded, watcher):
        results = training.compare(
            loaded,
            [rule for rule, _ in plans],
            [each for _, each in plans],
            threads=threads,
            out=out,
            resume=resume,
            listener=watcher.training,
            command=command_line(),
        )
    print_results(results)
    if out is not None:
        write_report(results, out / REPORT)
        print(f"\nreport: {out / REPORT}")
    if all(run["stopped"] == "diverged" for run in results["runs"]):
        raise DataError("every optimizer diverged: try smaller learning rates (--lr)")
