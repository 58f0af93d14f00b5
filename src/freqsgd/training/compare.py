"""Several optimizers on one dataset: the same split, start and order of samples."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from freqsgd.data.dataset import DataError, Dataset
from freqsgd.data.files import write_whole
from freqsgd.training.fit import Progress, fit
from freqsgd.training.metrics import auc
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings

__all__ = ["RESULTS", "compare", "describe", "write_results"]

SCHEMA = 1
RESULTS, MODELS = "results.json", "models"


def compare(
    data: Dataset,
    rules: Iterable[Rule],
    settings: Settings | Sequence[Settings] | None = None,
    *,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool = False,
    listener: Callable[[Progress, dict[str, Any]], None] | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Train once with each optimizer; return the content of ``results.json``.

    Args:
        data: samples and their splits
        rules: the optimizers
        settings: what they share; or one for each, of one model and size
        threads: of the kernels
        out: a folder for results and models; written after each optimizer
        resume: go on where a run with the same options ended
        listener: called some times a second with the progress and record of the current run
        command: the command line that does the same, for ``results.json``
    """
    rules = list(rules)
    if isinstance(settings, Sequence):
        each = list(settings)
    else:
        each = [settings or Settings()] * len(rules)
    names = [rule.optimizer for rule in rules]
    if not rules:
        raise DataError("there is no optimizer to compare")
    if len(set(names)) < len(names):
        raise DataError(f"each optimizer may be named once, got {', '.join(names)}")
    if out is not None and (out / RESULTS).exists() and not resume:
        raise DataError(f"{out} holds results already: use --resume, or another --out")
    results = describe(data, each[0], threads, command)
    for rule, its_settings in zip(rules, each, strict=True):
        folder = None if out is None else out / MODELS / rule.optimizer
        options: dict[str, Any] = {"folder": folder, "resume": resume, "listener": listener}
        _, record = fit(data, rule, its_settings, threads=threads, **options)
        results["runs"].append(record)
        if out is not None:
            write_results(results, out / RESULTS)
    return results


def describe(
    data: Dataset, settings: Settings, threads: int | None, command: str | None = None
) -> dict[str, Any]:
    """The content of ``results.json`` without runs."""
    deep = settings.model == "deepfm"
    results: dict[str, Any] = {
        "schema": SCHEMA,
        "command": command,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": data.summary(),
        "splits": {
            "train": len(data.splits.train),
            "validation": len(data.splits.validation),
            "test": len(data.splits.test),
        },
        "model": {
            "name": settings.model,
            "dim": settings.vector_dim,
            "hidden": list(settings.hidden) if deep else [],
        },
        "machine": {
            "cpu": _processor(),
            "cores": os.cpu_count(),
            "threads": threads or torch.get_num_threads(),
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "runs": [],
    }
    if data.probabilities is not None:
        results["best_possible"] = {
            f"{name}_auc": auc(np.asarray(data.probabilities)[rows], data.labels[rows])
            for name, rows in (("val", data.splits.validation), ("test", data.splits.test))
        }
    return results


def write_results(results: dict[str, Any], path: Path) -> None:
    """Write ``results.json``, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(results, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise DataError(f"cannot write {path}: {error}") from error


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration, IndexError):
        return platform.processor() or platform.machine()
