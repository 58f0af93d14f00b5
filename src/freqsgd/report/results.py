"""Reads the content of ``results.json`` (docs/results.md); what is optional may be missing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from freqsgd.errors import DataError
from freqsgd.recommender.models import MODELS

__all__ = [
    "SCHEMA",
    "Epoch",
    "Results",
    "Run",
    "Similarity",
    "display_name",
    "read_results",
]

SCHEMA = 1

NAMES = {
    "sgd": "SGD",
    "fasgd": "FA-SGD",
    "cfsgd": "CF-SGD",
    "adagrad": "Adagrad",
    "rowwise-adagrad": "Row-wise Adagrad",
    "adam": "Adam",
    "sbcd": "SBCD",
    **{name: model.title for name, model in MODELS.items()},
    "cbow": "CBOW",
    "skipgram": "Skip-gram",
}


@dataclass(frozen=True)
class Epoch:
    """What was measured at the end of one epoch."""

    epoch: int
    train_loss: float | None
    val_loss: float | None
    val_auc: float | None
    seconds: float | None  # of training, from the start of the run
    speed: float | None  # samples or words per second
    lr: float | None


@dataclass(frozen=True)
class Similarity:
    """Agreement of word vectors with a list of pairs of words."""

    spearman: float | None
    pairs: int | None
    covered: int | None


@dataclass(frozen=True)
class Run:
    """One optimizer's training from start to stop."""

    optimizer: str
    family: str  # the name for readers of its optimizer, rate and decay
    label: str  # the same with what tells runs of a family apart, the seed: unique
    epochs: tuple[Epoch, ...]
    best_epoch: int | None
    test_loss: float | None
    test_auc: float | None
    test_auc_by_frequency: Mapping[str, float]
    test_loss_by_frequency: Mapping[str, float]  # of text, by the word that is predicted
    test_loss_by_centre_frequency: Mapping[str, float]
    similarity: Mapping[str, Similarity]
    state_bytes: float | None
    parameter_bytes: float | None
    speed: float | None  # samples or words per second
    examples: float | None  # learned from, by a run that saw each once: one_pass.py reads more
    epochs_planned: int | None
    stopped: str | None
    still_learning: bool  # patience ended it while its losses fell: it might have become better
    error: str | None
    settings: Mapping[str, Any]  # what was chosen before it started, by the name in the schema
    diagnosis: Mapping[str, Any]  # of ``compare --diagnose``: diagnosis.py reads it


@dataclass(frozen=True)
class Results:
    """All runs, and what they have in common."""

    dataset: Mapping[str, Any]
    model: Mapping[str, Any]
    splits: Mapping[str, float]
    best_possible: Mapping[str, float]  # what the true probabilities score, for generated data
    runs: tuple[Run, ...]
    command: str | None
    created: str | None
    machine: Mapping[str, Any]
    tuning: Mapping[str, Any]  # of ``freqsgd tune``: tuning.py reads it
    diagnosis: Mapping[str, Any]  # what the runs' have in common


SETTINGS = (
    "lr",
    "weight_decay",
    "weight_decay_rule",
    "state_rule",
    "batch_size",
    "seed",
    "options",
)


def display_name(name: str) -> str:
    """How an optimizer or a model is called in prose."""
    return NAMES.get(name, name)


def read_results(results: Mapping[str, Any]) -> Results:
    """Check what a report cannot do without; what is optional and unusable counts as absent."""
    schema = results.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise DataError(
            f'results: "schema" is {schema!r}, this version of freqsgd reads {SCHEMA}; '
            "use the version that wrote them, or run the command that wrote them again"
        )
    runs = results.get("runs")
    if not isinstance(runs, list) or not runs:
        raise DataError('results: "runs" must be a list of at least one run; nothing to report')
    for place, run in enumerate(runs):
        if not isinstance(run, Mapping) or not isinstance(run.get("optimizer"), str):
            raise DataError(
                f'results: "runs" item {place} has no "optimizer"; '
                "run the command that wrote the results again"
            )
    return Results(
        dataset=mapping(results.get("dataset")),
        model=mapping(results.get("model")),
        splits=numbers(results.get("splits")),
        best_possible=numbers(results.get("best_possible")),
        runs=tuple(read_run(run, *name) for run, name in zip(runs, names(runs), strict=True)),
        command=text(results.get("command")),
        created=text(results.get("created")),
        machine=mapping(results.get("machine")),
        tuning=mapping(results.get("tuning")),
        diagnosis=mapping(results.get("diagnosis")),
    )


