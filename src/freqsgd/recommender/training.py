"""Training a recommender."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freqsgd.errors import DataError
from freqsgd.nn.fm import FM
from freqsgd.optimizers import Rule
from freqsgd.recommender import diagnosis
from freqsgd.recommender import folder as model_folder
from freqsgd.recommender.engine import Engine, build_model, engine_for, frequencies_for
from freqsgd.recommender.find_lr import with_lr
from freqsgd.recommender.memory import check_memory, memory_plan
from freqsgd.recommender.settings import Settings
from freqsgd.runs.documents import heading
from freqsgd.runs.epochs import EpochRun, Listener
from freqsgd.runs.metrics import (
    auc,
    auc_by_frequency,
    cross_entropy,
    frequency_classes,
    normalized_entropy,
)
from freqsgd.runs.run import check_loss, constant_loss
from freqsgd.tables.dataset import Dataset


def fit(
    data: Dataset,
    rule: Rule,
    settings: Settings | None = None,
    *,
    threads: int | None = None,
    folder: Path | None = None,
    resume: bool = False,
    listener: Listener | None = None,
    diagnose: bool = False,
) -> tuple[FM, dict[str, Any]]:
    """Train until validation AUC stops rising; return the best model and the run's record.

    The record is one of the ``runs`` of ``results.json``.

    Args:
        data: samples and their splits
        rule: the optimizer
        settings: everything else
        threads: maximum for the kernels; None for torch's number. The result does not depend on it
        folder: keeps checkpoints while it lasts, and the model in the end
        resume: go on from the folder's checkpoint, if there is one, to the same result
        listener: called some times a second with the progress and the record so far
        diagnose: look at second moments and gradients between epochs, for the record's
            ``diagnosis``; the model is the same with and without

    Example:
        >>> from freqsgd.tables import DataOptions, load
        >>> data = load(DataOptions(samples=2000))  # generated clicks
        >>> model, record = fit(data, Rule("cfsgd", lr=1.0), Settings(dim=4, epochs=1))
        >>> record["stopped"]
        'epochs'
    """
    run = _Run(data, rule, settings or Settings(), threads, folder, diagnose)
    record = run.start(resume, listener)
    return run.model, record


class _Run(EpochRun):
    speed = "samples_per_second"
    chosen_by = "val_auc"
    model: FM
    settings: Settings
    engine: Engine

    def __init__(
        self,
        data: Dataset,
        rule: Rule,
        settings: Settings,
        threads: int | None,
        folder: Path | None,
        diagnose: bool,
    ) -> None:
        _check_data(data, settings)
        train = data.splits.train
        options: dict[str, Any] = {"rule": rule.plain, "settings": settings.plain}
        batch_size = min(settings.batch_size, len(train))
        super().__init__(
            rule,
            settings,
            folder,
            options={**options, "diagnose": True} if diagnose else options,
            about={**data.summary(), "train_rows": len(train), "data": data.fingerprint},
            rows=train,
            batch_size=batch_size,
            size=len(train),
        )
        self.data, self.threads, self.diagnose = data, threads, diagnose
        weights = None if data.weights is None else data.weights[train]
        self.base_rate = float(np.average(data.labels[train], weights=weights))
        steps = self.progress.steps
        self.batch_sizes = np.full(steps, float(batch_size))
        self.batch_sizes[-1] = len(train) - (steps - 1) * batch_size

    def begin(self) -> None:
        data, settings, threads = self.data, self.settings, self.threads
        expected = settings.epochs * len(data.splits.train)
        check_memory(memory_plan(data.fields, self.rule, settings, examples=expected, kept=1))
        self.rule = with_lr(data, self.rule, settings, threads=threads)
        self.model = build_model(data, settings)
        self.engine = engine_for(
            self.model,
            self.rule,
            seed=settings.seed,
            batch_size=self._batch_size,
            threads=threads,
            frequencies=frequencies_for(data, self.rule),
            expected=expected,
        )
        self.torch_threads = self.engine.torch_threads

    def new_record(self) -> dict[str, Any]:
        record = super().new_record()
        return {**record, "diagnosis": {}} if self.diagnose else record

    def prepare(self) -> None:
        if self.record.get("diagnosis") == {}:  # a run that goes on has been looked at
            self.after_epoch()

    def after_epoch(self) -> None:
        if "diagnosis" in self.record:
            found = self.record["diagnosis"]
            diagnosis.look(self.engine, self.data, self.progress.epoch, found)

    def train_steps(
        self, order: NDArray[np.int64], lrs: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        data, most = self.data, self.settings.checkpoint_steps
        return self.engine.train(data.ids, data.labels, order, lrs, most, data.weights)

    def mean_loss(self, losses: NDArray[np.float64]) -> float:
        sizes = self.batch_sizes[: len(losses)]
        return float((losses * sizes).sum() / sizes.sum())

    def validate(self) -> dict[str, float | None]:
        splits = self.data.splits
        predicted = self._predict(splits.validation)
        # Without validation rows the loss of a batch of training rows shows a divergence.
        seen = predicted if len(predicted[0]) else self._predict(splits.train[: self._batch_size])
        self._check(*seen)
        return {f"val_{key}": value for key, value in self._metrics(predicted).items()}

    def _check(self, logits: NDArray[np.float32], labels: NDArray[np.uint8]) -> None:
        """Raise if the predictions show that the run diverged."""
        loss = cross_entropy(logits, labels) if np.isfinite(logits).all() else math.nan
        constant = constant_loss(self.base_rate, int(labels.sum()), len(labels))
        check_loss(loss, constant, self.steps - 1, "a constant prediction")

    def test(self, best: dict[str, Any] | None) -> dict[str, Any]:
        rows = self.data.splits.test if best else self.data.splits.test[:0]
        predicted, ids = self._predict(rows), self.data.ids[rows]
        classes = frequency_classes(self.data.token_counts, self.model.sizes)
        of_tokens = classes[np.maximum(ids, 0) + self.model.columns_start.numpy()]
        of_tokens[ids < 0] = 0
        return {
            **{f"test_{key}": value for key, value in self._metrics(predicted).items()},
            "test_auc_by_frequency": auc_by_frequency(*predicted, of_tokens.max(1)),
        }

    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        model_folder.save_model(folder, self.model, self.data, description)

    def load_model(self, folder: Path) -> None:
        self.model = model_folder.load_model(folder)[0]

    def _predict(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Return log odds and labels."""
        return self.engine.predict(self.data.ids, rows), self.data.labels[rows]

    def _metrics(
        self, predicted: tuple[NDArray[np.float32], NDArray[np.uint8]]
    ) -> dict[str, float | None]:
        logits, labels = predicted
        loss = cross_entropy(logits, labels) if len(labels) else math.nan
        if not math.isfinite(loss):
            return dict.fromkeys(("loss", "auc", "ne"))
        return {"loss": loss, "auc": auc(logits, labels), "ne": normalized_entropy(loss, labels)}


def _check_data(data: Dataset, settings: Settings) -> None:
    """Refuse what training cannot use."""
    chooses = settings.patience is not None
    if len(data.splits.train) == 0 or (chooses and len(data.splits.validation) == 0):
        raise DataError(
            f"{data.name} has {len(data.splits.train)} rows to train on and "
            f"{len(data.splits.validation)} to validate on: both must be at least 1"
        )
    rows = data.labels[data.splits.validation]
    if chooses and rows.min() == rows.max():
        raise DataError(
            f"all {len(rows)} validation labels of {data.name} are {rows[0]}: there is no AUC to "
            "choose by; give more rows or another split"
        )


def describe(
    data: Dataset, settings: Settings, threads: int | None, command: str | None = None
) -> dict[str, Any]:
    """Return the content of ``results.json`` without runs."""
    splits = {name: len(getattr(data.splits, name)) for name in ("train", "validation", "test")}
    results = heading(data.summary(), splits, settings.about_model, threads, command)
    if data.probabilities is not None:
        results["best_possible"] = {
            f"{name}_auc": auc(np.asarray(data.probabilities)[rows], data.labels[rows])
            for name, rows in (("val", data.splits.validation), ("test", data.splits.test))
        }
    return results
