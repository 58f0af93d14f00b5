"""Training in epochs, with early stopping. Subclasses say what is trained on what."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from freqsgd.optimizers import Rule
from freqsgd.runs.resume import in_parts, part_of
from freqsgd.runs.run import Run


@dataclass
class Progress:
    """Progress of a run."""

    epoch: int = 0  # epochs finished
    step: int = 0  # steps of the current epoch
    steps: int = 0  # steps of an epoch
    seconds: float = 0.0  # of training, without evaluation
    loss: float = math.nan  # mean of the current epoch's steps


Listener = Callable[[Progress, dict[str, Any]], None]


class EpochRun(Run):
    """One model trained once, in epochs.

    Args:
        rule, settings, folder, options, about: as for :class:`~freqsgd.runs.run.Run`; the settings
            have ``epochs``, ``patience``, ``lr_decay`` and ``checkpoint_steps``
        rows: numbers of the samples or paragraphs of an epoch, which sees them in a random order
        batch_size: how many of them make a step
        size: samples or words of an epoch, for the speed of training
        columns: numbers that the engine gives for a step: its loss, and what else

    Attributes:
        speed: the key of ``results.json`` for the speed of training
        chosen_by: key of the metric that chooses the best epoch: the highest AUC, or lowest loss
        losses: of the current epoch's steps, as the engine yields them
    """

    speed: ClassVar[str]
    chosen_by: ClassVar[str]
    progress: Progress

    def __init__(
        self,
        rule: Rule,
        settings: Any,
        folder: Path | None,
        *,
        options: dict[str, Any],
        about: dict[str, Any],
        rows: NDArray[np.int64],
        batch_size: int,
        size: int,
        columns: tuple[int, ...] = (),
    ) -> None:
        super().__init__(rule, settings, folder, options=options, about=about)
        self.planned = settings.epochs
        self._rows, self._batch_size, self.size = rows, batch_size, size
        self.progress = Progress(steps=-(-len(rows) // batch_size))
        self.losses = np.zeros((self.progress.steps, *columns))
        self.best: dict[str, Tensor] = {}

    # ---- what is trained on what -----------------------------------------------------------------

    def after_epoch(self) -> None:
        """Do what is not timed after an epoch has been recorded."""

    @abstractmethod
    def train_steps(
        self, order: NDArray[np.int64], lrs: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Take the next steps, one per learning rate; yield the losses of one or more at a time."""

    @abstractmethod
    def mean_loss(self, losses: NDArray[np.float64]) -> float:
        """Return the mean over the samples of the epoch's first steps, given their losses."""

    @abstractmethod
    def validate(self) -> dict[str, float | None]:
        """Return what an epoch's entry says of validation; raise if the model diverged."""

    @abstractmethod
    def test(self, best: dict[str, Any] | None) -> dict[str, Any]:
        """Return what the record says in the end; the model is that of the best epoch, if any."""

    # ---- the loop --------------------------------------------------------------------------------

    def _train(self) -> None:
        while self.record["stopped"] is None:
            self._epoch()
            self._evaluate()
            self.after_epoch()
            self._save()
            self.tell(saved=True)

    def _place(self, step: int) -> str:
        return f" (epoch {self.progress.epoch + 1}) at lr {self._lr(step):g}"

    def _epoch(self) -> None:
        """Take the steps of an epoch that are left."""
        progress, most = self.progress, self.settings.checkpoint_steps
        if progress.step == progress.steps:  # it was interrupted before the evaluation
            return
        generator = np.random.Generator(np.random.PCG64([self.settings.seed, progress.epoch]))
        order = generator.permutation(self._rows)[progress.step * self._batch_size :]
        first = progress.epoch * progress.steps
        lrs = np.array([self._lr(first + k) for k in range(progress.step, progress.steps)])
        unsaved, start = 0, time.perf_counter()
        for losses in self.train_steps(order, lrs):
            self.losses[progress.step : progress.step + len(losses)] = losses
            progress.step += len(losses)
            progress.seconds += time.perf_counter() - start
            progress.loss = self.mean_loss(self.losses[: progress.step])
            self.tell()
            unsaved += len(losses)
            if most is not None and unsaved >= most:
                self._save()
                unsaved = 0
            start = time.perf_counter()

    def _lr(self, step: int) -> float:
        """Return the learning rate of a step, counted from the start of the run."""
        lr, epochs, steps = self.rule.law.lr, self.planned, self.progress.steps
        if self.settings.lr_decay == "constant":
            return lr
        if self.settings.lr_decay == "epochs":
            return lr * (1 - step // steps / epochs)
        return lr * (1 - step / (epochs * steps))

    def _evaluate(self) -> None:
        """Record a finished epoch; decide whether it was the last."""
        progress, record, patience = self.progress, self.record, self.settings.patience
        validation = self.validate()
        progress.epoch += 1
        progress.step = 0
        before = record["epochs"][-1]["seconds"] if record["epochs"] else 0.0
        epoch = {
            "epoch": progress.epoch,
            "train_loss": self.mean_loss(self.losses),
            **validation,
            "seconds": progress.seconds,
            self.speed: self.size / (progress.seconds - before),
            "lr": self._lr(progress.epoch * progress.steps - 1),
        }
        record["epochs"].append(epoch)
        if patience is None or self._is_best(epoch):
            record["best_epoch"] = progress.epoch
            self.best = {k: v.clone() for k, v in self.model.state_dict().items()}
        if patience is not None and progress.epoch - record["best_epoch"] >= patience:
            record["stopped"] = "patience"
            record["still_learning"] = _still_learning(record["epochs"], record["best_epoch"])
        elif progress.epoch == self.planned:
            record["stopped"] = "epochs"

    def _is_best(self, epoch: dict[str, Any]) -> bool:
        best = self._best_epoch()
        if best is None:
            return True
        new, old = epoch[self.chosen_by], best[self.chosen_by]
        return bool(new > old if self.chosen_by.endswith("auc") else new < old)

    def _best_epoch(self) -> dict[str, Any] | None:
        number: int | None = self.record["best_epoch"]
        return self.record["epochs"][number - 1] if number else None

    def _finish(self) -> None:
        record, progress, best = self.record, self.progress, self._best_epoch()
        if self.best:
            self.model.load_state_dict(self.best)
        record["state_bytes"] = self.engine.state_bytes
        record["seconds"] = progress.seconds
        record[f"best_{self.chosen_by}"] = best[self.chosen_by] if best else None
        taken = self.size * self.steps / progress.steps
        record[self.speed] = taken / progress.seconds if taken else None
        record.update(self.test(best))
        self.model.eval()
        if self.best:
            self._leave_model()

    # ---- checkpoints -----------------------------------------------------------------------------

    def _tensors(self) -> dict[str, Tensor]:
        losses = torch.from_numpy(self.losses)
        return {**super()._tensors(), **in_parts(best=self.best), "losses": losses}

    def _go_on(self, tensors: dict[str, Tensor], saved: dict[str, Any]) -> None:
        self.best = part_of(tensors, "best")


def _still_learning(epochs: list[dict[str, Any]], best: int) -> bool:
    """Tell whether patience may have ended a run too soon.

    The training loss alone cannot tell: it falls while a model overfits too. So both losses must be
    lower in the last epoch than in the best one.
    """
    kept, last = epochs[best - 1], epochs[-1]
    return all(bool(last[loss] < kept[loss]) for loss in ("train_loss", "val_loss"))
