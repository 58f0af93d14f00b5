"""``freqsgd tune``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from freqsgd.cli.options import data_options, settings, takes, words
from freqsgd.cli.session import session, write_all
from freqsgd.cli.table import print_results
from freqsgd.data.dataset import DataError
from freqsgd.data.options import DataOptions
from freqsgd.training.rules import OPTIMIZERS
from freqsgd.training.search_space import SEARCHED
from freqsgd.training.settings import Settings
from freqsgd.training.tune import check_request
from freqsgd.training.tune import tune as search

__all__ = ["tune"]


def _shared(**given: Any) -> Settings:
    """Settings without what is searched."""
    for name in SEARCHED:
        if given.pop(name) is not None:
            option = "--" + name.replace("_", "-")
            raise DataError(f"{option} is searched: leave it out")
    return settings(**given)


def _shared_signature() -> inspect.Signature:
    kept = inspect.signature(settings, eval_str=True).parameters.values()
    refused = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, typer.Option(hidden=True)],
        )
        for name in SEARCHED
    ]
    kept_too = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in kept if p.name not in SEARCHED
    ]
    return inspect.Signature([*kept_too, *refused])


_shared.__signature__ = _shared_signature()  # type: ignore[attr-defined]


@takes(data=data_options, shared=_shared)
def tune(
    out: Annotated[Path, typer.Option(help="Folder for trials, models, results and report.")],
    optimizers: Annotated[
        str, typer.Option(help=f"Some of {', '.join(OPTIMIZERS)}.")
    ] = "sgd,cfsgd,adagrad,adam",
    trials: Annotated[int, typer.Option(help="Of each optimizer.")] = 40,
    seeds: Annotated[
        int, typer.Option(help="How many times the best settings are trained in the end.")
    ] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch.")] = None,
    *,
    data: DataOptions,
    shared: Settings,
) -> None:
    """Search the best settings of each optimizer, with the same number of trials.

    Example: freqsgd tune --dataset movielens-1m --optimizers cfsgd,adam --trials 40 --out tuned
    """
    names = words(optimizers)
    check_request(names, shared, out=out, trials=trials, seeds=seeds, resume=resume)
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
        )
    if not results["runs"]:
        raise DataError("every trial of every optimizer diverged: try more --trials")
    print_results(results)
    print(f"\nreport: {write_all(results, out)}")
