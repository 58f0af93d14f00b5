"""What compare and train do with --one-pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from freqsgd.cli.options import counting_flags, is_given, rate
from freqsgd.cli.request import Request
from freqsgd.cli.session import command_line, stream_session
from freqsgd.errors import DataError
from freqsgd.optimizers import COUNTING, Rule
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.tables.spec import StreamOptions

__all__ = ["compare_one_pass", "one_pass_rules", "parts_of", "rate_needed", "train_one_pass"]


def one_pass_rules(
    context: typer.Context,
    rule: Callable[[str, float | None], Rule],
    lrs: Sequence[tuple[str, str]],
) -> list[Rule]:
    """The rules of optimizers, each with its rate as it was given; None: to be found."""
    for name, flag in (("preset_name", "--preset"), ("diagnose", "--diagnose")):
        if is_given(context, name):
            raise DataError(f"{flag} does not go with --one-pass")
    names = [name for name, _ in lrs]
    if not set(COUNTING) & set(names) and (flags := counting_flags(context)):
        raise DataError(f"{flags[0]} is for {' and '.join(COUNTING)}, not for {', '.join(names)}")
    if "auto" in dict(lrs).values():
        raise DataError(
            "--lr auto does not go with --one-pass: without --lr, compare tries 5 rates"
        )
    return [rule(name, rate(lr)) for name, lr in lrs]


def compare_one_pass(
    asked: Request, rules: list[Rule], threads: int | None, out: Path | None, resume: bool
) -> dict[str, Any]:
    """The results of a comparison."""
    from freqsgd.compare import compare

    options, settings, plan = parts_of(asked)
    with stream_session(options, rules, threads, out) as (stream, watcher):
        return compare(
            stream,
            rules,
            settings,
            plan=plan,
            threads=threads,
            out=out,
            resume=resume,
            listener=watcher.streaming,
            finished=watcher.passed,
            command=command_line(),
        )


def train_one_pass(
    asked: Request, rule: Rule, threads: int | None, out: Path, resume: bool
) -> dict[str, Any]:
    """The results of one run, whose model is written to the folder."""
    from freqsgd.compare import add_run, describe_any, fit_any

    rate_needed(rule)
    options, settings, plan = parts_of(asked)
    with stream_session(options, [rule], threads, out) as (stream, watcher):
        record = fit_any(
            stream,
            rule,
            settings,
            plan=plan,
            threads=threads,
            folder=out,
            resume=resume,
            listener=watcher.streaming,
        )
        results = describe_any(stream, settings, threads, command_line())
        add_run(results, stream, record)
    return results


def rate_needed(rule: Rule) -> None:
    """Refuse a rule without a learning rate."""
    if rule.lr is None:
        raise DataError(
            "--one-pass needs a learning rate (--lr): freqsgd compare --one-pass --optimizers "
            f"{rule.optimizer} tries 5 and keeps the model of the best"
        )


def parts_of(asked: Request) -> tuple[StreamOptions, Settings, Pass]:
    """What is asked for in one pass."""
    data, settings, plan = asked
    assert isinstance(data, StreamOptions)
    assert isinstance(settings, Settings)
    assert plan is not None
    return data, settings, plan
