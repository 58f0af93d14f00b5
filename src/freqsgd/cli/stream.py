"""``freqsgd stream train`` and ``compare``: recommenders, in one pass over days of data."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from freqsgd.cli import options as opt
from freqsgd.cli.options import data_option, in_data, in_model, in_rule, made, option, takes, target
from freqsgd.cli.progress import console
from freqsgd.cli.session import RUN, check_out, command_line
from freqsgd.cli.training import (
    compare_and_report,
    save_results,
    session,
    show_trained,
    trained,
)
from freqsgd.errors import DataError
from freqsgd.optimizers import COUNTING, Rule
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.tables.spec import StreamOptions
from freqsgd.words.settings import TEXT_MODELS

_CLICKS = "clicks-small"


def _options(
    dataset: Annotated[
        str | None, in_data(f"Built-in stream: {_CLICKS} (default: {_CLICKS}).")
    ] = None,
    path: Annotated[
        str | None,
        data_option(
            "Your own days, in the order of their names: a folder of files or of folders, or a "
            "pattern such as 'logs/day-*'.",
            "--data",
        ),
    ] = None,
    label: opt.Label = None,
    features: opt.Features = "",
    numeric: opt.Numeric = "",
    hash_rows: Annotated[
        str, in_data("Rows of the tables that tokens are hashed to: 1000000, or user=1e5,item=1e6.")
    ] = "",
    dictionary: Annotated[
        str | None, in_data("Folder of a trained model whose tokens to use instead of hashing.")
    ] = None,
    positive_above: opt.PositiveAbove = None,
    max_bad_rows: opt.MaxBadRows = 0,
    skip_bad_files: Annotated[
        bool, in_data("Leave out damaged files with a warning.", "--skip-bad-files")
    ] = False,
    allow_missing_days: Annotated[
        bool, in_data("Accept days that are missing between others.", "--allow-missing-days")
    ] = False,
    separator: opt.Separator = None,
    columns: opt.Columns = None,
    model: opt.Model = "fm",
    dim: Annotated[int, in_model("Dimension of the vectors.")] = 16,
    hidden: opt.Hidden = "16,16",
    dropout: opt.Dropout = Settings.dropout,
    init_scale: opt.InitScale = Settings.init_scale,
    batch_size: opt.BatchSize = Settings.batch_size,
    seed: opt.Seed = 0,
    window: Annotated[
        int, in_model("Number of examples in a window of the metrics.")
    ] = Pass.window,
    checkpoint_examples: Annotated[
        int | None, in_model("Number of examples between checkpoints (default: none are written).")
    ] = None,
    weight_decay: opt.WeightDecay = 0.0,
    weight_decay_power: opt.WeightDecayPower = 1.0,
    max_lr: Annotated[
        float | None,
        in_rule(
            "Cap on a token's learning rate, for fasgd and cfsgd; inf for none (default: 0.03 lr "
            "times batch size; none with --count batch)."
        ),
    ] = None,
    linear_lr_scale: opt.LinearLrScale = 1.0,
    linear_decay_scale: opt.LinearDecayScale = 1.0,
    halflife: Annotated[
        float | None, in_rule("Half-life of the counts, in examples (cfsgd only; default: none).")
    ] = None,
    count: Annotated[
        str,
        in_rule(
            "What cfsgd counts: occurrence, or batch, once per batch that holds a token, as on "
            "TorchRec. Rates do not transfer: start from lr times the root of the batch size."
        ),
    ] = Rule.count,
    dense_lr: Annotated[
        float | None,
        in_rule(
            "Learning rate of bias and network with --count batch: the one they had with "
            "occurrence (default: lr over the root of the batch size)."
        ),
    ] = None,
) -> None:
    """Describe the days, the model and its training."""


_in_ranks = partial(option, panel="Several processes (torchrun)")


def _rank_options(
    engine: Annotated[
        str, _in_ranks("Engine: freqsgd, in this process, or torchrec, on torchrun's ranks.")
    ] = "freqsgd",
    sharding: Annotated[
        str, _in_ranks("Sharding of torchrec's tables: row-wise, table-wise or auto.")
    ] = "row-wise",
) -> None:
    """Describe what ranks do."""


@takes(_options, _rank_options)
def train(
    context: typer.Context,
    out: Annotated[Path, target("Folder for the model.")] = Path("model"),
    optimizer: opt.Optimizer = "cfsgd",
    lr: Annotated[str, option("Learning rate (required, but 0.001 for cfadam).")] = "",
    resume: opt.Resume = False,
    threads: opt.Threads = None,
) -> None:
    """Train a model in one pass over days of data, and save it.

    Example: freqsgd stream train --data logs --label click --features user,item --hash-rows 1e6
    --lr 1 --out model

    Several processes: torchrun --nproc-per-node 2 -m freqsgd stream train --engine torchrec
    --count batch --lr 10 --out model
    """
    sharded = _is_sharded(context)
    options, settings, plan = _parts(context)
    check_out(out, RUN, resume=resume)
    (rule,) = _rules(context, [(optimizer, lr)])
    rule = rule.settled
    if rule.lr is None:
        raise DataError(
            "one pass needs a learning rate (--lr): freqsgd stream compare --optimizers "
            f"{optimizer} tries 5 and keeps the model of the best"
        )
    if sharded:
        sharding = context.params["sharding"]
        results = _train_sharded(options, rule, settings, plan, sharding, threads, out, resume)
    else:
        results = trained(
            options, rule, settings, threads=threads, out=out, resume=resume, plan=plan
        )
    save_results(results, out)
    if sharded:  # torchrun stops all ranks when one fails: none ends before this
        from freqsgd.torchrec.group import leave

        leave()
    show_trained(results, out)
    if sharded:
        print(f"its tables are in shards: freqsgd convert {out} --out DIR puts them together")


@takes(_options)
def compare(
    context: typer.Context,
    optimizers: opt.Optimizers = "cfsgd,cfadam,adagrad,rowwise-adagrad,sgd",
    lr: Annotated[
        str, option("Learning rates: sgd=10,cfsgd=1, or one for all (default: the best of 5).")
    ] = "",
    out: Annotated[Path | None, target("Folder for results.json, report.html and models.")] = None,
    resume: opt.Resume = False,
    threads: opt.Threads = None,
) -> None:
    """Compare several optimizers in one pass over days of data.

    Example: freqsgd stream compare --dataset clicks-small --out clicks
    """
    options, settings, plan = _parts(context)
    names = opt.compared(optimizers)
    lrs = opt.rates(lr, names)
    rules = _rules(context, [(name, lrs[name]) for name in names])
    compare_and_report(options, rules, settings, threads=threads, out=out, resume=resume, plan=plan)


def _parts(context: typer.Context) -> tuple[StreamOptions, Settings, Pass]:
    """Make what is asked for, whatever the optimizer."""
    asked = context.params
    if asked["model"] in TEXT_MODELS:
        raise DataError(
            f"{asked['model']} learns word vectors: freqsgd words {context.info_name} "
            f"--model {asked['model']}"
        )
    dataset = asked["dataset"] or (_CLICKS if asked["path"] is None else None)
    options = made(StreamOptions, context, dataset=dataset)
    return options, made(Settings, context), made(Pass, context)


def _rules(context: typer.Context, lrs: Sequence[tuple[str, str]]) -> list[Rule]:
    """Return the rules of optimizers; those without a rate try several."""
    names = [name for name, _ in lrs]
    if not set(COUNTING) & set(names):
        for name in ("halflife", "count", "dense_lr"):
            if name in opt.given(context):
                raise DataError(
                    f"{name} is for {' and '.join(COUNTING)}, not for {', '.join(names)}"
                )
    if "auto" in dict(lrs).values():
        raise DataError(
            "--lr auto does not go with one pass: without --lr, freqsgd stream compare tries 5 "
            "rates"
        )
    return [opt.rule_of(context, name, lr) for name, lr in lrs]


# ---- several processes ---------------------------------------------------------------------------
_ENGINES = ("freqsgd", "torchrec")


def _is_sharded(context: typer.Context) -> bool:
    """Whether ranks train; refuse an unknown engine, and options of the other one."""
    engine = context.params["engine"]
    if engine not in _ENGINES:
        raise DataError(f"unknown engine {engine!r}; known: {', '.join(_ENGINES)}")
    if engine == "torchrec":
        console.quiet = os.environ.get("RANK", "0") != "0"
        return True
    if "sharding" in opt.given(context):
        raise DataError("--sharding needs --engine torchrec")
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise DataError(
            "torchrun has started several processes, of which each would train the whole model: "
            "add --engine torchrec, or start without torchrun"
        )
    return False


def _train_sharded(
    options: StreamOptions,
    rule: Rule,
    settings: Settings,
    plan: Pass,
    sharding: str,
    threads: int | None,
    out: Path,
    resume: bool,
) -> dict[str, Any]:
    """Return the results of one run, whose tables are written to the folder in shards.

    Ranks other than the first end here.
    """
    from freqsgd.compare import add_run, describe_any
    from freqsgd.torchrec.group import leave
    from freqsgd.torchrec.trainer import fit_sharded

    _check_counting(rule, settings.batch_size)
    leads = not console.quiet
    with session(options, threads, out) as (stream, watcher):
        record = fit_sharded(
            stream,
            rule,
            settings,
            plan,
            sharding=sharding,
            folder=out,
            resume=resume,
            listener=watcher.streaming if leads else None,
        )[1]
        if not leads:
            leave()
            raise typer.Exit(2 if record["stopped"] == "diverged" else 0)
        results = describe_any(stream, settings, threads, command_line())
        add_run(results, stream, record)
    return results


def _check_counting(rule: Rule, batch_size: int) -> None:
    """Say which rates to start from where occurrences would be counted."""
    if rule.optimizer in COUNTING and rule.count != "batch":
        assert rule.lr is not None
        raise DataError(
            "--engine torchrec counts the batches that hold a token, not its occurrences: add "
            f"--count batch; coming from --lr {rule.lr:g}, start from --lr "
            f"{rule.lr * math.sqrt(batch_size):.3g}, which is {rule.lr:g} * sqrt({batch_size}) "
            f"(bias and network keep {rule.lr:g})"
        )
