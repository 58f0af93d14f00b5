"""``freqsgd compare``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli.one_pass import compare_one_pass, one_pass_rules
from freqsgd.cli.options import rates, rule_options, takes, words
from freqsgd.cli.request import PresetName, Request, plans, request
from freqsgd.cli.session import REPORT, any_session, command_line, target
from freqsgd.cli.table import print_results
from freqsgd.errors import DataError
from freqsgd.optimizers import OPTIMIZERS, Rule
from freqsgd.report import write_report
from freqsgd.report.old.diagnosis_words import diagnosis_words
from freqsgd.report.results import read_results
from freqsgd.tables.spec import StreamOptions
from freqsgd.words.settings import TextSettings

__all__ = ["compare"]


@takes(asked=request, rule=rule_options)
def compare(
    context: typer.Context,
    optimizers: Annotated[
        str | None,
        typer.Option(
            help=f"Some of {', '.join(OPTIMIZERS)} "
            "(default: sgd,cfsgd,adagrad,adam; text: sgd,cfsgd and, for softmax, adam; "
            "one pass: cfsgd,adagrad,rowwise-adagrad,sgd)."
        ),
    ] = None,
    lr: Annotated[
        str,
        typer.Option(
            help="Rates such as sgd=10,cfsgd=auto, or auto for all; else the preset; "
            "one pass: else the best of 5."
        ),
    ] = "",
    preset_name: PresetName = "paper",
    out: Annotated[Path | None, target("Folder for results.json, report.html and models.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch, at most.")] = None,
    diagnose: Annotated[
        bool,
        typer.Option(
            "--diagnose",
            help="Look at second moments and gradients by token frequency after each epoch.",
        ),
    ] = False,
    *,
    asked: Request,
    rule: Callable[[str, float | None], Rule],
) -> None:
    """Train one model with several optimizers and compare them.

    Example: freqsgd compare --dataset movielens-1m --optimizers sgd,cfsgd,adam --out ml

    Word vectors: freqsgd compare --model skipgram --loss softmax --dataset wikitext-2 --out words

    One pass: freqsgd compare --one-pass --dataset clicks-small --out clicks
    """
    from freqsgd.compare import compare as compare_runs

    names = words(asked.optimizers if optimizers is None else optimizers)
    if not names:
        raise DataError(f"--optimizers names none of {', '.join(OPTIMIZERS)}")
    if diagnose and isinstance(asked.settings, TextSettings):
        raise DataError(
            f"--diagnose does not go with --model {asked.settings.model}: it is for fm and deepfm"
        )
    given = rates(lr, names)
    lrs = [(name, given.get(name, "")) for name in names]
    if isinstance(asked.data, StreamOptions):
        rules = one_pass_rules(context, rule, lrs)
        results = compare_one_pass(asked, rules, threads, out, resume)
    else:
        planned = plans(context, asked, rule, lrs, preset_name)
        with any_session(asked.data, threads, out) as (loaded, watcher):
            results = compare_runs(
                loaded,
                [rule for rule, _ in planned],
                [each for _, each in planned],
                threads=threads,
                out=out,
                resume=resume,
                listener=watcher.training,
                command=command_line(),
                diagnose=diagnose,
            )
    print_results(results)
    for statement in diagnosis_words(read_results(results)):
        print(f"\n{statement.topic}: {statement.text}")
    if out is not None:
        write_report(results, out / REPORT)
        print(f"\nreport: {out / REPORT}")
    if all(run["stopped"] == "diverged" for run in results["runs"]):
        raise DataError("every optimizer diverged: try smaller learning rates (--lr)")
