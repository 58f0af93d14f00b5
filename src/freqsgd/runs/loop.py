"""A training run: epochs, early stopping, checkpoints. Subclasses say what is trained on what."""

from __future__ import annotations

import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from freqsgd.errors import DataError, DivergedError, InterruptedFitError
from freqsgd.optimizers import Rule
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL
from freqsgd.runs.resume import CHECKPOINT, check_same, in_parts, part_of, refusing_others, used_for

__all__ = ["AnyEngine", "Interrupt", "Listener", "Progress", "Run", "check_loss", "constant_loss"]

BEST = "best.safetensors"

M = TypeVar("M", bound=nn.Module)


@dataclass
class Progress:
    """Where a run is: what listeners are told, and what a checkpoint keeps beside tensors."""

    epoch: int = 0  # epochs finished
    step: int = 0  # steps of the current epoch
    steps: int = 0  # steps of an epoch
    seconds: float = 0.0  # of training, without evaluation
    loss: float = math.nan  # mean of the current epoch's steps


Listener = Callable[[Progress, dict[str, Any]], None]


class LoopSettings(Protocol):
    """Settings that the loop reads; those of a recommender and of word vectors have more."""

    @property
    def seed(self) -> int: ...

    @property
    def epochs(self) -> int: ...

    @property
    def patience(self) -> int | None: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def lr_decay(self) -> str: ...

    @property
    def checkpoint_steps(self) -> int | None: ...


class AnyEngine(Protocol):
    """What takes the steps.

    Attributes:
        samples, steps: taken so far
    """

    samples: int
    steps: int

    @property
    def state(self) -> dict[str, Tensor]:
        """What the optimizer keeps, by name."""

    @property
    def state_bytes(self) -> int:
        """Bytes that the optimizer keeps beside the weights."""

    def load_state(self, state: dict[str, Tensor], samples: int, steps: int) -> None:
        """Continue from a state that was saved."""