def read_run(run: Mapping[str, Any], family: str, label: str) -> Run:
    """One entry of ``runs``."""
    epochs = run.get("epochs")
    return Run(
        optimizer=run["optimizer"],
        family=family,
        label=label,
        epochs=tuple(read_epochs(epochs if isinstance(epochs, list) else [])),
        best_epoch=integer(run.get("best_epoch")),
        test_loss=number(run.get("test_loss")),
        test_auc=number(run.get("test_auc")),
        test_auc_by_frequency=numbers(run.get("test_auc_by_frequency")),
        test_loss_by_frequency=numbers(run.get("test_loss_by_frequency")),
        test_loss_by_centre_frequency=numbers(run.get("test_loss_by_centre_frequency")),
        similarity=read_similarity(mapping(run.get("similarity"))),
        state_bytes=number(run.get("state_bytes")),
        parameter_bytes=number(run.get("parameter_bytes")),
        speed=read_speed(run),
        examples=number(run.get("examples")),
        epochs_planned=integer(run.get("epochs_planned")),
        stopped=text(run.get("stopped")),
        still_learning=run.get("still_learning") is True,
        error=text(run.get("error")),
        settings={key: run[key] for key in SETTINGS if run.get(key) not in (None, "", {})},
        diagnosis=mapping(run.get("diagnosis")),
    )


def read_epochs(epochs: Iterable[Any]) -> Iterable[Epoch]:
    """Entries that say which epoch they are of."""
    for entry in map(mapping, epochs):
        epoch = integer(entry.get("epoch"))
        if epoch is not None:
            yield Epoch(
                epoch,
                train_loss=number(entry.get("train_loss")),
                val_loss=number(entry.get("val_loss")),
                val_auc=number(entry.get("val_auc")),
                seconds=number(entry.get("seconds")),
                speed=read_speed(entry),
                lr=number(entry.get("lr")),
            )


def read_speed(entry: Mapping[str, Any]) -> float | None:
    """Words per second of a run or an epoch on text, samples per second of others."""
    words = number(entry.get("words_per_second"))
    return number(entry.get("samples_per_second")) if words is None else words


def read_similarity(similarity: Mapping[str, Any]) -> dict[str, Similarity]:
    """Scores by the name of the list of pairs."""
    return {
        str(name): Similarity(
            number(entry.get("spearman")),
            integer(entry.get("pairs")),
            integer(entry.get("covered")),
        )
        for name, entry in similarity.items()
        if isinstance(entry, Mapping)
    }


def names(runs: list[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Family and label of each run: the optimizer, and what differs among its runs."""
    parts: list[tuple[str, ...]] = [(display_name(run["optimizer"]),) for run in runs]
    for key, word in (("lr", "lr"), ("weight_decay", "decay")):
        parts = told_apart(parts, [f"{word} {run.get(key)}" for run in runs])
    families = parts
    parts = told_apart(parts, [f"seed {run.get('seed')}" for run in runs])
    seen: Counter[tuple[str, ...]] = Counter()
    orders = []
    for name in parts:
        seen[name] += 1
        orders.append(f"run {seen[name]}")
    labels = told_apart(parts, orders)
    return [(written(one), written(other)) for one, other in zip(families, labels, strict=True)]


def told_apart(parts: list[tuple[str, ...]], details: list[str]) -> list[tuple[str, ...]]:
    """Names with a detail more where runs of the same name differ in it."""
    kinds: dict[tuple[str, ...], set[str]] = {}
    for name, detail in zip(parts, details, strict=True):
        kinds.setdefault(name, set()).add(detail)
    return [
        (*name, detail) if len(kinds[name]) > 1 else name
        for name, detail in zip(parts, details, strict=True)
    ]


def written(parts: tuple[str, ...]) -> str:
    """A name with its details in brackets."""
    name, *details = parts
    return f"{name} ({', '.join(details)})" if details else name


def number(value: Any) -> float | None:
    """A finite number; diverged runs have others."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def integer(value: Any) -> int | None:
    """A whole number."""
    found = number(value)
    return None if found is None or found != int(found) else int(found)


def text(value: Any) -> str | None:
    """A string that is not empty."""
    return value if isinstance(value, str) and value else None


def mapping(value: Any) -> Mapping[str, Any]:
    """A JSON object."""
    return value if isinstance(value, Mapping) else {}


def numbers(value: Any) -> dict[str, float]:
    """A JSON object's finite numbers."""
    found = {str(key): number(entry) for key, entry in mapping(value).items()}
    return {key: entry for key, entry in found.items() if entry is not None}
