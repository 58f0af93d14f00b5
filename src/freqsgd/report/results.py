"""Reads the content of ``results.json`` (docs/results.md); what is optional may be missing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from freqsgd.data import DataError

__all__ = ["SCHEMA", "Epoch", "Results", "Run", "display_name", "read_results"]

SCHEMA = 1

NAMES = {
    "sgd": "SGD",
    "fasgd": "FA-SGD",
    "cfsgd": "CF-SGD",
    "adagrad": "Adagrad",
    "rowwise-adagrad": "Row-wise Adagrad",
    "adam": "Adam",
    "fm": "FM",
    "deepfm": "DeepFM",
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
    samples_per_second: float | None


@dataclass(frozen=True)
class Run:
    """One optimizer's training from start to stop."""

    optimizer: str
    label: str  # its name for readers, unique within the results
    epochs: tuple[Epoch, ...]
    best_epoch: int | None
    test_loss: float | None
    test_auc: float | None
    test_auc_by_frequency: Mapping[str, float]
    state_bytes: float | None
    parameter_bytes: float | None
    samples_per_second: float | None
    epochs_planned: int | None
    stopped: str | None
    error: str | None
    settings: Mapping[str, Any]  # what was chosen before it started, by the name in the schema


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
        runs=tuple(read_run(run, label) for run, label in zip(runs, labels(runs), strict=True)),
        command=text(results.get("command")),
        created=text(results.get("created")),
        machine=mapping(results.get("machine")),
        tuning=mapping(results.get("tuning")),
    )


def read_run(run: Mapping[str, Any], label: str) -> Run:
    """One entry of ``runs``."""
    epochs = run.get("epochs")
    return Run(
        optimizer=run["optimizer"],
        label=label,
        epochs=tuple(read_epochs(epochs if isinstance(epochs, list) else [])),
        best_epoch=integer(run.get("best_epoch")),
        test_loss=number(run.get("test_loss")),
        test_auc=number(run.get("test_auc")),
        test_auc_by_frequency=numbers(run.get("test_auc_by_frequency")),
        state_bytes=number(run.get("state_bytes")),
        parameter_bytes=number(run.get("parameter_bytes")),
        samples_per_second=number(run.get("samples_per_second")),
        epochs_planned=integer(run.get("epochs_planned")),
        stopped=text(run.get("stopped")),
        error=text(run.get("error")),
        settings={key: run[key] for key in SETTINGS if run.get(key) not in (None, "", {})},
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
                samples_per_second=number(entry.get("samples_per_second")),
            )


def labels(runs: list[Mapping[str, Any]]) -> list[str]:
    """Names of the optimizers; runs of one optimizer are told apart by what differs among them."""
    names: list[tuple[str, ...]] = [(display_name(run["optimizer"]),) for run in runs]
    for key, word in (("lr", "lr"), ("weight_decay", "decay"), ("seed", "seed")):
        for name, times in Counter(names).items():
            alike = [place for place, other in enumerate(names) if other == name]
            if times > 1 and len({repr(runs[place].get(key)) for place in alike}) > 1:
                for place in alike:
                    names[place] = (*name, f"{word} {runs[place].get(key)}")
    for name, times in Counter(names).items():
        if times > 1:
            alike = [place for place, other in enumerate(names) if other == name]
            for order, place in enumerate(alike, start=1):
                names[place] = (*name, f"run {order}")
    return [f"{name} ({', '.join(more)})" if more else name for name, *more in names]


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
