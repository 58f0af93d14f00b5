"""One pass over a stream, whatever trains: order, metrics, record, checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np

from freqsgd.data.dataset import DataError
from freqsgd.data.lock import locked
from freqsgd.streams.batches import Batch, batches
from freqsgd.streams.stream import Chunk, Position, Stream
from freqsgd.streams.tally import Tally
from freqsgd.training import checkpoint
from freqsgd.training.available_memory import forget_peak, peak_memory
from freqsgd.training.checkpoint import MODEL
from freqsgd.training.divergence import check_loss, constant_loss
from freqsgd.training.engine import DivergedError
from freqsgd.training.interrupt import Interrupt, InterruptedFitError
from freqsgd.training.progressive import Progressive
from freqsgd.training.resuming import (
    CHECKPOINT,
    check_same,
    in_parts,
    refusing_others,
    used_for,
)
from freqsgd.training.rules import Rule
from freqsgd.training.settings import Settings
from freqsgd.training.stream_pass import (
    Pass,
    StreamListener,
    StreamProgress,
    check_one_pass,
    days_to_learn,
    pass_settings,
)
from freqsgd.training.stream_trainer import StreamTrainer

__all__ = ["StreamRun"]


class StreamRun:
    """A pass from its start, or from where it was left, to its end.

    Args:
        stream: the examples
        rule: the optimizer, as it is used: with its cap
        settings: everything else
        plan: windows, checkpoints and days of evaluation
        trainer: model and optimizer
        folder: keeps checkpoints while it lasts, and the model in the end
    """

    def __init__(
        self,
        stream: Stream,
        rule: Rule,
        settings: Settings,
        plan: Pass,
        trainer: StreamTrainer,
        folder: Path | None,
    ) -> None:
        check_one_pass(rule, settings)
        self.stream, self.rule, self.settings, self.plan = stream, rule, settings, plan
        self.trainer, self.folder = trainer, folder
        self.learned_days = days_to_learn(stream, plan)
        summary = stream.summary()
        del summary["rows"]
        self.about = {**summary, "data": stream.fingerprint}
        self.options = {
            "rule": rule.plain,
            "settings": pass_settings(settings),
            "pass": asdict(plan),
        }

    def start(self, resume: bool, listener: StreamListener | None) -> dict[str, Any]:
        """Learn, or go on with what the folder holds; return the record."""
        self._listener = listener or (lambda progress, record: None)
        with locked(self.folder if self.trainer.leads else None):
            used = None if self.folder is None else used_for(self.folder, resume)
            if self.folder is not None and used == MODEL:
                return self._finished(self.folder)
            forget_peak()
            self._begin()
            if self.folder is not None and used == CHECKPOINT:
                self._resume(self.folder)
            if self.record["stopped"] is None:
                self._go()
        return self.record

    def _begin(self) -> None:
        """Build everything anew."""
        settings, rule = self.settings, self.rule
        self.trainer.begin()
        self.logits = np.empty(settings.batch_size, np.float32)
        self.progressive = Progressive(self.plan.window, self.stream.days)
        self.progress = StreamProgress()
        self.position: Position | None = None  # where to go on
        self.dropped = 0  # malformed rows of all chunks so far
        self.skipped: list[str] = []  # files that were left out before the run was resumed
        self.record: dict[str, Any] = {
            "optimizer": rule.optimizer,
            "lr": rule.lr,
            "weight_decay": rule.weight_decay,
            "weight_decay_rule": rule.decay_rule,
            "max_lr": rule.law.max_lr,
            "halflife": rule.halflife,
            "count": rule.count,
            "dense_lr": rule.dense_rate(settings.batch_size),
            "seed": settings.seed,
            "batch_size": settings.batch_size,
            "options": self.options,
            **self.trainer.about,
            "epochs_planned": 1,
            "epochs": [],
            "best_epoch": None,
            "stopped": None,
            "windows": self.progressive.windows,
            "days": self.progressive.of_days,
        }

    # ---- the pass --------------------------------------------------------------------------------

    def _go(self) -> None:
        evaluated = Tally()
        try:
            with Interrupt() as self._interrupt:
                if not self.progress.evaluating:
                    self._learn()
                    if not self.trainer.finite():  # which no later example may tell
                        raise DivergedError(self.trainer.steps - 1)
                    self._check(
                        self.progressive.lifetime(), self.progressive.positives, self.learned
                    )
                self._evaluate(evaluated)
        except DivergedError as error:
            self.progressive.end(self.progress.seconds)
            evaluated.clear()
            self._finish(evaluated)
            self.record["stopped"] = "diverged"
            self.record["error"] = f"{error} at lr {self.rule.lr:g}: try a smaller learning rate"
            if self.folder is not None:  # nothing of the weights is worth keeping
                self.trainer.save(self.folder, {}, self._description())
            if self.trainer.agreed(self._interrupt.came):  # before the loss was seen
                raise InterruptedFitError from None
            return
        self._finish(evaluated)
        self.record["stopped"] = "end"
        if self.folder is not None:
            description = {"record": self.record, "data": {**self.about, "rows": self.learned}}
            self.trainer.save_model(self.folder, description)
            self._clean_up(self.folder)

    @property
    def learned(self) -> int:
        """Examples that were learned."""
        return self.progressive.examples

    def _learn(self) -> None:
        progress, every = self.progress, self.plan.checkpoint_examples
        start = time.perf_counter()
        for batch in self._batches(0, self.learned_days):
            before = self.learned
            self._step(batch)
            progress.seconds += time.perf_counter() - start
            self.progressive.end_batch(progress.seconds)
            progress.examples, progress.ne = self.learned, self.progressive.ne
            if every is not None and self.learned // every > before // every:
                self._save()
            self._tell(batch)
            start = time.perf_counter()
        self.progressive.end(progress.seconds)
        if self.learned == 0:
            raise DataError(f"{self.stream.name} has no examples to learn from")
        assert self.position
        self.position = self.position._replace(dropped=self.dropped)  # the rows after it as well
        progress.evaluating = True

    def _step(self, batch: Batch) -> None:
        """Score a batch, then learn it."""
        size = len(batch.labels)
        logits = self.logits[:size]
        self.trainer.learn(batch.ids, batch.labels, logits)
        cuts = [0, *(np.flatnonzero(np.diff(batch.days)) + 1), size]
        for first, last in pairwise(cuts):
            part = slice(first, last)
            self.progressive.add(logits[part], batch.labels[part], int(batch.days[first]))
        self.position = batch.position

    def _evaluate(self, tally: Tally) -> None:
        """Score the last days."""
        for batch in self._batches(self.learned_days, len(self.stream.days)):
            tally.add(self.trainer.predict(batch.ids), batch.labels)
            if not math.isfinite(tally.sums[0]):
                raise DivergedError(self.trainer.steps - 1)
            self._tell(batch)
        negatives, positives = tally.counts
        if rows := negatives + positives:
            self._check(tally.metrics(), positives, rows)

    def _check(self, metrics: dict[str, float | None], positives: int, rows: int) -> None:
        """Raise if the loss of some examples shows that the run diverged."""
        loss, rate = metrics["loss"], self.progressive.positives / self.learned
        constant = constant_loss(rate, positives, rows)
        found = math.nan if loss is None else loss
        check_loss(found, constant, self.trainer.steps - 1, "a constant prediction")

    def _batches(self, first: int, last: int) -> Iterator[Batch]:
        """The examples of some days, from where to go on."""
        with closing(cast(Any, self.stream.chunks(first, last, self.position))) as chunks:
            yield from batches(self._counted(chunks), self.settings.batch_size)

    def _counted(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        for chunk in chunks:
            self.dropped = chunk.dropped
            yield chunk

    def _tell(self, batch: Batch) -> None:
        self.progress.done = batch.done
        self._listener(self.progress, self.record)
        if self.trainer.agreed(self._interrupt.came):
            self._save()
            raise InterruptedFitError

    def _finish(self, evaluated: Tally) -> None:
        """Complete the record."""
        seconds, rows = self.progress.seconds, sum(evaluated.counts)
        progressive = self.progressive.lifetime()
        self.record |= {
            **self.trainer.about,
            "examples": self.learned,
            **{f"train_{key}": value for key, value in progressive.items()},
            **{f"test_{key}": value for key, value in evaluated.metrics().items()},
            "test_rows": rows or None,
            "seconds": seconds,
            "samples_per_second": self.learned / seconds if seconds else None,
            "peak_memory_bytes": peak_memory(),
            "dropped": self.dropped,
            "skipped": self._skipped(),
        }

    def _skipped(self) -> list[str]:
        return list(dict.fromkeys([*self.skipped, *self.stream.skipped]))

    # ---- checkpoints -----------------------------------------------------------------------------

    def _description(self) -> dict[str, Any]:
        return {
            "progress": asdict(self.progress),
            "progressive": self.progressive.state,
            "position": self.position,
            "skipped": self._skipped(),
            "samples": self.trainer.samples,
            "steps": self.trainer.steps,
            "data": self.about,
            "shape": {
                "sizes": [field.size for field in self.stream.fields],
                "dim": self.settings.vector_dim,
            },
            "torch_threads": self.trainer.torch_threads,
            "record": self.record,
        }

    def _save(self) -> None:
        if self.folder is not None:
            tallies = in_parts(tallies=self.progressive.tensors)
            self.trainer.save(self.folder, tallies, self._description())

    def _finished(self, folder: Path) -> dict[str, Any]:
        """What a run that came to its end has told."""
        saved = self._check_same(folder / MODEL)
        self.trainer.load_model(folder)
        self._clean_up(folder)
        record: dict[str, Any] = saved["record"]
        return record

    def _resume(self, folder: Path) -> None:
        """Go on from a checkpoint."""
        self._check_same(folder / CHECKPOINT)
        with refusing_others(folder / CHECKPOINT):
            self._load(folder)

    def _load(self, folder: Path) -> None:
        saved = self.trainer.load(folder, in_parts(tallies=self.progressive.tensors))
        self.record = saved["record"]
        self.progress = StreamProgress(**saved["progress"])
        if self.record["stopped"] is not None:
            return
        self.progressive.load(saved["progressive"])
        self.record |= {
            **self.trainer.about,
            "windows": self.progressive.windows,
            "days": self.progressive.of_days,
        }
        self.position = Position(*saved["position"])
        self.dropped = self.position.dropped
        self.skipped = saved["skipped"]

    def _check_same(self, path: Path) -> dict[str, Any]:
        saved = checkpoint.describe(path)
        check_same(path, saved, self.about, self.options, self.trainer.torch_threads)
        return saved

    def _clean_up(self, folder: Path) -> None:
        """Remove what a finished run needs no longer."""
        if self.trainer.leads:
            for path in (folder / CHECKPOINT, *folder.glob(".*.tmp")):
                path.unlink(missing_ok=True)
