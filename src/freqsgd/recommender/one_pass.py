"""Training in one pass over a stream of days, each example scored before it is learned."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.errors import DataError, DivergedError
from freqsgd.nn.fm import FM
from freqsgd.optimizers import Rule
from freqsgd.recommender import folder as model_folder
from freqsgd.recommender.engine import Engine, engine_for, new_model
from freqsgd.recommender.memory import check_memory, stream_plan
from freqsgd.recommender.rate_grid import capped, check_optimizer
from freqsgd.recommender.settings import Pass, Settings
from freqsgd.runs import checkpoint
from freqsgd.runs.documents import heading
from freqsgd.runs.machine import forget_peak, peak_memory
from freqsgd.runs.metrics import Progressive
from freqsgd.runs.resume import in_parts
from freqsgd.runs.run import Run, check_loss, constant_loss
from freqsgd.tables.dataset import Batch, Stream, batches
from freqsgd.tables.fields import Chunk, Position
from freqsgd.tables.streaming_metrics import Tally


@dataclass
class StreamProgress:
    """Progress of a pass."""

    examples: int = 0  # learned
    done: float = 0.0  # the part of the days to learn from, or of the evaluation, from 0 to 1
    seconds: float = 0.0  # of reading and learning
    ne: float | None = None  # of all examples so far
    evaluating: bool = False


StreamListener = Callable[[StreamProgress, dict[str, Any]], None]
"""Called after each batch with where the run is and its record so far."""


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
        rule: the optimizer; only cfadam needs no learning rate. Without ``max_lr``, cfsgd's rates
            are capped as :func:`~freqsgd.recommender.rate_grid.capped` says
        settings: everything else
        plan: windows, checkpoints and days of evaluation
        threads: maximum for the kernels; None for torch's number. FM's result does not depend on it
        folder: keeps checkpoints while it lasts, and the model in the end
        resume: go on from the folder's checkpoint, if there is one, to the same result
        listener: called after each batch with the progress and the record so far
    """
    rule = capped(rule.settled, settings.batch_size)
    run = StreamRun(stream, rule, settings, plan or Pass(), folder, threads)
    record = run.start(resume, listener)
    return run.model.eval(), record