class Run(ABC, Generic[M]):
    """One model trained once.

    Args:
        model, engine: what is trained, and what trains it
        rule: the optimizer; its learning rate is known
        settings: of the loop
        options: the choices by which ``results.json`` describes the run
        rows: numbers of the samples or paragraphs of an epoch, which sees them in a random order
        batch_size: how many of them make a step
        about: tells the data from other data
        folder: keeps checkpoints while it lasts, and the model in the end
        size: what an epoch counts as in the speed of training
        columns: numbers that the engine gives for a step: its loss, and what else
        torch_threads: how many torch's operations use, where results depend on it
        keeps: what the optimizer keeps beside the weights, in words

    Attributes:
        speed: the key of ``results.json`` for the speed of training
        losses: of the current epoch's steps, as the engine gives them
    """

    speed: ClassVar[str]

    def __init__(
        self,
        model: M,
        engine: AnyEngine,
        rule: Rule,
        settings: LoopSettings,
        *,
        options: dict[str, Any],
        rows: NDArray[np.int64],
        batch_size: int,
        about: dict[str, Any],
        folder: Path | None,
        size: int,
        columns: tuple[int, ...] = (),
        torch_threads: int | None,
        keeps: str,
    ) -> None:
        self.model, self.rule, self.folder, self.about = model, rule, folder, about
        self.engine, self.settings = engine, settings
        self._rows, self._batch_size = rows, batch_size
        self.progress = Progress(steps=-(-len(rows) // batch_size))
        self.losses = np.zeros((self.progress.steps, *columns))
        self.size, self.torch_threads = size, torch_threads
        self.best: dict[str, Tensor] = {}
        self._best_digest: str | None = None  # of its file, which a checkpoint belongs to
        self.record: dict[str, Any] = {
            "optimizer": rule.optimizer,
            "lr": rule.lr,
            "weight_decay": rule.weight_decay,
            "weight_decay_rule": rule.decay_rule,
            "seed": settings.seed,
            "batch_size": settings.batch_size,
            "max_lr": rule.law.max_lr,
            "options": options,
            "state_bytes": engine.state_bytes,
            "state_rule": keeps,
            "parameter_bytes": sum(p.nbytes for p in model.parameters()),
            "epochs_planned": settings.epochs,
            "epochs": [],
            "best_epoch": None,
            "stopped": None,
        }

    # ---- what is trained on what -----------------------------------------------------------------

    def prepare(self) -> None:
        """What is done before the first step, and not timed."""

    def after_epoch(self) -> None:
        """What is done when an epoch has been recorded, and not timed."""

    @abstractmethod
    def train_steps(
        self, order: NDArray[np.int64], lrs: NDArray[np.float64]
    ) -> Iterator[NDArray[np.float64]]:
        """Take the next steps, one per learning rate; yield the losses of one or more at a time."""

    @abstractmethod
    def mean_loss(self, losses: NDArray[np.float64]) -> float:
        """The mean over the samples of the epoch's first steps, whose losses are given."""

    @abstractmethod
    def validate(self) -> dict[str, float | None]:
        """What an epoch's entry says of the validation part; raises if the model diverged."""

    @abstractmethod
    def better(self, epoch: dict[str, Any], best: dict[str, Any]) -> bool:
        """Whether an epoch is better than the best so far."""

    @abstractmethod
    def test(self, best: dict[str, Any] | None) -> dict[str, Any]:
        """What the record says in the end, the model being that of the best epoch, if any."""

    @abstractmethod
    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        """Write the model."""

    @abstractmethod
    def load_model(self, folder: Path) -> tuple[M, dict[str, Any]]:
        """The model that was written, and its description."""

    # ---- the loop --------------------------------------------------------------------------------

    def start(self, resume: bool, listener: Listener | None) -> tuple[M, dict[str, Any]]:
        """Train, or go on with what the folder holds; return the best model and the record."""
        if self.folder is not None:
            used = used_for(self.folder, resume)
            if used == MODEL:
                return self._finished(self.folder)
            if used == CHECKPOINT:
                self._resume(self.folder)
        self.prepare()
        return self._go(listener or (lambda progress, record: None))

    def _go(self, listener: Listener) -> tuple[M, dict[str, Any]]:
        record, progress = self.record, self.progress
        try:
            with Interrupt() as self._interrupt:
                while record["stopped"] is None:
                    self._epoch(listener)
                    self._evaluate()
                    self.after_epoch()
                    self._save()
                    listener(progress, record)
                    if self._interrupt.came:
                        raise InterruptedFitError
        except DivergedError as error:
            record["stopped"] = "diverged"
            record["error"] = (
                f"{error} (epoch {progress.epoch + 1}) at lr {self._lr(error.step):g}: try a "
                "smaller learning rate"
            )
            self._save()
            if self._interrupt.came:  # before the loss was seen
                raise InterruptedFitError from None
        self._finish()
        if self.folder is not None and self.best:
            self.save_model(self.folder, {"record": record, "data": self.about})
            self._clean_up(self.folder)
        return self.model, record

    def _epoch(self, listener: Listener) -> None:
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
            listener(progress, self.record)
            if self._interrupt.came:
                self._save()
                raise InterruptedFitError
            unsaved += len(losses)
            if most is not None and unsaved >= most:
                self._save()
                unsaved = 0
            start = time.perf_counter()

    def _lr(self, step: int) -> float:
        """The learning rate of a step, counted from the start of the run."""
        lr, epochs, steps = self.rule.law.lr, self.settings.epochs, self.progress.steps
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
        best = record["best_epoch"]
        if best is None or patience is None or self.better(epoch, record["epochs"][best - 1]):
            record["best_epoch"] = progress.epoch
            self.best = {k: v.clone() for k, v in self.model.state_dict().items()}
            if self.folder is not None:
                about = {"epoch": progress.epoch}
                self._best_digest = checkpoint.save(self.folder / BEST, self.best, about)
        elif not self.best:  # it was killed when this very epoch was the best
            raise self._not_its_own(self.folder)
        if patience is not None and progress.epoch - record["best_epoch"] >= patience:
            record["stopped"] = "patience"
            record["still_learning"] = _still_learning(record["epochs"], record["best_epoch"])
        elif progress.epoch == self.settings.epochs:
            record["stopped"] = "epochs"

    def _finish(self) -> None:
        """Take the best model and complete the record."""
        record, best = self.record, self.record["best_epoch"]
        if self.best:
            self.model.load_state_dict(self.best)
        record["state_bytes"] = self.engine.state_bytes
        record["seconds"] = self.progress.seconds
        record.update(self.test(record["epochs"][best - 1] if best else None))
        self.model.eval()

    # ---- checkpoints -----------------------------------------------------------------------------

    def _save(self) -> None:
        if self.folder is None:
            return
        description = {
            "progress": asdict(self.progress),
            "samples": self.engine.samples,
            "steps": self.engine.steps,
            "data": self.about,
            "torch_threads": self.torch_threads,
            "record": self.record,
            "best": self._best_digest,
        }
        checkpoint.save(self.folder / CHECKPOINT, self._tensors(), description)

    def _tensors(self) -> dict[str, Tensor]:
        tensors = in_parts(model=self.model.state_dict(), optimizer=self.engine.state)
        return {**tensors, "losses": torch.from_numpy(self.losses)}

    def _finished(self, folder: Path) -> tuple[M, dict[str, Any]]:
        """What a run that came to its end has left."""
        model, saved = self.load_model(folder)
        self._check_same(folder / MODEL, saved)
        self._clean_up(folder)
        return model, saved["record"]

    def _resume(self, folder: Path) -> None:
        """Go on from the folder's checkpoint."""
        path = folder / CHECKPOINT
        self._check_same(path, checkpoint.describe(path))
        with refusing_others(path):
            self._load(folder, path)

    def _load(self, folder: Path, path: Path) -> None:
        tensors, saved = checkpoint.load(path, self._tensors())
        self.model.load_state_dict(part_of(tensors, "model"))
        self.engine.load_state(part_of(tensors, "optimizer"), saved["samples"], saved["steps"])
        self.losses = tensors["losses"].numpy()
        self.progress = Progress(**saved["progress"])
        self.record = saved["record"]
        if self.record["best_epoch"] is not None:
            self.best, best = checkpoint.load(folder / BEST)
            self._best_digest = checkpoint.digest(folder / BEST)
            if best.get("epoch") == self.progress.epoch + 1:
                # Killed between the two files: the epoch is taken again, and is the best again.
                self.best = {}
            elif (
                best.get("epoch") != self.record["best_epoch"]
                or saved.get("best", self._best_digest) != self._best_digest
            ):
                raise self._not_its_own(folder)

    def _not_its_own(self, folder: Path | None) -> DataError:
        return DataError(
            f"{folder}: {BEST} is not of the run that {CHECKPOINT} is of: restore both, or train "
            "again in another folder"
        )

    def _clean_up(self, folder: Path) -> None:
        """Remove what a finished run needs no longer."""
        for path in (folder / CHECKPOINT, folder / BEST, *folder.glob(".*.tmp")):
            path.unlink(missing_ok=True)

    def _check_same(self, path: Path, saved: dict[str, Any]) -> None:
        check_same(path, saved, self.about, self.record["options"], self.torch_threads)


def _still_learning(epochs: list[dict[str, Any]], best: int) -> bool:
    """Tell whether patience may have ended a run too soon.

    The training loss alone cannot tell: it falls while a model overfits too. So both losses must be
    lower in the last epoch than in the best one.
    """
    kept, last = epochs[best - 1], epochs[-1]
    return all(bool(last[loss] < kept[loss]) for loss in ("train_loss", "val_loss"))


class Interrupt:
    """Notices Ctrl-C, so that training can stop between steps; a second one stops at once."""

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> Interrupt:
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: Any) -> None:
        self.came = True
        signal.signal(signal.SIGINT, self._before)


_FAR_ABOVE = 10
# An untrained model's loss is ln 2, many times that of a constant where labels are rare. A run that
# starts slowly has not diverged, so no loss below 2 ln 2 counts.
_LEAST = 2 * math.log(2) / _FAR_ABOVE


def check_loss(
    loss: float, blank: float, step: int, model: str = "a model that knows nothing"
) -> None:
    """Raise :class:`DivergedError` if a loss is over ten times ``blank``, that of ``model``.

    Overfitting seldom goes so far: a model that has learned its training rows by heart is far above
    a constant only where its weights are far too large.
    """
    if not math.isfinite(loss):
        raise DivergedError(step)
    if loss > _FAR_ABOVE * blank:
        raise DivergedError(
            step, f"is {loss:.4g}, more than {_FAR_ABOVE} times the {blank:.2g} of {model},"
        )


def constant_loss(rate: float, positives: int, rows: int) -> float:
    """Return the loss of predicting ``rate`` for all rows, as a ``blank`` of :func:`check_loss`.

    Args:
        rate: the mean label of the training rows, which the rows need not share
        positives, rows: of the rows that a loss is of

    Example:
        >>> round(constant_loss(0.25, positives=25, rows=100), 3)
        0.562
    """
    p, share = min(max(rate, 1e-6), 1 - 1e-6), positives / rows
    return max(-share * math.log(p) - (1 - share) * math.log1p(-p), _LEAST)
