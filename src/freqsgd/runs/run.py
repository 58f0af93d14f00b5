"""One run of training, in epochs or in one pass, from the folder's lock to the end."""

from __future__ import annotations

import math
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from freqsgd.errors import DivergedError, InterruptedFitError
from freqsgd.files import locked
from freqsgd.optimizers import Rule
from freqsgd.runs import checkpoint
from freqsgd.runs.checkpoint import MODEL
from freqsgd.runs.resume import CHECKPOINT, check_same, in_parts, part_of, refusing_others, used_for


class Run(ABC):
    """One model trained once, which can be interrupted and resumed to the same result.

    Args:
        rule: the optimizer
        settings: everything else, among it ``seed`` and ``batch_size``
        folder: keeps checkpoints while the run lasts, and the model in the end
        options: the choices by which ``results.json`` describes the run; a resumed run must have
            the same
        about: tells the data from other data

    Attributes:
        leads: whether this process writes what belongs to the run as a whole
        planned: epochs, at most
        torch_threads: the number that torch's operators use, where the result depends on it
        progress: a dataclass for listeners, which a checkpoint keeps too
        record: one of the ``runs`` of ``results.json``
        model: set by :meth:`begin`, as is the engine
        engine: trains the model; has ``samples``, ``steps``, ``state``, ``state_bytes`` and
            ``load_state``
    """

    leads = True
    planned = 1
    torch_threads: int | None = None
    progress: Any
    record: dict[str, Any]
    model: Any
    engine: Any

    def __init__(
        self,
        rule: Rule,
        settings: Any,
        folder: Path | None,
        *,
        options: dict[str, Any],
        about: dict[str, Any],
    ) -> None:
        self.rule, self.folder, self.options, self.about = rule, folder, options, about
        self.settings: Any = settings

    # ---- what is trained on what -----------------------------------------------------------------

    @abstractmethod
    def begin(self) -> None:
        """Build model and optimizer anew, or refuse what does not fit."""

    def prepare(self) -> None:  # noqa: B027
        """Do what is not timed before the first step."""

    @abstractmethod
    def _train(self) -> None:
        """Take the steps that are left, if any; set the reason to stop in the record."""

    @abstractmethod
    def _finish(self) -> None:
        """Complete the record; write the model, if there is one."""

    @abstractmethod
    def save_model(self, folder: Path, description: dict[str, Any]) -> None:
        """Write the model of a finished run."""

    @abstractmethod
    def load_model(self, folder: Path) -> None:
        """Take the model that a finished run has left."""

    def agreed(self, flag: bool) -> bool:
        """Tell whether any process of the run has the flag."""
        return flag

    @property
    def samples(self) -> int:
        """Samples taken so far."""
        return int(self.engine.samples)

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return int(self.engine.steps)

    @property
    def keeps(self) -> str:
        """The optimizer's state in words."""
        return self.rule.keeps

    @property
    def costs(self) -> dict[str, Any]:
        """Bytes of weights and optimizer, for the record."""
        return {
            "state_bytes": self.engine.state_bytes,
            "state_rule": self.keeps,
            "parameter_bytes": sum(p.nbytes for p in self.model.parameters()),
        }

    def new_record(self) -> dict[str, Any]:
        """Return the record of a run that has not taken a step."""
        rule, settings = self.rule, self.settings
        return {
            "optimizer": rule.optimizer,
            "lr": rule.lr,
            "weight_decay": rule.weight_decay,
            "weight_decay_rule": rule.decay_rule,
            "max_lr": rule.law.max_lr,
            "seed": settings.seed,
            "batch_size": settings.batch_size,
            "options": self.options,
            **self.costs,
            "epochs_planned": self.planned,
            "epochs": [],
            "best_epoch": None,
            "stopped": None,
        }

    # ---- from the start to the end ---------------------------------------------------------------

    def start(
        self, resume: bool, listener: Callable[[Any, dict[str, Any]], None] | None
    ) -> dict[str, Any]:
        """Train, or go on with what the folder holds; return the record."""
        self._listener = listener or (lambda progress, record: None)
        with locked(self.folder if self.leads else None):
            used = None if self.folder is None else used_for(self.folder, resume)
            if self.folder is not None and used == MODEL:
                self.record = self._same(self.folder / MODEL)["record"]
                self.load_model(self.folder)
                self.clean_up()
                return self.record
            self.begin()
            self.record = self.new_record()
            if self.folder is not None and used == CHECKPOINT:
                self._same(self.folder / CHECKPOINT)
                with refusing_others(self.folder / CHECKPOINT):
                    self._load(self.folder)
            self.prepare()
            self._go()
        return self.record

    def _same(self, path: Path) -> dict[str, Any]:
        """Return the description of a file, which must be of the same data and options."""
        saved = checkpoint.describe(path)
        check_same(path, saved, self.about, self.options, self.torch_threads)
        return saved

    def _go(self) -> None:
        try:
            with Interrupt() as self._interrupt:
                self._train()
        except DivergedError as error:
            self.record["stopped"] = "diverged"
            less = " or weight decay" if self.rule.weight_decay > 0 else ""
            self.record["error"] = (
                f"{error}{self._place(error.step)}: try a smaller learning rate{less}"
            )
            self._end_diverged()
            if self.agreed(self._interrupt.came):  # before the loss was seen
                raise InterruptedFitError from None
        self._finish()

    def _place(self, step: int) -> str:
        """Describe the place of a step, for the error of a run that diverged in it."""
        return f" at lr {self.rule.lr:g}"

    def _end_diverged(self) -> None:
        """Save a run that diverged, so that it is not taken again."""
        self._save()

    def tell(self, *, saved: bool = False) -> None:
        """Report the progress; after Ctrl-C, save what is not saved yet and end."""
        self._listener(self.progress, self.record)
        if self.agreed(self._interrupt.came):
            if not saved:
                self._save()
            raise InterruptedFitError

    def _leave_model(self, **about: Any) -> None:
        """Write the model, then remove the checkpoint."""
        if self.folder is not None:
            self.save_model(self.folder, {"record": self.record, "data": {**self.about, **about}})
            self.clean_up()

    def clean_up(self) -> None:
        """Remove checkpoints and temporary files."""
        if self.folder is not None and self.leads:
            for path in (self.folder / CHECKPOINT, *self.folder.glob(".*.tmp")):
                path.unlink(missing_ok=True)

    # ---- checkpoints -----------------------------------------------------------------------------

    def _tensors(self) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint: what is being trained, not copies."""
        return in_parts(model=self.model.state_dict(), optimizer=self.engine.state)

    def _describe(self) -> dict[str, Any]:
        """Return what a checkpoint keeps beside tensors."""
        return {
            "progress": asdict(self.progress),
            "data": self.about,
            "torch_threads": self.torch_threads,
            "record": self.record,
            "samples": self.samples,
            "steps": self.steps,
        }

    def _save(self) -> None:
        """Write a checkpoint, if there is a folder."""
        if self.folder is not None:
            checkpoint.save(self.folder / CHECKPOINT, self._tensors(), self._describe())

    def _read(self, path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Read a checkpoint, its tensors into place; return these and its description."""
        tensors, saved = checkpoint.load(path, self._tensors())
        if tensors:
            self.model.load_state_dict(part_of(tensors, "model"))
            state = part_of(tensors, "optimizer")
            self.engine.load_state(state, saved["samples"], saved["steps"])
        return tensors, saved

    def _load(self, folder: Path) -> None:
        """Continue from the folder's checkpoint."""
        tensors, saved = self._read(folder / CHECKPOINT)
        self.progress = type(self.progress)(**saved["progress"])
        self.record = saved["record"]
        self._go_on(tensors, saved)

    def _go_on(self, tensors: dict[str, Tensor], saved: dict[str, Any]) -> None:  # noqa: B027
        """Take the rest of a checkpoint."""


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
        positives, rows: numbers of the rows whose loss is checked

    Example:
        >>> round(constant_loss(0.25, positives=25, rows=100), 3)
        0.562
    """
    p, share = min(max(rate, 1e-6), 1 - 1e-6), positives / rows
    return max(-share * math.log(p) - (1 - share) * math.log1p(-p), _LEAST)
