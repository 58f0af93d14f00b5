"""Training in one pass over a stream of days, each example scored before it is learned."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from freqsgd.errors import DataError, DivergedError, InterruptedFitError
from freqsgd.files import locked
from freqsgd.nn.fm import FM
from freqsgd.optimizers import Rule
from freqsgd.recommender import folder as model_folder
from freqsgd.recommender.engine import engine_for
from freqsgd.recommender.memory import check_memory, stream_plan
from freqsgd.recommender.models import new_model
from freqsgd.recommender.progressive import Progressive
from freqsgd.recommender.settings import Settings
from freqsgd.recommender.stream_pass import (
    Pass,
    StreamListener,
    StreamProgress,
    capped,
    check_one_pass,
    days_to_learn,
    pass_settings,
)
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL
from freqsgd.runs.loop import Interrupt, check_loss, constant_loss
from freqsgd.runs.machine import forget_peak, peak_memory
from freqsgd.runs.resume import CHECKPOINT, check_same, in_parts, part_of, refusing_others, used_for
from freqsgd.tables.stream import Batch, Chunk, Position, Stream, batches
from freqsgd.tables.streaming_metrics import Tally

__all__ = [
    "LocalTrainer",
    "Pass",
    "StreamListener",
    "StreamProgress",
    "StreamRun",
    "StreamTrainer",
    "fit_stream",
]


def fit_stream(
    stream: Stream,
    rule: Rule,
    settings: Settings,
    plan: Pass | None = None,
    *,
    threads: int | None = None,
    folder: Path | None = None,
    resume: bool = False,
    listener: StreamListener | None = None,
) -> tuple[FM, dict[str, Any]]:
    """Learn every example once, in order; return the model and the run's record.

    The record is one of the ``runs`` of ``results.json``. The last days are kept to evaluate the
    model. ``epochs`` and ``patience`` of the settings mean nothing here.

    Args:
        stream: the examples
        rule: the optimizer; its learning rate must be given. Without ``max_lr``, cfsgd's rates are
            capped as :func:`~freqsgd.recommender.stream_pass.capped` says
        settings: everything else
        plan: windows, checkpoints and days of evaluation
        threads: of the kernels; None for torch's number. FM's result does not depend on it
        folder: keeps checkpoints while it lasts, and the model in the end
        resume: go on from the folder's checkpoint, if there is one, to the same result
        listener: called after each batch with the progress and the record so far
    """
    rule = capped(rule, settings.batch_size)
    trainer = LocalTrainer(stream, rule, settings, threads)
    run = StreamRun(stream, rule, settings, plan or Pass(), trainer, folder)
    record = run.start(resume, listener)
    return trainer.model.eval(), record


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


class StreamTrainer(Protocol):
    """Model, optimizer and their files.

    Attributes:
        leads: whether this process writes what belongs to the run as a whole, and tells of it
        torch_threads: on which the result depends, if any
        samples, steps: learned so far
    """

    leads: bool
    torch_threads: int | None

    @property
    def model(self) -> nn.Module:
        """That is trained."""

    @property
    def samples(self) -> int: ...  # noqa: D102

    @property
    def steps(self) -> int: ...  # noqa: D102

    @property
    def about(self) -> dict[str, Any]:
        """What the record tells of it: bytes, and how it is spread."""

    def begin(self) -> None:
        """Build everything anew, or refuse what does not fit."""

    def learn(
        self, ids: NDArray[np.int32], labels: NDArray[np.uint8], logits: NDArray[np.float32]
    ) -> None:
        """Take one step; ``logits`` takes the log odds before it."""

    def predict(self, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """Log odds of samples."""

    def finite(self) -> bool:
        """Whether all weights are numbers."""

    def agreed(self, flag: bool) -> bool:
        """Whether any process has the flag."""

    def save(self, folder: Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
        """Write a checkpoint, with some tensors of the run."""

    def load(self, folder: Path, tensors: dict[str, Tensor]) -> dict[str, Any]:
        """Go on from a checkpoint; the run's tensors are read in place."""

    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        """Write what is left in the end."""

    def load_model(self, folder: Path) -> None:
        """Take what a run that came to its end has left."""


class LocalTrainer:
    """Training in this process."""

    leads = True

    def __init__(self, stream: Stream, rule: Rule, settings: Settings, threads: int | None) -> None:
        self.stream, self.rule, self.settings, self.threads = stream, rule, settings, threads
        self.torch_threads: int | None = None
        self.order = np.arange(settings.batch_size)
        self.lrs = np.array([rule.law.lr])

    def begin(self) -> None:
        """Build everything anew, or refuse what does not fit."""
        settings = self.settings
        check_memory(stream_plan(self.stream, self.rule, settings))
        self.model: FM = new_model(self.stream.fields, settings)
        self.engine = engine_for(
            self.model,
            self.rule,
            seed=settings.seed,
            batch_size=settings.batch_size,
            threads=self.threads,
            expected=self.stream.summary()["rows"] or 0,
        )
        self.torch_threads = self.engine.torch_threads

    @property
    def samples(self) -> int:
        """Learned so far."""
        return self.engine.samples

    @property
    def steps(self) -> int:
        """Taken so far."""
        return self.engine.steps

    @property
    def about(self) -> dict[str, Any]:
        """What the record tells of it."""
        return {
            "state_bytes": self.engine.state_bytes,
            "state_rule": self.rule.keeps,
            "parameter_bytes": sum(p.nbytes for p in self.model.parameters()),
        }

    def learn(
        self, ids: NDArray[np.int32], labels: NDArray[np.uint8], logits: NDArray[np.float32]
    ) -> None:
        """Take one step; ``logits`` takes the log odds before it."""
        for _ in self.engine.train(ids, labels, self.order[: len(labels)], self.lrs, logits=logits):
            pass

    def predict(self, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """Log odds of samples."""
        return self.engine.predict(ids)

    def finite(self) -> bool:
        """Whether all weights are numbers."""
        norms = (torch.linalg.vector_norm(each.detach()) for each in self.model.parameters())
        return all(math.isfinite(norm) for norm in norms)

    def agreed(self, flag: bool) -> bool:
        """The flag: there is no other process."""
        return flag

    def save(self, folder: Path, tensors: dict[str, Tensor], description: dict[str, Any]) -> None:
        """Write a checkpoint, with some tensors of the run; without, the weights stay behind."""
        whole = {**self._tensors(), **tensors} if tensors else {}
        checkpoint.save(folder / CHECKPOINT, whole, description)

    def load(self, folder: Path, tensors: dict[str, Tensor]) -> dict[str, Any]:
        """Go on from a checkpoint, whose tensors are read into those of the run."""
        path = folder / CHECKPOINT
        model_folder.check_whole(path, checkpoint.describe(path))
        loaded, saved = checkpoint.load(path, {**self._tensors(), **tensors})
        if loaded:
            self.model.load_state_dict(part_of(loaded, "model"))
            state = part_of(loaded, "optimizer")
            self.engine.load_state(state, saved["samples"], saved["steps"])
        return saved

    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        """Write the model's folder."""
        model_folder.save_model(folder, self.model, self.stream, description)

    def load_model(self, folder: Path) -> None:
        """Take the model of a run that came to its end."""
        self.model = model_folder.load_model(folder)[0]

    def _tensors(self) -> dict[str, Tensor]:
        return in_parts(model=self.model.state_dict(), optimizer=self.engine.state)
