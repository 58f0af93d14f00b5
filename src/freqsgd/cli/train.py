"""``freqsgd train``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.options import data_options, rule_options, settings, takes
from freqsgd.cli.session import session, write_all
from freqsgd.cli.table import print_results
from freqsgd.data.dataset import DataError
from freqsgd.data.options import DataOptions
from freqsgd.training.compare import describe
from freqsgd.training.fit import fit
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
    with session(data, threads, out) as (loaded, watcher):
        _, record = fit(
            loaded,
            chosen,
            shared,
            threads=threads,
            folder=out,
            resume=resume,
            listener=watcher.training,
        )
    results = describe(loaded, shared, threads)
    results["runs"].append(record)
    write_all(results, out)
    if record["stopped"] == "diverged":
        raise DataError(record["error"])
    print_results(results)
    print(f"\nmodel: {out}")
