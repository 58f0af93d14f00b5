"""Several optimizers on one dataset or text: the same split, start and order of samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from freqsgd.data.corpus import Corpus
from freqsgd.data.dataset import DataError, Dataset
from freqsgd.data.files import write_json
from freqsgd.data.lock import locked
from freqsgd.training.diagnosis import describe_diagnosis
from freqsgd.training.machine import describe_machine
from freqsgd.training.metrics import auc
from freqsgd.training.recommender_fit import fit
from freqsgd.training.rules import Rule
from freqsgd.training.run import Listener
from freqsgd.training.settings import Settings
from freqsgd.training.text_settings import TextSettings
from freqsgd.training.words_fit import fit_text

__all__ = [
    "MODELS",
    "RESULTS",
    "check_empty",
    "check_names",
    "compare",
    "describe",
    "fit_any",
    "heading",
]

SCHEMA = 1
RESULTS, MODELS = "results.json", "models"


def compare(
    data: Dataset | Corpus,
    rules: Iterable[Rule],
    settings: Settings | TextSettings | Sequence[Settings | TextSettings] | None = None,
    *,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool = False,
    listener: Listener | None = None,
    command: str | None = None,
    diagnose: bool = False,
) -> dict[str, Any]:
    """Train once with each optimizer; return the content of ``results.json``.

    Args:
        data: samples and their splits, or a text to learn word vectors from
        rules: the optimizers
        settings: what they share; or one for each, of one model and size. ``TextSettings`` for
            a text
        threads: of the kernels
        out: a folder for results and models; written after each optimizer
        resume: go on where a run with the same options ended
        listener: called some times a second with the progress and record of the current run
        command: the command line that does the same, for ``results.json``
        diagnose: look at second moments and gradients between epochs; not for text
    """
    rules = list(rules)
    if isinstance(settings, Sequence):
        each = list(settings)
    else:
        default = TextSettings() if isinstance(data, Corpus) else Settings()
        each = [settings or default] * len(rules)
    check_names(rules)
    if out is not None and not resume:
        check_empty(out, RESULTS)
    results = describe(data, each[0], threads, command)
    if diagnose:
        if isinstance(data, Corpus):
            raise DataError("diagnose is for samples of tokens (fm, deepfm), not for text")
        results["diagnosis"] = describe_diagnosis(data)
    also = {"diagnose": True} if diagnose else {}  # text models know no such option
    with locked(out):
        for rule, its_settings in zip(rules, each, strict=True):
            folder = None if out is None else out / MODELS / rule.optimizer
            options: dict[str, Any] = {"folder": folder, "resume": resume, "listener": listener}
            record = fit_any(data, rule, its_settings, threads=threads, **options, **also)
            results["runs"].append(record)
            if out is not None:
                write_json(out / RESULTS, results)
    return results


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


def fit_any(
    data: Dataset | Corpus, rule: Rule, settings: Settings | TextSettings, **options: Any
) -> dict[str, Any]:
    """Train a model of samples or of text; return the run's record."""
    if isinstance(data, Corpus) and isinstance(settings, TextSettings):
        return fit_text(data, rule, settings, **options)[1]
    if isinstance(data, Dataset) and isinstance(settings, Settings):
        return fit(data, rule, settings, **options)[1]
    raise TypeError("a Dataset goes with Settings, a Corpus with TextSettings")


def describe(
    data: Dataset | Corpus,
    settings: Settings | TextSettings,
    threads: int | None,
    command: str | None = None,
) -> dict[str, Any]:
    """The content of ``results.json`` without runs."""
    results = heading(data.summary(), _splits(data), settings, threads, command)
    if isinstance(data, Dataset) and data.probabilities is not None:
        results["best_possible"] = {
            f"{name}_auc": auc(np.asarray(data.probabilities)[rows], data.labels[rows])
            for name, rows in (("val", data.splits.validation), ("test", data.splits.test))
        }
    return results


def heading(
    dataset: dict[str, Any],
    splits: dict[str, int],
    settings: Settings | TextSettings,
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
        "model": _model(settings),
        "machine": describe_machine(threads),
        "runs": [],
    }


def _splits(data: Dataset | Corpus) -> dict[str, int]:
    """Samples, or words, of each part."""
    names = ("train", "validation", "test")
    if isinstance(data, Corpus):
        return {name: len(getattr(data, name).ids) for name in names}
    return {name: len(getattr(data.splits, name)) for name in names}


def _model(settings: Settings | TextSettings) -> dict[str, Any]:
    if isinstance(settings, Settings):
        hidden = list(settings.hidden) if settings.model == "deepfm" else []
        return {"name": settings.model, "dim": settings.vector_dim, "hidden": hidden}
    model = {"name": settings.model, "loss": settings.loss, "dim": settings.dim}
    if settings.loss == "negative":
        model["negatives"] = settings.negatives
    return {**model, "window": settings.window, "hidden": []}
