"""``freqsgd train``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.options import PresetName, chosen, data_options, rule_options, settings, takes
from freqsgd.cli.session import REPORT, command_line, session
from freqsgd.cli.table import print_results
from freqsgd.data.dataset import DataError
from freqsgd.data.options import DataOptions
from freqsgd.report import write_report
from freqsgd.training.compare import RESULTS, describe, write_results
from freqsgd.training.fit import fit
from freqsgd.training.presets import preset
from freqsgd.training.rules import OPTIMIZERS, Rule
from freqsgd.training.settings import Settings

__all__ = ["train"]


@takes(data=data_options, shared=settings, rule=rule_options)
def train(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the model.")] = Path("model"),
    optimizer: Annotated[str, typer.Option(help=f"One of {', '.join(OPTIMIZERS)}.")] = "cfsgd",
    lr: Annotated[str, typer.Option(help="A number or auto; else the preset's.")] = "",
    preset_name: PresetName = "paper",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch.")] = None,
    *,
    data: DataOptions,
    shared: Settings,
    rule: Callable[[str, float | None], Rule],
) -> None:
    """Train a model and save it as a folder.

    Example: freqsgd train --data clicks.csv --label click --features user,item --out model
    """
    values = preset(preset_name, data.name, shared.model, optimizer) or {}
    its_rule, shared = chosen(rule, optimizer, lr, shared, values, context)
    with session(data, threads, out) as (loaded, watcher):
        _, record = fit(
            loaded,
            its_rule,
            shared,
            threads=threads,
            folder=out,
            resume=resume,
            listener=watcher.training,
        )
    results = describe(loaded, shared, threads, command_line())
    results["runs"].append(record)
    write_results(results, out / RESULTS)
    write_report(results, out / REPORT)
    if record["stopped"] == "diverged":
        raise DataError(record["error"])
    print_results(results)
    print(f"\nmodel: {out}")
