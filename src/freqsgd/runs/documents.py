"""The head of ``results.json``, and the names of results in a folder."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from freqsgd.documents import SCHEMA
from freqsgd.runs.machine import describe_machine

RESULTS, MODELS = "results.json", "models"


def heading(
    dataset: dict[str, Any],
    splits: dict[str, int],
    model: dict[str, Any],
    threads: int | None,
    command: str | None,
) -> dict[str, Any]:
    """Return ``results.json`` without runs, whatever they train on."""
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
