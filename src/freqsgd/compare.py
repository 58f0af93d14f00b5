"""Several optimizers on one dataset or text: the same split, start and order of samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from freqsgd.errors import DataError
from freqsgd.files import locked, write_json
from freqsgd.optimizers import Rule
from freqsgd.recommender.diagnosis import describe_diagnosis
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.training import describe, fit
from freqsgd.runs.documents import MODELS, RESULTS, check_empty, check_names
from freqsgd.runs.loop import Listener
from freqsgd.tables.dataset import Dataset
from freqsgd.words.corpus import Corpus
from freqsgd.words.settings import TextSettings
from freqsgd.words.training import describe_text, fit_text

__all__ = ["compare", "describe_any", "fit_any"]

_MISMATCH = "a Dataset goes with Settings, a Corpus with TextSettings"


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
    results = describe_any(data, each[0], threads, command)
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


def fit_any(
    data: Dataset | Corpus, rule: Rule, settings: Settings | TextSettings, **options: Any
) -> dict[str, Any]:
    """Train a model of samples or of text; return the run's record."""
    if isinstance(data, Corpus) and isinstance(settings, TextSettings):
        return fit_text(data, rule, settings, **options)[1]
    if isinstance(data, Dataset) and isinstance(settings, Settings):
        return fit(data, rule, settings, **options)[1]
    raise TypeError(_MISMATCH)


def describe_any(
    data: Dataset | Corpus,
    settings: Settings | TextSettings,
    threads: int | None,
    command: str | None = None,
) -> dict[str, Any]:
    """Return the content of ``results.json`` without runs."""
    if isinstance(data, Corpus) and isinstance(settings, TextSettings):
        return describe_text(data, settings, threads, command)
    if isinstance(data, Dataset) and isinstance(settings, Settings):
        return describe(data, settings, threads, command)
    raise TypeError(_MISMATCH)
