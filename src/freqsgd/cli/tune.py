"""``freqsgd tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.options import data_options, shared_settings, takes, words
from freqsgd.cli.progress import console
from freqsgd.cli.session import REPORT, command_line, session, target
from freqsgd.cli.table import print_results
from freqsgd.errors import DataError
from freqsgd.optimizers import OPTIMIZERS
from freqsgd.recommender.settings import Settings
from freqsgd.report import write_report
from freqsgd.tables.spec import DataOptions

__all__ = ["tune"]


@takes(data=data_options, shared=shared_settings)
def tune(
    out: Annotated[Path, target("Folder for trials, models, results and report.")],
    optimizers: Annotated[
        str, typer.Option(help=f"Some of {', '.join(OPTIMIZERS)}.")
    ] = "sgd,cfsgd,adagrad,adam",
    trials: Annotated[int, typer.Option(help="Of each optimizer.")] = 40,
    seeds: Annotated[
        int, typer.Option(help="How many times the best settings are trained in the end.")
    ] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch, at most.")] = None,
    *,
    data: DataOptions,
    shared: Settings,
) -> None:
    """Search the best settings of each optimizer, with the same number of trials.

    Example: freqsgd tune --dataset movielens-1m --optimizers cfsgd,adam --trials 40 --out tuned
    """
    from freqsgd.recommender.trials import TRIALS
    from freqsgd.recommender.tune import check_request
    from freqsgd.recommender.tune import tune as search

    names = words(optimizers)
    check_request(names, shared, out=out, trials=trials, seeds=seeds, resume=resume)
    if resume and not (out / TRIALS).exists():
        told = f"{out} holds no search to go on with: a new one starts"
        console.print(told, soft_wrap=True, markup=False)
    with session(data, threads, out) as (loaded, watcher):
        results = search(
            loaded,
            names,
            shared,
            out=out,
            trials=trials,
            seeds=seeds,
            threads=threads,
            resume=resume,
            listener=watcher.tuning,
            command=command_line(),
        )
    if not results["runs"]:
        raise DataError("every trial of every optimizer diverged: try more --trials")
    print_results(results)
    write_report(results, out / REPORT)
    print(f"\nreport: {out / REPORT}")