class StreamRun(Run):
    """A pass from its start, or from where it was left, to its end.

    The arguments are those of :func:`fit_stream`; the rule is used as it is, without another cap.
    """

    settings: Settings
    progress: StreamProgress
    model: FM
    engine: Engine

    def __init__(
        self,
        stream: Stream,
        rule: Rule,
        settings: Settings,
        plan: Pass,
        folder: Path | None,
        threads: int | None = None,
    ) -> None:
        _check(rule, settings)
        summary = stream.summary()
        self.expected: int = summary.pop("rows") or 0
        options = {"rule": rule.plain, "settings": settings.of_one_pass, "pass": asdict(plan)}
        about = {**summary, "data": stream.fingerprint}
        super().__init__(rule, settings, folder, options=options, about=about)
        self.stream, self.plan, self.threads = stream, plan, threads
        self.learned_days = _days_to_learn(stream, plan)
        self.logits = np.empty(settings.batch_size, np.float32)
        self.progressive, self.evaluated = Progressive(plan.window, stream.days), Tally()
        self.progress = StreamProgress()
        self.position: Position | None = None  # where to go on
        self.dropped = 0  # malformed rows of all chunks so far
        self.skipped: list[str] = []  # files that were left out before the run was resumed

    # ---- model and optimizer ---------------------------------------------------------------------

    def begin(self) -> None:
        """Build model and optimizer anew, or refuse what does not fit."""
        forget_peak()
        settings = self.settings
        check_memory(stream_plan(self.stream, self.rule, settings))
        self.model = new_model(self.stream.fields, settings)
        self.engine = engine_for(
            self.model,
            self.rule,
            seed=settings.seed,
            batch_size=settings.batch_size,
            threads=self.threads,
            expected=self.expected,
        )
        self.torch_threads = self.engine.torch_threads

    def learn(
        self, ids: NDArray[np.int32], labels: NDArray[np.uint8], logits: NDArray[np.float32]
    ) -> None:
        """Take one step; ``logits`` takes the log odds before it."""
        order, lrs = np.arange(len(labels)), np.array([self.rule.law.lr])
        for _ in self.engine.train(ids, labels, order, lrs, logits=logits):
            pass

    def predict(self, ids: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the log odds of samples."""
        return self.engine.predict(ids)

    def finite(self) -> bool:
        """Tell whether all weights are finite."""
        norms = (torch.linalg.vector_norm(each.detach()) for each in self.model.parameters())
        return all(math.isfinite(norm) for norm in norms)

    def new_record(self) -> dict[str, Any]:
        """Return the record of a run that has not taken a step."""
        return {
            **super().new_record(),
            "halflife": self.rule.halflife,
            "count": self.rule.count,
            "dense_lr": self.rule.dense_rate(self.settings.batch_size),
            "windows": self.progressive.windows,
            "days": self.progressive.of_days,
        }

    # ---- the pass --------------------------------------------------------------------------------

    @property
    def learned(self) -> int:
        """Examples that were learned."""
        return self.progressive.examples

    def _train(self) -> None:
        if self.record["stopped"] is not None:  # it diverged before it was resumed
            return
        if not self.progress.evaluating:
            self._learn()
            if not self.finite():  # which no later example may tell
                raise DivergedError(self.steps - 1)
            self._check(self.progressive.lifetime(), self.progressive.positives, self.learned)
        self._evaluate()
        self.record["stopped"] = "end"

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
            progress.done = batch.done
            self.tell()
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
        self.learn(batch.ids, batch.labels, logits)
        cuts = [0, *(np.flatnonzero(np.diff(batch.days)) + 1), size]
        for first, last in pairwise(cuts):
            part = slice(first, last)
            self.progressive.add(logits[part], batch.labels[part], int(batch.days[first]))
        self.position = batch.position

    def _evaluate(self) -> None:
        """Score the last days."""
        tally = self.evaluated
        for batch in self._batches(self.learned_days, len(self.stream.days)):
            tally.add(self.predict(batch.ids), batch.labels)
            if not math.isfinite(tally.sums[0]):
                raise DivergedError(self.steps - 1)
            self.progress.done = batch.done
            self.tell()
        negatives, positives = tally.counts
        if rows := negatives + positives:
            self._check(tally.metrics(), positives, rows)

    def _check(self, metrics: dict[str, float | None], positives: int, rows: int) -> None:
        """Raise if the loss of some examples shows that the run diverged."""
        loss, rate = metrics["loss"], self.progressive.positives / self.learned
        constant = constant_loss(rate, positives, rows)
        found = math.nan if loss is None else loss
        check_loss(found, constant, self.steps - 1, "a constant prediction")

    def _batches(self, first: int, last: int) -> Iterator[Batch]:
        """Yield the examples of some days, from where to go on; count malformed rows."""

        def counted(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
            for chunk in chunks:
                self.dropped = chunk.dropped
                yield chunk

        with closing(cast(Any, self.stream.chunks(first, last, self.position))) as chunks:
            yield from batches(counted(chunks), self.settings.batch_size)

    def _end_diverged(self) -> None:
        self.progressive.end(self.progress.seconds)
        self.evaluated.clear()
        self._complete()
        self._save()

    def _finish(self) -> None:
        if self.record["stopped"] != "diverged":
            self._complete()
            self._leave_model(rows=self.learned)

    def _complete(self) -> None:
        """Add to the record what is known in the end."""
        seconds, rows = self.progress.seconds, sum(self.evaluated.counts)
        self.record |= {
            **self.costs,
            "examples": self.learned,
            **{f"train_{key}": value for key, value in self.progressive.lifetime().items()},
            **{f"test_{key}": value for key, value in self.evaluated.metrics().items()},
            "test_rows": rows or None,
            "seconds": seconds,
            "samples_per_second": self.learned / seconds if seconds else None,
            "peak_memory_bytes": peak_memory(),
            "dropped": self.dropped,
            "skipped": self._skipped(),
        }

    def _skipped(self) -> list[str]:
        return list(dict.fromkeys([*self.skipped, *self.stream.skipped]))

    # ---- files -----------------------------------------------------------------------------------

    def _describe(self) -> dict[str, Any]:
        return {
            **super()._describe(),
            "progressive": self.progressive.state,
            "position": self.position,
            "skipped": self._skipped(),
            "shape": {
                "sizes": [field.size for field in self.stream.fields],
                "dim": self.settings.vector_dim,
            },
        }

    def _tallies(self) -> dict[str, Tensor]:
        sums = self.progressive.sums
        return in_parts(tallies={name: torch.from_numpy(each) for name, each in sums.items()})

    def _tensors(self) -> dict[str, Tensor]:
        if self.record["stopped"] == "diverged":  # nothing of the weights is worth keeping
            return {}
        return {**super()._tensors(), **self._tallies()}

    def _read(self, path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
        model_folder.check_whole(path, checkpoint.describe(path))
        return super()._read(path)

    def _go_on(self, tensors: dict[str, Tensor], saved: dict[str, Any]) -> None:
        record = self.record
        if record["stopped"] is None:
            self.progressive.load(saved["progressive"], record["windows"], record["days"])
            self.position = Position(*saved["position"])
            self.dropped = self.position.dropped
            self.skipped = saved["skipped"]

    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        """Write the model of a finished run."""
        model_folder.save_model(folder, self.model, self.stream, description)

    def load_model(self, folder: Path) -> None:
        """Take the model that a finished run has left."""
        self.model = model_folder.load_model(folder)[0]


def _check(rule: Rule, settings: Settings) -> None:
    """Refuse what one pass cannot do."""
    if rule.lr is None:
        raise DataError(f"one pass needs a learning rate for {rule.optimizer}: give lr")
    check_optimizer(rule)
    if settings.lr_decay != "constant":
        raise DataError(
            f"lr_decay {settings.lr_decay} needs to know how many examples will come: in one "
            "pass the learning rate is constant"
        )


def _days_to_learn(stream: Stream, plan: Pass) -> int:
    """Return how many days are learned from; the others are for evaluation."""
    days = len(stream.days)
    if days == 1:
        return 1
    if plan.evaluation_days >= days:
        raise DataError(
            f"{stream.name} has {days} days: with {plan.evaluation_days} for evaluation there is "
            "none to learn from"
        )
    return days - plan.evaluation_days


def describe_stream(
    stream: Stream, settings: Settings, threads: int | None, command: str | None = None
) -> dict[str, Any]:
    """Return the content of ``results.json`` without runs."""
    splits = {"train": 0, "test": 0}
    results = heading(stream.summary(), splits, settings.about_model, threads, command)
    return {**results, "one_pass": True}
