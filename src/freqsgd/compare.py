"""Several optimizers on the same data: the same split, start and order of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from freqsgd.errors import DataError
from freqsgd.files import locked, write_json
from freqsgd.optimizers import Rule
from freqsgd.recommender.diagnosis import describe_diagnosis
from freqsgd.recommender.memory import check_memory, stream_plan
from freqsgd.recommender.one_pass import describe_stream, fit_stream
from freqsgd.recommender.rate_grid import RATES, RateStore, best_of, candidates
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.recommender.training import describe, fit
from freqsgd.runs.checkpoint import MODEL
from freqsgd.runs.documents import MODELS, RESULTS
from freqsgd.runs.resume import CHECKPOINT
from freqsgd.tables.dataset import Dataset, Stream
from freqsgd.tables.generated.clicks import ClickStream
from freqsgd.words.corpus import Corpus
from freqsgd.words.settings import TextSettings
from freqsgd.words.training import describe_text, fit_text

__all__ = ["add_run", "compare", "describe_any", "fit_any"]

AnyData = Dataset | Corpus | Stream
AnySettings = Settings | TextSettings


def compare(
    data: AnyData,
    rules: Iterable[Rule],
    settings: AnySettings | Sequence[AnySettings] | None = None,
    *,
    plan: Pass | None = None,
    threads: int | None = None,
    out: Path | None = None,
    resume: bool = False,
    listener: Callable[[Any, dict[str, Any]], None] | None = None,
    finished: Callable[[dict[str, Any]], None] | None = None,
    command: str | None = None,
    diagnose: bool = False,
) -> dict[str, Any]:
    """Train with each optimizer; return the content of ``results.json``.

    In one pass over a stream, an optimizer without a learning rate is trained at each of its grid.
    The best rate is that of the lowest NE over the days that it learned from, each example scored
    before it was learned; the evaluation days play no part.

    Args:
        data: samples and their splits, a text to learn word vectors from, or a stream to learn in
            one pass
        rules: the optimizers
        settings: shared settings, or one for each optimizer, of one model and size;
            ``TextSettings`` for a text
        plan: windows, checkpoints and evaluation days of one pass
        threads: maximum for the kernels
        out: a folder for results and models; written after each optimizer
        resume: go on where a comparison with the same options ended
        listener: called some times a second with the progress and record of the current run
        finished: called with the record of every run that has come to its end
        command: the command line that does the same, for ``results.json``
        diagnose: look at second moments and gradients between epochs; only for samples
    """
    rules = list(rules)
    if isinstance(settings, Sequence):
        each = list(settings)
    else:
        default = TextSettings() if isinstance(data, Corpus) else Settings()
        each = [settings or default] * len(rules)
    _check_names(rules)
    stream = None if isinstance(data, Dataset | Corpus) else data
    also: dict[str, Any] = {}  # options of one kind of data
    if stream is not None:
        _check_stream(stream, rules, each, out)
        also["plan"] = plan or Pass()
    used = RESULTS, *([] if stream is None else [RATES])
    if out is not None and not resume and any((out / name).exists() for name in used):
        raise DataError(f"{out} holds results already: use --resume, or another --out")
    results = describe_any(data, each[0], threads, command)
    if diagnose:
        if not isinstance(data, Dataset):
            raise DataError("diagnose is for samples of tokens (fm, deepfm), not for text")
        results["diagnosis"] = describe_diagnosis(data)
        also["diagnose"] = True

    def train(its: AnySettings, rule: Rule, folder: Path | None) -> dict[str, Any]:
        options = {"threads": threads, "folder": folder, "resume": resume, "listener": listener}
        record = fit_any(data, rule, its, **options, **also)
        if finished is not None:
            finished(record)
        return record

    with locked(out):
        for rule, its in zip(rules, each, strict=True):
            if stream is None:
                record = train(its, rule, None if out is None else out / MODELS / rule.optimizer)
            else:
                store = RateStore(out, _asked(stream, its, also["plan"]))
                record = best_of(candidates(rule, its.batch_size), partial(train, its), store)
            add_run(results, data, record)
            if out is not None:
                write_json(out / RESULTS, results)
    return results


def _check_names(rules: list[Rule]) -> None:
    """Raise unless there are optimizers, each of them once."""
    names = [rule.optimizer for rule in rules]
    if not rules:
        raise DataError("there is no optimizer to compare")
    if len(set(names)) < len(names):
        raise DataError(f"each optimizer may be named once, got {', '.join(names)}")


def _check_stream(
    stream: Stream, rules: list[Rule], settings: list[AnySettings], out: Path | None
) -> None:
    """Refuse what cannot be compared in one pass, before the first run has taken its hours."""
    for rule, its in zip(rules, settings, strict=True):
        if not isinstance(its, Settings):
            raise TypeError(_MISMATCH)
        for each in candidates(rule, its.batch_size):
            check_memory(stream_plan(stream, each, its))
    if out is not None and any((out / name).exists() for name in (MODEL, CHECKPOINT)):
        raise DataError(f"{out} holds a single run (freqsgd train): use another --out")


def _asked(stream: Stream, settings: AnySettings, plan: Pass) -> dict[str, Any]:
    """Return the options that results of one pass depend on, whatever the rate."""
    assert isinstance(settings, Settings)
    how = {**settings.of_one_pass, **asdict(plan)}
    del how["checkpoint_examples"]
    return {"data": stream.fingerprint, **how}


_MISMATCH = "a Dataset or a Stream goes with Settings, a Corpus with TextSettings"


def _functions(data: AnyData, settings: AnySettings) -> tuple[Callable[..., Any], ...]:
    """Return what describes and what trains on this kind of data."""
    if isinstance(data, Corpus) != isinstance(settings, TextSettings):
        raise TypeError(_MISMATCH)
    if isinstance(data, Corpus):
        return describe_text, fit_text
    return (describe, fit) if isinstance(data, Dataset) else (describe_stream, fit_stream)


def fit_any(data: AnyData, rule: Rule, settings: AnySettings, **options: Any) -> dict[str, Any]:
    """Train a model of samples, of text or of a stream; return the run's record."""
    record: dict[str, Any] = _functions(data, settings)[1](data, rule, settings, **options)[1]
    return record


def describe_any(
    data: AnyData, settings: AnySettings, threads: int | None, command: str | None = None
) -> dict[str, Any]:
    """Return the content of ``results.json`` without runs."""
    found: dict[str, Any] = _functions(data, settings)[0](data, settings, threads, command)
    return found


def add_run(results: dict[str, Any], data: AnyData, record: dict[str, Any]) -> None:
    """Add a run, and what its end tells of the examples of a stream."""
    results["runs"].append(record)
    if record["stopped"] != "end":
        return
    results["splits"] = {"train": record["examples"], "test": record["test_rows"] or 0}
    if isinstance(data, ClickStream) and "best_possible" not in results:
        learned = len(record["days"])
        # What the true probabilities score on the days learned from, and on those after.
        train, test = data.truth(0, learned), data.truth(learned, len(data.days))
        results["best_possible"] = {"train_ne": train.ne, "test_ne": test.ne, "test_auc": test.auc}
