"""Documents that commands write: what ``results.json`` says before its runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from freqsgd.documents import SCHEMA
from freqsgd.errors import DataError
from freqsgd.optimizers import Rule
from freqsgd.runs.machine import describe_machine

__all__ = ["MODELS", "RESULTS", "check_empty", "check_names", "heading"]

RESULTS, MODELS = "results.json", "models"


def check_names(rules: Sequence[Rule]) -> None:
    """Raise unless there are optimizers, each of them once."""
    names = [rule.optimizer for rule in rules]
    if not rules:
        raise DataError("there is no optimizer to compare")
    if len(set(names)) < len(names):
        raise DataError(f"each optimizer may be named once, got {', '.join(names)}")


def check_empty(out: Path, *names: str) -> None:
    """Refuse a folder that holds any of these results."""
    if any((out / name).exists() for name in names):
        raise DataError(f"{out} holds results already: use --resume, or another --out")


def heading(
    dataset: dict[str, Any],
    splits: dict[str, int],
    model: dict[str, Any],
    threads: int | None,
    command: str | None,
) -> dict[str, Any]:
    """What ``results.json`` says before its runs, whatever they train on."""
    return {
        "schema": SCHEMA,
        "command": command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": dataset,
        "splits": splits,
        "model": model,
        "machine": describe_machine(threads),
        "runs": [],
    }
