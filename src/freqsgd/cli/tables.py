"""``freqsgd train``, ``compare`` and ``tune``: recommenders of tables of categories."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from freqsgd.cli import options as opt
from freqsgd.cli.options import data_option, in_data, in_model, in_rule, made, option, takes, target
from freqsgd.cli.results import print_results
from freqsgd.cli.session import RUN, SEARCH, check_out, command_line
from freqsgd.cli.training import (
    REPORT,
    compare_and_report,
    save_results,
    session,
    show_trained,
    trained,
)
from freqsgd.errors import DataError
from freqsgd.optimizers import Rule
from freqsgd.recommender.settings import Settings, preset, with_preset
from freqsgd.report import write_report
from freqsgd.tables.spec import DataOptions
from freqsgd.words.files import has_text_name
from freqsgd.words.settings import TEXT_MODELS

_Preset = Annotated[
    str,
    option(
        "Values of options that are not given: paper (rates, and patience 2, of the paper's "
        "datasets; else --lr auto) or best (all options, as a search found them).",
        "--preset",
    ),
]
_FIVE = "sgd,cfsgd,cfadam,adagrad,adam"


def _data_options(
    dataset: Annotated[
        str | None, in_data("Dataset: synthetic, movielens-1m or criteo (default: synthetic).")
    ] = None,
    path: Annotated[
        str | None,
        data_option(
            "Your own files: .csv, .tsv, .inter or .parquet, a folder of these, or a pattern such "
            "as 'logs/day-*'.",
            "--data",
        ),
    ] = None,
    label: opt.Label = None,
    features: opt.Features = "",
    numeric: opt.Numeric = "",
    numeric_rule: opt.NumericRule = DataOptions.numeric_rule,
    positive_above: opt.PositiveAbove = None,
    min_count: Annotated[
        int | None,
        in_data("Occurrences below which tokens share one id (default: 10 for criteo, else 1)."),
    ] = None,
    max_bad_rows: opt.MaxBadRows = 0,
    split: Annotated[
        str, in_data("Split: random, time:COLUMN or column:COLUMN.")
    ] = DataOptions.split,
    validation_path: opt.ValidationPath = None,
    test_path: opt.TestPath = None,
    split_seed: opt.SplitSeed = 0,
    tail: Annotated[
        str, in_data("Decay of synthetic frequencies: polynomial or exponential.")
    ] = DataOptions.tail,
    samples: Annotated[int, in_data("Number of synthetic samples.")] = DataOptions.samples,
    separator: opt.Separator = None,
    columns: opt.Columns = None,
) -> None:
    """Describe the samples."""


def _model_options(
    model: opt.Model = "fm",
    dim: Annotated[
        int | None, in_model("Dimension of the vectors (default: 64; deepfm 16).")
    ] = None,
    hidden: opt.Hidden = "16,16",
    dropout: opt.Dropout = Settings.dropout,
    epochs: Annotated[int, in_model("Maximum number of epochs.")] = Settings.epochs,
    patience: Annotated[
        int,
        in_model("Number of epochs without a better validation AUC after which training stops."),
    ] = 5,
    batch_size: opt.BatchSize = Settings.batch_size,
    seed: opt.Seed = 0,
    checkpoint_steps: opt.CheckpointSteps = None,
) -> None:
    """Describe the model and its training."""


def _rule_options(
    init_scale: opt.InitScale = Settings.init_scale,
    lr_decay: Annotated[
        str, in_model("Learning rate schedule: constant, or linear to 0 over all epochs.")
    ] = Settings.lr_decay,
    weight_decay: opt.WeightDecay = 0.0,
    weight_decay_power: opt.WeightDecayPower = 1.0,
    max_lr: Annotated[
        float | None,
        in_rule(
            "Cap on a token's learning rate, for fasgd and cfsgd (default: none; auto: 100 lr)."
        ),
    ] = None,
    linear_lr_scale: opt.LinearLrScale = 1.0,
    linear_decay_scale: opt.LinearDecayScale = 1.0,
) -> None:
    """Describe what tune searches."""


@takes(_data_options, _model_options, _rule_options)
def train(
    context: typer.Context,
    out: Annotated[Path, target("Folder for the model.")] = Path("model"),
    optimizer: opt.Optimizer = "cfsgd",
    lr: Annotated[str, option("Learning rate: a number or auto (default: the preset's).")] = "",
    preset_name: _Preset = "paper",
    resume: opt.Resume = False,
    threads: opt.Threads = None,
) -> None:
    """Train a model and save it as a folder.

    Example: freqsgd train --data clicks.csv --label click --features user,item --out model
    """
    data, shared = _data(context), _settings(context)
    check_out(out, RUN, resume=resume)
    rule, settings = _planned(context, data, shared, optimizer, lr, preset_name)
    results = trained(data, rule, settings, threads=threads, out=out, resume=resume)
    save_results(results, out)
    show_trained(results, out)


@takes(_data_options, _model_options, _rule_options)
def compare(
    context: typer.Context,
    optimizers: opt.Optimizers = _FIVE,
    lr: Annotated[
        str, option("Learning rates: sgd=10,cfsgd=auto, or one for all (default: the preset's).")
    ] = "",
    preset_name: _Preset = "paper",
    out: Annotated[Path | None, target("Folder for results.json, report.html and models.")] = None,
    resume: opt.Resume = False,
    threads: opt.Threads = None,
    diagnose: Annotated[
        bool,
        option(
            "Record second moments and gradients by token frequency after each epoch.",
            "--diagnose",
        ),
    ] = False,
) -> None:
    """Train one model with several optimizers and compare them.

    Example: freqsgd compare --dataset movielens-1m --optimizers sgd,cfsgd,adam --out ml
    """
    data, shared, names = _data(context), _settings(context), opt.compared(optimizers)
    lrs = opt.rates(lr, names)
    plans = [_planned(context, data, shared, name, lrs[name], preset_name) for name in names]
    compare_and_report(
        data,
        [rule for rule, _ in plans],
        [settings for _, settings in plans],
        threads=threads,
        out=out,
        resume=resume,
        diagnose=diagnose,
    )


@takes(_data_options, _model_options)
def tune(
    context: typer.Context,
    out: Annotated[Path, target("Folder for trials, models, results and report.")],
    optimizers: opt.Optimizers = _FIVE,
    trials: Annotated[int, option("Number of trials for each optimizer.")] = 40,
    seeds: Annotated[
        int, option("Number of final runs with the best settings, each with another seed.")
    ] = 1,
    resume: opt.Resume = False,
    threads: opt.Threads = None,
) -> None:
    """Search the best settings of each optimizer, with the same number of trials.

    Example: freqsgd tune --dataset movielens-1m --optimizers cfsgd,adam --trials 40 --out tuned
    """
    from freqsgd.recommender.tune import check_request
    from freqsgd.recommender.tune import tune as search

    model = context.params["model"]
    if model in TEXT_MODELS:
        raise DataError(
            f"there is no search of settings for {model}: compare several rates "
            f"(freqsgd words compare --model {model} --lr)"
        )
    data, shared, names = _data(context), _settings(context), opt.words(optimizers)
    check_out(out, SEARCH, resume=resume)
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
            command=command_line(),
        )
    if not results["runs"]:
        raise DataError("every trial of every optimizer diverged: try more --trials")
    print_results(results)
    write_report(results, out / REPORT)
    print(f"\nreport: {out / REPORT}")


def _data(context: typer.Context) -> DataOptions:
    if context.params["label"] is None and has_text_name(context.params["path"] or ""):
        raise DataError(
            f"{context.params['path']}: name the column that holds the label (--label); if this "
            f"is text, train word vectors on it: freqsgd words {context.info_name}"
        )
    return made(DataOptions, context)


def _settings(context: typer.Context) -> Settings:
    model = context.params["model"]
    if model in TEXT_MODELS:
        raise DataError(
            f"{model} learns word vectors: freqsgd words {context.info_name} --model {model}"
        )
    return made(Settings, context)


def _planned(
    context: typer.Context,
    data: DataOptions,
    shared: Settings,
    optimizer: str,
    lr: str,
    preset_name: str,
) -> tuple[Rule, Settings]:
    """Return the rule and settings of an optimizer: the preset's where no option is given."""
    values = preset(preset_name, data.name, shared.model, optimizer) or {}
    given = opt.given(context) - {"lr"} | ({"lr"} if lr else set())
    left = {name: value for name, value in values.items() if name not in given}
    return with_preset(opt.rule_of(context, optimizer, lr), shared, left)
