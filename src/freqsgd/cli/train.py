"""``freqsgd train``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from freqsgd.cli.one_pass import one_pass_rules, parts_of, rate_needed, train_one_pass
from freqsgd.cli.options import ONE_PASS, is_given, option, rule_options, takes
from freqsgd.cli.progress import console
from freqsgd.cli.request import PresetName, Request, plans, request
from freqsgd.cli.session import (
    REPORT,
    any_session,
    check_inputs,
    command_line,
    stream_session,
    target,
)
from freqsgd.cli.table import print_results
from freqsgd.errors import DataError
from freqsgd.files import write_json
from freqsgd.optimizers import COUNTING, OPTIMIZERS, Rule
from freqsgd.report import write_report
from freqsgd.tables.spec import StreamOptions

__all__ = ["ENGINES", "is_sharded", "train", "train_sharded"]


@takes(asked=request, rule=rule_options)
def train(
    context: typer.Context,
    out: Annotated[Path, target("Folder for the model.")] = Path("model"),
    optimizer: Annotated[str, typer.Option(help=f"One of {', '.join(OPTIMIZERS)}.")] = "cfsgd",
    lr: Annotated[str, typer.Option(help="A number or auto; else the preset's.")] = "",
    preset_name: PresetName = "paper",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
    threads: Annotated[int | None, typer.Option(help="Of the kernels and torch, at most.")] = None,
    engine: Annotated[
        str,
        option(
            "freqsgd, in this process, or torchrec, on all ranks that torchrun starts.",
            panel=ONE_PASS,
        ),
    ] = "freqsgd",
    sharding: Annotated[
        str,
        option("Of torchrec's tables: row-wise, table-wise or auto.", panel=ONE_PASS),
    ] = "row-wise",
    *,
    asked: Request,
    rule: Callable[[str, float | None], Rule],
) -> None:
    """Train a model and save it as a folder.

    Example: freqsgd train --data clicks.csv --label click --features user,item --out model

    Word vectors: freqsgd train --model skipgram --data corpus.txt --out vectors

    One pass: freqsgd train --one-pass --data logs --label click --features user,item
    --hash-rows 1e6 --lr 1 --out model

    Several processes: torchrun --nproc-per-node 2 -m freqsgd train --engine torchrec --one-pass
    --count batch --lr 10 --out model
    """
    from freqsgd.compare import describe_any, fit_any
    from freqsgd.runs.documents import MODELS, RESULTS
    from freqsgd.runs.resume import check_unused
    from freqsgd.tables.encoder import DESCRIPTION, TOKENS

    sharded = is_sharded(context, engine)
    if (out / MODELS).exists():
        raise DataError(f"{out} holds a comparison (freqsgd compare): use another --out")
    check_inputs(asked.data, out)  # says more of a file that is both
    if not resume:
        check_unused(out, (RESULTS, REPORT, DESCRIPTION, TOKENS))
    if isinstance(asked.data, StreamOptions):
        (one_rule,) = one_pass_rules(context, rule, [(optimizer, lr)])
        if sharded:
            results = train_sharded(asked, one_rule, sharding, threads, out, resume)
        else:
            results = train_one_pass(asked, one_rule, threads, out, resume)
    else:
        ((its_rule, settings),) = plans(context, asked, rule, [(optimizer, lr)], preset_name)
        with any_session(asked.data, threads, out) as (loaded, watcher):
            record = fit_any(
                loaded,
                its_rule,
                settings,
                threads=threads,
                folder=out,
                resume=resume,
                listener=watcher.training,
            )
        results = describe_any(loaded, settings, threads, command_line())
        results["runs"].append(record)
    write_json(out / RESULTS, results)
    write_report(results, out / REPORT)
    if sharded:  # torchrun stops all ranks when one fails: none ends before this
        from freqsgd.torchrec.group import leave

        leave()
    for run in results["runs"]:
        if run["stopped"] == "diverged":
            raise DataError(run["error"])
    print_results(results)
    print(f"\nmodel: {out}")
    if sharded:
        print(f"its tables are in shards: freqsgd convert {out} --out DIR puts them together")


ENGINES = ("freqsgd", "torchrec")


def is_sharded(context: typer.Context, engine: str) -> bool:
    """Whether ranks train; refuses an unknown engine, and options of the other one."""
    if engine not in ENGINES:
        raise DataError(f"unknown engine {engine!r}; known: {', '.join(ENGINES)}")
    if engine == "torchrec":
        if not context.params["one_pass"]:
            raise DataError("--engine torchrec needs --one-pass")
        return True
    if is_given(context, "sharding"):
        raise DataError("--sharding needs --engine torchrec")
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise DataError(
            "torchrun has started several processes, of which each would train the whole model: "
            "add --engine torchrec, or start without torchrun"
        )
    return False


def train_sharded(
    asked: Request, rule: Rule, sharding: str, threads: int | None, out: Path, resume: bool
) -> dict[str, Any]:
    """The results of one run, whose tables are written to the folder in shards.

    Ranks other than the first end here.
    """
    from freqsgd.compare import add_run, describe_any
    from freqsgd.torchrec.group import leave
    from freqsgd.torchrec.trainer import fit_sharded

    rate_needed(rule)
    options, settings, plan = parts_of(asked)
    _check_counting(rule, settings.batch_size)
    leads = os.environ.get("RANK", "0") == "0"
    console.quiet = not leads
    with stream_session(options, [], threads, out) as (stream, watcher):
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
