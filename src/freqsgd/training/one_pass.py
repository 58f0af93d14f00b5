"""Training in one pass over a stream of days, each example scored before it is learned."""

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
import torch
from torch import Tensor

from freqsgd.data.dataset import DataError
from freqsgd.data.lock import locked
from freqsgd.nn.fm import FM
from freqsgd.streams.batches import Batch, batches
from freqsgd.streams.stream import Chunk, Position, Stream
from freqsgd.streams.tally import Tally
from freqsgd.training import checkpoint, model_folder
from freqsgd.training.available_memory import forget_peak, peak_memory
from freqsgd.training.engine import DivergedError, engine_for
from freqsgd.training.interrupt import Interrupt, InterruptedFitError
from freqsgd.training.memory_plan import check_memory
from freqsgd.training.model_folder import MODEL
from freqsgd.training.prepare import new_model
from freqsgd.training.progressive import Progressive
from freqsgd.training.reading_memory import stream_plan
from freqsgd.training.resuming import (
    CHECKPOINT,
    check_same,
    in_parts,
    part_of,
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
from freqsgd.training.stream_rates import capped

__all__ = ["Pass", "StreamListener", "StreamProgress", "fit_stream"]


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
            capped as :func:`~freqsgd.training.stream_rates.capped` says
        settings: everything else
        plan: windows, checkpoints and days of evaluation
        threads: of the kernels; None for torch's number. FM's result does not depend on it
        folder: keeps checkpoints while it lasts, and the model in the end
        resume: go on from the folder's checkpoint, if there is one, to the same result
        listener: called after each batch with the progress and the record so far
    """
    with locked(folder):
        run = _Run(stream, rule, settings, plan or Pass(), threads, folder)
        return run.start(resume, listener or (lambda progress, record: None))


class _Run:
    def __init__(
        self,
        stream: Stream,
        rule: Rule,
        settings: Settings,
        plan: Pass,
        threads: int | None,
        folder: Path | None,
    ) -> None:
        check_one_pass(rule, settings)
        rule = capped(rule, settings.batch_size)
        self.stream, self.rule, self.settings, self.plan = stream, rule, settings, plan
        self.threads, self.folder = threads, folder
        self.learned_days = days_to_learn(stream, plan)
        summary = stream.summary()
        self.rows = summary.pop("rows", None)
        self.about = {**summary, "data": stream.fingerprint}
        self.torch_threads = torch.get_num_threads() if settings.model == "deepfm" else None
        self.options = {
            "rule": asdict(rule),
            "settings": pass_settings(settings),
            "pass": asdict(plan),
        }

    def start(self, resume: bool, listener: StreamListener) -> tuple[FM, dict[str, Any]]:
        """Learn, or go on with what the folder holds."""
        used = None if self.folder is None else used_for(self.folder, resume)
        if self.folder is not None and used == MODEL:
            return self._finished(self.folder)
        forget_peak()
        self._begin()
        if self.folder is not None and used == CHECKPOINT:
            self._resume(self.folder / CHECKPOINT)
        if self.record["stopped"] is None:
            self._go(listener)
        return self.model.eval(), self.record

    def _begin(self) -> None:
        """Build everything anew."""
        settings, rule = self.settings, self.rule
        check_memory(stream_plan(self.stream, rule, settings))
        self.model = new_model(self.stream.fields, settings)
        self.engine = engine_for(
            self.model,
            rule,
            seed=settings.seed,
            batch_size=settings.batch_size,
            threads=self.threads,
            expected=self.rows or 0,
        )
        self.order = np.arange(settings.batch_size)
        self.lrs = np.array([rule.law.lr])
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
            "seed": settings.seed,
            "batch_size": settings.batch_size,
            "options": self.options,
            "state_bytes": self.engine.state_bytes,
            "state_rule": rule.keeps,
            "parameter_bytes": sum(p.nbytes for p in self.model.parameters()),
            "epochs_planned": 1,
            "epochs": [],
            "best_epoch": None,
            "stopped": None,
            "windows": self.progressive.windows,
            "days": self.progressive.of_days,
        }

    # ---- the pass --------------------------------------------------------------------------------

    def _go(self, listener: StreamListener) -> None:
        self._listener, evaluated = listener, Tally()
        try:
            with Interrupt() as self._interrupt:
                if not self.progress.evaluating:
                    self._learn()
                    self._check_weights()
                self._evaluate(evaluated)
        except DivergedError as error:
            self.progressive.end(self.progress.seconds)
            evaluated.clear()
            self._finish(evaluated)
            self.record["stopped"] = "diverged"
            self.record["error"] = f"{error} at lr {self.rule.lr:g}: try a smaller learning rate"
            if self.folder is not None:  # nothing of the weights is worth keeping
                checkpoint.save(self.folder / CHECKPOINT, {}, self._description())
            if self._interrupt.came:  # before the loss was seen
                raise InterruptedFitError from None
            return
        self._finish(evaluated)
        self.record["stopped"] = "end"
        if self.folder is not None:
            description = {"record": self.record, "data": {**self.about, "rows": self.learned}}
            model_folder.save_model(self.folder, self.model, self.stream, description)
            _clean_up(self.folder)

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
        for _ in self.engine.train(
            batch.ids, batch.labels, self.order[:size], self.lrs, logits=logits
        ):
            pass
        cuts = [0, *(np.flatnonzero(np.diff(batch.days)) + 1), size]
        for first, last in pairwise(cuts):
            part = slice(first, last)
            self.progressive.add(logits[part], batch.labels[part], int(batch.days[first]))
        self.position = batch.position

    def _check_weights(self) -> None:
        """Look at what the last steps have done, which no later example may tell."""
        norms = (torch.linalg.vector_norm(each.detach()) for each in self.model.parameters())
        if not all(math.isfinite(norm) for norm in norms):
            raise DivergedError(self.engine.steps - 1)

    def _evaluate(self, tally: Tally) -> None:
        """Score the last days."""
        for batch in self._batches(self.learned_days, len(self.stream.days)):
            tally.add(self.engine.predict(batch.ids), batch.labels)
            if not math.isfinite(tally.sums[0]):
                raise DivergedError(self.engine.steps - 1)
            self._tell(batch)

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
        if self._interrupt.came:
            self._save()
            raise InterruptedFitError

    def _finish(self, evaluated: Tally) -> None:
        """Complete the record."""
        seconds, rows = self.progress.seconds, sum(evaluated.counts)
        progressive = self.progressive.lifetime()
        self.record |= {
            "state_bytes": self.engine.state_bytes,
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

    def _tensors(self) -> dict[str, Tensor]:
        return in_parts(
            model=self.model.state_dict(),
            optimizer=self.engine.state,
            tallies=self.progressive.tensors,
        )

    def _description(self) -> dict[str, Any]:
        return {
            "progress": asdict(self.progress),
            "progressive": self.progressive.state,
            "position": self.position,
            "skipped": self._skipped(),
            "samples": self.engine.samples,
            "steps": self.engine.steps,
            "data": self.about,
            "torch_threads": self.torch_threads,
            "record": self.record,
        }

    def _save(self) -> None:
        if self.folder is not None:
            checkpoint.save(self.folder / CHECKPOINT, self._tensors(), self._description())

    def _finished(self, folder: Path) -> tuple[FM, dict[str, Any]]:
        """What a run that came to its end has left."""
        self._check_same(folder / MODEL)
        model, saved = model_folder.load_model(folder)
        _clean_up(folder)
        return model, saved["record"]

    def _resume(self, path: Path) -> None:
        """Go on from a checkpoint, whose tensors are read into those of the run."""
        self._check_same(path)
        tensors, saved = checkpoint.load(path, self._tensors())
        self.record = saved["record"]
        self.progress = StreamProgress(**saved["progress"])
        if self.record["stopped"] is not None:
            return
        self.model.load_state_dict(part_of(tensors, "model"))
        self.engine.load_state(part_of(tensors, "optimizer"), saved["samples"], saved["steps"])
        self.progressive.load(saved["progressive"])
        self.record |= {"windows": self.progressive.windows, "days": self.progressive.of_days}
        self.position = Position(*saved["position"])
        self.dropped = self.position.dropped
        self.skipped = saved["skipped"]

    def _check_same(self, path: Path) -> None:
        saved = checkpoint.describe(path)
        check_same(path, saved, self.about, self.options, self.torch_threads)


def _clean_up(folder: Path) -> None:
    """Remove what a finished run needs no longer."""
    for path in (folder / CHECKPOINT, *folder.glob(".*.tmp")):
        path.unlink(missing_ok=True)
