"""What train does with --engine torchrec, on every rank."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import typer

from freqsgd.cli.one_pass import parts_of, rate_needed
from freqsgd.cli.options import is_given
from freqsgd.cli.progress import console
from freqsgd.cli.request import Request
from freqsgd.cli.session import command_line, stream_session
from freqsgd.errors import DataError
from freqsgd.optimizers import Rule

__all__ = ["ENGINES", "is_sharded", "train_sharded"]

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
    from freqsgd.recommender.compare_streams import add_run, describe_stream
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
        results = describe_stream(stream, settings, threads, command_line())
        add_run(results, stream, record)
    return results


def _check_counting(rule: Rule, batch_size: int) -> None:
    """Say which rates to start from where occurrences would be counted."""
    if rule.optimizer == "cfsgd" and rule.count != "batch":
        assert rule.lr is not None
        raise DataError(
            "--engine torchrec counts the batches that hold a token, not its occurrences: add "
            f"--count batch; coming from --lr {rule.lr:g}, start from --lr "
            f"{rule.lr * math.sqrt(batch_size):.3g}, which is {rule.lr:g} * sqrt({batch_size}) "
            f"(bias and network keep {rule.lr:g})"
        )
